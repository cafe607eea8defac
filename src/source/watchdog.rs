//! The commonest failure of Kafka consumers is the silent stall: lag, a broker that answers, and no progress (invariant I10).

use std::collections::BTreeMap;

use crate::units::{EventTime, Offset, Partition, Span};

/// What the watchdog makes of a pulse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Every partition moves, or has nothing unread, or no broker is there to send it.
    Fine,
    /// This partition has not moved for longer than the limit: not ready.
    Stalled(Partition, Span),
    /// This partition has not moved for twice the limit: a restart is the only cure.
    Dead(Partition, Span),
}

/// Watches every partition for progress.
#[derive(Debug)]
pub struct Watchdog {
    limit: Span,
    stuck: BTreeMap<Partition, (Offset, EventTime)>,
}

impl Watchdog {
    /// A watchdog that calls no progress for `limit` a stall.
    #[must_use]
    pub const fn new(limit: Span) -> Self {
        Self { limit, stuck: BTreeMap::new() }
    }

    /// Takes a pulse at `now` (the clock), once a second or so: every assigned partition with its position and known end.
    pub fn handle(
        &mut self,
        broker_up: bool,
        positions: impl Iterator<Item = (Partition, Offset, Option<Offset>)>,
        now: EventTime,
    ) -> Progress {
        let mut stuck = BTreeMap::new();
        let mut worst = Progress::Fine;
        let mut longest = Span::ZERO;
        for (partition, position, end) in positions {
            if !broker_up || end.is_none_or(|end| end <= position) {
                continue;
            }
            let since = match self.stuck.get(&partition) {
                Some(&(before, since)) if before == position => since,
                _ => now,
            };
            stuck.insert(partition, (position, since));
            let stalled = now.since(since);
            if stalled >= self.limit && stalled >= longest {
                longest = stalled;
                let dead = stalled >= self.limit.saturating_mul(2);
                worst = if dead { Progress::Dead(partition, stalled) } else { Progress::Stalled(partition, stalled) };
            }
        }
        self.stuck = stuck;
        worst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUCK: (Partition, Offset, Option<Offset>) = (Partition(1), Offset(5), Some(Offset(9)));

    fn at(secs: i64) -> EventTime {
        EventTime::from_millis(1_700_000_000_000 + secs * 1000).unwrap()
    }

    #[test]
    fn one_silent_partition_among_busy_ones_is_a_stall_and_then_death() {
        let mut dog = Watchdog::new(Span::from_secs(30));
        for secs in 0..30 {
            let busy = (Partition(0), Offset(secs), Some(Offset(1000)));
            assert_eq!(dog.handle(true, [busy, STUCK].into_iter(), at(secs)), Progress::Fine);
        }
        assert_eq!(dog.handle(true, [STUCK].into_iter(), at(31)), Progress::Stalled(Partition(1), Span::from_secs(31)));
        assert_eq!(dog.handle(true, [STUCK].into_iter(), at(61)), Progress::Dead(Partition(1), Span::from_secs(61)));
        let moved = (Partition(1), Offset(6), Some(Offset(9)));
        assert_eq!(dog.handle(true, [moved].into_iter(), at(62)), Progress::Fine);
    }

    #[test]
    fn no_lag_or_no_broker_is_no_stall() {
        let mut dog = Watchdog::new(Span::from_secs(30));
        let read = (Partition(1), Offset(9), Some(Offset(9)));
        for secs in 0..1000 {
            let (up, position) = if secs % 2 == 0 { (true, read) } else { (false, STUCK) };
            assert_eq!(dog.handle(up, [position].into_iter(), at(secs)), Progress::Fine);
        }
    }
}
