//! Writes wait in hold: as short as can be, one key at a time, and never without a leader who watches it.

use keyheat::plan::{Hindrance, PlanSettings, migration::Wait};
use keyheat::protocol::{History, State};
use keyheat::units::Span;

use super::sim::{Sim, customer, hot, settings};

/// Moments, in seconds from now, at which a hold of the key begins.
fn holds(sim: &mut Sim, key: &str, secs: u64) -> Vec<u64> {
    let mut begun = Vec::new();
    for second in 0..secs {
        let before = sim.states_of(key).iter().filter(|state| **state == "hold").count();
        sim.pass(1);
        if sim.states_of(key).iter().filter(|state| **state == "hold").count() > before {
            begun.push(second);
        }
    }
    begun
}

#[test]
fn a_hold_that_is_not_acknowledged_is_turned_back_and_tried_again_later_and_later() {
    let mut sim = Sim::new(vec![settings()]);
    sim.routers[1].waits_in = vec![State::Hold];
    sim.hot = vec![hot("c42", 700.0)];
    let begun = holds(&mut sim, "c42", 1000);
    // It is turned back after 2 s, and tried again 1, 2, 4 and 8 minutes after that.
    assert_eq!(begun, [0, 62, 184, 426, 908]);
    assert_eq!(sim.states_of("c42")[..4], ["prepare", "hold", "prepare", "hold"]);
    sim.routers[1].waits_in.clear();
    sim.pass(1000);
    assert_eq!(sim.states_of("c42").last(), Some(&"retire"));
}

#[test]
fn a_hold_lasts_no_longer_than_its_limit() {
    let mut sim = Sim::new(vec![settings()]);
    sim.routers[1].waits_in = vec![State::Hold];
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    assert_eq!(sim.plan("c42").unwrap().state, State::Hold);
    sim.now = sim.now.saturating_add(Span::from_millis(1_999));
    sim.settle();
    assert_eq!(sim.plan("c42").unwrap().state, State::Hold);
    sim.now = sim.now.saturating_add(Span::from_millis(1));
    sim.settle();
    assert_eq!(sim.plan("c42").unwrap().state, State::Prepare);
    assert_eq!(sim.planner.hindrances()[&customer("c42")], Hindrance::Waits(Wait::Turn));
    assert!(sim.plan("c42").unwrap().not_after.is_none(), "turning back is never void");
}

#[test]
fn one_key_is_in_hold_at_a_time() {
    let mut sim = Sim::new(vec![settings()]);
    sim.hot = (0..5).map(|number| hot(&format!("c{number}"), 700.0)).collect();
    sim.routers[1].waits_in = vec![State::Hold];
    for _ in 0..600 {
        sim.pass(1);
        let held = sim.states().iter().filter(|(_, state)| *state == "hold").count();
        assert!(held <= 1, "{:?}", sim.states());
    }
    sim.routers[1].waits_in.clear();
    let mut steps = 0;
    while sim.step() {
        steps += 1;
        assert!(steps < 200 && sim.states().iter().filter(|(_, state)| *state == "hold").count() <= 1);
    }
    sim.pass(2000);
    assert!(sim.states().iter().all(|(_, state)| *state == "retire"), "{:?}", sim.states());
}

/// A new leader has not seen how long a hold has lasted: it turns every one back, acknowledged or not, before anything else.
#[test]
fn a_new_leader_turns_every_hold_back_first() {
    let mut sim = Sim::new(vec![settings()]);
    sim.routers[1].waits_in = vec![State::Hold];
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    assert_eq!(sim.plan("c42").unwrap().state, State::Hold);
    sim.routers[1].waits_in.clear();
    sim.follow();
    sim.hot.push(hot("c43", 9000.0));
    sim.new_leader();
    assert!(sim.step());
    assert_eq!(sim.states_of("c42"), ["prepare", "hold", "prepare"]);
    sim.settle();
    assert_eq!(sim.states_of("c42").last(), Some(&"prepare"), "as after any hold that was turned back");
    sim.pass(61);
    assert_eq!(sim.states_of("c42").last(), Some(&"retire"));
}

/// What was sent stays: a new leader goes on where the old one stopped.
#[test]
fn a_new_leader_goes_on_with_what_runs() {
    for stop in [State::Prepare, State::Dual, State::Moving, State::Settled] {
        let mut sim = Sim::new(vec![PlanSettings { history: History::Move, ..settings() }]);
        sim.routers[1].waits_in = vec![stop];
        sim.hot = vec![hot("c42", 700.0)];
        sim.settle();
        let before = sim.plan("c42").unwrap().migration;
        sim.new_leader();
        sim.routers[1].waits_in.clear();
        sim.settle();
        assert_eq!(sim.states_of("c42"), ["prepare", "hold", "dual", "moving", "settled", "retire"], "{stop:?}");
        assert_eq!(sim.plan("c42").unwrap().migration, before);
    }
}

/// Operations in order of need: writes that wait come before anything that begins.
#[test]
fn a_hold_to_end_comes_before_a_key_to_split() {
    let mut sim = Sim::new(vec![settings()]);
    sim.routers[1].waits_in = vec![State::Hold];
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    sim.hot.push(hot("c43", 9000.0));
    sim.routers[1].waits_in.clear();
    sim.follow();
    let sent = sim.decide();
    let keys = sent.iter().filter_map(|operation| match operation {
        keyheat::plan::Operation::Put(record) => Some((record.key.0.clone(), record.state)),
        _ => None,
    });
    assert_eq!(keys.collect::<Vec<_>>(), [(b"c42".to_vec(), State::Dual), (b"c43".to_vec(), State::Prepare)]);
}
