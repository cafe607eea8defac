//! Counts of all keys: two rings of panes under one count-min table, with a sample of keys in each pane.

use std::collections::VecDeque;

use hashbrown::HashTable;
use xxhash_rust::xxh3::Xxh3;

use super::super::settings::CountingSettings;
use super::super::sketch::{CountMin, KeySample, Median, Rows, Table, distinct_bounds, median_bounds};
use super::timeline::{MAX_WINDOWS, Place, Timeline};
use crate::units::Estimate;

/// From so many events on a counter of 32 bits may have wrapped.
pub(super) const WRAPS_AT: u64 = 1 << 32;

/// One pane. While it has no more names than its sample may hold, they are all listed and no table is kept: small panes are exact.
#[derive(Debug)]
pub(super) struct Pane {
    pub(super) sample: KeySample,
    pub(super) table: Table,
    pub(super) events: u64,
}

impl Clone for Pane {
    /// Leaves the table of an earlier pane behind.
    fn clone(&self) -> Self {
        let table = if self.sample.is_complete() { Table::default() } else { self.table.clone() };
        Self { sample: self.sample.clone(), table, events: self.events }
    }
}

impl Pane {
    pub(super) fn new(listed: usize) -> Self {
        Self { sample: KeySample::new(listed), table: Table::default(), events: 0 }
    }

    fn clear(&mut self) {
        self.sample.clear();
        self.events = 0;
    }

    /// Adds a late event to a closed pane.
    fn add(&mut self, rows: &Rows, hash: u64) {
        if self.sample.is_complete() && self.sample.would_halve(hash) {
            self.fill_table(rows);
        }
        self.sample.add(hash, 1);
        if !self.sample.is_complete() {
            self.table.add(rows, hash, 1);
        }
    }

    /// From a full list to a table.
    fn fill_table(&mut self, rows: &Rows) {
        self.table.zero(rows);
        for (hash, count) in self.sample.iter() {
            self.table.add(rows, hash, count);
        }
    }

    /// Adds a closed pane of the shorter window to one of the longer window.
    pub(super) fn fold(&mut self, rows: &Rows, other: &Self) {
        let mine = self.sample.is_complete();
        let listed = mine && other.sample.is_complete() && {
            let fresh = other.sample.iter().filter(|entry| self.sample.count(entry.0) == 0).count();
            self.sample.len() + fresh <= self.sample.limit()
        };
        if !listed {
            if mine {
                self.fill_table(rows);
            }
            if other.sample.is_complete() {
                other.sample.iter().for_each(|(hash, count)| self.table.add(rows, hash, count));
            } else {
                self.table.add_table(&other.table);
            }
        }
        self.sample.merge(&other.sample);
    }

    fn bound(&self, rows: &Rows, hash: u64) -> Estimate {
        if self.events >= WRAPS_AT {
            // What is left of a wrapped counter says nothing from above.
            Estimate { lower: 0, upper: self.events }
        } else if self.sample.covers(hash) {
            Estimate::exact(u64::from(self.sample.count(hash)))
        } else {
            Estimate { lower: 0, upper: u64::from(self.table.upper(rows, hash)) }
        }
    }
}

/// What is known of all keys of a window together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Facts {
    /// Number of distinct keys.
    pub(crate) keys: Estimate,
    /// Median of their counts.
    pub(crate) median: Option<Median>,
}

/// Counts of all keys of one keyspace.
#[derive(Debug, Clone)]
pub(crate) struct KeyCounts {
    pub(super) sketch: CountMin,
    pub(super) rings: [Vec<Pane>; MAX_WINDOWS],
    /// Panes that closed with more names than they list, or got them later.
    unlisted: u64,
    scratch: HashTable<(u64, u64)>,
    /// What was known of the last windows, by their last pane and number of events.
    remembered: [VecDeque<(i64, u64, Facts)>; MAX_WINDOWS],
}

/// An event of the open pane; by default one without a key.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OpenEvent {
    /// Of its key.
    pub(crate) hash: u64,
    /// The key's upper bounds right after this event.
    pub(crate) uppers: [u32; MAX_WINDOWS],
    /// The key's place among the candidates, where it is one.
    pub(crate) candidate: Option<usize>,
    /// The place of its shard, where that is known already.
    pub(crate) shard: Option<u16>,
    /// It is counted.
    pub(crate) compared: bool,
    /// So many are counted up to this one.
    pub(crate) number: u32,
}

/// Windows whose facts are remembered: a window is looked at when its last pane closes and again when the watermark passes it.
const REMEMBERED: usize = 32;

impl KeyCounts {
    /// Empty rings for the timeline.
    pub(crate) fn new(settings: &CountingSettings, timeline: &Timeline) -> Self {
        let ring = |window: usize| {
            let panes = if window < timeline.windows() { timeline.axis(window).capacity } else { 0 };
            (0..panes).map(|_| Pane::new(settings.listed())).collect()
        };
        let rows = Rows::new(settings.depth, settings.width_log2, settings.seed);
        Self {
            sketch: CountMin::new(rows),
            rings: [ring(0), ring(1)],
            unlisted: 0,
            scratch: HashTable::new(),
            remembered: Default::default(),
        }
    }

    /// The most bytes that this structure takes.
    pub(crate) fn max_bytes(settings: &CountingSettings, timeline: &Timeline) -> u64 {
        let cells = Rows::new(settings.depth, settings.width_log2, settings.seed).cells() as u64;
        let panes = timeline.slots() as u64;
        let scratch = timeline.longest().panes.unsigned_abs().saturating_mul(KeySample::max_bytes(settings.listed()));
        cells
            .saturating_mul(12 + 4 * panes)
            .saturating_add(panes.saturating_mul(KeySample::max_bytes(settings.listed())))
            .saturating_add(scratch)
    }

    /// Names that a pane lists at most.
    pub(super) fn listed(&self) -> usize {
        self.rings[0].first().map_or(0, |pane| pane.sample.limit())
    }

    /// Counts events of the open pane, and tells each the upper bounds of its key over all panes that still matter.
    ///
    /// One loop a structure: their cells lie far apart, and so the misses of many events overlap.
    pub(crate) fn add_open(&mut self, timeline: &Timeline, events: &mut [OpenEvent]) {
        let counted = events.iter_mut().filter(|event| event.compared);
        self.sketch.add_open(counted.map(|event| (event.hash, &mut event.uppers)));
        let [short, long] = &mut self.rings;
        let [slot, long_slot] = timeline.open_slots();
        let mut number = 0;
        if let Some(pane) = short.get_mut(slot) {
            for event in events.iter().filter(|event| event.compared) {
                number += 1;
                pane.sample.add(event.hash, 1);
            }
            pane.events += number;
        }
        if let Some(pane) = long.get_mut(long_slot) {
            pane.events += number;
        }
    }

    /// Counts an event of a closed pane; gives upper bounds as `add_open` does.
    #[cold]
    pub(crate) fn add_late(&mut self, timeline: &Timeline, hash: u64, place: &Place) -> [u32; MAX_WINDOWS] {
        for window in 0..timeline.windows() {
            let slot = timeline.ring_slot(window, place.panes[window]);
            if place.counted[window]
                && let Some(pane) = self.rings[window].get_mut(slot)
            {
                pane.events += 1;
                let listed = pane.sample.is_complete();
                pane.add(self.sketch.rows(), hash);
                self.unlisted += u64::from(listed && !pane.sample.is_complete());
            }
        }
        self.sketch.add_closed(hash, place.counted[0], place.counted[1])
    }

    /// Events of the panes `from..=to`.
    pub(crate) fn events(&self, timeline: &Timeline, window: usize, from: i64, to: i64) -> u64 {
        (from..=to).filter_map(|pane| self.pane(timeline, window, pane)).map(|pane| pane.events).sum()
    }

    /// Bounds of a key's count in one pane.
    pub(crate) fn bound(&self, timeline: &Timeline, window: usize, pane: i64, hash: u64) -> Estimate {
        let rows = self.sketch.rows();
        let head = timeline.mark(0).head;
        if window == 0 && pane == head {
            return self.open_bound(timeline, head, hash);
        }
        let closed = self.pane(timeline, window, pane).map_or(Estimate::default(), |pane| pane.bound(rows, hash));
        if window > 0 && pane == timeline.long_pane(head) {
            let open = self.open_bound(timeline, head, hash);
            return Estimate { lower: closed.lower + open.lower, upper: closed.upper + open.upper };
        }
        closed
    }

    fn open_bound(&self, timeline: &Timeline, head: i64, hash: u64) -> Estimate {
        match self.pane(timeline, 0, head) {
            Some(pane) if pane.events >= WRAPS_AT => Estimate { lower: 0, upper: pane.events },
            Some(pane) if pane.sample.covers(hash) => Estimate::exact(u64::from(pane.sample.count(hash))),
            _ => Estimate { lower: 0, upper: u64::from(self.sketch.open_upper(hash)) },
        }
    }

    /// Bounds of a key's count in the panes `from..=to`, all of which still matter.
    pub(crate) fn window_bound(&self, timeline: &Timeline, window: usize, from: i64, to: i64, hash: u64) -> Estimate {
        let panes = (from..=to).map(|pane| self.bound(timeline, window, pane, hash));
        let sum = panes.fold(Estimate::default(), |sum, pane| Estimate {
            lower: sum.lower + pane.lower,
            upper: sum.upper + pane.upper,
        });
        if self.wraps(timeline, window) {
            return sum;
        }
        let total = u64::from(self.sketch.upper(hash)[usize::from(window > 0)]);
        Estimate { upper: sum.upper.min(total), ..sum }
    }

    /// Panes since the start with more names than they list: counts in them are bounds.
    pub(crate) const fn unlisted(&self) -> u64 {
        self.unlisted
    }

    /// True when the panes of a window that still matter hold so many events that its totals may have wrapped.
    pub(crate) fn wraps(&self, timeline: &Timeline, window: usize) -> bool {
        let mark = timeline.mark(window);
        timeline.started() && self.events(timeline, window, mark.oldest, mark.head) >= WRAPS_AT
    }

    pub(super) fn pane(&self, timeline: &Timeline, window: usize, pane: i64) -> Option<&Pane> {
        self.rings.get(window)?.get(timeline.ring_slot(window, pane))
    }

    /// Closes the open pane and folds it into the longer window's. Call before the timeline opens the next.
    pub(crate) fn close(&mut self, timeline: &Timeline) {
        let head = timeline.mark(0).head;
        let [short, long] = &mut self.rings;
        let Some(pane) = short.get_mut(timeline.ring_slot(0, head)) else { return };
        if pane.sample.is_complete() {
            self.sketch.close_listed(pane.sample.iter());
        } else {
            self.sketch.close(&mut pane.table);
            self.unlisted += 1;
        }
        if let Some(coarse) = long.get_mut(timeline.ring_slot(1, timeline.long_pane(head))) {
            let listed = coarse.sample.is_complete();
            coarse.fold(self.sketch.rows(), pane);
            self.unlisted += u64::from(listed && !coarse.sample.is_complete());
        }
    }

    /// Takes a pane out of the totals and empties it.
    pub(crate) fn expire(&mut self, timeline: &Timeline, window: usize, pane: i64) {
        let slot = timeline.ring_slot(window, pane);
        let Some(pane) = self.rings.get_mut(window).and_then(|ring| ring.get_mut(slot)) else { return };
        if pane.sample.is_complete() {
            self.sketch.expire_listed(window, pane.sample.iter());
        } else {
            self.sketch.expire(window, &pane.table);
        }
        pane.clear();
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.remembered.iter_mut().for_each(VecDeque::clear);
        self.sketch.clear();
        self.rings.iter_mut().flatten().for_each(Pane::clear);
    }

    /// Number of keys and their median over closed panes.
    pub(crate) fn facts(&mut self, timeline: &Timeline, window: usize, from: i64, to: i64) -> Facts {
        // Panes only ever gain events: with as many as before the window is as it was.
        let events = self.events(timeline, window, from, to);
        let (Some(ring), Some(remembered)) = (self.rings.get(window), self.remembered.get_mut(window)) else {
            return Facts::default();
        };
        if let Some((.., facts)) = remembered.iter().find(|entry| (entry.0, entry.1) == (to, events)) {
            return *facts;
        }
        let panes = (from..=to).filter_map(|pane| ring.get(timeline.ring_slot(window, pane)));
        let facts = facts_of(panes, &mut self.scratch);
        if remembered.len() == REMEMBERED {
            remembered.pop_front();
        }
        remembered.push_back((to, events, facts));
        facts
    }

    /// Number of keys and their median in the newest window, the open pane included.
    pub(crate) fn head_facts(&self, timeline: &Timeline, window: usize) -> Facts {
        let (from, to) = window_ending_at(timeline, window, timeline.mark(window).head);
        let open = (window > 0).then(|| self.pane(timeline, 0, timeline.mark(0).head)).flatten();
        let panes = (from..=to).filter_map(|pane| self.pane(timeline, window, pane)).chain(open);
        facts_of(panes, &mut HashTable::new())
    }

    /// A digest of every pane that still matters and of the samples in them: equal for the same events in any order.
    pub(crate) fn digest(&self, timeline: &Timeline) -> u64 {
        let mut state = Xxh3::new();
        for window in 0..timeline.windows() {
            let mark = timeline.mark(window);
            for number in mark.oldest..=mark.head {
                let Some(pane) = self.pane(timeline, window, number) else { continue };
                state.update(&number.to_le_bytes());
                state.update(&pane.events.to_le_bytes());
                state.update(&pane.sample.theta().to_le_bytes());
                let mut entries: Vec<_> = pane.sample.iter().collect();
                entries.sort_unstable();
                for (hash, count) in entries {
                    state.update(&hash.to_le_bytes());
                    state.update(&count.to_le_bytes());
                }
                if !pane.sample.is_complete() && number < mark.head {
                    pane.table.cells().iter().for_each(|cell| state.update(&cell.to_le_bytes()));
                }
            }
        }
        state.digest()
    }

    /// Slots of the shorter ring, for tests.
    #[cfg(test)]
    fn sketch_is_empty(&self) -> bool {
        self.sketch.is_zero()
    }
}

fn facts_of<'a>(panes: impl Iterator<Item = &'a Pane> + Clone, scratch: &mut HashTable<(u64, u64)>) -> Facts {
    let theta = panes.clone().map(|pane| pane.sample.theta()).min().unwrap_or(u64::MAX);
    let wrapped = panes.clone().any(|pane| pane.events >= WRAPS_AT);
    scratch.clear();
    for (hash, count) in panes.flat_map(|pane| pane.sample.iter()).filter(|entry| entry.0 <= theta) {
        let spread = hash.rotate_left(32);
        match scratch.find_mut(spread, |entry| entry.0 == hash) {
            Some(entry) => entry.1 += u64::from(count),
            None => {
                scratch.insert_unique(spread, (hash, u64::from(count)), |entry| entry.0.rotate_left(32));
            }
        }
    }
    let keys = distinct_bounds(scratch.len(), theta);
    if wrapped {
        return Facts { keys, median: (!scratch.is_empty()).then_some(Median::UNKNOWN) };
    }
    let mut counts: Vec<u64> = scratch.iter().map(|entry| entry.1).collect();
    Facts { keys, median: median_bounds(&mut counts, theta == u64::MAX) }
}

/// The newest window of closed panes that ends at `to`.
pub(crate) fn window_ending_at(timeline: &Timeline, window: usize, to: i64) -> (i64, i64) {
    (to - timeline.axis(window).panes + 1, to)
}

#[cfg(test)]
mod tests {
    use super::super::super::settings::{TimeSettings, WindowSettings};
    use super::super::super::sketch::key_hash;
    use super::*;
    use crate::units::Span;

    fn counts(k: usize) -> (Timeline, KeyCounts) {
        let windows = [
            WindowSettings { length: Span::from_secs(4), pane: Span::from_secs(1) },
            WindowSettings { length: Span::from_secs(12), pane: Span::from_secs(3) },
        ];
        let mut timeline = Timeline::new(&windows, &TimeSettings::default());
        timeline.start_at(100, 97);
        let settings = CountingSettings { width_log2: 8, sample_k: k, ..CountingSettings::default() };
        let counts = KeyCounts::new(&settings, &timeline);
        (timeline, counts)
    }

    fn add(counts: &mut KeyCounts, timeline: &Timeline, hash: u64, time_ms: i64) {
        if time_ms >= timeline.head_from_ms() {
            counts.add_open(timeline, &mut [OpenEvent { hash, compared: true, ..OpenEvent::default() }]);
        } else {
            counts.add_late(timeline, hash, &timeline.place(time_ms));
        }
    }

    fn step(timeline: &mut Timeline, counts: &mut KeyCounts) {
        counts.close(timeline);
        timeline.open_next();
        let oldest = [timeline.mark(0).oldest, timeline.mark(1).oldest];
        timeline.close_next();
        for (window, from) in oldest.into_iter().enumerate() {
            for pane in from..timeline.mark(window).oldest {
                counts.expire(timeline, window, pane);
            }
        }
    }

    /// The totals are the sum of the panes after 10^4 panes, large and small, with late events.
    #[test]
    fn ten_thousand_panes_leave_nothing_behind() {
        for k in [1, 64] {
            let (mut timeline, mut counts) = counts(k);
            for n in 0..10_000u64 {
                for key in 0..n % 7 {
                    let hash = key_hash(&(n * key).to_le_bytes(), 5);
                    let time = timeline.head_from_ms() - i64::try_from(1000 * (key % 3)).unwrap();
                    add(&mut counts, &timeline, hash, time);
                }
                step(&mut timeline, &mut counts);
            }
            assert!(!counts.sketch_is_empty());
            for _ in 0..20 {
                step(&mut timeline, &mut counts);
            }
            assert!(counts.sketch_is_empty(), "k {k}");
        }
    }

    #[test]
    fn a_folded_pane_bounds_what_its_parts_hold() {
        for k in [1, 64] {
            let (mut timeline, mut counts) = counts(k);
            let hash = key_hash(b"a", 5);
            for n in 0..3u64 {
                for other in 0..5u64 {
                    add(&mut counts, &timeline, key_hash(&(n * 5 + other).to_le_bytes(), 5), timeline.head_from_ms());
                }
                add(&mut counts, &timeline, hash, timeline.head_from_ms());
                step(&mut timeline, &mut counts);
            }
            let long = timeline.mark(1).head;
            assert_eq!(long, 34);
            let total: u64 = (33..=34).map(|pane| counts.bound(&timeline, 1, pane, hash).upper).sum();
            assert!((3..=18).contains(&total), "{total}");
            if k == 64 {
                assert_eq!(total, 3);
            }
        }
    }
}
