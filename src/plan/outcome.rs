//! What a split was measured to do, once it has settled: against the bare key, which is one place on one shard.
//!
//! A key's numbers by bucket and by shard reach back one to two longest windows. So they are looked at when two have passed since the
//! record that ended the migration reached the log: then none of them is older than it, and at least one whole window is in them.

use super::settings::Mode;
use super::sizing::{Hottest, Load};
use super::view::View;
use crate::engine::{BUCKET_NOISE, EVENTS_PER_BUCKET, HotKey};
use crate::protocol::{History, Outcome, PlanEntry, PlanKey, PlanRecord, State};
use crate::units::EventTime;

/// Fewer events that name their shard than this say nothing of where a key's load is.
const MIN_NAMED: u64 = 2 * EVENTS_PER_BUCKET;

/// The key's record again, with what was measured: once, of a split that is over, while the key is hot. `since` is when the record that
/// ended the migration reached the log.
pub(super) fn measured(view: &View<'_>, key: &PlanKey, entry: &PlanEntry, since: EventTime) -> Option<PlanRecord> {
    let record = &entry.record;
    if !view.measures || record.outcome.is_some() || !has_split(record) {
        return None;
    }
    let (settings, hot, condition) = (view.settings(key)?, view.hot(key)?, view.world.condition);
    if settings.mode == Mode::Observe {
        return None;
    }
    let counted_to = condition.watermark.map_or(view.now, |watermark| watermark.min(view.now));
    let is_full = counted_to.since(since) >= settings.window.saturating_mul(2);
    if !is_full || !condition.is_settled() || !condition.completeness.is_whole() {
        return None;
    }
    let buckets = record.migration.to.buckets();
    let load = Load::at_peak(hot);
    if load.counted() < EVENTS_PER_BUCKET * u64::from(buckets) {
        return None;
    }
    let counters = Hottest::of(load.buckets);
    let on_bucket = (1.0 - load.scan_share()) * counters.least(buckets) + load.scan_share();
    let shard = busiest_shard(hot);
    let on_shard = shard.map_or(0.0, |share| share.least);
    let hottest_part = on_bucket.max(on_shard);
    let outcome = Outcome {
        hottest_shard: hottest_shard(view, key),
        measured_at: view.now.to_rfc3339(),
        helped: hottest_part * settings.min_gain <= 1.0,
        hottest_bucket_share: Some(counters.share(buckets)),
        key_shard_share: shard.map(|share| share.counted),
        window_ms: Some(settings.window.as_millis()),
        settled_at: Some(since.to_rfc3339()),
    };
    Some(PlanRecord { outcome: Some(outcome), ..record.clone() })
}

/// True for the last record of a migration to more buckets, in which its layout was entered.
fn has_split(record: &PlanRecord) -> bool {
    let migration = record.migration;
    let is_over = record.state == State::Settled || record.state == State::Moving && migration.history == History::Keep;
    is_over && !record.is_turned_round() && migration.to.buckets() > migration.from.buckets()
}

/// The part of a key's events that the busiest shard served.
#[derive(Debug, Clone, Copy)]
struct Served {
    counted: f64,
    /// Noise taken out: a split is not undone for what may be chance.
    least: f64,
}

/// The busiest shard's part of the key's events that name a shard; none while they are too few.
fn busiest_shard(hot: &HotKey) -> Option<Served> {
    let named: u64 = hot.profile.shards.iter().map(|(_, count)| count.upper).sum();
    let (_, busiest) = hot.profile.shards.first().filter(|_| named >= MIN_NAMED)?;
    let (lower, named) = (busiest.lower as f64, named as f64);
    let least = ((lower - BUCKET_NOISE * lower.sqrt()) / named).max(0.0);
    Some(Served { counted: busiest.upper as f64 / named, least })
}

/// Share of all load on the hottest shard; none where no shard is known.
fn hottest_shard(view: &View<'_>, key: &PlanKey) -> Option<f64> {
    let loads = view.store(key).1.iter().map(|shard| shard.count.upper);
    let (total, hottest) = (loads.clone().sum::<u64>(), loads.max().unwrap_or(0));
    (total > 0).then(|| hottest as f64 / total as f64)
}
