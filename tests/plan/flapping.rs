//! Half an hour of the closed loop: a key changes its layout no more often than the settings say, whatever its load does.

use keyheat::plan::BudgetSettings;

use super::closed_loop::{HOT_PER_S, Loop, Traffic};

const HALF_HOUR: u64 = 1800;

fn keys(number: usize, per_s: u64) -> Vec<Traffic> {
    (0..number).map(|key| Traffic::new(&format!("c{key}"), per_s)).collect()
}

/// The least time between two changes of a key, in seconds.
fn dwell_s() -> u64 {
    BudgetSettings::default().min_dwell.as_millis() / 1000
}

/// Load that chance lifts over the threshold and lets fall below it, again and again.
#[test]
fn a_key_at_the_threshold_is_split_once_and_stays_split() {
    let mut world = Loop::new();
    for _ in 0..HALF_HOUR {
        world.second(&keys(3, HOT_PER_S));
    }
    for key in ["c0", "c1", "c2"] {
        assert_eq!(world.begun(key).len(), 1, "{key}: {:?}", world.begun(key));
        assert!(world.is_split(key));
    }
}

/// Four buckets carry just as much as this: chance lifts the load over that and lets it fall below, again and again.
#[test]
fn a_key_at_the_edge_of_its_size_grows_once_and_does_not_shrink() {
    let mut world = Loop::new();
    for _ in 0..HALF_HOUR {
        world.second(&keys(3, 80));
    }
    for key in ["c0", "c1", "c2"] {
        assert!(world.begun(key).len() <= 2, "{key}: {:?}", world.begun(key));
        assert!(world.sim.plan(key).unwrap().write.unwrap().buckets() >= 4);
    }
}

/// Load that comes and goes faster than `quiet`.
#[test]
fn a_key_that_comes_and_goes_is_split_once() {
    let mut world = Loop::new();
    for second in 0..HALF_HOUR {
        let on = second % 90 < 45;
        world.second(&keys(3, if on { 60 } else { 0 }));
    }
    for key in ["c0", "c1", "c2"] {
        assert_eq!(world.begun(key).len(), 1, "{key}: {:?}", world.begun(key));
    }
}

/// Load that comes and goes more slowly than `quiet`: every change answers a change of the load, and none comes sooner.
#[test]
fn a_key_changes_no_more_often_than_its_load_and_quiet_say() {
    let mut world = Loop::new();
    for second in 0..HALF_HOUR {
        let on = second % 600 < 300;
        world.second(&keys(3, if on { 60 } else { 0 }));
    }
    for key in ["c0", "c1", "c2"] {
        let begun = world.begun(key);
        assert!((2..=6).contains(&begun.len()), "{key}: {begun:?}");
        assert!(begun.windows(2).all(|pair| pair[1] - pair[0] >= dwell_s()), "{key}: {begun:?}");
    }
}

/// Everything slows down by nine tenths for ten minutes: splits are undone one a minute at most, and not redone at once.
#[test]
fn a_general_slow_down_is_no_wave_of_withdrawals() {
    let mut world = Loop::new();
    let number = 12;
    for second in 0..HALF_HOUR {
        let slow = (600..1200).contains(&second);
        world.second(&keys(number, if slow { 6 } else { 60 }));
        if second == 599 {
            assert!((0..number).all(|key| world.is_split(&format!("c{key}"))), "{:?}", world.begun);
        }
    }
    let back: Vec<u64> = world.begun.iter().filter(|(.., to)| to.is_bare()).map(|(_, second, _)| *second).collect();
    assert!(!back.is_empty() && back.len() <= 10, "{back:?}");
    assert!(back.windows(2).all(|pair| pair[1] - pair[0] >= 60), "{back:?}");
    for key in 0..number {
        let begun = world.begun(&format!("c{key}"));
        assert!(begun.len() <= 3, "{key}: {begun:?}");
        assert!(begun.windows(2).all(|pair| pair[1] - pair[0] >= dwell_s()), "{key}: {begun:?}");
    }
}
