//! Which panes exist: the pane that is open, those that a window can still be judged on, and their slots in the rings.

use super::super::settings::{TimeSettings, WindowSettings};

/// The most windows of a keyspace.
pub(crate) const MAX_WINDOWS: usize = 2;
/// The most panes of one ring: a longer window is brought down to it by `config/` before, and here for safety.
const MAX_PANES: i64 = 4096;

/// One window: how long its panes are, how many it has, and how many its ring keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis {
    /// Length of a pane in milliseconds.
    pub(crate) pane_ms: i64,
    /// Panes of the window.
    pub(crate) panes: i64,
    /// Panes of the ring: the window and its slack, so that a finished window is whole when the watermark reaches it.
    pub(crate) capacity: i64,
}

impl Axis {
    fn new(window: &WindowSettings, pane_ms: i64, slack_ms: i64) -> Self {
        let length = i64::try_from(window.length.as_millis()).unwrap_or(i64::MAX);
        let panes = (length / pane_ms).clamp(1, MAX_PANES);
        let slack = (slack_ms / pane_ms + i64::from(slack_ms % pane_ms != 0)).min(MAX_PANES);
        Self { pane_ms, panes, capacity: panes + slack }
    }

    /// Length of the window in milliseconds.
    pub(crate) const fn window_ms(&self) -> i64 {
        self.pane_ms * self.panes
    }
}

/// Where one window stands. Panes are numbered from the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mark {
    /// The newest pane, open.
    pub(crate) head: i64,
    /// The last pane that the watermark has passed.
    pub(crate) closed: i64,
    /// The oldest pane that a window still to be judged holds; older events are too late.
    pub(crate) oldest: i64,
}

/// Where an event goes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    /// The pane of each window.
    pub(crate) panes: [i64; MAX_WINDOWS],
    /// Its slot in counters that hold the rings of both windows one after the other.
    pub(crate) slots: [usize; MAX_WINDOWS],
    /// The pane is young enough to be counted.
    pub(crate) counted: [bool; MAX_WINDOWS],
    /// The pane belongs to the newest window.
    pub(crate) in_head: [bool; MAX_WINDOWS],
}

/// The panes of one or two windows over event time. The longer window's panes are made of whole panes of the shorter one.
#[derive(Debug, Clone)]
pub(crate) struct Timeline {
    axes: [Axis; MAX_WINDOWS],
    windows: usize,
    /// Short panes in a long one.
    ratio: i64,
    marks: [Mark; MAX_WINDOWS],
    /// Slots of the open pane in the ring of each window.
    open_slots: [usize; MAX_WINDOWS],
    /// Number of the whole longest window that the open pane lies in.
    generation: i64,
    /// First millisecond after the open pane.
    open_until_ms: i64,
    open_from_ms: i64,
    started: bool,
}

impl Timeline {
    /// The timeline of a keyspace's windows; only the first two count, and lengths are brought into range.
    pub(crate) fn new(windows: &[WindowSettings], time: &TimeSettings) -> Self {
        let slack = time.disorder.saturating_add(time.max_ahead).as_millis();
        let slack_ms = i64::try_from(slack).unwrap_or(i64::MAX);
        let whole = |window: &WindowSettings| i64::try_from(window.pane.as_millis()).unwrap_or(i64::MAX).max(1);
        let unused = Axis { pane_ms: 1, panes: 1, capacity: 0 };
        let short = windows.first().map_or(unused, |window| Axis::new(window, whole(window), slack_ms));
        let ratio = windows.get(1).map_or(1, |window| (whole(window) / short.pane_ms).max(1));
        let long = windows.get(1).map_or(unused, |window| Axis::new(window, short.pane_ms * ratio, slack_ms));
        Self {
            axes: [short, long],
            windows: windows.len().min(MAX_WINDOWS),
            ratio,
            marks: [Mark::default(); MAX_WINDOWS],
            open_slots: [0; MAX_WINDOWS],
            generation: 0,
            open_until_ms: 0,
            open_from_ms: 0,
            started: false,
        }
    }

    /// Number of windows.
    pub(crate) const fn windows(&self) -> usize {
        self.windows
    }

    /// True when there is a second window.
    pub(crate) const fn has_long(&self) -> bool {
        self.windows > 1
    }

    /// The window's axis; that of the first for an index out of range.
    pub(crate) fn axis(&self, window: usize) -> &Axis {
        self.axes.get(window).unwrap_or(&self.axes[0])
    }

    /// The longest window's axis.
    pub(crate) fn longest(&self) -> &Axis {
        self.axis(self.windows.saturating_sub(1))
    }

    /// Where the window stands.
    pub(crate) fn mark(&self, window: usize) -> Mark {
        self.marks.get(window).copied().unwrap_or_default()
    }

    /// Slots of counters that hold the rings of all windows one after the other.
    pub(crate) fn slots(&self) -> usize {
        index(self.axes[..self.windows].iter().map(|axis| axis.capacity).sum())
    }

    /// The slot of a pane in such counters.
    pub(crate) fn slot(&self, window: usize, pane: i64) -> usize {
        self.ring_slot(window, pane) + if window == 0 { 0 } else { index(self.axes[0].capacity) }
    }

    /// The slot of a pane in the window's own ring.
    pub(crate) fn ring_slot(&self, window: usize, pane: i64) -> usize {
        index(pane.rem_euclid(self.axis(window).capacity.max(1)))
    }

    /// The long pane that a short pane is part of.
    pub(crate) const fn long_pane(&self, short: i64) -> i64 {
        short.div_euclid(self.ratio)
    }

    /// The first short pane of a long one.
    pub(crate) const fn first_short(&self, long: i64) -> i64 {
        long.saturating_mul(self.ratio)
    }

    /// The oldest short pane since which events of any window that still matter can have come.
    pub(crate) fn oldest_short(&self) -> i64 {
        let long = self.first_short(self.marks[1].oldest);
        if self.has_long() { self.marks[0].oldest.min(long) } else { self.marks[0].oldest }
    }

    /// False before the first event.
    pub(crate) const fn started(&self) -> bool {
        self.started
    }

    /// First millisecond of the open pane.
    pub(crate) const fn head_from_ms(&self) -> i64 {
        self.open_from_ms
    }

    /// First millisecond after the last pane that the watermark has passed.
    pub(crate) const fn closed_until_ms(&self) -> i64 {
        (self.marks[0].closed + 1) * self.axes[0].pane_ms
    }

    /// The open pane for newest time `newest_ms`.
    pub(crate) fn pane_of(&self, time_ms: i64) -> i64 {
        time_ms.div_euclid(self.axes[0].pane_ms)
    }

    /// The last short pane that ends at or before the watermark.
    pub(crate) fn closed_by(&self, watermark_ms: i64) -> i64 {
        self.pane_of(watermark_ms) - 1
    }

    /// True while neither the head nor the watermark has anything to move to.
    #[inline]
    pub(crate) fn is_current(&self, newest_ms: i64, watermark_ms: i64) -> bool {
        self.started && newest_ms < self.open_until_ms && watermark_ms < self.closed_until_ms() + self.axes[0].pane_ms
    }

    /// True when an event of this time is too old for every window.
    #[inline]
    pub(crate) fn is_too_late(&self, time_ms: i64) -> bool {
        if !self.started || time_ms >= self.open_from_ms {
            return false;
        }
        let pane = self.pane_of(time_ms);
        pane < self.marks[0].oldest && (!self.has_long() || self.long_pane(pane) < self.marks[1].oldest)
    }

    /// Slots of the open pane in the ring of each window.
    pub(crate) const fn open_slots(&self) -> [usize; MAX_WINDOWS] {
        self.open_slots
    }

    /// Number of the whole longest window, from the epoch on, that the open pane lies in.
    pub(crate) const fn generation(&self) -> i64 {
        self.generation
    }

    /// Where an event of a closed pane goes.
    pub(crate) fn place(&self, time_ms: i64) -> Place {
        let pane = self.pane_of(time_ms);
        let panes = [pane, self.long_pane(pane)];
        let mut place = Place { panes, ..Place::default() };
        for (window, pane) in panes.into_iter().enumerate().take(self.windows) {
            let mark = self.mark(window);
            place.slots[window] = self.slot(window, pane);
            place.counted[window] = pane >= mark.oldest && pane <= mark.head;
            place.in_head[window] = place.counted[window] && pane > mark.head - self.axis(window).panes;
        }
        place
    }

    /// Puts the head and the last closed pane anywhere; what the rings hold is the caller's business.
    pub(crate) fn start_at(&mut self, head: i64, closed: i64) {
        self.started = true;
        self.marks[0].head = head;
        self.set_closed(closed.clamp(head - self.axes[0].capacity + self.axes[0].panes - 1, head - 1));
        self.set_open();
    }

    /// Opens the next pane. Gives true when the longer window's pane closed as well.
    pub(crate) fn open_next(&mut self) -> bool {
        let long = self.marks[1].head;
        self.marks[0].head += 1;
        self.set_open();
        self.has_long() && self.marks[1].head != long
    }

    /// The watermark passes the next pane. Gives true when it passed a pane of the longer window as well.
    pub(crate) fn close_next(&mut self) -> bool {
        let long = self.marks[1].closed;
        self.set_closed(self.marks[0].closed + 1);
        self.set_open();
        self.has_long() && self.marks[1].closed != long
    }

    /// True when the next pane's slot still holds a pane that waits for the watermark.
    pub(crate) const fn is_full(&self) -> bool {
        self.marks[0].oldest <= self.marks[0].head + 1 - self.axes[0].capacity
    }

    fn set_closed(&mut self, closed: i64) {
        let long_closed = self.long_pane(closed + 1) - 1;
        self.marks[0].closed = closed;
        self.marks[0].oldest = closed - self.axes[0].panes + 2;
        self.marks[1].closed = long_closed;
        self.marks[1].oldest = long_closed - self.axes[1].panes + 2;
    }

    fn set_open(&mut self) {
        let head = self.marks[0].head;
        self.marks[1].head = self.long_pane(head);
        self.open_from_ms = head * self.axes[0].pane_ms;
        self.open_until_ms = self.open_from_ms + self.axes[0].pane_ms;
        self.open_slots = [self.ring_slot(0, head), self.ring_slot(1, self.marks[1].head)];
        self.generation = self.open_from_ms.div_euclid(self.longest().window_ms());
    }
}

/// A number that is not negative and far below `usize::MAX`, as an index.
pub(crate) fn index(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;

    fn timeline() -> Timeline {
        let windows = [
            WindowSettings { length: Span::from_secs(10), pane: Span::from_secs(1) },
            WindowSettings { length: Span::from_secs(60), pane: Span::from_secs(5) },
        ];
        Timeline::new(&windows, &TimeSettings::default())
    }

    #[test]
    fn rings_keep_the_window_and_the_slack() {
        let timeline = timeline();
        assert_eq!((timeline.axis(0).capacity, timeline.axis(1).capacity), (17, 14));
        assert_eq!(timeline.slots(), 31);
    }

    #[test]
    fn the_rings_never_overlap_while_the_watermark_is_forced_along() {
        let mut timeline = timeline();
        timeline.start_at(1003, 1000);
        for _ in 0..500 {
            while timeline.is_full() {
                timeline.close_next();
            }
            timeline.open_next();
            for window in 0..2 {
                let (mark, axis) = (timeline.mark(window), timeline.axis(window));
                assert!(mark.head - mark.oldest < axis.capacity, "{mark:?}");
                assert!(mark.oldest <= mark.head - axis.panes + 1, "the newest window is whole: {mark:?}");
            }
        }
        assert_eq!(timeline.mark(0).closed, timeline.mark(0).head - 8);
    }

    #[test]
    fn late_events_find_their_own_pane_until_no_window_needs_it() {
        let mut timeline = timeline();
        timeline.start_at(100, 97);
        let late = timeline.place(90_000);
        assert!(late.counted == [true, true] && late.in_head == [false, true]);
        assert_eq!(timeline.mark(0).oldest, 89);
        assert_eq!(timeline.place(88_999).counted, [false, true]);
        assert!(!timeline.is_too_late(45_000) && timeline.is_too_late(39_999));
    }
}
