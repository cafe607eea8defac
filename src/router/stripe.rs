//! Guards of keys that have no plan: counted by stripe of the key's hash and by generation, no record a request.
//!
//! # Why no guard is missed
//!
//! A stripe has a *generation* and a ring of [`SLOTS`] counters; a guard is counted in the slot of its generation. All atomics
//! here are sequentially consistent, so there is one order of all of them, written `<` below.
//!
//! A guard: (e1) reads the generation `g`; (e2) adds 1 to slot `g`; (e3) reads the generation again and, when it is not `g`,
//! takes the 1 back and starts anew; (e4) looks into the table, finds no plan of its key and so places the request bare.
//!
//! A change that gives the key a plan: (a1) makes the plan visible to (e4); (a2) reads the generation `G`; (a3) moves it to
//! `G + 1`; (a4) later reads the slots of all generations up to `G` and finds 0.
//!
//! *Claim*: after (a4) no guard of the key is left that placed its request bare.
//! A guard that found no plan did (e4) before (a1), and so (e2) < (e3) < (e4) < (a1) < (a2) < (a3) < (a4). At (e3) the
//! generation was its `g`, so `g <= G`: it is counted in a slot that (a4) reads, and (a4) sees the 1 until the guard is dropped.
//!
//! *The ring.* Generation `n` takes the slot of `n - SLOTS` and is entered only when that slot was seen at 0 while the
//! generation was at least `n - SLOTS + 1`. From then on no guard can pass (e3) with `n - SLOTS`, so the slot holds guards of `n`
//! only, apart from the passing 1 of a guard that (e3) turns away; such a 1 can make (a4) wait for a moment, never miss.
//! While an old guard occupies the slot that comes next, the generation stays, (a4) has not been reached, and the change is
//! acknowledged later: safe, and tried again with each look at the acknowledgement.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::SeqCst};

/// How many generations of a stripe may have guards at once.
pub(super) const SLOTS: usize = 4;

/// What a guard protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A read of any form: a point read, a scan.
    Read,
    /// A blind write or a delete.
    Write,
    /// An operation that needs the old value: it depends on where is read and on where is written.
    InPlace,
}

impl Kind {
    pub(super) const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::InPlace)
    }

    pub(super) const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::InPlace)
    }
}

/// Guards of one generation or of one version.
///
/// A count of 32 bits would wrap at four thousand million guards alive at once, each of which is a request in flight.
#[derive(Debug, Default)]
pub(super) struct Counts {
    reads: AtomicU32,
    writes: AtomicU32,
}

/// Until when calls of unknown outcome may still be in flight, in milliseconds since the epoch; 0: there are none.
#[derive(Debug, Default)]
pub(super) struct Unknown {
    reads: AtomicI64,
    writes: AtomicI64,
}

/// What is left of the guards of a generation or a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Left {
    /// Reads in flight.
    pub reads: bool,
    /// Writes in flight.
    pub writes: bool,
    /// Reads whose outcome is unknown.
    pub unknown_reads: bool,
    /// Writes whose outcome is unknown: they may still land.
    pub unknown_writes: bool,
}

impl Left {
    /// What has to be assumed where nothing is known yet.
    pub(super) const ANYTHING: Self = Self { reads: true, writes: true, unknown_reads: true, unknown_writes: true };

    pub(super) const fn nothing(self) -> bool {
        !(self.reads || self.writes || self.unknown_reads || self.unknown_writes)
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            reads: self.reads || other.reads,
            writes: self.writes || other.writes,
            unknown_reads: self.unknown_reads || other.unknown_reads,
            unknown_writes: self.unknown_writes || other.unknown_writes,
        }
    }
}

impl Counts {
    pub(super) fn add(&self, kind: Kind) {
        if kind.reads() {
            self.reads.fetch_add(1, SeqCst);
        }
        if kind.writes() {
            self.writes.fetch_add(1, SeqCst);
        }
    }

    pub(super) fn take(&self, kind: Kind) {
        if kind.reads() {
            self.reads.fetch_sub(1, SeqCst);
        }
        if kind.writes() {
            self.writes.fetch_sub(1, SeqCst);
        }
    }

    /// The counts are read before the times: a guard notes its time first and is taken off the count then, so what has left
    /// the count is seen in the time.
    pub(super) fn left(&self, unknown: &Unknown, now_ms: i64) -> Left {
        let reads = self.reads.load(SeqCst) > 0;
        let writes = self.writes.load(SeqCst) > 0;
        Left {
            reads,
            writes,
            unknown_reads: unknown.reads.load(SeqCst) > now_ms,
            unknown_writes: unknown.writes.load(SeqCst) > now_ms,
        }
    }
}

impl Unknown {
    /// One time for all such calls, the latest: no record a call.
    pub(super) fn note(&self, kind: Kind, until_ms: i64) {
        if kind.reads() {
            self.reads.fetch_max(until_ms, SeqCst);
        }
        if kind.writes() {
            self.writes.fetch_max(until_ms, SeqCst);
        }
    }

    /// The latest of these times; 0: there is none.
    pub(super) fn latest_ms(&self) -> i64 {
        self.reads.load(SeqCst).max(self.writes.load(SeqCst))
    }

    fn clear(&self) {
        self.reads.store(0, SeqCst);
        self.writes.store(0, SeqCst);
    }
}

/// The guards of the keys without a plan whose hash falls into one stripe. The part that each request touches is one cache line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Stripe {
    generation: AtomicU64,
    /// A bit for each plan of the stripe, chosen by other bits of the hash: a clear bit proves that a key has no plan.
    filter: AtomicU64,
    slots: [Counts; SLOTS],
    unknown: [Unknown; SLOTS],
}

impl Stripe {
    /// False when no key with this bit has a plan.
    pub(super) fn may_have_plan(&self, bit: u64) -> bool {
        self.filter.load(SeqCst) & bit != 0
    }

    pub(super) fn set_filter(&self, bit: u64) {
        self.filter.fetch_or(bit, SeqCst);
    }

    pub(super) fn clear_filter(&self, bit: u64) {
        self.filter.fetch_and(!bit, SeqCst);
    }

    /// Sets the filter anew.
    pub(super) fn reset_filter(&self, bits: u64) {
        self.filter.store(bits, SeqCst);
    }

    /// What is left of all guards.
    pub(super) fn left(&self, now_ms: i64) -> Left {
        let slots = self.slots.iter().zip(&self.unknown);
        slots.map(|(counts, unknown)| counts.left(unknown, now_ms)).fold(Left::default(), Left::and)
    }

    /// Steps (e1) to (e3): counts a guard, and says in which slot.
    pub(super) fn enter(&self, kind: Kind) -> usize {
        loop {
            let generation = self.generation.load(SeqCst);
            let slot = slot_of(generation);
            self.slots[slot].add(kind);
            if self.generation.load(SeqCst) == generation {
                return slot;
            }
            self.slots[slot].take(kind);
        }
    }

    pub(super) fn leave(&self, slot: usize, kind: Kind) {
        self.slots[slot].take(kind);
    }

    pub(super) fn note_unknown(&self, slot: usize, kind: Kind, until_ms: i64) {
        self.unknown[slot].note(kind, until_ms);
    }

    /// Until when a call of unknown outcome may be in flight; 0: there was none.
    pub(super) fn unknown_until_ms(&self) -> i64 {
        self.unknown.iter().map(Unknown::latest_ms).max().unwrap_or(0)
    }

    /// Step (a2).
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(SeqCst)
    }

    /// Step (a3); false while the next slot still has guards. One caller at a time: the ledger's lock.
    pub(super) fn try_advance(&self, now_ms: i64) -> bool {
        let next = self.generation.load(SeqCst) + 1;
        let slot = slot_of(next);
        if !self.slots[slot].left(&self.unknown[slot], now_ms).nothing() {
            return false;
        }
        self.unknown[slot].clear();
        self.generation.store(next, SeqCst);
        true
    }

    /// Step (a4): what is left of the guards of all generations up to `through`; none while the generation is still that one.
    pub(super) fn left_through(&self, through: u64, now_ms: i64) -> Option<Left> {
        let generation = self.generation.load(SeqCst);
        if generation <= through {
            return None;
        }
        let oldest = generation.saturating_sub(SLOTS as u64 - 1);
        let left = (oldest..=through)
            .map(slot_of)
            .map(|slot| self.slots[slot].left(&self.unknown[slot], now_ms))
            .fold(Left::default(), Left::and);
        Some(left)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the remainder is below SLOTS")]
const fn slot_of(generation: u64) -> usize {
    (generation % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripe_takes_no_more_cache_lines_than_needed() {
        assert_eq!(align_of::<Stripe>(), 64);
        assert_eq!(size_of::<Stripe>(), 128);
    }

    #[test]
    fn guards_before_a_change_are_waited_for_and_later_ones_are_not() {
        let stripe = Stripe::default();
        let before = stripe.enter(Kind::Write);
        let through = stripe.generation();
        assert_eq!(stripe.left_through(through, 0), None, "the generation has not moved");
        assert!(stripe.try_advance(0));
        let after = stripe.enter(Kind::Write);
        assert!(stripe.left_through(through, 0).unwrap().writes);
        stripe.leave(before, Kind::Write);
        assert!(stripe.left_through(through, 0).unwrap().nothing());
        stripe.leave(after, Kind::Write);
    }

    #[test]
    fn a_guard_that_stays_stops_the_ring_and_is_never_overrun() {
        let stripe = Stripe::default();
        let scan = stripe.enter(Kind::Read);
        let advanced = (0..10).filter(|_| stripe.try_advance(0)).count();
        assert_eq!(advanced, SLOTS - 1);
        assert!(stripe.left_through(0, 0).unwrap().reads);
        assert!(!stripe.left_through(0, 0).unwrap().writes);
        stripe.leave(scan, Kind::Read);
        assert!(stripe.try_advance(0));
    }

    #[test]
    fn an_unknown_outcome_ends_with_its_time() {
        let stripe = Stripe::default();
        let slot = stripe.enter(Kind::Write);
        stripe.note_unknown(slot, Kind::Write, 500);
        stripe.leave(slot, Kind::Write);
        assert!(stripe.try_advance(0));
        let left = stripe.left_through(0, 499).unwrap();
        assert!(left.unknown_writes && !left.writes);
        assert!(stripe.left_through(0, 500).unwrap().nothing());
    }
}
