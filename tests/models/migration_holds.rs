//! Migrations hold, and need every one of their rules.

use std::sync::Arc;

use keyheat::protocol::Writes;

use super::explore::{Found, explore, explore_to};
use super::migration::Call::{Count, Delete, Increment, InsertUnique, Read, Write};
use super::migration::{Budget, Migration, Rule, Setup};
use super::reach::stuck;

const NOTHING: Budget =
    Budget { crashes: 0, lost_snapshots: 0, fail_overs: 0, turned_back: 0, turned_round: 0, unknown: 0 };

fn report(name: &str, found: &Found) {
    println!("{name}: {} states, depth {}", found.states, found.depth);
    if let Some((why, history)) = &found.broken {
        panic!("{name}: {why}, after {} steps:\n{}", history.len(), history.join("\n"));
    }
}

/// Explored to its end, over `least` states at least: a model that cannot move holds as well.
fn holds(name: &str, least: usize, setup: Setup) {
    let found = explore(&Arc::new(Migration::new(setup)));
    report(name, &found);
    assert!(found.states >= least, "{name}: {} states", found.states);
}

/// From everywhere within reach the end of every migration can be reached.
fn ends(name: &str, setup: Setup) {
    let world = Arc::new(Migration::new(setup));
    report(name, &explore(&world));
    assert_eq!(stuck(&world), None, "{name}");
}

#[test]
fn inserts_hold() {
    holds(
        "insert",
        40_000,
        Setup { writes: Writes::Insert, present: false, calls: &[(Write, 1), (Read, 2)], ..Setup::default() },
    );
}

#[test]
fn versioned_records_hold() {
    holds(
        "versioned",
        300_000,
        Setup { writes: Writes::Versioned, calls: &[(Write, 2), (Read, 2)], ..Setup::default() },
    );
}

#[test]
fn versioned_records_hold_over_deletes() {
    holds(
        "versioned, delete",
        800_000,
        Setup { writes: Writes::Versioned, calls: &[(Write, 1), (Delete, 1), (Read, 2)], ..Setup::default() },
    );
}

#[test]
fn updates_hold() {
    holds("update", 200_000, Setup { calls: &[(Write, 2), (Read, 2)], ..Setup::default() });
}

#[test]
fn updates_hold_over_deletes() {
    holds("update, delete", 500_000, Setup { calls: &[(Write, 1), (Delete, 1), (Read, 2)], ..Setup::default() });
}

#[test]
fn updates_in_place_hold() {
    holds(
        "update in place",
        40_000,
        Setup { calls: &[(Increment, 1), (InsertUnique, 1), (Read, 1)], ..Setup::default() },
    );
}

#[test]
fn counts_hold() {
    holds("count", 100_000, Setup { calls: &[(Count, 1), (Write, 1), (Delete, 1)], ..Setup::default() });
}

#[test]
fn three_routers_hold() {
    holds("three routers", 50_000, Setup { routers: 3, calls: &[(Write, 1), (Read, 1)], ..Setup::default() });
}

#[test]
fn a_router_may_die_and_come_back() {
    holds(
        "a router dies",
        300_000,
        Setup { calls: &[(Write, 2), (Read, 1)], may: Budget { crashes: 1, ..NOTHING }, ..Setup::default() },
    );
}

#[test]
fn a_router_may_lose_its_snapshot() {
    holds(
        "a snapshot is lost",
        90_000,
        Setup {
            calls: &[(Write, 1), (Read, 1)],
            may: Budget { crashes: 1, lost_snapshots: 1, ..NOTHING },
            ..Setup::default()
        },
    );
}

#[test]
fn a_router_may_join_late() {
    holds("a router joins late", 70_000, Setup { joins: true, calls: &[(Write, 1), (Read, 2)], ..Setup::default() });
}

#[test]
fn a_hold_may_be_turned_back() {
    holds(
        "a hold is turned back twice",
        200_000,
        Setup { calls: &[(Write, 2), (Read, 1)], may: Budget { turned_back: 2, ..NOTHING }, ..Setup::default() },
    );
}

#[test]
fn a_migration_may_be_turned_round() {
    holds(
        "a migration is turned round",
        100_000,
        Setup { calls: &[(Write, 2), (Read, 1)], may: Budget { turned_round: 1, ..NOTHING }, ..Setup::default() },
    );
}

#[test]
fn a_split_may_be_withdrawn() {
    holds(
        "split and withdrawn",
        200_000,
        Setup { walk: &[2, 1], calls: &[(Write, 1), (Delete, 1), (Read, 1)], ..Setup::default() },
    );
}

#[test]
fn a_split_may_grow() {
    holds(
        "split and grown, the id moves",
        200_000,
        Setup { walk: &[2, 4], calls: &[(Write, 1), (Delete, 1), (Read, 1)], ..Setup::default() },
    );
}

#[test]
fn a_split_may_grow_around_an_id() {
    holds(
        "split and grown, the id stays",
        100_000,
        Setup { walk: &[2, 4], stays: true, calls: &[(Write, 1), (Delete, 1), (Read, 1)], ..Setup::default() },
    );
}

#[test]
fn outcomes_may_be_unknown() {
    holds(
        "an outcome is unknown",
        400_000,
        Setup {
            calls: &[(Write, 1), (Delete, 1), (Read, 1)],
            may: Budget { unknown: 1, ..NOTHING },
            ..Setup::default()
        },
    );
}

#[test]
fn outcomes_of_updates_in_place_may_be_unknown() {
    holds(
        "an outcome is unknown, in place",
        200_000,
        Setup {
            calls: &[(Write, 1), (Increment, 1), (Read, 1)],
            may: Budget { unknown: 1, ..NOTHING },
            ..Setup::default()
        },
    );
}

#[test]
#[ignore = "long: tests/run --all"]
fn a_leader_may_take_over() {
    holds(
        "a leader takes over",
        2_000_000,
        Setup { calls: &[(Write, 1), (Read, 1)], may: Budget { fail_overs: 1, ..NOTHING }, ..Setup::default() },
    );
}

#[test]
fn one_of_three_routers_may_join_and_die() {
    holds(
        "three routers, one joins late, one dies",
        700_000,
        Setup {
            routers: 3,
            joins: true,
            calls: &[(Write, 1), (Read, 1)],
            may: Budget { crashes: 1, ..NOTHING },
            ..Setup::default()
        },
    );
}

#[test]
fn versioned_records_hold_over_a_withdrawal() {
    holds(
        "versioned, split and withdrawn",
        300_000,
        Setup {
            writes: Writes::Versioned,
            walk: &[2, 1],
            calls: &[(Write, 1), (Delete, 1), (Read, 1)],
            ..Setup::default()
        },
    );
}

#[test]
fn three_routers_hold_versioned_records() {
    holds(
        "three routers, versioned, an outcome is unknown",
        100_000,
        Setup {
            routers: 3,
            writes: Writes::Versioned,
            calls: &[(Write, 1), (Read, 1)],
            may: Budget { unknown: 1, ..NOTHING },
            ..Setup::default()
        },
    );
}

#[test]
#[ignore = "long: tests/run --all"]
fn a_router_may_join_while_a_leader_takes_over() {
    holds(
        "a router joins late, a leader takes over",
        4_000_000,
        Setup {
            joins: true,
            calls: &[(Write, 1), (Read, 1)],
            may: Budget { fail_overs: 1, ..NOTHING },
            ..Setup::default()
        },
    );
}

/// Everything at once is more than can be explored to its end.
fn holds_to(depth: usize, least: usize) {
    let may = Budget { crashes: 1, lost_snapshots: 1, fail_overs: 1, turned_back: 1, turned_round: 1, unknown: 1 };
    let calls = &[(Write, 1), (Read, 1)];
    let setup = Setup { routers: 3, keys: 2, joins: true, calls, may, ..Setup::default() };
    let found = explore_to(&Arc::new(Migration::new(setup)), depth);
    report("three routers, two leaders, two keys, everything that may happen", &found);
    assert!(found.states >= least, "{} states", found.states);
}

#[test]
fn everything_at_once_holds_as_far_as_it_was_explored() {
    holds_to(9, 100_000);
}

#[test]
#[ignore = "long: tests/run --all"]
fn everything_at_once_holds_further() {
    holds_to(12, 1_000_000);
}

#[test]
fn a_migration_can_always_end() {
    let may = Budget { crashes: 1, turned_back: 1, ..NOTHING };
    ends("ends, a router dies", Setup { calls: &[(Write, 1), (Read, 1)], may, ..Setup::default() });
    let may = Budget { crashes: 1, lost_snapshots: 1, ..NOTHING };
    let writes = Writes::Versioned;
    ends("ends, a snapshot is lost", Setup { writes, calls: &[(Write, 1)], may, ..Setup::default() });
    let may = Budget { unknown: 1, turned_back: 1, turned_round: 1, ..NOTHING };
    ends("ends, an outcome is unknown", Setup { calls: &[(Write, 1)], may, ..Setup::default() });
    let may = Budget { fail_overs: 1, ..NOTHING };
    ends("ends, a leader takes over and a router joins", Setup { joins: true, may, ..Setup::default() });
}

#[test]
fn a_router_that_is_dead_and_not_dropped_keeps_a_migration_from_its_end() {
    let may = Budget { crashes: 1, ..NOTHING };
    let setup = Setup { without: Rule::DeadEnd, calls: &[(Write, 1)], may, ..Setup::default() };
    assert_eq!(stuck(&Arc::new(Migration::new(setup))), Some(vec!["Crashes(0)".to_owned()]));
}

#[test]
fn every_kind_of_step_is_taken() {
    let dies = Budget { crashes: 1, lost_snapshots: 1, ..NOTHING };
    let turns = Budget { turned_back: 1, turned_round: 1, unknown: 1, ..NOTHING };
    let setups = [
        Setup { joins: true, may: Budget { fail_overs: 1, ..NOTHING }, ..Setup::default() },
        Setup { calls: &[(Write, 1)], may: dies, ..Setup::default() },
        Setup { calls: &[(Delete, 1), (Read, 1)], may: turns, ..Setup::default() },
    ];
    let untaken = setups.map(|setup| explore(&Arc::new(Migration::new(setup))).untaken);
    let never: Vec<_> = untaken[0].iter().filter(|kind| untaken.iter().all(|of| of.contains(kind))).collect();
    assert!(never.is_empty(), "{never:?}");
}

#[test]
fn an_id_stays_or_moves_when_its_key_grows() {
    let [stays, moves] = [true, false].map(|stays| Migration::new(Setup { stays, ..Setup::default() }).buckets());
    assert_eq!(stays.0, stays.1);
    assert_ne!(moves.0, moves.1);
}
