//! Where one key's records live: the bare key, or N buckets chosen by a hash of the request id.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh64::xxh64;

/// The most buckets of a layout: a scan visits every one.
pub const MAX_BUCKETS: u32 = 256;

/// A layout of one key. Number 0 is the bare key; every other has a power of two of buckets.
///
/// On the wire `{"layout":0}` or `{"layout":1,"buckets":8,"first":0}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "RawLayout", into = "RawLayout")]
pub struct Layout {
    number: u32,
    buckets: u32,
    first: u32,
}

/// A layout as written.
#[derive(Serialize, Deserialize)]
struct RawLayout {
    layout: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    buckets: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<u32>,
}

/// A layout that breaks a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLayout {
    /// Layout 0 has no buckets.
    #[error("layout 0 with buckets: it is the bare key and has none")]
    BareWithBuckets,
    /// A split layout needs buckets.
    #[error("layout {0} without buckets, which should be a power of two from 2 to {MAX_BUCKETS}")]
    NoBuckets(u32),
    /// Not a power of two in range.
    #[error("{0} buckets, which should be a power of two from 2 to {MAX_BUCKETS}")]
    Buckets(u32),
    /// The last label would not fit.
    #[error("first label {0} is too large; the labels first .. first + buckets should be below 2^32")]
    First(u32),
}

impl Layout {
    /// The bare key.
    pub const BARE: Self = Self { number: 0, buckets: 1, first: 0 };

    /// Layout `number` (at least 1) with `buckets` buckets and labels from `first`.
    ///
    /// # Errors
    /// [`InvalidLayout`] when a rule of the type is broken.
    pub fn split(number: u32, buckets: u32, first: u32) -> Result<Self, InvalidLayout> {
        if number == 0 {
            return Err(InvalidLayout::BareWithBuckets);
        }
        if !(2..=MAX_BUCKETS).contains(&buckets) || !buckets.is_power_of_two() {
            return Err(InvalidLayout::Buckets(buckets));
        }
        if first.checked_add(buckets).is_none() {
            return Err(InvalidLayout::First(first));
        }
        Ok(Self { number, buckets, first })
    }

    /// The layout's number, unique for its key.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }

    /// True for layout 0.
    #[must_use]
    pub const fn is_bare(self) -> bool {
        self.number == 0
    }

    /// Number of places: 1 for the bare key.
    #[must_use]
    pub const fn buckets(self) -> u32 {
        self.buckets
    }

    /// The first label; 0 for the bare key.
    #[must_use]
    pub const fn first(self) -> u32 {
        self.first
    }

    /// The bucket of a request id: `xxh64(id, seed) & (buckets - 1)`; 0 in the bare layout.
    #[must_use]
    pub fn bucket_of(self, request_id: &[u8], seed: u64) -> u32 {
        low_bits(bucket_hash(request_id, seed)) & (self.buckets - 1)
    }

    /// The label of a bucket; none in the bare layout.
    #[must_use]
    pub const fn label(self, bucket: u32) -> Option<u32> {
        if self.is_bare() { None } else { Some(self.first + bucket) }
    }
}

/// The hash that chooses a bucket.
#[must_use]
pub fn bucket_hash(request_id: &[u8], seed: u64) -> u64 {
    xxh64(request_id, seed)
}

#[expect(clippy::cast_possible_truncation, reason = "the low bits are what the protocol names")]
const fn low_bits(hash: u64) -> u32 {
    hash as u32
}

/// The seed of a key's plans: the same before and after deciding, so that counters predict what a split will do.
#[must_use]
pub fn plan_seed(key: &[u8], keyspace_seed: u64) -> u64 {
    xxh64(key, keyspace_seed)
}

impl TryFrom<RawLayout> for Layout {
    type Error = InvalidLayout;

    fn try_from(raw: RawLayout) -> Result<Self, Self::Error> {
        match (raw.layout, raw.buckets) {
            (0, None) => Ok(Self::BARE),
            (0, Some(_)) => Err(InvalidLayout::BareWithBuckets),
            (number, None) => Err(InvalidLayout::NoBuckets(number)),
            (number, Some(buckets)) => Self::split(number, buckets, raw.first.unwrap_or(0)),
        }
    }
}

impl From<Layout> for RawLayout {
    fn from(layout: Layout) -> Self {
        let split = !layout.is_bare();
        Self { layout: layout.number, buckets: split.then_some(layout.buckets), first: split.then_some(layout.first) }
    }
}
