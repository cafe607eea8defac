//! The counts of several instances become those of one.

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::identity::Mismatch;
use super::key_counts::KeyCounts;
use super::portable::{Listed, ListedShard, Window, spot, spots};
use super::shards::MAX_SHARDS;
use super::timeline::{MAX_WINDOWS, Timeline};
use crate::units::Estimate;

/// The most events of one window together: far more than any stream has, and far from the end of 64 bits.
pub(super) const MAX_EVENTS: u64 = 1 << 48;

/// Why two windows cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// They count in different ways.
    #[error(transparent)]
    Differs(#[from] Mismatch),
    /// Together they would have more events than are counted.
    #[error("{0} events in one window together, at most {MAX_EVENTS} are counted; merge each part once")]
    TooManyEvents(u64),
}

impl Window {
    /// Adds what another instance has counted of other events of the same keyspace.
    ///
    /// Panes go by their number. The merged window stands at the later head. It keeps the panes that both parts still hold
    /// whole: where one part's watermark is ahead it has forgotten panes, of which the sum would say too little; what the other
    /// part had in them is left out and counted ([`Window::left_out`]). So the newest windows are always whole.
    ///
    /// Panes, samples and shards are the same bit for bit in whatever order and grouping parts are merged, and the same as those
    /// of one instance that counted all the events. The bounds of a candidate hold in any grouping and are the tighter the more
    /// parts have it as a candidate. Candidates beyond this side's `max_candidates` are dropped, the least first, and
    /// [`Window::complete_above`] rises accordingly.
    ///
    /// Events are not remembered: a window merged with itself counts everything twice.
    ///
    /// # Errors
    /// [`MergeError`] when identities differ or when there are too many events; this window is then as it was.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        self.identity.check(&other.identity)?;
        if other.is_empty() {
            self.add_left_out(other);
            return Ok(());
        }
        if self.is_empty() {
            let (left_out, max_keys) = (self.left_out, self.max_keys);
            *self = Self { max_keys, ..other.clone() };
            self.left_out.iter_mut().zip(left_out).for_each(|(sum, more)| *sum = sum.saturating_add(more));
            self.drop_least();
            return Ok(());
        }
        self.check_events(other)?;
        let target = self.meeting(other);
        self.align(&target);
        let other = if marks(&other.timeline) == marks(&target) {
            Cow::Borrowed(other)
        } else {
            let mut moved = other.clone();
            moved.align(&target);
            Cow::Owned(moved)
        };
        self.add_left_out(&other);
        self.merge_keys(&other);
        self.merge_shards(&other);
        self.counts.merge(&other.counts, &self.timeline);
        self.since_ms = self.since_ms.max(other.since_ms);
        self.level = self.level.max(other.level);
        self.bars = self.bars.with(&other.bars);
        self.drop_least();
        Ok(())
    }

    fn add_left_out(&mut self, other: &Self) {
        self.left_out.iter_mut().zip(other.left_out).for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }

    fn check_events(&self, other: &Self) -> Result<(), MergeError> {
        for window in 0..self.windows() {
            let sum = self.all_events(window).saturating_add(other.all_events(window));
            if sum > MAX_EVENTS {
                return Err(MergeError::TooManyEvents(sum));
            }
        }
        Ok(())
    }

    fn all_events(&self, window: usize) -> u64 {
        let mark = self.timeline.mark(window);
        self.counts.events(&self.timeline, window, mark.oldest, mark.head)
    }

    /// Where both can stand.
    fn meeting(&self, other: &Self) -> Timeline {
        let (own, their) = (self.timeline.mark(0), other.timeline.mark(0));
        let mut target = self.timeline.clone();
        target.start_at(own.head.max(their.head), own.closed.max(their.closed));
        target
    }

    /// Closes and opens panes up to where `target` stands.
    fn align(&mut self, target: &Timeline) {
        let before = self.timeline.clone();
        for window in 0..self.windows() {
            let (from, until) = (before.mark(window), target.mark(window).oldest);
            let last = from.head.min(until - 1);
            let gone = self.counts.events(&before, window, from.oldest, last);
            self.left_out[window] = self.left_out[window].saturating_add(gone);
        }
        self.counts.walk(&before, target);
        self.timeline = target.clone();
        for listed in self.keys.values_mut() {
            listed.panes = moved(&before, target, &listed.panes);
        }
        for shard in self.shards.values_mut() {
            shard.panes = moved(&before, target, &shard.panes);
        }
        self.bars.forget_before(target.oldest_short());
    }

    /// Both stand at the same panes, whose counts are not yet merged.
    fn merge_keys(&mut self, other: &Self) {
        for (key, own) in &mut self.keys {
            match other.keys.get(key) {
                Some(theirs) => add(&mut own.panes, theirs.panes.iter().copied()),
                None => add(&mut own.panes, bounds(other, own.hash)),
            }
        }
        for (key, theirs) in &other.keys {
            if !self.keys.contains_key(key) {
                let mut panes = theirs.panes.clone();
                add(&mut panes, bounds(self, theirs.hash));
                self.keys.insert(Arc::clone(key), Listed { hash: theirs.hash, panes });
            }
        }
    }

    fn merge_shards(&mut self, other: &Self) {
        for (name, theirs) in &other.shards {
            let room = self.shards.len() < MAX_SHARDS;
            match self.shards.entry(Arc::clone(name)) {
                Entry::Occupied(mut own) => {
                    let own: &mut ListedShard = own.get_mut();
                    own.seen_ms = own.seen_ms.max(theirs.seen_ms);
                    own.panes.iter_mut().zip(&theirs.panes).for_each(|(count, more)| *count += more);
                }
                Entry::Vacant(place) if room => {
                    place.insert(theirs.clone());
                }
                Entry::Vacant(_) => self.shards_cut = self.shards_cut.saturating_add(1),
            }
        }
    }

    /// Too many candidates: the least go, and what may be missed rises to what they had.
    pub(super) fn drop_least(&mut self) {
        let Some(over) = self.keys.len().checked_sub(self.max_keys).filter(|over| *over > 0) else { return };
        let uppers = |listed: &Listed| {
            let mut uppers = [0u64; MAX_WINDOWS];
            spots(&self.timeline).zip(&listed.panes).for_each(|((window, _), pane)| uppers[window] += pane.upper);
            uppers
        };
        let mut order: Vec<([u64; MAX_WINDOWS], Arc<[u8]>)> =
            self.keys.iter().map(|(key, listed)| (uppers(listed), Arc::clone(key))).collect();
        order.sort_unstable();
        let mut most = [0; MAX_WINDOWS];
        for (uppers, key) in order.into_iter().take(over) {
            most.iter_mut().zip(uppers).for_each(|(most, upper)| *most = (*most).max(upper));
            self.keys.remove(&key);
        }
        self.bars.raise(self.timeline.mark(0).head, most);
    }
}

/// What a part knows of a key for which it has no counters.
fn bounds(part: &Window, hash: u64) -> impl Iterator<Item = Estimate> + '_ {
    spots(&part.timeline).map(move |(window, pane)| part.counts.bound(&part.timeline, window, pane, hash))
}

fn add(panes: &mut [Estimate], more: impl Iterator<Item = Estimate>) {
    for (pane, more) in panes.iter_mut().zip(more) {
        *pane = Estimate { lower: pane.lower + more.lower, upper: pane.upper + more.upper };
    }
}

fn marks(timeline: &Timeline) -> [super::timeline::Mark; MAX_WINDOWS] {
    [timeline.mark(0), timeline.mark(1)]
}

/// Counts a pane in the order of the panes that matter at `target`.
fn moved<T: Copy + Default>(before: &Timeline, target: &Timeline, panes: &[T]) -> Box<[T]> {
    let at = |(window, pane)| spot(before, window, pane).and_then(|spot| panes.get(spot).copied()).unwrap_or_default();
    spots(target).map(at).collect()
}

impl KeyCounts {
    /// Moves the rings from one place of the timeline to a later one.
    fn walk(&mut self, before: &Timeline, target: &Timeline) {
        let mut timeline = before.clone();
        let rings = (0..timeline.windows()).map(|window| {
            let axis = timeline.axis(window);
            axis.pane_ms.saturating_mul(axis.capacity + 1)
        });
        let steps = target.mark(0).head - timeline.mark(0).head;
        if steps.saturating_mul(timeline.axis(0).pane_ms) > rings.max().unwrap_or(0) {
            self.clear();
            return;
        }
        while timeline.mark(0).head < target.mark(0).head {
            self.close(&timeline);
            while timeline.is_full() {
                self.pass(&mut timeline);
            }
            timeline.open_next();
        }
        while timeline.mark(0).closed < target.mark(0).closed {
            self.pass(&mut timeline);
        }
    }

    /// The watermark passes a pane; those that no longer matter are emptied.
    fn pass(&mut self, timeline: &mut Timeline) {
        let oldest = [timeline.mark(0).oldest, timeline.mark(1).oldest];
        timeline.close_next();
        for (window, from) in oldest.into_iter().enumerate().take(timeline.windows()) {
            for pane in from..timeline.mark(window).oldest {
                self.expire(timeline, window, pane);
            }
        }
    }

    /// Adds counts of the same identity that stand at the same panes.
    fn merge(&mut self, other: &Self, timeline: &Timeline) {
        self.sketch.merge(&other.sketch);
        let open = timeline.ring_slot(0, timeline.mark(0).head);
        for (window, (own, theirs)) in self.rings.iter_mut().zip(&other.rings).enumerate() {
            for (slot, (own, theirs)) in own.iter_mut().zip(theirs).enumerate() {
                own.events += theirs.events;
                if window == 0 && slot == open {
                    // What the open pane holds is in the totals.
                    own.sample.merge(&theirs.sample);
                } else {
                    own.fold(self.sketch.rows(), theirs);
                }
            }
        }
    }
}
