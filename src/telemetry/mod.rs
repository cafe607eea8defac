//! The catalogue of metrics, the numbers behind it, and events that leave a log line and a counter together.
//!
//! One table, [`CATALOGUE`], names every series; [`Telemetry`] holds the counters (atomics, from the start at 0) and the
//! last [`View`], from which all gauges are made when somebody looks. Nothing here asks the time or does I/O; the log
//! lines of `events` (feature `service`) go to `tracing`.

mod catalogue;
mod counters;
mod display;
#[cfg(feature = "service")]
mod events;
mod gauges;
#[cfg(feature = "kafka")]
mod kafka_class;
mod labels;
#[cfg(feature = "service")]
mod log_limit;
#[cfg(feature = "service")]
mod verdict_line;
mod view;

pub use catalogue::{CATALOGUE, Definition, Kind, Label, Metric, Values};
pub use counters::{Family, KeyspaceLabels, Sample, Telemetry, TelemetrySettings, Value};
pub use display::{KeyDisplay, KeyText, MAX_LABEL_CHARS, MAX_LOG_CHARS, escape};
#[cfg(feature = "service")]
pub use events::Events;
pub use gauges::{MAX_PARTITION_SERIES, MAX_SHARD_SERIES, MAX_TOP_KEYS, OTHER, PROCESS_METRICS};
pub use labels::{
    Bound, CommitResult, ConditionLabel, ConfigReload, ControlKind, ControlResult, Cut, EngineCut, HttpRefusal,
    KafkaErrorClass, Latch, Rebalance, Served, SubjectKind,
};
#[cfg(feature = "service")]
pub use log_limit::LogLimit;
pub use view::{
    ControlView, HotKeyView, KeyspaceView, MAX_LISTED_KEYS, MAX_LISTED_PLANS, MAX_LISTED_ROUTERS, MAX_LISTED_SHARDS,
    MapperView, PartitionView, PlanView, RouterView, ShardView, SourceView, View, WindowView,
};
