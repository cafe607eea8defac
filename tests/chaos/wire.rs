//! What callers and a router's process say to each other: one JSON value a line.

use serde::{Deserialize, Serialize};

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Operation {
    Write,
    InPlace,
    Delete,
    Read,
}

/// Where does this request go?
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) operation: Operation,
    pub(crate) keyspace: String,
    pub(crate) key: String,
    pub(crate) id: String,
}

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// There; the router keeps the placement until it is told how the call has ended.
    Placed(Placed),
    /// The write waited in hold for so long, and should fail.
    Held { waited_us: u64 },
    /// Nowhere.
    Refused(String),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Placed {
    /// Keys of the store: of a write one, of a read all to look in, in this order.
    pub(crate) places: Vec<String>,
    /// Of a write in place: older places from which the record is promoted.
    pub(crate) older: Vec<String>,
    /// Of a delete: take the record away instead of writing a tombstone.
    pub(crate) removes: bool,
    /// Of a read: of all records found the one with the highest version counts, else the first found.
    pub(crate) highest: bool,
    /// The plan's version.
    pub(crate) version: Option<(u64, u64)>,
    /// How long the write waited in hold; none when it did not.
    pub(crate) waited_us: Option<u64>,
}

/// How a call has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ending {
    /// It is over.
    Over,
    /// The caller does not know; it may still land, until the call limit has passed.
    Unknown,
}

/// What a router's process is told when it starts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RouterOrder {
    pub(crate) id: String,
    pub(crate) brokers: String,
    pub(crate) plan_topic: String,
    pub(crate) acks_topic: String,
    pub(crate) snapshot: String,
    pub(crate) call_limit_ms: u64,
    /// A rule that it does not keep.
    pub(crate) breaks: Option<String>,
}
