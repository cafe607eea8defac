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
mod status;
mod verdict;
mod window;

pub use keyspace::RestoreError;
pub use pipeline::Engine;
pub use settings::{
    CountingMode, CountingSettings, EngineSettings, HotOn, KeyspaceSettings, Rule, RuleKind, TimeSettings,
    WindowSettings,
};
pub use status::{KeyspaceStatus, Progress, WindowStatus};
pub use verdict::{
    BUCKET_COUNTERS, Change, Completeness, Condition, HotKey, KeyProfile, Operations, Reason, ShardLoad, Subject, Verdict,
};
pub use window::{MergeError, Mismatch, ReadError, Window};
