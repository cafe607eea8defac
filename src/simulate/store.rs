//! One simulated shard: a store in memory with the few operations that routers and owners need, and a capacity.
//!
//! The store knows nothing of layouts. A place is a key of the store, a record an id under it, and a tombstone a record like any
//! other to it: it is there, and it is not live.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::units::Span;

/// What the store holds for one id: which write made it, and whether it is a record or a tombstone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Row {
    /// Number of the write, growing with every write of the id: the record's content as far as a check needs it.
    pub revision: u64,
    /// False for a tombstone.
    pub live: bool,
}

/// The rows of one place by id.
type Place = BTreeMap<Box<[u8]>, Row>;

/// The rows of one shard, by key of the store and id.
#[derive(Debug, Clone, Default)]
pub struct Store {
    places: BTreeMap<Box<[u8]>, Place>,
}

impl Store {
    /// Writes the row, whatever was there.
    pub fn upsert(&mut self, key: &[u8], id: &[u8], row: Row) {
        self.place(key).insert(id.into(), row);
    }

    /// Writes the row unless one is there; a tombstone is one. True when it was written.
    pub fn insert_if_absent(&mut self, key: &[u8], id: &[u8], row: Row) -> bool {
        let place = self.place(key);
        let absent = !place.contains_key(id);
        if absent {
            place.insert(id.into(), row);
        }
        absent
    }

    /// Writes the row unless one is there that is as new or newer; a tombstone is one. True when it was written.
    pub fn upsert_if_newer(&mut self, key: &[u8], id: &[u8], row: Row) -> bool {
        let newer = self.get(key, id).is_none_or(|there| there.revision < row.revision);
        if newer {
            self.upsert(key, id, row);
        }
        newer
    }

    /// The row of the id, a tombstone too.
    #[must_use]
    pub fn get(&self, key: &[u8], id: &[u8]) -> Option<Row> {
        self.places.get(key)?.get(id).copied()
    }

    /// At most `most` rows of the key behind `after` (from the first one without it), by id, tombstones too.
    #[must_use]
    pub fn page(&self, key: &[u8], after: Option<&[u8]>, most: usize) -> Vec<(Box<[u8]>, Row)> {
        let Some(place) = self.places.get(key) else { return Vec::new() };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = place.range::<[u8], _>((from, Bound::Unbounded));
        rows.take(most).map(|(id, row)| (id.clone(), *row)).collect()
    }

    /// Takes the row away, tombstone or not. True when there was one.
    pub fn remove(&mut self, key: &[u8], id: &[u8]) -> bool {
        let Some(place) = self.places.get_mut(key) else { return false };
        let removed = place.remove(id).is_some();
        if place.is_empty() {
            self.places.remove(key);
        }
        removed
    }

    /// Takes the row away if it is a tombstone. True when it was.
    pub fn purge(&mut self, key: &[u8], id: &[u8]) -> bool {
        self.get(key, id).is_some_and(|row| !row.live) && self.remove(key, id)
    }

    /// Rows under the key, tombstones too.
    #[must_use]
    pub fn len(&self, key: &[u8]) -> usize {
        self.places.get(key).map_or(0, Place::len)
    }

    /// True when nothing is under the key.
    #[must_use]
    pub fn is_empty(&self, key: &[u8]) -> bool {
        self.len(key) == 0
    }

    fn place(&mut self, key: &[u8]) -> &mut Place {
        self.places.entry(key.into()).or_default()
    }
}

/// The work that a shard can take: calls are served one after the other, each in the same time, and refused when the queue before
/// them is too long. A refused call was not carried out, and its caller knows.
#[derive(Debug, Clone, Copy)]
pub struct Queue {
    each_ns: u64,
    longest_ns: u64,
    free_at_ns: u64,
}

/// The shard's queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("shard overloaded: its queue is longer than it takes on")]
pub struct Overloaded;

impl Queue {
    /// A shard that serves `calls_per_s` calls a second (at least one) and lets a call wait for at most `longest`.
    #[must_use]
    pub fn new(calls_per_s: u32, longest: Span) -> Self {
        let each_ns = 1_000_000_000 / u64::from(calls_per_s.max(1));
        Self { each_ns, longest_ns: longest.as_millis().saturating_mul(1_000_000), free_at_ns: 0 }
    }

    /// Takes a call on at `now_ns` and says when it is done.
    ///
    /// # Errors
    /// [`Overloaded`]
    pub fn admit(&mut self, now_ns: u64) -> Result<u64, Overloaded> {
        let begins_ns = self.free_at_ns.max(now_ns);
        if begins_ns - now_ns > self.longest_ns {
            return Err(Overloaded);
        }
        self.free_at_ns = begins_ns.saturating_add(self.each_ns);
        Ok(self.free_at_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn live(revision: u64) -> Row {
        Row { revision, live: true }
    }

    #[test]
    fn a_tombstone_is_a_row_that_keeps_copies_out() {
        let mut store = Store::default();
        store.upsert(b"c:1", b"a", Row { revision: 4, live: false });
        assert!(!store.insert_if_absent(b"c:1", b"a", live(3)));
        assert_eq!(store.get(b"c:1", b"a"), Some(Row { revision: 4, live: false }));
        assert!(store.insert_if_absent(b"c:2", b"a", live(3)), "another place");
        for (revision, written) in [(3, false), (4, false), (5, true), (5, false)] {
            assert_eq!(
                store.upsert_if_newer(b"c:1", b"a", Row { revision, live: false }),
                written,
                "revision {revision}"
            );
        }
        store.upsert(b"c:1", b"a", Row { revision: 4, live: false });
        assert_eq!((store.len(b"c:1"), store.len(b"c:2"), store.len(b"c")), (1, 1, 0));
        assert!(store.remove(b"c:1", b"a"));
        assert!(!store.remove(b"c:1", b"a"));
        assert!(store.is_empty(b"c:1"));
    }

    #[test]
    fn pages_follow_one_another_without_gap_or_repeat() {
        let mut store = Store::default();
        for id in [b"a", b"b", b"c", b"d", b"e"] {
            store.upsert(b"k", id, live(1));
        }
        store.upsert(b"k2", b"z", live(1));
        let mut all = Vec::new();
        let mut after: Option<Box<[u8]>> = None;
        loop {
            let page = store.page(b"k", after.as_deref(), 2);
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            all.extend(page.iter().flat_map(|(id, _)| id.to_vec()));
        }
        assert_eq!(all, b"abcde");
    }

    #[test]
    fn a_queue_serves_at_its_capacity_and_refuses_what_would_wait_too_long() {
        let mut queue = Queue::new(1000, Span::from_millis(2));
        assert_eq!(queue.admit(0), Ok(1_000_000));
        assert_eq!(queue.admit(0), Ok(2_000_000));
        assert_eq!(queue.admit(0), Ok(3_000_000));
        assert_eq!(queue.admit(0), Err(Overloaded));
        assert_eq!(queue.admit(1_000_000), Ok(4_000_000));
        assert_eq!(queue.admit(9_000_000), Ok(10_000_000), "an idle shard begins at once");
    }
}
