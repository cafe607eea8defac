//! What one record of a store may answer: linearizability with concurrent calls and calls of unknown outcome.
//!
//! Kept is the set of all that may have happened: the record's value, and which of the open calls have taken effect with which
//! answer. An answer is right when one of them has it.

use std::collections::BTreeSet;

/// What a caller asks of one id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Call {
    /// Answers 0.
    Write,
    /// Answers 0.
    Delete,
    /// Answers the value, 0 for none.
    Read,
    /// Answers the new value.
    Increment,
    /// Answers 1 when there was none, else 0.
    InsertUnique,
    /// Answers how many records there are.
    Count,
}

/// A call that has begun and not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Open {
    pub(crate) number: u8,
    pub(crate) call: Call,
    /// What is written.
    pub(crate) value: i16,
}

/// Everything that may have happened so far.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Spec {
    may: BTreeSet<(i16, Vec<(u8, i16)>)>,
    open: Vec<Open>,
}

impl Spec {
    pub(crate) fn new(value: i16) -> Self {
        Self { may: BTreeSet::from([(value, Vec::new())]), open: Vec::new() }
    }

    /// A call begins.
    pub(crate) fn begun(&self, call: Open) -> Self {
        let mut spec = self.clone();
        spec.open.push(call);
        let mut todo: Vec<_> = spec.may.iter().cloned().collect();
        while let Some((value, taken)) = todo.pop() {
            for open in spec.open.iter().filter(|open| taken.iter().all(|(number, _)| *number != open.number)) {
                let (after, answer) = open.call.takes_effect(value, open.value);
                let mut taken = taken.clone();
                taken.push((open.number, answer));
                taken.sort_unstable();
                let next = (after, taken);
                if spec.may.insert(next.clone()) {
                    todo.push(next);
                }
            }
        }
        spec
    }

    /// A call answers; none when that cannot be.
    pub(crate) fn answered(&self, number: u8, answer: i16) -> Option<Self> {
        let without = |taken: &Vec<(u8, i16)>| taken.iter().copied().filter(|(other, _)| *other != number).collect();
        let may: BTreeSet<_> = self
            .may
            .iter()
            .filter(|(_, taken)| taken.contains(&(number, answer)))
            .map(|(value, taken)| (*value, without(taken)))
            .collect();
        let open = self.open.iter().copied().filter(|open| open.number != number).collect();
        (!may.is_empty()).then_some(Self { may, open })
    }
}

impl Call {
    const fn takes_effect(self, value: i16, given: i16) -> (i16, i16) {
        match self {
            Self::Write => (given, 0),
            Self::Delete => (0, 0),
            Self::Read => (value, value),
            Self::Increment => (value + 1, value + 1),
            Self::InsertUnique if value == 0 => (given, 1),
            Self::InsertUnique => (value, 0),
            Self::Count => (value, if value == 0 { 0 } else { 1 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(number: u8, call: Call, value: i16) -> Open {
        Open { number, call, value }
    }

    #[test]
    fn a_read_sees_the_last_completed_write_or_one_beside_it() {
        let spec = Spec::new(1).begun(open(0, Call::Write, 2)).answered(0, 0).unwrap();
        let reading = spec.begun(open(1, Call::Read, 0));
        assert!(reading.answered(1, 2).is_some());
        assert!(reading.answered(1, 1).is_none(), "a write that was answered is lost");
        let beside = reading.begun(open(2, Call::Write, 3));
        assert!(beside.answered(1, 3).is_some());
        assert!(beside.answered(1, 2).unwrap().begun(open(3, Call::Read, 0)).answered(3, 3).is_some());
        let seen = beside.answered(1, 3).unwrap().begun(open(3, Call::Read, 0));
        assert!(seen.answered(3, 2).is_none(), "what one read has seen the next one sees");
    }

    #[test]
    fn a_call_of_unknown_outcome_may_take_effect_late_but_once() {
        let spec = Spec::new(1).begun(open(0, Call::Increment, 0));
        let first = spec.begun(open(1, Call::Read, 0)).answered(1, 1).unwrap();
        let second = first.begun(open(2, Call::Read, 0)).answered(2, 2).unwrap();
        assert!(second.begun(open(3, Call::Read, 0)).answered(3, 3).is_none());
        assert!(second.begun(open(3, Call::Read, 0)).answered(3, 1).is_none());
    }
}
