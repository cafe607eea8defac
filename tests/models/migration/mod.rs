//! Migrations of one key or two: a leader with its log, routers with requests in flight, the owner with a mover, a store, callers.
//!
//! Routers lag behind the log, acknowledge, die, come back from a snapshot, lose it and join, join late. Calls may have an unknown
//! outcome and land later. The leader may be followed by another one while its last record is still on the way. Steps are those of
//! the product: `plan::migration` decides, `PlanTable` folds, `AckTable` tells who has acknowledged, `router::Rules` places requests
//! and tells which of them an acknowledgement waits for.

mod leader;
mod owner;
mod router;
mod spec;
mod state;
mod store;

use std::sync::Arc;

use keyheat::protocol::{LogRecord, Nonce, PlanKey, PlanRecord, PlanTable, Version, Writes};
use keyheat::router::{GuardKind, Rules, WriteRule};

use self::leader::{Asked, Decided};
pub(crate) use self::spec::Call;
use self::spec::{Open, Spec};
use self::state::step;
pub(crate) use self::state::{KINDS, Label, State};
use super::explore::{Step, World};
use super::pool::{Memo, Pool};
use super::records::{claim, customer, name_of};

/// An id whose bucket is the same with 2 and with 4 buckets, and one that moves.
const ID: (&str, &str) = ("order-1", "order-2");
const KEYS: [&str; 2] = ["k", "m"];

/// A rule that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// None is.
    All,
    /// Keyspaces whose records are rewritten without versions hold writes.
    Hold,
    /// A record is decided when every router has acknowledged the one before.
    Gate,
    /// A router acknowledges when no guard is left that would be placed elsewhere.
    Guards,
    /// Acknowledgements name a version, not a phase.
    AckByVersion,
    /// A router serves nothing before it has joined.
    ServeAfterJoin,
    /// A leader reads the acknowledgements to their end.
    AcksToEnd,
    /// A hold is turned back only while nothing was sent after it.
    NoWayBack,
    /// The next migration begins when the layout before is empty.
    Retired,
    /// The owner deletes what lies elsewhere in the new layout, not what lies under the old one's labels.
    RetireByPlace,
    /// A report of the owner counts for its migration.
    ReportByMigration,
    /// A delete leaves a tombstone while two layouts are read.
    Tombstones,
    /// An operation that needs the old value copies the older record first.
    Promotion,
    /// A count looks for ids, not for copies.
    CountOnce,
    /// A call of unknown outcome keeps its guard.
    UnknownGuards,
    /// A router has its table on disk before it serves or acknowledges by it.
    SnapshotFirst,
    /// A dead router comes back, or is dropped.
    DeadEnd,
}

/// What may happen, and how often.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) without: Rule,
    pub(crate) writes: Writes,
    pub(crate) routers: u8,
    pub(crate) keys: u8,
    /// The numbers of buckets that each key is brought to, one after the other.
    pub(crate) walk: &'static [u32],
    /// The id has the same bucket in 2 and in 4 buckets.
    pub(crate) stays: bool,
    /// Each key has a record of the id at the start.
    pub(crate) present: bool,
    /// The calls that are made, in any order, and how often each.
    pub(crate) calls: &'static [(Call, u8)],
    /// The last router joins late.
    pub(crate) joins: bool,
    pub(crate) may: Budget,
}

/// How often what goes wrong goes wrong, in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Budget {
    pub(crate) crashes: u8,
    pub(crate) lost_snapshots: u8,
    pub(crate) fail_overs: u8,
    pub(crate) turned_back: u8,
    pub(crate) turned_round: u8,
    pub(crate) unknown: u8,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            without: Rule::All,
            writes: Writes::Update,
            routers: 2,
            keys: 1,
            walk: &[2],
            stays: false,
            present: true,
            calls: &[],
            joins: false,
            may: Budget::default(),
        }
    }
}

/// What tells two records apart: key, value, version, nonce.
type RecordName = (Vec<u8>, Option<Vec<u8>>, Version, Nonce);

/// The model.
pub(crate) struct Migration {
    pub(crate) setup: Setup,
    records: Pool<RecordName, LogRecord>,
    tables: Pool<String, PlanTable>,
    places: Pool<Vec<u8>, Vec<u8>>,
    specs: Pool<Spec, Spec>,
    folds: Memo<(u32, u32), u32>,
    rules: Memo<(u32, u8), Arc<Rules>>,
    meets: Memo<(u32, u32), bool>,
    decided: Memo<Asked, Arc<Decided>>,
    begun: Memo<(u32, Open), u32>,
    answered: Memo<(u32, u8, i16), Option<u32>>,
}

impl Migration {
    pub(crate) fn new(setup: Setup) -> Self {
        Self {
            setup,
            records: Pool::new(),
            tables: Pool::new(),
            places: Pool::new(),
            specs: Pool::new(),
            folds: Memo::new(),
            rules: Memo::new(),
            meets: Memo::new(),
            decided: Memo::new(),
            begun: Memo::new(),
            answered: Memo::new(),
        }
    }

    fn key(&self, key: u8) -> PlanKey {
        customer(KEYS[usize::from(key)])
    }

    fn put_record(&self, record: LogRecord, version: Version, nonce: Nonce) -> u32 {
        self.records.put((record.key.clone(), record.value.clone(), version, nonce), record)
    }

    fn put_table(&self, table: PlanTable) -> u32 {
        self.tables.put(name_of(&table), table)
    }

    fn fold(&self, table: u32, record: u32) -> u32 {
        self.folds.get((table, record), || {
            let mut folded = (*self.tables.get(table)).clone();
            folded.apply(&self.records.get(record));
            self.put_table(folded)
        })
    }

    /// By which rules a router places requests of a key when it holds this table.
    fn rules(&self, table: u32, key: u8) -> Arc<Rules> {
        self.rules.get((table, key), || {
            let table = self.tables.get(table);
            let record = table.plan(&self.key(key)).map(|entry| &entry.record);
            Arc::new(record.map_or_else(Rules::bare, |record| Rules::of(record).expect("a record that a router obeys")))
        })
    }

    /// True when what a router with the first table writes is where a router with the second one looks.
    fn meets(&self, writer: u32, reader: u32) -> bool {
        self.meets.get((writer, reader), || {
            (0..self.setup.keys).all(|key| match self.rules(writer, key).write_rule(GuardKind::Write) {
                WriteRule::Goes(layout) => self.rules(reader, key).read().contains(&layout),
                WriteRule::Waits | WriteRule::Forbidden(_) => true,
            })
        })
    }

    fn spec_begun(&self, spec: u32, open: Open) -> u32 {
        self.begun.get((spec, open), || {
            let spec = self.specs.get(spec).begun(open);
            self.specs.put(spec.clone(), spec)
        })
    }

    fn spec_answered(&self, spec: u32, number: u8, answer: i16) -> Option<u32> {
        self.answered.get((spec, number, answer), || {
            let spec = self.specs.get(spec).answered(number, answer)?;
            Some(self.specs.put(spec.clone(), spec))
        })
    }

    /// A record gets on the plan topic.
    fn appended(&self, to: &mut State, record: u32) {
        let before = to.newest();
        let after = self.fold(before, record);
        to.log.push(after);
        let (before, after) = (self.tables.get(before), self.tables.get(after));
        let newer = after.last_version() > before.last_version();
        let removed = after.plans().len() < before.plans().len();
        if after.last_version() < before.last_version() || removed {
            to.fault = Some("versions went back, or a plan went");
        } else if !newer && after.digest() != before.digest() {
            to.fault = Some("a superseded publisher changed a plan");
        }
        for (number, key) in (0..).zip(&mut to.keys) {
            let of = |table: &PlanTable| table.plan(&self.key(number)).map(|entry| entry.record.clone());
            let (was, is) = (of(&before), of(&after));
            let name = |record: &Option<PlanRecord>| record.as_ref().map(|record| record.migration.version);
            let round = |record: &Option<PlanRecord>| record.as_ref().is_some_and(PlanRecord::is_turned_round);
            if name(&was) != name(&is) {
                key.walked += 1;
            }
            if round(&is) && !round(&was) {
                key.walked -= 1;
            }
        }
    }
}

impl World for Migration {
    type State = State;
    type Label = Label;

    const KINDS: &'static [&'static str] = KINDS;

    fn start(&self) -> State {
        let claimed = self.put_record(claim(1, Nonce(1)), Version { epoch: 1, seq: 0 }, Nonce(1));
        let empty = self.put_table(PlanTable::new());
        self.start_from(self.fold(empty, claimed))
    }

    fn steps(&self, state: &State, steps: &mut Vec<Step<Label, State>>) {
        if state.fault.is_some() {
            return;
        }
        let mut out = |label: Label, to: State| steps.push(step(label, to));
        self.leader_steps(state, &mut out);
        self.owner_steps(state, &mut out);
        self.late_steps(state, &mut out);
        for which in 0..self.setup.routers {
            self.router_steps(state, which, &mut out);
        }
    }

    fn fault(&self, state: &State) -> Option<String> {
        if let Some(fault) = state.fault {
            return Some(fault.to_owned());
        }
        let tables = || state.serving().map(|router| state.log[usize::from(router.at)]);
        let apart = tables().any(|writer| tables().any(|reader| !self.meets(writer, reader)));
        apart.then(|| "a write goes where a read does not look".to_owned())
    }

    fn is_over(&self, state: &State) -> bool {
        state.leader.flying.is_none() && self.decided(state).over
    }
}
