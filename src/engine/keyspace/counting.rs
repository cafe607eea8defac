//! Events in, panes along: how one keyspace moves through event time.

use super::super::outbox::Outbox;
use super::super::rules::{Basis, Calm, Levels};
use super::super::settings::{HotOn, KeyspaceSettings, TimeSettings};
use super::super::sketch::{KeySample, key_hash, median_bounds};
use super::super::window::{
    Candidate, Candidates, Facts, KeyCounts, MAX_WINDOWS, Request, Shards, Tally, Timeline, window_ending_at,
};
use super::admission::Admission;
use crate::input::{AccessEvent, Operation};
use crate::units::{Estimate, EventTime};

/// With fewer known shards than this a median over them says nothing.
const MIN_SHARDS: u64 = 3;
/// Size of the sample that counts distinct keys since the start.
const EVER_LISTED: usize = 8192;

/// One keyspace.
#[derive(Debug)]
pub(crate) struct Keyspace {
    pub(super) number: usize,
    pub(super) settings: KeyspaceSettings,
    pub(super) calm: Calm,
    pub(super) timeline: Timeline,
    pub(super) counts: KeyCounts,
    pub(super) candidates: Candidates,
    pub(super) shards: Shards,
    pub(super) levels: Levels,
    pub(super) shard_levels: Levels,
    pub(super) admission: Admission,
    /// Keys since the start.
    pub(super) ever: KeySample,
    /// Events in the newest windows.
    pub(super) head_events: [u64; MAX_WINDOWS],
    /// Events in the last windows that the watermark passed.
    pub(super) closed_events: [u64; MAX_WINDOWS],
    pub(super) facts: [Facts; MAX_WINDOWS],
    /// All is seen from this event time on.
    pub(super) since_ms: i64,
    pub(super) too_late: u64,
    pub(super) candidates_cut: u64,
    pub(super) protected_cut: u64,
    pub(super) details: usize,
}

impl Keyspace {
    /// An empty keyspace.
    pub(crate) fn new(number: usize, settings: KeyspaceSettings, time: &TimeSettings) -> Self {
        let timeline = Timeline::new(&settings.windows, time);
        let levels = Levels::new(&settings.key_rules, &settings.windows, settings.min_keys);
        let memory_ms = i64::try_from(settings.shard_memory.as_millis()).unwrap_or(i64::MAX);
        Self {
            number,
            calm: Calm::of(&settings),
            counts: KeyCounts::new(&settings.counting, &timeline),
            candidates: Candidates::default(),
            shards: Shards::new(&settings.declared_shards, settings.counting.seed, memory_ms, &timeline),
            admission: Admission::new([levels.least_ever(0, 0), levels.least_ever(1, 0)]),
            shard_levels: Levels::new(&settings.shard_rules, &settings.windows, MIN_SHARDS),
            levels,
            ever: KeySample::new(EVER_LISTED),
            head_events: [0; MAX_WINDOWS],
            closed_events: [0; MAX_WINDOWS],
            facts: [Facts::default(); MAX_WINDOWS],
            since_ms: i64::MAX,
            too_late: 0,
            candidates_cut: 0,
            protected_cut: 0,
            details: 0,
            timeline,
            settings,
        }
    }

    /// The most bytes that a keyspace takes.
    pub(crate) fn max_bytes(settings: &KeyspaceSettings, time: &TimeSettings) -> u64 {
        let timeline = Timeline::new(&settings.windows, time);
        KeyCounts::max_bytes(&settings.counting, &timeline)
            .saturating_add(Candidates::max_bytes(settings.counting.max_candidates, &timeline))
            .saturating_add(Shards::max_bytes(&timeline))
            .saturating_add(KeySample::max_bytes(EVER_LISTED))
    }

    /// True when an event of this time is too old for every window.
    #[inline]
    pub(crate) fn is_too_late(&self, time: EventTime) -> bool {
        self.timeline.is_too_late(time.as_millis())
    }

    /// Counts an event that no window takes any more.
    pub(crate) const fn note_too_late(&mut self) {
        self.too_late += 1;
    }

    /// From here on all is seen; before, a partition was missing.
    pub(crate) fn restart_warm_up(&mut self, newest: EventTime) {
        self.since_ms = newest.as_millis();
    }

    /// True while the longest window has not been watched from its begin to `newest`.
    pub(crate) fn is_warming_up(&self, newest: EventTime) -> bool {
        newest.as_millis() < self.since_ms.saturating_add(self.timeline.longest().window_ms())
    }

    /// Counts an event on a key. Call `advance` with the event's own time before.
    pub(crate) fn add(&mut self, key: &[u8], event: &AccessEvent<'_>, newest: EventTime, out: &mut Outbox) {
        let time_ms = event.time.as_millis();
        if time_ms < self.timeline.head_from_ms() {
            return self.add_late(key, event, newest, out);
        }
        let hash = key_hash(key, self.settings.counting.seed);
        let shard = self.shards.see(event.shard, time_ms, &self.timeline);
        let mut slot = self.candidates.find(hash, key);
        if compares(self.settings.hot_on, event.operation) {
            self.head_events.iter_mut().take(self.timeline.windows()).for_each(|events| *events += 1);
            self.ever.add(hash, 1);
            let estimates = self.counts.add_open(&self.timeline, hash);
            if let Some(at) = shard
                && self.shards.add_open(at)
            {
                self.look_at_shard(at, newest, out);
            }
            match slot.map(|at| (at, self.candidates.add_open(at))) {
                Some((at, true)) => self.look_at_key(at, newest, out),
                None if self.admission.admits(estimates, [true; MAX_WINDOWS]) => {
                    slot = self.admit(key, hash, estimates, newest, out);
                }
                _ => {}
            }
        }
        if let Some(candidate) = slot.and_then(|at| self.candidates.get_mut(at)) {
            candidate.note_open(self.timeline.generation(), &request(event, &self.shards, shard));
        }
    }

    /// Counts an event of a closed pane in that pane.
    #[cold]
    fn add_late(&mut self, key: &[u8], event: &AccessEvent<'_>, newest: EventTime, out: &mut Outbox) {
        let time_ms = event.time.as_millis();
        let place = self.timeline.place(time_ms);
        if !(place.counted[0] || place.counted[1]) {
            self.too_late += 1;
            return;
        }
        let hash = key_hash(key, self.settings.counting.seed);
        let shard = self.shards.see(event.shard, time_ms, &self.timeline);
        let mut slot = self.candidates.find(hash, key);
        if compares(self.settings.hot_on, event.operation) {
            for (events, in_head) in self.head_events.iter_mut().zip(place.in_head) {
                *events += u64::from(in_head);
            }
            self.ever.add(hash, 1);
            let estimates = self.counts.add_late(&self.timeline, hash, &place);
            if let Some(at) = shard
                && self.shards.add_late(at, &place)
            {
                self.look_at_shard(at, newest, out);
            }
            match slot.and_then(|at| Some((at, self.candidates.get_mut(at)?.tally.add_late(&place)))) {
                Some((at, true)) => self.look_at_key(at, newest, out),
                None if self.admission.admits(estimates, place.counted) => {
                    slot = self.admit(key, hash, estimates, newest, out);
                }
                _ => {}
            }
        }
        if let Some(candidate) = slot.and_then(|at| self.candidates.get_mut(at)) {
            let request = request(event, &self.shards, shard);
            candidate.note_late(&self.timeline, &place, self.timeline.generation(), &request);
        }
    }

    /// Gives a key exact counters, its past from the panes; none when there is no room for it.
    fn admit(
        &mut self,
        key: &[u8],
        hash: u64,
        estimates: [u32; MAX_WINDOWS],
        newest: EventTime,
        out: &mut Outbox,
    ) -> Option<usize> {
        if self.candidates.len() >= self.settings.counting.max_candidates {
            self.make_room(newest, out);
        }
        if self.candidates.len() >= self.settings.counting.max_candidates {
            self.candidates_cut += 1;
            self.admission.promise(estimates.map(u64::from));
            return None;
        }
        let at = self.insert(key, hash, newest);
        self.look_at_key(at, newest, out);
        Some(at)
    }

    fn insert(&mut self, key: &[u8], hash: u64, newest: EventTime) -> usize {
        let (counts, timeline) = (&self.counts, &self.timeline);
        let tally = Tally::with_past(timeline, |window, pane| counts.bound(timeline, window, pane, hash));
        self.candidates.insert(Candidate::new(key, hash, tally, timeline, newest))
    }

    /// Replaces the list of planned keys: they are candidates whatever their count and are never evicted.
    pub(crate) fn protect(&mut self, keys: &[std::sync::Arc<[u8]>], newest: EventTime, out: &mut Outbox) {
        self.candidates.iter_mut().for_each(|candidate| candidate.planned = false);
        for (number, key) in keys.iter().enumerate() {
            if number >= self.settings.counting.max_protected || key.is_empty() {
                self.protected_cut += 1;
                continue;
            }
            let hash = key_hash(key, self.settings.counting.seed);
            let at = self.candidates.find(hash, key).or_else(|| self.admit(key, hash, [0; MAX_WINDOWS], newest, out));
            if let Some(candidate) = at.and_then(|at| self.candidates.get_mut(at)) {
                candidate.planned = true;
            }
        }
    }

    /// Event time is at `newest`, and all is counted up to `watermark`: panes open and close, verdicts fall.
    #[inline]
    pub(crate) fn advance(&mut self, newest: EventTime, watermark: EventTime, out: &mut Outbox) {
        if !self.timeline.is_current(newest.as_millis(), watermark.as_millis()) {
            self.move_to(newest.as_millis(), watermark.as_millis(), out);
        }
    }

    #[cold]
    fn move_to(&mut self, newest_ms: i64, watermark_ms: i64, out: &mut Outbox) {
        let target = self.timeline.pane_of(newest_ms);
        let closed = self.timeline.closed_by(watermark_ms).min(target - 1);
        if !self.timeline.started() {
            self.since_ms = newest_ms;
            self.timeline.start_at(target, closed);
            self.set_levels([Facts::default(); MAX_WINDOWS], true);
            self.open_admission(true);
            return;
        }
        let head = self.timeline.mark(0).head;
        let span = |window: usize| self.timeline.axis(window).pane_ms * (self.timeline.axis(window).capacity + 1);
        let ring_ms = span(0).max(span(self.timeline.windows().saturating_sub(1)));
        let pane_ms = self.timeline.axis(0).pane_ms;
        if (target - head).saturating_mul(pane_ms) > ring_ms {
            // What is counted is judged on its way out of the rings: the events that prove a key hot may be the last ones for hours.
            let empty = head + ring_ms / pane_ms;
            self.walk_to(empty, closed.min(empty - 1), out);
            self.skip_to(target, closed, newest_ms, out);
        } else {
            self.walk_to(target, closed, out);
        }
    }

    /// Pane by pane to the head `target`, with all panes up to `closed` closed.
    fn walk_to(&mut self, target: i64, closed: i64, out: &mut Outbox) {
        let lag = target - closed;
        while self.timeline.mark(0).head < target {
            self.step_head(out);
            let due = closed.min(self.timeline.mark(0).head - lag);
            while self.timeline.mark(0).closed < due {
                self.step_closed(out);
            }
        }
        while self.timeline.mark(0).closed < closed {
            self.step_closed(out);
        }
    }

    /// Closes the open pane and opens the next.
    fn step_head(&mut self, out: &mut Outbox) {
        self.counts.close(&self.timeline);
        self.candidates.iter_mut().for_each(|candidate| candidate.settle(&self.timeline));
        self.shards.iter_mut().for_each(|shard| shard.tally.settle(&self.timeline));
        let head = self.timeline.mark(0).head;
        let long_ends = self.timeline.has_long() && self.timeline.long_pane(head + 1) != self.timeline.long_pane(head);
        let facts = self.facts_now(long_ends);
        let shard_basis = self.shard_basis(long_ends);
        while self.timeline.is_full() {
            self.step_closed(out);
        }
        self.timeline.open_next();
        for candidate in self.candidates.iter_mut() {
            candidate.roll(&self.timeline, long_ends);
        }
        self.shards.forget(self.timeline.head_from_ms());
        for shard in self.shards.iter_mut() {
            shard.tally.roll(&self.timeline, long_ends);
        }
        for window in 0..self.timeline.windows() {
            let (from, to) = window_ending_at(&self.timeline, window, self.timeline.mark(window).head);
            self.head_events[window] = self.counts.events(&self.timeline, window, from, to);
        }
        self.set_levels(facts, long_ends);
        for (window, basis) in shard_basis.into_iter().enumerate() {
            if window == 0 || long_ends {
                self.shard_levels.set(window, Basis { full: self.is_full(window), ..basis });
            }
        }
        let room = self.candidates.len() < self.settings.counting.max_candidates / 4 * 3;
        self.open_admission(room);
        self.judge_heads(out);
    }

    fn open_admission(&mut self, has_room: bool) {
        let head = self.timeline.mark(0).head;
        let oldest = self.oldest_short(0).min(self.oldest_short(1));
        let base = [0, 1].map(|window| self.levels.least_ever(window, self.head_events[window]));
        self.admission.open_pane(head, oldest, base, has_room);
    }

    /// The oldest pane of the shorter window since which events of this window can have come.
    pub(super) fn oldest_short(&self, window: usize) -> i64 {
        let oldest = self.timeline.mark(window).oldest;
        if window == 0 || !self.timeline.has_long() {
            self.timeline.mark(0).oldest
        } else {
            self.timeline.first_short(oldest)
        }
    }

    /// The watermark passes the next pane.
    fn step_closed(&mut self, out: &mut Outbox) {
        let oldest: [i64; MAX_WINDOWS] = [0, 1].map(|window| self.timeline.mark(window).oldest);
        let long_too = self.timeline.close_next();
        for window in 0..self.timeline.windows() {
            if window == 0 || long_too {
                let (from, to) = window_ending_at(&self.timeline, window, self.timeline.mark(window).closed);
                self.closed_events[window] = self.counts.events(&self.timeline, window, from, to);
            }
        }
        for candidate in self.candidates.iter_mut() {
            candidate.tally.close(&self.timeline, long_too);
        }
        for shard in self.shards.iter_mut() {
            shard.tally.close(&self.timeline, long_too);
        }
        self.judge_closed(out);
        for (window, from) in oldest.into_iter().enumerate().take(self.timeline.windows()) {
            for pane in from..self.timeline.mark(window).oldest {
                self.counts.expire(&self.timeline, window, pane);
            }
        }
        self.tidy();
    }

    /// Nothing happened for longer than the rings hold: all counts are zero, and what is seen begins anew.
    fn skip_to(&mut self, head: i64, closed: i64, newest_ms: i64, out: &mut Outbox) {
        let cool_ms = self.timeline.head_from_ms() + 2 * self.timeline.longest().window_ms();
        self.counts.clear();
        self.candidates.iter_mut().for_each(Candidate::clear);
        self.details = 0;
        self.shards.iter_mut().for_each(|shard| shard.tally.clear());
        (self.head_events, self.closed_events) = ([0; MAX_WINDOWS], [0; MAX_WINDOWS]);
        self.timeline.start_at(head, closed);
        self.since_ms = newest_ms;
        self.set_levels([Facts::default(); MAX_WINDOWS], true);
        for window in 0..self.timeline.windows() {
            self.shard_levels.set(window, Basis::default());
        }
        self.open_admission(true);
        self.cool_from(cool_ms);
        self.shards.forget(self.timeline.head_from_ms());
        self.judge_closed(out);
        self.tidy();
    }

    pub(super) fn is_full(&self, window: usize) -> bool {
        self.timeline.head_from_ms() >= self.since_ms.saturating_add(self.timeline.axis(window).window_ms())
    }

    /// What is known of all keys in the windows that end with the pane just closed.
    fn facts_now(&mut self, long_ends: bool) -> [Facts; MAX_WINDOWS] {
        let mut facts = self.facts;
        for (window, facts) in facts.iter_mut().enumerate().take(self.timeline.windows()) {
            if window == 0 || long_ends {
                let (from, to) = window_ending_at(&self.timeline, window, self.timeline.mark(window).head);
                *facts = self.counts.facts(&self.timeline, window, from, to);
            }
        }
        facts
    }

    pub(super) fn shard_basis(&self, long_ends: bool) -> [Basis; MAX_WINDOWS] {
        let mut bases = [Basis::default(); MAX_WINDOWS];
        for (window, basis) in bases.iter_mut().enumerate().take(self.timeline.windows()) {
            if window == 0 || long_ends {
                let (from, to) = window_ending_at(&self.timeline, window, self.timeline.mark(window).head);
                let mut counts = self.shards.counts(&self.timeline, window, from, to);
                basis.subjects = Estimate::exact(counts.len() as u64);
                basis.median = median_bounds(&mut counts, true);
            }
        }
        bases
    }

    pub(super) fn set_levels(&mut self, facts: [Facts; MAX_WINDOWS], long_too: bool) {
        self.facts = facts;
        for (window, Facts { keys, median }) in facts.into_iter().enumerate().take(self.timeline.windows()) {
            if window == 0 || long_too {
                self.levels.set(window, Basis { full: self.is_full(window), subjects: keys, median });
            }
        }
    }
}

/// What the event says of the request behind it.
fn request<'a>(event: &'a AccessEvent<'_>, shards: &'a Shards, shard: Option<usize>) -> Request<'a> {
    Request {
        operation: event.operation,
        weight: event.weight,
        shard: shard.and_then(|at| shards.name(at)),
        caller: event.caller,
        id: event.request_id,
    }
}

/// True when events of this operation are compared with thresholds.
const fn compares(hot_on: HotOn, operation: Operation) -> bool {
    match hot_on {
        HotOn::All => true,
        HotOn::Reads => matches!(operation, Operation::Read | Operation::Scan),
        HotOn::Writes => matches!(operation, Operation::Write | Operation::Delete),
    }
}
