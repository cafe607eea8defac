//! One partition in event time: how far it is, whether it may still bring something old, and whether others wait for it.

use super::super::settings::TimeSettings;
use super::super::status::Progress;
use crate::units::{EventTime, Offset, Partition, Span};

/// A partition that was read to its end is waited for again when it has had unread records for so long: the source hears of new
/// records a moment before it has read them, and that moment is no backlog.
const NEWLY_UNREAD: Span = Span::from_secs(1);
/// A partition whose position moves and whose event time does not, since none of its records is an event, is waited for so many
/// times longer than one that stands still.
const FRUITLESS_TIMES: u64 = 12;

/// One partition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) partition: Partition,
    /// Nobody has been told yet that from here on all of it is seen.
    pub(super) is_new: bool,
    /// Newest accepted event; none before the first.
    pub(super) newest: Option<EventTime>,
    /// The newest event that was asked about, accepted or not.
    pub(super) seen: Option<EventTime>,
    /// The event that its source holds back, or has not brought again yet since it may go on.
    pub(super) held: Option<EventTime>,
    /// It may go on.
    pub(super) released: bool,
    /// The clock when an event was last accepted.
    pub(super) heard: Option<EventTime>,
    /// Read to its end, as far as the source has said.
    pub(super) at_end: bool,
    /// The source has paused it.
    pub(super) paused: bool,
    pub(super) idle: bool,
    /// It went with the session and may come back.
    pub(super) lost: bool,
    /// The others wait for it no longer.
    pub(super) given_up: bool,
    /// That was fetched.
    pub(super) told: bool,
    position: Option<Offset>,
    end: Option<Offset>,
    /// The clock when its position last moved.
    moved: EventTime,
    /// Since when it has had unread records; none while it has none.
    unread_since: Option<EventTime>,
    /// Since when the others have waited for it, and where it stood then.
    waited_for: Option<(EventTime, Option<EventTime>)>,
}

impl Part {
    pub(super) const fn new(partition: Partition) -> Self {
        Self {
            partition,
            is_new: true,
            newest: None,
            seen: None,
            held: None,
            released: false,
            heard: None,
            at_end: false,
            paused: false,
            idle: false,
            lost: false,
            given_up: false,
            told: false,
            position: None,
            end: None,
            moved: EventTime::MIN,
            unread_since: None,
            waited_for: None,
        }
    }

    /// Up to this time an event that is accepted now would change nothing.
    #[inline]
    pub(super) fn steady_until(&self, now: EventTime) -> Option<EventTime> {
        let is_steady =
            self.heard == Some(now) && self.held.is_none() && !(self.idle || self.is_new) && self.is_counted();
        self.newest.filter(|_| is_steady)
    }

    /// How far it is, by everything that was read of it; none before the first event.
    pub(super) fn pace(&self) -> Option<EventTime> {
        self.newest.max(self.seen)
    }

    /// All of its events before this time, less the disorder, are counted: the next one is held back at it.
    pub(super) fn counted_to(&self) -> Option<EventTime> {
        self.newest.max(self.held)
    }

    /// It holds event time back.
    pub(super) fn holds(&self) -> bool {
        self.counted_to().is_some() && !self.idle && !self.given_up
    }

    /// Records are unread, as far as is known.
    pub(super) const fn is_unread(&self) -> bool {
        self.unread_since.is_some()
    }

    /// Unread records; none while its end is unknown.
    pub(super) fn lag(&self) -> Option<u64> {
        let (position, end) = self.position.zip(self.end)?;
        Some(u64::try_from(end.0.saturating_sub(position.0)).unwrap_or(0))
    }

    /// Its end is known: a broker has answered.
    pub(super) const fn end_is_known(&self) -> bool {
        self.end.is_some()
    }

    /// What it brings is counted here.
    pub(super) const fn is_counted(&self) -> bool {
        !self.given_up && !self.lost
    }

    /// Others wait for it when they are ahead of it: it has records that they could make too late.
    pub(super) fn is_awaited(&self, now: EventTime) -> bool {
        let unread = self.unread_since.is_some_and(|since| now.since(since) >= NEWLY_UNREAD);
        self.is_counted() && (self.held.is_some() || unread)
    }

    /// It is awaited, and where it is nobody knows.
    pub(super) fn may_be_anywhere(&self, now: EventTime) -> bool {
        self.pace().is_none() && self.is_awaited(now)
    }

    /// Takes its progress.
    pub(super) fn take(&mut self, progress: Progress, now: EventTime) {
        if self.position != Some(progress.position) {
            self.moved = now;
            // What it was released for has come, whatever became of it.
            self.held = self.held.filter(|_| !self.released);
        }
        let known = self.position.is_some();
        self.position = Some(progress.position);
        self.end = progress.end;
        self.at_end = progress.end.is_some_and(|end| progress.position >= end);
        self.unread_since = match self.unread_since {
            _ if self.at_end => None,
            Some(since) => Some(since),
            // What was never read to its end is a backlog from the start.
            None => Some(if known { now } else { EventTime::MIN }),
        };
        self.paused = progress.paused;
        self.lost = false;
    }

    /// It went with the session: where it ends nobody knows, and nothing of it is read.
    pub(super) const fn lose(&mut self) {
        self.lost = true;
        self.held = None;
        self.end = None;
        self.at_end = false;
        self.unread_since = Some(EventTime::MIN);
    }

    /// It waits at this event, or does not.
    pub(super) const fn hold(&mut self, held: Option<EventTime>) {
        self.held = held;
        self.released = false;
    }

    /// It waits, and was not told to go on.
    pub(super) fn is_waiting(&self) -> bool {
        self.held.is_some() && !self.released
    }

    /// Others wait for it, or not.
    pub(super) fn note_wait(&mut self, waits: bool, now: EventTime) {
        let pace = self.pace();
        match self.waited_for {
            Some((_, before)) if waits && before == pace => {}
            _ => self.waited_for = waits.then_some((now, pace)),
        }
    }

    /// The clock at which it is waited for no longer, should it bring nothing until then.
    pub(super) fn given_up_at(&self, settings: &TimeSettings) -> Option<EventTime> {
        let (since, _) = self.waited_for?;
        let still = since.max(self.moved).saturating_add(settings.idle_timeout);
        Some(still.min(since.saturating_add(settings.idle_timeout.saturating_mul(FRUITLESS_TIMES))))
    }

    /// Nobody waits for it any more.
    pub(super) const fn give_up(&mut self) {
        self.given_up = true;
        self.told = false;
        self.waited_for = None;
    }

    /// It moves again: what it brought meanwhile may have been too late, so that it is new. True when it had been given up.
    pub(super) fn come_back(&mut self) -> bool {
        let back = std::mem::take(&mut self.given_up);
        self.is_new |= back;
        back
    }

    /// The clock was set: nothing is older than now.
    pub(super) fn set_clock(&mut self, now: EventTime) {
        self.heard = self.heard.map(|_| now);
        self.moved = now;
        self.unread_since = self.unread_since.map(|_| EventTime::MIN);
        self.waited_for = self.waited_for.map(|(_, pace)| (now, pace));
    }

    /// Time passes.
    pub(super) fn pass(&mut self, now: EventTime, settings: &TimeSettings) {
        let silent = self.heard.is_some_and(|heard| now.since(heard) >= settings.idle_timeout);
        self.idle = silent && self.at_end && !self.paused && self.held.is_none();
    }

    /// The clock at which it becomes idle.
    pub(super) fn idle_at(&self, settings: &TimeSettings) -> Option<EventTime> {
        let waiting = self.holds() && self.at_end && !self.paused && self.held.is_none();
        self.heard.filter(|_| waiting).map(|heard| heard.saturating_add(settings.idle_timeout))
    }
}
