//! How evenly the load lies: calls by shard over a sliding window, and the hottest shard as a multiple of the median.

use std::collections::VecDeque;

use crate::units::Span;

/// Calls by shard in slots of equal length; the newest slots make up a window.
#[derive(Debug, Clone)]
pub struct LoadMeter {
    slot_ms: u64,
    slots: usize,
    shards: usize,
    /// Number of the newest slot since the start.
    newest: u64,
    counts: VecDeque<Vec<u64>>,
}

impl LoadMeter {
    /// A meter of `shards` shards over the `slots` (at least one) newest slots, each `slot` (at least 1 ms) long.
    #[must_use]
    pub fn new(shards: usize, slot: Span, slots: usize) -> Self {
        let counts = VecDeque::from([vec![0; shards]]);
        Self { slot_ms: slot.as_millis().max(1), slots: slots.max(1), shards, newest: 0, counts }
    }

    /// A call on `shard` at `at` since the start. A call older than the window is in none.
    pub fn add(&mut self, at: Span, shard: usize) {
        self.advance(at);
        let back = usize::try_from(self.newest.saturating_sub(at.as_millis() / self.slot_ms)).unwrap_or(usize::MAX);
        let slot = self.counts.len().checked_sub(back.saturating_add(1)).and_then(|at| self.counts.get_mut(at));
        if let Some(count) = slot.and_then(|slot| slot.get_mut(shard)) {
            *count += 1;
        }
    }

    /// It is `now` since the start: older slots leave.
    pub fn advance(&mut self, now: Span) {
        let newest = now.as_millis() / self.slot_ms;
        let gone = newest.saturating_sub(self.newest);
        // One slot more than the window: the newest one is still open.
        let keep = self.slots + 1;
        if gone >= keep as u64 {
            self.counts.clear();
        }
        for _ in 0..gone.min(keep as u64) {
            self.counts.push_back(vec![0; self.shards]);
        }
        self.newest = self.newest.max(newest);
        while self.counts.len() > keep {
            self.counts.pop_front();
        }
    }

    /// Calls by shard in the closed slots of the window; none before the first window is full.
    #[must_use]
    pub fn load(&self) -> Option<Vec<u64>> {
        if self.counts.len() <= self.slots {
            return None;
        }
        let mut sum = vec![0; self.shards];
        for slot in self.counts.iter().take(self.slots) {
            for (total, count) in sum.iter_mut().zip(slot) {
                *total += count;
            }
        }
        Some(sum)
    }

    /// Calls a second by shard in the newest closed slots, at most `slots` of them.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for display: counts of a few seconds lie far below 2^53")]
    pub fn rates(&self, slots: usize) -> Vec<f64> {
        let closed = self.counts.len().saturating_sub(1);
        let taken = closed.min(slots);
        let mut sum = vec![0_u64; self.shards];
        for slot in self.counts.iter().take(closed).rev().take(taken) {
            for (total, count) in sum.iter_mut().zip(slot) {
                *total += count;
            }
        }
        let secs = (taken as u64 * self.slot_ms) as f64 / 1000.0;
        sum.into_iter().map(|count| if taken == 0 { 0.0 } else { count as f64 / secs }).collect()
    }

    /// The hottest shard's load as a multiple of the median shard's; none before the first window is full and while the median
    /// shard is idle.
    #[must_use]
    pub fn imbalance(&self) -> Option<f64> {
        imbalance(&self.load()?)
    }
}

/// The highest count as a multiple of the median (of an even number: the mean of the middle two); none when that is 0.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a quotient for display and for thresholds with two digits")]
pub fn imbalance(counts: &[u64]) -> Option<f64> {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable();
    let hottest = *sorted.last()?;
    let middle = sorted.get((sorted.len() - 1) / 2)? + sorted.get(sorted.len() / 2)?;
    (middle > 0).then(|| hottest as f64 * 2.0 / middle as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_the_middle_two() {
        assert_eq!(imbalance(&[10, 30, 20, 100]), Some(4.0));
        assert_eq!(imbalance(&[5]), Some(1.0));
        assert_eq!(imbalance(&[0, 0, 0, 9]), None);
        assert_eq!(imbalance(&[]), None);
    }

    #[test]
    fn nothing_is_said_before_the_window_is_full() {
        let mut meter = LoadMeter::new(2, ms(100), 3);
        meter.add(ms(0), 0);
        meter.advance(ms(299));
        assert_eq!(meter.load(), None);
        meter.advance(ms(300));
        assert_eq!(meter.load(), Some(vec![1, 0]));
        meter.advance(ms(400));
        assert_eq!(meter.load(), Some(vec![0, 0]));
    }

    #[test]
    fn rates_are_those_of_closed_slots() {
        let mut meter = LoadMeter::new(1, ms(500), 4);
        assert_eq!(meter.rates(2), [0.0]);
        for at in 0..1500 {
            meter.add(ms(at), 0);
        }
        assert_eq!(meter.rates(2), [1000.0]);
        assert_eq!(meter.rates(9), [1000.0]);
    }

    proptest! {
        #[test]
        fn the_window_holds_what_an_exact_count_holds(
            calls in prop::collection::vec((0_u64..5000, 0_usize..3), 0..200), slots in 1_usize..6, until in 0_u64..6000,
        ) {
            let mut calls = calls;
            calls.sort_unstable();
            let mut meter = LoadMeter::new(3, ms(250), slots);
            for (at, shard) in calls.iter().filter(|(at, _)| *at <= until) {
                meter.add(ms(*at), *shard);
            }
            meter.advance(ms(until));
            let open = until / 250;
            let exact = |shard| calls.iter().filter(|(at, s)| {
                *at <= until && *s == shard && at / 250 < open && at / 250 + slots as u64 >= open
            }).count() as u64;
            match meter.load() {
                Some(load) => prop_assert_eq!(load, vec![exact(0), exact(1), exact(2)]),
                None => prop_assert!(open < slots as u64),
            }
        }
    }
}
