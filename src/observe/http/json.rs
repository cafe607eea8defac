//! Bodies of the API. Counts that are estimates have both bounds; times are RFC 3339; lengths of time end in `_ms`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::engine::{Change, NotApplicable, RuleStatus, ShardCause, ShardProfile, Splittable};
use crate::input::Refusal;
use crate::observe::readiness::{LatchReport, Readiness};
use crate::protocol::{Layout, Outcome, Pin, Policy, State};
use crate::telemetry::{
    EngineCut, HotKeyView, KeyDisplay, KeyText, KeyspaceView, MAX_LABEL_CHARS, MapperView, Metric, PlanView,
    RouterView, ShardView, Telemetry, View, WindowView, escape,
};
use crate::units::{Estimate, EventTime, Rate, Share, ShareBounds};

/// The value as JSON in which no character can move a terminal's cursor or turn text round: what JSON may leave as it
/// is (DEL, C1 controls, bidirectional, invisible and combining characters) is escaped as well.
pub(super) fn to_harmless_json(value: &impl Serialize) -> serde_json::Result<String> {
    let plain = serde_json::to_string(value)?;
    if plain.is_ascii() && !plain.contains('\x7f') {
        return Ok(plain);
    }
    let mut text = String::with_capacity(plain.len() + 16);
    for char in plain.chars() {
        // Outside of its strings JSON is printable ASCII, so an escape is put inside one only.
        if char == '"' || char == '\'' || char == '\\' || char.escape_debug().len() == 1 {
            text.push(char);
        } else {
            for unit in char.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    Ok(text)
}

/// Something was wrong with the request.
#[derive(Serialize)]
pub(super) struct Problem<'a> {
    pub(super) error: &'a str,
}

/// Parts of keyspaces as they were at one tick.
#[derive(Serialize)]
pub(super) struct List<T> {
    /// The clock at that tick; none before the first.
    pub(super) at: Option<String>,
    pub(super) keyspaces: Vec<T>,
}

#[derive(Serialize)]
pub(super) struct Ready {
    pub(super) ready: bool,
    waiting_for: Vec<LatchReport>,
    done: Vec<LatchReport>,
}

impl Ready {
    pub(super) fn new(readiness: &Readiness) -> Self {
        let (done, waiting_for): (Vec<_>, Vec<_>) = readiness.report().into_iter().partition(|latch| latch.ready);
        Self { ready: waiting_for.is_empty(), waiting_for, done }
    }
}

#[derive(Serialize)]
pub(super) struct Status {
    version: String,
    /// Names the configuration whose rules are in force, as evidence does.
    config: String,
    at: Option<String>,
    ready: bool,
    waiting_for: Vec<&'static str>,
    warming_up: bool,
    catching_up: bool,
    incomplete: bool,
    completeness: f64,
    watermark: Option<String>,
    watermark_lag_ms: Option<u64>,
    input: Input,
    keyspaces: Vec<Keyspace>,
    control: Control,
    routers: Routers,
}

#[derive(Serialize)]
struct Input {
    partitions_assigned: usize,
    partitions_paused: usize,
    lag_records: Option<u64>,
    records_read: u64,
    bytes_read: u64,
    records_refused: BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct Keyspace {
    keyspace: String,
    windows: Vec<Window>,
    candidates: usize,
    admission_level: u64,
    recall_above: Option<u64>,
    hot_keys: usize,
    suspect_keys: usize,
    known_shards: usize,
    hot_shards: usize,
    mapper: Option<Mapper>,
    left_out: BTreeMap<&'static str, u64>,
    memory_bytes: u64,
    plans: BTreeMap<&'static str, usize>,
}

/// The declared shard mapper, held against where events were served.
#[derive(Serialize)]
struct Mapper {
    kind: &'static str,
    shards: usize,
    checked: u64,
    elsewhere: u64,
    mismatch: Option<Share>,
    /// `unchecked`, `confirmed`, or `refuted`: then nothing is placed by it.
    trust: &'static str,
}

#[derive(Serialize)]
struct Window {
    window_ms: u64,
    events: u64,
    distinct_keys: Estimate,
    median: Option<Estimate>,
    wrapped: bool,
    threshold: Option<u64>,
    recall_above: Option<u64>,
    complete_from: Option<String>,
    rules: Vec<Rule>,
}

#[derive(Serialize)]
struct Rule {
    rule: &'static str,
    hot_from: Option<u64>,
    suspect_from: Option<u64>,
    not_applicable: Option<&'static str>,
    /// So many active keys it takes, where they are too few.
    keys_needed: Option<u64>,
}

#[derive(Serialize)]
struct Control {
    leader: bool,
    epoch: u64,
    seq: u64,
    unsent: usize,
    read_back_lag_ms: u64,
    frozen: bool,
}

#[derive(Serialize)]
struct Routers {
    registered: usize,
    waiting: usize,
    listed: Vec<Router>,
}

#[derive(Serialize)]
struct Router {
    id: String,
    epoch: u64,
    seq: u64,
    ack_age_ms: u64,
    waiting: bool,
}

impl Status {
    pub(super) fn new(telemetry: &Telemetry, readiness: &Readiness) -> Self {
        let view = telemetry.view();
        let waiting_for: Vec<_> =
            readiness.report().into_iter().filter(|latch| !latch.ready).map(|latch| latch.latch).collect();
        let lag = view.at.zip(view.condition.watermark).map(|(now, watermark)| now.since(watermark).as_millis());
        Self {
            version: telemetry.settings().version.clone(),
            config: view.config.clone(),
            at: view.at.map(|at| at.to_rfc3339()),
            ready: waiting_for.is_empty(),
            waiting_for,
            warming_up: view.condition.warming_up,
            catching_up: view.condition.catching_up,
            incomplete: view.condition.incomplete,
            completeness: view.condition.completeness.share(),
            watermark: view.condition.watermark.map(|at| at.to_rfc3339()),
            watermark_lag_ms: lag,
            input: Input::new(telemetry, &view),
            keyspaces: view.keyspaces.iter().map(Keyspace::new).collect(),
            control: Control {
                leader: view.control.leader,
                epoch: view.control.version.epoch,
                seq: view.control.version.seq,
                unsent: view.control.unsent,
                read_back_lag_ms: view.control.read_back_lag.as_millis(),
                frozen: view.control.frozen,
            },
            routers: Routers {
                registered: view.routers_registered,
                waiting: view.routers_waiting,
                listed: view.routers.iter().map(Router::new).collect(),
            },
        }
    }
}

impl Input {
    fn new(telemetry: &Telemetry, view: &View) -> Self {
        let partitions = &view.source.partitions;
        Self {
            partitions_assigned: partitions.len(),
            partitions_paused: partitions.iter().filter(|partition| partition.paused).count(),
            lag_records: view.condition.lag,
            records_read: telemetry.total(Metric::RecordsRead),
            bytes_read: telemetry.total(Metric::BytesRead),
            records_refused: Refusal::ALL.map(|reason| (reason.label(), telemetry.refused(reason))).into(),
        }
    }
}

impl Keyspace {
    fn new(view: &KeyspaceView) -> Self {
        let window = |window: &WindowView| Window {
            window_ms: window.length.as_millis(),
            events: window.events,
            distinct_keys: window.distinct_keys,
            median: window.median,
            wrapped: window.wrapped,
            threshold: window.threshold,
            recall_above: window.recall_above,
            complete_from: window.complete_from.map(|at| at.to_rfc3339()),
            rules: window.rules.iter().map(Rule::new).collect(),
        };
        Self {
            keyspace: view.name.clone(),
            windows: view.windows.iter().map(window).collect(),
            candidates: view.candidates,
            admission_level: view.admission_level,
            recall_above: view.recall_above,
            hot_keys: view.hot_keys,
            suspect_keys: view.suspect_keys,
            known_shards: view.known_shards,
            hot_shards: view.hot_shards,
            mapper: view.mapper.as_ref().map(Mapper::new),
            left_out: EngineCut::ALL.iter().zip(view.cuts).map(|(what, number)| (what.label(), number)).collect(),
            memory_bytes: view.memory_bytes,
            plans: State::ALL.iter().zip(view.plans_by_state).map(|(state, plans)| (state.label(), plans)).collect(),
        }
    }
}

impl Mapper {
    const fn new(view: &MapperView) -> Self {
        let MapperView { kind, shards, checked, elsewhere, mismatch, trust } = *view;
        Self { kind, shards, checked, elsewhere, mismatch, trust: trust.label() }
    }
}

impl Rule {
    fn new(status: &RuleStatus) -> Self {
        Self {
            rule: status.rule.label(),
            hot_from: status.hot_from,
            suspect_from: status.suspect_from,
            not_applicable: status.not_applicable.map(NotApplicable::label),
            keys_needed: match status.not_applicable {
                Some(NotApplicable::FewSubjects { needed, .. }) => Some(needed),
                Some(NotApplicable::WindowNotFull) | None => None,
            },
        }
    }
}

impl Router {
    fn new(view: &RouterView) -> Self {
        Self {
            id: view.id.clone(),
            epoch: view.applied.epoch,
            seq: view.applied.seq,
            ack_age_ms: view.ack_age.as_millis(),
            waiting: view.waiting,
        }
    }
}

#[derive(Serialize)]
pub(super) struct HotKeys {
    keyspace: String,
    hot: usize,
    suspect: usize,
    keys: Vec<HotKeyRow>,
}

#[derive(Serialize)]
struct HotKeyRow {
    #[serde(flatten)]
    key: KeyText,
    state: &'static str,
    hot_since: Option<String>,
    rule: &'static str,
    window_ms: u64,
    threshold: u64,
    count: Estimate,
    median: Option<Estimate>,
    distinct_keys: Estimate,
    rate_per_s: Rate,
    peak_per_s: Rate,
    reads: u64,
    writes: u64,
    scans: u64,
    unknown: u64,
    weight: u64,
    candidate_since: String,
    /// Events that were looked at closely: those of shards and callers are of these.
    sampled: u64,
    shards: Vec<ShardCount>,
    callers: Vec<CallerCount>,
    splittable: SplittableRow,
}

/// Whether buckets would spread a key's heat.
#[derive(Serialize)]
struct SplittableRow {
    /// `yes`, or why not.
    verdict: &'static str,
    /// Share of the events on the hottest of 2, 4, ... 256 buckets, by the number of buckets, as far as enough events were counted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    hottest_bucket_share: BTreeMap<u32, f64>,
}

impl From<&Splittable> for SplittableRow {
    fn from(splittable: &Splittable) -> Self {
        let mut hottest_bucket_share = BTreeMap::new();
        if let Splittable::Yes(spread) = splittable {
            let sizes = (1..).map(|power| 1u32 << power).zip(&spread.hottest);
            let decided = sizes.take_while(|(buckets, _)| *buckets <= spread.decided_up_to);
            hottest_bucket_share.extend(decided.map(|(buckets, share)| (buckets, share.as_f64())));
        }
        Self { verdict: splittable.label(), hottest_bucket_share }
    }
}

#[derive(Serialize)]
struct ShardCount {
    shard: String,
    events: Estimate,
}

#[derive(Serialize)]
struct CallerCount {
    caller: KeyText,
    events: Estimate,
}

/// Hot and suspect keys of a keyspace, the hottest `limit`.
pub(super) fn hot_keys(view: &KeyspaceView, limit: usize, display: KeyDisplay) -> HotKeys {
    let row = |key: &HotKeyView| HotKeyRow {
        key: display.json(&key.key),
        state: if key.state == Change::Hot { "hot" } else { "suspect" },
        hot_since: key.hot_since.map(|at| at.to_rfc3339()),
        rule: key.rule.label(),
        window_ms: key.window.as_millis(),
        threshold: key.threshold,
        count: key.count,
        median: key.median,
        distinct_keys: key.distinct_keys,
        rate_per_s: key.rate,
        peak_per_s: key.peak,
        reads: key.operations.reads,
        writes: key.operations.writes,
        scans: key.operations.scans,
        unknown: key.operations.unknown,
        weight: key.weight,
        candidate_since: key.candidate_since.to_rfc3339(),
        sampled: key.sampled,
        shards: key.shards.iter().map(|(shard, events)| ShardCount { shard: shown(shard), events: *events }).collect(),
        // A caller is shown as keys are: hashed or not at all where they are.
        callers: key
            .callers
            .iter()
            .map(|(name, events)| CallerCount { caller: display.json(name), events: *events })
            .collect(),
        splittable: SplittableRow::from(&key.splittable),
    };
    HotKeys {
        keyspace: view.name.clone(),
        hot: view.hot_keys,
        suspect: view.suspect_keys,
        keys: view.keys.iter().take(limit).map(row).collect(),
    }
}

#[derive(Serialize)]
pub(super) struct Shards {
    keyspace: String,
    window_ms: u64,
    known: usize,
    hot: usize,
    median_count: Option<u64>,
    shards: Vec<ShardRow>,
}

#[derive(Serialize)]
struct ShardRow {
    shard: String,
    count: Estimate,
    rate_per_s: Rate,
    hot_since: Option<String>,
    /// The rest is of a hot or suspect one.
    cause: Option<&'static str>,
    /// Events that were looked at closely: shares are of these.
    sampled: Option<u64>,
    keys: Vec<KeyShare>,
    /// Share of events on keys that are new.
    fresh: Option<Share>,
}

#[derive(Serialize)]
struct KeyShare {
    #[serde(flatten)]
    key: KeyText,
    share: ShareBounds,
}

/// Shards of a keyspace, the busiest `limit`.
pub(super) fn shards(view: &KeyspaceView, limit: usize, display: KeyDisplay) -> Shards {
    let row = |shard: &ShardView| {
        let profile = shard.profile.as_deref();
        ShardRow {
            shard: shown(&shard.shard),
            count: shard.count,
            rate_per_s: Rate::of(shard.count.lower, view.shard_window),
            hot_since: shard.hot_since.map(|at| at.to_rfc3339()),
            cause: profile.and_then(|profile| profile.cause).map(ShardCause::label),
            sampled: profile.map(|profile| profile.sampled),
            keys: profile.map(|profile| key_shares(profile, display)).unwrap_or_default(),
            fresh: profile.and_then(|profile| profile.fresh),
        }
    };
    Shards {
        keyspace: view.name.clone(),
        window_ms: view.shard_window.as_millis(),
        known: view.known_shards,
        hot: view.hot_shards,
        median_count: view.shard_median,
        shards: view.shards.iter().take(limit).map(row).collect(),
    }
}

fn key_shares(profile: &ShardProfile, display: KeyDisplay) -> Vec<KeyShare> {
    let share = |(key, events): &(Arc<[u8]>, Estimate)| KeyShare {
        key: display.json(key),
        share: events.share_of(profile.sampled),
    };
    profile.keys.iter().map(share).collect()
}

#[derive(Serialize)]
pub(super) struct Plans {
    keyspace: String,
    total: usize,
    plans: Vec<PlanRow>,
    /// Keys that are pinned or blocked, in all.
    ruled: usize,
    policies: Vec<PolicyRow>,
}

/// A pin or a block.
#[derive(Serialize)]
struct PolicyRow {
    #[serde(flatten)]
    key: KeyText,
    block: bool,
    pin: Option<Pin>,
    /// `ahead`, `in_force` or `past`.
    stands: &'static str,
    decided_at: String,
    reason: Option<String>,
}

#[derive(Serialize)]
struct PlanRow {
    #[serde(flatten)]
    key: KeyText,
    epoch: u64,
    seq: u64,
    state: &'static str,
    write: Option<Layout>,
    read: Vec<Layout>,
    decided_at: String,
    /// Predicted, as the rest up to the outcome: share of the key's point requests on its hottest bucket.
    hottest_bucket_share: f64,
    hottest_shard_before: Option<f64>,
    hottest_shard_after: Option<f64>,
    added_load: f64,
    /// Measured; null until it was.
    outcome: Option<Outcome>,
    waiting_for: usize,
}

/// Plans, pins and blocks of a keyspace, the first `limit` of each.
pub(super) fn plans(view: &KeyspaceView, limit: usize, display: KeyDisplay, now: Option<EventTime>) -> Plans {
    let row = |plan: &PlanView| PlanRow {
        key: display.json(&plan.key),
        epoch: plan.version.epoch,
        seq: plan.version.seq,
        state: plan.state.label(),
        write: plan.write,
        read: plan.read.clone(),
        decided_at: plan.decided_at.clone(),
        hottest_bucket_share: plan.prediction.hottest_bucket_share,
        hottest_shard_before: plan.prediction.hottest_shard_before,
        hottest_shard_after: plan.prediction.hottest_shard_after,
        added_load: plan.prediction.added_load,
        outcome: plan.outcome.clone(),
        waiting_for: plan.waiting_for,
    };
    Plans {
        keyspace: view.name.clone(),
        total: view.plans_by_state.iter().sum(),
        plans: view.plans.iter().take(limit).map(row).collect(),
        ruled: view.policies_by_kind.iter().sum(),
        policies: view.policies.iter().take(limit).map(|entry| policy_row(&entry.policy, display, now)).collect(),
    }
}

fn policy_row(policy: &Policy, display: KeyDisplay, now: Option<EventTime>) -> PolicyRow {
    PolicyRow {
        key: display.json(&policy.key.0),
        block: policy.block,
        pin: policy.pin.clone(),
        stands: stands(policy, now),
        decided_at: policy.decided_at.clone(),
        reason: policy.reason.clone(),
    }
}

/// Whether a policy holds at the view's time.
pub(super) fn stands(policy: &Policy, now: Option<EventTime>) -> &'static str {
    match (&policy.pin, now) {
        (Some(pin), Some(now)) if pin.is_over_at(now) => "past",
        (Some(pin), Some(now)) if !pin.lasts_at(now) => "ahead",
        _ => "in_force",
    }
}

/// Names of shards come from events: escaped and cut as in labels, so that both can be compared.
fn shown(shard: &[u8]) -> String {
    escape(shard, MAX_LABEL_CHARS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn json_that_is_printed_in_a_terminal_does_nothing_t7() {
        let text = to_harmless_json(&"é \u{7f}\u{9b}2J\u{202e}\u{e0001}\"\\\n").unwrap();
        assert_eq!(text, r#""é \u007f\u009b2J\u202e\udb40\udc01\"\\\n""#);
    }

    proptest! {
        #[test]
        fn it_reads_back_as_it_was(text: String) {
            let json = to_harmless_json(&text).unwrap();
            prop_assert!(!json.contains(char::is_control));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
