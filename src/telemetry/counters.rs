//! The numbers behind the catalogue: counters and histograms as atomics, gauges made from the last view.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::catalogue::{CATALOGUE, Definition, KEY_REFUSALS, Kind, Label, Metric, Values};
use super::display::KeyDisplay;
use super::gauges::{self, MAX_TOP_KEYS};
use super::labels::{
    CommitResult, ConfigReload, ControlKind, ControlResult, HttpRefusal, KafkaErrorClass, Latch, Rebalance, SubjectKind,
};
use super::view::View;
use crate::engine::{Change, RuleKind, Subject, Verdict};
use crate::input::Refusal;
use crate::units::Span;

/// What telemetry is told: checked by `config/`, owned here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetrySettings {
    /// Names and windows of the keyspaces, in the order of the configuration.
    pub keyspaces: Vec<KeyspaceLabels>,
    /// How keys are shown in metrics, logs and the API.
    pub key_display: KeyDisplay,
    /// So many of the hottest keys of each keyspace have a series of their own; at most [`MAX_TOP_KEYS`].
    pub top_keys: usize,
    /// Version of the program.
    pub version: String,
    /// Names the configuration at the start.
    pub config: String,
}

/// The labels of one keyspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyspaceLabels {
    /// Its name.
    pub name: String,
    /// Lengths of its windows.
    pub windows: Vec<Span>,
}

impl TelemetrySettings {
    /// Settings with every default for these keyspaces.
    #[must_use]
    pub fn new(keyspaces: Vec<KeyspaceLabels>) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let config = format!("{:016x}", 0);
        Self { keyspaces, key_display: KeyDisplay::default(), top_keys: 10, version, config }
    }
}

/// All counters, and the last view. Shared by all threads; every method takes `&self` and never waits for I/O.
#[derive(Debug)]
pub struct Telemetry {
    settings: TelemetrySettings,
    stores: Vec<Store>,
    view: Mutex<Arc<View>>,
}

/// Where the numbers of one metric are.
#[derive(Debug)]
enum Store {
    /// One number a combination of labels, the last label fastest.
    Counters(Box<[AtomicU64]>),
    /// One number a bucket, the last one for what is above all bounds; and the sum in raw units.
    Histogram { buckets: Box<[AtomicU64]>, sum: AtomicU64 },
    /// Made when somebody looks.
    AtScrape,
}

/// One metric with all its series.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// Name, help, kind and labels.
    pub definition: &'static Definition,
    /// Its series.
    pub samples: Vec<Sample>,
}

/// One series.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Values of the labels, in the order of the definition.
    pub labels: Vec<String>,
    /// Its value.
    pub value: Value,
}

/// The value of a series.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Of a counter or gauge; finite.
    Number(f64),
    /// Of a histogram.
    Histogram {
        /// Upper bound in the metric's unit, and how many observations are at or below it.
        buckets: Vec<(f64, u64)>,
        /// Number of observations.
        count: u64,
        /// Sum of observations in the metric's unit.
        sum: f64,
    },
}

impl Telemetry {
    /// Everything at 0, and an empty view.
    #[must_use]
    pub fn new(mut settings: TelemetrySettings) -> Self {
        settings.top_keys = settings.top_keys.min(MAX_TOP_KEYS);
        let zeros = |len: usize| (0..len).map(|_| AtomicU64::new(0)).collect::<Box<[_]>>();
        let stores = CATALOGUE.iter().map(|row| match row.kind {
            Kind::Gauge => Store::AtScrape,
            Kind::Counter if gauges::is_made_at_scrape(row.metric) => Store::AtScrape,
            Kind::Counter => Store::Counters(zeros(series(row.labels, settings.keyspaces.len()))),
            Kind::Histogram { bounds, .. } => {
                Store::Histogram { buckets: zeros(bounds.len() + 1), sum: AtomicU64::new(0) }
            }
        });
        let stores = stores.collect();
        let view = View { config: settings.config.clone(), ..View::empty(&settings.keyspaces) };
        let view = Mutex::new(Arc::new(view));
        Self { settings, stores, view }
    }

    /// The settings, `top_keys` cut to its limit.
    #[must_use]
    pub const fn settings(&self) -> &TelemetrySettings {
        &self.settings
    }

    /// Puts a new view in the place of the last one.
    pub fn publish(&self, view: View) {
        *self.view.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
    }

    /// The last view.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// `records` records with `bytes` bytes of values were read; once a batch.
    pub fn add_read(&self, records: u64, bytes: u64) {
        self.add(Metric::RecordsRead, &[], records);
        self.add(Metric::BytesRead, &[], bytes);
    }

    /// `records` records were refused for `reason`.
    pub fn add_refused(&self, reason: Refusal, records: u64) {
        self.add(Metric::RecordsRefused, &[reason as usize], records);
    }

    /// `events` events were counted in the keyspace with this index.
    pub fn add_counted(&self, keyspace: usize, events: u64) {
        self.add(Metric::EventsCounted, &[keyspace], events);
    }

    /// `events` events were not counted in this keyspace, their key there being missing, empty or too long.
    /// A reason that is none of a key counts as a key that is missing.
    pub fn add_keys_refused(&self, keyspace: usize, reason: Refusal, events: u64) {
        let reason = KEY_REFUSALS.iter().position(|known| *known == reason).unwrap_or(0);
        self.add(Metric::KeysRefused, &[keyspace, reason], events);
    }

    /// One poll brought `records` records, which took `took` to decode and count.
    pub fn observe_batch(&self, records: u64, took: Duration) {
        self.observe(Metric::PollBatch, records);
        self.observe(Metric::BatchDuration, micros(took));
    }

    /// One tick took `took`.
    pub fn observe_tick(&self, took: Duration) {
        self.observe(Metric::TickDuration, micros(took));
    }

    /// A rebalance happened.
    pub fn count_rebalance(&self, kind: Rebalance) {
        self.add(Metric::Rebalances, &[kind as usize], 1);
    }

    /// The Kafka client reported an error.
    pub fn count_kafka_error(&self, class: KafkaErrorClass) {
        self.add(Metric::KafkaErrors, &[class as usize], 1);
    }

    /// Offsets were gone when they were due.
    pub fn add_offsets_lost(&self, offsets: u64) {
        self.add(Metric::OffsetsLost, &[], offsets);
    }

    /// A record came again and was left out.
    pub fn count_repeated(&self) {
        self.add(Metric::RecordsRepeated, &[], 1);
    }

    /// A partition's log began anew.
    pub fn count_rewound(&self) {
        self.add(Metric::PartitionsRewound, &[], 1);
    }

    /// A partition is waited for no longer.
    pub fn count_given_up(&self) {
        self.add(Metric::PartitionsGivenUp, &[], 1);
    }

    /// The configuration was read again.
    pub fn count_reload(&self, result: ConfigReload) {
        self.add(Metric::ConfigReloads, &[result as usize], 1);
    }

    /// A commit ended.
    pub fn count_commit(&self, result: CommitResult) {
        self.add(Metric::Commits, &[result as usize], 1);
    }

    /// The watchdog found a stall.
    pub fn count_stall(&self) {
        self.add(Metric::WatchdogStalls, &[], 1);
    }

    /// The engine said something.
    pub fn count_verdict(&self, verdict: &Verdict) {
        let subject = match verdict.subject {
            Subject::Key(_) => SubjectKind::Key,
            Subject::Shard(_) => SubjectKind::Shard,
        };
        let change = match verdict.change {
            Change::Suspect => 0,
            Change::Hot => 1,
            Change::Cleared => 2,
        };
        let rule = RuleKind::ALL.iter().position(|rule| *rule == verdict.reason.rule).unwrap_or(0);
        self.add(Metric::Verdicts, &[verdict.keyspace, subject as usize, change, rule], 1);
    }

    /// A record of the plan topic came to this end.
    pub fn count_control(&self, kind: ControlKind, result: ControlResult) {
        self.add(Metric::ControlRecords, &[kind as usize, result as usize], 1);
    }

    /// A hold was turned back.
    pub fn count_hold_turned_back(&self) {
        self.add(Metric::HoldsTurnedBack, &[], 1);
    }

    /// A router refused a plan record.
    pub fn count_router_refusal(&self) {
        self.add(Metric::RouterRefusals, &[], 1);
    }

    /// The HTTP side turned somebody away.
    pub fn count_http_refused(&self, reason: HttpRefusal) {
        self.add(Metric::HttpRefused, &[reason as usize], 1);
    }

    /// `lines` log lines were left out.
    pub fn add_lines_suppressed(&self, lines: u64) {
        self.add(Metric::LinesSuppressed, &[], lines);
    }

    /// The sum over all series of a counter, or the number of observations of a histogram; 0 for a gauge.
    #[must_use]
    pub fn total(&self, metric: Metric) -> u64 {
        match &self.stores[metric as usize] {
            Store::Counters(numbers) => numbers.iter().map(|number| number.load(Relaxed)).sum(),
            Store::Histogram { buckets, .. } => buckets.iter().map(|bucket| bucket.load(Relaxed)).sum(),
            Store::AtScrape => 0,
        }
    }

    /// Records refused for `reason` since the start.
    #[must_use]
    pub fn refused(&self, reason: Refusal) -> u64 {
        match &self.stores[Metric::RecordsRefused as usize] {
            Store::Counters(numbers) => numbers.get(reason as usize).map_or(0, |number| number.load(Relaxed)),
            Store::Histogram { .. } | Store::AtScrape => 0,
        }
    }

    /// Every family that has series now. `ready` tells which latches are closed; `process` has what [`PROCESS_METRICS`]
    /// names, in that order, and leaves out what it cannot tell.
    ///
    /// [`PROCESS_METRICS`]: super::PROCESS_METRICS
    #[must_use]
    pub fn families(&self, ready: &[(Latch, bool)], process: &[Option<f64>]) -> Vec<Family> {
        let view = self.view();
        let families = CATALOGUE.iter().zip(&self.stores).map(|(definition, store)| {
            let samples = match store {
                Store::Counters(numbers) => self.counter_samples(definition, numbers),
                Store::Histogram { buckets, sum } => vec![histogram_sample(definition, buckets, sum)],
                Store::AtScrape => gauges::samples(definition.metric, &self.settings, &view, ready, process),
            };
            Family { definition, samples }
        });
        families.filter(|family| !family.samples.is_empty()).collect()
    }

    fn counter_samples(&self, definition: &Definition, numbers: &[AtomicU64]) -> Vec<Sample> {
        let with_labels = numbers.iter().enumerate().map(|(index, number)| {
            let mut rest = index;
            let mut labels: Vec<String> = Vec::with_capacity(definition.labels.len());
            for label in definition.labels.iter().rev() {
                let size = values_of(label, self.settings.keyspaces.len()).max(1);
                labels.push(match label.values {
                    Values::Closed(values) => values[rest % size].to_owned(),
                    _ => self.settings.keyspaces[rest % size].name.clone(),
                });
                rest /= size;
            }
            labels.reverse();
            Sample { labels, value: Value::Number(to_f64(number.load(Relaxed))) }
        });
        with_labels.collect()
    }

    fn add(&self, metric: Metric, labels: &[usize], number: u64) {
        let Store::Counters(numbers) = &self.stores[metric as usize] else { return };
        let mut index = 0;
        for (label, value) in metric.definition().labels.iter().zip(labels) {
            index = index * values_of(label, self.settings.keyspaces.len()) + value;
        }
        debug_assert!(index < numbers.len(), "{metric:?}: {labels:?} is outside the configured keyspaces");
        if let Some(slot) = numbers.get(index) {
            slot.fetch_add(number, Relaxed);
        }
    }

    fn observe(&self, metric: Metric, raw: u64) {
        let (Store::Histogram { buckets, sum }, Kind::Histogram { bounds, .. }) =
            (&self.stores[metric as usize], metric.definition().kind)
        else {
            return;
        };
        let bucket = bounds.partition_point(|bound| *bound < raw);
        buckets[bucket].fetch_add(1, Relaxed);
        sum.fetch_add(raw, Relaxed);
    }
}

/// Number of values of a label of a counter: closed sets and keyspaces only, as the catalogue's tests hold.
const fn values_of(label: &Label, keyspaces: usize) -> usize {
    match label.values {
        Values::Closed(values) => values.len(),
        _ => keyspaces,
    }
}

fn series(labels: &[Label], keyspaces: usize) -> usize {
    labels.iter().map(|label| values_of(label, keyspaces)).product()
}

fn histogram_sample(definition: &Definition, buckets: &[AtomicU64], sum: &AtomicU64) -> Sample {
    let Kind::Histogram { bounds, raw_per_unit } = definition.kind else {
        return Sample { labels: Vec::new(), value: Value::Number(0.0) };
    };
    let mut count = 0;
    let mut cumulative = Vec::with_capacity(bounds.len());
    for (index, bucket) in buckets.iter().enumerate() {
        count += bucket.load(Relaxed);
        if let Some(bound) = bounds.get(index) {
            cumulative.push((to_f64(*bound) / to_f64(raw_per_unit), count));
        }
    }
    let sum = to_f64(sum.load(Relaxed)) / to_f64(raw_per_unit);
    Sample { labels: Vec::new(), value: Value::Histogram { buckets: cumulative, count, sum } }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Exact below 2^53, as everything that Prometheus stores.
#[expect(clippy::cast_precision_loss, reason = "the exposition format has floats only")]
pub(super) const fn to_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Profile, Reason};
    use crate::units::{Estimate, EventTime};

    fn telemetry() -> Telemetry {
        let keyspace = |name: &str| KeyspaceLabels { name: name.to_owned(), windows: vec![Span::from_secs(10)] };
        Telemetry::new(TelemetrySettings::new(vec![keyspace("customer"), keyspace("object")]))
    }

    fn sample(telemetry: &Telemetry, metric: Metric, labels: &[&str]) -> Value {
        let families = telemetry.families(&[], &[]);
        let family = families.iter().find(|family| family.definition.metric == metric).unwrap();
        family.samples.iter().find(|sample| sample.labels == labels).unwrap().value.clone()
    }

    #[test]
    fn every_counter_is_there_from_the_start_with_0_o4() {
        let telemetry = telemetry();
        let families = telemetry.families(&[], &[]);
        for row in CATALOGUE.iter().filter(|row| row.kind == Kind::Counter && row.metric != Metric::ProcessCpu) {
            let family = families.iter().find(|family| family.definition.metric == row.metric).unwrap();
            assert_eq!(family.samples.len(), series(row.labels, 2), "{}", row.name);
            assert!(family.samples.iter().all(|sample| sample.value == Value::Number(0.0)), "{}", row.name);
        }
        for reason in Refusal::ALL {
            assert_eq!(sample(&telemetry, Metric::RecordsRefused, &[reason.label()]), Value::Number(0.0));
        }
    }

    #[test]
    fn each_method_counts_in_its_own_series() {
        let telemetry = telemetry();
        for (index, reason) in (1..).zip(Refusal::ALL) {
            telemetry.add_refused(reason, index);
        }
        for (index, reason) in (1_u32..).zip(Refusal::ALL) {
            let labels = [reason.label()];
            assert_eq!(sample(&telemetry, Metric::RecordsRefused, &labels), Value::Number(f64::from(index)));
            assert_eq!(telemetry.refused(reason), u64::from(index));
        }
        telemetry.add_keys_refused(1, Refusal::KeyTooLong, 7);
        assert_eq!(sample(&telemetry, Metric::KeysRefused, &["object", "key_too_long"]), Value::Number(7.0));
        assert_eq!(sample(&telemetry, Metric::KeysRefused, &["customer", "key_too_long"]), Value::Number(0.0));
        telemetry.count_control(ControlKind::Claim, ControlResult::Refused);
        assert_eq!(sample(&telemetry, Metric::ControlRecords, &["claim", "refused"]), Value::Number(1.0));
        assert_eq!(telemetry.total(Metric::ControlRecords), 1);
        let reason = Reason {
            rule: RuleKind::Share,
            window: Span::from_secs(10),
            threshold: 20,
            count: Estimate::exact(30),
            median: None,
            subjects: Estimate::exact(0),
        };
        telemetry.count_verdict(&Verdict {
            at: EventTime::MIN,
            keyspace: 1,
            change: Change::Cleared,
            subject: Subject::Shard(b"s1"[..].into()),
            reason,
            profile: Profile::Shard(Box::default()),
        });
        let labels = ["object", "shard", "cleared", "share"];
        assert_eq!(sample(&telemetry, Metric::Verdicts, &labels), Value::Number(1.0));
    }

    #[test]
    fn histogram_buckets_are_cumulative_and_inclusive() {
        let telemetry = telemetry();
        for (records, micros) in [(0, 99), (1, 100), (10, 101), (60_000, 20_000_000)] {
            telemetry.observe_batch(records, Duration::from_micros(micros));
        }
        let Value::Histogram { buckets, count, sum } = sample(&telemetry, Metric::BatchDuration, &[]) else {
            panic!("a histogram")
        };
        assert_eq!((count, buckets[0], buckets[1]), (4, (0.0001, 2), (0.00025, 3)));
        assert_eq!(buckets.last(), Some(&(10.0, 3)));
        assert!((sum - 20.0003).abs() < 1e-9);
        let Value::Histogram { buckets, sum, .. } = sample(&telemetry, Metric::PollBatch, &[]) else {
            panic!("a histogram")
        };
        assert_eq!((buckets[0], buckets[1], sum), ((1.0, 2), (10.0, 3), 60_011.0));
    }
}
