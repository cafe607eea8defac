//! A plan topic on paper: what is decided is accepted at once, and routers and owners answer at once, as in a world without delays.

use crate::engine::{HotKey, ShardLoad};
use crate::plan::{MapperTrust, Operation, World};
use crate::protocol::{
    AckTable, AckTopicKey, Applied, BackfillReport, Claim, KeyField, LogRecord, Nonce, PlanEntry, PlanKey, PlanTable,
    PlanTopicKey, RecordHeaders, RecordKind, RetiredReport, RouterAck, SCHEMA, State, Version,
};
use crate::units::{EventTime, Offset};

const EPOCH: u64 = 1;
const NONCE: Nonce = Nonce(0);
/// Name of the publisher, of the one router and of the owner.
const NAME: &str = "replay";

/// Both topics, folded.
#[derive(Debug, Default)]
pub(super) struct PaperTopic {
    table: PlanTable,
    acks: AckTable,
    seq: u64,
    offset: i64,
    claimed: bool,
}

/// What the planner is shown beside the topics.
pub(super) struct Seen<'a> {
    pub(super) hot: &'a [HotKey],
    pub(super) shards: &'a [Vec<ShardLoad>],
    pub(super) mappers: &'a [MapperTrust],
    pub(super) condition: crate::engine::Condition,
    pub(super) config_hash: &'a str,
    pub(super) end_offsets: &'a std::collections::BTreeMap<crate::units::Partition, Offset>,
}

impl PaperTopic {
    pub(super) fn world<'a>(&'a self, seen: &Seen<'a>) -> World<'a> {
        World {
            hot: seen.hot,
            shards: seen.shards,
            mappers: seen.mappers,
            condition: seen.condition,
            table: &self.table,
            acks: &self.acks,
            next: Version { epoch: EPOCH, seq: self.seq + 1 },
            end_offsets: seen.end_offsets,
            config_hash: seen.config_hash,
        }
    }

    /// Keys of plans, by name of their keyspace.
    pub(super) fn planned(&self) -> impl Iterator<Item = &PlanKey> {
        self.table.plans().map(|(key, _)| key)
    }

    /// Appends a decision. False when the fold does not accept it, which would be a fault of the planner.
    pub(super) fn append(&mut self, operation: &Operation, now: EventTime) -> bool {
        if !self.claimed {
            let key = PlanTopicKey::Claim { epoch: EPOCH, nonce: NONCE };
            let claim = Claim::new(NAME, &now.to_rfc3339()).encode();
            self.apply(RecordKind::Claim, &key, Some(claim), Version { epoch: EPOCH, seq: 0 }, now);
            self.claimed = true;
        }
        let (kind, key, value) = match operation {
            Operation::Put(record) => (RecordKind::Plan, PlanTopicKey::Plan(record.plan_key()), Some(record.encode())),
            Operation::Remove(key) => (RecordKind::PlanRemoved, PlanTopicKey::Plan(key.clone()), None),
            Operation::Advise(advice) => {
                let key = PlanKey::new(&advice.keyspace, &advice.key.0);
                (RecordKind::Advice, PlanTopicKey::Advice(key), Some(advice.encode()))
            }
            Operation::Unadvise(key) => (RecordKind::AdviceRemoved, PlanTopicKey::Advice(key.clone()), None),
            Operation::SetPolicy(policy) => {
                (RecordKind::Policy, PlanTopicKey::Policy(policy.plan_key()), Some(policy.encode()))
            }
            Operation::RemovePolicy(key) => (RecordKind::PolicyRemoved, PlanTopicKey::Policy(key.clone()), None),
        };
        self.seq += 1;
        let version = Version { epoch: EPOCH, seq: self.seq };
        let applied = self.apply(kind, &key, value, version, now);
        self.acknowledge(version, now);
        if let Applied::Plan { key, entry, .. } = &applied {
            self.report(key, entry, now);
        }
        matches!(
            applied,
            Applied::Plan { .. }
                | Applied::Removed { .. }
                | Applied::Advice { .. }
                | Applied::AdviceRemoved { .. }
                | Applied::Policy { .. }
                | Applied::PolicyRemoved { .. }
        )
    }

    fn apply(
        &mut self,
        kind: RecordKind,
        key: &PlanTopicKey,
        value: Option<Vec<u8>>,
        version: Version,
        now: EventTime,
    ) -> Applied {
        let key = key.to_bytes();
        let headers = RecordHeaders {
            version,
            nonce: NONCE,
            kind,
            source: NAME.to_owned(),
            time: now.to_rfc3339(),
            subject: key.clone(),
            has_value: value.is_some(),
        };
        self.offset += 1;
        self.table.apply(&LogRecord::new(Offset(self.offset), key, value, &headers).at(now))
    }

    /// The one router has applied everything and has no guard left.
    fn acknowledge(&mut self, applied: Version, now: EventTime) {
        let ack = RouterAck {
            schema: SCHEMA,
            id: NAME.to_owned(),
            nonce: NONCE,
            applied,
            digest: self.table.digest(),
            waiting: Vec::new(),
            more_waiting: false,
            refusals: Vec::new(),
            more_refused: false,
            time: now.to_rfc3339(),
            unknown_until: None,
        };
        self.answer(&AckTopicKey::Router { id: NAME.to_owned(), nonce: NONCE }, ack.encode(), now);
    }

    /// The owner has moved what is to be moved, and deleted what is to be deleted.
    fn report(&mut self, key: &PlanKey, entry: &PlanEntry, now: EventTime) {
        let migration = entry.record.migration;
        let (keyspace, field) = (key.keyspace.clone(), KeyField(key.key.clone()));
        if entry.record.state == State::Moving {
            let layout = migration.to.number();
            let report = BackfillReport {
                schema: SCHEMA,
                keyspace,
                key: field,
                layout,
                migration: migration.version,
                moved: 0,
                expected: 0,
                checksum_from: "0".to_owned(),
                checksum_to: "0".to_owned(),
                done: true,
                time: now.to_rfc3339(),
            };
            self.answer(&AckTopicKey::Backfill { key: key.clone(), layout }, report.encode(), now);
            return;
        }
        for layout in entry.record.retire.iter().map(|layout| layout.number()) {
            let report = RetiredReport {
                schema: SCHEMA,
                keyspace: keyspace.clone(),
                key: field.clone(),
                layout,
                migration: migration.version,
                remaining: 0,
                time: now.to_rfc3339(),
            };
            self.answer(&AckTopicKey::Retired { key: key.clone(), layout }, report.encode(), now);
        }
    }

    fn answer(&mut self, key: &AckTopicKey, value: Vec<u8>, now: EventTime) {
        self.offset += 1;
        let record = LogRecord {
            offset: Offset(self.offset),
            key: key.to_bytes(),
            value: Some(value),
            headers: Vec::new(),
            log_time: Some(now),
        };
        self.acks.apply(&record);
    }
}
