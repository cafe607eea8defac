//! What the engine asks of its source: to hold a partition back that runs ahead of the others, and to say what it reads.

use super::pipeline::Engine;
use crate::units::{EventTime, Partition};

impl Engine {
    /// True when this event must not be counted yet: it is ahead of a partition with unread records by more than `max_ahead`, or the
    /// event time of such a partition is not known.
    ///
    /// The source then holds the record back, and all that follow it in its partition, until [`Engine::poll_released`] names the
    /// partition; it goes on exactly with this record. So no partition's records become too late because another one was read
    /// faster. The partition that is least far never waits.
    #[inline]
    pub fn must_wait(&mut self, partition: Partition, time: EventTime, now: EventTime) -> bool {
        self.time.must_wait(partition, time, now)
    }

    /// The next partition that may go on; ask until it gives none, after each `handle_progress` and `handle_tick`.
    pub fn poll_released(&mut self) -> Option<Partition> {
        self.time.poll_released()
    }

    /// True while some partition waits: progress told at once lets it go on at once.
    #[must_use]
    pub fn is_holding_back(&self) -> bool {
        self.time.is_holding_back()
    }

    /// The next partition that others wait for no longer, each told once: for `idle_timeout` its position, or for twelve times that
    /// its event time, has not moved. It is waited for again when its event time moves or its end is reached.
    pub fn poll_given_up(&mut self) -> Option<Partition> {
        self.time.poll_given_up()
    }

    /// Takes the number of partitions that exist. Without it those that were heard of are all.
    pub fn handle_partitions(&mut self, exist: usize) {
        self.time.set_exist(exist);
    }

    /// The clock was set, or nobody has looked at it for longer than a moment: from here on spans are measured anew. Without this a
    /// step forward would make every partition look silent, and carry event time past what is still unread.
    pub fn handle_clock_set(&mut self, now: EventTime) {
        self.time.set_clock(now);
    }

    /// A partition went with the session. It may come back: until its next `handle_progress`, or `handle_revoke`, it holds event
    /// time back and counts as missing.
    pub fn handle_lost(&mut self, partition: Partition) {
        self.time.lose(partition);
        self.advance();
    }
}
