//! The plan topic and the acks topic as the leader uses them: claim, publish, reconcile, read acks.

#[cfg(feature = "schema")]
mod asyncapi;
mod group;
mod leadership;
mod publisher;
mod topic_admin;
mod topics;

#[cfg(feature = "schema")]
pub use asyncapi::asyncapi;
pub use group::{LeaderGroup, Ownership};
pub use leadership::{Draft, Leadership, Outgoing, Purpose, Send};
pub use publisher::{Published, Publisher, about, control_kind};
pub use topic_admin::{Created, TopicAdmin, TopicsError, Verified};
pub use topics::{Accepts, TopicFault, TopicSetting, TopicSpec};
