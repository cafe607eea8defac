//! The leader: what it decides from the plan topic and the acks topic, and how its records get on the topic.

use keyheat::control::Draft;
use keyheat::plan::migration::{self, Facts, Standing};
use keyheat::protocol::{
    AckTable, AckTopicKey, BackfillReport, History, KeyField, LogRecord, Nonce, PlanEntry, PlanKey, PlanRecord,
    PlanTable, PlanTopicKey, RetiredReport, RouterAck, SCHEMA, State as Phase, Version, WaitingKey, Writes,
};
use keyheat::units::Offset;

use super::state::{Ack, Label, State};
use super::{Budget, Migration, Rule};
use crate::records::{TIME, claim, order, record};

/// A report of the owner: number of the layout, name of the migration.
type Report = Option<(u32, Version)>;

/// Everything that a decision rests on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    table: u32,
    next: Version,
    /// For each router the table that it has applied, whether it counts as having acknowledged each key's phase, and what waits.
    acks: Vec<Option<(u32, u8)>>,
    /// For each key: migrations begun, moved, retired.
    keys: Vec<(u8, Report, Report)>,
    may_turn_back: bool,
    may_turn_round: bool,
}

/// What a leader may decide now.
pub(super) struct Decided {
    pub(super) options: Vec<Decision>,
    /// Every migration is over.
    pub(super) over: bool,
}

/// One record that it may send.
#[derive(Clone)]
pub(super) struct Decision {
    record: u32,
    label: Label,
}

impl Migration {
    pub(super) fn leader_steps(&self, state: &State, out: &mut impl FnMut(Label, State)) {
        if let Some(record) = state.leader.flying {
            let mut to = state.clone();
            to.leader.flying = None;
            self.appended(&mut to, record);
            out(Label::RecordLands, to);
        } else {
            for decision in &self.decided(state).options {
                out(decision.label, self.sent(state, decision));
            }
        }
        if let Some(record) = state.late_record {
            let mut to = state.clone();
            to.late_record = None;
            self.appended(&mut to, record);
            out(Label::LateRecordLands, to);
        }
        if state.may.fail_overs > 0 && state.late_record.is_none() {
            let mut to = state.clone();
            to.may.fail_overs -= 1;
            to.late_record = to.leader.flying.take();
            to.leader.epoch += 1;
            to.leader.seq = 0;
            let (version, nonce) = (Version { epoch: to.leader.epoch, seq: 0 }, to.leader.nonce());
            let record = self.put_record(claim(version.epoch, nonce), version, nonce);
            self.appended(&mut to, record);
            out(Label::NewLeader, to);
        }
    }

    fn sent(&self, state: &State, decision: &Decision) -> State {
        let mut to = state.clone();
        to.leader.seq += 1;
        to.leader.flying = Some(decision.record);
        match decision.label {
            Label::LeaderTurnsBack(_) => to.may.turned_back -= 1,
            Label::LeaderTurnsRound(_) => to.may.turned_round -= 1,
            _ => {}
        }
        to
    }

    pub(super) fn decided(&self, state: &State) -> std::sync::Arc<Decided> {
        let Budget { turned_back, turned_round, .. } = state.may;
        let asked = Asked {
            table: state.newest(),
            next: state.leader.next(),
            acks: (0..state.acks.len()).map(|which| self.ack_as_read(state, which)).collect(),
            keys: state.keys.iter().map(|key| (key.walked, key.moved, key.retired)).collect(),
            may_turn_back: turned_back > 0,
            may_turn_round: turned_round > 0,
        };
        self.decided.get(asked.clone(), || std::sync::Arc::new(self.decide(&asked, state)))
    }

    /// What the leader knows of a router: the table up to which it has applied, and a bit for each key that waits.
    fn ack_as_read(&self, state: &State, which: usize) -> Option<(u32, u8)> {
        let Ack { applied, waiting } = state.acks[which]?;
        let late_one = self.setup.joins && which + 1 == state.acks.len();
        if self.setup.without == Rule::AcksToEnd && state.leader.epoch > 1 && late_one {
            return None;
        }
        if self.setup.without == Rule::AckByVersion && self.was_in_phase(state, applied) {
            return Some((state.newest(), 0));
        }
        Some((state.log[usize::from(applied)], waiting))
    }

    /// True when the first key was in the phase of its newest record before, as far as `applied`.
    fn was_in_phase(&self, state: &State, applied: u8) -> bool {
        let key = self.key(0);
        let phase = |table: u32| self.tables.get(table).plan(&key).map(|entry| entry.record.state);
        let now = phase(state.newest());
        now == Some(Phase::Hold) && state.log[..=usize::from(applied)].iter().any(|&table| phase(table) == now)
    }

    fn decide(&self, asked: &Asked, state: &State) -> Decided {
        let table = self.tables.get(asked.table);
        let mut decided = Decided { options: Vec::new(), over: true };
        if let Some(answer) = Draft::answer(&table) {
            let record = self.drafted(&answer.key, answer.value, asked.next);
            return Decided { options: vec![Decision { record, label: Label::LeaderAnswers }], over: false };
        }
        let acks = self.acks(asked);
        assert_eq!(acks.contradiction(&table), None, "no record is ever lost here");
        let keys: Vec<PlanKey> = (0..self.setup.keys).map(|key| self.key(key)).collect();
        let holding = table.plans().any(|(_, entry)| entry.record.state == Phase::Hold);
        for (number, key) in keys.iter().enumerate() {
            let number = u8::try_from(number).unwrap();
            let (walked, ..) = asked.keys[usize::from(number)];
            let Some(entry) = table.plan(key) else {
                decided.over = false;
                decided.options.extend(self.begins(number, None, walked, asked.next));
                continue;
            };
            if let Some(prepare) = migration::taken_over(entry, asked.next.epoch) {
                let options = vec![self.decision(Label::LeaderDecides(number, "taken over"), &prepare, asked.next)];
                return Decided { options, over: false };
            }
            let mut facts = Facts { may_hold: !holding, ..Facts::reported(&acks, key, entry, 1) };
            facts.acknowledged |= self.setup.without == Rule::Gate;
            facts.moved |= self.setup.without == Rule::ReportByMigration
                && acks.backfill(key, entry.record.migration.to.number()).is_some();
            self.goes_on(number, entry, &facts, asked, &mut decided);
            if let (Rule::NoWayBack, Phase::Dual) = (self.setup.without, entry.record.state) {
                let hold = state.log.iter().rev().find_map(|&table| self.hold_of(table, key));
                let prepare = hold.and_then(|hold| migration::turn_back(&hold)).filter(|_| asked.may_turn_back);
                let label = Label::LeaderTurnsBack(number);
                decided.options.extend(prepare.map(|prepare| self.decision(label, &prepare, asked.next)));
            }
        }
        decided
    }

    /// What may come after a key's newest record.
    fn goes_on(&self, key: u8, entry: &PlanEntry, facts: &Facts, asked: &Asked, decided: &mut Decided) {
        let (record, next) = (&entry.record, asked.next);
        let (walked, ..) = asked.keys[usize::from(key)];
        let settled_too_early = self.setup.without == Rule::Retired && record.state == Phase::Settled;
        match migration::next(record, facts) {
            migration::Step::Done => {
                decided.over &= usize::from(walked) == self.setup.walk.len();
                decided.options.extend(self.begins(key, Some(record), walked, next));
            }
            _ if settled_too_early && usize::from(walked) < self.setup.walk.len() => {
                decided.over = false;
                decided.options.extend(self.begins(key, Some(record), walked, next));
            }
            migration::Step::Next(after) => {
                decided.over = false;
                let name = if after.retire.is_empty() { after.state.label() } else { "retire" };
                decided.options.push(self.decision(Label::LeaderDecides(key, name), &after, next));
            }
            migration::Step::Wait(_) => decided.over = false,
        }
        if asked.may_turn_back && record.state == Phase::Hold && !facts.acknowledged {
            let late = Facts { held_too_long: true, ..*facts };
            if let migration::Step::Next(prepare) = migration::next(record, &late) {
                decided.options.push(self.decision(Label::LeaderTurnsBack(key), &prepare, next));
            }
        }
        if let (true, Some(round)) = (asked.may_turn_round, migration::turn_round(record)) {
            decided.options.push(self.decision(Label::LeaderTurnsRound(key), &round, next));
        }
    }

    /// The first record of the next migration of a key, if there is to be one.
    fn begins(&self, key: u8, record: Option<&PlanRecord>, walked: u8, next: Version) -> Option<Decision> {
        let buckets = *self.setup.walk.get(usize::from(walked))?;
        let writes = if self.setup.without == Rule::Hold { Writes::Insert } else { self.setup.writes };
        let order = order(self.key(key), next, buckets, writes, History::Move);
        let first = migration::begin(order, &Standing::of(record)?).expect("a migration that can begin");
        Some(self.decision(Label::LeaderDecides(key, "begin"), &first, next))
    }

    fn hold_of(&self, table: u32, key: &PlanKey) -> Option<PlanRecord> {
        let table = self.tables.get(table);
        table.plan(key).filter(|entry| entry.record.state == Phase::Hold).map(|entry| entry.record.clone())
    }

    fn decision(&self, label: Label, plan: &PlanRecord, version: Version) -> Decision {
        let key = PlanTopicKey::Plan(plan.plan_key());
        Decision { record: self.drafted(&key, Some(plan.encode()), version), label }
    }

    fn drafted(&self, key: &PlanTopicKey, value: Option<Vec<u8>>, version: Version) -> u32 {
        let nonce = Nonce(version.epoch);
        self.put_record(record(key, value, version, nonce), version, nonce)
    }

    /// The acks topic, folded.
    fn acks(&self, asked: &Asked) -> AckTable {
        let mut acks = AckTable::new();
        for (which, ack) in asked.acks.iter().enumerate() {
            let Some((table, waiting)) = *ack else { continue };
            let ack = self.router_ack(which, &self.tables.get(table), waiting);
            let key = AckTopicKey::Router { id: ack.id.clone(), nonce: ack.nonce };
            tell(&mut acks, &key, ack.encode());
        }
        for (number, (_, moved, retired)) in (0..).zip(&asked.keys) {
            let key = self.key(number);
            if let Some((layout, migration)) = *moved {
                let topic_key = AckTopicKey::Backfill { key: key.clone(), layout };
                tell(&mut acks, &topic_key, moved_report(&key, layout, migration).encode());
            }
            if let Some((layout, migration)) = *retired {
                let topic_key = AckTopicKey::Retired { key: key.clone(), layout };
                tell(&mut acks, &topic_key, retired_report(&key, layout, migration).encode());
            }
        }
        acks
    }

    fn router_ack(&self, which: usize, table: &PlanTable, waiting: u8) -> RouterAck {
        let waits = |number: &u8| waiting & 1 << number != 0;
        let waiting = (0..self.setup.keys).filter(waits).filter_map(|number| {
            let key = self.key(number);
            let version = table.plan(&key)?.version;
            Some(WaitingKey { keyspace: key.keyspace, key: KeyField(key.key), version })
        });
        RouterAck {
            schema: SCHEMA,
            id: format!("r{which}"),
            nonce: Nonce(1),
            applied: table.last_version(),
            digest: table.digest(),
            waiting: waiting.collect(),
            more_waiting: false,
            refusals: Vec::new(),
            more_refused: false,
            time: TIME.into(),
            unknown_until: None,
        }
    }
}

fn tell(acks: &mut AckTable, key: &AckTopicKey, value: Vec<u8>) {
    let record =
        LogRecord { offset: Offset(0), key: key.to_bytes(), value: Some(value), headers: Vec::new(), log_time: None };
    acks.apply(&record);
}

fn moved_report(key: &PlanKey, layout: u32, migration: Version) -> BackfillReport {
    BackfillReport {
        schema: SCHEMA,
        keyspace: key.keyspace.clone(),
        key: KeyField(key.key.clone()),
        layout,
        migration,
        moved: 1,
        expected: 1,
        checksum_from: "ab".into(),
        checksum_to: "ab".into(),
        done: true,
        time: TIME.into(),
    }
}

fn retired_report(key: &PlanKey, layout: u32, migration: Version) -> RetiredReport {
    RetiredReport {
        schema: SCHEMA,
        keyspace: key.keyspace.clone(),
        key: KeyField(key.key.clone()),
        layout,
        migration,
        remaining: 0,
        time: TIME.into(),
    }
}
