//! What a keyspace has counted, taken out as a value and gone on from.

use super::super::outbox::Outbox;
use super::super::rules::Basis;
use super::super::window::{
    Bars, Candidate, MAX_WINDOWS, Mismatch, Parts, Tally, Timeline, Window, spot, window_ending_at,
};
use super::counting::Keyspace;
use super::judging::time;
use crate::units::Estimate;

/// Why a keyspace cannot go on from a window.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// It counts in another way.
    #[error(transparent)]
    Differs(#[from] Mismatch),
    /// There is no such keyspace.
    #[error("no keyspace number {0}; they are numbered from 0 in the order of the settings")]
    NoKeyspace(usize),
    /// It has counted events of its own.
    #[error(
        "keyspace '{0}' has counted events already, and would count them twice or lose them; restore before the first event"
    )]
    NotNew(String),
}

impl Keyspace {
    /// What is counted now.
    pub(crate) fn window(&self) -> Window {
        let timeline = &self.timeline;
        let oldest = timeline.oldest_short();
        let bars = if timeline.started() { self.admission.bars(oldest) } else { Bars::default() };
        let level = if timeline.started() { self.admission.level() } else { 0.0 };
        let parts = Parts { timeline, counts: &self.counts, since_ms: self.since_ms, level, bars };
        let mut window = Window::of(&self.settings, parts);
        if !timeline.started() {
            return window;
        }
        for candidate in self.candidates.iter() {
            window.list(&candidate.key, |number, pane| candidate.tally.pane(timeline, number, pane));
        }
        for shard in self.shards.iter() {
            let count = |number, pane| shard.tally.pane(timeline, number, pane).lower;
            window.list_shard(&shard.name, shard.seen_ms(), count);
        }
        window
    }

    /// Goes on from what was counted elsewhere or before. Nothing is hot until it is judged, which is done at once.
    pub(crate) fn restore(&mut self, window: &Window, out: &mut Outbox) -> Result<(), RestoreError> {
        window.check(&self.settings, &self.timeline)?;
        if self.timeline.started() {
            return Err(RestoreError::NotNew(self.settings.name.clone()));
        }
        if window.is_empty() {
            return Ok(());
        }
        let window = &*window.with_room_for(self.settings.counting.max_candidates);
        self.timeline = window.timeline().clone();
        self.counts = window.counts().clone();
        (self.since_ms, self.started_ms) = (window.since_ms(), window.since_ms());
        for number in 0..self.timeline.windows() {
            let mark = self.timeline.mark(number);
            let (from, to) = window_ending_at(&self.timeline, number, mark.head);
            self.head_events[number] = self.counts.events(&self.timeline, number, from, to);
            self.closed_events[number] = self.counts.events(&self.timeline, number, mark.oldest, mark.closed);
        }
        self.restore_levels();
        self.restore_candidates(window);
        self.restore_shards(window);
        self.judge_heads(out);
        Ok(())
    }

    /// Thresholds follow from the newest windows, as if a pane had just closed.
    fn restore_levels(&mut self) {
        let bases = [0, 1].map(|number| {
            let end = self.timeline.mark(number).head;
            (number < self.timeline.windows()).then(|| {
                let facts = self.counts.head_facts(&self.timeline, number);
                Basis { full: self.is_full(number, end - 1), subjects: facts.keys, median: facts.median }
            })
        });
        self.set_levels(bases, [None, None]);
        self.set_closed_levels(true);
    }

    fn restore_candidates(&mut self, window: &Window) {
        let head = self.timeline.mark(0).head;
        self.admission.resume(window.level(), self.rules.least_ever(self.head_events), window.bars(), head);
        for (key, hash, listed) in window.listed() {
            let past = |number, pane| bound(&self.timeline, listed, number, pane);
            let mut tally = Tally::with_past(&self.timeline, past);
            tally.set_closed(closed(&self.timeline, &tally));
            let (set, since) = (self.rules.of(key), time(self.timeline.head_from_ms()));
            self.candidates.insert(Candidate::new(key, hash, set, tally, &self.timeline, since));
        }
    }

    fn restore_shards(&mut self, window: &Window) {
        let timeline = &self.timeline;
        for (name, seen_ms, counts) in window.listed_shards() {
            let count = |number, pane| spot(timeline, number, pane).and_then(|spot| counts.get(spot).copied());
            let past = |number, pane| Estimate::exact(count(number, pane).unwrap_or(0));
            let mut tally = Tally::with_past(timeline, past);
            tally.set_closed(closed(timeline, &tally));
            self.shards.put_back(name, seen_ms, tally, timeline);
        }
        let ends = [0, 1].map(|number| (number < timeline.windows()).then(|| timeline.mark(number).head));
        let bases = self.shard_bases(ends);
        self.set_levels([None, None], bases);
    }
}

fn bound(timeline: &Timeline, listed: &[Estimate], number: usize, pane: i64) -> Estimate {
    spot(timeline, number, pane).and_then(|spot| listed.get(spot).copied()).unwrap_or_default()
}

/// What is still known of the last windows that the watermark passed: all but their oldest pane. They have been judged; this only
/// stands in until the next ones are.
fn closed(timeline: &Timeline, tally: &Tally) -> [Estimate; MAX_WINDOWS] {
    let mut closed = [Estimate::default(); MAX_WINDOWS];
    for (number, closed) in closed.iter_mut().enumerate().take(timeline.windows()) {
        let mark = timeline.mark(number);
        *closed = tally.sum(timeline, number, mark.oldest, mark.closed);
    }
    closed
}
