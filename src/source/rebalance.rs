//! Which partitions this process reads and how far: a state machine without a broker.

use std::collections::BTreeMap;

use crate::units::{Offset, Partition};

/// Partitions of one topic that this process reads, and the positions of all that it ever read.
#[derive(Debug, Default)]
pub struct Assignment {
    assigned: BTreeMap<Partition, Reading>,
    /// Positions of partitions that were taken away: they go on there when they come back (I5).
    left_at: BTreeMap<Partition, Left>,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    position: Offset,
    committed: Offset,
    end: Option<Offset>,
    start: Offset,
    /// The client has said so, and nothing came since.
    drained: bool,
}

#[derive(Debug, Clone, Copy)]
struct Left {
    position: Offset,
    /// Lost with the session: nobody else may have read on meanwhile.
    lost: bool,
}

/// Where a record lies against the partition's position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It is the next one.
    Next,
    /// It is the next that still exists: offsets from the one given to this one are gone.
    AfterGap(Offset),
    /// It was handed out before.
    Repeated,
    /// The log begins anew below the position.
    Rewound,
    /// The partition is not assigned.
    NotAssigned,
}

impl Assignment {
    /// Where to begin each partition, given what a look-up of offsets found: where it was left, if it was read before. A partition
    /// that another member had meanwhile goes on no further back than a look-up says: what lies before was that member's to count.
    #[must_use]
    pub fn starts(&self, found: &[(Partition, Offset)]) -> Vec<(Partition, Offset)> {
        let start = |partition: &Partition, found: Offset| match self.left_at.get(partition) {
            None => found,
            Some(Left { position, lost: true }) => *position,
            Some(Left { position, lost: false }) => found.max(*position),
        };
        found.iter().map(|(partition, offset)| (*partition, start(partition, *offset))).collect()
    }

    /// Takes partitions with the offsets they are read from.
    pub fn handle_assigned(&mut self, starts: &[(Partition, Offset)]) {
        for &(partition, start) in starts {
            self.left_at.remove(&partition);
            let reading = Reading { position: start, committed: Offset(-1), end: None, start, drained: false };
            self.assigned.insert(partition, reading);
        }
    }

    /// Gives partitions up, in good order or lost with the session; their positions are kept.
    pub fn handle_revoked(&mut self, partitions: &[Partition], lost: bool) {
        for partition in partitions {
            if let Some(reading) = self.assigned.remove(partition) {
                self.left_at.insert(*partition, Left { position: reading.position, lost });
            }
        }
    }

    /// A record arrived: says where it lies and moves the position behind it.
    pub fn handle_record(&mut self, partition: Partition, offset: Offset) -> Place {
        let Some(reading) = self.assigned.get_mut(&partition) else { return Place::NotAssigned };
        reading.drained = false;
        let position = reading.position;
        let next = Offset(offset.0 + 1);
        if offset == position {
            reading.position = next;
            Place::Next
        } else if offset > position {
            reading.position = next;
            // Before the first record nothing was promised: a start below the log's beginning is no loss of ours.
            if position == reading.start { Place::Next } else { Place::AfterGap(position) }
        } else if reading.end.is_some_and(|end| end < position) {
            *reading = Reading { position: next, committed: Offset(-1), end: None, start: offset, drained: false };
            Place::Rewound
        } else {
            Place::Repeated
        }
    }

    /// The record that just arrived must wait: the position stays at it, and it arrives again.
    pub fn handle_held(&mut self, partition: Partition, offset: Offset) {
        if let Some(reading) = self.assigned.get_mut(&partition) {
            reading.position = offset;
        }
    }

    /// The broker says how far a partition reaches, the client up to where it has found nothing more to hand out. The last offsets
    /// of a log need not be records: where transactions are written, markers of their end are.
    pub fn handle_end(&mut self, partition: Partition, end: Offset, nothing_before: Offset) {
        if let Some(reading) = self.assigned.get_mut(&partition) {
            let drained = reading.drained && nothing_before >= end && end >= reading.position;
            reading.end = Some(if drained { reading.position } else { end });
        }
    }

    /// The client says that a partition has been read to its end: the position is the end.
    pub fn handle_end_reached(&mut self, partition: Partition) {
        if let Some(reading) = self.assigned.get_mut(&partition) {
            reading.end = Some(reading.position);
            reading.drained = true;
        }
    }

    /// Positions that have moved since the last call, to be committed; what was only assigned is not.
    pub fn take_uncommitted(&mut self) -> Vec<(Partition, Offset)> {
        let mut moved = Vec::new();
        for (partition, reading) in &mut self.assigned {
            if reading.position > reading.start && reading.position != reading.committed {
                reading.committed = reading.position;
                moved.push((*partition, reading.position));
            }
        }
        moved
    }

    /// Every assigned partition with its position and, where known, its end.
    pub fn positions(&self) -> impl Iterator<Item = (Partition, Offset, Option<Offset>)> + '_ {
        self.assigned.iter().map(|(partition, reading)| (*partition, reading.position, reading.end))
    }

    /// Records that are known to be unread, over all assigned partitions.
    #[must_use]
    pub fn lag(&self) -> u64 {
        self.assigned
            .values()
            .filter_map(|reading| reading.end.map(|end| end.0.saturating_sub(reading.position.0)))
            .map(|unread| u64::try_from(unread).unwrap_or(0))
            .sum()
    }

    /// Number of assigned partitions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.assigned.len()
    }

    /// True when no partition is assigned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.assigned.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const P: Partition = Partition(0);

    #[test]
    fn a_partition_that_comes_back_goes_on_where_it_was() {
        let mut assignment = Assignment::default();
        assignment.handle_assigned(&[(P, Offset(10))]);
        for offset in 10..20 {
            assert_eq!(assignment.handle_record(P, Offset(offset)), Place::Next);
        }
        assignment.handle_revoked(&[P], false);
        assert_eq!(assignment.handle_record(P, Offset(20)), Place::NotAssigned);
        assert_eq!(
            assignment.starts(&[(P, Offset(5)), (Partition(1), Offset(7))]),
            [(P, Offset(20)), (Partition(1), Offset(7))]
        );
        // Another member read on for longer than a window: what it read is not ours to count any more.
        assert_eq!(assignment.starts(&[(P, Offset(50))]), [(P, Offset(50))]);
    }

    /// After an outage longer than the window the look-up by time finds an offset beyond the position: nothing may be left out.
    #[test]
    fn a_partition_that_was_lost_with_the_session_goes_on_exactly_where_it_was() {
        let mut assignment = Assignment::default();
        assignment.handle_assigned(&[(P, Offset(0))]);
        assignment.handle_record(P, Offset(0));
        assignment.handle_revoked(&[P], true);
        assert_eq!(assignment.starts(&[(P, Offset(50))]), [(P, Offset(1))]);
    }

    #[test]
    fn gaps_repeats_and_new_logs_are_told_apart() {
        let mut assignment = Assignment::default();
        assignment.handle_assigned(&[(P, Offset(0))]);
        assert_eq!(assignment.handle_record(P, Offset(3)), Place::Next, "the log begins at 3");
        assert_eq!(assignment.handle_record(P, Offset(7)), Place::AfterGap(Offset(4)));
        assignment.handle_end(P, Offset(8), Offset(-1));
        assert_eq!(assignment.handle_record(P, Offset(5)), Place::Repeated);
        assignment.handle_end(P, Offset(2), Offset(2));
        assert_eq!(assignment.handle_record(P, Offset(0)), Place::Rewound);
        assert_eq!(assignment.handle_record(P, Offset(1)), Place::Next);
    }

    #[test]
    fn only_what_was_read_is_committed_and_only_once() {
        let mut assignment = Assignment::default();
        assignment.handle_assigned(&[(P, Offset(0))]);
        assert!(assignment.take_uncommitted().is_empty());
        assignment.handle_record(P, Offset(0));
        assert_eq!(assignment.take_uncommitted(), [(P, Offset(1))]);
        assert!(assignment.take_uncommitted().is_empty());
        assignment.handle_end(P, Offset(5), Offset(-1));
        assert_eq!(assignment.lag(), 4);
    }

    /// A held record is not passed by position or commit, whoever goes on with the partition; then it is the next one.
    #[test]
    fn a_record_that_waits_is_the_next_one() {
        let mut assignment = Assignment::default();
        assignment.handle_assigned(&[(P, Offset(0))]);
        assert_eq!(assignment.handle_record(P, Offset(40)), Place::Next, "the log begins at 40");
        assignment.handle_held(P, Offset(40));
        assert_eq!(assignment.take_uncommitted(), [(P, Offset(40))]);
        assert_eq!(assignment.positions().next(), Some((P, Offset(40), None)));
        assignment.handle_revoked(&[P], true);
        assert_eq!(assignment.starts(&[(P, Offset(90))]), [(P, Offset(40))]);
        assignment.handle_assigned(&[(P, Offset(40))]);
        assert_eq!(assignment.handle_record(P, Offset(40)), Place::Next);
        assignment.handle_held(P, Offset(40));
        assert_eq!(assignment.handle_record(P, Offset(40)), Place::Next, "it arrives again, and is no repeat");
        assert_eq!(assignment.handle_record(P, Offset(44)), Place::AfterGap(Offset(41)));
        assignment.handle_held(P, Offset(44));
        assert_eq!(assignment.handle_record(P, Offset(44)), Place::Next, "the gap was told");
    }

    /// Case K14 (dpkp/kafka-python#1707, softwaremill/klag-exporter#104): behind the last record lies the marker of a transaction.
    #[test]
    fn what_is_no_record_at_the_end_is_no_lag() {
        let mut assignment = Assignment::default();
        assignment.handle_assigned(&[(P, Offset(0))]);
        assignment.handle_record(P, Offset(0));
        assignment.handle_end(P, Offset(2), Offset(-1));
        assert_eq!(assignment.lag(), 1, "nobody knows yet what it is");
        assignment.handle_end_reached(P);
        assignment.handle_end(P, Offset(2), Offset(2));
        assert_eq!(assignment.lag(), 0);
        assignment.handle_end(P, Offset(7), Offset(2));
        assert_eq!(assignment.lag(), 6, "more was written");
        assignment.handle_record(P, Offset(2));
        assignment.handle_end(P, Offset(7), Offset(7));
        assert_eq!(assignment.lag(), 4, "the client has it, the engine has not");
    }

    proptest! {
        /// I5: whatever is redelivered across rebalances, no offset counts twice while the log only grows.
        #[test]
        fn an_offset_counts_at_most_once(steps in prop::collection::vec((0_u8..4, 0_i64..40), 1..200)) {
            let mut assignment = Assignment::default();
            let mut counted = std::collections::BTreeSet::new();
            for (kind, offset) in steps {
                match kind {
                    0 => {
                        let starts = assignment.starts(&[(P, Offset(offset))]);
                        if assignment.is_empty() { assignment.handle_assigned(&starts); }
                    }
                    1 => assignment.handle_revoked(&[P], offset % 2 == 0),
                    _ => if matches!(assignment.handle_record(P, Offset(offset)), Place::Next | Place::AfterGap(_)) {
                        prop_assert!(counted.insert(offset), "{offset} counted twice");
                    },
                }
            }
        }
    }
}
