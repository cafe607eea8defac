//! A guard: one request in flight, counted until it is dropped.

use std::fmt;
use std::sync::Arc;

use super::node::Node;
use super::stripe::{Kind, Stripe};
use crate::units::EventTime;

/// One request in flight under one version of its key.
pub(super) struct Guard<'a> {
    counted: Counted<'a>,
    kind: Kind,
}

enum Counted<'a> {
    Stripe(&'a Stripe, usize),
    Node(Arc<Node>),
}

impl<'a> Guard<'a> {
    /// A guard of a key without a plan, counted by the caller in `slot`.
    pub(super) const fn in_stripe(stripe: &'a Stripe, slot: usize, kind: Kind) -> Self {
        Self { counted: Counted::Stripe(stripe, slot), kind }
    }

    /// A guard under a version, counted by the caller.
    pub(super) const fn under(node: Arc<Node>, kind: Kind) -> Self {
        Self { counted: Counted::Node(node), kind }
    }

    /// The version under which it is counted.
    pub(super) const fn node(&self) -> Option<&Arc<Node>> {
        match &self.counted {
            Counted::Stripe(..) => None,
            Counted::Node(node) => Some(node),
        }
    }

    /// The call may still be in flight until `until`; from then on it is over, whatever became of it.
    pub(super) fn outcome_unknown(self, until: EventTime) {
        match &self.counted {
            Counted::Stripe(stripe, slot) => stripe.note_unknown(*slot, self.kind, until.as_millis()),
            Counted::Node(node) => node.note_unknown(self.kind, until.as_millis()),
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        match &self.counted {
            Counted::Stripe(stripe, slot) => stripe.leave(*slot, self.kind),
            Counted::Node(node) => node.leave(self.kind),
        }
    }
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.counted {
            Counted::Stripe(..) => write!(f, "Guard({:?}, no plan)", self.kind),
            Counted::Node(node) => write!(f, "Guard({:?}, {})", self.kind, node.version),
        }
    }
}
