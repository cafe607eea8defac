//! Who is hot: raised at the head at the very event, raised and cleared at the watermark, kept or evicted.

use super::super::outbox::Outbox;
use super::super::rules::Seen;
use super::super::verdict::{Change, Profile, Reason, Subject, Verdict};
use super::super::window::{Candidate, Detail, MAX_DETAILS, MAX_SHARD_DETAILS, MAX_WINDOWS, ShardDetail, Timeline};
use super::counting::Keyspace;
use crate::units::EventTime;

/// A full table gives up this part of its room at once, so that the work of making room is spread over many events.
const GIVE_UP: usize = 8;

impl Keyspace {
    /// A key reached a count at which its state may change.
    pub(super) fn look_at_key(&mut self, at: usize, newest: EventTime, out: &mut Outbox) {
        let Some(candidate) = self.candidates.get_mut(at) else { return };
        let (set, seen) = (candidate.set, Seen { counts: candidate.tally.head(), events: self.head_events });
        if let Some(raised) = candidate.heat.raise(self.rules.head(set), &seen, newest) {
            out.push(verdict(self.number, candidate, &self.timeline, raised));
        }
        // Half of the room is kept for what is proved hot: that is what a plan needs the detail for.
        let room = if candidate.heat.is_hot() { MAX_DETAILS } else { MAX_DETAILS / 2 };
        if candidate.detail().is_none() && self.details < room {
            let uppers = seen.counts.map(|count| count.upper);
            if self.admission.reaches(set, uppers, 0.5) || !candidate.heat.is_cold() {
                let detail = Detail::new(&candidate.key, self.settings.plan_seed, self.timeline.generation());
                candidate.set_detail(Some(Box::new(detail)));
                self.details += 1;
            }
        }
        let mut wake = candidate.heat.wake(self.rules.head(set), &seen, self.timeline.windows());
        if candidate.detail().is_none() && self.details < room {
            for (window, wake) in wake.iter_mut().enumerate() {
                *wake = (*wake).min(self.admission.half(
                    set,
                    window,
                    seen.counts[window].upper - seen.counts[window].lower,
                ));
            }
        }
        candidate.tally.set_wake(wake);
    }

    /// A shard reached a count at which its state may change. All counts of shards are known at any moment, so that before one is
    /// raised its threshold is that of this very moment: where traffic begins all at once, nobody is ahead of the others for long.
    pub(super) fn look_at_shard(&mut self, at: usize, newest: EventTime, out: &mut Outbox) {
        let Some(shard) = self.shards.get(at).filter(|shard| !shard.heat.is_hot()) else { return };
        if self.shard_levels.find(&shard.tally.head(), &self.head_events).is_some() {
            self.refresh_shard_levels();
        }
        self.judge_shard(at, newest, out);
    }

    fn judge_shard(&mut self, at: usize, newest: EventTime, out: &mut Outbox) {
        let Some(shard) = self.shards.get_mut(at) else { return };
        let seen = Seen { counts: shard.tally.head(), events: self.head_events };
        let raised = shard.heat.raise(&self.shard_levels, &seen, newest);
        let mut wake = shard.heat.wake(&self.shard_levels, &seen, self.timeline.windows());
        if shard.detail.is_none() && self.shard_details < MAX_SHARD_DETAILS {
            let half = [0, 1].map(|window| self.shard_levels.least(window, seen.events[window]).div_ceil(2));
            let is_half = (0..self.timeline.windows()).any(|window| seen.counts[window].lower >= half[window]);
            if is_half || !shard.heat.is_cold() {
                let detail = ShardDetail::new(self.settings.counting.seed, self.timeline.generation());
                shard.detail = Some(Box::new(detail));
                self.shard_details += 1;
            } else {
                wake = [wake[0].min(half[0]), wake[1].min(half[1])];
            }
        }
        shard.tally.set_wake(wake);
        if let Some(raised) = raised {
            self.tell_shard(at, raised, out);
        }
    }

    fn tell_shard(&mut self, at: usize, (change, reason): (Change, Reason), out: &mut Outbox) {
        let Some(shard) = self.shards.get(at) else { return };
        let profile = Profile::Shard(Box::new(self.shard_profile(shard)));
        let at = shard.heat.changed().unwrap_or(EventTime::MIN);
        let subject = Subject::Shard(shard.name.clone());
        out.push(Verdict { at, keyspace: self.number, change, subject, reason, profile });
    }

    /// Thresholds are new: everybody is judged again on the newest windows.
    pub(super) fn judge_heads(&mut self, out: &mut Outbox) {
        let at = time(self.timeline.head_from_ms());
        for key in 0..self.candidates.len() {
            self.look_at_key(key, at, out);
        }
        self.refresh_shard_levels();
        for shard in 0..self.shards.len() {
            self.judge_shard(shard, at, out);
        }
    }

    /// The watermark passed a pane: everybody is judged on the windows that ended.
    pub(super) fn judge_closed(&mut self, out: &mut Outbox) {
        let at = time(self.timeline.closed_until_ms());
        let number = self.number;
        for candidate in self.candidates.iter_mut() {
            let head = Seen { counts: candidate.tally.head(), events: self.head_events };
            let closed = Seen { counts: candidate.tally.closed(), events: self.closed_events };
            let heat = &mut candidate.heat;
            let (levels, closed_levels) = (self.rules.head(candidate.set), self.rules.closed(candidate.set));
            let raised = heat.raise(closed_levels, &closed, at);
            let cleared = heat.clear((levels, &head), (closed_levels, &closed), self.calm, at);
            for told in raised.into_iter().chain(cleared) {
                out.push(verdict(number, candidate, &self.timeline, told));
            }
            let wake = candidate.heat.wake(levels, &head, self.timeline.windows());
            candidate.tally.set_wake_at_most(wake);
        }
        for number in 0..self.shards.len() {
            let Some(shard) = self.shards.get_mut(number) else { continue };
            let head = Seen { counts: shard.tally.head(), events: self.head_events };
            let closed = Seen { counts: shard.tally.closed(), events: self.closed_events };
            let heat = &mut shard.heat;
            let (levels, closed_levels) = (&self.shard_levels, &self.closed_shard_levels);
            let raised = heat.raise(closed_levels, &closed, at);
            let cleared = heat.clear((levels, &head), (closed_levels, &closed), self.calm, at);
            let wake = heat.wake(levels, &head, self.timeline.windows());
            shard.tally.set_wake_at_most(wake);
            for told in raised.into_iter().chain(cleared) {
                self.tell_shard(number, told, out);
            }
        }
    }

    /// A pane of the newest windows ends: what is not cool in them is remembered. Call when open panes are settled.
    pub(super) fn note_heads(&mut self) {
        let until = time(self.next_pane_ms());
        let (calm, events) = (self.calm, self.head_events);
        for candidate in self.candidates.iter_mut() {
            let head = Seen { counts: candidate.tally.head(), events };
            candidate.heat.note_head(self.rules.head(candidate.set), &head, calm, until);
        }
        for shard in self.shards.iter_mut() {
            let head = Seen { counts: shard.tally.head(), events };
            shard.heat.note_head(&self.shard_levels, &head, calm, until);
        }
    }

    /// After a jump: everybody's counts have been zero since then.
    pub(super) fn cool_from(&mut self, since_ms: i64) {
        let since = time(since_ms);
        self.candidates.iter_mut().for_each(|candidate| candidate.heat.cool_from(since));
        self.shards.iter_mut().for_each(|shard| shard.heat.cool_from(since));
    }

    /// Evicts cold keys below half the level, and drops detail that is no longer worth its room.
    pub(super) fn tidy(&mut self) {
        let Self { candidates, timeline, admission, details, .. } = self;
        candidates.remove_where(|_, candidate| {
            candidate.tally.forget_residual(timeline);
            if !candidate.heat.is_cold() {
                return false;
            }
            let uppers = live_uppers(candidate, timeline);
            if candidate.detail().is_some() && !admission.reaches(candidate.set, uppers, 0.25) {
                candidate.set_detail(None);
                *details = details.saturating_sub(1);
            }
            let gone = !candidate.planned && admission.evicts(candidate.set, uppers);
            if gone && candidate.detail().is_some() {
                *details = details.saturating_sub(1);
            }
            gone
        });
        let Self { shards, shard_levels, head_events, shard_details, .. } = self;
        for shard in shards.iter_mut().filter(|shard| shard.detail.is_some() && shard.heat.is_cold()) {
            let counts = shard.tally.head();
            let is_warm = |window: usize| counts[window].lower >= shard_levels.least(window, head_events[window]) / 4;
            if !(is_warm(0) || is_warm(1)) {
                shard.detail = None;
            }
        }
        *shard_details = shards.iter().filter(|shard| shard.detail.is_some()).count();
    }

    /// The table is full: those below half the level go; when they are few, the coolest go and the level rises to theirs.
    pub(super) fn make_room(&mut self, newest: EventTime, out: &mut Outbox) {
        self.tidy();
        let max = self.settings.counting.max_candidates;
        let wanted = (max / GIVE_UP).max(1);
        if max - self.candidates.len() >= wanted {
            return;
        }
        let mut order: Vec<(u8, f64, usize)> = self
            .candidates
            .iter()
            .enumerate()
            .map(|(at, candidate)| {
                let heat = self.admission.heat(candidate.set, live_uppers(candidate, &self.timeline));
                (rank(candidate), heat, at)
            })
            .collect();
        order.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| b.1.total_cmp(&a.1)));
        let ranked = order.iter().filter(|entry| entry.0 > 0).count();
        let kept = ranked.min(self.settings.counting.max_protected);
        self.protected_cut += (ranked - kept) as u64;
        let mut rest = order.split_off(kept);
        rest.sort_by(|a, b| a.1.total_cmp(&b.1));
        rest.truncate(wanted);
        let heat = rest.last().map_or(0.0, |entry| entry.1);
        self.admission.rise(heat);
        let mut gone = vec![false; self.candidates.len()];
        rest.iter().for_each(|entry| gone[entry.2] = true);
        let Self { candidates, timeline, admission, details, rules, head_events, number, .. } = self;
        candidates.remove_where(|at, candidate| {
            if !gone[at] {
                return false;
            }
            admission.promise(candidate.set, live_uppers(candidate, timeline));
            *details = details.saturating_sub(usize::from(candidate.detail().is_some()));
            if !candidate.heat.is_cold() {
                let seen = Seen { counts: candidate.tally.head(), events: *head_events };
                admission.note_end(newest);
                let ended = candidate.heat.end(rules.head(candidate.set), &seen, newest);
                out.push(verdict(*number, candidate, timeline, ended));
            }
            true
        });
    }
}

/// Planned before hot before suspect before all others.
fn rank(candidate: &Candidate) -> u8 {
    if candidate.planned {
        3
    } else if candidate.heat.is_hot() {
        2
    } else {
        u8::from(candidate.heat.is_suspect())
    }
}

fn live_uppers(candidate: &Candidate, timeline: &Timeline) -> [u64; MAX_WINDOWS] {
    let mut uppers = [0; MAX_WINDOWS];
    for (window, upper) in uppers.iter_mut().enumerate().take(timeline.windows()) {
        *upper = candidate.tally.live(timeline, window).upper;
    }
    uppers
}

fn verdict(keyspace: usize, candidate: &Candidate, timeline: &Timeline, (change, reason): (Change, Reason)) -> Verdict {
    Verdict {
        at: candidate.heat.changed().unwrap_or(EventTime::MIN),
        keyspace,
        change,
        subject: Subject::Key(candidate.key.clone()),
        reason,
        profile: Profile::Key(Box::new(candidate.profile(timeline))),
    }
}

/// Pane boundaries lie within the range of event times, but for the first and the last pane of all.
pub(super) fn time(millis: i64) -> EventTime {
    EventTime::from_millis(millis.clamp(EventTime::MIN.as_millis(), EventTime::MAX.as_millis()))
        .unwrap_or(EventTime::MIN)
}
