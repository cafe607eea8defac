//! Decisions are values: what should be sent to the plan topic. Something else carries them out.

use crate::protocol::{PlanKey, PlanRecord};

/// One record to send.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// A plan's next record.
    Put(Box<PlanRecord>),
    /// A tombstone: the key is back in the bare layout for long enough.
    Remove(PlanKey),
    /// Advice on what to do other than split.
    Advise(Box<Advice>),
    /// The advice no longer holds.
    Unadvise(PlanKey),
}

/// Advice: a record, never a layout.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Advice {
    /// [`crate::protocol::SCHEMA`].
    pub schema: u32,
    /// Name of the keyspace.
    pub keyspace: String,
    /// The key.
    #[serde(flatten)]
    pub key: crate::protocol::KeyField,
    /// What to do.
    pub action: Action,
    /// Why, in one sentence, with the numbers.
    pub reason: String,
    /// The numbers behind it.
    pub evidence: crate::protocol::Evidence,
    /// RFC 3339.
    pub decided_at: String,
}

/// What to do other than split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Mostly reads: cache or replicate.
    CacheOrReplicate,
    /// One caller or one request id makes the heat: limit it.
    Limit,
    /// Full overwrites of one object: coalesce.
    Coalesce,
    /// Even the most buckets are not enough: a shard of its own.
    Isolate,
}
