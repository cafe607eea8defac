//! Access events become verdicts: counting in bounded memory, with bounds on every number.
//!
//! Pure: time is an argument, verdicts are values.

mod settings;
mod status;
mod verdict;

pub use settings::{
    CountingSettings, EngineSettings, HotOn, KeyspaceSettings, Rule, RuleKind, TimeSettings, WindowSettings,
};
pub use status::{KeyspaceStatus, Progress, WindowStatus};
pub use verdict::{BUCKET_COUNTERS, Change, Condition, HotKey, Operations, Reason, ShardLoad, Subject, Verdict};
