//! Every metric in one table: name, kind, help, labels and the values that each label can have.
//!
//! Names follow the Prometheus rules: one prefix, base units, `_total` on counters. What an estimate is measured by has
//! a label `bound`, never a bare number. A label whose values come from outside ([`Values::TopKeys`], [`Values::Shards`],
//! [`Values::Partitions`]) is limited in number and length where its series are made.

use super::labels::{
    Bound, CommitResult, ConditionLabel, ConfigReload, ControlKind, ControlResult, Cut, EngineCut, HttpRefusal,
    KafkaErrorClass, Latch, Rebalance, Served, SubjectKind,
};
use crate::engine::RuleKind;
use crate::input::Refusal;
use crate::protocol::State;

/// What kind of series a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Grows; starts at 0 with the process.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Cumulative buckets. `bounds` are in raw units.
    Histogram {
        /// Upper bounds, inclusive, growing.
        bounds: &'static [u64],
        /// Raw units in one of the metric's unit.
        raw_per_unit: u64,
    },
}

/// A label and its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// Name of the label.
    pub name: &'static str,
    /// What it can be.
    pub values: Values,
}

/// The values that a label can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Exactly these.
    Closed(&'static [&'static str]),
    /// Names of the configured keyspaces.
    Keyspaces,
    /// Lengths of the keyspace's windows, e.g. `10s`.
    Windows,
    /// `1` to the number of listed keys.
    Ranks,
    /// Listed hot keys, shown as configured.
    TopKeys,
    /// The busiest shards, and `other`.
    Shards,
    /// Numbers of assigned partitions, and `other`.
    Partitions,
    /// The version of this build.
    Version,
    /// 16 hexadecimal digits that name a configuration.
    Config,
}

/// One row of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Definition {
    /// Which metric.
    pub metric: Metric,
    /// Name of the family.
    pub name: &'static str,
    /// What it means, with its unit.
    pub help: &'static str,
    /// Kind of series.
    pub kind: Kind,
    /// Labels, in the order in which they are written.
    pub labels: &'static [Label],
}

const fn closed(name: &'static str, values: &'static [&'static str]) -> Label {
    Label { name, values: Values::Closed(values) }
}

const KEYSPACE: Label = Label { name: "keyspace", values: Values::Keyspaces };
const WINDOW: Label = Label { name: "window", values: Values::Windows };
const BOUND: Label = closed("bound", Bound::LABELS);
const SHARD: Label = Label { name: "shard", values: Values::Shards };
const PARTITION: Label = Label { name: "partition", values: Values::Partitions };
const RANK: Label = Label { name: "rank", values: Values::Ranks };
const KEY: Label = Label { name: "key", values: Values::TopKeys };
const REASON: Label = closed("reason", &REFUSALS);

const REFUSALS: [&str; Refusal::ALL.len()] = {
    let mut labels = [""; Refusal::ALL.len()];
    let mut index = 0;
    while index < labels.len() {
        labels[index] = Refusal::ALL[index].label();
        index += 1;
    }
    labels
};

const RULES: [&str; RuleKind::ALL.len()] = {
    let mut labels = [""; RuleKind::ALL.len()];
    let mut index = 0;
    while index < labels.len() {
        labels[index] = RuleKind::ALL[index].label();
        index += 1;
    }
    labels
};

const STATES: [&str; State::ALL.len()] = {
    let mut labels = [""; State::ALL.len()];
    let mut index = 0;
    while index < labels.len() {
        labels[index] = State::ALL[index].label();
        index += 1;
    }
    labels
};

/// Labels of [`crate::engine::Change`], in the order of the enum.
const CHANGES: &[&str] = &["suspect", "hot", "cleared"];

/// Whether a split helped, in the order in which views count them.
pub(super) const HELPED: [&str; 2] = ["true", "false"];

/// What operators set for a key, in the order in which views count it.
pub(super) const POLICIES: [&str; 2] = ["pin", "block"];

/// Refusals of a key in one keyspace while the event counts in others.
pub(super) const KEY_REFUSALS: [Refusal; 3] = [Refusal::KeyMissing, Refusal::KeyEmpty, Refusal::KeyTooLong];
const KEY_REFUSAL_LABELS: [&str; 3] = [KEY_REFUSALS[0].label(), KEY_REFUSALS[1].label(), KEY_REFUSALS[2].label()];

/// 0.1 ms to 10 s, in microseconds.
const DURATION: Kind = Kind::Histogram {
    bounds: &[100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 10_000_000],
    raw_per_unit: 1_000_000,
};
const BATCH: Kind =
    Kind::Histogram { bounds: &[1, 10, 100, 500, 1_000, 2_000, 5_000, 10_000, 50_000], raw_per_unit: 1 };

/// Makes the enum and the table, so that neither has a row that the other has not.
macro_rules! catalogue {
    ($($metric:ident $name:literal $kind:expr, [$($label:expr),*], $help:literal;)+) => {
        /// A metric: the index of its row in [`CATALOGUE`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Metric {
            $(
                #[doc = $help]
                $metric,
            )+
        }

        /// Every metric that this program exports, in the order of [`Metric`].
        pub const CATALOGUE: &[Definition] = &[$(
            Definition { metric: Metric::$metric, name: $name, help: $help, kind: $kind, labels: &[$($label),*] },
        )+];
    };
}

use Kind::{Counter, Gauge};

catalogue! {
    BuildInfo "keyheat_build_info" Gauge, [Label { name: "version", values: Values::Version }], "Always 1; the version of this build.";
    ConfigInfo "keyheat_config_info" Gauge, [Label { name: "config", values: Values::Config }], "Always 1; the configuration whose rules are in force, as evidence names it.";
    ConfigReloads "keyheat_config_reloads_total" Counter, [closed("result", ConfigReload::LABELS)], "Times that the configuration was read again, by what became of it.";
    Ready "keyheat_ready" Gauge, [closed("latch", Latch::LABELS)], "1 when this part is ready; the process is ready when all are.";

    RecordsRead "keyheat_records_read_total" Counter, [], "Records read from the input.";
    BytesRead "keyheat_read_bytes_total" Counter, [], "Bytes of the values of records read from the input.";
    RecordsRefused "keyheat_records_refused_total" Counter, [REASON], "Records that were not counted, by the reason.";
    EventsCounted "keyheat_events_counted_total" Counter, [KEYSPACE], "Events counted in a keyspace.";
    KeysRefused "keyheat_keys_refused_total" Counter, [KEYSPACE, closed("reason", &KEY_REFUSAL_LABELS)], "Events not counted in one keyspace, by what is wrong with their key there.";
    PollBatch "keyheat_poll_batch_records" BATCH, [], "Records that one poll of the input brought.";
    PartitionsAssigned "keyheat_partitions_assigned" Gauge, [], "Input partitions that this process reads.";
    PartitionsPaused "keyheat_partitions_paused" Gauge, [], "Of these, those that wait because they run ahead of the slowest one.";
    LagRecords "keyheat_lag_records" Gauge, [], "Input records that are unread, over all assigned partitions.";
    PartitionLag "keyheat_partition_lag_records" Gauge, [PARTITION], "Input records that are unread, by partition.";
    PartitionPosition "keyheat_partition_position" Gauge, [PARTITION], "Offset of the next record to read, by partition.";
    Rebalances "keyheat_rebalances_total" Counter, [closed("kind", Rebalance::LABELS)], "Rebalances of the consumer group, by what they did.";
    KafkaErrors "keyheat_kafka_errors_total" Counter, [closed("class", KafkaErrorClass::LABELS)], "Errors that the Kafka client reported.";
    Commits "keyheat_commits_total" Counter, [closed("result", CommitResult::LABELS)], "Offset commits.";
    OffsetsLost "keyheat_offsets_lost_total" Counter, [], "Offsets of the input that did not exist any more when they were due: retention, compaction or truncation took them.";
    RecordsRepeated "keyheat_records_repeated_total" Counter, [], "Records that came again and were left out.";
    PartitionsRewound "keyheat_partitions_rewound_total" Counter, [], "Partitions whose log began anew below the position: the topic was made anew or cut.";
    PartitionsGivenUp "keyheat_partitions_given_up_total" Counter, [], "Partitions that others waited for in vain: they did not move, or brought no event, and the others went on.";
    Watermark "keyheat_watermark_timestamp_seconds" Gauge, [], "Event time up to which all is counted; 0 before the first event.";
    WatermarkLag "keyheat_watermark_lag_seconds" Gauge, [], "How far the watermark is behind the clock; 0 before the first event.";

    Condition "keyheat_condition" Gauge, [closed("condition", ConditionLabel::LABELS)], "1 while this state makes decisions wait.";
    WindowEvents "keyheat_window_events" Gauge, [KEYSPACE, WINDOW], "Events in the window.";
    WindowWrapped "keyheat_window_wrapped" Gauge, [KEYSPACE, WINDOW], "1 while the window holds 2^32 events or more: upper bounds are all its events, and hot keys may be missed.";
    DistinctKeys "keyheat_distinct_keys" Gauge, [KEYSPACE, WINDOW, BOUND], "Distinct keys in the window, between both bounds.";
    MedianEvents "keyheat_median_events" Gauge, [KEYSPACE, WINDOW, BOUND], "Median of events over the active keys of the window, between both bounds; 0 while there is none.";
    Candidates "keyheat_candidates" Gauge, [KEYSPACE], "Keys with exact counters of their own.";
    AdmissionLevel "keyheat_admission_level_events" Gauge, [KEYSPACE], "Events in the window from which a key becomes a candidate.";
    RecallAbove "keyheat_recall_above_events" Gauge, [KEYSPACE], "A hot key below so many events in the window may be missed; 0 when none can be.";
    HotKeys "keyheat_hot_keys" Gauge, [KEYSPACE], "Keys that are hot: the lower bound reaches a threshold.";
    SuspectKeys "keyheat_suspect_keys" Gauge, [KEYSPACE], "Keys that may be hot: only the upper bound reaches a threshold.";
    HotKeyRate "keyheat_hot_key_rate" Gauge, [KEYSPACE, RANK, KEY, BOUND], "Events per second of the hottest keys over the window of their rule, between both bounds.";
    Verdicts "keyheat_verdicts_total" Counter, [KEYSPACE, closed("subject", SubjectKind::LABELS), closed("change", CHANGES), closed("rule", &RULES)], "Changes of what is known of keys and shards.";
    KnownShards "keyheat_known_shards" Gauge, [KEYSPACE], "Shards that are declared or were seen lately.";
    HotShards "keyheat_hot_shards" Gauge, [KEYSPACE], "Shards that are hot.";
    ShardRate "keyheat_shard_rate" Gauge, [KEYSPACE, SHARD, BOUND], "Events per second of a shard over the shortest window, between both bounds.";
    ShardImbalance "keyheat_shard_imbalance_ratio" Gauge, [KEYSPACE], "Rate of the hottest shard divided by that of the median one, by lower bounds; 0 while there is none.";
    MapperChecked "keyheat_mapper_checked_total" Counter, [KEYSPACE, closed("result", Served::LABELS)], "Events held against the declared shard mapper, by whether the shard that it says served them.";
    MapperMismatch "keyheat_mapper_mismatch_ratio" Gauge, [KEYSPACE], "Share of events that another shard served than the declared mapper says, of the last one to two thousand that were looked at; 0 before any was.";
    PlacementRefused "keyheat_placement_refused" Gauge, [KEYSPACE], "1 while buckets are not placed by the declared mapper, since more than 1 % of the events are elsewhere than it says.";

    EngineCuts "keyheat_engine_cut_total" Counter, [KEYSPACE, closed("what", EngineCut::LABELS)], "What the engine left out for want of room.";
    EngineMemory "keyheat_engine_memory_bytes" Gauge, [KEYSPACE], "Memory that counting a keyspace uses.";

    Plans "keyheat_plans" Gauge, [KEYSPACE, closed("state", &STATES)], "Plans on the control topic, by the state of their migration.";
    PlanOutcomes "keyheat_plan_outcomes" Gauge, [KEYSPACE, closed("helped", &HELPED)], "Plans on the control topic whose split was measured, by whether it helped; one that did not counts until its key has been at rest.";
    Policies "keyheat_policies" Gauge, [KEYSPACE, closed("kind", &POLICIES)], "Keys that operators have pinned or blocked by command; a pin counts until a day after its end.";
    ControlRecords "keyheat_control_records_total" Counter, [closed("kind", ControlKind::LABELS), closed("result", ControlResult::LABELS)], "Records of the plan topic, by what became of them.";
    ControlUnsent "keyheat_control_unsent_records" Gauge, [], "Records that are wanted and not read back yet.";
    ControlLag "keyheat_control_lag_seconds" Gauge, [], "How long the oldest record sent has waited to be read back; 0 when none waits.";
    Leader "keyheat_leader" Gauge, [], "1 while this process publishes plans.";
    ControlEpoch "keyheat_control_epoch" Gauge, [], "Epoch of the newest accepted record.";
    ControlSeq "keyheat_control_seq" Gauge, [], "Sequence number of the newest accepted record in its epoch.";
    HoldsTurnedBack "keyheat_holds_turned_back_total" Counter, [], "Holds that were turned back because not every router acknowledged in time.";
    RoutersRegistered "keyheat_routers_registered" Gauge, [], "Routers that every gate waits for.";
    RoutersWaiting "keyheat_routers_waiting" Gauge, [], "Of these, those that a gate waits for now.";
    OldestAck "keyheat_oldest_ack_age_seconds" Gauge, [], "Time since the last word of the router that has been silent for longest; 0 without routers.";
    RouterRefusals "keyheat_router_refusals_total" Counter, [], "Plan records that a router said it cannot obey.";

    TickDuration "keyheat_tick_duration_seconds" DURATION, [], "Time that one tick took: judging, planning, publishing this view.";
    BatchDuration "keyheat_batch_duration_seconds" DURATION, [], "Time that decoding and counting one batch took.";
    LastTick "keyheat_last_tick_timestamp_seconds" Gauge, [], "When the last tick ended; 0 before the first.";
    WatchdogStalls "keyheat_watchdog_stalls_total" Counter, [], "Times that the watchdog found lag, a reachable broker and no progress.";
    LinesSuppressed "keyheat_log_lines_suppressed_total" Counter, [], "Log lines left out because too many of their kind came at once.";
    SeriesCut "keyheat_series_cut" Gauge, [closed("what", Cut::LABELS)], "Things without a series of their own, so that the number of series stays bounded.";
    HttpRefused "keyheat_http_refused_total" Counter, [closed("reason", HttpRefusal::LABELS)], "Requests and connections that the HTTP side turned away.";
    ProcessCpu "process_cpu_seconds_total" Counter, [], "Processor time used, user and system.";
    ProcessMemory "process_resident_memory_bytes" Gauge, [], "Resident memory.";
    ProcessStart "process_start_time_seconds" Gauge, [], "When the process started.";
}

impl Metric {
    /// The metric's row.
    #[must_use]
    pub const fn definition(self) -> &'static Definition {
        &CATALOGUE[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_follow_the_rules() {
        let mut names = HashSet::new();
        for (index, row) in CATALOGUE.iter().enumerate() {
            assert_eq!(row.metric as usize, index);
            assert!(names.insert(row.name), "{} twice", row.name);
            assert!(row.name.starts_with("keyheat_") || row.name.starts_with("process_"), "{}", row.name);
            assert!(row.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{}", row.name);
            assert_eq!(row.kind == Counter, row.name.ends_with("_total"), "{}", row.name);
            assert!(row.help.ends_with('.') && !row.help.contains('\n'), "{}", row.name);
            for unit in ["_ms", "_millis", "_kb", "_mb", "_minutes"] {
                assert!(!row.name.contains(unit), "{}", row.name);
            }
            for label in row.labels {
                assert!(!matches!(label.name, "le" | "quantile" | "job" | "instance"), "{}", row.name);
            }
        }
    }

    #[test]
    fn closed_sets_have_no_double_and_no_empty_value() {
        for label in CATALOGUE.iter().flat_map(|row| row.labels) {
            if let Values::Closed(values) = label.values {
                let distinct: HashSet<_> = values.iter().collect();
                assert_eq!(distinct.len(), values.len(), "{}", label.name);
                assert!(values.iter().all(|value| !value.is_empty()), "{}", label.name);
            }
        }
    }

    #[test]
    fn counters_have_fixed_labels_only() {
        for row in CATALOGUE.iter().filter(|row| row.kind == Counter) {
            let fixed = row.labels.iter().all(|label| matches!(label.values, Values::Closed(_) | Values::Keyspaces));
            assert!(fixed, "{}: a counter whose series come and go shows no increase", row.name);
        }
    }
}
