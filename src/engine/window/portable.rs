//! A window as a value: what one keyspace of one instance has counted, to be merged, carried and gone on from.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::settings::{KeyspaceSettings, TimeSettings};
use super::super::sketch::{Median, key_hash};
use super::bars::Bars;
use super::identity::{Identity, Mismatch};
use super::key_counts::{Facts, KeyCounts, window_ending_at};
use super::timeline::{MAX_WINDOWS, Timeline, index};
use crate::units::Estimate;

/// A key with exact counters of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) hash: u64,
    /// Bounds a pane that still matters, in the order of [`spots`].
    pub(super) panes: Box<[Estimate]>,
}

/// A shard's exact counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListedShard {
    /// Event time of its newest event in milliseconds; none for one that is only declared.
    pub(super) seen_ms: Option<i64>,
    /// Events a pane that still matters, in the order of [`spots`].
    pub(super) panes: Box<[u64]>,
}

/// What one keyspace of one instance has counted in the panes that still matter: every key's bounds, the sample of keys, the
/// exact counts of candidates and of shards.
///
/// A value: taken from an engine ([`Engine::window`]), added to another instance's ([`Window::merge`]), carried as bytes
/// ([`Window::to_bytes`]), gone on from ([`Engine::restore`]). Shape and seed of the counting structure are its identity; what
/// differs in it is refused. Everything said about it is as of its newest pane.
///
/// It holds keys and seeded hashes. Whoever sees a key beside its hash can work out the seed, so the bytes are as secret as the
/// seed and as private as the keys.
///
/// [`Engine::window`]: crate::engine::Engine::window
/// [`Engine::restore`]: crate::engine::Engine::restore
#[derive(Clone)]
pub struct Window {
    pub(super) identity: Identity,
    pub(super) seed: u64,
    /// The most keys with counters of their own, and those that found no room.
    pub(super) max_keys: usize,
    pub(super) timeline: Timeline,
    pub(super) counts: KeyCounts,
    /// All is seen from this event time on.
    pub(super) since_ms: i64,
    /// The admission level, a part of the least threshold.
    pub(super) level: f64,
    pub(super) bars: Bars,
    /// Events of panes that a merge left out, for each window.
    pub(super) left_out: [u64; MAX_WINDOWS],
    pub(super) keys: BTreeMap<Arc<[u8]>, Listed>,
    pub(super) shards: BTreeMap<Arc<[u8]>, ListedShard>,
    /// Shards that found no room in a merge.
    pub(super) shards_cut: u64,
}

/// The seed does not reach a log by way of `{:?}`.
impl std::fmt::Debug for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Window")
            .field("identity", &self.identity)
            .field("head", &self.timeline.started().then(|| self.timeline.mark(0).head))
            .field("keys", &self.keys.len())
            .field("shards", &self.shards.len())
            .finish_non_exhaustive()
    }
}

/// What an engine's keyspace knows, borrowed.
pub(crate) struct Parts<'a> {
    pub(crate) timeline: &'a Timeline,
    pub(crate) counts: &'a KeyCounts,
    pub(crate) since_ms: i64,
    pub(crate) level: f64,
    pub(crate) bars: Bars,
}

impl Window {
    /// The window of a keyspace that has seen nothing: merged with, it changes nothing.
    #[must_use]
    pub fn new(settings: &KeyspaceSettings, time: &TimeSettings) -> Self {
        let timeline = Timeline::new(&settings.windows, time);
        let counts = KeyCounts::new(&settings.counting, &timeline);
        let parts =
            Parts { timeline: &timeline, counts: &counts, since_ms: i64::MAX, level: 0.0, bars: Bars::default() };
        Self::of(settings, parts)
    }

    /// The window of a keyspace, so far without candidates and shards.
    pub(crate) fn of(settings: &KeyspaceSettings, parts: Parts<'_>) -> Self {
        Self {
            identity: Identity::of(settings, parts.timeline),
            seed: settings.counting.seed,
            max_keys: settings.counting.max_candidates,
            timeline: parts.timeline.clone(),
            counts: parts.counts.clone(),
            since_ms: parts.since_ms,
            level: parts.level,
            bars: parts.bars,
            left_out: [0; MAX_WINDOWS],
            keys: BTreeMap::new(),
            shards: BTreeMap::new(),
            shards_cut: 0,
        }
    }

    /// Lists a candidate with its bounds a pane.
    pub(crate) fn list(&mut self, key: &Arc<[u8]>, bound: impl Fn(usize, i64) -> Estimate) {
        let panes = spots(&self.timeline).map(|(window, pane)| bound(window, pane)).collect();
        self.keys.insert(Arc::clone(key), Listed { hash: key_hash(key, self.seed), panes });
    }

    /// Lists a shard with its counts a pane.
    pub(crate) fn list_shard(&mut self, name: &Arc<[u8]>, seen_ms: Option<i64>, count: impl Fn(usize, i64) -> u64) {
        let panes = spots(&self.timeline).map(|(window, pane)| count(window, pane)).collect();
        self.shards.insert(Arc::clone(name), ListedShard { seen_ms, panes });
    }

    /// True when nothing was ever counted.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        !self.timeline.started()
    }

    /// Number of windows; the shortest has number 0.
    #[must_use]
    pub const fn windows(&self) -> usize {
        self.timeline.windows()
    }

    /// Events in the newest window.
    #[must_use]
    pub fn events(&self, window: usize) -> u64 {
        self.newest(window).map_or(0, |(from, to)| self.counts.events(&self.timeline, window, from, to))
    }

    /// Bounds of a key's count in the newest window: `lower <= true <= upper` for every key.
    #[must_use]
    pub fn estimate(&self, window: usize, key: &[u8]) -> Estimate {
        let Some((from, to)) = self.newest(window) else { return Estimate::default() };
        let hash = key_hash(key, self.seed);
        let total = self.counts.window_bound(&self.timeline, window, from, to, hash);
        let listed = self.keys.get(key).map(|listed| sum(&self.timeline, &listed.panes, window, from, to));
        let upper_events = self.events(window);
        let best = listed.map_or(total, |listed| listed.best(total));
        if self.counts.wraps(&self.timeline, window) { Estimate { upper: upper_events, ..best } } else { best }
    }

    /// The `limit` candidates with the highest counts in the newest window, the busiest first.
    #[must_use]
    pub fn top_keys(&self, window: usize, limit: usize) -> Vec<(Arc<[u8]>, Estimate)> {
        let mut keys: Vec<_> = self.keys.keys().map(|key| (Arc::clone(key), self.estimate(window, key))).collect();
        keys.sort_by(|a, b| (b.1.lower, b.1.upper).cmp(&(a.1.lower, a.1.upper)).then_with(|| a.0.cmp(&b.0)));
        keys.truncate(limit);
        keys
    }

    /// Every key with at least this count in the newest window is among the candidates.
    #[must_use]
    pub fn complete_above(&self, window: usize) -> u64 {
        if window >= self.windows() {
            return 0;
        }
        let oldest = self.timeline.mark(window).oldest;
        self.bars.since(if window == 0 { oldest } else { self.timeline.first_short(oldest) })[window]
    }

    /// Number of distinct keys in the newest window.
    #[must_use]
    pub fn keys(&self, window: usize) -> Estimate {
        self.facts(window).keys
    }

    /// Median of their counts; none without keys.
    #[must_use]
    pub fn median(&self, window: usize) -> Option<Estimate> {
        self.facts(window).median.map(Median::estimate)
    }

    /// A digest of every pane that still matters: that of an engine ([`Engine::digest`]) that counted the same events.
    ///
    /// [`Engine::digest`]: crate::engine::Engine::digest
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.counts.digest(&self.timeline)
    }

    /// Events of panes that merges left out, since not every part still held these panes whole; 0 where there is no such window.
    #[must_use]
    pub fn left_out(&self, window: usize) -> u64 {
        self.left_out.get(window).copied().unwrap_or(0)
    }

    /// True when the window with its slack holds 2^32 events or more: counters may have wrapped, and every upper bound is the number
    /// of the window's events.
    #[must_use]
    pub fn is_wrapped(&self, window: usize) -> bool {
        window < self.windows() && self.counts.wraps(&self.timeline, window)
    }

    /// Shards that merges left out for want of room.
    #[must_use]
    pub const fn shards_cut(&self) -> u64 {
        self.shards_cut
    }

    pub(crate) const fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    pub(crate) const fn counts(&self) -> &KeyCounts {
        &self.counts
    }

    pub(crate) const fn since_ms(&self) -> i64 {
        self.since_ms
    }

    pub(crate) const fn level(&self) -> f64 {
        self.level
    }

    pub(crate) const fn bars(&self) -> &Bars {
        &self.bars
    }

    /// Candidates with their hash and their bounds a pane.
    pub(crate) fn listed(&self) -> impl Iterator<Item = (&[u8], u64, &[Estimate])> {
        self.keys.iter().map(|(key, listed)| (&**key, listed.hash, &*listed.panes))
    }

    /// Shards with their newest event and their counts a pane.
    pub(crate) fn listed_shards(&self) -> impl Iterator<Item = (&[u8], Option<i64>, &[u64])> {
        self.shards.iter().map(|(name, shard)| (&**name, shard.seen_ms, &*shard.panes))
    }

    /// The same with at most so many candidates.
    pub(crate) fn with_room_for(&self, max_keys: usize) -> Cow<'_, Self> {
        if self.keys.len() <= max_keys {
            return Cow::Borrowed(self);
        }
        let mut smaller = Self { max_keys, ..self.clone() };
        smaller.drop_least();
        Cow::Owned(smaller)
    }

    /// Refuses a window that a keyspace with these settings and this timeline cannot go on from.
    pub(crate) fn check(&self, settings: &KeyspaceSettings, timeline: &Timeline) -> Result<(), Mismatch> {
        Identity::of(settings, timeline).check(&self.identity)
    }

    fn facts(&self, window: usize) -> Facts {
        self.newest(window).map_or_else(Facts::default, |_| self.counts.head_facts(&self.timeline, window))
    }

    /// First and last pane of the newest window, when there is one.
    fn newest(&self, window: usize) -> Option<(i64, i64)> {
        let exists = self.timeline.started() && window < self.windows();
        exists.then(|| window_ending_at(&self.timeline, window, self.timeline.mark(window).head))
    }
}

/// The panes that still matter, those of the shorter window first, the oldest first: the order of counts in lists.
pub(super) fn spots(timeline: &Timeline) -> impl Iterator<Item = (usize, i64)> {
    let windows = if timeline.started() { timeline.windows() } else { 0 };
    let marks = [timeline.mark(0), timeline.mark(1)];
    (0..windows).flat_map(move |window| {
        let mark = marks.get(window).copied().unwrap_or_default();
        (mark.oldest..=mark.head).map(move |pane| (window, pane))
    })
}

/// The place of a pane in that order; none for one that no longer matters.
pub(crate) fn spot(timeline: &Timeline, window: usize, pane: i64) -> Option<usize> {
    let mark = timeline.mark(window);
    let before = if window == 0 { 0 } else { timeline.mark(0).head - timeline.mark(0).oldest + 1 };
    (pane >= mark.oldest && pane <= mark.head).then(|| index(before + pane - mark.oldest))
}

/// Bounds over the panes `from..=to`.
pub(super) fn sum(timeline: &Timeline, panes: &[Estimate], window: usize, from: i64, to: i64) -> Estimate {
    let first = spot(timeline, window, from.max(timeline.mark(window).oldest)).unwrap_or(0);
    let wanted = panes.get(first..).unwrap_or_default().iter().take(index(to - from + 1));
    wanted.fold(Estimate::default(), |sum, pane| Estimate {
        lower: sum.lower + pane.lower,
        upper: sum.upper + pane.upper,
    })
}
