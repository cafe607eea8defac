//! The table kept up to date from Kafka, and acknowledged: what a router starts once and forgets.
//!
//! # Joining
//!
//! A router without a snapshot appends its record to the acks topic, then asks where the plan topic ends and reads up to there,
//! holds the digest of the last heartbeat against its own, writes its snapshot, and only then places requests. No living leader
//! is needed. One with a snapshot places requests at once, without Kafka too, and acknowledges nothing until the longest call of
//! its former life must be over.
//!
//! # Leaving
//!
//! [`Router::shutdown`] places nothing more, waits for the requests in flight, and takes the router's record off the acks topic. A
//! router that ends otherwise stays registered, and every plan waits for it: until it comes back with its snapshot, or an operator
//! drops it.

mod ack;
mod feed;
mod kept;
mod running;
mod settings;
mod snapshot;
mod wait;
mod worker;

pub use running::{Departure, Router, RouterError, RouterStatus, Stage};
pub use settings::{ACKS_TOPIC, PLAN_TOPIC, RouterSettings};
pub use snapshot::SnapshotError;
