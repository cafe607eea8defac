//! What the process waits for before it is ready: named latches, each with a word for the person who looks.

use std::sync::{Mutex, PoisonError};

use crate::telemetry::Latch;

/// All latches. Each is open, with the detail "not known yet", until it is set. Shared by all threads.
#[derive(Debug)]
pub struct Readiness {
    latches: Mutex<Vec<(bool, String)>>,
}

/// One latch as it is now.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LatchReport {
    /// Label of the latch.
    pub latch: &'static str,
    /// Whether this part is ready.
    pub ready: bool,
    /// What it waits for and what to do, or what was found.
    pub detail: String,
}

/// The longest detail, in characters.
const MAX_DETAIL_CHARS: usize = 400;

impl Readiness {
    /// Nothing is ready.
    #[must_use]
    pub fn new() -> Self {
        Self { latches: Mutex::new(vec![(false, "not known yet".to_owned()); Latch::ALL.len()]) }
    }

    /// Says whether a part is ready, and why (cut to 400 characters).
    pub fn set(&self, latch: Latch, ready: bool, detail: &str) {
        let mut latches = self.latches.lock().unwrap_or_else(PoisonError::into_inner);
        let (known_ready, known_detail) = &mut latches[latch as usize];
        *known_ready = ready;
        if known_detail != detail {
            *known_detail = detail.chars().take(MAX_DETAIL_CHARS).collect();
        }
    }

    /// True when every part is.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.latches.lock().unwrap_or_else(PoisonError::into_inner).iter().all(|(ready, _)| *ready)
    }

    /// Every latch, in the order of [`Latch::ALL`].
    #[must_use]
    pub fn report(&self) -> Vec<LatchReport> {
        let latches = self.latches.lock().unwrap_or_else(PoisonError::into_inner);
        let all = Latch::ALL.iter().zip(latches.iter());
        all.map(|(latch, (ready, detail))| LatchReport { latch: latch.label(), ready: *ready, detail: detail.clone() })
            .collect()
    }

    /// Every latch with its state, for the gauge.
    #[must_use]
    pub(super) fn states(&self) -> Vec<(Latch, bool)> {
        let latches = self.latches.lock().unwrap_or_else(PoisonError::into_inner);
        Latch::ALL.iter().copied().zip(latches.iter().map(|(ready, _)| *ready)).collect()
    }
}

impl Default for Readiness {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_when_all_are_and_not_before() {
        let readiness = Readiness::new();
        assert!(readiness.report().iter().all(|latch| !latch.ready && latch.detail == "not known yet"));
        for latch in Latch::ALL {
            assert!(!readiness.is_ready());
            readiness.set(*latch, true, "");
        }
        assert!(readiness.is_ready());
        readiness.set(Latch::PlanTopic, false, "topic keyheat.plan.v1 is missing; run 'keyheat topics create'");
        assert!(!readiness.is_ready());
        let waiting: Vec<_> = readiness.report().into_iter().filter(|latch| !latch.ready).collect();
        assert_eq!(waiting.len(), 1);
        assert_eq!(waiting[0].latch, "plan_topic");
        readiness.set(Latch::Control, false, &"é".repeat(10_000));
        assert_eq!(readiness.report()[Latch::Control as usize].detail.chars().count(), MAX_DETAIL_CHARS);
    }
}
