//! Gathering: pages out of many places, against a plain sorted list.

use std::collections::BTreeMap;

use keyheat::protocol::Layout;
use keyheat::router::{
    Cursor, Gather, GatherError, GatherSettings, LookUp, ReadRule, Row, ScanPlacement, Step, Table, TableSettings,
};
use proptest::prelude::*;

use super::records::{KEYSPACE, Walk};

type Store = BTreeMap<Vec<u8>, BTreeMap<At, Row<u32>>>;

/// Sort key and id.
type At = (Vec<u8>, Vec<u8>);

/// A record and where its copies are.
#[derive(Debug, Clone)]
struct Record {
    id: u16,
    /// In the older layout: sort key and version.
    old: Option<(u8, u64)>,
    /// In the newer layout: sort key, version, and whether it is a tombstone.
    new: Option<(u8, u64, bool)>,
    /// True: a copy that counts not lies in the first place that is not the id's own.
    stray: bool,
}

fn record() -> impl Strategy<Value = Record> {
    let old = prop::option::of((0u8..6, 1u64..4));
    let new = prop::option::of((0u8..6, 1u64..4, any::<bool>()));
    (any::<u16>(), old, new, any::<bool>()).prop_map(|(id, old, new, stray)| Record { id, old, new, stray })
}

fn fill(scan: &ScanPlacement<'_>, records: &[Record], versioned: bool) -> (Store, Vec<At>) {
    let mut store = Store::new();
    let mut expected = BTreeMap::new();
    for record in records {
        let id = record.id.to_be_bytes().to_vec();
        if expected.contains_key(&id) {
            continue;
        }
        let mut put = |key: Vec<u8>, sort: u8, version: u64, tombstone: bool| {
            let row = Row { sort_key: vec![sort], id: id.clone(), version, tombstone, value: 0 };
            store.entry(key).or_default().insert((vec![sort], id.clone()), row);
        };
        let (newest, oldest) = (scan.home_of(&id, 0).unwrap(), scan.home_of(&id, 1).unwrap());
        let shared = newest.key == oldest.key;
        // One place holds one copy; versions of one number are one record.
        let old = if shared && record.new.is_some() { None } else { record.old };
        let old = match (old, record.new) {
            (Some((_, version)), Some((sort, new, false))) if version == new => Some((sort, version)),
            (Some((_, version)), Some((_, new, true))) if version == new => None,
            (old, _) => old,
        };
        if let Some((sort, version, tombstone)) = record.new {
            put(newest.key.to_vec(), sort, version, tombstone);
        }
        if let Some((sort, version)) = old {
            put(oldest.key.to_vec(), sort, version, false);
        }
        let stray = scan.places().iter().find(|place| !scan.is_home(&id, place));
        if let (true, Some(place)) = (record.stray, stray) {
            put(place.key.to_vec(), 0, 99, false);
        }
        let counts = match (record.new, old) {
            (Some((_, version, _)), Some((sort, older))) if versioned && older > version => Some(sort),
            (Some((sort, _, tombstone)), _) => (!tombstone).then_some(sort),
            (None, Some((sort, _))) => Some(sort),
            (None, None) => None,
        };
        expected.insert(id, counts);
    }
    let mut expected: Vec<_> = expected.into_iter().filter_map(|(id, sort)| Some((vec![sort?], id))).collect();
    expected.sort();
    (store, expected)
}

/// The copy that goes first by the scan's rule.
fn looked_up(store: &Store, lookup: &LookUp<'_>, rule: ReadRule) -> Option<Row<u32>> {
    let rows = lookup.places.iter().flat_map(|place| store.get(&*place.key).into_iter().flatten());
    let mut found = rows.filter(|((_, id), _)| *id == lookup.id).map(|(_, row)| row.clone());
    match rule {
        ReadRule::FirstFound => found.next(),
        ReadRule::HighestVersion => found.max_by_key(|row| row.version),
    }
}

/// Does what the gather says until it gives a page.
fn page(gather: &mut Gather<'_, '_, u32>, store: &Store, scan: &ScanPlacement<'_>) -> (Vec<At>, Option<Cursor>) {
    let (rows, next) = page_beside(gather, &mut store.clone(), scan, |_| {});
    (rows.into_iter().map(|row| (row.sort_key, row.id)).collect(), next)
}

/// The same while the store changes before each call.
fn page_beside(
    gather: &mut Gather<'_, '_, u32>,
    store: &mut Store,
    scan: &ScanPlacement<'_>,
    mut change: impl FnMut(&mut Store),
) -> (Vec<Row<u32>>, Option<Cursor>) {
    loop {
        match gather.step() {
            Step::Fetch(fetches) => {
                for fetch in fetches {
                    change(store);
                    let rows = store.get(&*scan.places()[fetch.place].key);
                    let after = fetch.after.map(|cursor| (cursor.sort_key, cursor.id));
                    let wanted: Vec<_> = rows
                        .into_iter()
                        .flatten()
                        .filter(|(at, _)| after.as_ref().is_none_or(|after| *at > after))
                        .map(|(_, row)| row.clone())
                        .collect();
                    let end = wanted.len() <= fetch.rows;
                    gather.fetched(fetch.place, wanted.into_iter().take(fetch.rows).collect(), end).unwrap();
                }
            }
            Step::LookUp(lookups) => {
                for lookup in lookups {
                    change(store);
                    gather.looked_up(lookup.ticket, looked_up(store, &lookup, scan.rule())).unwrap();
                }
            }
            Step::Wait => panic!("nothing is in flight"),
            Step::Page(page) => return (page.rows, page.next),
        }
    }
}

fn walk(kind: usize, writes: &'static str) -> Walk {
    let split = Walk { writes, ..Walk::split(b"c42", 4, writes) };
    match kind {
        0 => split,
        1 => Walk { from: split.to, to: Layout::split(2, 8, 0).unwrap(), ..split },
        _ => Walk { from: split.to, to: Layout::BARE, ..split },
    }
}

proptest! {
    #[test]
    fn pages_are_the_sorted_list_cut(
        kind in 0usize..3,
        versioned in any::<bool>(),
        records in prop::collection::vec(record(), 0..60),
        (page_rows, fetch_rows, parallel) in (1usize..8, 1usize..8, 1usize..4),
        page_depth in prop_oneof![1usize..4, Just(64usize)],
        anew in any::<bool>(),
    ) {
        let walk = walk(kind, if versioned { "versioned" } else { "update" });
        let table = Table::new(TableSettings::default());
        walk.apply(&table, 1, "moving");
        let scan = table.scan(KEYSPACE, b"c42").unwrap();
        let (store, expected) = fill(&scan, &records, versioned);
        let settings = GatherSettings { page_rows, fetch_rows, parallel, page_depth };
        let mut gather = Gather::new(&scan, settings, None);
        let mut got = Vec::new();
        loop {
            let (rows, next) = page(&mut gather, &store, &scan);
            prop_assert!(rows.len() == page_rows || next.is_none() || page_depth < 64);
            got.extend(rows);
            let Some(next) = next else { break };
            if anew {
                // Another router goes on from the cursor alone.
                gather = Gather::new(&scan, settings, Some(next));
            }
        }
        prop_assert_eq!(got, expected);
    }
}

/// What happens to a record while a scan runs.
#[derive(Debug, Clone, Copy)]
enum Beside {
    /// The owner copies it: insert if absent.
    Copy,
    /// A caller writes it anew.
    Write,
    /// A caller deletes it: a tombstone.
    Delete,
}

proptest! {
    /// Records lie in the older layout. While the scan runs the owner copies some, and callers write and delete some in the newer.
    #[test]
    fn a_scan_beside_a_mover_and_writers_shows_each_record_once(
        kind in 0usize..3,
        versioned in any::<bool>(),
        ids in prop::collection::btree_map(any::<u8>(), 0u8..6, 1..40),
        beside in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(vec![Beside::Copy, Beside::Copy, Beside::Write, Beside::Delete])), 0..80),
        (page_rows, fetch_rows, parallel) in (1usize..8, 1usize..8, 1usize..4),
        page_depth in prop_oneof![1usize..4, Just(64usize)],
        anew in any::<bool>(),
    ) {
        let walk = walk(kind, if versioned { "versioned" } else { "update" });
        let table = Table::new(TableSettings::default());
        walk.apply(&table, 1, "moving");
        let scan = table.scan(KEYSPACE, b"c42").unwrap();
        let row = |id: u8, sort: u8, version, tombstone, value| Row { sort_key: vec![sort], id: vec![id], version, tombstone, value };
        let home = |id: u8, rank| scan.home_of(&[id], rank).unwrap().key.to_vec();
        let mut store = Store::new();
        for (&id, &sort) in &ids {
            store.entry(home(id, 1)).or_default().insert((vec![sort], vec![id]), row(id, sort, 1, false, 1));
        }
        let mut written = BTreeMap::new();
        let mut deleted = Vec::new();
        let (mut beside, mut value) = (beside.into_iter(), 1);
        let mut change = |store: &mut Store| {
            let Some((index, beside)) = beside.next() else { return };
            let (&id, &sort) = ids.iter().nth(index.index(ids.len())).unwrap();
            let place = store.entry(home(id, 0)).or_default();
            let at = (vec![sort], vec![id]);
            value += 1;
            match beside {
                Beside::Copy => drop(place.entry(at).or_insert_with(|| row(id, sort, 1, false, 1))),
                Beside::Write => {
                    place.insert(at, row(id, sort, u64::from(value), false, value));
                    written.insert(id, value);
                }
                Beside::Delete => {
                    place.insert(at, row(id, sort, u64::from(value), true, 0));
                    deleted.push(id);
                }
            }
        };
        let settings = GatherSettings { page_rows, fetch_rows, parallel, page_depth };
        let mut gather = Gather::new(&scan, settings, None);
        let mut got = Vec::new();
        loop {
            let (rows, next) = page_beside(&mut gather, &mut store, &scan, &mut change);
            got.extend(rows);
            let Some(next) = next else { break };
            if anew {
                gather = Gather::new(&scan, settings, Some(next));
            }
        }
        prop_assert!(got.is_sorted_by(|a, b| (&a.sort_key, &a.id) < (&b.sort_key, &b.id)), "each once, in order");
        for &id in ids.keys() {
            let shown = got.iter().find(|row| row.id == [id]);
            prop_assert!(shown.is_some() || deleted.contains(&id), "record {id} is missed");
            let newest = written.get(&id).copied().unwrap_or(1);
            prop_assert!(shown.is_none_or(|row| row.value <= newest && !row.tombstone));
        }
    }
}

/// A copy that the owner makes between the fetch of its place and the fetch of the old one does not hide the record.
#[test]
fn a_copy_made_behind_the_scan_does_not_hide_the_record() {
    let walk = walk(0, "update");
    let table = Table::new(TableSettings::default());
    walk.apply(&table, 1, "moving");
    let scan = table.scan(KEYSPACE, b"c42").unwrap();
    let row = Row { sort_key: vec![3], id: vec![7], version: 1, tombstone: false, value: 1 };
    let at = (row.sort_key.clone(), row.id.clone());
    let mut store =
        Store::from([(scan.home_of(&[7], 1).unwrap().key.to_vec(), BTreeMap::from([(at.clone(), row.clone())]))]);
    let new = scan.home_of(&[7], 0).unwrap().key.to_vec();
    let mut gather = Gather::new(&scan, GatherSettings::default(), None);
    let mut calls = 0;
    let (rows, _) = page_beside(&mut gather, &mut store, &scan, |store| {
        calls += 1;
        // Four buckets come first, then the bare key.
        if calls == 5 {
            store.entry(new.clone()).or_default().insert(at.clone(), row.clone());
        }
    });
    assert_eq!((calls, rows), (6, vec![row.clone()]));
}

/// A thousand tombstones before the first record: pages end early, each further on, and none asks more than it may.
#[test]
fn a_page_of_tombstones_ends_early() {
    let walk = walk(0, "update");
    let table = Table::new(TableSettings::default());
    walk.apply(&table, 1, "moving");
    let scan = table.scan(KEYSPACE, b"c42").unwrap();
    let mut store = Store::new();
    for n in 0..=1_000u16 {
        let id = n.to_be_bytes().to_vec();
        let home = scan.home_of(&id, 0).unwrap().key.to_vec();
        let row = Row { sort_key: id.clone(), id: id.clone(), version: 1, tombstone: n < 1_000, value: 1 };
        store.entry(home).or_default().insert((id.clone(), id), row);
    }
    let settings = GatherSettings { page_rows: 10, fetch_rows: 10, parallel: 2, page_depth: 3 };
    let (mut after, mut pages, mut got) = (None, 0, Vec::new());
    loop {
        let mut asked = BTreeMap::new();
        let mut gather = Gather::new(&scan, settings, after.clone());
        let (rows, next) = loop {
            match gather.step() {
                Step::Fetch(fetches) => {
                    for fetch in fetches {
                        *asked.entry(fetch.place).or_insert(0) += 1;
                        let rows = store.get(&*scan.places()[fetch.place].key);
                        let after = fetch.after.map(|cursor| (cursor.sort_key, cursor.id));
                        let left =
                            rows.into_iter().flatten().filter(|(at, _)| after.as_ref().is_none_or(|after| *at > after));
                        let left: Vec<_> = left.map(|(_, row)| row.clone()).collect();
                        let end = left.len() <= fetch.rows;
                        gather.fetched(fetch.place, left.into_iter().take(fetch.rows).collect(), end).unwrap();
                    }
                }
                Step::LookUp(_) => panic!("the newest layout needs none"),
                Step::Wait => panic!("nothing is in flight"),
                Step::Page(page) => break (page.rows, page.next),
            }
        };
        assert!(asked.values().all(|fetches| *fetches <= 3), "{asked:?}");
        assert!(next.is_none() || next > after, "further on");
        pages += 1;
        got.extend(rows);
        after = next;
        if after.is_none() {
            break;
        }
    }
    // Four buckets of 250, 30 of each a page.
    assert_eq!((got.len(), (8..=14).contains(&pages)), (1, true), "{pages} pages");
}

#[test]
fn answers_that_fit_nothing_are_refused() {
    let table = Table::new(TableSettings::default());
    let scan = table.scan(KEYSPACE, b"c42").unwrap();
    let mut gather: Gather<'_, '_, u32> =
        Gather::new(&scan, GatherSettings { fetch_rows: 2, ..GatherSettings::default() }, None);
    let row = |sort: u8| Row { sort_key: vec![sort], id: vec![sort], version: 0, tombstone: false, value: 0 };
    assert_eq!(gather.fetched(0, Vec::new(), true), Err(GatherError::NotAsked(0)));
    assert!(matches!(gather.step(), Step::Fetch(_)));
    assert!(matches!(gather.step(), Step::Wait));
    assert_eq!(gather.fetched(7, Vec::new(), true), Err(GatherError::NotAsked(7)));
    assert_eq!(gather.fetched(0, vec![row(2), row(1)], true), Err(GatherError::Unsorted(0)));
    let too_many = Err(GatherError::TooMany { place: 0, got: 3, asked: 2 });
    assert_eq!(gather.fetched(0, vec![row(1), row(2), row(3)], true), too_many);
    assert_eq!(gather.looked_up(0, None), Err(GatherError::NoTicket(0)));
    gather.fetched(0, vec![row(1), row(2)], true).unwrap();
    assert!(matches!(gather.step(), Step::Page(page) if page.rows.len() == 2 && page.next.is_none()));
}
