//! Migrations that run: what each of them needs next.

use std::collections::BTreeSet;

use super::memory::Memory;
use super::migration::{self, Facts, Step, Wait};
use super::operation::Operation;
use super::outcome;
use super::policy::Rank;
use super::settings::Mode;
use super::view::{View, cools_down, time_of};
use crate::protocol::{Layout, PlanEntry, PlanKey, State};
use crate::units::{EventTime, Span};

/// One plan of the table and what becomes of it.
pub(super) struct Running<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) memory: &'a Memory,
    pub(super) approved: &'a BTreeSet<PlanKey>,
    /// A key is in hold: no other may be.
    pub(super) holding: bool,
}

/// What a plan needs.
pub(super) enum Need {
    /// This, so urgently.
    Send(Rank, Operation),
    /// Something from outside.
    Wait(Wait),
    /// Nothing: the next migration may begin.
    Nothing,
}

impl Running<'_> {
    /// What the plan of `key` needs.
    pub(super) fn need(&self, key: &PlanKey, entry: &PlanEntry) -> Need {
        let record = &entry.record;
        if let Some(prepare) = migration::taken_over(entry, self.view.world.next.epoch) {
            return put(Rank::TurnBack, prepare);
        }
        if let Some(need) = self.given_up(key, entry) {
            return need;
        }
        match migration::next(record, &self.facts(key, entry)) {
            Step::Next(next) => {
                let rank = match (record.state, next.state) {
                    (State::Hold, State::Prepare) => Rank::TurnBack,
                    (State::Hold, _) => Rank::LeaveHold,
                    (_, State::Hold) => Rank::Hold,
                    _ => Rank::Advance,
                };
                Need::Send(rank, Operation::Put(next))
            }
            Step::Wait(Wait::Approval) => self.approval(key, entry),
            // A purge may take days; what the split does is seen before it has ended.
            Step::Wait(Wait::Retirement) => self.measured(key, entry).unwrap_or(Need::Wait(Wait::Retirement)),
            Step::Wait(wait) => Need::Wait(wait),
            Step::Done => self.measured(key, entry).unwrap_or_else(|| self.ended(key, entry)),
        }
    }

    fn facts(&self, key: &PlanKey, entry: &PlanEntry) -> Facts {
        let view = self.view;
        let expire_after = view.settings(key).map_or(Span::ZERO, |settings| settings.expire_after);
        Facts {
            may_hold: !self.holding && self.memory.may_hold(key, view.now),
            held_too_long: self.memory.seen_at(key).is_some_and(|at| view.now.since(at) >= view.protocol.hold_limit),
            // A keyspace that is no longer configured has no span: nothing is said to have expired.
            expired: !expire_after.is_zero() && self.age(key, entry) >= expire_after,
            ..Facts::reported(view.world.acks, key, entry, view.protocol.expect_routers)
        }
    }

    /// When the record reached the log, or was first seen where the log keeps no time.
    fn since(&self, key: &PlanKey, entry: &PlanEntry) -> Option<EventTime> {
        entry.log_time.or_else(|| self.memory.seen_at(key))
    }

    /// How long the record has been in the log, or has been seen where the log keeps no time.
    fn age(&self, key: &PlanKey, entry: &PlanEntry) -> Span {
        self.since(key, entry).map_or(Span::ZERO, |since| self.view.now.since(since))
    }

    /// How long ago the key's last migration ended: an outcome that is published later ends none.
    pub(super) fn rested(&self, key: &PlanKey, entry: &PlanEntry) -> Span {
        let own = entry.record.outcome.as_ref().filter(|_| !entry.record.migration.to.is_bare());
        let settled = own.and_then(|outcome| outcome.settled_at.as_deref()).and_then(time_of);
        settled.map_or_else(|| self.age(key, entry), |settled| self.view.now.since(settled))
    }

    /// True while a key rests whose split did not help and was undone.
    pub(super) fn cools_down(&self, key: &PlanKey, entry: &PlanEntry, cooldown: Span) -> bool {
        let undone = entry.record.did_not_help() && entry.record.read == [Layout::BARE];
        undone && self.age(key, entry) < cooldown
    }

    /// The record with what the split was measured to do, once that can be said.
    fn measured(&self, key: &PlanKey, entry: &PlanEntry) -> Option<Need> {
        let since = self.since(key, entry)?;
        outcome::measured(self.view, key, entry, since).map(|record| put(Rank::Tell, record))
    }

    /// A proposal, or a prepare that routers have not let on, whose reason has gone.
    fn given_up(&self, key: &PlanKey, entry: &PlanEntry) -> Option<Need> {
        let record = &entry.record;
        if !matches!(record.state, State::Proposed | State::Prepare) {
            return None;
        }
        let quiet = self.view.settings(key).map(|settings| settings.quiet)?;
        let gone = if let Some(ruled_out) = self.view.ruled_out(key, record) {
            ruled_out
        } else if record.did_not_help() {
            // A split that did not help is undone whatever becomes of the key's heat.
            false
        } else if cools_down(record) {
            let fits = !record.migration.to.is_bare() && self.view.fits_in_half(key, record);
            self.view.hot(key).is_some() && !fits
        } else {
            self.memory.cool_for(key, self.view.now).is_some_and(|cool| cool >= quiet)
        };
        if !gone {
            return None;
        }
        let never_split = record.state == State::Proposed && record.read == [Layout::BARE];
        if never_split {
            return Some(Need::Send(Rank::GiveUp, Operation::Remove(key.clone())));
        }
        migration::turn_round(record).map(|record| put(Rank::GiveUp, record))
    }

    fn approval(&self, key: &PlanKey, entry: &PlanEntry) -> Need {
        let view = self.view;
        let Some(settings) = view.settings(key) else { return Need::Wait(Wait::Approval) };
        // A proposal that a pin has let stand is the pin's own next step.
        let pinned = view.pinned(key).is_some() && settings.mode != Mode::Observe;
        let approved = self.approved.contains(key) || settings.mode == Mode::Auto || pinned;
        let cools = cools_down(&entry.record);
        let splits_more = entry.record.read == [Layout::BARE];
        let may_begin = (view.world.condition.is_settled() || pinned)
            && !view.budget.freeze
            && view.over_budget(Mode::Auto, splits_more, cools).is_none();
        if !approved || !may_begin {
            return Need::Wait(Wait::Approval);
        }
        let not_after = view.now.saturating_add(view.protocol.not_after).to_rfc3339();
        let prepared = migration::approve(&entry.record, view.world.next, view.now.to_rfc3339(), not_after);
        prepared.map_or(Need::Wait(Wait::Approval), |record| put(Rank::Begin, record))
    }

    /// A migration that is over: a key back in the bare layout loses its record after a while, and not while it rests by that record.
    fn ended(&self, key: &PlanKey, entry: &PlanEntry) -> Need {
        let bare = entry.record.read == [Layout::BARE];
        let cooldown = self.view.settings(key).map_or(Span::ZERO, |settings| settings.cooldown);
        let rests = self.cools_down(key, entry, cooldown);
        if bare && !rests && self.age(key, entry) >= self.view.protocol.tombstone_after {
            Need::Send(Rank::End, Operation::Remove(key.clone()))
        } else {
            Need::Nothing
        }
    }
}

fn put(rank: Rank, record: crate::protocol::PlanRecord) -> Need {
    Need::Send(rank, Operation::Put(Box::new(record)))
}
