//! The table as requests see it: one look-up and one guard each.

use std::borrow::Cow;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dashmap::DashMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::guard::Guard;
use super::ledger::Ledger;
use super::node::{Content, Node};
use super::placement::{
    DeletePlacement, Held, HeldCount, NoPlan, Place, Placement, Places, ReadPlacement, ReadRule, Refused,
    ScanPlacement, Write,
};
use super::rules::{Rules, WriteRule};
use super::stripe::{Kind, Stripe};
use crate::protocol::{Delete, Layout, MAX_PLANS, MAX_TROUBLED, RefusedRecord};

/// The most stripes of a table.
const MAX_STRIPES: usize = 1 << 20;

/// Sizes and limits of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableSettings {
    /// Stripes by which guards of keys without a plan are counted: 128 bytes each; rounded up to a power of two of at most 2^20.
    /// A scan of one key holds up the first plan of another when both fall into one stripe.
    pub stripes: usize,
    /// The most keys with a plan.
    pub max_plans: usize,
    /// The most writes that wait at once.
    pub max_held: u32,
    /// Seed of the table's own hash; give each process another where keys come from strangers.
    pub seed: u64,
}

impl Default for TableSettings {
    fn default() -> Self {
        Self { stripes: 4096, max_plans: MAX_PLANS + MAX_TROUBLED, max_held: 10_000, seed: 0 }
    }
}

/// Where requests go. Share it as `Arc<Table>`: requests read it from any thread, one thread applies changes.
pub struct Table {
    pub(super) settings: TableSettings,
    pub(super) stripes: Box<[Stripe]>,
    pub(super) plans: DashMap<u64, Vec<Arc<Node>>, BuildHasherDefault<Prehashed>>,
    pub(super) ledger: Mutex<Ledger>,
    pub(super) bare: Rules,
    pub(super) held: Arc<HeldCount>,
    pub(super) now_ms: AtomicI64,
    pub(super) heartbeat_ms: AtomicI64,
    /// One of the three below. It is looked at where a filter's bit is set, and all bits are set while it is not [`OPEN`]: so it
    /// costs an open table nothing.
    pub(super) gate: AtomicU8,
}

/// Requests are placed.
pub(super) const OPEN: u8 = 0;
/// The plan topic has not been read to its end yet.
pub(super) const NOT_READY: u8 = 1;
/// The router leaves.
pub(super) const CLOSED: u8 = 2;

impl Table {
    /// An empty table that is open: no key has a plan.
    #[must_use]
    pub fn new(settings: TableSettings) -> Self {
        let stripes = settings.stripes.clamp(1, MAX_STRIPES).next_power_of_two();
        Self {
            settings,
            stripes: (0..stripes).map(|_| Stripe::default()).collect(),
            plans: DashMap::default(),
            ledger: Mutex::default(),
            bare: Rules::bare(),
            held: Arc::default(),
            now_ms: AtomicI64::new(0),
            heartbeat_ms: AtomicI64::new(0),
            gate: AtomicU8::new(OPEN),
        }
    }

    /// An empty table that places nothing before [`Table::open`]: for a router that has yet to read the plan topic.
    #[must_use]
    pub fn not_ready(settings: TableSettings) -> Self {
        let table = Self::new(settings);
        table.shut(NOT_READY);
        table
    }

    /// Where a write of `id` to `key` goes: an insert or an overwrite that does not need the old value.
    ///
    /// # Errors
    /// [`Refused`]
    pub fn write<'a>(&'a self, keyspace: &str, key: &'a [u8], id: &[u8]) -> Result<Write<Placement<'a>>, Refused> {
        self.place_write(keyspace, key, id, Kind::Write)
    }

    /// Where an operation goes that needs the old value: an increment, a unique insert, a compare-and-set. It waits through hold
    /// and dual, since a write of unknown outcome may still land in the older layout until then. First do as
    /// [`Placement::promote_from`] says.
    ///
    /// # Errors
    /// [`Refused`], also where the keyspace's plan says that records are not updated in place.
    pub fn update_in_place<'a>(
        &'a self,
        keyspace: &str,
        key: &'a [u8],
        id: &[u8],
    ) -> Result<Write<Placement<'a>>, Refused> {
        self.place_write(keyspace, key, id, Kind::InPlace)
    }

    fn place_write<'a>(
        &'a self,
        keyspace: &str,
        key: &'a [u8],
        id: &[u8],
        kind: Kind,
    ) -> Result<Write<Placement<'a>>, Refused> {
        let guard = self.enter(keyspace, key, kind)?;
        if guard.node().is_none() {
            return Ok(Write::Placed(Placement::bare(guard, key)));
        }
        self.place_planned(guard, key, id).map(|write| write.map(|(placement, _)| placement))
    }

    /// Where a delete of `id` goes, and whether it leaves a tombstone.
    ///
    /// # Errors
    /// [`Refused`]
    pub fn delete<'a>(
        &'a self,
        keyspace: &str,
        key: &'a [u8],
        id: &[u8],
    ) -> Result<Write<DeletePlacement<'a>>, Refused> {
        let guard = self.enter(keyspace, key, Kind::Write)?;
        if guard.node().is_none() {
            let placement = Placement::bare(guard, key);
            return Ok(Write::Placed(DeletePlacement { placement, how: Delete::Remove }));
        }
        let write = self.place_planned(guard, key, id)?;
        Ok(write.map(|(placement, how)| DeletePlacement { placement, how }))
    }

    /// Where a read of one `id` looks.
    ///
    /// # Errors
    /// [`Refused::NoPlan`]
    pub fn point_read<'a>(&'a self, keyspace: &str, key: &'a [u8], id: &[u8]) -> Result<ReadPlacement<'a>, Refused> {
        let guard = self.enter(keyspace, key, Kind::Read)?;
        if guard.node().is_none() {
            let places = Places::One([Place::bare(key)]);
            return Ok(ReadPlacement { guard, places, rule: ReadRule::FirstFound });
        }
        let rules = self.rules_of(&guard);
        let places = rules.looks().map(|layout| Place::of(rules, layout, id, key)).collect();
        let rule = rules.read_rule();
        Ok(ReadPlacement { guard, places: Places::Several(places), rule })
    }

    /// Where a scan of all records of `key` looks.
    ///
    /// # Errors
    /// [`Refused::NoPlan`]
    pub fn scan<'a>(&'a self, keyspace: &str, key: &'a [u8]) -> Result<ScanPlacement<'a>, Refused> {
        let guard = self.enter(keyspace, key, Kind::Read)?;
        let rules = self.rules_of(&guard);
        let (places, rule) = (ScanPlacement::places_of(rules, key), rules.read_rule());
        Ok(ScanPlacement { guard, key: Cow::Borrowed(key), places, rule })
    }

    /// Where a write goes whose guard is under a version.
    fn place_planned<'a>(
        &'a self,
        guard: Guard<'a>,
        key: &'a [u8],
        id: &[u8],
    ) -> Result<Write<(Placement<'a>, Delete)>, Refused> {
        let (rules, in_place) = (self.rules_of(&guard), guard.kind() == Kind::InPlace);
        let write = match (rules.write_rule(guard.kind()), guard.node()) {
            (WriteRule::Goes(write), _) => write,
            (WriteRule::Forbidden(writes), _) => return Err(Refused::InPlace(writes)),
            // The guard ends here; having been counted for a moment under a version that waits does no harm.
            (WriteRule::Waits, Some(node)) => {
                return Held::new(Arc::clone(node), &self.held, self.settings.max_held).map(Write::Held);
            }
            (WriteRule::Waits, None) => Layout::BARE,
        };
        let place = Place::of(rules, write, id, key);
        let promoted = in_place.then(|| rules.promotes_from(write)).into_iter().flatten();
        let older = promoted.map(|layout| Place::of(rules, layout, id, key)).collect();
        let how = rules.delete();
        Ok(Write::Placed((Placement { guard, place, older }, how)))
    }

    /// Counts a guard of the key; see `stripe` for why none is missed.
    fn enter(&self, keyspace: &str, key: &[u8], kind: Kind) -> Result<Guard<'_>, Refused> {
        let hash = self.hash(key);
        let (stripe, bit) = self.stripe_of(hash);
        let stripe = &self.stripes[stripe];
        if stripe.may_have_plan(bit)
            && let Some(entered) = self.enter_planned(hash, keyspace, key, kind)
        {
            return entered;
        }
        let guard = Guard::in_stripe(stripe, stripe.enter(kind), kind);
        // Only now is the question asked that counts: the guard is in its stripe, so a plan that is not seen here waits for it.
        if stripe.may_have_plan(bit) {
            self.passes_gate()?;
            if let Some(entered) = self.enter_planned(hash, keyspace, key, kind) {
                return entered;
            }
        }
        Ok(guard)
    }

    /// Counts a guard under the key's version while the map's shard is locked for reading: a newer version comes in under the
    /// same lock for writing, so it is either not there yet and will see the guard, or is the one that was entered.
    fn enter_planned(&self, hash: u64, keyspace: &str, key: &[u8], kind: Kind) -> Option<Result<Guard<'_>, Refused>> {
        let chain = self.plans.get(&hash)?;
        let node = chain.iter().find(|node| node.is_of(keyspace, key))?;
        if let Content::Refused(reason) = &node.content {
            return Some(Err(refused(node, reason)));
        }
        node.enter(kind);
        let guard = Guard::under(Arc::clone(node), kind);
        Some(self.passes_gate().map(|()| guard))
    }

    /// Asked by a request that is counted already: whoever shuts the gate and finds nobody counted afterwards has missed none.
    fn passes_gate(&self) -> Result<(), Refused> {
        match self.gate.load(SeqCst) {
            OPEN => Ok(()),
            CLOSED => Err(Refused::Closed),
            _ => Err(Refused::NotReady),
        }
    }

    /// The rules under which a guard was counted.
    fn rules_of<'g>(&'g self, guard: &'g Guard<'_>) -> &'g Rules {
        match guard.node().map(|node| &node.content) {
            Some(Content::Rules(rules)) => rules,
            Some(Content::Refused(_)) | None => &self.bare,
        }
    }

    /// The keyspace is left out: the few keyspaces that have the same key share a chain and a stripe.
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        xxh3_64_with_seed(key, self.settings.seed)
    }

    /// Stripe and filter bit of a hash: different bits of it.
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are meant")]
    pub(super) fn stripe_of(&self, hash: u64) -> (usize, u64) {
        (hash as usize & (self.stripes.len() - 1), 1 << (hash >> 32 & 63))
    }

    /// The number of a stripe, when it is one of this table's.
    pub(super) fn number_of(&self, stripe: &Stripe) -> Option<usize> {
        let from_first = std::ptr::from_ref(stripe).addr().checked_sub(self.stripes.as_ptr().addr())?;
        let number = from_first / size_of::<Stripe>();
        self.stripes.get(number).is_some_and(|own| std::ptr::eq(own, stripe)).then_some(number)
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P> Write<P> {
    fn map<Q>(self, change: impl FnOnce(P) -> Q) -> Write<Q> {
        match self {
            Self::Placed(placement) => Write::Placed(change(placement)),
            Self::Held(held) => Write::Held(held),
        }
    }
}

fn refused(node: &Node, reason: &RefusedRecord) -> Refused {
    Refused::NoPlan(Box::new(NoPlan {
        keyspace: node.keyspace.to_string(),
        key: node.key.escape_ascii().to_string(),
        version: node.version,
        reason: reason.clone(),
    }))
}

/// Keys of the map are hashes already.
#[derive(Debug, Default)]
pub(super) struct Prehashed(u64);

impl Hasher for Prehashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
