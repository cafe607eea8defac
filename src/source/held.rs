//! Records that came and may not be handed out yet: kept in their order, a partition at a time, in bounded memory.

use std::collections::{BTreeMap, VecDeque};

use crate::units::{Offset, Partition};

/// With so many records of one partition the client is paused, until half of them are gone.
const FULL_RECORDS: usize = 4096;
/// The same for the bytes of their values.
const FULL_BYTES: usize = 1 << 20;
/// What a client that cannot be paused brings beyond this many times as much is left out; the source then sees a gap.
const MOST_TIMES: usize = 4;

/// One thing that came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// A record with its value.
    Record(Offset, Option<Vec<u8>>),
    /// Word that the partition has been read to its end.
    End,
}

impl Kept {
    fn bytes(&self) -> usize {
        match self {
            Self::Record(_, value) => value.as_ref().map_or(0, Vec::len),
            Self::End => 0,
        }
    }
}

/// What the client is to do with a partition so that no more is kept than there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Steer {
    Pause(Partition),
    Resume(Partition),
}

#[derive(Debug, Default)]
struct Queue {
    kept: VecDeque<Kept>,
    bytes: usize,
    /// The client is paused.
    paused: bool,
    /// It may be handed out.
    released: bool,
}

impl Queue {
    fn holds(&self, part: usize) -> bool {
        self.kept.len() >= FULL_RECORDS / part || self.bytes >= FULL_BYTES / part
    }
}

/// Held partitions. All that comes of one is kept behind its first held record, until all of it was handed out.
#[derive(Debug, Default)]
pub(super) struct Held {
    queues: BTreeMap<Partition, Queue>,
}

impl Held {
    /// True when what comes of this partition must be kept.
    pub(super) fn holds(&self, partition: Partition) -> bool {
        !self.queues.is_empty() && self.queues.contains_key(&partition)
    }

    /// Keeps what came last.
    pub(super) fn keep(&mut self, partition: Partition, kept: Kept) {
        let queue = self.queues.entry(partition).or_default();
        if queue.kept.len() < MOST_TIMES * FULL_RECORDS && queue.bytes < MOST_TIMES * FULL_BYTES {
            queue.bytes += kept.bytes();
            queue.kept.push_back(kept);
        }
    }

    /// Keeps what was handed out and not taken: it comes first again, and nothing of the partition before the next release.
    pub(super) fn put_back(&mut self, partition: Partition, kept: Kept) {
        let queue = self.queues.entry(partition).or_default();
        queue.bytes += kept.bytes();
        queue.kept.push_front(kept);
        queue.released = false;
    }

    /// What is kept of a partition may be handed out.
    pub(super) fn release(&mut self, partition: Partition) {
        if let Some(queue) = self.queues.get_mut(&partition) {
            queue.released = true;
        }
    }

    /// The oldest thing of a released partition.
    pub(super) fn pop(&mut self) -> Option<(Partition, Kept)> {
        let (partition, queue) = self.queues.iter_mut().find(|(_, queue)| queue.released && !queue.kept.is_empty())?;
        let kept = queue.kept.pop_front()?;
        queue.bytes = queue.bytes.saturating_sub(kept.bytes());
        Some((*partition, kept))
    }

    /// What the client is to be told; none when all is as it should be.
    pub(super) fn steer(&self) -> Option<Steer> {
        self.queues.iter().find_map(|(partition, queue)| match queue.paused {
            false if queue.holds(1) => Some(Steer::Pause(*partition)),
            true if !queue.holds(2) => Some(Steer::Resume(*partition)),
            _ => None,
        })
    }

    /// The client was told so.
    pub(super) fn steered(&mut self, steer: Steer) {
        let (Steer::Pause(partition) | Steer::Resume(partition)) = steer;
        if let Some(queue) = self.queues.get_mut(&partition) {
            queue.paused = matches!(steer, Steer::Pause(_));
        }
    }

    /// Partitions of which all was handed out, and which the client reads, are held no longer.
    pub(super) fn tidy(&mut self) {
        self.queues.retain(|_, queue| queue.paused || !queue.released || !queue.kept.is_empty());
    }

    /// Partitions were taken away: what is kept of them comes again where they go on.
    pub(super) fn forget(&mut self, partitions: &[Partition]) {
        self.queues.retain(|partition, _| !partitions.contains(partition));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: Partition = Partition(3);

    fn record(offset: i64) -> Kept {
        Kept::Record(Offset(offset), Some(vec![0; 10]))
    }

    #[test]
    fn what_came_is_handed_out_in_order_once_it_may_be() {
        let mut held = Held::default();
        assert!(!held.holds(P));
        held.put_back(P, record(5));
        held.keep(P, record(6));
        held.keep(P, Kept::End);
        assert!(held.holds(P) && held.pop().is_none());
        held.release(P);
        assert_eq!(held.pop(), Some((P, record(5))));
        assert_eq!(held.pop(), Some((P, record(6))));
        held.put_back(P, record(6));
        assert!(held.pop().is_none(), "until the next release");
        held.release(P);
        assert_eq!((held.pop(), held.pop(), held.pop()), (Some((P, record(6))), Some((P, Kept::End)), None));
        assert!(held.holds(P));
        held.tidy();
        assert!(!held.holds(P));
    }

    #[test]
    fn the_client_is_paused_when_much_is_kept_and_resumed_at_half() {
        let mut held = Held::default();
        (0..4096).for_each(|offset| {
            assert_eq!(held.steer(), None);
            held.keep(P, record(offset));
        });
        assert_eq!(held.steer(), Some(Steer::Pause(P)));
        // A client that could not be told is told again, and what it brings has a limit.
        (4096..99_999).for_each(|offset| held.keep(P, record(offset)));
        assert_eq!(held.steer(), Some(Steer::Pause(P)));
        held.steered(Steer::Pause(P));
        assert_eq!(held.steer(), None);
        held.release(P);
        let handed = std::iter::from_fn(|| held.steer().is_none().then(|| held.pop()).flatten()).count();
        assert_eq!(handed, 4 * 4096 - 2047);
        assert_eq!(held.steer(), Some(Steer::Resume(P)));
        // All was handed out and the client could not be told: it is not forgotten.
        while held.pop().is_some() {}
        held.tidy();
        assert_eq!(held.steer(), Some(Steer::Resume(P)));
        held.steered(Steer::Resume(P));
        held.tidy();
        assert!(!held.holds(P) && held.steer().is_none());
    }

    #[test]
    fn large_records_fill_it_sooner_and_what_is_taken_away_is_forgotten() {
        let mut held = Held::default();
        held.keep(P, Kept::Record(Offset(0), Some(vec![0; 1 << 20])));
        held.keep(Partition(4), Kept::Record(Offset(0), None));
        assert_eq!(held.steer(), Some(Steer::Pause(P)));
        held.forget(&[P]);
        assert!(!held.holds(P) && held.holds(Partition(4)) && held.steer().is_none());
    }
}
