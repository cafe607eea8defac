//! When a count is hot: thresholds in force, and the memory that keeps a verdict from flapping.

mod heat;
mod levels;
mod pattern;
mod sets;

pub(crate) use heat::{Calm, Heat, Seen};
pub(crate) use levels::{Basis, Levels};
pub use pattern::{InvalidPattern, KeyPattern, MAX_PATTERN_BYTES, MAX_PATTERN_STARS};
pub(crate) use sets::{MAX_OVERRIDES, RuleSets, SetNumber};
