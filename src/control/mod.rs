//! The plan topic and the acks topic as the leader uses them: claim, publish, reconcile, read acks.
//!
//! Without the feature `kafka` there is who may publish, and nothing that does.

#[cfg(all(feature = "kafka", feature = "schema"))]
mod asyncapi;
#[cfg(feature = "kafka")]
mod forget;
#[cfg(feature = "kafka")]
mod group;
mod leadership;
#[cfg(feature = "kafka")]
mod publisher;
mod survey;
#[cfg(feature = "kafka")]
mod topic_admin;
#[cfg(feature = "kafka")]
mod topics;
#[cfg(feature = "kafka")]
mod whole;

#[cfg(all(feature = "kafka", feature = "schema"))]
pub use asyncapi::asyncapi;
#[cfg(feature = "kafka")]
pub use forget::{ForgetError, forget_router};
#[cfg(feature = "kafka")]
pub use group::{LeaderGroup, Ownership};
pub use leadership::{Draft, Leadership, Outgoing, Purpose, Send};
#[cfg(feature = "kafka")]
pub use publisher::{Published, Publisher, about, control_kind};
pub use survey::{Finding, Level, Survey};
#[cfg(feature = "kafka")]
pub use topic_admin::{Created, TopicAdmin, TopicsError, Verified};
#[cfg(feature = "kafka")]
pub use topics::{Accepts, TopicFault, TopicSetting, TopicSpec};
#[cfg(feature = "kafka")]
pub use whole::{ReadError, read_whole};
