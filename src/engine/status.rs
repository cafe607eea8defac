//! What the engine is told about its input, and what it says about itself.

use super::settings::RuleKind;
use crate::units::{Estimate, EventTime, Offset, Partition, Span};

/// How far a partition has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The partition.
    pub partition: Partition,
    /// The next record to read.
    pub position: Offset,
    /// One past the last record that exists; none while nobody knows, as with no broker.
    pub end: Option<Offset>,
    /// Reading is paused on purpose: the partition holds event time back and is never idle.
    pub paused: bool,
}

/// What a keyspace counts at this moment, with the limits that it ran into.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KeyspaceStatus {
    /// One entry a window, in the order of the settings.
    pub windows: Vec<WindowStatus>,
    /// Distinct keys since the start.
    pub keys_ever: Estimate,
    /// Keys with exact counters of their own.
    pub candidates: usize,
    /// Keys that are hot.
    pub hot: usize,
    /// Keys that may be hot.
    pub suspect: usize,
    /// Known shards.
    pub shards: usize,
    /// A key becomes a candidate from this part of the least threshold on: 1/8, more while the table is full.
    pub level: f64,
    /// A key with at least this count may be missed for want of room; none when every key that reaches a threshold is found.
    pub recall_above: Option<u64>,
    /// Events older than every window, not counted.
    pub too_late: u64,
    /// Keys that found no room among the candidates.
    pub candidates_cut: u64,
    /// Hot, suspect and planned keys beyond the limit of protected keys.
    pub protected_cut: u64,
    /// Events whose shard's name found no room or was too long.
    pub shards_cut: u64,
    /// In exact mode: panes with more names than their map holds, in which counts are bounds; each window's panes count.
    pub exact_panes_cut: u64,
    /// Verdicts that nobody fetched in time.
    pub verdicts_cut: u64,
    /// The most bytes that the keyspace takes.
    pub memory_bytes: u64,
}

/// One window of a keyspace.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowStatus {
    /// Its length.
    pub length: Span,
    /// Events that are compared (`hot_on`) in the newest window, its open pane included.
    pub events: u64,
    /// Distinct keys in the window when its last pane closed.
    pub keys: Estimate,
    /// Median over those keys; none without keys.
    pub median: Option<Estimate>,
    /// The least threshold in force.
    pub threshold: Option<u64>,
    /// See [`KeyspaceStatus::recall_above`], for this window.
    pub recall_above: Option<u64>,
    /// The window with its slack holds 2^32 events or more: counters may have wrapped. Then every upper bound is the number of the
    /// window's events, and no key is promised to be found.
    pub wrapped: bool,
    /// Event time from which on that is over, unless the table is full again: after a flood, or after thresholds fell, one window
    /// has to pass until every key was counted from the new level on.
    pub complete_from: Option<EventTime>,
    /// The rules for keys that no pattern matches, in the order of the settings.
    pub rules: Vec<RuleStatus>,
}

/// One rule in one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleStatus {
    /// Its kind.
    pub rule: RuleKind,
    /// A key is hot from this count on; none while the rule may raise suspicion only.
    pub hot_from: Option<u64>,
    /// A key may be hot from this count on; none while the rule says nothing.
    pub suspect_from: Option<u64>,
    /// Why it proves nothing now; none when it does.
    pub not_applicable: Option<NotApplicable>,
}

/// Why a rule proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotApplicable {
    /// A median over so few keys or shards says nothing.
    FewSubjects {
        /// So many there are.
        known: Estimate,
        /// So many it takes.
        needed: u64,
    },
    /// The window has not been watched from its begin to its end.
    WindowNotFull,
}

impl NotApplicable {
    /// The word in the API.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::FewSubjects { .. } => "few_keys",
            Self::WindowNotFull => "window_not_full",
        }
    }
}
