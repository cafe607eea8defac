//! Exact counts a pane of one key or shard, and an upper bound of what came before they began.

use super::timeline::{MAX_WINDOWS, Place, Timeline};
use crate::units::Estimate;

/// Counters of one key or shard over the rings of all windows.
///
/// What an event of the open pane writes is small and lies together; the rest is touched when a pane closes.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    /// Events of the open pane that the ring does not hold yet.
    open: u32,
    /// At this many of them something may change: judge again.
    wake_open: u32,
    ring: Box<Ring>,
}

#[derive(Debug, Clone)]
struct Ring {
    exact: Box<[u32]>,
    /// Upper bound a pane of events before the exact counters began; none once those panes have gone.
    residual: Option<Box<[u32]>>,
    /// The newest window's count without `open`.
    head: [Estimate; MAX_WINDOWS],
    /// The count of the last window that the watermark passed, as it was then.
    closed: [Estimate; MAX_WINDOWS],
    /// At these lower bounds of the newest windows something may change: judge again.
    wake: [u64; MAX_WINDOWS],
}

impl Tally {
    /// Nothing counted, nothing before.
    pub(crate) fn new(timeline: &Timeline) -> Self {
        let ring = Ring {
            exact: vec![0; timeline.slots()].into_boxed_slice(),
            residual: None,
            head: [Estimate::default(); MAX_WINDOWS],
            closed: [Estimate::default(); MAX_WINDOWS],
            wake: [0; MAX_WINDOWS],
        };
        Self { open: 0, wake_open: 0, ring: Box::new(ring) }
    }

    /// Takes over what is known of each pane that still matters.
    pub(crate) fn with_past(timeline: &Timeline, bound: impl Fn(usize, i64) -> Estimate) -> Self {
        let mut tally = Self::new(timeline);
        let mut residual = vec![0u32; timeline.slots()].into_boxed_slice();
        for window in 0..timeline.windows() {
            let mark = timeline.mark(window);
            for pane in mark.oldest..=mark.head {
                let (slot, past) = (timeline.slot(window, pane), bound(window, pane));
                tally.ring.exact[slot] = narrow(past.lower);
                residual[slot] = narrow(past.upper.saturating_sub(past.lower));
            }
        }
        if residual.iter().any(|rest| *rest > 0) {
            tally.ring.residual = Some(residual);
        }
        tally.sum_head(timeline);
        tally
    }

    /// Counts an event of the open pane; true when the rules must look.
    #[inline]
    pub(crate) const fn add_open(&mut self) -> bool {
        self.open = self.open.saturating_add(1);
        self.open >= self.wake_open
    }

    /// True when the rules need not look at the next `events` events of the open pane.
    #[inline]
    pub(crate) const fn sleeps_for(&self, events: u32) -> bool {
        self.open.saturating_add(events) < self.wake_open
    }

    /// Counts an event of the open pane, if it is compared, where the rules need not look.
    #[inline]
    pub(crate) fn add_asleep(&mut self, compared: bool) {
        self.open = self.open.saturating_add(u32::from(compared));
    }

    /// Counts an event of a closed pane; true when the rules must look.
    pub(crate) fn add_late(&mut self, place: &Place) -> bool {
        for window in 0..MAX_WINDOWS {
            if place.counted[window] {
                if let Some(count) = self.ring.exact.get_mut(place.slots[window]) {
                    *count = count.saturating_add(1);
                }
                if place.in_head[window] {
                    self.ring.head[window].lower += 1;
                    self.ring.head[window].upper += 1;
                }
            }
        }
        self.set_wake(self.ring.wake);
        self.open >= self.wake_open
    }

    /// Writes the open pane's events into the ring. Call before the timeline opens the next pane.
    pub(crate) fn settle(&mut self, timeline: &Timeline) {
        let open = std::mem::take(&mut self.open);
        for window in 0..timeline.windows() {
            let slot = timeline.slot(window, timeline.mark(window).head);
            self.ring.exact[slot] = self.ring.exact[slot].saturating_add(open);
            self.ring.head[window].lower += u64::from(open);
            self.ring.head[window].upper += u64::from(open);
        }
    }

    /// Bounds of the newest window's count.
    pub(crate) fn head(&self) -> [Estimate; MAX_WINDOWS] {
        let open = u64::from(self.open);
        self.ring.head.map(|count| Estimate { lower: count.lower + open, upper: count.upper + open })
    }

    /// Sets the lower bounds of the newest windows at which the rules must look again.
    pub(crate) fn set_wake(&mut self, wake: [u64; MAX_WINDOWS]) {
        self.ring.wake = wake;
        let open = |window: usize| wake[window].saturating_sub(self.ring.head[window].lower);
        self.wake_open = u32::try_from(open(0).min(open(1))).unwrap_or(u32::MAX);
    }

    /// Makes the rules look again no later than at these lower bounds.
    pub(crate) fn set_wake_at_most(&mut self, wake: [u64; MAX_WINDOWS]) {
        let mut least = self.ring.wake;
        least.iter_mut().zip(wake).for_each(|(own, wake)| *own = (*own).min(wake));
        self.set_wake(least);
    }

    /// The next pane has been opened.
    pub(crate) fn roll(&mut self, timeline: &Timeline, long_too: bool) {
        for window in 0..timeline.windows() {
            if window == 0 || long_too {
                let slot = timeline.slot(window, timeline.mark(window).head);
                self.ring.exact[slot] = 0;
                if let Some(residual) = &mut self.ring.residual {
                    residual[slot] = 0;
                }
            }
        }
        self.sum_head(timeline);
    }

    fn sum_head(&mut self, timeline: &Timeline) {
        for window in 0..timeline.windows() {
            let head = timeline.mark(window).head;
            self.ring.head[window] = self.sum(timeline, window, head - timeline.axis(window).panes + 1, head);
        }
    }

    /// Bounds of the count in the panes `from..=to`, all of which still matter and are closed or settled.
    pub(crate) fn sum(&self, timeline: &Timeline, window: usize, from: i64, to: i64) -> Estimate {
        let (first, capacity) = (timeline.slot(window, from), timeline.axis(window).capacity);
        let base = timeline.slot(window, 0);
        let end = base + super::index(capacity);
        let panes = super::index(to - from + 1);
        let total = |counts: &[u32]| -> u64 {
            let until = (first + panes).min(end);
            let wrapped = base + (first + panes).saturating_sub(end);
            let parts = [counts.get(first..until), counts.get(base..wrapped)];
            parts.into_iter().flatten().flatten().map(|count| u64::from(*count)).sum()
        };
        let lower = total(&self.ring.exact);
        Estimate { lower, upper: lower + self.ring.residual.as_deref().map_or(0, total) }
    }

    /// Bounds of the count in one pane that still matters.
    pub(crate) fn pane(&self, timeline: &Timeline, window: usize, pane: i64) -> Estimate {
        let open = if pane == timeline.mark(window).head { u64::from(self.open) } else { 0 };
        let settled = self.sum(timeline, window, pane, pane);
        Estimate { lower: settled.lower + open, upper: settled.upper + open }
    }

    /// Bounds over all panes that still matter.
    pub(crate) fn live(&self, timeline: &Timeline, window: usize) -> Estimate {
        let mark = timeline.mark(window);
        let (settled, open) = (self.sum(timeline, window, mark.oldest, mark.head), u64::from(self.open));
        Estimate { lower: settled.lower + open, upper: settled.upper + open }
    }

    /// Bounds of the last windows that the watermark has passed.
    pub(crate) fn closed(&self) -> [Estimate; MAX_WINDOWS] {
        self.ring.closed
    }

    /// Sets the bounds of the last windows that the watermark has passed.
    pub(crate) const fn set_closed(&mut self, closed: [Estimate; MAX_WINDOWS]) {
        self.ring.closed = closed;
    }

    /// The watermark has passed the next pane. Call before the pane that leaves the window is forgotten.
    pub(crate) fn close(&mut self, timeline: &Timeline, long_too: bool) {
        for window in 0..timeline.windows() {
            if window == 0 || long_too {
                let last = timeline.mark(window).closed;
                self.ring.closed[window] = self.sum(timeline, window, last - timeline.axis(window).panes + 1, last);
            }
        }
    }

    /// Drops the residuals once none is left in panes that still matter. Call when old panes have gone.
    pub(crate) fn forget_residual(&mut self, timeline: &Timeline) {
        let live = (0..timeline.windows()).map(|window| self.live(timeline, window));
        if self.ring.residual.is_some() && live.into_iter().all(Estimate::is_exact) {
            self.ring.residual = None;
        }
    }

    /// The most bytes that one takes beside its own.
    pub(crate) fn max_heap_bytes(timeline: &Timeline) -> usize {
        timeline.slots() * 8 + size_of::<Ring>()
    }

    /// All counters to zero.
    pub(crate) fn clear(&mut self) {
        self.open = 0;
        self.ring.exact.fill(0);
        self.ring.residual = None;
        self.ring.head = [Estimate::default(); MAX_WINDOWS];
        self.ring.closed = [Estimate::default(); MAX_WINDOWS];
    }
}

/// Counts a pane fit 32 bits as long as the window does.
fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
