//! What would have been decided: the engine and the planner over recorded events, with event time alone.
//!
//! Pure: the same records and settings give the same decisions, whenever and wherever they are replayed.

mod decision;
mod look_ahead;
mod paper_topic;
mod replay;

pub use decision::{
    Behind, Decision, KeyBehind, KeyspaceSummary, MAX_LISTED, MapperSummary, PartOf, ShardBehind, Summary,
};
pub use look_ahead::LOOK_AHEAD;
pub use replay::{MAX_FLAGGED, Replay, ReplaySettings};
