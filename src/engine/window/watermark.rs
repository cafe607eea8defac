//! Event time over all partitions: how far it is (newest), and up to where all is counted (watermark).

use super::super::settings::TimeSettings;
use super::super::status::Progress;
use super::super::verdict::Completeness;
use super::part::Part;
use crate::units::{EventTime, Partition, Span};

/// Event time over all partitions.
///
/// A partition's watermark is its newest event less `disorder`; the watermark over all is the least of those that are not
/// idle, and never goes back. When all are idle event time follows the clock from where it stood at the last event.
#[derive(Debug, Clone)]
pub(crate) struct Watermark {
    pub(super) settings: TimeSettings,
    /// In the order of their numbers.
    pub(super) parts: Vec<Part>,
    /// Where the last event's partition stands: the next event is likely to be of the same.
    pub(super) last: usize,
    newest: Option<EventTime>,
    watermark: Option<EventTime>,
    /// The newest event, and the clock at the last accepted one: where event time stood.
    anchor: Option<(EventTime, EventTime)>,
    /// The clock.
    pub(super) now: EventTime,
    /// Where the clock was before it was set back.
    latest: EventTime,
    /// Events up to here, in milliseconds, wait for nobody.
    pub(super) free_until: i64,
    /// Some partition is waited for no longer.
    pub(super) some_given_up: bool,
    /// Partitions that exist, where somebody has said so.
    exist: Option<usize>,
    /// Event time when a partition was last taken away.
    taken_at: Option<EventTime>,
}

impl Watermark {
    /// Before the first event.
    pub(crate) const fn new(settings: TimeSettings) -> Self {
        Self {
            settings,
            parts: Vec::new(),
            last: 0,
            newest: None,
            watermark: None,
            anchor: None,
            now: EventTime::MIN,
            latest: EventTime::MIN,
            free_until: i64::MAX,
            some_given_up: false,
            exist: None,
            taken_at: None,
        }
    }

    /// The newest event time, or where the clock has carried it since.
    pub(crate) const fn newest(&self) -> Option<EventTime> {
        self.newest
    }

    /// Up to here all is counted.
    pub(crate) const fn watermark(&self) -> Option<EventTime> {
        self.watermark
    }

    /// True when an event is ahead of the clock, wherever it has been, by more than is allowed.
    pub(crate) fn is_future(&self, time: EventTime, now: EventTime) -> bool {
        time > now.max(self.latest).saturating_add(self.settings.max_ahead)
    }

    /// Up to this time accepting an event of the partition would change nothing: it is the partition of the last event, the event is
    /// no newer than that one was, and the clock has not moved. None where any event may change something.
    #[inline]
    pub(crate) fn steady_until(&self, partition: Partition, now: EventTime) -> Option<EventTime> {
        let part = self.parts.get(self.last).filter(|part| self.now == now && part.partition == partition)?;
        part.steady_until(now)
    }

    /// Takes the time of an accepted event. True when the partition is new, or has come back after it was given up.
    pub(crate) fn accept(&mut self, partition: Partition, time: EventTime, now: EventTime) -> bool {
        self.now = self.now.max(now);
        self.seek(partition);
        let now = self.now;
        let Some(part) = self.parts.get_mut(self.last) else { return false };
        let before = part.newest;
        part.heard = Some(now);
        part.newest = before.max(Some(time));
        part.hold(None);
        let woken = std::mem::replace(&mut part.idle, false) | part.come_back();
        let is_new = std::mem::replace(&mut part.is_new, false);
        self.newest = self.newest.max(Some(time));
        self.anchor = self.newest.map(|newest| (newest, self.now));
        // Only the slowest partition can hold the watermark back, so only its progress can move it on.
        let slowest = before.is_none_or(|newest| Some(newest.saturating_sub(self.settings.disorder)) <= self.watermark);
        if slowest || woken {
            self.recompute();
        }
        is_new
    }

    /// Takes a partition's progress. True when the partition is new.
    pub(crate) fn progress(&mut self, progress: Progress, now: EventTime) -> bool {
        self.now = self.now.max(now);
        let now = self.now;
        self.seek(progress.partition);
        let mut is_new = false;
        if let Some(part) = self.parts.get_mut(self.last) {
            part.take(progress, now);
            if part.at_end {
                part.come_back();
            }
            is_new = std::mem::replace(&mut part.is_new, false);
        }
        self.pass(now);
        is_new
    }

    /// The clock is at `now`, which says nothing of how long anything took.
    pub(crate) fn set_clock(&mut self, now: EventTime) {
        self.latest = self.latest.max(self.now);
        self.now = now;
        self.anchor = self.newest.map(|newest| (newest, now));
        self.parts.iter_mut().for_each(|part| part.set_clock(now));
    }

    /// The number of partitions that exist.
    pub(crate) const fn set_exist(&mut self, partitions: usize) {
        self.exist = Some(partitions);
    }

    /// A partition went with the session: it may come back, and holds event time back until that is known.
    pub(crate) fn lose(&mut self, partition: Partition) {
        if let Ok(at) = self.parts.binary_search_by_key(&partition, |part| part.partition)
            && let Some(part) = self.parts.get_mut(at)
        {
            part.lose();
        }
        self.pass(self.now);
    }

    /// A partition was taken away: it holds nothing back.
    pub(crate) fn revoke(&mut self, partition: Partition) {
        let before = self.parts.len();
        self.parts.retain(|part| part.partition != partition);
        if self.parts.len() < before {
            self.taken_at = self.newest;
        }
        self.recompute();
        self.settle_limit();
    }

    /// Time passes: partitions become idle, others are waited for no longer, and when all are idle, event time follows the clock.
    pub(crate) fn pass(&mut self, now: EventTime) {
        self.now = self.now.max(now);
        for part in &mut self.parts {
            part.pass(self.now, &self.settings);
        }
        self.note_waits();
        self.recompute();
        self.settle_limit();
    }

    /// Points `last` at a partition, which is added when it is new.
    #[inline]
    pub(super) fn seek(&mut self, partition: Partition) {
        if self.parts.get(self.last).is_some_and(|part| part.partition == partition) {
            return;
        }
        let found = self.parts.binary_search_by_key(&partition, |part| part.partition);
        self.last = found.unwrap_or_else(|at| at);
        if found.is_err() {
            self.parts.insert(self.last, Part::new(partition));
        }
    }

    fn recompute(&mut self) {
        // Somebody may bring anything: what is counted so far says nothing of what is still to come.
        let open = self.parts.iter().any(|part| part.may_be_anywhere(self.now));
        if open && (self.newest.is_none() || self.watermark.is_some()) {
            return;
        }
        let least = self.holding().filter_map(Part::counted_to).min();
        let reached = match (least, self.carried()) {
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
        self.parts.iter().filter(|part| part.holds())
    }

    /// From where the clock carries event time; none while a partition holds it, or may bring something that is older.
    fn carried(&self) -> Option<(EventTime, EventTime)> {
        let held = |part: &Part| part.holds() || part.may_be_anywhere(self.now);
        self.anchor.filter(|_| !self.parts.iter().any(held))
    }

    /// A partition has unread records and is behind the clock by more than `window`.
    pub(crate) fn is_catching_up(&self, window: Span) -> bool {
        let behind = |newest: EventTime| self.now.since(newest) > window;
        self.parts.iter().any(|part| part.is_unread() && part.newest.is_some_and(behind))
    }

    /// Unread records over all partitions; none while an end is unknown.
    pub(crate) fn lag(&self) -> Option<u64> {
        self.parts.iter().map(Part::lag).try_fold(0, |sum: u64, lag| Some(sum.saturating_add(lag?)))
    }

    /// Partitions whose records are counted, of those that exist.
    pub(crate) fn completeness(&self) -> Completeness {
        let counted = self.parts.iter().filter(|part| part.is_counted()).count();
        Completeness { counted, exist: self.exist.unwrap_or(self.parts.len()).max(self.parts.len()) }
    }

    /// A partition was taken away within the last `window` of event time: the windows still need what it would have brought.
    pub(crate) fn was_taken_within(&self, window: Span) -> bool {
        self.taken_at.zip(self.newest).is_some_and(|(taken, newest)| newest < taken.saturating_add(window))
    }

    /// The clock at which the next partition becomes idle, or is given up.
    pub(crate) fn next_change(&self) -> Option<EventTime> {
        let idle = self.parts.iter().filter_map(|part| part.idle_at(&self.settings));
        let given_up = self.parts.iter().filter_map(|part| part.given_up_at(&self.settings));
        idle.chain(given_up).min()
    }

    /// The clock at which event time, carried by it, reaches `newest`; none while a partition holds it.
    pub(crate) fn clock_at(&self, newest: EventTime) -> Option<EventTime> {
        let (anchor, heard) = self.carried()?;
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
        Progress { partition: Partition(partition), position: Offset(5), end: Some(Offset(5 + unread)), paused }
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
        assert_eq!(time.next_change(), Some(at(1005)));
        assert_eq!(time.clock_at(at(30)), None);
        time.pass(at(1005));
        assert_eq!((time.newest(), time.watermark()), (Some(at(5)), Some(at(3))));
        assert_eq!(time.clock_at(at(30)), Some(at(1030)));
        time.pass(at(1030));
        assert_eq!(time.newest(), Some(at(30)));
        assert_eq!(time.next_change(), None);
    }

    #[test]
    fn a_partition_without_events_holds_nothing_back() {
        let mut time = Watermark::new(TimeSettings::default());
        assert!(time.progress(progress(7, 0, false), at(0)));
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
