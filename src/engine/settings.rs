//! What the engine is told: checked by `config/`, owned here.

use super::rules::KeyPattern;
use crate::units::{Rate, Share, Span};

/// One keyspace: how its keys are counted and when one of them is hot.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyspaceSettings {
    /// Its name: 1 to 64 of `a-z`, `0-9`, `_`, `-`.
    pub name: String,
    /// One or two windows, the shorter one first.
    pub windows: Vec<WindowSettings>,
    /// Rules for keys; a key is hot when one of them holds in one of the windows.
    pub key_rules: Vec<Rule>,
    /// Other rules for keys that match a pattern, in the order in which patterns are tried; at most [`MAX_OVERRIDES`].
    pub overrides: Vec<RuleOverride>,
    /// Rules for shards.
    pub shard_rules: Vec<Rule>,
    /// The relative rule applies from so many active keys on.
    pub min_keys: u64,
    /// A hot key clears below this share of its threshold.
    pub clear: Share,
    /// It must stay below for so long.
    pub clear_after: Span,
    /// Which operations are compared with thresholds.
    pub hot_on: HotOn,
    /// Shards that are known beforehand; others become known when they are seen.
    pub declared_shards: Vec<Vec<u8>>,
    /// How long a shard that was seen stays known.
    pub shard_memory: Span,
    /// Seed from which each key's plan seed is made, so that bucket counters predict what the key's plan would do.
    pub plan_seed: u64,
    /// Shape and limits of the counting structure.
    pub counting: CountingSettings,
}

impl Default for KeyspaceSettings {
    /// Without a name, windows, rules and declared shards; seeds are zero.
    fn default() -> Self {
        Self {
            name: String::new(),
            windows: Vec::new(),
            key_rules: Vec::new(),
            overrides: Vec::new(),
            shard_rules: Vec::new(),
            min_keys: 8,
            clear: Share::new(0.7).unwrap_or_default(),
            clear_after: Span::from_secs(30),
            hot_on: HotOn::default(),
            declared_shards: Vec::new(),
            shard_memory: Span::from_secs(600),
            plan_seed: 0,
            counting: CountingSettings::default(),
        }
    }
}

/// A setting that cannot change while the engine counts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("keyspace '{keyspace}': {setting} cannot change while it runs; restart to change it")]
pub struct FixedSetting {
    /// The keyspace.
    pub keyspace: String,
    /// The setting, as the configuration calls it.
    pub setting: &'static str,
}

impl KeyspaceSettings {
    /// The first setting, other than rules, in which both differ.
    pub(crate) fn fixed_difference(&self, other: &Self) -> Option<&'static str> {
        let fixed = [
            ("name", self.name == other.name),
            ("windows", self.windows == other.windows),
            ("hot_on", self.hot_on == other.hot_on),
            ("shards", self.declared_shards == other.declared_shards),
            ("shard_memory", self.shard_memory == other.shard_memory),
            ("seed", self.plan_seed == other.plan_seed && self.counting.seed == other.counting.seed),
            ("the size of sketch, sample or candidates", self.counting == other.counting),
        ];
        fixed.into_iter().find(|(_, is_same)| !is_same).map(|(name, _)| name)
    }
}

/// Everything that the engine is told.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineSettings {
    /// One entry a keyspace, in the order of the configuration.
    pub keyspaces: Vec<KeyspaceSettings>,
    /// How event time moves, the same for all keyspaces.
    pub time: TimeSettings,
}

/// A sliding window: `length` is a whole number of panes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSettings {
    /// How far back the window reaches.
    pub length: Span,
    /// The step by which it slides. Of two windows the longer one's pane is a multiple of the shorter one's.
    pub pane: Span,
}

/// Shape and limits of the counting structure; seed and shape are part of its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountingSettings {
    /// Rows of the count-min sketch.
    pub depth: usize,
    /// Cells a row, as a power of two.
    pub width_log2: u32,
    /// Seed of the key hash: a secret shared by all instances whose counts are merged.
    pub seed: u64,
    /// The most keys with exact counters of their own.
    pub max_candidates: usize,
    /// The most keys, hot, suspect or planned, that are never evicted.
    pub max_protected: usize,
    /// `k` of the key sample: a pane with at most 2k names is exact.
    pub sample_k: usize,
    /// Bounds from a sketch, or every count exact.
    pub mode: CountingMode,
}

/// How keys are counted that have no counters of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CountingMode {
    /// By the sketch; exact in panes with at most `2 x sample_k` names.
    #[default]
    Sketch,
    /// By a map a pane, while no pane has more names than this; a pane with more falls back to bounds.
    Exact {
        /// Names that a pane's map holds.
        max_keys: usize,
    },
}

impl CountingSettings {
    /// Names that a pane lists at most, each with its exact count; in a pane with more a sample of them stays.
    #[must_use]
    pub fn listed(&self) -> usize {
        match self.mode {
            CountingMode::Sketch => self.sample_k.max(1).saturating_mul(2),
            CountingMode::Exact { max_keys } => max_keys.max(2),
        }
    }
}

impl Default for CountingSettings {
    fn default() -> Self {
        Self {
            depth: 4,
            width_log2: 16,
            seed: 0,
            max_candidates: 4096,
            max_protected: 1000,
            sample_k: 4096,
            mode: CountingMode::Sketch,
        }
    }
}

/// When a key or a shard is hot. The comparison is inclusive: `count >= threshold`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// At least `rate` over the window.
    Absolute {
        /// Events per second.
        rate: Rate,
    },
    /// At least `multiple` times the median over active keys (or known shards), and at least `floor`.
    Relative {
        /// How many times the median.
        multiple: f64,
        /// Events in the window, whatever its length; at least 1.
        floor: u64,
    },
    /// At least this share of all events of the window, and at least `floor`.
    Share {
        /// Of all events.
        share: Share,
        /// Events in the window, whatever its length; at least 1.
        floor: u64,
    },
}

impl Rule {
    /// The kind of rule, for records and labels.
    #[must_use]
    pub const fn kind(&self) -> RuleKind {
        match self {
            Self::Absolute { .. } => RuleKind::Absolute,
            Self::Relative { .. } => RuleKind::Relative,
            Self::Share { .. } => RuleKind::Share,
        }
    }
}

/// The most sets of rules of a keyspace beside that of all keys.
pub const MAX_OVERRIDES: usize = super::rules::MAX_OVERRIDES;

/// Rules for some keys of a keyspace, e.g. one tenant's, in place of those for all keys.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleOverride {
    /// Which keys.
    pub keys: KeyPattern,
    /// When one of them is hot.
    pub rules: Vec<Rule>,
}

/// The three kinds of rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RuleKind {
    /// By rate.
    Absolute,
    /// By the median.
    Relative,
    /// By the share of all events.
    Share,
}

impl RuleKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Absolute, Self::Relative, Self::Share];

    /// The word in records, labels and on the command line.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Absolute => "absolute",
            Self::Relative => "relative",
            Self::Share => "share",
        }
    }
}

/// Which operations are compared with thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HotOn {
    /// Every event.
    #[default]
    All,
    /// Reads and scans.
    Reads,
    /// Writes and deletes.
    Writes,
}

/// How event time moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSettings {
    /// How far events of one partition may be out of order.
    pub disorder: Span,
    /// How far an event may be ahead of the clock.
    pub max_ahead: Span,
    /// A partition that was read to its end and gave no event for so long holds nothing back.
    pub idle_timeout: Span,
}

impl Default for TimeSettings {
    fn default() -> Self {
        Self { disorder: Span::from_secs(2), max_ahead: Span::from_secs(5), idle_timeout: Span::from_secs(5) }
    }
}
