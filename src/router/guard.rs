//! A guard: one request in flight, counted until it is dropped.

use std::fmt;
use std::sync::Arc;

use super::node::Node;
use super::stripe::{Kind, Stripe};
use super::table::Table;
use crate::units::EventTime;

/// One request in flight under one version of its key.
pub(super) struct Guard<'a> {
    counted: Counted<'a>,
    kind: Kind,
}

enum Counted<'a> {
    /// In this slot of this stripe.
    Stripe(&'a Stripe, usize),
    /// In this slot of the stripe with this number.
    Owned(Arc<Table>, usize, usize),
    Node(Arc<Node>),
    /// By another guard now.
    Moved,
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

    pub(super) const fn kind(&self) -> Kind {
        self.kind
    }

    /// The version under which it is counted.
    pub(super) const fn node(&self) -> Option<&Arc<Node>> {
        match &self.counted {
            Counted::Node(node) => Some(node),
            Counted::Stripe(..) | Counted::Owned(..) | Counted::Moved => None,
        }
    }

    /// The same guard without a borrow of the table that counts it; given back when that is another table.
    pub(super) fn into_owned(mut self, table: &Arc<Table>) -> Result<Guard<'static>, Self> {
        let counted = match &self.counted {
            Counted::Stripe(stripe, slot) => match table.number_of(stripe) {
                Some(number) => Counted::Owned(Arc::clone(table), number, *slot),
                None => return Err(self),
            },
            Counted::Owned(table, number, slot) => Counted::Owned(Arc::clone(table), *number, *slot),
            Counted::Node(node) => Counted::Node(Arc::clone(node)),
            Counted::Moved => Counted::Moved,
        };
        self.counted = Counted::Moved;
        Ok(Guard { counted, kind: self.kind })
    }

    /// The call may still be in flight until `until`; from then on it is over, whatever became of it.
    pub(super) fn outcome_unknown(self, until: EventTime) {
        match &self.counted {
            Counted::Stripe(stripe, slot) => stripe.note_unknown(*slot, self.kind, until.as_millis()),
            Counted::Owned(table, number, slot) => {
                table.stripes[*number].note_unknown(*slot, self.kind, until.as_millis());
            }
            Counted::Node(node) => node.note_unknown(self.kind, until.as_millis()),
            Counted::Moved => {}
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        match &self.counted {
            Counted::Stripe(stripe, slot) => stripe.leave(*slot, self.kind),
            Counted::Owned(table, number, slot) => table.stripes[*number].leave(*slot, self.kind),
            Counted::Node(node) => node.leave(self.kind),
            Counted::Moved => {}
        }
    }
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.counted {
            Counted::Stripe(..) | Counted::Owned(..) => write!(f, "Guard({:?}, no plan)", self.kind),
            Counted::Moved => f.write_str("Guard(moved)"),
            Counted::Node(node) => write!(f, "Guard({:?}, {})", self.kind, node.version),
        }
    }
}
