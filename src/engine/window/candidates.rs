//! Keys with exact counters of their own.

use std::sync::Arc;

use hashbrown::HashTable;

use super::super::rules::{Heat, SetNumber};
use super::detail::{Detail, Request};
use super::near::Near;
use super::tally::Tally;
use super::timeline::{Place, Timeline, index};
use crate::engine::verdict::{BUCKET_COUNTERS, KeyProfile, Operations};
use crate::input::{DEFAULT_MAX_KEY_BYTES, Operation};
use crate::units::EventTime;

/// The most candidates with detail (shards, callers, buckets) at once.
pub(crate) const MAX_DETAILS: usize = 768;
/// Counters by operation: read, write or delete, scan, unknown.
const OPERATIONS: usize = 4;

/// A key with exact counters. What an event of the open pane reads and writes comes first, on one cache line.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(crate) struct Candidate {
    near: Near,
    /// Its counts.
    pub(crate) tally: Tally,
    /// What its requests did in the open pane, as far as `rest` does not hold it yet.
    open: Requests,
    /// Events until the next one that the detail looks at; 0 without detail.
    wait: u32,
    /// The rules that it is judged by.
    pub(crate) set: SetNumber,
    /// It has a plan: never evicted.
    pub(crate) planned: bool,
    /// Whether it is hot.
    pub(crate) heat: Heat,
    /// The key.
    pub(crate) key: Arc<[u8]>,
    /// From half hot on.
    detail: Option<Box<Detail>>,
    rest: Box<Rest>,
}

const _: () = assert!(std::mem::offset_of!(Candidate, heat) <= 64, "one cache line an event");
// Of an even number of lines the first ones would share a part of the cache's sets.
const _: () = assert!(size_of::<Candidate>() == 192, "an odd number of cache lines");

/// What is not read at every event or pane.
#[derive(Debug, Clone)]
struct Rest {
    hash: u64,
    /// Event time when it became a candidate.
    since: EventTime,
    /// What its requests did, a pane of the longest window.
    requests: Box<[Requests]>,
}

impl Candidate {
    /// A new candidate.
    pub(crate) fn new(
        key: &[u8],
        hash: u64,
        set: SetNumber,
        tally: Tally,
        timeline: &Timeline,
        since: EventTime,
    ) -> Self {
        let panes = index(timeline.longest().capacity);
        Self {
            near: Near::of(key),
            tally,
            open: Requests::default(),
            wait: 0,
            set,
            planned: false,
            heat: Heat::default(),
            key: Arc::from(key),
            detail: None,
            rest: Box::new(Rest { hash, since, requests: vec![Requests::default(); panes].into_boxed_slice() }),
        }
    }

    #[inline]
    fn is(&self, near: Near, key: &[u8]) -> bool {
        self.near == near && (near.is_whole() || *self.key == *key)
    }

    /// Notes what an event of the open pane did, whether or not it is compared; true when the detail is to look at it.
    #[inline]
    pub(crate) fn note_open(&mut self, operation: Operation, weight: u64) -> bool {
        self.open.add(operation, weight);
        self.is_looked_at()
    }

    /// Counts an event of the open pane that is compared, and notes what it did. False, and nothing is done, when the rules or the
    /// detail are to look at it.
    #[inline]
    pub(crate) fn add_calm(&mut self, operation: Operation, weight: u64) -> bool {
        let calm = self.tally.sleeps_for(1) & (self.wait != 1);
        if calm {
            self.tally.add_asleep(true);
            self.open.add(operation, weight);
            self.wait = self.wait.saturating_sub(1);
        }
        calm
    }

    /// True when the detail is to look at this event.
    #[inline]
    fn is_looked_at(&mut self) -> bool {
        let is_due = self.wait == 1;
        self.wait = self.wait.saturating_sub(1);
        is_due
    }

    /// The detail looks at an event.
    pub(crate) fn look(&mut self, generation: i64, request: &Request<'_>) {
        if let Some(detail) = &mut self.detail {
            self.wait = detail.add(generation, request);
        }
    }

    /// From half hot on.
    pub(crate) fn detail(&self) -> Option<&Detail> {
        self.detail.as_deref()
    }

    /// Detail begins with the next event, or ends.
    pub(crate) fn set_detail(&mut self, detail: Option<Box<Detail>>) {
        self.wait = u32::from(detail.is_some());
        self.detail = detail;
    }

    /// Notes what an event of a closed pane did; true when the detail is to look at it.
    pub(crate) fn note_late(&mut self, timeline: &Timeline, place: &Place, operation: Operation, weight: u64) -> bool {
        let longest = timeline.windows().saturating_sub(1);
        if place.counted[longest]
            && let Some(pane) = self.rest.requests.get_mut(timeline.ring_slot(longest, place.panes[longest]))
        {
            pane.add(operation, weight);
        }
        self.is_looked_at()
    }

    /// Writes the open pane's events into the rings. Call before the timeline opens the next pane.
    pub(crate) fn settle(&mut self, timeline: &Timeline) {
        self.tally.settle(timeline);
        let longest = timeline.windows().saturating_sub(1);
        let slot = timeline.ring_slot(longest, timeline.mark(longest).head);
        let open = std::mem::take(&mut self.open);
        if let Some(pane) = self.rest.requests.get_mut(slot) {
            pane.merge(&open);
        }
    }

    /// The next pane has been opened.
    pub(crate) fn roll(&mut self, timeline: &Timeline, long_too: bool) {
        self.heat.note(self.tally.head()[0].lower);
        self.tally.roll(timeline, long_too);
        let longest = timeline.windows().saturating_sub(1);
        if longest == 0 || long_too {
            let slot = timeline.ring_slot(longest, timeline.mark(longest).head);
            if let Some(pane) = self.rest.requests.get_mut(slot) {
                *pane = Requests::default();
            }
        }
    }

    /// The requests behind it.
    pub(crate) fn profile(&self, timeline: &Timeline) -> KeyProfile {
        let requests = self.requests(timeline);
        let [reads, writes, scans, unknown] = requests.operations.map(u64::from);
        let detail = self.detail.as_deref();
        KeyProfile {
            since: self.rest.since,
            operations: Operations { reads, writes, scans, unknown },
            weight: requests.weight,
            sampled: detail.map_or(0, Detail::events),
            shards: detail.map(Detail::shards).unwrap_or_default(),
            callers: detail.map(Detail::callers).unwrap_or_default(),
            buckets: detail.map_or_else(|| Box::new([0; BUCKET_COUNTERS]), Detail::buckets),
            without_request_id: detail.map_or(0, Detail::without_request_id),
        }
    }

    /// What its requests did in the newest longest window, counted since it became a candidate.
    fn requests(&self, timeline: &Timeline) -> Requests {
        let longest = timeline.windows().saturating_sub(1);
        let head = timeline.mark(longest).head;
        let mut sum = self.open;
        for pane in head - timeline.axis(longest).panes + 1..=head {
            if let Some(pane) = self.rest.requests.get(timeline.ring_slot(longest, pane)) {
                sum.merge(pane);
            }
        }
        sum
    }

    /// All counters to zero.
    pub(crate) fn clear(&mut self) {
        self.tally.clear();
        self.open = Requests::default();
        self.rest.requests.fill(Requests::default());
        self.set_detail(None);
    }
}

/// Requests of one key by what they did, and their weight.
#[derive(Debug, Clone, Copy, Default)]
struct Requests {
    operations: [u32; OPERATIONS],
    weight: u64,
}

impl Requests {
    #[inline]
    fn add(&mut self, operation: Operation, weight: u64) {
        let count = &mut self.operations[operation_slot(operation)];
        *count = count.saturating_add(1);
        self.weight = self.weight.saturating_add(weight);
    }

    fn merge(&mut self, other: &Self) {
        self.operations.iter_mut().zip(other.operations).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        self.weight = self.weight.saturating_add(other.weight);
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
    /// Places in `all`.
    index: HashTable<u32>,
    all: Vec<Candidate>,
    seen: Filter,
    hints: Hints,
    /// Grows whenever a candidate comes, goes or changes its place.
    revision: u64,
}

/// One bit for each low part of a hash that some candidate has: most keys are no candidates, and are told apart by it at once.
#[derive(Debug)]
struct Filter(Box<[u64; FILTER_WORDS]>);

const FILTER_WORDS: usize = 1024;

impl Default for Filter {
    fn default() -> Self {
        Self(Box::new([0; FILTER_WORDS]))
    }
}

impl Filter {
    #[inline]
    fn place(hash: u64) -> (usize, u64) {
        let [low, high, ..] = hash.to_le_bytes();
        let bit = usize::from(u16::from_le_bytes([low, high]));
        (bit / 64, 1 << (bit % 64))
    }

    fn add(&mut self, hash: u64) {
        let (word, bit) = Self::place(hash);
        self.0[word] |= bit;
    }

    #[inline]
    fn may_have(&self, hash: u64) -> bool {
        let (word, bit) = Self::place(hash);
        self.0[word] & bit != 0
    }
}

/// Where the newest candidate with some part of its hash is: most look-ups need no more than this one.
#[derive(Debug)]
struct Hints(Box<[u16; HINTS]>);

const HINTS: usize = 1 << 14;
/// A place in the list that no candidate has: those beyond it have no hint.
const NO_PLACE: u16 = u16::MAX;

impl Default for Hints {
    fn default() -> Self {
        Self(Box::new([NO_PLACE; HINTS]))
    }
}

impl Hints {
    /// Other bits than those of the filter.
    #[inline]
    fn slot(hash: u64) -> usize {
        let [_, _, low, high, ..] = hash.to_le_bytes();
        usize::from(u16::from_le_bytes([low, high])) % HINTS
    }

    fn add(&mut self, hash: u64, at: u32) {
        self.0[Self::slot(hash)] = u16::try_from(at).unwrap_or(NO_PLACE);
    }

    #[inline]
    fn place(&self, hash: u64) -> usize {
        usize::from(self.0[Self::slot(hash)])
    }
}

impl Candidates {
    /// The most bytes that `max` candidates take.
    pub(crate) fn max_bytes(max: usize, timeline: &Timeline) -> u64 {
        let rings = Tally::max_heap_bytes(timeline) + index(timeline.longest().capacity) * size_of::<Requests>();
        let each =
            size_of::<Candidate>() + size_of::<Rest>() + rings + DEFAULT_MAX_KEY_BYTES + 16 + 2 * size_of::<u32>() + 2;
        let found = size_of::<[u64; FILTER_WORDS]>() + size_of::<[u16; HINTS]>();
        (max as u64)
            .saturating_mul(each as u64)
            .saturating_add(MAX_DETAILS.min(max) as u64 * Detail::MAX_BYTES)
            .saturating_add(found as u64)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The place of a key in the list.
    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<usize> {
        if self.may_have(hash) { self.look_up(hash, key) } else { None }
    }

    /// False for most keys that are not in the list.
    #[inline]
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        self.seen.may_have(hash)
    }

    /// The place in the list of a key that it may have.
    #[inline]
    pub(crate) fn look_up(&self, hash: u64, key: &[u8]) -> Option<usize> {
        let (near, hint) = (Near::of(key), self.hints.place(hash));
        if self.all.get(hint).is_some_and(|candidate| candidate.is(near, key)) {
            return Some(hint);
        }
        self.look_further(hash, near, key)
    }

    /// Two candidates may have one hint, and most keys that are none look like one in a part of their hashes.
    fn look_further(&self, hash: u64, near: Near, key: &[u8]) -> Option<usize> {
        let is_key = |at: &u32| self.all.get(place(*at)).is_some_and(|candidate| candidate.is(near, key));
        self.index.find(hash, is_key).map(|at| place(*at))
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

    /// Counts an event of the open pane; true when the rules must look.
    #[inline]
    pub(crate) fn add_open(&mut self, at: usize) -> bool {
        self.all.get_mut(at).is_some_and(|candidate| candidate.tally.add_open())
    }

    /// Adds one; gives its place.
    pub(crate) fn insert(&mut self, candidate: Candidate) -> usize {
        let at = self.all.len();
        self.all.push(candidate);
        self.list(at);
        at
    }

    /// Places that were found stay right as long as this number does not change.
    #[inline]
    pub(crate) const fn revision(&self) -> u64 {
        self.revision
    }

    /// Makes the candidate at this place one that is found.
    fn list(&mut self, at: usize) {
        self.revision += 1;
        let Self { index, all, seen, hints, .. } = self;
        let hash = |at: &u32| all.get(place(*at)).map_or(0, |candidate| candidate.rest.hash);
        if let Ok(at) = u32::try_from(at) {
            seen.add(hash(&at));
            hints.add(hash(&at), at);
            index.insert_unique(hash(&at), at, hash);
        }
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
            self.revision += 1;
            self.index.clear();
            self.seen.0.fill(0);
            self.hints.0.fill(NO_PLACE);
            (0..self.all.len()).for_each(|at| self.list(at));
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

/// A place in the list from how the index holds it.
const fn place(at: u32) -> usize {
    at as usize
}
