//! Decisions are values: what should be sent to the plan topic. Something else carries them out.

use crate::protocol::{Advice, PlanKey, PlanRecord, Policy};

/// One record to send.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// A plan's next record.
    Put(Box<PlanRecord>),
    /// A tombstone: the key is back in the bare layout for long enough, or its proposal is withdrawn.
    Remove(PlanKey),
    /// Advice on what to do other than split.
    Advise(Box<Advice>),
    /// The advice no longer holds.
    Unadvise(PlanKey),
    /// What an operator has set for a key.
    SetPolicy(Box<Policy>),
    /// An operator has taken it back.
    RemovePolicy(PlanKey),
}
