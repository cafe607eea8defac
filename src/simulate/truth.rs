//! What a client knows of its own records: the check behind "no read missed a record".
//!
//! Every record has one author that writes it in turn, so its revisions are numbered. A read sees the last completed write when
//! what it found is at least as new as the last write that had completed when the read began, and no newer than the last write
//! that had been issued when it ended. Both bounds are needed: a write that runs beside a read may or may not be seen.

use super::store::Row;

/// What was written to one id, as its author knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Truth {
    /// The last write that has completed; revision 0 is the id before its first write.
    completed: u64,
    completed_live: bool,
    /// The last write that was issued.
    issued: u64,
    issued_live: bool,
    /// The newest issued revision under which the id has no record: a delete, or 0 before the first write.
    newest_dead: u64,
}

/// What a read must at least see: taken when it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    completed: u64,
    live: bool,
}

/// What is wrong with a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wrong {
    /// The record was not found.
    Missed,
    /// An older revision was found, or a deleted record.
    Stale,
    /// A revision that nobody has written.
    Unwritten,
}

impl Truth {
    /// The next write is issued: its row. One write of an id runs at a time, and its author is who keeps to that.
    pub fn issue(&mut self, live: bool) -> Row {
        self.issued += 1;
        self.issued_live = live;
        if !live {
            self.newest_dead = self.issued;
        }
        Row { revision: self.issued, live }
    }

    /// The issued write has completed.
    pub fn complete(&mut self) {
        self.completed = self.issued;
        self.completed_live = self.issued_live;
    }

    /// True while a write was issued and has not completed.
    #[must_use]
    pub const fn is_writing(&self) -> bool {
        self.issued != self.completed
    }

    /// True when the last completed write left a record.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        self.completed_live
    }

    /// A read begins now.
    #[must_use]
    pub const fn since(&self) -> Since {
        Since { completed: self.completed, live: self.completed_live }
    }

    /// Judges what a read found that began at `since` and ends now; a tombstone is given as it was found, or as nothing.
    ///
    /// # Errors
    /// [`Wrong`]
    pub fn check(&self, since: Since, found: Option<Row>) -> Result<(), Wrong> {
        match found {
            Some(row) if row.revision > self.issued => Err(Wrong::Unwritten),
            Some(row) if row.revision < since.completed => Err(Wrong::Stale),
            Some(Row { live: true, .. }) => Ok(()),
            None | Some(Row { live: false, .. }) => {
                let may_be_absent = !since.live || self.newest_dead > since.completed;
                if may_be_absent { Ok(()) } else { Err(Wrong::Missed) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(revision: u64) -> Option<Row> {
        Some(Row { revision, live: true })
    }

    #[test]
    fn a_read_beside_a_write_may_see_it_or_not() {
        let mut truth = Truth::default();
        let before = truth.since();
        truth.issue(true);
        assert!(truth.is_writing());
        assert_eq!(truth.check(before, None), Ok(()));
        assert_eq!(truth.check(before, found(1)), Ok(()));
        truth.complete();
        assert_eq!(truth.check(before, None), Ok(()), "the read began before the write completed");
        let after = truth.since();
        assert_eq!(truth.check(after, None), Err(Wrong::Missed));
        assert_eq!(truth.check(after, found(1)), Ok(()));
        assert_eq!(truth.check(after, found(2)), Err(Wrong::Unwritten));
    }

    #[test]
    fn an_old_revision_and_a_deleted_record_are_wrong() {
        let mut truth = Truth::default();
        for live in [true, true, false] {
            let last = truth.since();
            let row = truth.issue(live);
            assert_eq!(truth.check(last, Some(row)), Ok(()));
            truth.complete();
        }
        assert!(!truth.is_live());
        assert_eq!(truth.check(truth.since(), None), Ok(()));
        assert_eq!(truth.check(truth.since(), Some(Row { revision: 3, live: false })), Ok(()));
        assert_eq!(truth.check(truth.since(), found(2)), Err(Wrong::Stale));
        let deleted = truth.since();
        truth.issue(true);
        assert_eq!(truth.check(deleted, found(1)), Err(Wrong::Stale));
        truth.complete();
        assert_eq!(truth.check(deleted, None), Ok(()), "it began while there was none");
        assert_eq!(truth.check(truth.since(), None), Err(Wrong::Missed));
    }
}
