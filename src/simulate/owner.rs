//! The owner of the records: copies them from the layout that is left to the one that is entered, proves that all are there, and
//! deletes what was left behind.
//!
//! Both works are cut into steps, since a real owner does not stop the world either: clients read and write in between. What keeps
//! them right is the protocol alone: a copy never overwrites (insert if absent, a tombstone is there; where records carry versions
//! only what is older), moving begins when no write goes to the old layout any more, and nothing is deleted before every router reads
//! the new layout only.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::shards::Shards;
use super::store::Row;
use crate::protocol::{BackfillReport, Layout, PlanRecord, RetiredReport, SCHEMA, Writes};
use crate::router::{BucketKey, InvalidBucketKey};
use crate::units::EventTime;

/// Where the records of one key are.
#[derive(Debug, Clone)]
pub struct Placing {
    key: Vec<u8>,
    seed: u64,
    form: BucketKey,
}

impl Placing {
    /// The placing that a plan record gives.
    ///
    /// # Errors
    /// [`InvalidBucketKey`]
    pub fn of(record: &PlanRecord) -> Result<Self, InvalidBucketKey> {
        let form = BucketKey::parse(&record.bucket.key)?;
        Ok(Self { key: record.key.0.clone(), seed: record.bucket.seed, form })
    }

    /// The store's key of an id under a layout.
    #[must_use]
    pub fn place(&self, layout: Layout, id: &[u8]) -> Vec<u8> {
        self.bucket(layout, layout.bucket_of(id, self.seed))
    }

    /// The store's keys of all buckets of a layout.
    #[must_use]
    pub fn places(&self, layout: Layout) -> Vec<Vec<u8>> {
        (0..layout.buckets()).map(|bucket| self.bucket(layout, bucket)).collect()
    }

    fn bucket(&self, layout: Layout, bucket: u32) -> Vec<u8> {
        layout.label(bucket).map_or_else(|| self.key.clone(), |label| self.form.render(&self.key, label))
    }
}

/// A place and some of its rows.
type Rows = (Vec<u8>, Vec<(Box<[u8]>, Row)>);

/// Goes over the rows of a list of places, page by page.
#[derive(Debug, Clone)]
struct Walk {
    places: Vec<Vec<u8>>,
    at: usize,
    after: Option<Box<[u8]>>,
}

impl Walk {
    const fn new(places: Vec<Vec<u8>>) -> Self {
        Self { places, at: 0, after: None }
    }

    /// The next page and its place; none at the end.
    fn page(&mut self, shards: &Shards, most: usize) -> Option<Rows> {
        loop {
            let place = self.places.get(self.at)?;
            let page = shards.store_of(place).page(place, self.after.as_deref(), most);
            if let Some((last, _)) = page.last() {
                self.after = Some(last.clone());
                return Some((place.clone(), page));
            }
            self.at += 1;
            self.after = None;
        }
    }
}

/// The move of a key's records from one layout to another.
#[derive(Debug, Clone)]
pub struct Move {
    placing: Placing,
    record: PlanRecord,
    walk: Walk,
    /// Rows that are there to copy, and that were copied.
    rows: u64,
    copied: u64,
    checking: bool,
    /// Ids of the old layout, and those that the new one has, as seen when all was copied.
    expected: u64,
    moved: u64,
    sum_from: u64,
    sum_to: u64,
    done: bool,
}

impl Move {
    /// A move as `record`, whose state is moving, asks for.
    ///
    /// # Errors
    /// [`InvalidBucketKey`]
    pub fn new(record: &PlanRecord, shards: &Shards) -> Result<Self, InvalidBucketKey> {
        let placing = Placing::of(record)?;
        let walk = Walk::new(placing.places(record.migration.from));
        let rows = walk.places.iter().map(|place| shards.store_of(place).len(place) as u64);
        let rows = rows.sum();
        Ok(Self {
            placing,
            record: record.clone(),
            walk,
            rows,
            copied: 0,
            checking: false,
            expected: 0,
            moved: 0,
            sum_from: 0,
            sum_to: 0,
            done: false,
        })
    }

    /// Copies at most `most` rows, or checks as many once all are copied. True when the move is over.
    pub fn step(&mut self, shards: &Shards, most: usize) -> bool {
        if self.done {
            return true;
        }
        match self.walk.page(shards, most.max(1)) {
            Some((place, rows)) => {
                for (id, row) in rows {
                    // A row elsewhere than in its own place is a left-over of an earlier growth.
                    if self.placing.place(self.record.migration.from, &id) == place {
                        self.take(shards, &place, &id, row);
                    }
                }
            }
            None if self.checking => self.done = true,
            None => {
                self.walk = Walk::new(self.placing.places(self.record.migration.from));
                self.checking = true;
            }
        }
        self.done
    }

    fn take(&mut self, shards: &Shards, place: &[u8], id: &[u8], row: Row) {
        let target = self.placing.place(self.record.migration.to, id);
        if !self.checking {
            if target != place {
                let mut store = shards.store_of(&target);
                // Of a versioned record an older version may have come first, by a router that was ahead of others in dual.
                match self.record.migration.writes {
                    Writes::Versioned => store.upsert_if_newer(&target, id, row),
                    Writes::Insert | Writes::Update => store.insert_if_absent(&target, id, row),
                };
            }
            self.copied += 1;
            return;
        }
        let sum = xxh3_64_with_seed(id, row.revision);
        self.expected += 1;
        self.sum_from = self.sum_from.wrapping_add(sum);
        // Its copy, a newer record or a tombstone: each proves that the row is not needed any more.
        let there = shards.store_of(&target).get(&target, id);
        if there.is_some_and(|there| there.revision >= row.revision) {
            self.moved += 1;
            self.sum_to = self.sum_to.wrapping_add(sum);
        }
    }

    /// What the owner says of it at `now`: how far it is, and from its end on the proof.
    #[must_use]
    pub fn report(&self, now: EventTime) -> BackfillReport {
        let (moved, expected) = if self.done { (self.moved, self.expected) } else { (self.copied, self.rows) };
        BackfillReport {
            schema: SCHEMA,
            keyspace: self.record.keyspace.clone(),
            key: self.record.key.clone(),
            layout: self.record.migration.to.number(),
            migration: self.record.migration.version,
            moved,
            expected,
            checksum_from: format!("{:016x}", self.sum_from),
            checksum_to: format!("{:016x}", self.sum_to),
            done: self.done,
            time: now.to_rfc3339(),
        }
    }
}

/// The deletion of what a settled migration left behind: rows whose place differs in the current layout, then tombstones there.
#[derive(Debug, Clone)]
pub struct Retirement {
    placing: Placing,
    record: PlanRecord,
    current: Layout,
    walk: Walk,
    purging: bool,
    done: bool,
}

impl Retirement {
    /// The deletion that `record` asks for by listing layouts under `retire`; none when it lists none, or has no write layout.
    ///
    /// # Errors
    /// [`InvalidBucketKey`]
    pub fn new(record: &PlanRecord) -> Result<Option<Self>, InvalidBucketKey> {
        let (false, Some(current)) = (record.retire.is_empty(), record.write) else { return Ok(None) };
        let placing = Placing::of(record)?;
        let places = record.retire.iter().flat_map(|layout| placing.places(*layout)).collect();
        let record = record.clone();
        Ok(Some(Self { placing, record, current, walk: Walk::new(places), purging: false, done: false }))
    }

    /// Looks at no more than `most` rows. True when it is over.
    pub fn step(&mut self, shards: &Shards, most: usize) -> bool {
        if self.done {
            return true;
        }
        match self.walk.page(shards, most.max(1)) {
            Some((place, rows)) => {
                let mut store = shards.store_of(&place);
                for (id, _) in rows {
                    if self.purging {
                        store.purge(&place, &id);
                    } else if self.placing.place(self.current, &id) != place {
                        store.remove(&place, &id);
                    }
                }
            }
            None if self.purging => self.done = true,
            None => {
                self.purging = true;
                self.walk = Walk::new(self.placing.places(self.current));
            }
        }
        self.done
    }

    /// Rows that are still in the layouts that were left, in places that the current layout does not give them.
    #[must_use]
    pub fn remaining(&self, shards: &Shards) -> u64 {
        let mut walk = Walk::new(self.record.retire.iter().flat_map(|layout| self.placing.places(*layout)).collect());
        let mut remaining = 0;
        while let Some((place, rows)) = walk.page(shards, 1000) {
            remaining += rows.iter().filter(|(id, _)| self.placing.place(self.current, id) != place).count() as u64;
        }
        remaining
    }

    /// What the owner says at `now` of each layout that was left, when the deletion is over.
    #[must_use]
    pub fn reports(&self, shards: &Shards, now: EventTime) -> Vec<RetiredReport> {
        let remaining = self.remaining(shards);
        let report = |layout: &Layout| RetiredReport {
            schema: SCHEMA,
            keyspace: self.record.keyspace.clone(),
            key: self.record.key.clone(),
            layout: layout.number(),
            migration: self.record.migration.version,
            remaining,
            time: now.to_rfc3339(),
        };
        self.record.retire.iter().map(report).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::plan::{Mapper, MapperKind, ShardHash};
    use crate::protocol::State;
    use crate::simulate::demo::fixture;

    fn shards() -> Shards {
        let names = (0..8).map(|number| format!("s{number}")).collect();
        Shards::new(Mapper::new(MapperKind::Modulo(ShardHash::Murmur2), names).unwrap())
    }

    fn layouts() -> impl Strategy<Value = (Layout, Layout)> {
        let split = |number, buckets| Layout::split(number, buckets, 40).unwrap();
        prop::sample::select(vec![
            (Layout::BARE, split(1, 8)),
            (split(1, 4), split(2, 8)),
            (split(1, 8), split(2, 4)),
            (split(1, 8), Layout::BARE),
            (split(1, 8), Layout::split(2, 8, 900).unwrap()),
        ])
    }

    /// Everything in the places of a layout, by id, own places only.
    fn rows(shards: &Shards, placing: &Placing, layout: Layout) -> BTreeMap<Vec<u8>, Row> {
        let mut walk = Walk::new(placing.places(layout));
        let mut all = BTreeMap::new();
        while let Some((place, page)) = walk.page(shards, 7) {
            all.extend(
                page.into_iter()
                    .map(|(id, row)| (id.to_vec(), row))
                    .filter(|(id, _)| placing.place(layout, id) == place),
            );
        }
        all
    }

    proptest! {
        /// Whatever clients write to the new layout between the steps, nothing of the old is lost and nothing newer overwritten.
        #[test]
        fn a_move_keeps_everything_and_overwrites_nothing(
            (from, to) in layouts(),
            old in prop::collection::btree_map(0_u16..200, any::<bool>(), 0..80),
            written in prop::collection::vec((0_u16..200, any::<bool>()), 0..80),
            most in 1_usize..20,
        ) {
            let shards = shards();
            let record = fixture::migration(State::Moving, from, to, fixture::version(1));
            let placing = Placing::of(&record).unwrap();
            let id = |number: u16| number.to_string().into_bytes();
            let mut expected: BTreeMap<Vec<u8>, Row> = BTreeMap::new();
            for (number, live) in &old {
                let (id, row) = (id(*number), Row { revision: 1, live: *live });
                let place = placing.place(from, &id);
                shards.store_of(&place).upsert(&place, &id, row);
                expected.insert(id, row);
            }
            let mut work = Move::new(&record, &shards).unwrap();
            prop_assert_eq!(work.report(EventTime::MIN).expected, old.len() as u64);
            let mut written = written.into_iter();
            let mut revision = 1;
            while !work.step(&shards, most) {
                if let Some((number, live)) = written.next() {
                    revision += 1;
                    let (id, row) = (id(number), Row { revision, live });
                    let place = placing.place(to, &id);
                    shards.store_of(&place).upsert(&place, &id, row);
                    expected.insert(id, row);
                }
            }
            prop_assert_eq!(rows(&shards, &placing, to), expected);
            let report = work.report(EventTime::MIN);
            prop_assert!(report.proves(fixture::version(1)), "{:?}", report);
        }

        #[test]
        fn what_was_left_behind_goes_and_the_rest_stays((from, to) in layouts(), ids in prop::collection::btree_map(0_u16..200, any::<bool>(), 0..80)) {
            let shards = shards();
            let moving = fixture::migration(State::Moving, from, to, fixture::version(1));
            let placing = Placing::of(&moving).unwrap();
            for (number, live) in &ids {
                let id = number.to_string().into_bytes();
                let place = placing.place(from, &id);
                shards.store_of(&place).upsert(&place, &id, Row { revision: 1, live: *live });
            }
            let mut work = Move::new(&moving, &shards).unwrap();
            while !work.step(&shards, 9) {}
            let mut settled = fixture::migration(State::Settled, from, to, fixture::version(1));
            prop_assert!(Retirement::new(&settled).unwrap().is_none());
            settled.retire = vec![from];
            let mut retirement = Retirement::new(&settled).unwrap().unwrap();
            while !retirement.step(&shards, 9) {}
            prop_assert!(retirement.reports(&shards, EventTime::MIN)[0].proves(fixture::version(1)));
            let mut left: BTreeMap<Vec<u8>, Row> = BTreeMap::new();
            for layout in [from, to] {
                for place in placing.places(layout) {
                    left.extend(shards.store_of(&place).page(&place, None, 1000).into_iter().map(|(id, row)| (id.to_vec(), row)));
                }
            }
            let live = ids.iter().filter(|(_, live)| **live).count();
            prop_assert_eq!(left.len(), live, "a row a live id, and no tombstone");
            prop_assert_eq!(rows(&shards, &placing, to).len(), live);
        }
    }

    /// A router in dual has written revision 2, and one still in prepare revision 3 after it.
    #[test]
    fn of_a_versioned_record_the_newer_copy_stays() {
        let shards = shards();
        let mut record = fixture::record(State::Moving);
        record.migration.writes = Writes::Versioned;
        let placing = Placing::of(&record).unwrap();
        let (bare, live) = (fixture::CLIENT.as_bytes(), |revision| Row { revision, live: true });
        for (id, old, new) in [(b"a", 3, 2), (b"b", 2, 3)] {
            let place = placing.place(record.migration.to, id);
            shards.store_of(bare).upsert(bare, id, live(old));
            shards.store_of(&place).upsert(&place, id, live(new));
        }
        let mut work = Move::new(&record, &shards).unwrap();
        while !work.step(&shards, 10) {}
        assert!(work.report(EventTime::MIN).proves(fixture::version(1)), "{:?}", work.report(EventTime::MIN));
        for id in [b"a", b"b"] {
            let place = placing.place(record.migration.to, id);
            assert_eq!(shards.store_of(&place).get(&place, id), Some(live(3)));
        }
    }

    #[test]
    fn a_record_that_did_not_arrive_is_not_proved() {
        let shards = shards();
        let record = fixture::record(State::Moving);
        let placing = Placing::of(&record).unwrap();
        let bare = fixture::CLIENT.as_bytes();
        for id in [b"a", b"b"] {
            shards.store_of(bare).upsert(bare, id, Row { revision: 2, live: true });
        }
        let mut work = Move::new(&record, &shards).unwrap();
        work.step(&shards, 10);
        let place = placing.place(record.migration.to, b"a");
        shards.store_of(&place).upsert(&place, b"a", Row { revision: 1, live: true });
        while !work.step(&shards, 10) {}
        let report = work.report(EventTime::MIN);
        assert_eq!((report.moved, report.expected, report.done), (1, 2, true));
        assert_ne!(report.checksum_from, report.checksum_to);
        assert!(!report.proves(fixture::version(1)));
    }
}
