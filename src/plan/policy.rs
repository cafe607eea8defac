//! From the world to operations: the planner.

use std::collections::{BTreeMap, BTreeSet};

use super::advising;
use super::beginning::{Beginning, Change};
use super::hindrance::Hindrance;
use super::memory::Memory;
use super::migration::Standing;
use super::operation::Operation;
use super::running::{Need, Running};
use super::settings::{BudgetSettings, Mode, PlanSettings, ProtocolSettings};
use super::view::View;
use super::words::{Disobeyed, Effect, Word, Words};
use super::world::World;
use crate::protocol::{PlanKey, PlanRecord, State};
use crate::units::EventTime;

/// How important an operation is: the first is sent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Writes wait and will not get anywhere.
    TurnBack,
    /// Writes wait for this.
    LeaveHold,
    /// An operator's word on a key.
    Word,
    /// A migration goes on.
    Advance,
    /// A migration that is not wanted any more ends where it began.
    GiveUp,
    /// Writes begin to wait: after everything that could delay the end of it.
    Hold,
    /// A migration begins.
    Begin,
    /// What a split was measured to do.
    Tell,
    /// A record has done its time.
    End,
    /// Advice.
    Advise,
}

/// Decides what should be on the plan topic. It is asked again after each record that was read back: of the operations that it
/// returns, the most important first, the caller sends only the first.
///
/// What it remembers is how long things have lasted. A new leader may begin with a new planner or go on with an old one: a hold of an
/// earlier epoch is turned back either way.
#[derive(Debug, Clone)]
pub struct Planner {
    keyspaces: Vec<PlanSettings>,
    budget: BudgetSettings,
    protocol: ProtocolSettings,
    memory: Memory,
    approved: BTreeSet<PlanKey>,
    words: Words,
    hindrances: BTreeMap<PlanKey, Hindrance>,
    measures: bool,
}

impl Planner {
    /// A planner of keyspaces in the order of the engine's.
    #[must_use]
    pub fn new(keyspaces: Vec<PlanSettings>, budget: BudgetSettings, protocol: ProtocolSettings) -> Self {
        Self {
            keyspaces,
            budget,
            protocol,
            memory: Memory::default(),
            approved: BTreeSet::new(),
            words: Words::default(),
            hindrances: BTreeMap::new(),
            measures: true,
        }
    }

    /// The same planner over events that were recorded before, which do not follow what it decides: no split is measured.
    #[must_use]
    pub const fn over_recorded_events(mut self) -> Self {
        self.measures = false;
        self
    }

    /// The keyspaces, as configured.
    #[must_use]
    pub fn keyspaces(&self) -> &[PlanSettings] {
        &self.keyspaces
    }

    /// The limits, as configured.
    #[must_use]
    pub const fn budget(&self) -> &BudgetSettings {
        &self.budget
    }

    /// Stops everything new, or lets it begin again; what runs goes on.
    pub const fn set_freeze(&mut self, freeze: bool) {
        self.budget.freeze = freeze;
    }

    /// Approves the proposal of a key. False when there is none to approve in the table of the last decision.
    pub fn approve(&mut self, key: &PlanKey) -> bool {
        let proposed = self.hindrances.get(key) == Some(&Hindrance::Waits(super::migration::Wait::Approval));
        if proposed {
            self.approved.insert(key.clone());
        }
        proposed
    }

    /// Takes an operator's word on a key at `now`: the next decisions carry it out. The number asks for its answer.
    ///
    /// # Errors
    /// [`Disobeyed::TooMany`] when too many wait.
    pub fn tell(&mut self, word: Word, now: EventTime) -> Result<u64, Disobeyed> {
        self.words.take(word, now)
    }

    /// What has become of a word, once it is known: it was read back from the plan topic, or is not obeyed. Told once.
    pub fn answer(&mut self, number: u64) -> Option<Result<Effect, Disobeyed>> {
        self.words.answer(number)
    }

    /// Drops every word that is not carried out: another process leads, and what was wanted here must not come true later.
    pub fn forget_words(&mut self) {
        self.words.forget();
    }

    /// Why nothing begins for a hot key, or why a key's migration stands still: as of the last decision.
    #[must_use]
    pub const fn hindrances(&self) -> &BTreeMap<PlanKey, Hindrance> {
        &self.hindrances
    }

    /// What should be sent, the most important first: at most one hold and one new migration among it. Nothing, when routers know
    /// what the plan topic does not: it has lost records, and every decision would rest on the wrong ones.
    pub fn decide(&mut self, world: &World<'_>, now: EventTime) -> Vec<Operation> {
        self.hindrances.clear();
        if world.acks.contradiction(world.table).is_some() {
            return Vec::new();
        }
        let view = View::new(world, now, &self.keyspaces, &self.budget, &self.protocol, self.measures);
        self.memory.observe(&view);
        self.approved.retain(|key| world.table.plan(key).is_some_and(|entry| entry.record.state == State::Proposed));

        let words = self.words.decide(&view, &mut self.memory);
        // A word that says what becomes of a plan stands in the place of what the plan needs; a pin or a block does not hold it up.
        let is_of_plan = |operation: &Operation| matches!(operation, Operation::Put(_) | Operation::Remove(_));
        let busy: BTreeSet<PlanKey> =
            words.iter().filter(|(_, (_, operation))| is_of_plan(operation)).map(|(key, _)| key.clone()).collect();
        // An operator's word comes first among what is as urgent.
        let mut ranked: Vec<_> = words.into_values().collect();
        let holding = world.table.plans().any(|(_, entry)| entry.record.state == State::Hold);
        let running = Running { view: &view, memory: &self.memory, approved: &self.approved, holding };
        let beginning = Beginning { view: &view, memory: &self.memory };
        let rested = plans(&view, &running, &busy, &mut ranked, &mut self.hindrances);
        if !ranked.iter().any(|(rank, _)| *rank == Rank::Begin) {
            let begun = begin(&view, &beginning, &running, &rested, &mut self.hindrances);
            ranked.extend(begun.map(|operation| (Rank::Begin, operation)));
        }
        ranked.extend(view.pins_of_the_past().map(|operation| (Rank::End, operation)));
        ranked.extend(advising::operations(&view, &self.memory).into_iter().map(|operation| (Rank::Advise, operation)));
        ranked.sort_by_key(|(rank, _)| *rank);
        let (mut held, mut begun) = (false, false);
        ranked.retain(|(rank, _)| match rank {
            Rank::Hold => !std::mem::replace(&mut held, true),
            Rank::Begin => !std::mem::replace(&mut begun, true),
            _ => true,
        });
        ranked.into_iter().map(|(_, operation)| operation).collect()
    }
}

/// What the plans of the table need; gives the keys whose last migration is over.
fn plans(
    view: &View<'_>,
    running: &Running<'_>,
    busy: &BTreeSet<PlanKey>,
    ranked: &mut Vec<(Rank, Operation)>,
    hindrances: &mut BTreeMap<PlanKey, Hindrance>,
) -> BTreeSet<PlanKey> {
    let mut rested = BTreeSet::new();
    for (key, entry) in view.world.table.plans().filter(|(key, _)| !busy.contains(*key)) {
        if view.world.table.is_troubled(key) {
            hindrances.insert(key.clone(), Hindrance::Troubled);
            continue;
        }
        match running.need(key, entry) {
            Need::Send(rank, operation) => ranked.push((rank, operation)),
            Need::Wait(wait) => {
                hindrances.insert(key.clone(), Hindrance::Waits(wait));
            }
            Need::Nothing => {
                rested.insert(key.clone());
            }
        }
    }
    rested
}

/// The one migration that begins next: pins before heat, heat before coolness, the hottest key first.
fn begin(
    view: &View<'_>,
    beginning: &Beginning<'_>,
    running: &Running<'_>,
    rested: &BTreeSet<PlanKey>,
    hindrances: &mut BTreeMap<PlanKey, Hindrance>,
) -> Option<Operation> {
    let mut begun = beginning.pinned(running, rested, hindrances);
    for (key, hot, settings) in view.hottest() {
        if view.pinned(&key).is_some() {
            continue;
        }
        if view.is_blocked(&key) {
            hindrances.insert(key, Hindrance::Blocked);
            continue;
        }
        let entry = view.world.table.plan(&key);
        if entry.is_some() && !rested.contains(&key) {
            continue;
        }
        if view.world.table.is_troubled(&key) {
            hindrances.insert(key, Hindrance::Troubled);
            continue;
        }
        let Some(standing) = Standing::of(entry.map(|entry| &entry.record)) else { continue };
        let wanted = match entry {
            Some(entry) if undoes(&entry.record, &standing) => Ok(Some(Change::Withdraw)),
            _ => beginning.heats(hot, settings, &standing),
        };
        let outcome = match wanted {
            Ok(Some(change)) => match beginning.hindrance(&key, entry, settings, change, running) {
                None if begun.is_none() => beginning
                    .first_record(&key, settings, entry.map(|entry| &entry.record), &standing, change)
                    .map(|operation| begun = Some(operation)),
                None => Ok(()),
                Some(hindrance) => Err(hindrance),
            },
            Ok(None) => Ok(()),
            Err(_) if settings.mode == Mode::Observe => Err(Hindrance::Observed),
            Err(hindrance) => Err(hindrance),
        };
        if let Err(hindrance) = outcome {
            hindrances.insert(key, hindrance);
        }
    }
    begun.or_else(|| cool_down(view, beginning, running, rested))
}

/// True for a split that was measured not to help: no heat is a reason to keep it, and none to grow it.
fn undoes(record: &PlanRecord, standing: &Standing) -> bool {
    record.did_not_help() && !standing.write.is_bare()
}

/// The one key that loses buckets next.
fn cool_down(
    view: &View<'_>,
    beginning: &Beginning<'_>,
    running: &Running<'_>,
    rested: &BTreeSet<PlanKey>,
) -> Option<Operation> {
    rested.iter().filter(|key| view.pinned(key).is_none() && !view.is_blocked(key)).find_map(|key| {
        let (settings, entry) = (view.settings(key)?, view.world.table.plan(key)?);
        let standing = Standing::of(Some(&entry.record))?;
        let change = match undoes(&entry.record, &standing) {
            true => Change::Withdraw,
            false => beginning.cools(key, settings, &standing)?,
        };
        match beginning.hindrance(key, Some(entry), settings, change, running) {
            None => beginning.first_record(key, settings, Some(&entry.record), &standing, change).ok(),
            Some(_) => None,
        }
    })
}
