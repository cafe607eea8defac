//! What callers know of one key's records: the check behind "every read saw the last completed write".
//!
//! Revisions of a register are numbered by its one writer at a time, so each value is unique and a read says which write it saw. A
//! read may see the newest write that was completed, or seen by another read, before it began, or one that ran beside it. Increments
//! of a counter run beside each other: each has a result of its own, above all that was known when it began.

use std::collections::{BTreeMap, BTreeSet};

use keyheat::simulate::Row;

/// A record that is rewritten, or written once.
#[derive(Debug, Default)]
pub(crate) struct Register {
    /// Whether revision 1, 2, ... left a record; none of them was taken back.
    live: Vec<bool>,
    /// The newest revision that is known to be in force.
    seen: u64,
    busy: bool,
}

/// What is wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// A completed record was not found.
    Missed,
    /// An older revision was found.
    Stale,
    /// Something was found that nobody wrote.
    Unwritten,
    /// Two increments had one result.
    Lost,
}

impl Register {
    /// Begins a write, if none runs.
    pub(crate) fn issue(&mut self, live: bool) -> Option<Row> {
        if std::mem::replace(&mut self.busy, true) {
            return None;
        }
        self.live.push(live);
        Some(Row { revision: self.live.len() as u64, live })
    }

    /// The write is in the store.
    pub(crate) fn landed(&mut self) {
        self.seen = self.live.len() as u64;
        self.busy = false;
    }

    /// The write will never be in the store.
    pub(crate) fn abandoned(&mut self) {
        self.live.pop();
        self.busy = false;
    }

    /// A read begins: what it has to see at least.
    pub(crate) const fn since(&self) -> u64 {
        self.seen
    }

    /// A read ends that began at `since`.
    pub(crate) fn check(&mut self, since: u64, found: Option<Row>) -> Result<(), Wrong> {
        let issued = self.live.len() as u64;
        let is_live = |revision: u64| revision > 0 && self.live[usize::try_from(revision - 1).unwrap()];
        let revision = match found {
            Some(row) if row.revision == 0 || row.revision > issued || is_live(row.revision) != row.live => {
                return Err(Wrong::Unwritten);
            }
            Some(row) if row.revision < since => return Err(Wrong::Stale),
            Some(row) => row.revision,
            // Which of the revisions without a record it saw is not told: the oldest that it may have been.
            None => (since..=issued).find(|revision| !is_live(*revision)).ok_or(Wrong::Missed)?,
        };
        self.seen = self.seen.max(revision);
        Ok(())
    }
}

/// A number that is incremented in place by many at once.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    begun: u64,
    /// The highest value that is known to have been reached.
    seen: u64,
    results: BTreeSet<u64>,
}

impl Counter {
    /// An increment begins: what its result is above.
    pub(crate) const fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.seen
    }

    /// It was not carried out.
    pub(crate) const fn abandoned(&mut self) {
        self.begun -= 1;
    }

    /// It was carried out with this result.
    pub(crate) fn landed(&mut self, since: u64, result: u64) -> Result<(), Wrong> {
        if result <= since {
            return Err(Wrong::Stale);
        }
        if result > self.begun {
            return Err(Wrong::Unwritten);
        }
        if !self.results.insert(result) {
            return Err(Wrong::Lost);
        }
        self.seen = self.seen.max(result);
        Ok(())
    }

    /// A read begins: what it has to see at least.
    pub(crate) const fn since(&self) -> u64 {
        self.seen
    }

    /// A read ends that began at `since`.
    pub(crate) fn check(&mut self, since: u64, found: Option<Row>) -> Result<(), Wrong> {
        let value = found.map_or(0, |row| row.revision);
        if value > self.begun {
            return Err(Wrong::Unwritten);
        }
        if value < since {
            return Err(if found.is_some() { Wrong::Stale } else { Wrong::Missed });
        }
        self.seen = self.seen.max(value);
        Ok(())
    }

    /// How many increments were carried out, when none runs: the value that it should have.
    pub(crate) fn total(&self) -> u64 {
        self.results.len() as u64
    }
}

/// The records of one key.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) registers: BTreeMap<String, Register>,
    pub(crate) counters: BTreeMap<String, Counter>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(revision: u64, live: bool) -> Option<Row> {
        Some(Row { revision, live })
    }

    #[test]
    fn a_read_sees_the_last_completed_write_or_one_beside_it() {
        let mut record = Register::default();
        assert_eq!(record.issue(true), row(1, true));
        assert_eq!(record.issue(true), None, "one write at a time");
        let before = record.since();
        assert_eq!(record.check(before, None), Ok(()));
        record.landed();
        assert_eq!(record.check(before, None), Ok(()), "it began before the write was over");
        let after = record.since();
        assert_eq!(record.check(after, None), Err(Wrong::Missed));
        record.issue(true);
        assert_eq!(record.check(after, row(1, true)), Ok(()));
        assert_eq!(record.check(after, row(2, true)), Ok(()));
        assert_eq!(record.check(record.since(), row(1, true)), Err(Wrong::Stale), "another read has seen the second");
        assert_eq!(record.check(after, row(3, true)), Err(Wrong::Unwritten));
        assert_eq!(record.check(after, row(2, false)), Err(Wrong::Unwritten), "it was no delete");
    }

    #[test]
    fn a_deleted_record_is_gone_and_one_taken_back_was_never_there() {
        let mut record = Register::default();
        for live in [true, false] {
            record.issue(live);
            record.landed();
        }
        assert_eq!(record.check(record.since(), row(1, true)), Err(Wrong::Stale));
        assert_eq!(record.check(record.since(), None), Ok(()));
        assert_eq!(record.check(record.since(), row(2, false)), Ok(()));
        record.issue(true);
        record.abandoned();
        assert_eq!(record.check(record.since(), row(3, true)), Err(Wrong::Unwritten));
        assert_eq!(record.issue(true), row(3, true));
    }

    #[test]
    fn each_increment_counts_once() {
        let mut counter = Counter::default();
        let (one, two) = (counter.begin(), counter.begin());
        assert_eq!(counter.landed(one, 2), Ok(()));
        assert_eq!(counter.landed(two, 2), Err(Wrong::Lost));
        assert_eq!(counter.landed(two, 1), Ok(()), "it began before the other was over");
        let three = counter.begin();
        assert_eq!(counter.landed(three, 2), Err(Wrong::Stale));
        assert_eq!(counter.landed(three, 4), Err(Wrong::Unwritten));
        counter.abandoned();
        assert_eq!(counter.total(), 2);
        assert_eq!(counter.check(counter.since(), row(1, true)), Err(Wrong::Stale));
        assert_eq!(counter.check(counter.since(), None), Err(Wrong::Missed));
        assert_eq!(counter.check(counter.since(), row(3, true)), Err(Wrong::Unwritten));
        assert_eq!(counter.check(counter.since(), row(2, true)), Ok(()));
    }
}
