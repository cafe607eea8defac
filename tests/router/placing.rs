//! I11: every write goes where every read looks, in every mix of neighbouring phases.

use keyheat::protocol::{Delete, Layout};
use keyheat::router::{ReadRule, Refused, Table, TableSettings, Write};
use proptest::prelude::*;

use super::records::{KEYSPACE, Walk, version};

fn table_at(walk: &Walk, states: &[&str]) -> Table {
    let table = Table::new(TableSettings::default());
    for (seq, state) in (1..).zip(states) {
        walk.apply(&table, seq, state);
    }
    table
}

/// Every place that a table's reads of `id` look in.
fn read_keys(table: &Table, key: &[u8], id: &[u8]) -> Vec<Vec<u8>> {
    let read = table.point_read(KEYSPACE, key, id).unwrap();
    read.places().iter().map(|place| place.key.to_vec()).collect()
}

fn check_pair(walk: &Walk, writer: &Table, reader: &Table, id: &[u8]) {
    let mut written = Vec::new();
    if let Write::Placed(placement) = writer.write(KEYSPACE, &walk.key, id).unwrap() {
        written.push(placement.place().key.to_vec());
    }
    if let Write::Placed(placement) = writer.delete(KEYSPACE, &walk.key, id).unwrap() {
        written.push(placement.place().key.to_vec());
    }
    if walk.writes == "update"
        && let Write::Placed(placement) = writer.update_in_place(KEYSPACE, &walk.key, id).unwrap()
    {
        written.push(placement.place().key.to_vec());
    }
    let reads = read_keys(reader, &walk.key, id);
    let scan = reader.scan(KEYSPACE, &walk.key).unwrap();
    for store_key in written {
        assert!(reads.contains(&store_key), "{walk:?}: written to {store_key:?}, read at {reads:?}");
        let visited = scan.places().iter().find(|place| *place.key == *store_key).expect("a scan visits it");
        assert!(scan.is_home(id, visited), "{walk:?}: a scan does not count the copy in {store_key:?}");
    }
}

fn walks() -> impl Strategy<Value = Walk> {
    let layouts = prop_oneof![
        (1u32..=8, 0u32..5000).prop_map(|(log2, first)| (Layout::BARE, Layout::split(1, 1 << log2, first).unwrap())),
        (1u32..=8, 0u32..5000).prop_map(|(log2, first)| (Layout::split(1, 1 << log2, first).unwrap(), Layout::BARE)),
        (1u32..=7, 0u32..5000).prop_map(|(log2, first)| {
            (Layout::split(1, 1 << log2, first).unwrap(), Layout::split(2, 2 << log2, first).unwrap())
        }),
        (2u32..=8, 0u32..5000).prop_map(|(log2, first)| {
            (Layout::split(1, 1 << log2, first).unwrap(), Layout::split(2, 1 << (log2 - 1), first).unwrap())
        }),
    ];
    let writes = prop_oneof![Just("insert"), Just("versioned"), Just("update")];
    let history = prop_oneof![Just("move"), Just("none"), Just("expire")];
    (prop::collection::vec(any::<u8>(), 1..20), layouts, writes, history, any::<u64>())
        .prop_map(|(key, (from, to), writes, history, seed)| Walk { key, from, to, writes, history, seed })
}

proptest! {
    #[test]
    fn i11_every_write_goes_where_every_read_looks(
        walk in walks(),
        ids in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..24), 1..8),
    ) {
        let states = walk.states();
        // The table before the first record as well: routers that have not seen the plan yet. Only a walk from the bare layout starts so.
        let start = usize::from(!walk.from.is_bare());
        for at in start..states.len() {
            let older = table_at(&walk, &states[..at]);
            let newer = table_at(&walk, &states[..=at]);
            for id in &ids {
                for (writer, reader) in [(&older, &older), (&older, &newer), (&newer, &older), (&newer, &newer)] {
                    check_pair(&walk, writer, reader, id);
                }
            }
        }
    }

    #[test]
    fn a_copy_counts_in_exactly_one_place_of_each_layout(
        walk in walks(),
        id in prop::collection::vec(any::<u8>(), 0..24),
    ) {
        let table = table_at(&walk, &["proposed", "prepare"]);
        let scan = table.scan(KEYSPACE, &walk.key).unwrap();
        prop_assert_eq!(scan.layouts(), 2);
        let keys: std::collections::BTreeSet<_> = scan.places().iter().map(|place| place.key.to_vec()).collect();
        prop_assert_eq!(keys.len(), scan.places().len(), "a place is visited once");
        let home: Vec<_> = scan.places().iter().filter(|place| scan.is_home(&id, place)).collect();
        let reads: std::collections::BTreeSet<_> = read_keys(&table, &walk.key, &id).into_iter().collect();
        prop_assert_eq!(home.iter().map(|place| place.key.to_vec()).collect::<std::collections::BTreeSet<_>>(), reads);
    }
}

#[test]
fn a_key_without_a_plan_is_its_own_place() {
    let table = Table::new(TableSettings::default());
    let write = table.write(KEYSPACE, b"c42", b"id").unwrap().placed().unwrap();
    assert_eq!(
        (write.place().layout, write.place().label, &*write.place().key, write.version()),
        (0, None, &b"c42"[..], None)
    );
    let delete = table.delete(KEYSPACE, b"c42", b"id").unwrap().placed().unwrap();
    assert_eq!(delete.how(), Delete::Remove);
    assert_eq!(table.point_read(KEYSPACE, b"c42", b"id").unwrap().places().len(), 1);
    assert_eq!(table.scan(KEYSPACE, b"c42").unwrap().places().len(), 1);
}

#[test]
fn reads_look_in_the_newest_layout_first() {
    let walk = Walk::split(b"c42", 8, "update");
    let table = table_at(&walk, &["proposed", "prepare"]);
    let read = table.point_read(KEYSPACE, b"c42", b"order-1").unwrap();
    assert_eq!(read.places().iter().map(|place| place.layout).collect::<Vec<_>>(), [1, 0]);
    assert_eq!((read.rule(), read.version()), (ReadRule::FirstFound, Some(version(2))));
}

#[test]
fn an_expiring_history_is_looked_at_again() {
    let walk = Walk { history: "expire", ..Walk::split(b"c42", 8, "insert") };
    let table = table_at(&walk, &["proposed", "prepare", "dual"]);
    let read = table.point_read(KEYSPACE, b"c42", b"order-1").unwrap();
    assert_eq!(read.places().iter().map(|place| place.layout).collect::<Vec<_>>(), [1, 0, 1]);
    let settled = table_at(&walk, &["settled"]);
    assert_eq!(settled.point_read(KEYSPACE, b"c42", b"order-1").unwrap().places().len(), 1);
}

#[test]
fn updates_in_place_wait_until_moving_and_promote_from_the_older_layout() {
    let walk = Walk::split(b"c42", 8, "update");
    let prepare = table_at(&walk, &["prepare"]);
    let placement = prepare.update_in_place(KEYSPACE, b"c42", b"id").unwrap().placed().unwrap();
    assert_eq!((placement.place().layout, placement.promote_from().len()), (0, 0));
    for waiting in ["hold", "dual"] {
        let table = table_at(&walk, &[waiting]);
        assert!(table.update_in_place(KEYSPACE, b"c42", b"id").unwrap().placed().is_none(), "{waiting}");
    }
    assert!(table_at(&walk, &["dual"]).write(KEYSPACE, b"c42", b"id").unwrap().placed().is_some());
    let moving = table_at(&walk, &["moving"]);
    let placement = moving.update_in_place(KEYSPACE, b"c42", b"id").unwrap().placed().unwrap();
    assert_eq!(placement.place().layout, 1);
    assert_eq!(placement.promote_from().iter().map(|place| place.layout).collect::<Vec<_>>(), [0]);
}

#[test]
fn keyspaces_that_are_not_updated_in_place_say_so() {
    for writes in ["insert", "versioned"] {
        let table = table_at(&Walk::split(b"c42", 8, writes), &["prepare"]);
        assert!(matches!(table.update_in_place(KEYSPACE, b"c42", b"id"), Err(Refused::InPlace(_))), "{writes}");
        assert!(table.write(KEYSPACE, b"c42", b"id").unwrap().placed().is_some());
    }
}

/// A proposal changes nothing: what was refused before it is refused under it, and what was not is not.
#[test]
fn a_proposal_leaves_updates_in_place_as_they_were() {
    let at = |walk: &Walk, states: &[&str]| table_at(walk, states).update_in_place(KEYSPACE, b"c42", b"id").is_ok();
    for (writes, may) in [("insert", false), ("versioned", false), ("update", true)] {
        let first = Walk::split(b"c42", 8, writes);
        let to = Layout::split(2, 16, 0).unwrap();
        let growth = Walk { from: first.to, to, ..first.clone() };
        assert!(at(&first, &[]) && at(&first, &["proposed"]), "{writes}: never split");
        assert_eq!(at(&first, &first.states()), may, "{writes}: settled");
        assert_eq!(at(&growth, &["proposed"]), may, "{writes}: split, and to be split further");
    }
}

#[test]
fn a_refused_record_leaves_the_last_accepted_one_in_force() {
    let walk = Walk::split(b"c42", 8, "insert");
    let table = table_at(&walk, &["proposed", "prepare", "dual"]);
    let mut unknown = walk.record("moving");
    unknown.bucket.hash = "murmur9".to_owned();
    table.put(&walk.plan_key(), version(9), &unknown).unwrap();
    let placement = table.write(KEYSPACE, b"c42", b"id").unwrap().placed().unwrap();
    assert_eq!((placement.place().layout, placement.version()), (1, Some(version(3))));
    let state = table.ack_state();
    assert_eq!((state.refused.len(), state.refused[0].version), (1, version(9)));
    walk.apply(&table, 10, "moving");
    assert!(table.ack_state().refused.is_empty());
}

#[test]
fn a_key_whose_first_record_is_refused_fails_and_no_other_does() {
    let walk = Walk::split(b"c42", 8, "insert");
    let table = Table::new(TableSettings { stripes: 1, ..TableSettings::default() });
    let mut unknown = walk.record("prepare");
    unknown.bucket.hash = "murmur9".to_owned();
    table.put(&walk.plan_key(), version(1), &unknown).unwrap();
    let error = table.write(KEYSPACE, b"c42", b"id").unwrap_err();
    assert!(matches!(error, Refused::NoPlan(_)), "{error}");
    assert!(table.point_read(KEYSPACE, b"c42", b"id").is_err());
    assert!(table.scan(KEYSPACE, b"c42").is_err());
    assert!(table.delete(KEYSPACE, b"c42", b"id").is_err());
    assert!(table.write(KEYSPACE, b"c43", b"id").is_ok());
    assert!(table.write("object", b"c42", b"id").is_ok());
    walk.apply(&table, 2, "prepare");
    assert!(table.write(KEYSPACE, b"c42", b"id").is_ok());
}

#[test]
fn versions_of_a_key_only_grow() {
    let walk = Walk::split(b"c42", 8, "insert");
    let table = table_at(&walk, &["proposed", "prepare"]);
    for seq in [1, 2] {
        assert!(table.put(&walk.plan_key(), version(seq), &walk.record("dual")).is_err());
        assert!(table.remove(&walk.plan_key(), version(seq)).is_err());
    }
}
