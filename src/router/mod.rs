//! The table that a router asks where a request goes, fed from the plan topic; reading it never blocks.

#[cfg(feature = "kafka")]
mod topic;

#[cfg(feature = "kafka")]
pub use topic::{FollowError, TopicFollower};
