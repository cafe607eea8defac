//! Load that rises, falls, wobbles and drops: no flapping, no wave of withdrawals, and nothing on counts that cannot be trusted.

use keyheat::plan::Hindrance;
use keyheat::protocol::Layout;

use super::sim::{Sim, customer, hot, settings};

fn split_keys(sim: &Sim) -> usize {
    sim.table.plans().filter(|(_, entry)| entry.record.write != Some(Layout::BARE)).count()
}

/// Case H7 (cockroach#41317, #64201): all traffic falls by 90 % for two minutes and comes back.
#[test]
fn h7_a_short_drop_of_load_undoes_nothing() {
    let mut sim = Sim::new(vec![settings()]);
    let keys: Vec<_> = (0..5).map(|number| hot(&format!("c{number}"), 700.0)).collect();
    sim.hot = keys.clone();
    sim.pass(5);
    let before = sim.log.len();
    assert_eq!(split_keys(&sim), 5);
    sim.hot.clear();
    sim.pass(120);
    sim.hot = keys;
    sim.pass(1200);
    // Beside what each of them was measured to do.
    assert_eq!((split_keys(&sim), sim.log.len()), (5, before + 5), "no un-split, and no re-split on return");
}

/// Case H7: when the drop lasts, splits are undone one a minute, not all at once.
#[test]
fn h7_a_long_drop_of_load_is_no_wave() {
    let mut sim = Sim::new(vec![settings()]);
    sim.hot = (0..5).map(|number| hot(&format!("c{number}"), 700.0)).collect();
    sim.pass(5);
    sim.hot.clear();
    sim.pass(599);
    assert_eq!(split_keys(&sim), 5);
    for left in (0..5).rev() {
        sim.pass(60);
        assert_eq!(split_keys(&sim), left);
    }
}

/// Case S6 (cockroach#41317): the logical key drives the state, whatever each bucket carries.
#[test]
fn s6_a_split_key_stays_split_while_the_whole_is_hot() {
    let mut sim = Sim::new(vec![settings()]);
    sim.hot = vec![hot("a", 400.0)];
    sim.pass(3600);
    assert_eq!(sim.plan("a").unwrap().write.unwrap().buckets(), 4);
    assert_eq!(
        sim.states_of("a"),
        ["prepare", "hold", "dual", "moving", "settled", "retire"],
        "one migration in an hour"
    );
    assert_eq!(sim.table.plans().len(), 1, "no plan for a bucket");
}

/// Case S7 (iis#1612): from the excess to the number of buckets, bounded, shown in the record.
#[test]
fn s7_the_number_of_buckets_grows_with_the_excess() {
    for (ratio, buckets) in [(1.2, 2), (12.0, 16), (250.0, 256)] {
        let mut sim = Sim::new(vec![settings()]);
        sim.hot = vec![hot("a", 100.0 * ratio)];
        sim.settle();
        let record = sim.plan("a").unwrap();
        assert_eq!((record.write.unwrap().buckets(), record.evidence.rate_per_s), (buckets, 100.0 * ratio));
        assert!((record.prediction.hottest_bucket_share - 1.0 / f64::from(buckets)).abs() < 1e-9);
    }
}

/// Case H5 and the closed loop: half an hour at the threshold, hot in every second window.
#[test]
fn h5_a_key_at_the_threshold_does_not_flap() {
    let mut sim = Sim::new(vec![settings()]);
    for window in 0..180 {
        sim.hot = if window % 2 == 0 { vec![hot("a", 101.0)] } else { Vec::new() };
        sim.pass(10);
    }
    assert_eq!(sim.states_of("a").iter().filter(|state| **state == "prepare").count(), 1);
}

/// At the edge between two sizes, for half an hour: at most one change a dwell, and none back and forth.
#[test]
fn a_key_between_two_sizes_does_not_flap() {
    let mut sim = Sim::new(vec![settings()]);
    for window in 0..180 {
        sim.hot = vec![hot("a", if window % 2 == 0 { 399.0 } else { 401.0 })];
        sim.pass(10);
    }
    let buckets: Vec<_> = sim
        .history("a")
        .into_iter()
        .flatten()
        .filter(|r| !r.retire.is_empty() && r.outcome.is_none())
        .map(|r| r.migration.to.buckets())
        .collect();
    assert_eq!(buckets, [4, 8]);
}

/// On and off load with a period near `quiet`: each change is a dwell away from the last.
#[test]
fn on_and_off_load_changes_at_most_once_a_dwell() {
    let mut sim = Sim::new(vec![settings()]);
    let mut begun = Vec::new();
    for minute in 0..90_u64 {
        sim.hot = if minute / 11 % 2 == 0 { vec![hot("a", 700.0)] } else { Vec::new() };
        let before = sim.states_of("a").iter().filter(|state| **state == "prepare").count();
        sim.pass(60);
        if sim.states_of("a").iter().filter(|state| **state == "prepare").count() > before {
            begun.push(minute);
        }
    }
    assert!(begun.windows(2).all(|pair| pair[1] - pair[0] >= 5), "{begun:?}");
    assert!(begun.len() <= 9, "{begun:?}");
}

/// I6: nothing is split from a cold window, nor while the input is behind.
#[test]
fn nothing_is_split_from_a_cold_window() {
    for (warming_up, catching_up) in [(true, false), (false, true)] {
        let mut sim = Sim::new(vec![settings()]);
        sim.condition.warming_up = warming_up;
        sim.condition.catching_up = catching_up;
        sim.hot = vec![hot("a", 700.0)];
        sim.pass(60);
        assert_eq!(sim.table.plans().len() + sim.table.advised().len(), 0);
        assert_eq!(sim.planner.hindrances()[&customer("a")], Hindrance::Unsettled);
    }
}

/// I6: what runs goes on while the input is behind; what is incomplete proves no coolness, and the wait begins anew.
#[test]
fn nothing_is_withdrawn_on_incomplete_counts() {
    let mut sim = Sim::new(vec![settings()]);
    sim.hot = vec![hot("a", 700.0)];
    assert!(sim.step());
    sim.condition.catching_up = true;
    sim.settle();
    assert_eq!(sim.states_of("a").last(), Some(&"retire"));
    sim.condition.catching_up = false;
    sim.hot.clear();
    sim.pass(500);
    sim.count_of_ten(9);
    sim.pass(1200);
    assert_eq!(split_keys(&sim), 1);
    sim.count_of_ten(10);
    sim.pass(599);
    assert_eq!(split_keys(&sim), 1, "the time before the gap does not count");
    sim.pass(2);
    assert_eq!(split_keys(&sim), 0);
}

/// I6: heat is proved by a lower bound on any part of the input; how many buckets it needs, its median and its share are not.
#[test]
fn nothing_is_split_on_incomplete_counts() {
    let mut sim = Sim::new(vec![settings()]);
    sim.count_of_ten(5);
    sim.hot = vec![hot("a", 700.0)];
    sim.pass(60);
    assert_eq!(sim.table.plans().len() + sim.table.advised().len(), 0);
    assert_eq!(sim.planner.hindrances()[&customer("a")], Hindrance::Unsettled);
    sim.count_of_ten(10);
    sim.settle();
    assert!((sim.plan("a").unwrap().evidence.completeness - 1.0).abs() < 1e-9);
}

/// A suspect is neither split nor cool.
#[test]
fn a_suspect_changes_nothing() {
    let mut sim = Sim::new(vec![settings()]);
    let mut suspect = hot("a", 700.0);
    suspect.hot_since = None;
    sim.hot = vec![suspect.clone()];
    sim.pass(60);
    assert_eq!(sim.table.plans().len(), 0);
    sim.hot = vec![hot("a", 700.0)];
    sim.settle();
    sim.hot = vec![suspect];
    sim.pass(3600);
    assert_eq!(split_keys(&sim), 1);
}

/// Case H25: nothing is hot, nothing is sent. Case H23: nor is anything when only shards are.
#[test]
fn h25_h23_without_a_hot_key_nothing_is_planned() {
    let mut sim = Sim::new(vec![settings()]);
    let before = sim.log.len();
    sim.pass(600);
    assert_eq!(sim.log.len(), before);
}
