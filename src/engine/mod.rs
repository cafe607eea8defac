//! Access events become verdicts: counting in bounded memory, with bounds on every number.
//!
//! Pure: time is an argument, verdicts are values.

mod alignment;
mod keyspace;
mod outbox;
mod pipeline;
mod rules;
mod settings;
mod sketch;
mod splittable;
mod status;
mod verdict;
mod window;

pub use keyspace::RestoreError;
pub use pipeline::Engine;
pub use rules::{InvalidPattern, KeyPattern, MAX_PATTERN_BYTES, MAX_PATTERN_STARS};
pub use settings::{
    CountingMode, CountingSettings, EngineSettings, FixedSetting, HotOn, KeyspaceSettings, MAX_OVERRIDES, Rule,
    RuleKind, RuleOverride, TimeSettings, WindowSettings,
};
pub(crate) use sketch::scatter;
pub use splittable::{
    BUCKET_NOISE, BUCKET_POWERS, EVENTS_PER_BUCKET, MAX_WITHOUT_ID, Splittable, Spread, hottest_buckets,
};
pub use status::{KeyspaceStatus, NotApplicable, Progress, RuleStatus, WindowStatus};
pub use verdict::{
    BUCKET_COUNTERS, Change, Completeness, Condition, HotKey, KeyProfile, MAX_LISTED_SHARD_KEYS, Operations, Profile,
    Reason, ShardCause, ShardLoad, ShardProfile, Subject, Verdict,
};
pub use window::{MergeError, Mismatch, ReadError, Window};
