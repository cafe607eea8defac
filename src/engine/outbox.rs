//! Verdicts that wait to be fetched.

use std::collections::VecDeque;

use super::verdict::Verdict;

/// The most verdicts that wait; what is hot can be asked for at any time.
pub(crate) const MAX_VERDICTS: usize = 16_384;

/// A bounded queue.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: VecDeque<Verdict>,
    cut: u64,
}

impl Outbox {
    /// Adds a verdict, or counts it as cut.
    pub(crate) fn push(&mut self, verdict: Verdict) {
        if self.waiting.len() < MAX_VERDICTS {
            self.waiting.push_back(verdict);
        } else {
            self.cut += 1;
        }
    }

    /// The oldest verdict.
    pub(crate) fn pop(&mut self) -> Option<Verdict> {
        self.waiting.pop_front()
    }

    /// Verdicts that found no room.
    pub(crate) const fn cut(&self) -> u64 {
        self.cut
    }
}
