//! What the engine says: verdicts when something changes, and the heat of what is hot at any time.

use std::sync::Arc;

use super::settings::RuleKind;
use crate::units::{Estimate, EventTime, Rate, Share, Span};

/// Number of bucket counters a key: the load of every bucket for every power of two up to it.
pub const BUCKET_COUNTERS: usize = 256;

/// A change of what is known of one key or one shard.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Event time of the change.
    pub at: EventTime,
    /// Index of the keyspace in the configuration.
    pub keyspace: usize,
    /// What happened.
    pub change: Change,
    /// The key or shard.
    pub subject: Subject,
    /// The rule and the numbers that it compared.
    pub reason: Reason,
    /// What lies behind it.
    pub profile: Profile,
}

/// What lies behind the heat of a key or a shard.
#[derive(Debug, Clone, PartialEq)]
pub enum Profile {
    /// The requests behind a key.
    Key(Box<KeyProfile>),
    /// The keys behind a shard.
    Shard(Box<ShardProfile>),
}

/// The keys behind a shard, from half hot on.
///
/// Numbers of keys are of `sampled` events of the last one to two longest windows: their shares are what counts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ShardProfile {
    /// Why it is hot; none while nothing can be said.
    pub cause: Option<ShardCause>,
    /// Events that were looked at closely.
    pub sampled: u64,
    /// The busiest keys, the busiest first; at most [`MAX_LISTED_SHARD_KEYS`].
    pub keys: Vec<(Arc<[u8]>, Estimate)>,
    /// Share of events on keys that were first seen less than a longest window ago; none where too few first events are known.
    pub fresh: Option<Share>,
}

/// The most keys that a shard's profile lists.
pub const MAX_LISTED_SHARD_KEYS: usize = 16;

/// Why a shard is hot: the first that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ShardCause {
    /// One key makes at least half of what has to go for the shard to cool.
    OneKey,
    /// At most 16 keys make at least half of it.
    FewKeys,
    /// At least 80 % of its events are on keys that are new: writes move on along the keys, and whoever takes them is hot.
    MovingFront,
    /// Many keys.
    Broad,
}

impl ShardCause {
    /// Every cause.
    pub const ALL: [Self; 4] = [Self::OneKey, Self::FewKeys, Self::MovingFront, Self::Broad];

    /// The word in records, labels and the API.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::OneKey => "one_key",
            Self::FewKeys => "few_keys",
            Self::MovingFront => "moving_front",
            Self::Broad => "broad",
        }
    }
}

/// A key or a shard, as the bytes that came.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// A key of the keyspace.
    Key(Arc<[u8]>),
    /// A shard.
    Shard(Arc<[u8]>),
}

/// How the state of a key or shard changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Change {
    /// `upper >= threshold > lower`: it may be hot.
    Suspect,
    /// `lower >= threshold`: it is hot.
    Hot,
    /// It was hot or suspect and is no longer.
    Cleared,
}

/// The comparison behind a verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reason {
    /// The kind of rule.
    pub rule: RuleKind,
    /// Length of the window.
    pub window: Span,
    /// What the count was compared with, in events a window.
    pub threshold: u64,
    /// What is known of the count.
    pub count: Estimate,
    /// The median over active keys or known shards, where the window has one.
    pub median: Option<Estimate>,
    /// The number of keys or shards that it runs over.
    pub subjects: Estimate,
}

/// A hot or suspect key with all that planning needs.
#[derive(Debug, Clone, PartialEq)]
pub struct HotKey {
    /// Index of the keyspace in the configuration.
    pub keyspace: usize,
    /// The key.
    pub key: Arc<[u8]>,
    /// Event time at which it became hot; none while only suspect.
    pub hot_since: Option<EventTime>,
    /// The rule that raised it, with the numbers as they are now.
    pub reason: Reason,
    /// Highest confirmed rate over the shortest window since it became hot.
    pub peak: Rate,
    /// Rate over the shortest window now, by the lower bound.
    pub rate: Rate,
    /// The requests behind it.
    pub profile: KeyProfile,
}

/// The requests behind a key.
///
/// From half hot on its events are looked at closely; of a busy key a sample is, taken by chance. Numbers of shards, callers and
/// buckets are of `sampled` events of the last one to two longest windows: their shares are what counts.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyProfile {
    /// Event time since when its requests are counted one by one: it became a candidate.
    pub since: EventTime,
    /// Events by operation in the longest window, counted since then.
    pub operations: Operations,
    /// Sum of the weights of these events, at most the largest number.
    pub weight: u64,
    /// Events that were looked at closely.
    pub sampled: u64,
    /// Shards that served them, the busiest first; at most 32.
    pub shards: Vec<(Arc<[u8]>, Estimate)>,
    /// Callers, the busiest first; at most 16.
    pub callers: Vec<(Arc<[u8]>, Estimate)>,
    /// Events by the low 8 bits of the bucket hash with the plan's own seed; scans have none.
    pub buckets: Box<[u32; BUCKET_COUNTERS]>,
    /// Events without a request id that a bucket would have been chosen for.
    pub without_request_id: u64,
}

/// Events by operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Operations {
    /// Point reads.
    pub reads: u64,
    /// Writes and deletes.
    pub writes: u64,
    /// Scans.
    pub scans: u64,
    /// Events whose operation is not known.
    pub unknown: u64,
}

/// A known shard and its load in one window.
#[derive(Debug, Clone, PartialEq)]
pub struct ShardLoad {
    /// The shard.
    pub shard: Arc<[u8]>,
    /// Events in the window.
    pub count: Estimate,
    /// Event time at which it became hot, if it is.
    pub hot_since: Option<EventTime>,
    /// The keys behind a hot or suspect one.
    pub profile: Option<Box<ShardProfile>>,
}

/// How far the engine's answers can be trusted: states, visible, that stop decisions they would falsify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// The longest window has not been filled since the start (or since a partition was assigned).
    pub warming_up: bool,
    /// A partition has unread records and its event time is behind the clock by more than a window.
    pub catching_up: bool,
    /// Something is missing from the counts: a partition that exists is not counted here, is waited for no longer, or was taken away
    /// within the longest window.
    pub incomplete: bool,
    /// Partitions that are counted, of those that exist.
    pub completeness: Completeness,
    /// Unread records over all partitions; none while the end of one is unknown.
    pub lag: Option<u64>,
    /// Event time up to which all is counted; none before the first event.
    pub watermark: Option<EventTime>,
}

impl Condition {
    /// Nothing has been seen.
    pub const COLD: Self = Self {
        warming_up: true,
        catching_up: false,
        incomplete: true,
        completeness: Completeness { counted: 0, exist: 0 },
        lag: None,
        watermark: None,
    };

    /// True when decisions may be taken: what is counted is all there is, up to now, over whole windows.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        !self.warming_up && !self.catching_up && !self.incomplete
    }
}

/// Partitions whose records are counted, of those that exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completeness {
    /// Counted here.
    pub counted: usize,
    /// In the topic.
    pub exist: usize,
}

impl Completeness {
    /// True when every partition is counted; false when none exists.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        self.exist > 0 && self.counted >= self.exist
    }

    /// The counted part, from 0 to 1; 0 when none exists.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "numbers of partitions are far below 2^53")]
    pub fn share(self) -> f64 {
        if self.exist == 0 { 0.0 } else { self.counted.min(self.exist) as f64 / self.exist as f64 }
    }
}
