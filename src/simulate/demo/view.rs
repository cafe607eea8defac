//! What is shown of a running demo at one moment: plain data for the screen and for plain lines.

use core::net::SocketAddr;

use super::story::{Line, Migration, Reads};
use crate::protocol::Version;
use crate::units::{Estimate, Rate, Span};

/// The demo at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct DemoView {
    /// Since the start.
    pub elapsed: Span,
    /// How long it runs.
    pub length: Span,
    /// The shards, in the order of their numbers.
    pub shards: Vec<ShardLoadView>,
    /// Calls a second that a bar of full length stands for: the most that any shard has taken so far.
    pub scale_per_s: f64,
    /// Calls a second that one shard can serve.
    pub capacity_per_s: u32,
    /// The hottest shard as a multiple of the median: now.
    pub imbalance: Option<f64>,
    /// The highest before the split, and the last one after it.
    pub before_and_after: (Option<f64>, Option<f64>),
    /// What the service counts of the hottest keys.
    pub keys: Vec<KeyView>,
    /// The service does not decide yet, and why.
    pub waiting_for: Option<&'static str>,
    /// The hot client's migration, as the plan topic tells it.
    pub migration: Option<Migration>,
    /// The routers, as the acks topic tells it.
    pub routers: Vec<RouterStand>,
    /// Checked reads.
    pub reads: Reads,
    /// The clients' requests.
    pub requests: RequestsView,
    /// What happened, the oldest first.
    pub lines: Vec<Line>,
    /// How many lines there were before those.
    pub lines_cut: usize,
    /// What is missing until the loop is closed; none when it is.
    pub missing: Option<&'static str>,
    /// Where `/metrics` is.
    pub http: Option<SocketAddr>,
}

/// One shard's load.
#[derive(Debug, Clone, PartialEq)]
pub struct ShardLoadView {
    /// Its name.
    pub name: String,
    /// Calls a second that were sent to it.
    pub calls_per_s: f64,
}

/// What the service knows of one key.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyView {
    /// The key, escaped.
    pub key: String,
    /// True when it is surely hot; else it may be.
    pub confirmed: bool,
    /// Requests in the window.
    pub count: Estimate,
    /// Length of the window.
    pub window: Span,
    /// What the count is compared with.
    pub threshold: u64,
    /// Requests a second now, by the lower bound.
    pub rate: Rate,
}

/// Where one router stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterStand {
    /// Its name.
    pub id: String,
    /// The newest version that it has applied; none before it has joined.
    pub applied: Option<Version>,
    /// It has acknowledged the plan's newest record.
    pub acknowledged: bool,
}

/// The clients' requests in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestsView {
    /// Sent to routers.
    pub sent: u64,
    /// Refused by a shard that had too many waiting.
    pub refused: u64,
    /// Writes that wait for their key now.
    pub waiting: usize,
    /// The longest that a write has waited.
    pub longest_wait: Span,
    /// Writes that were given up after waiting too long, and requests that a router refused.
    pub failed: u64,
    /// Access events that Kafka has taken.
    pub events: u64,
    /// Access events that were lost on their way.
    pub events_lost: u64,
}
