//! Guards and acknowledgements: against a plain list of what is in flight, and with many threads.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};

use keyheat::protocol::Layout;
use keyheat::router::{AckState, Placement, ReadPlacement, Refused, Table, TableSettings, Write};
use keyheat::units::EventTime;
use proptest::prelude::*;

use super::records::{KEYSPACE, Walk, version};

fn one_stripe() -> TableSettings {
    TableSettings { stripes: 1, ..TableSettings::default() }
}

fn waiting(state: &AckState) -> Vec<(&[u8], u64)> {
    state.waiting.iter().map(|waiting| (&waiting.key.key[..], waiting.version.seq)).collect()
}

fn write<'a>(table: &'a Table, key: &'a [u8]) -> Placement<'a> {
    table.write(KEYSPACE, key, b"id").unwrap().placed().unwrap()
}

#[test]
fn a_write_in_flight_holds_up_the_version_that_places_it_elsewhere_and_no_other() {
    let walk = Walk::split(b"c42", 8, "insert");
    let table = Table::new(TableSettings::default());
    let in_flight = write(&table, b"c42");
    for (seq, state) in [(1, "proposed"), (2, "prepare")] {
        walk.apply(&table, seq, state);
        assert!(table.ack_state().waiting.is_empty(), "{state} writes where no plan writes");
    }
    walk.apply(&table, 3, "dual");
    assert_eq!(waiting(&table.ack_state()), [(&b"c42"[..], 3)]);
    walk.apply(&table, 4, "moving");
    assert_eq!(waiting(&table.ack_state()), [(&b"c42"[..], 4)]);
    drop(in_flight);
    let state = table.ack_state();
    assert!(state.waiting.is_empty());
    assert_eq!((state.applied, state.digest.0), (version(4), 4));
}

#[test]
fn a_read_in_flight_holds_up_prepare_and_settled_but_no_hold() {
    let walk = Walk::split(b"c42", 8, "update");
    let table = Table::new(TableSettings::default());
    let before = table.point_read(KEYSPACE, b"c42", b"id").unwrap();
    walk.apply(&table, 1, "prepare");
    assert_eq!(waiting(&table.ack_state()), [(&b"c42"[..], 1)]);
    drop(before);
    assert!(table.ack_state().waiting.is_empty());
    let scan = table.scan(KEYSPACE, b"c42").unwrap();
    for (seq, state) in [(2, "hold"), (3, "dual"), (4, "moving")] {
        walk.apply(&table, seq, state);
        assert!(table.ack_state().waiting.is_empty(), "a scan begun in prepare does not hold up {state}");
    }
    walk.apply(&table, 5, "settled");
    assert_eq!(waiting(&table.ack_state()), [(&b"c42"[..], 5)]);
    drop(scan);
    assert!(table.ack_state().waiting.is_empty());
}

#[test]
fn a_call_of_unknown_outcome_holds_up_dual_and_no_hold() {
    let walk = Walk::split(b"c42", 8, "update");
    let at = |ms| EventTime::from_millis(ms).unwrap();
    // Begun without a plan, and begun under a version.
    for planned in [false, true] {
        let table = Table::new(TableSettings::default());
        table.release_unknown(at(1_000));
        if planned {
            walk.apply(&table, 1, "prepare");
        }
        write(&table, b"c42").outcome_unknown(at(31_000));
        walk.apply(&table, 2, "prepare");
        walk.apply(&table, 3, "hold");
        assert!(table.ack_state().waiting.is_empty(), "planned: {planned}");
        walk.apply(&table, 4, "dual");
        assert_eq!(waiting(&table.ack_state()), [(&b"c42"[..], 4)], "planned: {planned}");
        table.release_unknown(at(30_999));
        assert_eq!(table.ack_state().waiting.len(), 1);
        assert_eq!(table.unknown_until(), Some(at(31_000)));
        table.release_unknown(at(31_000));
        assert!(table.ack_state().waiting.is_empty());
        assert_eq!(table.unknown_until(), None);
    }
}

#[test]
fn an_update_in_place_is_a_read_and_a_write() {
    let walk = Walk::split(b"c42", 8, "update");
    let table = Table::new(TableSettings::default());
    let Write::Placed(in_place) = table.update_in_place(KEYSPACE, b"c42", b"id").unwrap() else { panic!("held") };
    walk.apply(&table, 1, "prepare");
    assert_eq!(table.ack_state().waiting.len(), 1, "it does not look in the new layout");
    drop(in_place);
    assert!(table.ack_state().waiting.is_empty());
}

#[test]
fn a_key_that_lost_its_plan_is_guarded_as_before() {
    let split = Walk::split(b"c42", 8, "insert");
    let back = Walk { from: split.to, to: Layout::BARE, ..split.clone() };
    let table = Table::new(one_stripe());
    split.apply(&table, 1, "settled");
    let old = write(&table, b"c42");
    back.apply(&table, 2, "settled");
    table.remove(&split.plan_key(), version(3)).unwrap();
    assert_eq!(waiting(&table.ack_state()), [(&b"c42"[..], 3)]);
    drop(old);
    assert!(table.ack_state().waiting.is_empty());
    assert_eq!(table.plans(), 0);
    let bare = write(&table, b"c42");
    assert_eq!((bare.version(), bare.place().layout), (None, 0));
    split.apply(&table, 4, "dual");
    assert_eq!(waiting(&table.ack_state()), [(&b"c42"[..], 4)]);
}

#[test]
fn a_guard_that_never_ends_does_not_stop_changes_of_its_own_kind_for_ever() {
    let table = Table::new(one_stripe());
    let _endless = table.scan(KEYSPACE, b"other").unwrap();
    for n in 0..20_u64 {
        let walk = Walk::split(format!("c{n}").as_bytes(), 8, "insert");
        walk.apply(&table, 1 + n, "dual");
    }
    // Reads of the stripe have not ended, so versions with another read list wait; what only writes elsewhere would not.
    assert_eq!(table.ack_state().waiting.len(), 20);
    drop(_endless);
    assert!(table.ack_state().waiting.is_empty());
}

#[test]
fn an_owned_placement_is_the_same_guard() {
    let walk = Walk::split(b"c42", 8, "insert");
    let table = Arc::new(Table::new(TableSettings::default()));
    let other = Arc::new(Table::new(TableSettings::default()));
    let key = b"c42".to_vec();
    let refused = write(&table, &key).into_owned(&other).unwrap_err();
    let kept: Placement<'static> = refused.into_owned(&table).unwrap();
    drop(key);
    assert_eq!(&*kept.place().key, b"c42");
    walk.apply(&table, 1, "dual");
    assert_eq!(waiting(&table.ack_state()), [(&b"c42"[..], 1)]);
    drop(kept);
    assert!(table.ack_state().waiting.is_empty());
    let planned = write(&table, b"c42").into_owned(&table).unwrap();
    let read = table.point_read(KEYSPACE, b"c42", b"id").unwrap().into_owned(&table).unwrap();
    let scan = table.scan(KEYSPACE, b"c42").unwrap().into_owned(&table).unwrap();
    assert!(!table.is_idle());
    assert_eq!((read.places().len(), scan.places().len()), (2, 9));
    drop((planned, read, scan));
    assert!(table.is_idle());
}

#[test]
fn a_closed_table_places_nothing_and_knows_when_it_is_idle() {
    let walk = Walk::split(b"c42", 8, "insert");
    let table = Table::not_ready(TableSettings::default());
    walk.apply(&table, 1, "dual");
    for key in [&b"c42"[..], b"c43"] {
        assert_eq!(table.write(KEYSPACE, key, b"id").unwrap_err(), Refused::NotReady);
    }
    assert!(table.is_idle());
    table.open();
    let requests = (write(&table, b"c42"), write(&table, b"c43"), table.scan(KEYSPACE, b"c44").unwrap());
    table.close();
    for key in [&b"c42"[..], b"c43"] {
        assert_eq!(table.write(KEYSPACE, key, b"id").unwrap_err(), Refused::Closed);
        assert!(table.scan(KEYSPACE, key).is_err());
    }
    assert!(!table.is_idle());
    let until = EventTime::from_millis(1_000).unwrap();
    requests.0.outcome_unknown(until);
    drop((requests.1, requests.2));
    assert!(!table.is_idle(), "a call of unknown outcome");
    table.release_unknown(until);
    assert!(table.is_idle());
}

#[test]
fn nobody_is_placed_behind_a_closed_table() {
    for _ in 0..200 {
        let table = Table::new(one_stripe());
        Walk::split(b"c1", 8, "insert").apply(&table, 1, "dual");
        let in_flight = AtomicI64::new(0);
        std::thread::scope(|scope| {
            for key in [&b"c1"[..], b"c2", b"c1", b"c2"] {
                let (table, in_flight) = (&table, &in_flight);
                scope.spawn(move || {
                    while let Ok(write) = table.write(KEYSPACE, key, b"id") {
                        in_flight.fetch_add(1, SeqCst);
                        std::thread::yield_now();
                        in_flight.fetch_sub(1, SeqCst);
                        drop(write);
                    }
                });
            }
            std::thread::yield_now();
            table.close();
            while !table.is_idle() {
                std::thread::yield_now();
            }
            assert_eq!(in_flight.load(SeqCst), 0, "a request is in flight though the table was idle");
        });
    }
}

#[test]
fn placements_may_be_sent_to_other_threads() {
    const fn sent<T: Send>() {}
    const fn shared<T: Send + Sync>() {}
    shared::<Table>();
    sent::<Placement<'static>>();
    sent::<ReadPlacement<'static>>();
    sent::<keyheat::router::ScanPlacement<'static>>();
    sent::<keyheat::router::Held>();
}

/// What the property does.
#[derive(Debug, Clone)]
enum Do {
    Write(usize),
    InPlace(usize),
    Read(usize),
    Scan(usize),
    End(usize),
    Unknown(usize),
    Advance(usize),
}

fn doing() -> impl Strategy<Value = Do> {
    prop_oneof![
        (0usize..3).prop_map(Do::Write),
        (0usize..3).prop_map(Do::InPlace),
        (0usize..3).prop_map(Do::Read),
        (0usize..3).prop_map(Do::Scan),
        any::<usize>().prop_map(Do::End),
        any::<usize>().prop_map(Do::Unknown),
        (0usize..3).prop_map(Do::Advance),
    ]
}

/// One request in flight, as a plain list has it.
struct Flight<'a> {
    key: usize,
    write: Option<Option<Layout>>,
    read: Option<Vec<Layout>>,
    unknown: bool,
    guard: Option<Guarded<'a>>,
}

enum Guarded<'a> {
    Write(Placement<'a>),
    #[expect(dead_code, reason = "held for its drop")]
    Read(ReadPlacement<'a>),
    #[expect(dead_code, reason = "held for its drop")]
    Scan(keyheat::router::ScanPlacement<'a>),
}

/// The walk there and back, as often as wanted.
fn step(key: &[u8], at: usize) -> (Walk, &'static str) {
    let there = Walk::split(key, 8, "update");
    let back = Walk { from: there.to, to: Layout::BARE, ..there.clone() };
    let states = ["prepare", "hold", "dual", "moving", "settled"];
    let walk = if (at / states.len()).is_multiple_of(2) { there } else { back };
    (walk, states[at % states.len()])
}

proptest! {
    #[test]
    fn acknowledgements_agree_with_a_plain_list(stripes in prop_oneof![Just(1usize), Just(4096)], doings in prop::collection::vec(doing(), 1..80)) {
        let keys: [&[u8]; 3] = [b"c1", b"c2", b"c3"];
        let table = Table::new(TableSettings { stripes, ..TableSettings::default() });
        let mut at: [Option<usize>; 3] = [None; 3];
        let mut flights: Vec<Flight<'_>> = Vec::new();
        let mut seq = 0;
        let until = EventTime::from_millis(1_000).unwrap();
        for doing in doings {
            match doing {
                Do::Write(key) | Do::InPlace(key) => {
                    let in_place = matches!(doing, Do::InPlace(_));
                    let placed = if in_place { table.update_in_place(KEYSPACE, keys[key], b"id") } else { table.write(KEYSPACE, keys[key], b"id") };
                    if let Write::Placed(placement) = placed.unwrap() {
                        let (write, read) = rules(keys[key], at[key]);
                        flights.push(Flight { key, write: Some(write), read: in_place.then_some(read), unknown: false, guard: Some(Guarded::Write(placement)) });
                    }
                }
                Do::Read(key) => {
                    let guard = Some(Guarded::Read(table.point_read(KEYSPACE, keys[key], b"id").unwrap()));
                    flights.push(Flight { key, write: None, read: Some(rules(keys[key], at[key]).1), unknown: false, guard });
                }
                Do::Scan(key) => {
                    let guard = Some(Guarded::Scan(table.scan(KEYSPACE, keys[key]).unwrap()));
                    flights.push(Flight { key, write: None, read: Some(rules(keys[key], at[key]).1), unknown: false, guard });
                }
                Do::End(which) if !flights.is_empty() => {
                    let which = which % flights.len();
                    if !flights[which].unknown {
                        flights.swap_remove(which);
                    }
                }
                Do::Unknown(which) if !flights.is_empty() => {
                    let which = which % flights.len();
                    if let Some(Guarded::Write(placement)) = flights[which].guard.take_if(|guard| matches!(guard, Guarded::Write(_))) {
                        placement.outcome_unknown(until);
                        flights[which].unknown = true;
                    }
                }
                Do::Advance(key) => {
                    let next = at[key].map_or(0, |at| at + 1);
                    let (walk, state) = step(keys[key], next);
                    seq += 1;
                    walk.apply(&table, seq, state);
                    at[key] = Some(next);
                }
                Do::End(_) | Do::Unknown(_) => {}
            }
            let must: BTreeSet<&[u8]> = (0..3).filter(|&key| must_wait(key, keys[key], at[key], &flights)).map(|key| keys[key]).collect();
            let state = table.ack_state();
            let waits: BTreeSet<&[u8]> = state.waiting.iter().map(|waiting| &waiting.key.key[..]).collect();
            prop_assert!(must.is_subset(&waits), "must wait: {must:?}, waits: {waits:?}");
            // Keys of one stripe wait for each other's guards; alone in its stripe a key waits for its own only.
            prop_assert!(stripes == 1 || waits == must, "must wait: {must:?}, waits: {waits:?}");
        }
        flights.clear();
        table.release_unknown(until);
        prop_assert!(table.ack_state().waiting.is_empty());
    }
}

/// Where a key writes and reads at a step.
fn rules(key: &[u8], at: Option<usize>) -> (Option<Layout>, Vec<Layout>) {
    match at {
        None => (Some(Layout::BARE), vec![Layout::BARE]),
        Some(at) => {
            let (walk, state) = step(key, at);
            let record = walk.record(state);
            (record.write, record.read)
        }
    }
}

fn must_wait(key: usize, bytes: &[u8], at: Option<usize>, flights: &[Flight<'_>]) -> bool {
    let (write, read) = rules(bytes, at);
    flights.iter().filter(|flight| flight.key == key && !(flight.unknown && write.is_none())).any(|flight| {
        flight.write.is_some_and(|old| old != write) || flight.read.as_ref().is_some_and(|old| *old != read)
    })
}

/// What threads have in flight, by key and by where it was placed: counted after a placement is had, and no longer before it is dropped.
#[derive(Default)]
struct InFlight {
    writes: [AtomicI64; 2],
    reads: [AtomicI64; 4],
}

/// The read lists of a walk: the bare key, both with the new one first, the buckets, both with the bare one first.
fn read_list(read: &ReadPlacement<'_>) -> usize {
    match read.places().iter().map(|place| place.layout).collect::<Vec<_>>()[..] {
        [0] => 0,
        [1, 0] => 1,
        [1] => 2,
        [0, 1] => 3,
        ref other => panic!("unexpected read list {other:?}"),
    }
}

#[test]
fn no_guard_is_missed_while_many_threads_ask() {
    for stripes in [1, 8] {
        hammer(stripes);
    }
}

/// One thread walks keys through their migrations and back to no plan, again and again; whenever a key is acknowledged, no request
/// may be in flight that was placed elsewhere.
fn hammer(stripes: usize) {
    const KEYS: usize = 4;
    let keys: Vec<Vec<u8>> = (0..KEYS).map(|n| format!("c{n}").into_bytes()).collect();
    let table = Table::new(TableSettings { stripes, ..TableSettings::default() });
    let in_flight: Vec<InFlight> = (0..KEYS).map(|_| InFlight::default()).collect();
    let (stop, requests) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..6_usize {
            let (table, keys, in_flight, stop, requests) = (&table, &keys, &in_flight, &stop, &requests);
            scope.spawn(move || {
                let mut n = thread;
                while !stop.load(SeqCst) {
                    n = n.wrapping_mul(25_214_903_917).wrapping_add(11);
                    let key = n / 65_536 % KEYS;
                    request(table, &keys[key], &in_flight[key], n % 2 == 0);
                    requests.fetch_add(1, SeqCst);
                }
            });
        }
        let mut seq = 0;
        for round in 0..200 {
            let key = round % KEYS;
            for at in 0..10 {
                let (walk, state) = step(&keys[key], at);
                seq += 1;
                walk.apply(&table, seq, state);
                wait_for_ack(&table, &keys[key]);
                let record = walk.record(state);
                check_none_elsewhere(&in_flight[key], record.write, &record.read);
            }
            seq += 1;
            table.remove(&step(&keys[key], 0).0.plan_key(), version(seq)).unwrap();
            wait_for_ack(&table, &keys[key]);
            check_none_elsewhere(&in_flight[key], Some(Layout::BARE), &[Layout::BARE]);
        }
        stop.store(true, SeqCst);
    });
    assert!(requests.load(SeqCst) > 1_000);
    assert!(table.ack_state().waiting.is_empty());
}

fn request(table: &Table, key: &[u8], in_flight: &InFlight, write: bool) {
    if write {
        if let Write::Placed(placement) = table.write(KEYSPACE, key, b"id").unwrap() {
            let count = &in_flight.writes[placement.place().layout as usize];
            count.fetch_add(1, SeqCst);
            std::thread::yield_now();
            count.fetch_sub(1, SeqCst);
        }
    } else {
        let read = table.point_read(KEYSPACE, key, b"id").unwrap();
        let count = &in_flight.reads[read_list(&read)];
        count.fetch_add(1, SeqCst);
        std::thread::yield_now();
        count.fetch_sub(1, SeqCst);
    }
}

fn wait_for_ack(table: &Table, key: &[u8]) {
    while table.ack_state().waiting.iter().any(|waiting| waiting.key.key == key) {
        std::thread::yield_now();
    }
}

fn check_none_elsewhere(in_flight: &InFlight, write: Option<Layout>, read: &[Layout]) {
    for (number, count) in (0..).zip(&in_flight.writes) {
        if write.is_none_or(|layout| layout.number() != number) {
            assert_eq!(
                count.load(SeqCst),
                0,
                "a write to layout {number} was in flight when {write:?} was acknowledged"
            );
        }
    }
    let read: Vec<u32> = read.iter().map(|layout| layout.number()).collect();
    for (list, count) in [&[0][..], &[1, 0], &[1], &[0, 1]].iter().zip(&in_flight.reads) {
        if read != **list {
            assert_eq!(count.load(SeqCst), 0, "a read of {list:?} was in flight when {read:?} was acknowledged");
        }
    }
}
