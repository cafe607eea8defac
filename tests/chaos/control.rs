//! The whole plan topic, afterwards: what must hold of every record, whoever was killed or paused while it was written.

use std::collections::BTreeMap;

use keyheat::protocol::{
    AckTopicKey, Applied, LogRecord, Nonce, PlanKey, PlanRecord, PlanTable, PlanTopicKey, RouterAck, State, Version,
};
use keyheat::router::{GuardKind, Rules, WriteRule};
use keyheat::units::{EventTime, Offset};

use super::support::Record;

/// Limits of the configuration, over all keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) max_splits: usize,
    pub(crate) max_changes_per_minute: usize,
}

/// What happened.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) records: usize,
    /// Claims that won: each is a change of the leader, the first one aside.
    pub(crate) epochs: Vec<u64>,
    /// Records of publishers that were not the leader any more, or that had come already.
    pub(crate) refused: BTreeMap<&'static str, u64>,
    /// Migrations begun, by keyspace.
    pub(crate) begun: BTreeMap<String, u64>,
    /// Migrations that settled in their new layout.
    pub(crate) settled: BTreeMap<String, u64>,
    /// Holds, and those that were turned back.
    pub(crate) holds: u64,
    pub(crate) holds_turned_back: u64,
}

/// The topic as a log, as a router reads it.
pub(crate) fn log(records: &[Record]) -> Vec<LogRecord> {
    let record = |record: &Record| LogRecord {
        offset: Offset(record.offset.unwrap()),
        key: record.key.clone().unwrap(),
        value: record.value.clone(),
        headers: record.headers.iter().map(|(name, value)| (name.clone(), value.clone().unwrap_or_default())).collect(),
        log_time: record.time_ms.and_then(|ms| EventTime::from_millis(ms).ok()),
    };
    records.iter().map(record).collect()
}

/// Key and value of a record.
type Content = (Vec<u8>, Option<Vec<u8>>);

/// One walk over the log.
#[derive(Default)]
struct Walk {
    table: PlanTable,
    figures: Figures,
    /// The fence in a few lines: the winner of the highest epoch.
    leader: Option<(u64, String)>,
    contents: BTreeMap<(u64, String, u64), Content>,
    /// The last accepted version of each key; it stays when the key is removed.
    versions: BTreeMap<PlanTopicKey, Version>,
    rules: BTreeMap<PlanKey, Rules>,
}

/// Reads the log record by record and panics at the first that breaks an invariant.
pub(crate) fn check(log: &[LogRecord], budget: Budget) -> (PlanTable, Figures) {
    let mut walk = Walk::default();
    for record in log {
        walk.take(record, budget);
    }
    walk.figures.records = log.len();
    (walk.table, walk.figures)
}

/// Reads the log of the acks topic: a router keeps its name over all its lives, and what it has applied only grows (I2). Gives how many
/// routers ever registered.
pub(crate) fn check_acks(log: &[LogRecord]) -> usize {
    let mut applied: BTreeMap<(String, Nonce), Version> = BTreeMap::new();
    for record in log {
        let Ok(AckTopicKey::Router { id, nonce }) = AckTopicKey::parse(&record.key) else { continue };
        let value = record.value.as_deref().unwrap_or_else(|| panic!("router {id} has left"));
        let ack = RouterAck::decode(&id, nonce, value).unwrap_or_else(|refused| panic!("router {id}: {refused}"));
        let before = applied.insert((id.clone(), nonce), ack.applied);
        assert!(before <= Some(ack.applied), "I2: router {id} has applied {} after {before:?}", ack.applied);
    }
    applied.len()
}

impl Walk {
    fn take(&mut self, record: &LogRecord, budget: Budget) {
        let at = format!("offset {}, {}", record.offset.0, record.key.escape_ascii());
        let headers = record.parsed_headers().unwrap_or_else(|error| panic!("{at}: {error}"));
        let (version, nonce) = (headers.version, headers.nonce.to_string());
        let content = (record.key.clone(), record.value.clone());
        let first = self.contents.entry((version.epoch, nonce.clone(), version.seq)).or_insert_with(|| content.clone());
        assert_eq!(*first, content, "I1: {at}: {version} of {nonce} has two contents");

        let (before, digest) = (self.table.last_version(), self.table.digest());
        let applied = self.table.apply(record);
        if let Applied::Claim { epoch, nonce, .. } = &applied {
            if self.leader.as_ref().is_none_or(|(highest, _)| epoch > highest) {
                self.leader = Some((*epoch, nonce.to_string()));
                self.figures.epochs.push(*epoch);
            }
            return;
        }
        let leads = self.leader.as_ref() == Some(&(version.epoch, nonce));
        if let Applied::Refused { reason, .. } = &applied {
            assert!(!leads || version <= before || reason.label() == "void", "{at}: refused without cause: {reason}");
            assert_eq!(self.table.digest(), digest, "I3: {at}: a refused record has changed the table");
            *self.figures.refused.entry(reason.label()).or_default() += 1;
            return;
        }
        assert!(leads, "I3: {at}: {version} is of a publisher that did not lead: {applied:?}");
        let key = PlanTopicKey::parse(&record.key).unwrap();
        let last = self.versions.insert(key, version);
        assert!(version > before && last.is_none_or(|last| version > last), "I2: {at}: {version} after {last:?}");
        match &applied {
            Applied::Plan { key, entry, previous } => {
                let previous = previous.as_ref().map(|entry| &entry.record);
                self.planned(key, &entry.record, previous, &at);
                self.keeps_to(budget, &entry.record, version, &at);
            }
            Applied::Removed { key, .. } => drop(self.rules.remove(key)),
            Applied::Heartbeat { agrees, .. } => assert!(agrees, "{at}: the leader's table is another one"),
            _ => {}
        }
    }

    /// What a router does by the record, beside one that still does by the record before it.
    fn planned(&mut self, key: &PlanKey, record: &PlanRecord, previous: Option<&PlanRecord>, at: &str) {
        let rules = Rules::of(record).unwrap_or_else(|refused| panic!("{at}: a router refuses it: {refused}"));
        let older = self.rules.insert(key.clone(), rules.clone()).unwrap_or_else(Rules::bare);
        for (writer, reader) in [(&rules, &rules), (&rules, &older), (&older, &rules)] {
            if let WriteRule::Goes(layout) = writer.write_rule(GuardKind::Write) {
                assert!(
                    reader.read().contains(&layout),
                    "I11: {at}: written to {layout:?}, read in {:?}",
                    reader.read()
                );
            }
        }
        let figures = &mut self.figures;
        let count = |counts: &mut BTreeMap<String, u64>| *counts.entry(key.keyspace.clone()).or_default() += 1;
        let same_migration = previous.filter(|previous| previous.migration.version == record.migration.version);
        match record.state {
            State::Prepare if same_migration.is_some_and(|previous| previous.state == State::Hold) => {
                figures.holds_turned_back += 1;
            }
            State::Prepare if same_migration.is_none() => count(&mut figures.begun),
            State::Hold => figures.holds += 1,
            State::Settled if same_migration.is_some_and(|previous| previous.state == State::Moving) => {
                count(&mut figures.settled);
            }
            _ => {}
        }
    }

    /// I8.
    fn keeps_to(&self, budget: Budget, record: &PlanRecord, version: Version, at: &str) {
        let plans = || self.table.plans().map(|(_, entry)| &entry.record);
        let holds = plans().filter(|record| record.state == State::Hold).count();
        assert!(holds <= 1, "I8: {at}: {holds} keys in hold");
        if record.migration.version != version {
            return;
        }
        let splits = plans().filter(|record| record.read.iter().any(|layout| !layout.is_bare())).count();
        assert!(splits <= budget.max_splits, "I8: {at}: {splits} keys are split");
        let ms = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_millisecond();
        let minute_before = ms(&record.decided_at) - 60_000;
        let recent = || plans().filter(|record| ms(&record.decided_at) > minute_before);
        let begun = recent().count();
        assert!(begun <= budget.max_changes_per_minute, "I8: {at}: {begun} migrations in a minute");
        let cooled = recent().filter(|record| record.migration.to.buckets() < record.migration.from.buckets());
        assert!(cooled.count() <= 1, "I8: {at}: more than one key cooled down in a minute");
    }
}
