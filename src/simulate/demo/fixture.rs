//! Records of the protocol for the tests of the demo's parts.

use crate::protocol::{
    BUCKET_HASH, BUCKET_KEY, BackfillReport, BucketField, Delete, Evidence, History, KeyField, Layout, MigrationField,
    PlanRecord, Prediction, SCHEMA, State, Version, Writes, plan_seed,
};
use crate::units::Estimate;

/// The client that is split.
pub(crate) const CLIENT: &str = "acme";
/// The keyspace.
pub(crate) const KEYSPACE: &str = "client";

/// A version of the one epoch.
pub(crate) const fn version(seq: u64) -> Version {
    Version { epoch: 1, seq }
}

/// A migration of [`CLIENT`] from the bare key to eight buckets, as the leader would publish it in this state.
pub(crate) fn record(state: State) -> PlanRecord {
    migration(state, Layout::BARE, Layout::split(1, 8, 40).unwrap(), version(1))
}

/// Any migration of [`CLIENT`] in this state.
pub(crate) fn migration(state: State, from: Layout, to: Layout, name: Version) -> PlanRecord {
    let (write, read) = match state {
        State::Proposed => (Some(from), vec![from]),
        State::Prepare => (Some(from), vec![to, from]),
        State::Hold => (None, vec![to, from]),
        State::Dual | State::Moving => (Some(to), vec![to, from]),
        State::Settled => (Some(to), vec![to]),
    };
    let record = PlanRecord {
        schema: SCHEMA,
        keyspace: KEYSPACE.to_owned(),
        key: KeyField(CLIENT.as_bytes().to_vec()),
        state,
        write,
        read,
        delete: Delete::Tombstone,
        retire: Vec::new(),
        migration: MigrationField { version: name, from, to, writes: Writes::Update, history: History::Move },
        bucket: BucketField {
            hash: BUCKET_HASH.to_owned(),
            seed: plan_seed(CLIENT.as_bytes(), 7),
            key: BUCKET_KEY.to_owned(),
        },
        evidence: Evidence {
            rule: "absolute".to_owned(),
            window_ms: 5000,
            count: Estimate::exact(4000),
            threshold: 1000,
            rate_per_s: 800.0,
            median: None,
            reads: 2000,
            writes: 2000,
            shard: Some("s3".to_owned()),
            completeness: 1.0,
            end_offsets: std::collections::BTreeMap::new(),
            end_offsets_cut: 0,
            config: "0000000000000000".to_owned(),
        },
        prediction: Prediction {
            hottest_bucket_share: 0.13,
            hottest_shard_before: Some(0.5),
            hottest_shard_after: Some(0.13),
            added_load: 0.0,
        },
        outcome: None,
        decided_at: "2026-11-30T10:11:32.120Z".to_owned(),
        not_after: None,
    };
    assert_eq!(record.check(), Ok(()));
    record
}

/// A report on the move into layout 1.
pub(crate) fn backfill(migration: Version, moved: u64, expected: u64) -> BackfillReport {
    BackfillReport {
        schema: SCHEMA,
        keyspace: KEYSPACE.to_owned(),
        key: KeyField(CLIENT.as_bytes().to_vec()),
        layout: 1,
        migration,
        moved,
        expected,
        checksum_from: "a".to_owned(),
        checksum_to: "a".to_owned(),
        done: moved == expected,
        time: "2026-11-30T10:11:32.120Z".to_owned(),
    }
}
