//! Who is hot: raised at the head at the very event, raised and cleared at the watermark, kept or evicted.

use super::super::outbox::Outbox;
use super::super::rules::Seen;
use super::super::verdict::{Change, Reason, Subject, Verdict};
use super::super::window::{Candidate, Detail, MAX_DETAILS, MAX_WINDOWS, Timeline};
use super::counting::Keyspace;
use crate::units::EventTime;

/// A full table gives up this part of its room at once, so that the work of making room is spread over many events.
const GIVE_UP: usize = 8;

impl Keyspace {
    /// A key reached a count at which its state may change.
    pub(super) fn look_at_key(&mut self, at: usize, newest: EventTime, out: &mut Outbox) {
        let Some(candidate) = self.candidates.get_mut(at) else { return };
        let seen = Seen { counts: candidate.tally.head(), events: self.head_events };
        if let Some((change, reason)) = candidate.tally.heat.raise(&self.levels, &seen, newest) {
            out.push(verdict(self.number, Subject::Key(candidate.key.clone()), change, reason, &candidate.tally.heat));
        }
        // Half of the room is kept for what is proved hot: that is what a plan needs the detail for.
        let room = if candidate.tally.heat.is_hot() { MAX_DETAILS } else { MAX_DETAILS / 2 };
        if candidate.detail().is_none() && self.details < room {
            let uppers = seen.counts.map(|count| count.upper);
            if self.admission.reaches(uppers, 0.5) || !candidate.tally.heat.is_cold() {
                let detail = Detail::new(&candidate.key, self.settings.plan_seed, self.timeline.generation());
                candidate.set_detail(Some(Box::new(detail)));
                self.details += 1;
            }
        }
        let mut wake = candidate.tally.heat.wake(&self.levels, &seen, self.timeline.windows());
        if candidate.detail().is_none() && self.details < room {
            for (window, wake) in wake.iter_mut().enumerate() {
                *wake = (*wake).min(self.admission.half(window, seen.counts[window].upper - seen.counts[window].lower));
            }
        }
        candidate.tally.set_wake(wake);
    }

    /// A shard reached a count at which its state may change.
    pub(super) fn look_at_shard(&mut self, at: usize, newest: EventTime, out: &mut Outbox) {
        let Some(shard) = self.shards.get_mut(at) else { return };
        let seen = Seen { counts: shard.tally.head(), events: self.head_events };
        if let Some((change, reason)) = shard.tally.heat.raise(&self.shard_levels, &seen, newest) {
            out.push(verdict(self.number, Subject::Shard(shard.name.clone()), change, reason, &shard.tally.heat));
        }
        let wake = shard.tally.heat.wake(&self.shard_levels, &seen, self.timeline.windows());
        shard.tally.set_wake(wake);
    }

    /// Thresholds are new: everybody is judged again on the newest windows.
    pub(super) fn judge_heads(&mut self, out: &mut Outbox) {
        let at = time(self.timeline.head_from_ms());
        for key in 0..self.candidates.len() {
            self.look_at_key(key, at, out);
        }
        for shard in 0..self.shards.len() {
            self.look_at_shard(shard, at, out);
        }
    }

    /// The watermark passed a pane: everybody is judged on the windows that ended.
    pub(super) fn judge_closed(&mut self, out: &mut Outbox) {
        let at = time(self.timeline.closed_until_ms());
        let number = self.number;
        for candidate in self.candidates.iter_mut() {
            let head = Seen { counts: candidate.tally.head(), events: self.head_events };
            let closed = Seen { counts: candidate.tally.closed(), events: self.closed_events };
            let heat = &mut candidate.tally.heat;
            let raised = heat.raise(&self.levels, &closed, at);
            let cleared = heat.clear(&self.levels, &head, &closed, self.calm, at);
            for (change, reason) in raised.into_iter().chain(cleared) {
                out.push(verdict(number, Subject::Key(candidate.key.clone()), change, reason, heat));
            }
            let wake = candidate.tally.heat.wake(&self.levels, &head, self.timeline.windows());
            candidate.tally.set_wake_at_most(wake);
        }
        for shard in self.shards.iter_mut() {
            let head = Seen { counts: shard.tally.head(), events: self.head_events };
            let closed = Seen { counts: shard.tally.closed(), events: self.closed_events };
            let heat = &mut shard.tally.heat;
            let raised = heat.raise(&self.shard_levels, &closed, at);
            let cleared = heat.clear(&self.shard_levels, &head, &closed, self.calm, at);
            for (change, reason) in raised.into_iter().chain(cleared) {
                out.push(verdict(number, Subject::Shard(shard.name.clone()), change, reason, heat));
            }
            let wake = shard.tally.heat.wake(&self.shard_levels, &head, self.timeline.windows());
            shard.tally.set_wake_at_most(wake);
        }
    }

    /// After a jump: everybody's counts have been zero since then.
    pub(super) fn cool_from(&mut self, since_ms: i64) {
        let since = time(since_ms);
        self.candidates.iter_mut().for_each(|candidate| candidate.tally.heat.cool_from(since));
        self.shards.iter_mut().for_each(|shard| shard.tally.heat.cool_from(since));
    }

    /// Evicts cold keys below half the level, and drops detail that is no longer worth its room.
    pub(super) fn tidy(&mut self) {
        let Self { candidates, timeline, admission, details, .. } = self;
        candidates.remove_where(|_, candidate| {
            candidate.tally.forget_residual(timeline);
            if !candidate.tally.heat.is_cold() {
                return false;
            }
            let uppers = live_uppers(candidate, timeline);
            if candidate.detail().is_some() && !admission.reaches(uppers, 0.25) {
                candidate.set_detail(None);
                *details = details.saturating_sub(1);
            }
            let gone = !candidate.planned && admission.evicts(uppers);
            if gone && candidate.detail().is_some() {
                *details = details.saturating_sub(1);
            }
            gone
        });
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
                let heat = self.admission.heat(live_uppers(candidate, &self.timeline));
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
        let Self { candidates, timeline, admission, details, levels, head_events, number, .. } = self;
        candidates.remove_where(|at, candidate| {
            if !gone[at] {
                return false;
            }
            admission.promise(live_uppers(candidate, timeline));
            *details = details.saturating_sub(usize::from(candidate.detail().is_some()));
            if !candidate.tally.heat.is_cold() {
                let seen = Seen { counts: candidate.tally.head(), events: *head_events };
                let (change, reason) = candidate.tally.heat.end(levels, &seen, newest);
                let key = Subject::Key(candidate.key.clone());
                out.push(verdict(*number, key, change, reason, &candidate.tally.heat));
            }
            true
        });
    }
}

/// Planned before hot before suspect before all others.
fn rank(candidate: &Candidate) -> u8 {
    if candidate.planned {
        3
    } else if candidate.tally.heat.is_hot() {
        2
    } else {
        u8::from(candidate.tally.heat.is_suspect())
    }
}

fn live_uppers(candidate: &Candidate, timeline: &Timeline) -> [u64; MAX_WINDOWS] {
    let mut uppers = [0; MAX_WINDOWS];
    for (window, upper) in uppers.iter_mut().enumerate().take(timeline.windows()) {
        *upper = candidate.tally.live(timeline, window).upper;
    }
    uppers
}

fn verdict(
    keyspace: usize,
    subject: Subject,
    change: Change,
    reason: Reason,
    heat: &super::super::rules::Heat,
) -> Verdict {
    Verdict { at: heat.changed().unwrap_or(EventTime::MIN), keyspace, change, subject, reason }
}

/// Pane boundaries lie within the range of event times, but for the first and the last pane of all.
fn time(millis: i64) -> EventTime {
    EventTime::from_millis(millis.clamp(EventTime::MIN.as_millis(), EventTime::MAX.as_millis()))
        .unwrap_or(EventTime::MIN)
}
