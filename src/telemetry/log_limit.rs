//! How many log lines of one kind may come in a while: what floods in from outside must not flood the log.

use crate::units::{EventTime, Span};

/// Lets through so many lines of each kind in each period, and counts the rest.
#[derive(Debug)]
pub struct LogLimit {
    lines: u32,
    period: Span,
    kinds: Box<[Period]>,
}

#[derive(Debug, Clone, Copy)]
struct Period {
    begin: EventTime,
    lines: u32,
    suppressed: u64,
}

impl LogLimit {
    /// `lines` lines of each of `kinds` kinds in each `period`.
    #[must_use]
    pub fn new(kinds: usize, lines: u32, period: Span) -> Self {
        let none = Period { begin: EventTime::MIN, lines: 0, suppressed: 0 };
        Self { lines, period, kinds: vec![none; kinds].into() }
    }

    /// Whether a line of this kind may be written now, and then how many were left out since the last one.
    /// A kind that is not known has no limit. A clock that went back begins a new period.
    pub fn admit(&mut self, kind: usize, now: EventTime) -> Option<u64> {
        let Some(state) = self.kinds.get_mut(kind) else { return Some(0) };
        if now < state.begin || now.since(state.begin) >= self.period {
            state.begin = now;
            state.lines = 0;
        }
        if state.lines >= self.lines {
            state.suppressed += 1;
            return None;
        }
        state.lines += 1;
        Some(std::mem::take(&mut state.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> EventTime {
        EventTime::from_millis(ms).unwrap()
    }

    #[test]
    fn a_flood_leaves_a_few_lines_and_a_number() {
        let mut limit = LogLimit::new(2, 3, Span::from_secs(10));
        let through = (0..1000).filter(|n| limit.admit(0, at(20_000 + n)).is_some()).count();
        assert_eq!(through, 3);
        assert_eq!(limit.admit(1, at(20_000)), Some(0), "another kind has its own room");
        assert_eq!(limit.admit(0, at(30_000)), Some(997));
        assert_eq!(limit.admit(0, at(30_001)), Some(0));
        assert_eq!(limit.admit(0, at(1000)), Some(0), "the clock went back");
        assert_eq!(limit.admit(7, at(1000)), Some(0));
    }
}
