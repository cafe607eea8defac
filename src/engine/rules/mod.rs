//! When a count is hot: thresholds in force, and the memory that keeps a verdict from flapping.

mod heat;
mod levels;

pub(crate) use heat::{Calm, Heat, Seen};
pub(crate) use levels::{Basis, Levels};
