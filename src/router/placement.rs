//! Where one request goes, and the guard that counts it while it runs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::task::{Context, Poll};

use super::guard::Guard;
use super::node::{Content, Node};
use super::rules::Rules;
use super::table::Table;
use crate::protocol::{Delete, Layout, RefusedRecord, Version, Writes};
use crate::units::EventTime;

/// One place of one key in the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place<'a> {
    /// Number of the layout; 0 is the bare key.
    pub layout: u32,
    /// Number of the bucket in it; 0 in the bare layout.
    pub bucket: u32,
    /// Label of the bucket; none in the bare layout.
    pub label: Option<u32>,
    /// The store's key: the key itself, or the bucket's key by the record's form.
    pub key: Cow<'a, [u8]>,
}

impl<'a> Place<'a> {
    pub(super) fn of(rules: &Rules, layout: Layout, id: &[u8], key: &'a [u8]) -> Self {
        let bucket = rules.bucket_of(layout, id);
        Self { layout: layout.number(), bucket, label: layout.label(bucket), key: rules.key_of(layout, bucket, key) }
    }

    pub(super) const fn bare(key: &'a [u8]) -> Self {
        Self { layout: 0, bucket: 0, label: None, key: Cow::Borrowed(key) }
    }

    /// The same place with bytes of its own.
    #[must_use]
    pub fn into_owned(self) -> Place<'static> {
        Place { layout: self.layout, bucket: self.bucket, label: self.label, key: Cow::Owned(self.key.into_owned()) }
    }
}

/// What became of a request to write.
#[derive(Debug)]
pub enum Write<P> {
    /// It goes there.
    Placed(P),
    /// Writes to this key wait: await the token with a limit, then ask again.
    Held(Held),
}

impl<P> Write<P> {
    /// The placement, when there is one.
    #[must_use]
    pub fn placed(self) -> Option<P> {
        match self {
            Self::Placed(placement) => Some(placement),
            Self::Held(_) => None,
        }
    }
}

/// A key whose plan could not be understood, and that had none before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the plan of key '{key}' in keyspace '{keyspace}', version {version}, was not understood ({reason}) and there is no earlier \
     one; fail the request and update this router"
)]
pub struct NoPlan {
    /// Name of the keyspace.
    pub keyspace: String,
    /// The key, escaped.
    pub key: String,
    /// The version that was refused.
    pub version: Version,
    /// Why.
    pub reason: RefusedRecord,
}

/// Why a request has no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Nobody knows where the key's records are.
    #[error(transparent)]
    NoPlan(Box<NoPlan>),
    /// The router has not read the plan topic to its end yet.
    #[error(
        "the router is not ready: it has not read the plan topic to its end yet; try again soon, or another router"
    )]
    NotReady,
    /// The router leaves.
    #[error("the router leaves and takes no more requests; try another router")]
    Closed,
    /// The keyspace promises not to do this.
    #[error(
        "an update in place in a keyspace with writes = {0:?}: increments, unique inserts and compare-and-set need writes = update"
    )]
    InPlace(Writes),
    /// Too many writes wait already.
    #[error(
        "{0} writes wait for their keys already, which is the limit; fail the request and let its caller try later"
    )]
    TooManyHeld(u32),
}

/// Where a write goes. Keep it until the store has answered.
#[derive(Debug)]
pub struct Placement<'a> {
    pub(super) guard: Guard<'a>,
    pub(super) place: Place<'a>,
    pub(super) older: Vec<Place<'a>>,
}

impl<'a> Placement<'a> {
    pub(super) const fn bare(guard: Guard<'a>, key: &'a [u8]) -> Self {
        Self { guard, place: Place::bare(key), older: Vec::new() }
    }

    /// The place to write to.
    #[must_use]
    pub const fn place(&self) -> &Place<'a> {
        &self.place
    }

    /// For an update in place, the older places of the id, newest first: before the store's own operation runs at
    /// [`Placement::place`], the record found first in these is copied there (insert if absent). Empty for other writes.
    #[must_use]
    pub fn promote_from(&self) -> &[Place<'a>] {
        &self.older
    }

    /// The version of the key's plan that placed it; none without a plan.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.guard.node().map(|node| node.version)
    }

    /// Gives the placement back although nobody knows whether its call reached the store. It counts as in flight until `until`:
    /// the start of the call and the longest time that the store lets a call run.
    pub fn outcome_unknown(self, until: EventTime) {
        self.guard.outcome_unknown(until);
    }
}

impl<'a> Placement<'a> {
    /// The same placement without borrows, to be kept in a structure: the guard moves with it. Given back unchanged when `table` is
    /// not the one that placed it.
    ///
    /// # Errors
    /// The placement itself.
    pub fn into_owned(self, table: &Arc<Table>) -> Result<Placement<'static>, Self> {
        let Self { guard, place, older } = self;
        match guard.into_owned(table) {
            Ok(guard) => {
                let older = older.into_iter().map(Place::into_owned).collect();
                Ok(Placement { guard, place: place.into_owned(), older })
            }
            Err(guard) => Err(Self { guard, place, older }),
        }
    }
}

/// Where a delete goes, and what it does there.
#[derive(Debug)]
pub struct DeletePlacement<'a> {
    pub(super) placement: Placement<'a>,
    pub(super) how: Delete,
}

impl<'a> DeletePlacement<'a> {
    /// The place to delete in.
    #[must_use]
    pub const fn place(&self) -> &Place<'a> {
        self.placement.place()
    }

    /// Leave a tombstone, or remove the record. A tombstone is written whether or not the record is there.
    #[must_use]
    pub const fn how(&self) -> Delete {
        self.how
    }

    /// The version of the key's plan that placed it; none without a plan.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.placement.version()
    }

    /// As [`Placement::outcome_unknown`].
    pub fn outcome_unknown(self, until: EventTime) {
        self.placement.outcome_unknown(until);
    }
}

impl<'a> DeletePlacement<'a> {
    /// As [`Placement::into_owned`].
    ///
    /// # Errors
    /// The placement itself.
    pub fn into_owned(self, table: &Arc<Table>) -> Result<DeletePlacement<'static>, Self> {
        let how = self.how;
        match self.placement.into_owned(table) {
            Ok(placement) => Ok(DeletePlacement { placement, how }),
            Err(placement) => Err(Self { placement, how }),
        }
    }
}

/// Which of several copies of an id counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadRule {
    /// The one found first, in the order of the places; a tombstone found first says that there is none.
    FirstFound,
    /// The one with the highest version over all places, tombstones too.
    HighestVersion,
}

/// Where a point read looks.
#[derive(Debug)]
pub struct ReadPlacement<'a> {
    pub(super) guard: Guard<'a>,
    pub(super) places: Places<'a>,
    pub(super) rule: ReadRule,
}

#[derive(Debug)]
pub(super) enum Places<'a> {
    One([Place<'a>; 1]),
    Several(Vec<Place<'a>>),
}

impl<'a> ReadPlacement<'a> {
    /// The places to look in, newest layout first. With `history = expire` the newest comes once more at the end: what moved
    /// there between the two looks has left the older place.
    #[must_use]
    pub fn places(&self) -> &[Place<'a>] {
        match &self.places {
            Places::One(one) => one,
            Places::Several(several) => several,
        }
    }

    /// Which copy counts.
    #[must_use]
    pub const fn rule(&self) -> ReadRule {
        self.rule
    }

    /// The version of the key's plan that placed it; none without a plan.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.guard.node().map(|node| node.version)
    }

    /// Ends the read: the same as dropping it. A read whose caller has gone needs no longer guard.
    pub fn done(self) {
        drop(self.guard);
    }
}

impl<'a> ReadPlacement<'a> {
    /// As [`Placement::into_owned`].
    ///
    /// # Errors
    /// The placement itself.
    pub fn into_owned(self, table: &Arc<Table>) -> Result<ReadPlacement<'static>, Self> {
        let Self { guard, places, rule } = self;
        match guard.into_owned(table) {
            Ok(guard) => {
                let places = match places {
                    Places::One([place]) => Places::One([place.into_owned()]),
                    Places::Several(places) => Places::Several(places.into_iter().map(Place::into_owned).collect()),
                };
                Ok(ReadPlacement { guard, places, rule })
            }
            Err(guard) => Err(Self { guard, places, rule }),
        }
    }
}

/// One place that a scan visits. Layouts may share it: growing by doubling leaves most records where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanPlace<'a> {
    /// Label of the bucket; none for the bare key.
    pub label: Option<u32>,
    /// The store's key.
    pub key: Cow<'a, [u8]>,
    /// The layouts that have this place as a bucket: rank in the order of reading (0 is the newest) and bucket number.
    pub(super) layouts: Vec<(usize, u32)>,
}

/// Where a scan looks: every bucket of every layout that is read.
#[derive(Debug)]
pub struct ScanPlacement<'a> {
    pub(super) guard: Guard<'a>,
    pub(super) key: Cow<'a, [u8]>,
    pub(super) places: Vec<ScanPlace<'a>>,
    pub(super) rule: ReadRule,
}

impl<'a> ScanPlacement<'a> {
    pub(super) fn places_of(rules: &Rules, key: &'a [u8]) -> Vec<ScanPlace<'a>> {
        let mut places: Vec<ScanPlace<'a>> = Vec::new();
        let mut by_label: HashMap<Option<u32>, usize> = HashMap::new();
        for (rank, &layout) in rules.read().iter().enumerate() {
            for bucket in 0..layout.buckets() {
                let label = layout.label(bucket);
                let at = *by_label.entry(label).or_insert_with(|| {
                    places.push(ScanPlace { label, key: rules.key_of(layout, bucket, key), layouts: Vec::new() });
                    places.len() - 1
                });
                places[at].layouts.push((rank, bucket));
            }
        }
        places
    }

    fn rules(&self) -> Option<&Rules> {
        match self.guard.node().map(|node| &node.content) {
            Some(Content::Rules(rules)) => Some(rules),
            Some(Content::Refused(_)) | None => None,
        }
    }

    /// The places to visit, those of the newest layout first.
    #[must_use]
    pub fn places(&self) -> &[ScanPlace<'a>] {
        &self.places
    }

    /// Which of several copies of an id counts; by [`ReadRule::FirstFound`] the one of the newest layout.
    #[must_use]
    pub const fn rule(&self) -> ReadRule {
        self.rule
    }

    /// Number of layouts that are read.
    #[must_use]
    pub fn layouts(&self) -> usize {
        self.rules().map_or(1, |rules| rules.read().len())
    }

    /// True when a copy of this id in this place counts at all. Copies elsewhere are left-overs: a record that was copied away
    /// when its key grew, and not yet deleted.
    #[must_use]
    pub fn is_home(&self, id: &[u8], place: &ScanPlace<'_>) -> bool {
        self.home_rank(id, place).is_some()
    }

    /// The newest layout in which this place is the id's own, as its rank in the order of reading; none: the copy counts not.
    #[must_use]
    pub fn home_rank(&self, id: &[u8], place: &ScanPlace<'_>) -> Option<usize> {
        self.home_ranks(id, place).next()
    }

    /// Every layout in which this place is the id's own, the newest first.
    pub(super) fn home_ranks(&self, id: &[u8], place: &ScanPlace<'_>) -> impl Iterator<Item = usize> {
        let rules = self.rules();
        place.layouts.iter().filter_map(move |&(rank, bucket)| {
            let own = match rules {
                Some(rules) => rules.read().get(rank).is_some_and(|&layout| rules.bucket_of(layout, id) == bucket),
                None => true,
            };
            own.then_some(rank)
        })
    }

    /// The id's own place in the layout with this rank.
    #[must_use]
    pub fn home_of(&self, id: &[u8], rank: usize) -> Option<Place<'_>> {
        match self.rules() {
            Some(rules) => rules.read().get(rank).map(|&layout| Place::of(rules, layout, id, &self.key)),
            None => (rank == 0).then(|| Place::bare(&self.key)),
        }
    }

    /// The version of the key's plan that placed it; none without a plan.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.guard.node().map(|node| node.version)
    }

    /// Ends the scan: the same as dropping it.
    pub fn done(self) {
        drop(self.guard);
    }
}

impl<'a> ScanPlacement<'a> {
    /// As [`Placement::into_owned`].
    ///
    /// # Errors
    /// The placement itself.
    pub fn into_owned(self, table: &Arc<Table>) -> Result<ScanPlacement<'static>, Self> {
        let Self { guard, key, places, rule } = self;
        match guard.into_owned(table) {
            Ok(guard) => {
                let owned = |place: ScanPlace<'_>| ScanPlace {
                    label: place.label,
                    key: Cow::Owned(place.key.into_owned()),
                    layouts: place.layouts,
                };
                let key = Cow::Owned(key.into_owned());
                Ok(ScanPlacement { guard, key, places: places.into_iter().map(owned).collect(), rule })
            }
            Err(guard) => Err(Self { guard, key, places, rule }),
        }
    }
}

/// A write that waits for its key. A future that is ready when a newer version of the key's plan is in force; it has no limit of
/// its own: give up after yours, and fail the request.
#[derive(Debug)]
pub struct Held {
    node: Arc<Node>,
    count: Arc<HeldCount>,
    ticket: u64,
}

/// How many writes wait.
#[derive(Debug, Default)]
pub(super) struct HeldCount {
    now: AtomicU32,
    tickets: AtomicU64,
}

impl HeldCount {
    pub(super) fn now(&self) -> u32 {
        self.now.load(SeqCst)
    }
}

impl Held {
    /// One more that waits.
    ///
    /// # Errors
    /// [`Refused::TooManyHeld`] at the limit.
    pub(super) fn new(node: Arc<Node>, count: &Arc<HeldCount>, limit: u32) -> Result<Self, Refused> {
        let room = |now: u32| (now < limit).then_some(now + 1);
        count.now.fetch_update(SeqCst, SeqCst, room).map_err(|_| Refused::TooManyHeld(limit))?;
        let ticket = count.tickets.fetch_add(1, SeqCst);
        Ok(Self { node, count: Arc::clone(count), ticket })
    }

    /// The version under which writes wait.
    #[must_use]
    pub fn version(&self) -> Version {
        self.node.version
    }

    /// True when it is worth asking again.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.node.waiters().is_over()
    }
}

impl Future for Held {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.node.waiters().wait(self.ticket, context.waker()) { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.node.waiters().forget(self.ticket);
        self.count.now.fetch_sub(1, SeqCst);
    }
}
