//! Events in: each is counted in its pane, and a key whose count may matter gets counters of its own.

use super::super::outbox::Outbox;
use super::super::rules::{Calm, Levels, RuleSets, SetNumber};
use super::super::settings::{HotOn, KeyspaceSettings, TimeSettings};
use super::super::sketch::{KeySample, key_hash};
use super::super::window::{Candidate, Candidates, Facts, KeyCounts, MAX_WINDOWS, Request, Shards, Tally, Timeline};
use super::admission::Admission;
use super::batch::Batch;
use super::judging::time;
use crate::input::{AccessEvent, Operation};
use crate::units::{Estimate, EventTime};

/// With fewer known shards than this a median over them says nothing.
pub(super) const MIN_SHARDS: u64 = 3;
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
    pub(super) rules: RuleSets,
    pub(super) shard_levels: Levels,
    /// Thresholds of shards in the last windows that the watermark passed.
    pub(super) closed_shard_levels: Levels,
    pub(super) admission: Admission,
    /// Keys since the start, each with the second after it in which it was first seen.
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
    pub(super) shard_details: usize,
    /// Event time of the first event.
    pub(super) started_ms: i64,
    /// Room for the events that are counted together.
    pub(super) batch: Batch,
}

impl Keyspace {
    /// An empty keyspace.
    pub(crate) fn new(number: usize, settings: KeyspaceSettings, time: &TimeSettings) -> Self {
        let timeline = Timeline::new(&settings.windows, time);
        let rules = RuleSets::new(&settings);
        let shard_levels = Levels::new(&settings.shard_rules, &settings.windows, MIN_SHARDS);
        let memory_ms = i64::try_from(settings.shard_memory.as_millis()).unwrap_or(i64::MAX);
        Self {
            number,
            calm: Calm::of(&settings),
            counts: KeyCounts::new(&settings.counting, &timeline),
            candidates: Candidates::default(),
            shards: Shards::new(&settings.declared_shards, settings.counting.seed, memory_ms, &timeline),
            admission: Admission::new(rules.least_ever([0; MAX_WINDOWS])),
            closed_shard_levels: shard_levels.clone(),
            shard_levels,
            rules,
            ever: KeySample::new(EVER_LISTED),
            head_events: [0; MAX_WINDOWS],
            closed_events: [0; MAX_WINDOWS],
            facts: [Facts::default(); MAX_WINDOWS],
            since_ms: i64::MAX,
            too_late: 0,
            candidates_cut: 0,
            protected_cut: 0,
            details: 0,
            shard_details: 0,
            started_ms: i64::MAX,
            batch: Batch::default(),
            timeline,
            settings,
        }
    }

    /// As it was told.
    pub(crate) const fn settings(&self) -> &KeyspaceSettings {
        &self.settings
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

    /// Event time from which on events belong to the open pane.
    pub(crate) fn head_from(&self) -> EventTime {
        time(self.timeline.head_from_ms())
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

    /// The second in which the key was first seen, where that is known.
    #[inline]
    pub(super) fn first_second(&mut self, hash: u64, time_ms: i64) -> Option<u32> {
        if self.ever.covers(hash) { self.ever.first(hash, self.second(time_ms)) } else { None }
    }

    /// Whole seconds after the first event.
    fn second(&self, time_ms: i64) -> u32 {
        u32::try_from(time_ms.saturating_sub(self.started_ms).max(0) / 1000).unwrap_or(u32::MAX)
    }

    /// Notes a key behind a shard that is at least half hot.
    #[inline]
    pub(super) fn note_shard(&mut self, at: usize, hash: u64, event: &AccessEvent<'_>, first_s: Option<u32>) {
        // Most shards have none, and most events are spared the rest.
        if self.shards.get(at).is_none_or(|shard| shard.detail.is_none()) {
            return;
        }
        let Some(key) = event.keys.get(self.number) else { return };
        let second = self.second(event.time.as_millis());
        let window_s = self.timeline.longest().window_ms().unsigned_abs() / 1000;
        if let Some(detail) = self.shards.get_mut(at).and_then(|shard| shard.detail.as_deref_mut()) {
            let is_fresh = first_s.map(|first| u64::from(second.saturating_sub(first)) < window_s);
            detail.add(self.timeline.generation(), hash, key, is_fresh);
        }
    }

    /// Counts an event of a closed pane in that pane.
    #[cold]
    pub(super) fn add_late(&mut self, event: &AccessEvent<'_>, newest: EventTime, out: &mut Outbox) {
        let Some(key) = event.keys.get(self.number) else { return };
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
            let first_s = self.first_second(hash, time_ms);
            let uppers = self.counts.add_late(&self.timeline, hash, &place);
            if let Some(at) = shard {
                if self.shards.add_late(at, &place) {
                    self.look_at_shard(at, newest, out);
                }
                self.note_shard(at, hash, event, first_s);
            }
            match slot.and_then(|at| Some((at, self.candidates.get_mut(at)?.tally.add_late(&place)))) {
                Some((at, true)) => self.look_at_key(at, newest, out),
                None if self.admission.may_admit(uppers, place.counted) => {
                    let applicant = Applicant { key, hash, uppers, counted: place.counted, later: 0 };
                    slot = self.admit_if_due(&applicant, newest, out);
                }
                _ => {}
            }
        }
        if let Some(candidate) = slot.and_then(|at| self.candidates.get_mut(at))
            && candidate.note_late(&self.timeline, &place, event.operation, event.weight)
        {
            candidate.look(self.timeline.generation(), &request(event, &self.shards, shard));
        }
    }

    /// Gives a key exact counters when an estimate reaches the level of its own rules.
    pub(super) fn admit_if_due(
        &mut self,
        applicant: &Applicant<'_>,
        newest: EventTime,
        out: &mut Outbox,
    ) -> Option<usize> {
        let set = self.rules.of(applicant.key);
        if !self.rules.is_one() && !self.admission.admits(set, applicant.uppers, applicant.counted) {
            return None;
        }
        self.admit(applicant, set, newest, out)
    }

    /// Gives a key exact counters, its past from the panes; none when there is no room for it.
    fn admit(
        &mut self,
        applicant: &Applicant<'_>,
        set: SetNumber,
        newest: EventTime,
        out: &mut Outbox,
    ) -> Option<usize> {
        if self.candidates.len() >= self.settings.counting.max_candidates {
            self.make_room(newest, out);
        }
        if self.candidates.len() >= self.settings.counting.max_candidates {
            self.candidates_cut += 1;
            self.admission.promise(set, applicant.uppers.map(u64::from));
            return None;
        }
        let Applicant { key, hash, later, .. } = *applicant;
        let (counts, timeline) = (&self.counts, &self.timeline);
        let tally = Tally::with_past(timeline, |window, pane| {
            let bound = counts.bound(timeline, window, pane, hash);
            // Later events of the key are in the open pane's sketch already, and are still to be counted one by one.
            let later = if pane == timeline.mark(window).head { later } else { 0 };
            Estimate { lower: bound.lower.saturating_sub(later), upper: bound.upper.saturating_sub(later) }
        });
        let mut candidate = Candidate::new(key, hash, set, tally, timeline, newest);
        candidate.heat.begin_after(self.admission.ended());
        let at = self.candidates.insert(candidate);
        self.look_at_key(at, newest, out);
        Some(at)
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
            let set = self.rules.of(key);
            let found = self.candidates.find(hash, key);
            let (uppers, counted) = ([0; MAX_WINDOWS], [true; MAX_WINDOWS]);
            let applicant = Applicant { key, hash, uppers, counted, later: 0 };
            let at = found.or_else(|| self.admit(&applicant, set, newest, out));
            if let Some(candidate) = at.and_then(|at| self.candidates.get_mut(at)) {
                candidate.planned = true;
            }
        }
    }
}

/// A key that may become a candidate.
pub(super) struct Applicant<'a> {
    pub(super) key: &'a [u8],
    pub(super) hash: u64,
    pub(super) uppers: [u32; MAX_WINDOWS],
    /// Windows that count the event.
    pub(super) counted: [bool; MAX_WINDOWS],
    /// Events of the key after this one that the sketch has already.
    pub(super) later: u64,
}

/// What the event says of the request behind it.
pub(super) fn request<'a>(event: &'a AccessEvent<'_>, shards: &'a Shards, shard: Option<usize>) -> Request<'a> {
    Request {
        operation: event.operation,
        shard: shard.and_then(|at| shards.name(at)),
        caller: event.caller,
        id: event.request_id,
    }
}

/// True when events of this operation are compared with thresholds.
pub(super) const fn compares(hot_on: HotOn, operation: Operation) -> bool {
    match hot_on {
        HotOn::All => true,
        HotOn::Reads => matches!(operation, Operation::Read | Operation::Scan),
        HotOn::Writes => matches!(operation, Operation::Write | Operation::Delete),
    }
}
