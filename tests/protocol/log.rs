//! Builds plan topics, compacts them, and folds them.

use std::collections::BTreeMap;

use keyheat::protocol::{
    Applied, BUCKET_HASH, BUCKET_KEY, BucketField, Claim, Delete, Digest, Evidence, Heartbeat, History, KeyField,
    Layout, LogRecord, MigrationField, Nonce, PlanKey, PlanRecord, PlanTable, PlanTopicKey, Prediction, RecordHeaders,
    RecordKind, SCHEMA, State, Version, Writes,
};
use keyheat::units::{Estimate, EventTime, Offset};

/// The moment at which every record of these tests is decided.
pub(crate) const DECIDED_AT: &str = "2026-11-30T10:11:32.120Z";
/// The same in milliseconds.
pub(crate) const DECIDED_AT_MS: i64 = 1_796_033_492_120;

/// The moment `after_ms` milliseconds after [`DECIDED_AT`].
pub(crate) fn time(after_ms: i64) -> EventTime {
    EventTime::from_millis(DECIDED_AT_MS + after_ms).unwrap()
}

/// Version `seq` of `epoch`.
pub(crate) fn version(epoch: u64, seq: u64) -> Version {
    Version { epoch, seq }
}

/// A plan of keyspace `customer` that splits `key` into `buckets`, in `state`.
pub(crate) fn plan(key: &[u8], buckets: u32, state: State) -> PlanRecord {
    let (from, to) = (Layout::BARE, Layout::split(1, buckets, 0).unwrap());
    let both = vec![to, from];
    let (write, read) = match state {
        State::Proposed => (Some(from), vec![from]),
        State::Prepare => (Some(from), both),
        State::Hold => (None, both),
        State::Dual | State::Moving => (Some(to), both),
        State::Settled => (Some(to), vec![to]),
    };
    PlanRecord {
        schema: SCHEMA,
        keyspace: "customer".into(),
        key: KeyField(key.to_vec()),
        state,
        write,
        read,
        delete: if state == State::Proposed { Delete::Remove } else { Delete::Tombstone },
        retire: Vec::new(),
        migration: MigrationField { version: version(3, 17), from, to, writes: Writes::Update, history: History::Move },
        bucket: BucketField { hash: BUCKET_HASH.into(), seed: 0x9f86_d081_884c_7d65, key: BUCKET_KEY.into() },
        evidence: Evidence {
            rule: "relative".into(),
            window_ms: 60_000,
            count: Estimate { lower: 41_230, upper: 41_233 },
            threshold: 30,
            rate_per_s: 687.25,
            median: Some(3),
            reads: 120,
            writes: 41_110,
            shard: Some("s3".into()),
            completeness: 1.0,
            end_offsets: BTreeMap::from([("0".into(), 88_120), ("1".into(), 88_034)]),
            end_offsets_cut: 0,
            config: "5b1c00000000d2a7".into(),
        },
        prediction: Prediction {
            hottest_bucket_share: 0.131,
            hottest_shard_before: Some(0.46),
            hottest_shard_after: Some(0.09),
            added_load: 0.02,
        },
        outcome: None,
        decided_at: DECIDED_AT.into(),
        not_after: None,
    }
}

/// Headers of a record with this key.
pub(crate) fn headers(key: &PlanTopicKey, version: Version, nonce: u64, has_value: bool) -> RecordHeaders {
    let kind = match (key, has_value) {
        (PlanTopicKey::Plan(_), true) => RecordKind::Plan,
        (PlanTopicKey::Plan(_), false) => RecordKind::PlanRemoved,
        (PlanTopicKey::Advice(_) | PlanTopicKey::ShardAdvice(_), true) => RecordKind::Advice,
        (PlanTopicKey::Advice(_) | PlanTopicKey::ShardAdvice(_), false) => RecordKind::AdviceRemoved,
        (PlanTopicKey::Policy(_), true) => RecordKind::Policy,
        (PlanTopicKey::Policy(_), false) => RecordKind::PolicyRemoved,
        (PlanTopicKey::Claim { .. }, _) => RecordKind::Claim,
        (PlanTopicKey::Heartbeat, _) => RecordKind::Heartbeat,
    };
    RecordHeaders {
        version,
        nonce: Nonce(nonce),
        kind,
        source: "/keyheat/test".into(),
        time: DECIDED_AT.into(),
        subject: key.to_bytes(),
        has_value,
    }
}

/// A plan topic in the making.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(pub(crate) Vec<LogRecord>);

impl Log {
    fn push(&mut self, key: &PlanTopicKey, version: Version, nonce: u64, value: Option<Vec<u8>>) -> &mut Self {
        let offset = Offset(i64::try_from(self.0.len()).unwrap());
        let headers = headers(key, version, nonce, value.is_some());
        self.0.push(LogRecord::new(offset, key.to_bytes(), value, &headers).at(time(offset.0)));
        self
    }

    pub(crate) fn claim(&mut self, epoch: u64, nonce: u64) -> &mut Self {
        let key = PlanTopicKey::Claim { epoch, nonce: Nonce(nonce) };
        self.push(&key, version(epoch, 0), nonce, Some(Claim::new("test", DECIDED_AT).encode()))
    }

    /// The plan of `key`: N buckets, settled.
    pub(crate) fn plan(&mut self, epoch: u64, nonce: u64, seq: u64, key: &str, buckets: u32) -> &mut Self {
        let record = plan(key.as_bytes(), buckets, State::Settled);
        self.record(epoch, nonce, seq, &record)
    }

    pub(crate) fn record(&mut self, epoch: u64, nonce: u64, seq: u64, record: &PlanRecord) -> &mut Self {
        self.push(&PlanTopicKey::Plan(record.plan_key()), version(epoch, seq), nonce, Some(record.encode()))
    }

    pub(crate) fn value(&mut self, epoch: u64, nonce: u64, seq: u64, key: &str, value: Option<Vec<u8>>) -> &mut Self {
        self.push(&PlanTopicKey::Plan(customer(key)), version(epoch, seq), nonce, value)
    }

    pub(crate) fn tombstone(&mut self, epoch: u64, nonce: u64, seq: u64, key: &str) -> &mut Self {
        self.value(epoch, nonce, seq, key, None)
    }

    pub(crate) fn heartbeat(&mut self, epoch: u64, nonce: u64, seq: u64, table: &PlanTable) -> &mut Self {
        let heartbeat = Heartbeat {
            schema: SCHEMA,
            newest: table.last_version(),
            time: DECIDED_AT.into(),
            plans: table.plans().len() as u64,
            digest: table.digest(),
            acks_seen: None,
        };
        self.push(&PlanTopicKey::Heartbeat, version(epoch, seq), nonce, Some(heartbeat.encode()))
    }

    pub(crate) fn fold(&self) -> PlanTable {
        let mut table = PlanTable::new();
        for record in &self.0 {
            table.apply(record);
        }
        table
    }

    pub(crate) fn outcomes(&self) -> Vec<Applied> {
        let mut table = PlanTable::new();
        self.0.iter().map(|record| table.apply(record)).collect()
    }

    /// What compaction leaves: of each key the last record, and no tombstone but the log's very last record.
    pub(crate) fn compacted(&self) -> Self {
        let last = |at: usize| !self.0.iter().skip(at + 1).any(|later| later.key == self.0[at].key);
        let stays = |at: usize| self.0[at].value.is_some() || at + 1 == self.0.len();
        Self((0..self.0.len()).filter(|at| last(*at) && stays(*at)).map(|at| self.0[at].clone()).collect())
    }
}

/// A key of the keyspace of these tests.
pub(crate) fn customer(key: &str) -> PlanKey {
    PlanKey::new("customer", key.as_bytes())
}

/// Keys and numbers of buckets of a table: what a test compares.
pub(crate) fn contents(table: &PlanTable) -> Vec<(String, u32, Version)> {
    let shown = |key: &PlanKey| String::from_utf8(key.key.clone()).unwrap();
    table.plans().map(|(key, entry)| (shown(key), entry.record.migration.to.buckets(), entry.version)).collect()
}

/// The digest of a table worked out anew from its plans.
pub(crate) fn digest_anew(table: &PlanTable) -> Digest {
    table.plans().fold(Digest::default(), |digest, (key, entry)| {
        digest.toggled(&PlanTopicKey::Plan(key.clone()).to_bytes(), entry.version, &entry.value)
    })
}
