//! What planning is told: checked by `config/`, owned here.

use super::mapper::Mapper;
use crate::protocol::{History, Writes};
use crate::units::{Rate, Span};

/// How far the planner may go by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Verdicts only; nothing is published.
    Observe,
    /// Plans are published as proposed and wait.
    #[default]
    Propose,
    /// Plans are carried out.
    Auto,
}

/// How what lies in several buckets makes up a key again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Merge {
    /// A key has many records, each with an id of its own: all of them together.
    #[default]
    Union,
    /// A key is one object that every write replaces: nothing makes up one of several, so that it is never split.
    None,
}

/// Planning of one keyspace.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanSettings {
    /// Name of the keyspace.
    pub keyspace: String,
    /// Seed from which each key's plan seed is made.
    pub seed: u64,
    /// How far the planner may go.
    pub mode: Mode,
    /// How the keyspace's records are written.
    pub writes: Writes,
    /// How what lies in several buckets makes up a key again.
    pub merge: Merge,
    /// What becomes of records in the old layout.
    pub history: History,
    /// With `history = expire`: how long until the store has deleted what lay in the old layout.
    pub expire_after: Span,
    /// The load that one bucket may carry.
    pub bucket_rate: Rate,
    /// Room above the measured peak, as a share of it.
    pub headroom: f64,
    /// The most buckets of a split; a power of two up to 256.
    pub max_buckets: u32,
    /// A split must cut the hottest part by at least this factor, as predicted and as measured.
    pub min_gain: f64,
    /// The longest window of the keyspace: what a split did is measured over it.
    pub window: Span,
    /// How long a key rests after a split of it that did not help was undone.
    pub cooldown: Span,
    /// How the store maps keys to shards, where it is declared.
    pub mapper: Option<Mapper>,
    /// How long a split key must be cool before it is shrunk or withdrawn.
    pub quiet: Span,
    /// Only these keys are split; empty: every key may be.
    pub allow: Vec<Vec<u8>>,
    /// These keys are never split.
    pub block: Vec<Vec<u8>>,
}

impl PlanSettings {
    /// True when the lists keep a key as it is: it is among those that are never split, or not among those that may be.
    #[must_use]
    pub fn is_listed(&self, key: &[u8]) -> bool {
        let among = |list: &[Vec<u8>]| list.iter().any(|one| one == key);
        among(&self.block) || !self.allow.is_empty() && !among(&self.allow)
    }
}

/// Limits over all keyspaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetSettings {
    /// The most keys with a split layout at once.
    pub max_splits: usize,
    /// The most migrations begun in a minute.
    pub max_changes_per_minute: usize,
    /// The least time between the end of one migration of a key and the begin of the next.
    pub min_dwell: Span,
    /// Nothing new begins.
    pub freeze: bool,
}

impl Default for BudgetSettings {
    fn default() -> Self {
        Self { max_splits: 100, max_changes_per_minute: 10, min_dwell: Span::from_secs(300), freeze: false }
    }
}

/// Times of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtocolSettings {
    /// A hold that not every router has acknowledged by then is turned back.
    pub hold_limit: Span,
    /// The longest a store call can be in flight.
    pub call_limit: Span,
    /// No gate opens with fewer registered routers.
    pub expect_routers: usize,
    /// A proposed or prepare record that reached the log later than so long after its decision is void.
    pub not_after: Span,
    /// A key that went back to the bare layout keeps its record for so long before a tombstone ends it.
    pub tombstone_after: Span,
}

impl Default for ProtocolSettings {
    fn default() -> Self {
        Self {
            hold_limit: Span::from_secs(2),
            call_limit: Span::from_secs(30),
            expect_routers: 1,
            not_after: Span::from_secs(10),
            tombstone_after: Span::from_secs(7 * 86_400),
        }
    }
}
