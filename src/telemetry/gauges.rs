//! Gauges, made from the last view when somebody looks: what is no longer in the view has no series, so none leaks.

use std::collections::BTreeMap;

use super::catalogue::{HELPED, Metric, POLICIES};
use super::counters::{Sample, TelemetrySettings, Value, to_f64};
use super::display::{MAX_LABEL_CHARS, escape};
use super::labels::{Bound, ConditionLabel, Cut, EngineCut, Latch, Served};
use super::view::{HotKeyView, KeyspaceView, PartitionView, View};
use crate::plan::MapperTrust;
use crate::protocol::State;
use crate::units::{Estimate, EventTime, Rate, Share, Span};

/// The most keys of a keyspace with a series of their own.
pub const MAX_TOP_KEYS: usize = 20;
/// The most shards with a series of their own, over all keyspaces, which have equal parts of it.
pub const MAX_SHARD_SERIES: usize = 256;
/// The most partitions with a series of their own.
pub const MAX_PARTITION_SERIES: usize = 64;
/// The label of the sum over what has no series of its own.
pub const OTHER: &str = "other";
/// What the operating system knows of the process: given by whoever asks for [`super::Telemetry::families`].
pub const PROCESS_METRICS: [Metric; 3] = [Metric::ProcessCpu, Metric::ProcessMemory, Metric::ProcessStart];

/// Counters that somebody else counts: the operating system, the engine, and the check of mappers.
pub(super) fn is_made_at_scrape(metric: Metric) -> bool {
    PROCESS_METRICS.contains(&metric) || matches!(metric, Metric::EngineCuts | Metric::MapperChecked)
}

/// All series of one gauge, or of a counter that is made at scrape.
pub(super) fn samples(
    metric: Metric,
    settings: &TelemetrySettings,
    view: &View,
    ready: &[(Latch, bool)],
    process: &[Option<f64>],
) -> Vec<Sample> {
    if let Some(index) = PROCESS_METRICS.iter().position(|known| *known == metric) {
        return process.get(index).copied().flatten().map(|number| sample(&[], number)).into_iter().collect();
    }
    match metric {
        Metric::BuildInfo => vec![sample(&[&settings.version], 1.0)],
        Metric::ConfigInfo => vec![sample(&[&view.config], 1.0)],
        Metric::Ready => {
            let is_ready = |latch: Latch| ready.iter().any(|(known, ok)| *known == latch && *ok);
            Latch::ALL.iter().map(|latch| sample(&[latch.label()], flag(is_ready(*latch)))).collect()
        }
        Metric::SeriesCut => vec![
            sample(&[Cut::HotKeys.label()], count(cut_keys(view, settings))),
            sample(&[Cut::Shards.label()], count(cut_shards(view))),
            sample(
                &[Cut::Partitions.label()],
                count(view.source.partitions.len().saturating_sub(MAX_PARTITION_SERIES)),
            ),
        ],
        Metric::Condition => {
            let states = [
                (ConditionLabel::WarmingUp, view.condition.warming_up),
                (ConditionLabel::CatchingUp, view.condition.catching_up),
                (ConditionLabel::Incomplete, view.condition.incomplete),
            ];
            states.iter().map(|(state, on)| sample(&[state.label()], flag(*on))).collect()
        }
        Metric::PartitionLag | Metric::PartitionPosition => partition_samples(metric, &view.source.partitions),
        _ => match process_wide(metric, view) {
            Some(number) => vec![sample(&[], number)],
            None => {
                view.keyspaces.iter().flat_map(|keyspace| keyspace_samples(metric, settings, view, keyspace)).collect()
            }
        },
    }
}

/// Gauges without a label; none for every other metric.
fn process_wide(metric: Metric, view: &View) -> Option<f64> {
    let partitions = &view.source.partitions;
    Some(match metric {
        Metric::PartitionsAssigned => count(partitions.len()),
        Metric::PartitionsPaused => count(partitions.iter().filter(|partition| partition.paused).count()),
        Metric::LagRecords => to_f64(partitions.iter().filter_map(|partition| partition.lag).sum()),
        Metric::Watermark => timestamp(view.condition.watermark),
        Metric::WatermarkLag => {
            let lag = view.at.zip(view.condition.watermark).map(|(now, watermark)| now.since(watermark));
            lag.unwrap_or_default().as_secs_f64()
        }
        Metric::ControlUnsent => count(view.control.unsent),
        Metric::ControlLag => view.control.read_back_lag.as_secs_f64(),
        Metric::Leader => flag(view.control.leader),
        Metric::ControlEpoch => to_f64(view.control.version.epoch),
        Metric::ControlSeq => to_f64(view.control.version.seq),
        Metric::RoutersRegistered => count(view.routers_registered),
        Metric::RoutersWaiting => count(view.routers_waiting),
        Metric::OldestAck => view.oldest_ack.as_secs_f64(),
        Metric::LastTick => timestamp(view.at),
        _ => return None,
    })
}

fn keyspace_samples(metric: Metric, settings: &TelemetrySettings, view: &View, keyspace: &KeyspaceView) -> Vec<Sample> {
    let name = keyspace.name.as_str();
    let single = |number: f64| vec![sample(&[name], number)];
    match metric {
        Metric::WindowEvents => {
            let of = |window: &super::WindowView| sample(&[name, &window.length.to_string()], to_f64(window.events));
            keyspace.windows.iter().map(of).collect()
        }
        Metric::WindowWrapped => {
            let of = |window: &super::WindowView| sample(&[name, &window.length.to_string()], flag(window.wrapped));
            keyspace.windows.iter().map(of).collect()
        }
        Metric::DistinctKeys => window_bounds(keyspace, |window| window.distinct_keys),
        Metric::MedianEvents => window_bounds(keyspace, |window| window.median.unwrap_or_default()),
        Metric::Candidates => single(count(keyspace.candidates)),
        Metric::AdmissionLevel => single(to_f64(keyspace.admission_level)),
        Metric::RecallAbove => single(to_f64(keyspace.recall_above.unwrap_or(0))),
        Metric::HotKeys => single(count(keyspace.hot_keys)),
        Metric::SuspectKeys => single(count(keyspace.suspect_keys)),
        Metric::HotKeyRate => {
            let ranked = (1_usize..).zip(keyspace.keys.iter().take(settings.top_keys));
            ranked.flat_map(|(rank, key)| hot_key_samples(name, rank, key, settings)).collect()
        }
        Metric::KnownShards => single(count(keyspace.known_shards)),
        Metric::HotShards => single(count(keyspace.hot_shards)),
        Metric::ShardRate => shard_samples(keyspace, shard_series(view)),
        Metric::ShardImbalance => single(imbalance(keyspace)),
        Metric::EngineCuts => {
            let by_what = EngineCut::ALL.iter().zip(&keyspace.cuts);
            by_what.map(|(what, number)| sample(&[name, what.label()], to_f64(*number))).collect()
        }
        Metric::MapperChecked => {
            let (checked, elsewhere) =
                keyspace.mapper.as_ref().map_or((0, 0), |mapper| (mapper.checked, mapper.elsewhere));
            let by_result = [(Served::AsPredicted, checked.saturating_sub(elsewhere)), (Served::Elsewhere, elsewhere)];
            by_result.iter().map(|(result, number)| sample(&[name, result.label()], to_f64(*number))).collect()
        }
        Metric::MapperMismatch => {
            single(keyspace.mapper.as_ref().and_then(|mapper| mapper.mismatch).map_or(0.0, Share::as_f64))
        }
        Metric::PlacementRefused => {
            single(flag(keyspace.mapper.as_ref().is_some_and(|mapper| mapper.trust == MapperTrust::Refuted)))
        }
        Metric::EngineMemory => single(to_f64(keyspace.memory_bytes)),
        Metric::Plans => {
            let by_state = State::ALL.iter().zip(&keyspace.plans_by_state);
            by_state.map(|(state, plans)| sample(&[name, state.label()], count(*plans))).collect()
        }
        Metric::PlanOutcomes => {
            let by_outcome = HELPED.iter().zip(&keyspace.plans_by_outcome);
            by_outcome.map(|(helped, plans)| sample(&[name, helped], count(*plans))).collect()
        }
        Metric::Policies => {
            let by_kind = POLICIES.iter().zip(&keyspace.policies_by_kind);
            by_kind.map(|(kind, keys)| sample(&[name, kind], count(*keys))).collect()
        }
        _ => Vec::new(),
    }
}

fn window_bounds(keyspace: &KeyspaceView, estimate: impl Fn(&super::WindowView) -> Estimate) -> Vec<Sample> {
    let both = keyspace.windows.iter().flat_map(|window| {
        let length = window.length.to_string();
        let estimate = estimate(window);
        bounds(estimate).map(|(bound, number)| sample(&[&keyspace.name, &length, bound], to_f64(number)))
    });
    both.collect()
}

const fn bounds(estimate: Estimate) -> [(&'static str, u64); 2] {
    [(Bound::Lower.label(), estimate.lower), (Bound::Upper.label(), estimate.upper)]
}

fn hot_key_samples(name: &str, rank: usize, key: &HotKeyView, settings: &TelemetrySettings) -> [Sample; 2] {
    let text = settings.key_display.text(&key.key, MAX_LABEL_CHARS);
    let rank = rank.to_string();
    bounds(key.count)
        .map(|(bound, events)| sample(&[name, &rank, &text, bound], Rate::of(events, key.window).as_per_second()))
}

/// So many shards of each keyspace have their own series.
fn shard_series(view: &View) -> usize {
    MAX_SHARD_SERIES / view.keyspaces.len().max(1)
}

/// The busiest shards by name; the rest, and shards whose shown name is taken already, summed under [`OTHER`].
fn shard_samples(keyspace: &KeyspaceView, limit: usize) -> Vec<Sample> {
    let mut by_name: BTreeMap<String, Estimate> = BTreeMap::new();
    let mut rest: Option<Estimate> = None;
    let add = |sum: Estimate, more: Estimate| Estimate {
        lower: sum.lower.saturating_add(more.lower),
        upper: sum.upper.saturating_add(more.upper),
    };
    for (index, shard) in keyspace.shards.iter().enumerate() {
        let shown = escape(&shard.shard, MAX_LABEL_CHARS);
        if index < limit && shown != OTHER && !by_name.contains_key(&shown) {
            by_name.insert(shown, shard.count);
        } else {
            rest = Some(rest.map_or(shard.count, |sum| add(sum, shard.count)));
        }
    }
    let other = rest.map(|count| (OTHER.to_owned(), count));
    let rates = by_name.into_iter().chain(other).flat_map(|(shown, count)| {
        bounds(count).map(|(bound, events)| {
            sample(&[&keyspace.name, &shown, bound], Rate::of(events, keyspace.shard_window).as_per_second())
        })
    });
    rates.collect()
}

fn imbalance(keyspace: &KeyspaceView) -> f64 {
    let hottest = keyspace.shards.first().map_or(0, |shard| shard.count.lower);
    match keyspace.shard_median {
        Some(median) if hottest > 0 => to_f64(hottest) / to_f64(median.max(1)),
        _ => 0.0,
    }
}

fn partition_samples(metric: Metric, partitions: &[PartitionView]) -> Vec<Sample> {
    let mut partitions: Vec<&PartitionView> = partitions.iter().collect();
    partitions.sort_by_key(|partition| partition.partition);
    let (own, rest) = partitions.split_at(partitions.len().min(MAX_PARTITION_SERIES));
    if metric == Metric::PartitionPosition {
        let known = own.iter().filter_map(|partition| Some((partition.partition, partition.position?)));
        return known.map(|(partition, at)| sample(&[&partition.0.to_string()], offset(at.0))).collect();
    }
    let known = own.iter().filter_map(|partition| Some((partition.partition, partition.lag?)));
    let mut samples: Vec<Sample> =
        known.map(|(partition, lag)| sample(&[&partition.0.to_string()], to_f64(lag))).collect();
    if !rest.is_empty() {
        samples.push(sample(&[OTHER], to_f64(rest.iter().filter_map(|partition| partition.lag).sum())));
    }
    samples
}

fn cut_keys(view: &View, settings: &TelemetrySettings) -> usize {
    let of = |keyspace: &KeyspaceView| (keyspace.hot_keys + keyspace.suspect_keys).saturating_sub(settings.top_keys);
    view.keyspaces.iter().map(of).sum()
}

fn cut_shards(view: &View) -> usize {
    view.keyspaces.iter().map(|keyspace| keyspace.known_shards.saturating_sub(shard_series(view))).sum()
}

fn sample(labels: &[&str], number: f64) -> Sample {
    Sample { labels: labels.iter().map(|label| (*label).to_owned()).collect(), value: Value::Number(number) }
}

fn flag(on: bool) -> f64 {
    f64::from(u8::from(on))
}

fn count(number: usize) -> f64 {
    to_f64(u64::try_from(number).unwrap_or(u64::MAX))
}

#[expect(clippy::cast_precision_loss, reason = "the exposition format has floats only")]
const fn offset(number: i64) -> f64 {
    number as f64
}

fn timestamp(time: Option<EventTime>) -> f64 {
    time.map_or(0.0, |time| Span::from_millis(time.as_millis().unsigned_abs()).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use super::*;
    use crate::engine::{Change, Operations, RuleKind, Splittable};
    use crate::telemetry::{
        CATALOGUE, Family, KeyDisplay, KeyspaceLabels, Kind, MapperView, ShardView, Telemetry, TelemetrySettings,
        Values,
    };
    use crate::units::{Offset, Partition};

    fn hot(key: &[u8], lower: u64) -> HotKeyView {
        HotKeyView {
            key: key.into(),
            state: Change::Hot,
            hot_since: Some(EventTime::MIN),
            rule: RuleKind::Absolute,
            window: Span::from_secs(10),
            threshold: 20,
            count: Estimate { lower, upper: lower + 10 },
            median: None,
            distinct_keys: Estimate::exact(100),
            rate: Rate::of(lower, Span::from_secs(10)),
            peak: Rate::of(lower, Span::from_secs(10)),
            operations: Operations::default(),
            weight: 0,
            candidate_since: EventTime::MIN,
            sampled: 0,
            shards: Vec::new(),
            callers: Vec::new(),
            splittable: Splittable::Undecided { events: 0, needed: 200 },
        }
    }

    fn labels(keyspaces: usize) -> Vec<KeyspaceLabels> {
        let windows = vec![Span::from_secs(10), Span::from_secs(60)];
        (0..keyspaces).map(|n| KeyspaceLabels { name: format!("ks{n}"), windows: windows.clone() }).collect()
    }

    fn telemetry(keyspaces: usize) -> Telemetry {
        Telemetry::new(TelemetrySettings { top_keys: 50, ..TelemetrySettings::new(labels(keyspaces)) })
    }

    fn shard(name: &str, count: u64) -> ShardView {
        ShardView { shard: name.as_bytes().into(), count: Estimate::exact(count), hot_since: None, profile: None }
    }

    fn series(families: &[Family]) -> usize {
        let of = |family: &Family| match family.definition.kind {
            Kind::Histogram { bounds, .. } => family.samples.len() * (bounds.len() + 3),
            _ => family.samples.len(),
        };
        families.iter().map(of).sum()
    }

    fn of(families: &[Family], metric: Metric) -> Vec<Sample> {
        families.iter().find(|f| f.definition.metric == metric).map(|f| f.samples.clone()).unwrap_or_default()
    }

    #[test]
    fn everything_fixed_is_there_before_any_event_o4_o8() {
        let families = telemetry(2).families(&[], &[Some(0.1), Some(1e6), Some(1e9)]);
        for row in CATALOGUE {
            let comes_later = |values| matches!(values, Values::TopKeys | Values::Shards | Values::Partitions);
            let fixed = !row.labels.iter().any(|label| comes_later(label.values));
            assert_eq!(families.iter().any(|family| family.definition == row), fixed, "{}", row.name);
        }
        assert_eq!(of(&families, Metric::LagRecords), vec![sample(&[], 0.0)]);
        assert_eq!(of(&families, Metric::Plans).len(), 12);
        assert_eq!(of(&families, Metric::DistinctKeys).len(), 8);
    }

    #[test]
    fn no_input_makes_more_than_2000_series_o1() {
        let telemetry = telemetry(crate::input::MAX_KEYSPACES);
        let mut view = View::empty(&labels(crate::input::MAX_KEYSPACES));
        for keyspace in &mut view.keyspaces {
            keyspace.keys = (0..100_u64).map(|n| hot(&n.to_le_bytes(), 1000 - n)).collect();
            keyspace.hot_keys = 1_000_000;
            keyspace.shards = (0..4096).map(|n| shard(&format!("s{n}"), 5000 - n)).collect();
            keyspace.known_shards = 10_000;
        }
        let partition =
            |n| PartitionView { partition: Partition(n), position: Some(Offset(5)), lag: Some(1), paused: false };
        view.source.partitions = (0..1000).map(partition).collect();
        telemetry.publish(view);
        let families = telemetry.families(&[], &[Some(0.1), Some(1e6), Some(1e9)]);
        let number = series(&families);
        assert!(number < 2000, "{number} series");
        assert_eq!(of(&families, Metric::SeriesCut)[0], sample(&["hot_keys"], 8.0 * (1_000_000.0 - 20.0)));
        assert_eq!(of(&families, Metric::LagRecords), vec![sample(&[], 1000.0)]);
        assert_eq!(of(&families, Metric::PartitionLag).last(), Some(&sample(&[OTHER], 936.0)));
        for family in &families {
            let distinct: HashSet<_> = family.samples.iter().map(|sample| &sample.labels).collect();
            assert_eq!(distinct.len(), family.samples.len(), "{}", family.definition.name);
            for sample in &family.samples {
                assert_eq!(sample.labels.len(), family.definition.labels.len(), "{}", family.definition.name);
            }
        }
    }

    #[test]
    fn a_shard_named_other_is_part_of_the_rest() {
        let mut keyspace = KeyspaceView::empty(&labels(1)[0]);
        keyspace.shards = vec![shard("a", 50), shard(OTHER, 30), shard("b", 20), shard("c", 10)];
        let lower: Vec<_> = shard_samples(&keyspace, 3).into_iter().step_by(2).collect();
        let expected = [("a", 5.0), ("b", 2.0), (OTHER, 4.0)];
        assert_eq!(lower, expected.map(|(name, rate)| sample(&["ks0", name, "lower"], rate)));
    }

    #[test]
    fn keys_are_shown_as_configured_and_bounded() {
        let mut view = View::empty(&labels(1));
        view.keyspaces[0].keys = vec![hot(b"secret\n\xFF", 100), hot(&[b'x'; 4096], 90)];
        let view = Arc::new(view);
        for (display, texts) in [
            (KeyDisplay::Plain, [Some(r"secret\n\xFF".to_owned()), None]),
            (KeyDisplay::Off, [Some(String::new()), Some(String::new())]),
        ] {
            let settings = TelemetrySettings { key_display: display, ..TelemetrySettings::new(labels(1)) };
            let samples = samples(Metric::HotKeyRate, &settings, &view, &[], &[]);
            assert_eq!(samples.len(), 4);
            assert_eq!(samples[0].value, Value::Number(10.0));
            assert_eq!(samples[1].value, Value::Number(11.0));
            assert_eq!(samples[2].labels[1], "2");
            for (index, text) in texts.into_iter().enumerate() {
                let shown = &samples[2 * index].labels[2];
                assert!(shown.chars().count() <= MAX_LABEL_CHARS + 9);
                assert!(text.is_none_or(|text| text == *shown), "{shown}");
            }
        }
    }

    #[test]
    fn a_mapper_has_its_series_and_a_keyspace_without_one_has_zeros() {
        let mut view = View::empty(&labels(2));
        view.keyspaces[1].mapper = Some(MapperView {
            kind: "modulo",
            shards: 8,
            checked: 2000,
            elsewhere: 500,
            mismatch: Share::new(0.25).ok(),
            trust: MapperTrust::Refuted,
        });
        let settings = TelemetrySettings::new(labels(2));
        let of = |metric| samples(metric, &settings, &view, &[], &[]);
        assert_eq!(of(Metric::MapperMismatch), [sample(&["ks0"], 0.0), sample(&["ks1"], 0.25)]);
        assert_eq!(of(Metric::PlacementRefused), [sample(&["ks0"], 0.0), sample(&["ks1"], 1.0)]);
        let checked = [
            ("ks0", "as_predicted", 0.0),
            ("ks0", "elsewhere", 0.0),
            ("ks1", "as_predicted", 1500.0),
            ("ks1", "elsewhere", 500.0),
        ];
        assert_eq!(of(Metric::MapperChecked), checked.map(|(name, result, number)| sample(&[name, result], number)));
    }

    #[test]
    fn imbalance_is_the_hottest_over_the_median() {
        let mut keyspace = KeyspaceView::empty(&labels(1)[0]);
        let zero = |keyspace: &KeyspaceView| imbalance(keyspace).to_bits() == 0;
        assert!(zero(&keyspace));
        keyspace.shards = vec![shard("a", 60), shard("b", 20), shard("c", 10)];
        keyspace.shard_median = Some(20);
        assert_eq!(imbalance(&keyspace).to_bits(), 3.0_f64.to_bits());
    }
}
