//! Records of the protocol for the tests of the demo's parts.

use super::{DemoView, KeyView, Line, Migration, Reads, RequestsView, RouterStand, ShardLoadView, Tone};
use crate::protocol::{
    BUCKET_HASH, BUCKET_KEY, BackfillReport, BucketField, Delete, Evidence, History, KeyField, Layout, MigrationField,
    PlanRecord, Prediction, SCHEMA, State, Version, Writes, plan_seed,
};
use crate::units::{Estimate, Rate, Span};

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

/// A view before the first request.
pub(crate) fn view_at_start() -> DemoView {
    let shard = |number| ShardLoadView { name: format!("s{number}"), calls_per_s: 0.0 };
    let router = |number| RouterStand { id: format!("router-{number}"), applied: None, acknowledged: false };
    DemoView {
        elapsed: Span::from_millis(400),
        length: Span::from_secs(60),
        shards: (0..8).map(shard).collect(),
        scale_per_s: 0.0,
        capacity_per_s: 900,
        imbalance: None,
        before_and_after: (None, None),
        keys: Vec::new(),
        waiting_for: Some("warming up"),
        migration: None,
        routers: (1..=3).map(router).collect(),
        reads: Reads::default(),
        requests: RequestsView::default(),
        lines: Vec::new(),
        lines_cut: 0,
        missing: Some("no client has turned hot yet"),
        http: None,
    }
}

/// A view in the middle of the move.
pub(crate) fn view_while_moving() -> DemoView {
    let mut view = view_at_start();
    view.elapsed = Span::from_millis(13_700);
    for (number, shard) in view.shards.iter_mut().enumerate() {
        shard.calls_per_s = if number == 3 { 1104.0 } else { 140.0 + f64::from(u32::try_from(number).unwrap()) };
    }
    view.scale_per_s = 1200.0;
    view.imbalance = Some(7.613);
    view.before_and_after = (Some(7.702), None);
    view.waiting_for = None;
    view.keys = vec![
        KeyView {
            key: "acme".to_owned(),
            confirmed: true,
            count: Estimate { lower: 4310, upper: 4312 },
            window: Span::from_secs(5),
            threshold: 1500,
            rate: Rate::per_second(862.0).unwrap(),
        },
        KeyView {
            key: r"\u{1b}[31m-a-very-long-key".to_owned(),
            confirmed: false,
            count: Estimate { lower: 0, upper: 1502 },
            window: Span::from_secs(5),
            threshold: 1500,
            rate: Rate::default(),
        },
    ];
    let at = |millis| Some(Span::from_millis(millis));
    view.migration = Some(Migration {
        name: version(2),
        version: version(5),
        state: State::Moving,
        to: Layout::split(1, 8, 1291).unwrap(),
        reached: [None, at(10_700), at(11_000), at(11_300), at(12_400), None],
        acknowledged: None,
        moved: Some((1204, 2000)),
    });
    view.routers[0].acknowledged = true;
    for router in &mut view.routers {
        router.applied = Some(version(5));
    }
    view.reads = Reads { checked: 12_345, missed: 0 };
    view.requests = RequestsView {
        sent: 30_000,
        refused: 1234,
        waiting: 3,
        longest_wait: Span::from_millis(214),
        failed: 0,
        events: 30_000,
        events_lost: 0,
    };
    let line = |millis, tone, text: &str| Line { at: Span::from_millis(millis), tone, text: text.to_owned() };
    view.lines = vec![
        line(8000, Tone::Bad, "client acme turns hot: 45 % of all requests"),
        line(10_700, Tone::Step, "plan 1.2 prepare: acme into 8 buckets 1291..1298; reads look there too"),
        line(11_000, Tone::Step, "plan 1.3 hold: writes of acme wait"),
        line(11_300, Tone::Step, "plan 1.4 dual: writes go to the buckets, reads look in both places"),
        line(12_400, Tone::Step, "plan 1.5 moving: the owner moves the old records"),
    ];
    view.http = "127.0.0.1:9464".parse().ok();
    view
}
