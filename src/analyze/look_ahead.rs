//! The clock of a replay: recorded events have none, so the median of those that come next stands for it.

use std::collections::VecDeque;

use crate::input::{AccessEvent, Keys, MAX_KEYSPACES, Operation};
use crate::units::{EventTime, Span};

/// How many events are looked at ahead. A wrong time among them moves their median by one place, so that it does no harm.
pub const LOOK_AHEAD: usize = 4096;
/// The clock is read anew after so many events, or after a quarter of what is left.
const RENEW_AFTER: usize = 512;

/// The next events, and the clock at the first of them: their median, and the disorder that they may have.
///
/// So an event is never ahead of the clock while none is out of order by more than the disorder: all that come behind it are
/// older by the disorder at most, and of those that the median was taken over at most a quarter came before it.
#[derive(Debug)]
pub(super) struct LookAhead {
    disorder: Span,
    events: VecDeque<StoredEvent>,
    /// Used up events, for their memory.
    spare: Vec<StoredEvent>,
    times: Vec<i64>,
    until_renewal: usize,
    now: Option<EventTime>,
}

impl LookAhead {
    /// Nothing yet; times may step back by up to `disorder`.
    pub(super) fn new(disorder: Span) -> Self {
        Self { disorder, events: VecDeque::new(), spare: Vec::new(), times: Vec::new(), until_renewal: 0, now: None }
    }

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
        // Of an even number the upper one, so that the last but one is not ahead of it.
        let middle = self.times.len() / 2;
        let (_, &mut median, _) = self.times.select_nth_unstable(middle);
        self.now = self.now.max(EventTime::from_millis(median).ok().map(|median| median.saturating_add(self.disorder)));
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
    use proptest::prelude::*;

    use super::*;

    fn event(millis: i64) -> AccessEvent<'static> {
        AccessEvent::new(EventTime::from_millis(millis).unwrap(), b"k")
    }

    /// The clock at each event.
    fn clocks(times: &[i64], disorder_ms: u64) -> Vec<i64> {
        let mut ahead = LookAhead::new(Span::from_millis(disorder_ms));
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
            let clocks = clocks(&times, 0);
            assert_eq!(clocks.len(), times.len());
            assert!(times.iter().zip(&clocks).all(|(time, now)| time <= now), "{count} {step}");
            assert!(clocks.is_sorted());
        }
    }

    proptest! {
        #[test]
        fn no_event_within_the_disorder_is_ahead_of_the_clock(
            count in 1..6000_usize,
            step in 0..2000_i64,
            disorder in 0..60_000_u64,
            seed in any::<u64>(),
        ) {
            let mut state = seed | 1;
            let times: Vec<i64> = (0..count as i64)
                .map(|index| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    1_700_000_000_000 + index * step - i64::try_from((state >> 33) % (disorder + 1)).unwrap()
                })
                .collect();
            let clocks = clocks(&times, disorder);
            prop_assert!(times.iter().zip(&clocks).all(|(time, now)| time <= now));
            prop_assert!(clocks.is_sorted());
        }
    }

    #[test]
    fn wrong_times_at_the_start_do_not_move_the_clock() {
        let base = 1_700_000_000_000;
        let mut times: Vec<i64> = (0..45).map(|day| base + (day - 4) * 86_400_000).collect();
        times.extend((0..10_000).map(|index| base + index * 100));
        assert!(clocks(&times, 2000).iter().all(|&now| now >= base && now < base + 1_002_000));
    }
}
