//! Keys with exact counters of their own.

use std::sync::Arc;

use hashbrown::HashTable;

use super::detail::{Detail, Request};
use super::tally::Tally;
use super::timeline::{Place, Timeline, index};
use crate::engine::Operations;
use crate::input::{DEFAULT_MAX_KEY_BYTES, Operation};

/// The most candidates with detail (shards, callers, buckets) at once.
pub(crate) const MAX_DETAILS: usize = 1024;
/// Counters by operation: read, write or delete, scan, unknown.
const OPERATIONS: usize = 4;

/// A key with exact counters.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// The key.
    pub(crate) key: Arc<[u8]>,
    hash: u64,
    /// Its counts and heat.
    pub(crate) tally: Tally,
    /// Events by operation a pane of the longest window.
    operations: Box<[[u32; OPERATIONS]]>,
    /// It has a plan: never evicted.
    pub(crate) planned: bool,
    /// From half hot on.
    pub(crate) detail: Option<Box<Detail>>,
}

impl Candidate {
    /// A new candidate.
    pub(crate) fn new(key: &[u8], hash: u64, tally: Tally, timeline: &Timeline) -> Self {
        let panes = index(timeline.longest().capacity);
        let operations = vec![[0; OPERATIONS]; panes].into_boxed_slice();
        Self { key: Arc::from(key), hash, tally, operations, planned: false, detail: None }
    }

    /// Notes what an event did, whether or not it is compared.
    #[inline]
    pub(crate) fn note(&mut self, timeline: &Timeline, place: &Place, generation: i64, request: &Request<'_>) {
        let longest = timeline.windows().saturating_sub(1);
        if place.counted[longest]
            && let Some(pane) = self.operations.get_mut(timeline.ring_slot(longest, place.panes[longest]))
        {
            let count = &mut pane[operation_slot(request.operation)];
            *count = count.saturating_add(1);
        }
        if let Some(detail) = &mut self.detail {
            detail.add(generation, request);
        }
    }

    /// The next pane has been opened.
    pub(crate) fn roll(&mut self, timeline: &Timeline, long_too: bool) {
        self.tally.roll(timeline, long_too);
        let longest = timeline.windows().saturating_sub(1);
        if longest == 0 || long_too {
            let slot = timeline.ring_slot(longest, timeline.mark(longest).head);
            if let Some(pane) = self.operations.get_mut(slot) {
                *pane = [0; OPERATIONS];
            }
        }
    }

    /// Events by operation in the newest longest window.
    pub(crate) fn operations(&self, timeline: &Timeline) -> Operations {
        let longest = timeline.windows().saturating_sub(1);
        let head = timeline.mark(longest).head;
        let mut sum = [0u64; OPERATIONS];
        for pane in head - timeline.axis(longest).panes + 1..=head {
            if let Some(pane) = self.operations.get(timeline.ring_slot(longest, pane)) {
                sum.iter_mut().zip(pane).for_each(|(sum, count)| *sum += u64::from(*count));
            }
        }
        Operations { reads: sum[0], writes: sum[1], scans: sum[2], unknown: sum[3] }
    }

    /// All counters to zero.
    pub(crate) fn clear(&mut self) {
        self.tally.clear();
        self.operations.fill([0; OPERATIONS]);
        self.detail = None;
    }
}

const fn operation_slot(operation: Operation) -> usize {
    match operation {
        Operation::Read => 0,
        Operation::Write | Operation::Delete => 1,
        Operation::Scan => 2,
        Operation::Unknown => 3,
    }
}

/// All candidates of a keyspace, found by the hash that the sketch uses.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    index: HashTable<(u64, usize)>,
    all: Vec<Candidate>,
}

impl Candidates {
    /// The most bytes that `max` candidates take.
    pub(crate) fn max_bytes(max: usize, timeline: &Timeline) -> u64 {
        let rings = timeline.slots() * 8 + index(timeline.longest().capacity) * 4 * OPERATIONS;
        let each = size_of::<Candidate>() + rings + DEFAULT_MAX_KEY_BYTES + 16 + 2 * size_of::<(u64, usize)>() + 2;
        (max as u64).saturating_mul(each as u64).saturating_add(MAX_DETAILS.min(max) as u64 * Detail::MAX_BYTES)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The place of a key in the list.
    #[inline]
    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<usize> {
        let is_key = |at: usize| self.all.get(at).is_some_and(|candidate| *candidate.key == *key);
        self.index.find(hash, |entry| entry.0 == hash && is_key(entry.1)).map(|entry| entry.1)
    }

    /// The candidate at a place in the list, if there is one.
    pub(crate) fn get(&self, at: Option<usize>) -> Option<&Candidate> {
        self.all.get(at?)
    }

    /// The candidate at a place in the list.
    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut Candidate> {
        self.all.get_mut(at)
    }

    /// Adds one; gives its place.
    pub(crate) fn insert(&mut self, candidate: Candidate) -> usize {
        let at = self.all.len();
        self.index.insert_unique(candidate.hash, (candidate.hash, at), |entry| entry.0);
        self.all.push(candidate);
        at
    }

    /// Removes those that `evict` says; the places of others may change.
    pub(crate) fn remove_where(&mut self, mut evict: impl FnMut(usize, &mut Candidate) -> bool) {
        let mut at = 0;
        let before = self.all.len();
        self.all.retain_mut(|candidate| {
            let gone = evict(at, candidate);
            at += 1;
            !gone
        });
        if self.all.len() < before {
            self.index.clear();
            for (at, candidate) in self.all.iter().enumerate() {
                self.index.insert_unique(candidate.hash, (candidate.hash, at), |entry| entry.0);
            }
        }
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Candidate> {
        self.all.iter()
    }

    /// All of them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Candidate> {
        self.all.iter_mut()
    }
}
