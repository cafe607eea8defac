//! Event time over all partitions: how far it is (newest), and up to where all is counted (watermark).

use super::super::settings::TimeSettings;
use super::super::status::Progress;
use crate::units::{EventTime, Partition, Span};

/// One partition.
#[derive(Debug, Clone, Copy)]
struct Part {
    partition: Partition,
    /// Newest accepted event; none before the first.
    newest: Option<EventTime>,
    /// The clock when it was accepted.
    heard: Option<EventTime>,
    /// Records are waiting to be read.
    unread: bool,
    /// Read to its end, as far as the source has said.
    at_end: bool,
    paused: bool,
    idle: bool,
}

impl Part {
    const fn new(partition: Partition) -> Self {
        Self { partition, newest: None, heard: None, unread: false, at_end: false, paused: false, idle: false }
    }
}

/// Event time over all partitions.
///
/// A partition's watermark is its newest event less `disorder`; the watermark over all is the least of those that are not
/// idle, and never goes back. When all are idle event time follows the clock from where it stood at the last event.
#[derive(Debug, Clone)]
pub(crate) struct Watermark {
    settings: TimeSettings,
    /// In the order of their numbers.
    parts: Vec<Part>,
    /// Where the last event's partition stands: the next event is likely to be of the same.
    last: usize,
    newest: Option<EventTime>,
    watermark: Option<EventTime>,
    /// The newest event, and the clock at the last accepted one: where event time stood.
    anchor: Option<(EventTime, EventTime)>,
    now: EventTime,
}

impl Watermark {
    /// Before the first event.
    pub(crate) const fn new(settings: TimeSettings) -> Self {
        Self { settings, parts: Vec::new(), last: 0, newest: None, watermark: None, anchor: None, now: EventTime::MIN }
    }

    /// The newest event time, or where the clock has carried it since.
    pub(crate) const fn newest(&self) -> Option<EventTime> {
        self.newest
    }

    /// Up to here all is counted.
    pub(crate) const fn watermark(&self) -> Option<EventTime> {
        self.watermark
    }

    /// True when an event is ahead of the clock by more than is allowed.
    pub(crate) fn is_future(&self, time: EventTime, now: EventTime) -> bool {
        time > now.saturating_add(self.settings.max_ahead)
    }

    /// Takes the time of an accepted event. True when the partition is new.
    pub(crate) fn accept(&mut self, partition: Partition, time: EventTime, now: EventTime) -> bool {
        self.now = self.now.max(now);
        let known = self.seek(partition);
        let now = self.now;
        let Some(part) = self.parts.get_mut(self.last) else { return !known };
        let before = part.newest;
        part.heard = Some(now);
        part.newest = before.max(Some(time));
        let woken = std::mem::replace(&mut part.idle, false);
        self.newest = self.newest.max(Some(time));
        self.anchor = self.newest.map(|newest| (newest, self.now));
        // Only the slowest partition can hold the watermark back, so only its progress can move it on.
        let slowest = before.is_none_or(|newest| Some(newest.saturating_sub(self.settings.disorder)) <= self.watermark);
        if slowest || woken {
            self.recompute();
        }
        !known
    }

    /// Takes a partition's progress. True when the partition is new.
    pub(crate) fn progress(&mut self, progress: Progress, now: EventTime) -> bool {
        self.now = self.now.max(now);
        let known = self.seek(progress.partition);
        if let Some(part) = self.parts.get_mut(self.last) {
            part.unread = progress.position < progress.end;
            part.at_end = !part.unread;
            part.paused = progress.paused;
        }
        self.pass(now);
        !known
    }

    /// A partition was taken away: it holds nothing back.
    pub(crate) fn revoke(&mut self, partition: Partition) {
        self.parts.retain(|part| part.partition != partition);
        self.recompute();
    }

    /// Time passes: partitions become idle, and when all are, event time follows the clock.
    pub(crate) fn pass(&mut self, now: EventTime) {
        self.now = self.now.max(now);
        for part in &mut self.parts {
            let silent = part.heard.is_some_and(|heard| self.now.since(heard) >= self.settings.idle_timeout);
            part.idle = silent && part.at_end && !part.paused;
        }
        self.recompute();
    }

    /// Points `last` at a partition, which is added when it is new; true when it was known.
    #[inline]
    fn seek(&mut self, partition: Partition) -> bool {
        if self.parts.get(self.last).is_some_and(|part| part.partition == partition) {
            return true;
        }
        let found = self.parts.binary_search_by_key(&partition, |part| part.partition);
        self.last = found.unwrap_or_else(|at| at);
        if found.is_err() {
            self.parts.insert(self.last, Part::new(partition));
        }
        found.is_ok()
    }

    fn recompute(&mut self) {
        let least = self.holding().filter_map(|part| part.newest).min();
        let reached = match (least, self.anchor) {
            (Some(newest), _) => newest,
            (None, Some((newest, heard))) => {
                let carried = newest.saturating_add(self.now.since(heard));
                self.newest = self.newest.max(Some(carried));
                carried
            }
            (None, None) => return,
        };
        self.watermark = self.watermark.max(Some(reached.saturating_sub(self.settings.disorder)));
    }

    /// Partitions that hold event time back.
    fn holding(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| part.newest.is_some() && !part.idle)
    }

    /// A partition has unread records and is behind the clock by more than `window`.
    pub(crate) fn is_catching_up(&self, window: Span) -> bool {
        let behind = |newest: EventTime| self.now.since(newest) > window;
        self.parts.iter().any(|part| part.unread && part.newest.is_some_and(behind))
    }

    /// The clock at which the next partition becomes idle.
    pub(crate) fn next_idle(&self) -> Option<EventTime> {
        let waiting = self.holding().filter(|part| part.at_end && !part.paused);
        waiting.filter_map(|part| part.heard).min().map(|heard| heard.saturating_add(self.settings.idle_timeout))
    }

    /// The clock at which event time, carried by it, reaches `newest`; none while a partition holds it.
    pub(crate) fn clock_at(&self, newest: EventTime) -> Option<EventTime> {
        let (anchor, heard) = self.anchor.filter(|_| self.holding().next().is_none())?;
        Some(heard.saturating_add(newest.since(anchor)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Offset;

    const BASE_MS: i64 = 1_700_000_000_000;

    fn at(secs: i64) -> EventTime {
        EventTime::from_millis(BASE_MS + secs * 1000).unwrap()
    }

    fn progress(partition: i32, unread: i64, paused: bool) -> Progress {
        Progress { partition: Partition(partition), position: Offset(5), end: Offset(5 + unread), paused }
    }

    #[test]
    fn the_slowest_partition_holds_the_watermark_until_it_is_idle() {
        let mut time = Watermark::new(TimeSettings::default());
        time.accept(Partition(0), at(10), at(10));
        time.accept(Partition(1), at(20), at(20));
        assert_eq!((time.newest(), time.watermark()), (Some(at(20)), Some(at(8))));
        // Never read to its end: holds on.
        time.pass(at(100));
        assert_eq!(time.watermark(), Some(at(8)));
        time.progress(progress(0, 0, true), at(100));
        assert_eq!(time.watermark(), Some(at(8)), "a paused one is never idle");
        time.progress(progress(0, 0, false), at(100));
        assert_eq!(time.watermark(), Some(at(18)));
        // It wakes behind: the watermark stays.
        time.accept(Partition(0), at(11), at(101));
        assert_eq!(time.watermark(), Some(at(18)));
    }

    #[test]
    fn when_all_are_idle_event_time_follows_the_clock() {
        let mut time = Watermark::new(TimeSettings::default());
        time.accept(Partition(0), at(0), at(1000));
        time.progress(progress(0, 0, false), at(1001));
        assert_eq!(time.next_idle(), Some(at(1005)));
        assert_eq!(time.clock_at(at(30)), None);
        time.pass(at(1005));
        assert_eq!((time.newest(), time.watermark()), (Some(at(5)), Some(at(3))));
        assert_eq!(time.clock_at(at(30)), Some(at(1030)));
        time.pass(at(1030));
        assert_eq!(time.newest(), Some(at(30)));
        assert_eq!(time.next_idle(), None);
    }

    #[test]
    fn a_partition_without_events_holds_nothing_back() {
        let mut time = Watermark::new(TimeSettings::default());
        assert!(time.progress(progress(7, 100, false), at(0)));
        assert_eq!(time.watermark(), None);
        assert!(time.accept(Partition(0), at(50), at(50)));
        assert!(!time.accept(Partition(0), at(52), at(52)));
        assert_eq!(time.watermark(), Some(at(50)));
        time.revoke(Partition(0));
        assert_eq!(time.watermark(), Some(at(50)));
    }

    #[test]
    fn behind_with_unread_records_is_catching_up() {
        let mut time = Watermark::new(TimeSettings::default());
        time.accept(Partition(0), at(0), at(3600));
        assert!(!time.is_catching_up(Span::from_secs(60)));
        time.progress(progress(0, 9, false), at(3600));
        assert!(time.is_catching_up(Span::from_secs(60)));
        time.accept(Partition(0), at(3590), at(3601));
        assert!(!time.is_catching_up(Span::from_secs(60)));
    }
}
