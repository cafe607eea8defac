//! The plan topic and the acks topic as the leader uses them: claim, publish, reconcile, read acks.

mod group;
mod leadership;

pub use group::{LeaderGroup, Ownership};
pub use leadership::{Leadership, Outgoing, Send};
