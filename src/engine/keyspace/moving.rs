//! Panes along: how one keyspace moves through event time.

use super::super::outbox::Outbox;
use super::super::window::{Candidate, MAX_WINDOWS, window_ending_at};
use super::counting::Keyspace;
use crate::units::EventTime;

/// Empty panes that are walked through after a jump so that what is hot cools at its time.
const MAX_COOLING_PANES: i64 = 1024;

impl Keyspace {
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
            (self.since_ms, self.started_ms) = (newest_ms, newest_ms);
            self.timeline.start_at(target, closed);
            self.forget_levels();
            self.open_admission(true);
            return;
        }
        let head = self.timeline.mark(0).head;
        let span = |window: usize| self.timeline.axis(window).pane_ms * (self.timeline.axis(window).capacity + 1);
        let ring_ms = span(0).max(span(self.timeline.windows().saturating_sub(1)));
        let pane_ms = self.timeline.axis(0).pane_ms;
        let lag = target - closed;
        if (target - head).saturating_mul(pane_ms) > ring_ms {
            // What is counted is judged on its way out of the rings, the watermark as far behind the head as before: the events that
            // prove a key hot may be the last ones for hours.
            let empty = head + ring_ms / pane_ms;
            let lag = lag.max(head - self.timeline.mark(0).closed);
            self.walk_to(empty, closed.min(empty - lag), lag, out);
            // What is hot cools by the clock of events, pane by pane, as long as that takes no time worth speaking of.
            let last = (empty + MAX_COOLING_PANES).min(target - 1);
            while self.is_hot() && self.timeline.mark(0).head < last {
                let next = self.timeline.mark(0).head + 1;
                self.walk_to(next, closed.min(next - lag), lag, out);
            }
            self.skip_to(target, closed, newest_ms, out);
        } else {
            self.walk_to(target, closed, lag, out);
        }
    }

    /// Pane by pane to the head `target`, with all panes up to `closed` closed, and on the way as many as stay `lag` panes behind.
    fn walk_to(&mut self, target: i64, closed: i64, lag: i64, out: &mut Outbox) {
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
        self.note_heads();
        let ends = [0, 1].map(|window| (window == 0 || long_ends).then(|| self.timeline.mark(window).head));
        let bases = self.bases(ends);
        let shard_bases = self.shard_bases(ends);
        while self.timeline.is_full() {
            self.step_closed(out);
        }
        self.timeline.open_next();
        for candidate in self.candidates.iter_mut() {
            candidate.roll(&self.timeline, long_ends);
        }
        self.shards.forget(self.timeline.head_from_ms());
        for shard in self.shards.iter_mut() {
            shard.roll(&self.timeline, long_ends);
        }
        for window in 0..self.timeline.windows() {
            let (from, to) = window_ending_at(&self.timeline, window, self.timeline.mark(window).head);
            self.head_events[window] = self.counts.events(&self.timeline, window, from, to);
        }
        self.set_levels(bases, shard_bases);
        let room = self.candidates.len() < self.settings.counting.max_candidates / 4 * 3;
        self.open_admission(room);
        self.judge_heads(out);
    }

    pub(super) fn open_admission(&mut self, has_room: bool) {
        let head = self.timeline.mark(0).head;
        let oldest = self.oldest_short(0).min(self.oldest_short(1));
        self.admission.open_pane(head, oldest, self.rules.least_ever(self.head_events), has_room);
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
        self.set_closed_levels(long_too);
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
        self.forget_levels();
        self.open_admission(true);
        self.cool_from(cool_ms);
        self.shards.forget(self.timeline.head_from_ms());
        self.judge_closed(out);
        self.tidy();
    }
}
