//! Records of the control topics, as the product writes them.

use std::collections::BTreeMap;

use keyheat::plan::migration::Order;
use keyheat::protocol::{
    Claim, Evidence, History, LogRecord, Nonce, PlanKey, PlanTable, PlanTopicKey, Prediction, RecordHeaders,
    RecordKind, Version, Writes,
};
use keyheat::units::{Estimate, EventTime, Offset};

/// The time of everything: nothing here rests on it.
pub(crate) const TIME: &str = "2026-11-30T10:11:32.120Z";

/// The same.
pub(crate) fn now() -> EventTime {
    EventTime::from_millis(1_796_033_492_120).unwrap()
}

/// Seed of every plan's bucket hash.
pub(crate) const SEED: u64 = 9;

/// A record of the plan topic as it will be read.
pub(crate) fn record(key: &PlanTopicKey, value: Option<Vec<u8>>, version: Version, nonce: Nonce) -> LogRecord {
    let bytes = key.to_bytes();
    let headers = RecordHeaders {
        version,
        nonce,
        kind: RecordKind::Other,
        source: "/keyheat/model".into(),
        time: TIME.into(),
        subject: bytes.clone(),
        has_value: value.is_some(),
    };
    LogRecord::new(Offset(0), bytes, value, &headers)
}

/// The claim of an epoch.
pub(crate) fn claim(epoch: u64, nonce: Nonce) -> LogRecord {
    let value = Claim::new("model", TIME).encode();
    record(&PlanTopicKey::Claim { epoch, nonce }, Some(value), Version { epoch, seq: 0 }, nonce)
}

/// A migration to begin.
pub(crate) fn order(key: PlanKey, version: Version, buckets: u32, writes: Writes, history: History) -> Order {
    Order {
        key,
        version,
        buckets,
        first: 0,
        seed: SEED,
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
        decided_at: TIME.into(),
        not_after: TIME.into(),
    }
}

/// What tells two tables apart: the fence, the plans by their digest, the last heartbeat, and what the leader has to answer.
pub(crate) fn name_of(table: &PlanTable) -> String {
    let heartbeat = table.heartbeat().map(|heartbeat| (heartbeat.version, heartbeat.agrees));
    let shadowed: Vec<_> = table.shadowed().map(|(key, shadow)| (key, shadow.tombstone)).collect();
    let unreadable: Vec<_> = table.unreadable().map(|(key, entry)| (key, entry.version)).collect();
    let digest = table.digest();
    format!("{:?} {:?} {digest} {heartbeat:?} {shadowed:?} {unreadable:?}", table.leader(), table.last_version())
}

/// A key of the keyspace of these models.
pub(crate) fn customer(key: &str) -> PlanKey {
    PlanKey::new("customer", key.as_bytes())
}
