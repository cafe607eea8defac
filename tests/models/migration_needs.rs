//! Migrations need every one of their rules: without it a short history breaks them.

use std::sync::Arc;

use keyheat::protocol::Writes;

use super::explore::explore;
use super::migration::Call::{Count, Delete, Increment, Read, Write};
use super::migration::{Budget, Migration, Rule, Setup};

const NOTHING: Budget =
    Budget { crashes: 0, lost_snapshots: 0, fail_overs: 0, turned_back: 0, turned_round: 0, unknown: 0 };

/// The history that breaks migrations without a rule.
fn breaks(steps: usize, setup: Setup) {
    let without = setup.without;
    let found = explore(&Arc::new(Migration::new(setup)));
    let (why, history) = found.broken.unwrap_or_else(|| panic!("without {without:?} nothing broke"));
    println!("without {without:?}: {why}, after {} steps ({} states):", history.len(), found.states);
    println!("{}", history.join("\n"));
    assert_eq!(history.len(), steps, "{why}");
}

#[test]
fn writes_must_be_held() {
    breaks(15, Setup { without: Rule::Hold, calls: &[(Write, 2), (Read, 1)], ..Setup::default() });
}

#[test]
fn a_gate_must_be_passed() {
    breaks(9, Setup { without: Rule::Gate, calls: &[(Write, 1), (Read, 1)], ..Setup::default() });
}

#[test]
fn guards_must_be_gone() {
    breaks(26, Setup { without: Rule::Guards, calls: &[(Write, 2), (Read, 1)], ..Setup::default() });
}

#[test]
fn acknowledgements_must_name_the_version() {
    breaks(
        28,
        Setup {
            without: Rule::AckByVersion,
            calls: &[(Write, 2), (Read, 1)],
            may: Budget { turned_back: 1, ..NOTHING },
            ..Setup::default()
        },
    );
}

#[test]
fn a_router_must_join_first() {
    breaks(
        16,
        Setup { without: Rule::ServeAfterJoin, joins: true, calls: &[(Write, 1), (Read, 1)], ..Setup::default() },
    );
}

#[test]
fn a_leader_must_know_every_router() {
    breaks(
        15,
        Setup {
            without: Rule::AcksToEnd,
            joins: true,
            calls: &[(Write, 1), (Read, 1)],
            may: Budget { fail_overs: 1, ..NOTHING },
            ..Setup::default()
        },
    );
}

#[test]
fn dual_must_not_be_turned_back() {
    breaks(
        24,
        Setup {
            without: Rule::NoWayBack,
            calls: &[(Write, 2), (Read, 1)],
            may: Budget { turned_back: 1, ..NOTHING },
            ..Setup::default()
        },
    );
}

#[test]
fn a_layout_must_be_retired_before_it_is_entered() {
    breaks(37, Setup { without: Rule::Retired, walk: &[2, 1], calls: &[(Write, 1), (Read, 1)], ..Setup::default() });
}

#[test]
fn records_must_be_retired_by_their_place() {
    breaks(
        78,
        Setup { without: Rule::RetireByPlace, walk: &[2, 4], stays: true, calls: &[(Read, 1)], ..Setup::default() },
    );
}

#[test]
fn a_report_must_be_of_its_migration() {
    breaks(29, Setup { without: Rule::ReportByMigration, calls: &[(Read, 1)], ..Setup::default() });
}

#[test]
fn deletes_must_leave_tombstones() {
    breaks(
        14,
        Setup {
            without: Rule::Tombstones,
            writes: Writes::Versioned,
            calls: &[(Write, 1), (Delete, 1), (Read, 1)],
            ..Setup::default()
        },
    );
}

#[test]
fn updates_in_place_must_promote() {
    breaks(23, Setup { without: Rule::Promotion, calls: &[(Increment, 1)], ..Setup::default() });
}

#[test]
fn counts_must_not_be_summed() {
    breaks(25, Setup { without: Rule::CountOnce, calls: &[(Count, 1)], ..Setup::default() });
}

#[test]
fn unknown_outcomes_must_keep_their_guards() {
    breaks(
        30,
        Setup {
            without: Rule::UnknownGuards,
            calls: &[(Write, 1), (Read, 2)],
            may: Budget { unknown: 1, ..NOTHING },
            ..Setup::default()
        },
    );
}

#[test]
fn a_table_must_be_on_disk_first() {
    breaks(
        17,
        Setup {
            without: Rule::SnapshotFirst,
            calls: &[(Write, 1), (Read, 1)],
            may: Budget { crashes: 1, ..NOTHING },
            ..Setup::default()
        },
    );
}
