//! The walk of one key from one layout to another, as functions on its record: what comes next, given what routers and the owner say.
//!
//! | State | `write` | `read`, in this order | goes on when |
//! |---|---|---|---|
//! | proposed | A | A | approved |
//! | prepare | A | B, A | acknowledged by every router |
//! | hold (`update` only) | none | B, A | acknowledged; turned back when that takes too long |
//! | dual | B | B, A | acknowledged |
//! | moving | B | B, A | acknowledged, and A's records are in B or may be missed |
//! | settled | B | B | acknowledged: then the same with A under `retire` |
//!
//! A migration may be turned round from proposed and prepare, where nothing was written to B; a hold is turned back to prepare first.
//! From dual on it goes forward. Nothing here looks at a clock, a table or a configuration: a model can drive these very functions.

use crate::protocol::{
    AckTable, Delete, Evidence, History, KeyField, Layout, MAX_READ_LAYOUTS, MAX_VALUE_BYTES, MigrationField, Outcome,
    PlanEntry, PlanKey, PlanRecord, Prediction, SCHEMA, State, Version, Writes,
};
use crate::protocol::{BUCKET_HASH, BUCKET_KEY, BucketField, InvalidLayout};

/// What routers and the owner say of a key's newest record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Facts {
    /// Every registered router has acknowledged the record, and enough are registered.
    pub acknowledged: bool,
    /// A router refuses the record.
    pub refused: bool,
    /// No other key is in hold, and this one's hold is not to wait before it is tried again.
    pub may_hold: bool,
    /// The hold has lasted as long as it may.
    pub held_too_long: bool,
    /// The owner has proved for this migration that the old layout's records are in the new one.
    pub moved: bool,
    /// The store's span of deletion has passed since the record reached the log.
    pub expired: bool,
    /// The owner has reported for this migration that the old layout is empty.
    pub retired: bool,
}

impl Facts {
    /// What `acks` says of the newest record of `key`, with `expect` routers at least to be registered. What only time and other keys
    /// tell is left at false.
    #[must_use]
    pub fn reported(acks: &AckTable, key: &PlanKey, entry: &PlanEntry, expect: usize) -> Self {
        let migration = entry.record.migration;
        let backfill = acks.backfill(key, migration.to.number());
        let retired = acks.retired(key, migration.from.number());
        Self {
            acknowledged: acks.routers().len() >= expect && acks.acknowledged(key, entry.version),
            refused: acks.refusal(key, entry.version).is_some(),
            moved: backfill.is_some_and(|report| report.proves(migration.version)),
            retired: retired.is_some_and(|report| report.proves(migration.version)),
            ..Self::default()
        }
    }
}

/// What comes next for a key.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// This record.
    Next(Box<PlanRecord>),
    /// Nothing, until something outside changes.
    Wait(Wait),
    /// Nothing: the migration is over, and the next one may begin.
    Done,
}

/// What a migration waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wait {
    /// Someone to approve it.
    Approval,
    /// Routers to acknowledge.
    Routers,
    /// Its turn to hold writes.
    Turn,
    /// The owner to move the records.
    Owner,
    /// The store to delete the old records.
    Expiry,
    /// The owner to report the old layout empty.
    Retirement,
}

impl Wait {
    /// The word for people and labels.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Routers => "routers",
            Self::Turn => "turn",
            Self::Owner => "owner",
            Self::Expiry => "expiry",
            Self::Retirement => "retirement",
        }
    }
}

/// Where a key's records are while no migration runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Where a write goes.
    pub write: Layout,
    /// Where a read looks.
    pub read: Vec<Layout>,
    /// The number of the next new layout.
    pub next_number: u32,
}

impl Standing {
    /// Where a key stands by its record, or without one. None while a migration runs.
    #[must_use]
    pub fn of(record: Option<&PlanRecord>) -> Option<Self> {
        let Some(record) = record else {
            return Some(Self { write: Layout::BARE, read: vec![Layout::BARE], next_number: 1 });
        };
        let rests = match record.state {
            State::Settled => true,
            State::Moving => record.migration.history == History::Keep,
            State::Proposed | State::Prepare | State::Hold | State::Dual => false,
        };
        let layouts = [record.migration.from, record.migration.to].into_iter().chain(record.read.iter().copied());
        let highest = layouts.map(Layout::number).max().unwrap_or(0);
        let write = record.write.filter(|_| rests)?;
        Some(Self { write, read: record.read.clone(), next_number: highest.checked_add(1)? })
    }
}

/// A migration to begin.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// Whose.
    pub key: PlanKey,
    /// Its name: the version that its first record will have.
    pub version: Version,
    /// Number of buckets of the layout to enter; 1 for the bare key.
    pub buckets: u32,
    /// The first label of the layout to enter.
    pub first: u32,
    /// Seed of the bucket hash.
    pub seed: u64,
    /// How records are written.
    pub writes: Writes,
    /// What becomes of old records.
    pub history: History,
    /// Why.
    pub evidence: Evidence,
    /// What is expected.
    pub prediction: Prediction,
    /// What the split that this migration undoes was measured to do, when it did not help.
    pub undone: Option<Outcome>,
    /// RFC 3339, now.
    pub decided_at: String,
    /// RFC 3339: a record that reaches the log later is void.
    pub not_after: String,
}

/// Why a migration cannot begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CannotBegin {
    /// The layout to enter is none.
    #[error(transparent)]
    Layout(#[from] InvalidLayout),
    /// With `history = keep` every migration adds a layout to read, and none goes back to fewer buckets: the places of the smaller
    /// layout were never emptied.
    #[error(
        "records are kept where they are: reads look in {MAX_READ_LAYOUTS} layouts at most, and never in fewer buckets again"
    )]
    Kept,
    /// Key and evidence do not fit in a record.
    #[error(
        "the record would have {0} bytes, which should be at most {MAX_VALUE_BYTES}; the key is too long to be split"
    )]
    TooLong(usize),
}

/// Room for what later records of the migration add: a layout under `retire` or more, and an outcome.
const LATER_BYTES: usize = 400;

/// The proposal of a migration: it places nothing.
///
/// # Errors
/// [`CannotBegin`], with the rule.
pub fn propose(order: Order, standing: &Standing) -> Result<PlanRecord, CannotBegin> {
    let prepared = begin(order, standing)?;
    let (read, delete) = (standing.read.clone(), delete_rule(State::Proposed, &standing.read, false));
    Ok(PlanRecord { state: State::Proposed, read, delete, ..prepared })
}

/// The first record of a migration that runs: prepare.
///
/// # Errors
/// [`CannotBegin`], with the rule.
pub fn begin(order: Order, standing: &Standing) -> Result<PlanRecord, CannotBegin> {
    let from = standing.write;
    let to = match order.buckets {
        1 => Layout::BARE,
        buckets => Layout::split(standing.next_number, buckets, order.first)?,
    };
    let kept = standing.read.len() > 1;
    // A layout that was kept once stays to be read: its records were never moved.
    let history = if kept { History::Keep } else { order.history };
    let shrinks = to.buckets() < from.buckets();
    if standing.read.len() >= MAX_READ_LAYOUTS || history == History::Keep && shrinks {
        return Err(CannotBegin::Kept);
    }
    let read: Vec<Layout> = std::iter::once(to).chain(standing.read.iter().copied()).collect();
    let record = PlanRecord {
        schema: SCHEMA,
        keyspace: order.key.keyspace,
        key: KeyField(order.key.key),
        state: State::Prepare,
        write: Some(from),
        delete: delete_rule(State::Prepare, &read, false),
        read,
        retire: Vec::new(),
        migration: MigrationField { version: order.version, from, to, writes: order.writes, history },
        bucket: BucketField { hash: BUCKET_HASH.to_owned(), seed: order.seed, key: BUCKET_KEY.to_owned() },
        evidence: order.evidence,
        prediction: order.prediction,
        outcome: None,
        decided_at: order.decided_at,
        not_after: Some(order.not_after),
    };
    match record.encode().len() {
        bytes if bytes > MAX_VALUE_BYTES - LATER_BYTES => Err(CannotBegin::TooLong(bytes)),
        // There is room for an outcome, be it the migration's own or that of the split that it undoes.
        _ => Ok(PlanRecord { outcome: order.undone, ..record }),
    }
}

/// The first record of a proposal that was approved; none when the record is no proposal.
#[must_use]
pub fn approve(proposal: &PlanRecord, version: Version, now: String, not_after: String) -> Option<PlanRecord> {
    if proposal.state != State::Proposed {
        return None;
    }
    let to = proposal.migration.to;
    let read: Vec<Layout> = std::iter::once(to).chain(proposal.read.iter().copied()).collect();
    Some(PlanRecord {
        state: State::Prepare,
        delete: delete_rule(State::Prepare, &read, false),
        read,
        migration: MigrationField { version, ..proposal.migration },
        decided_at: now,
        not_after: Some(not_after),
        ..proposal.clone()
    })
}

/// What comes after a key's newest record.
#[must_use]
pub fn next(record: &PlanRecord, facts: &Facts) -> Step {
    let MigrationField { writes, history, .. } = record.migration;
    match record.state {
        State::Proposed => Step::Wait(Wait::Approval),
        State::Prepare if facts.refused => turn_round(record).map_or(Step::Done, to_step),
        State::Prepare | State::Dual | State::Moving if !facts.acknowledged => Step::Wait(Wait::Routers),
        State::Prepare if writes != Writes::Update => to_step(enter(record, State::Dual)),
        State::Prepare if facts.may_hold => to_step(enter(record, State::Hold)),
        State::Prepare => Step::Wait(Wait::Turn),
        State::Hold if facts.acknowledged => to_step(enter(record, State::Dual)),
        State::Hold if facts.held_too_long => turn_back(record).map_or(Step::Done, to_step),
        State::Hold => Step::Wait(Wait::Routers),
        State::Dual => to_step(enter(record, State::Moving)),
        State::Moving => match history {
            History::Keep => Step::Done,
            History::None => to_step(enter(record, State::Settled)),
            History::Move if facts.moved => to_step(enter(record, State::Settled)),
            History::Move => Step::Wait(Wait::Owner),
            History::Expire if facts.expired => to_step(enter(record, State::Settled)),
            History::Expire => Step::Wait(Wait::Expiry),
        },
        State::Settled if !facts.acknowledged => Step::Wait(Wait::Routers),
        State::Settled if record.is_turned_round() => Step::Done,
        State::Settled if record.retire.is_empty() => to_step(retire(record)),
        // What the store deletes by itself within a span was gone before the migration settled.
        State::Settled if facts.retired || history == History::Expire => Step::Done,
        State::Settled => Step::Wait(Wait::Retirement),
    }
}

/// A hold ends without the new layout: writes go where they went before. None when the record is no hold.
#[must_use]
pub fn turn_back(record: &PlanRecord) -> Option<PlanRecord> {
    // Once dual was sent a record of the new layout may exist; a hold that is the newest record proves that it was not.
    (record.state == State::Hold).then(|| enter(record, State::Prepare))
}

/// What a leader of `epoch` does before anything else with a hold of an earlier one: it has not seen how long that has lasted, so it
/// turns it back. None when there is nothing to turn back.
#[must_use]
pub fn taken_over(entry: &PlanEntry, epoch: u64) -> Option<PlanRecord> {
    if entry.version.epoch == epoch { None } else { turn_back(&entry.record) }
}

/// A migration ends where it began: nothing was written to the new layout. None once that may have happened.
#[must_use]
pub fn turn_round(record: &PlanRecord) -> Option<PlanRecord> {
    if !matches!(record.state, State::Proposed | State::Prepare) {
        return None;
    }
    let MigrationField { from, to, .. } = record.migration;
    let read: Vec<Layout> = record.read.iter().copied().filter(|layout| *layout != to).collect();
    let delete = delete_rule(State::Settled, &read, true);
    Some(PlanRecord { state: State::Settled, write: Some(from), read, delete, not_after: None, ..record.clone() })
}

/// The same migration in another state. Only the first record of a migration can be void, so that none of these has a limit.
fn enter(record: &PlanRecord, state: State) -> PlanRecord {
    let MigrationField { from, to, .. } = record.migration;
    let write = match state {
        State::Proposed | State::Prepare => Some(from),
        State::Hold => None,
        State::Dual | State::Moving | State::Settled => Some(to),
    };
    let read = if state == State::Settled { vec![to] } else { record.read.clone() };
    let delete = delete_rule(state, &read, false);
    PlanRecord { state, write, read, delete, not_after: None, ..record.clone() }
}

fn retire(record: &PlanRecord) -> PlanRecord {
    PlanRecord { retire: vec![record.migration.from], delete: Delete::Remove, ..record.clone() }
}

/// A delete leaves a tombstone while reads look in two layouts, and in settled until the old one is to be retired.
fn delete_rule(state: State, read: &[Layout], turned_round: bool) -> Delete {
    let settled = state == State::Settled && !turned_round;
    if read.len() > 1 || settled { Delete::Tombstone } else { Delete::Remove }
}

fn to_step(record: PlanRecord) -> Step {
    Step::Next(Box::new(record))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::units::Estimate;

    fn order(buckets: u32, writes: Writes, history: History) -> Order {
        Order {
            key: PlanKey::new("customer", b"c42"),
            version: Version { epoch: 1, seq: 7 },
            buckets,
            first: 3,
            seed: 9,
            writes,
            history,
            evidence: Evidence {
                rule: "absolute".into(),
                window_ms: 10_000,
                count: Estimate::exact(100),
                threshold: 50,
                rate_per_s: 10.0,
                median: None,
                reads: 0,
                writes: 100,
                shard: None,
                completeness: 1.0,
                end_offsets: BTreeMap::new(),
                end_offsets_cut: 0,
                config: "0".repeat(16),
            },
            prediction: Prediction {
                hottest_bucket_share: 0.25,
                hottest_shard_before: None,
                hottest_shard_after: None,
                added_load: 0.0,
            },
            undone: None,
            decided_at: "2026-11-30T10:11:32.120Z".into(),
            not_after: "2026-11-30T10:11:42.120Z".into(),
        }
    }

    const ALL: Facts = Facts {
        acknowledged: true,
        refused: false,
        may_hold: true,
        held_too_long: false,
        moved: true,
        expired: true,
        retired: true,
    };

    /// The records of a migration whose every gate is open.
    fn walk(first: PlanRecord) -> Vec<PlanRecord> {
        let mut records = vec![first];
        while let Step::Next(next) = next(records.last().unwrap(), &ALL) {
            records.push(*next);
            assert!(records.len() < 10, "a walk without end");
        }
        records
    }

    fn states(records: &[PlanRecord]) -> Vec<&'static str> {
        let name = |record: &PlanRecord| if record.retire.is_empty() { record.state.label() } else { "retire" };
        records.iter().map(name).collect()
    }

    #[test]
    fn each_kind_of_writes_has_its_phases() {
        let from_bare = Standing::of(None).unwrap();
        let walked = |writes| states(&walk(begin(order(4, writes, History::Move), &from_bare).unwrap()));
        assert_eq!(walked(Writes::Update), ["prepare", "hold", "dual", "moving", "settled", "retire"]);
        assert_eq!(walked(Writes::Insert), ["prepare", "dual", "moving", "settled", "retire"]);
        assert_eq!(walked(Writes::Versioned), walked(Writes::Insert));
        let kept = walk(begin(order(4, Writes::Insert, History::Keep), &from_bare).unwrap());
        assert_eq!(states(&kept), ["prepare", "dual", "moving"]);
    }

    #[test]
    fn nothing_of_the_migration_changes_and_deletes_leave_tombstones_until_retire() {
        let records = walk(begin(order(4, Writes::Update, History::Move), &Standing::of(None).unwrap()).unwrap());
        for record in &records {
            assert_eq!(record.check(), Ok(()));
            assert_eq!((record.migration, &record.bucket), (records[0].migration, &records[0].bucket));
            assert_eq!((&record.evidence, &record.decided_at), (&records[0].evidence, &records[0].decided_at));
            assert_eq!(record.not_after.is_some(), record.state == State::Prepare);
            let tombstone = record.retire.is_empty();
            assert_eq!(record.delete, if tombstone { Delete::Tombstone } else { Delete::Remove }, "{:?}", record.state);
            assert_eq!(record.retire, if tombstone { vec![] } else { vec![Layout::BARE] });
        }
    }

    #[test]
    fn history_is_the_gate_out_of_moving() {
        let moving = |history| {
            walk(begin(order(4, Writes::Insert, history), &Standing::of(None).unwrap()).unwrap())
                .into_iter()
                .find(|record| record.state == State::Moving)
                .unwrap()
        };
        let none = Facts { moved: false, expired: false, retired: false, ..ALL };
        assert_eq!(next(&moving(History::Move), &none), Step::Wait(Wait::Owner));
        assert_eq!(next(&moving(History::Expire), &none), Step::Wait(Wait::Expiry));
        assert_eq!(next(&moving(History::Keep), &ALL), Step::Done);
        let Step::Next(settled) = next(&moving(History::None), &none) else { panic!("waits") };
        let Step::Next(retire) = next(&settled, &none) else { panic!("waits") };
        assert_eq!(next(&retire, &none), Step::Wait(Wait::Retirement));
        assert_eq!(next(&retire, &ALL), Step::Done);
    }

    #[test]
    fn a_refusal_or_a_hold_that_lasts_turns_the_migration_round() {
        let prepare = begin(order(4, Writes::Update, History::Move), &Standing::of(None).unwrap()).unwrap();
        let Step::Next(round) = next(&prepare, &Facts { refused: true, ..ALL }) else { panic!("goes on") };
        assert!(round.is_turned_round());
        assert_eq!(
            (round.check(), round.delete, round.read.as_slice()),
            (Ok(()), Delete::Remove, [Layout::BARE].as_slice())
        );
        assert_eq!(next(&round, &ALL), Step::Done);
        let Step::Next(hold) = next(&prepare, &ALL) else { panic!("waits") };
        let late = Facts { acknowledged: false, held_too_long: true, ..ALL };
        let Step::Next(back) = next(&hold, &late) else { panic!("waits") };
        assert_eq!(*back, PlanRecord { not_after: None, ..prepare });
        assert_eq!(turn_round(&hold), None, "a hold is turned back first");
        let Step::Next(dual) = next(&hold, &ALL) else { panic!("waits") };
        assert_eq!((turn_round(&dual), turn_back(&dual)), (None, None), "from dual on it goes forward");
    }

    #[test]
    fn kept_layouts_are_read_for_ever() {
        let standing = Standing::of(None).unwrap();
        let first = walk(begin(order(4, Writes::Insert, History::Keep), &standing).unwrap()).pop().unwrap();
        let standing = Standing::of(Some(&first)).unwrap();
        let second = walk(begin(order(8, Writes::Insert, History::Move), &standing).unwrap()).pop().unwrap();
        assert_eq!(second.state, State::Moving, "what was kept once was never moved");
        assert_eq!(second.read.iter().map(|layout| layout.number()).collect::<Vec<_>>(), [2, 1, 0]);
        let standing = Standing::of(Some(&second)).unwrap();
        assert_eq!(begin(order(1, Writes::Insert, History::Keep), &standing), Err(CannotBegin::Kept));
        assert_eq!(begin(order(4, Writes::Insert, History::Move), &standing), Err(CannotBegin::Kept));
    }

    #[test]
    fn a_layout_s_number_is_new_for_its_key() {
        let split =
            walk(begin(order(4, Writes::Insert, History::Move), &Standing::of(None).unwrap()).unwrap()).pop().unwrap();
        let back =
            walk(begin(order(1, Writes::Insert, History::Move), &Standing::of(Some(&split)).unwrap()).unwrap()).pop();
        let back = back.unwrap();
        assert_eq!((back.write, back.retire.as_slice()), (Some(Layout::BARE), [split.migration.to].as_slice()));
        let again = begin(order(4, Writes::Insert, History::Move), &Standing::of(Some(&back)).unwrap()).unwrap();
        assert_eq!(again.migration.to.number(), 2);
    }

    #[test]
    fn a_proposal_places_nothing_and_is_approved_into_prepare() {
        let standing = Standing::of(None).unwrap();
        let proposal = propose(order(4, Writes::Update, History::Move), &standing).unwrap();
        assert_eq!((proposal.check(), proposal.delete), (Ok(()), Delete::Remove));
        assert_eq!(next(&proposal, &ALL), Step::Wait(Wait::Approval));
        assert_eq!(Standing::of(Some(&proposal)), None);
        let version = Version { epoch: 2, seq: 1 };
        let prepare = approve(&proposal, version, "now".into(), proposal.not_after.clone().unwrap()).unwrap();
        assert_eq!((prepare.check(), prepare.state, prepare.migration.version), (Ok(()), State::Prepare, version));
        assert_eq!(approve(&prepare, version, String::new(), String::new()), None);
    }

    #[test]
    fn a_key_too_long_for_its_record_is_not_split() {
        let long = Order { key: PlanKey::new("customer", &[b'k'; 3500]), ..order(4, Writes::Insert, History::Move) };
        assert!(matches!(begin(long, &Standing::of(None).unwrap()), Err(CannotBegin::TooLong(_))));
    }

    fn facts() -> impl Strategy<Value = Facts> {
        prop::collection::vec(any::<bool>(), 7).prop_map(|bits| Facts {
            acknowledged: bits[0],
            refused: bits[1],
            may_hold: bits[2],
            held_too_long: bits[3],
            moved: bits[4],
            expired: bits[5],
            retired: bits[6],
        })
    }

    proptest! {
        /// Whatever happens: every record keeps the table of phases, I11 holds between neighbours (a write goes where every read of
        /// both looks), a layout that was written to is never left without its records being retired, and the end can be reached.
        #[test]
        fn every_walk_is_legal(
            writes in prop::sample::select(vec![Writes::Insert, Writes::Versioned, Writes::Update]),
            history in prop::sample::select(vec![History::Move, History::None, History::Expire, History::Keep]),
            happens in prop::collection::vec(facts(), 0..40),
        ) {
            let mut record = begin(order(4, writes, history), &Standing::of(None).unwrap()).unwrap();
            let mut written = false;
            for facts in happens {
                let Step::Next(next) = next(&record, &facts) else { continue };
                prop_assert_eq!(next.check(), Ok(()));
                prop_assert_eq!(next.migration, record.migration);
                for (writer, reader) in [(&record, &*next), (&*next, &record)] {
                    if let Some(write) = writer.write { prop_assert!(reader.read.contains(&write)); }
                }
                written |= next.write == Some(next.migration.to);
                prop_assert!(!(written && next.write == Some(next.migration.from)), "gone back after a write to the new layout");
                prop_assert!(next.retire.is_empty() || record.state == State::Settled && facts.acknowledged);
                // Everything but turning round waits for every router.
                let turns = facts.refused && record.state == State::Prepare || facts.held_too_long && record.state == State::Hold;
                prop_assert!(facts.acknowledged || turns);
                record = *next;
            }
            let end = walk(record).pop().unwrap();
            prop_assert!(matches!(next(&end, &ALL), Step::Done));
        }
    }
}
