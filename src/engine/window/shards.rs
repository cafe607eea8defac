//! Exact counts of shards by name: few enough to need no sketch.

use std::sync::Arc;

use hashbrown::HashTable;

use super::super::rules::Heat;
use super::super::sketch::key_hash;
use super::near::Near;
use super::shard_detail::ShardDetail;
use super::tally::Tally;
use super::timeline::{Place, Timeline, index};

/// The most shards known at once.
pub(crate) const MAX_SHARDS: usize = 4096;
/// The most shards with detail (the keys behind them) at once.
pub(crate) const MAX_SHARD_DETAILS: usize = 16;
/// The longest name of a shard.
pub(crate) const MAX_SHARD_BYTES: usize = 256;

/// A known shard.
#[derive(Debug, Clone)]
pub(crate) struct Shard {
    near: Near,
    /// Its counts.
    pub(crate) tally: Tally,
    /// Event time of its newest event, in milliseconds.
    newest_ms: i64,
    declared: bool,
    /// Its name.
    pub(crate) name: Arc<[u8]>,
    hash: u64,
    /// Whether it is hot.
    pub(crate) heat: Heat,
    /// From half hot on.
    pub(crate) detail: Option<Box<ShardDetail>>,
}

/// In place of the time of a shard's newest event when it has had none.
const NEVER_MS: i64 = i64::MIN;

impl Shard {
    /// Event time of its newest event in milliseconds; none for one that is only declared.
    pub(crate) fn seen_ms(&self) -> Option<i64> {
        Some(self.newest_ms).filter(|newest| *newest != NEVER_MS)
    }

    #[inline]
    fn is(&self, near: Near, name: &[u8]) -> bool {
        self.near == near && (near.is_whole() || *self.name == *name)
    }

    /// The next pane has been opened.
    pub(crate) fn roll(&mut self, timeline: &Timeline, long_too: bool) {
        self.heat.note(self.tally.head()[0].lower);
        self.tally.roll(timeline, long_too);
    }
}

/// Known shards: declared ones, and those seen not too long ago.
#[derive(Debug)]
pub(crate) struct Shards {
    index: HashTable<(u64, usize)>,
    all: Vec<Shard>,
    seed: u64,
    memory_ms: i64,
    cut: u64,
    /// Places of shards seen lately, by a slot of their names: most events need no hash of the name.
    recent: Box<[u16]>,
}

/// Places kept of shards seen lately, as a power of two: so many that few of the shards share one.
const RECENT_LOG2: u32 = 12;

impl Shards {
    /// Only the declared ones are known.
    pub(crate) fn new(declared: &[Vec<u8>], seed: u64, memory_ms: i64, timeline: &Timeline) -> Self {
        let (index, all, recent) = (HashTable::new(), Vec::new(), vec![0; 1 << RECENT_LOG2].into_boxed_slice());
        let mut shards = Self { index, all, seed, memory_ms, cut: 0, recent };
        for name in declared {
            let hash = key_hash(name, seed);
            match shards.position(hash, name).or_else(|| shards.insert(hash, name, timeline)) {
                Some(at) => shards.all[at].declared = true,
                None => shards.cut += 1,
            }
        }
        shards
    }

    /// The most bytes that this structure takes.
    pub(crate) fn max_bytes(timeline: &Timeline) -> u64 {
        let each = size_of::<Shard>()
            + Tally::max_heap_bytes(timeline)
            + MAX_SHARD_BYTES
            + 16
            + 2 * size_of::<(u64, usize)>()
            + 2;
        (MAX_SHARDS * each + (2 << RECENT_LOG2)) as u64 + MAX_SHARD_DETAILS as u64 * ShardDetail::MAX_BYTES
    }

    /// How many are known.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Events whose shard found no room, and declared ones that did not.
    pub(crate) const fn cut(&self) -> u64 {
        self.cut
    }

    /// The place in the list of a shard that served an event; none when the event names none or there is no room.
    #[inline]
    pub(crate) fn see(&mut self, name: &[u8], time_ms: i64, timeline: &Timeline) -> Option<usize> {
        if name.is_empty() { None } else { self.see_named(name, time_ms, timeline) }
    }

    fn see_named(&mut self, name: &[u8], time_ms: i64, timeline: &Timeline) -> Option<usize> {
        let (near, slot, recent) = self.recent(name);
        if let Some(shard) = self.all.get_mut(recent).filter(|shard| shard.is(near, name)) {
            shard.newest_ms = shard.newest_ms.max(time_ms);
            return Some(recent);
        }
        self.see_other(name, slot, time_ms, timeline)
    }

    /// Where a shard of this name would be if it was seen lately: its slot among those, and the place in the list.
    #[inline]
    fn recent(&self, name: &[u8]) -> (Near, usize, usize) {
        let near = Near::of(name);
        let slot = index(i64::try_from(near.slot(RECENT_LOG2)).unwrap_or(0));
        (near, slot, self.recent.get(slot).copied().map_or(0, usize::from))
    }

    /// The place of a shard that was seen lately and for which the rules need not look at the next `events` events; else none.
    #[inline]
    pub(crate) fn calm(&self, name: &[u8], events: u32) -> Option<u16> {
        let (near, _, recent) = self.recent(name);
        let shard = self.all.get(recent)?;
        (shard.is(near, name) & shard.tally.sleeps_for(events)).then_some(u16::try_from(recent).unwrap_or(0))
    }

    /// Counts an event of the open pane on a shard for which the rules need not look.
    #[inline]
    pub(crate) fn add_calm(&mut self, at: u16, compared: bool, time_ms: i64) {
        if let Some(shard) = self.all.get_mut(usize::from(at)) {
            shard.newest_ms = shard.newest_ms.max(time_ms);
            shard.tally.add_asleep(compared);
        }
    }

    #[cold]
    fn see_other(&mut self, name: &[u8], slot: usize, time_ms: i64, timeline: &Timeline) -> Option<usize> {
        let hash = key_hash(name, self.seed);
        let Some(at) = self.position(hash, name).or_else(|| self.insert(hash, name, timeline)) else {
            self.cut += 1;
            return None;
        };
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = u16::try_from(at).unwrap_or(u16::MAX);
        }
        let shard = &mut self.all[at];
        shard.newest_ms = shard.newest_ms.max(time_ms);
        Some(at)
    }

    fn position(&self, hash: u64, name: &[u8]) -> Option<usize> {
        self.index.find(hash, |entry| entry.0 == hash && *self.all[entry.1].name == *name).map(|entry| entry.1)
    }

    #[cold]
    fn insert(&mut self, hash: u64, name: &[u8], timeline: &Timeline) -> Option<usize> {
        if self.all.len() >= MAX_SHARDS || name.len() > MAX_SHARD_BYTES || name.is_empty() {
            return None;
        }
        let at = self.all.len();
        self.index.insert_unique(hash, (hash, at), |entry| entry.0);
        let tally = Tally::new(timeline);
        self.all.push(Shard {
            near: Near::of(name),
            tally,
            newest_ms: NEVER_MS,
            declared: false,
            name: Arc::from(name),
            hash,
            heat: Heat::default(),
            detail: None,
        });
        Some(at)
    }

    /// Takes over a shard's counts and when it was last seen.
    pub(crate) fn put_back(&mut self, name: &[u8], seen_ms: Option<i64>, tally: Tally, timeline: &Timeline) {
        let hash = key_hash(name, self.seed);
        match self.position(hash, name).or_else(|| self.insert(hash, name, timeline)) {
            Some(at) => {
                self.all[at].tally = tally;
                self.all[at].newest_ms = seen_ms.unwrap_or(NEVER_MS);
            }
            None => self.cut += 1,
        }
    }

    /// The shard's hash and name.
    pub(crate) fn name(&self, at: usize) -> Option<(u64, &Arc<[u8]>)> {
        self.all.get(at).map(|shard| (shard.hash, &shard.name))
    }

    /// Counts an event of the open pane; true when the rules must look.
    #[inline]
    pub(crate) fn add_open(&mut self, at: usize) -> bool {
        self.all.get_mut(at).is_some_and(|shard| shard.tally.add_open())
    }

    /// Counts an event of a closed pane; true when the rules must look.
    pub(crate) fn add_late(&mut self, at: usize, place: &Place) -> bool {
        self.all.get_mut(at).is_some_and(|shard| shard.tally.add_late(place))
    }

    /// The shard at a place in the list.
    pub(crate) fn get(&self, at: usize) -> Option<&Shard> {
        self.all.get(at)
    }

    /// The shard at a place in the list.
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut Shard> {
        self.all.get_mut(at)
    }

    /// Forgets shards that were not seen for too long, are not declared and are not hot.
    pub(crate) fn forget(&mut self, now_ms: i64) {
        let before = self.all.len();
        let memory_ms = self.memory_ms;
        self.all.retain(|shard| {
            let recent = shard.seen_ms().is_some_and(|seen| now_ms.saturating_sub(seen) <= memory_ms);
            shard.declared || recent || !shard.heat.is_cold()
        });
        if self.all.len() < before {
            self.index.clear();
            for (at, shard) in self.all.iter().enumerate() {
                self.index.insert_unique(shard.hash, (shard.hash, at), |entry| entry.0);
            }
        }
    }

    /// The count of every known shard over closed panes.
    pub(crate) fn counts(&self, timeline: &Timeline, window: usize, from: i64, to: i64) -> Vec<u64> {
        self.all.iter().map(|shard| shard.tally.sum(timeline, window, from, to).lower).collect()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Shard> {
        self.all.iter()
    }

    /// All of them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Shard> {
        self.all.iter_mut()
    }
}
