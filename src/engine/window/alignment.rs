//! Partitions beside each other: one that runs ahead of the slowest with unread records waits.
//!
//! An event may be ahead of the slowest partition that others wait for by `max_ahead`, no more. Then the newest event is ahead of the
//! watermark by no more than the ring's slack, no pane is closed before the watermark has passed it, and no event of a partition
//! with unread records is too late, however far apart their logs are. A held event counts as read: of all partitions the one that
//! is least far never waits, so that somebody always goes on.

use super::part::Part;
use super::watermark::Watermark;
use crate::units::{EventTime, Partition, Span};

/// What the partitions that are waited for allow the others.
#[derive(Debug, Clone, Copy, Default)]
struct Floor {
    /// One of them may be anywhere.
    unknown: Option<Partition>,
    /// So may another.
    more_unknown: bool,
    /// The least far.
    least: Option<(EventTime, Partition)>,
    /// The next one.
    second: Option<EventTime>,
}

impl Floor {
    fn of(parts: &[Part], now: EventTime) -> Self {
        let mut floor = Self::default();
        for part in parts.iter().filter(|part| part.is_awaited(now)) {
            match (part.pace(), floor.least) {
                (None, _) => {
                    floor.more_unknown = floor.unknown.is_some();
                    floor.unknown = Some(part.partition);
                }
                (Some(pace), Some((least, _))) if pace >= least => {
                    floor.second = Some(floor.second.map_or(pace, |second| second.min(pace)));
                }
                (Some(pace), before) => {
                    floor.second = before.map(|(least, _)| least);
                    floor.least = Some((pace, part.partition));
                }
            }
        }
        floor
    }

    /// How far, in milliseconds, those other than `partition` let it go, `lead` ahead of them.
    fn limit(&self, partition: Option<Partition>, lead: Span) -> i64 {
        if self.more_unknown || self.unknown.is_some() && self.unknown != partition {
            return i64::MIN;
        }
        let least = match self.least {
            Some((_, slowest)) if Some(slowest) == partition => self.second,
            least => least.map(|(pace, _)| pace),
        };
        least.map_or(i64::MAX, |pace| pace.saturating_add(lead).as_millis())
    }
}

impl Watermark {
    /// True when an event must not be counted yet: it is too far ahead of a partition that still has older ones.
    #[inline]
    pub(crate) fn must_wait(&mut self, partition: Partition, time: EventTime, now: EventTime) -> bool {
        if time.as_millis() <= self.free_until && !self.some_given_up {
            return false;
        }
        !self.is_future(time, now) && self.weigh(partition, time, now)
    }

    fn weigh(&mut self, partition: Partition, time: EventTime, now: EventTime) -> bool {
        self.now = self.now.max(now);
        self.seek(partition);
        let Some(part) = self.parts.get_mut(self.last) else { return false };
        let moves_on = Some(time) > part.pace();
        part.seen = part.seen.max(Some(time));
        let back = moves_on && part.come_back();
        if !back && time.as_millis() <= self.free_until {
            part.hold(None);
            return false;
        }
        let floor = Floor::of(&self.parts, self.now);
        let waits = time.as_millis() > floor.limit(Some(partition), self.settings.max_ahead);
        if let Some(part) = self.parts.get_mut(self.last) {
            part.hold(waits.then_some(time));
        }
        self.settle_limit();
        waits
    }

    /// A partition whose held event may be counted now: half of the lead must be free again, so that it does not stop at each record.
    pub(crate) fn poll_released(&mut self) -> Option<Partition> {
        let floor = Floor::of(&self.parts, self.now);
        let lead = self.half_lead();
        let limit = |part: &Part| floor.limit(Some(part.partition), lead);
        let free =
            |part: &&mut Part| part.is_waiting() && part.held.is_some_and(|held| held.as_millis() <= limit(part));
        let part = self.parts.iter_mut().find(free)?;
        part.released = true;
        Some(part.partition)
    }

    /// Some partition waits.
    pub(crate) fn is_holding_back(&self) -> bool {
        self.parts.iter().any(Part::is_waiting)
    }

    /// A partition that is waited for no longer, each told once.
    pub(crate) fn poll_given_up(&mut self) -> Option<Partition> {
        let part = self.parts.iter_mut().find(|part| part.given_up && !part.told)?;
        part.told = true;
        Some(part.partition)
    }

    /// Who waits for whom, and whom nobody waits for any longer.
    pub(super) fn note_waits(&mut self) {
        let now = self.now;
        // Where no end is known no broker answers: nobody runs ahead, and whose turn it is to be late is not known.
        let connected = self.parts.iter().any(Part::end_is_known);
        let furthest = self.parts.iter().filter(|part| part.is_waiting()).filter_map(|part| part.held).max();
        let awaits = |part: &Part| part.is_awaited(now) && part.held.is_none();
        // When all others are idle it is the clock that waits, to carry event time on.
        let clock_waits = self.parts.iter().any(|part| part.idle)
            && self.parts.iter().all(|part| part.given_up || part.idle || awaits(part));
        let lead = self.half_lead();
        for part in &mut self.parts {
            let behind = |held: EventTime| part.pace().is_none_or(|pace| pace.saturating_add(lead) < held);
            let waits = clock_waits || furthest.is_some_and(behind);
            part.note_wait(connected && waits && part.is_awaited(now), now);
            if part.given_up_at(&self.settings).is_some_and(|at| at <= now) {
                part.give_up();
            }
        }
    }

    /// Works out anew up to where no event has to ask.
    pub(super) fn settle_limit(&mut self) {
        self.some_given_up = self.parts.iter().any(|part| part.given_up);
        self.free_until = Floor::of(&self.parts, self.now).limit(None, self.settings.max_ahead);
    }

    const fn half_lead(&self) -> Span {
        Span::from_millis(self.settings.max_ahead.as_millis() / 2)
    }
}
