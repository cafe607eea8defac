//! Access events become verdicts: counting in bounded memory, with bounds on every number.
//!
//! Pure: time is an argument, verdicts are values.

mod settings;
mod verdict;

pub use settings::{CountingSettings, HotOn, KeyspaceSettings, Rule, RuleKind, TimeSettings, WindowSettings};
pub use verdict::{BUCKET_COUNTERS, Change, Condition, HotKey, Operations, Reason, ShardLoad, Subject, Verdict};
