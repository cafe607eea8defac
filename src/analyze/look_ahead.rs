//! The clock of a replay: recorded events have none, so the median of those that come next stands for it.

use std::collections::VecDeque;

use crate::input::{AccessEvent, Keys, MAX_KEYSPACES, Operation};
use crate::units::EventTime;

/// How many events are looked at ahead. A wrong time among them moves their median by one place, so that it does no harm.
pub const LOOK_AHEAD: usize = 4096;
/// The clock is read anew after so many events, or after a quarter of what is left, so that no event runs ahead of it.
const RENEW_AFTER: usize = 512;

/// The next events, and the clock at the first of them.
#[derive(Debug, Default)]
pub(super) struct LookAhead {
    events: VecDeque<StoredEvent>,
    /// Used up events, for their memory.
    spare: Vec<StoredEvent>,
    times: Vec<i64>,
    until_renewal: usize,
    now: Option<EventTime>,
}

impl LookAhead {
    /// True when the next event may be taken: there are enough behind it.
    pub(super) fn is_full(&self) -> bool {
        self.events.len() >= LOOK_AHEAD
    }

    /// Takes an event in.
    pub(super) fn push(&mut self, event: &AccessEvent<'_>) {
        let mut stored = self.spare.pop().unwrap_or_default();
        stored.store(event);
        self.events.push_back(stored);
    }

    /// The next event with the clock, which never goes back.
    pub(super) fn pop(&mut self) -> Option<(StoredEvent, EventTime)> {
        if self.until_renewal == 0 {
            self.renew();
        }
        self.until_renewal = self.until_renewal.saturating_sub(1);
        let event = self.events.pop_front()?;
        let now = self.now.unwrap_or(event.time);
        Some((event, now))
    }

    /// Gives an event's memory back.
    pub(super) fn recycle(&mut self, event: StoredEvent) {
        if self.spare.len() < LOOK_AHEAD {
            self.spare.push(event);
        }
    }

    fn renew(&mut self) {
        self.times.clear();
        self.times.extend(self.events.iter().map(|event| event.time.as_millis()));
        self.until_renewal = (self.times.len() / 4).clamp(1, RENEW_AFTER);
        if self.times.is_empty() {
            return;
        }
        // Of an even number the upper one: the last two events are then both at or before it.
        let middle = self.times.len() / 2;
        let (_, &mut median, _) = self.times.select_nth_unstable(middle);
        self.now = self.now.max(EventTime::from_millis(median).ok());
    }
}

/// An event with everything in it owned: its texts one behind the other.
#[derive(Debug)]
pub(super) struct StoredEvent {
    time: EventTime,
    operation: Operation,
    weight: u64,
    texts: Vec<u8>,
    /// Where each text ends: shard, request id, caller, then the keys.
    ends: [usize; 3 + MAX_KEYSPACES],
}

impl Default for StoredEvent {
    fn default() -> Self {
        Self {
            time: EventTime::MIN,
            operation: Operation::Unknown,
            weight: 1,
            texts: Vec::new(),
            ends: [0; 3 + MAX_KEYSPACES],
        }
    }
}

impl StoredEvent {
    fn store(&mut self, event: &AccessEvent<'_>) {
        (self.time, self.operation, self.weight) = (event.time, event.operation, event.weight);
        self.texts.clear();
        let texts = [event.shard, event.request_id, event.caller];
        for (text, end) in texts.iter().chain(&event.keys.0).zip(&mut self.ends) {
            self.texts.extend_from_slice(text);
            *end = self.texts.len();
        }
    }

    pub(super) fn event(&self) -> AccessEvent<'_> {
        let text = |index: usize| {
            let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
            self.ends.get(index).and_then(|&end| self.texts.get(start..end)).unwrap_or_default()
        };
        AccessEvent {
            time: self.time,
            operation: self.operation,
            weight: self.weight,
            shard: text(0),
            request_id: text(1),
            caller: text(2),
            keys: Keys(std::array::from_fn(|keyspace| text(3 + keyspace))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(millis: i64) -> AccessEvent<'static> {
        AccessEvent::new(EventTime::from_millis(millis).unwrap(), b"k")
    }

    /// The clock at each event.
    fn clocks(times: &[i64]) -> Vec<i64> {
        let mut ahead = LookAhead::default();
        let mut clocks = Vec::new();
        let mut take = |ahead: &mut LookAhead| {
            let (event, now) = ahead.pop()?;
            clocks.push(now.as_millis());
            ahead.recycle(event);
            Some(())
        };
        for &time in times {
            ahead.push(&event(time));
            while ahead.is_full() {
                take(&mut ahead);
            }
        }
        while take(&mut ahead).is_some() {}
        clocks
    }

    #[test]
    fn an_event_is_stored_as_it_is() {
        let mut stored = StoredEvent::default();
        for shard in [&b"s1"[..], b""] {
            let event = AccessEvent {
                operation: Operation::Write,
                weight: 7,
                shard,
                request_id: b"r",
                caller: b"",
                keys: Keys(std::array::from_fn(|index| [&b"a"[..], b"", b"ccc", b""][index % 4])),
                ..event(5)
            };
            stored.store(&event);
            assert_eq!(format!("{:?}", stored.event()), format!("{event:?}"));
        }
    }

    #[test]
    fn in_an_ordered_stream_no_event_is_ahead_of_the_clock() {
        for (count, step) in [(1, 1), (2, 60_000), (3, 60_000), (700, 9_999), (10_000, 7), (10_000, 100_000)] {
            let times: Vec<i64> = (1..=count).map(|index| 1_700_000_000_000 + index * step).collect();
            let clocks = clocks(&times);
            assert_eq!(clocks.len(), times.len());
            assert!(times.iter().zip(&clocks).all(|(time, now)| time <= now), "{count} {step}");
            assert!(clocks.is_sorted());
        }
    }

    #[test]
    fn wrong_times_at_the_start_do_not_move_the_clock() {
        let base = 1_700_000_000_000;
        let mut times: Vec<i64> = (0..45).map(|day| base + (day - 4) * 86_400_000).collect();
        times.extend((0..10_000).map(|index| base + index * 100));
        assert!(clocks(&times).iter().all(|&now| now >= base && now < base + 1_000_000));
    }
}
