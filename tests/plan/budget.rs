//! Limits over all keys (I8): how many splits, how fast, which keys, and the freeze.

use keyheat::plan::{BudgetSettings, Hindrance, Mode, PlanSettings};
use keyheat::units::{Estimate, Span};

use super::sim::{Sim, customer, hot, settings};

fn many(number: usize) -> Vec<keyheat::engine::HotKey> {
    (0..number).map(|number| hot(&format!("c{number}"), 200.0 + number as f64)).collect()
}

#[test]
fn no_more_splits_than_allowed_and_the_hottest_first() {
    let mut sim = Sim::with_budget(vec![settings()], BudgetSettings { max_splits: 3, ..BudgetSettings::default() });
    sim.hot = many(6);
    sim.pass(300);
    let keys: Vec<_> = sim.states().into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["c3", "c4", "c5"]);
    assert_eq!(sim.planner.hindrances()[&customer("c0")], Hindrance::Budget("max_splits"));
}

#[test]
fn no_more_migrations_a_minute_than_allowed() {
    let budget = BudgetSettings { max_changes_per_minute: 2, ..BudgetSettings::default() };
    let mut sim = Sim::with_budget(vec![settings()], budget);
    sim.hot = many(5);
    let mut after = Vec::new();
    for _ in 0..4 {
        sim.pass(59);
        after.push(sim.table.plans().len());
        sim.pass(1);
    }
    assert_eq!(after, [2, 4, 5, 5]);
}

/// The count is taken from the records: a new leader does not begin it anew.
#[test]
fn a_new_leader_keeps_to_the_budget() {
    let budget = BudgetSettings { max_changes_per_minute: 2, ..BudgetSettings::default() };
    let mut sim = Sim::with_budget(vec![settings()], budget);
    sim.hot = many(5);
    sim.pass(10);
    for _ in 0..3 {
        sim.new_leader();
        sim.pass(10);
    }
    assert_eq!(sim.table.plans().len(), 2);
}

#[test]
fn proposals_are_limited_as_well() {
    let budget = BudgetSettings { max_splits: 3, max_changes_per_minute: 2, ..BudgetSettings::default() };
    let mut sim = Sim::with_budget(vec![PlanSettings { mode: Mode::Propose, ..settings() }], budget);
    sim.hot = many(6);
    sim.pass(30);
    assert_eq!(sim.table.plans().len(), 2);
    sim.pass(300);
    assert_eq!(sim.table.plans().len(), 3);
}

#[test]
fn a_freeze_stops_what_is_new_and_nothing_else() {
    let mut sim = Sim::new(vec![settings()]);
    sim.hot = vec![hot("c1", 700.0)];
    assert!(sim.step());
    sim.planner.set_freeze(true);
    sim.hot.push(hot("c2", 900.0));
    sim.pass(60);
    assert_eq!(sim.states(), [("c1".to_owned(), "retire")]);
    assert_eq!(sim.planner.hindrances()[&customer("c2")], Hindrance::Frozen);
    sim.hot.clear();
    sim.pass(3600);
    assert_eq!(sim.plan("c1").unwrap().write.unwrap().buckets(), 8, "nothing is withdrawn either");
    sim.planner.set_freeze(false);
    sim.settle();
    assert!(sim.plan("c1").unwrap().write.unwrap().is_bare());
}

#[test]
fn lists_say_which_keys_may_be_split() {
    let keys = |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>();
    let mut sim = Sim::new(vec![PlanSettings { allow: keys(&["c1", "c2"]), block: keys(&["c2"]), ..settings() }]);
    sim.hot = many(4);
    sim.pass(60);
    assert_eq!(sim.states(), [("c1".to_owned(), "retire")]);
    assert_eq!(sim.planner.hindrances()[&customer("c2")], Hindrance::Listed);
}

#[test]
fn keyspaces_are_planned_apart() {
    let object = PlanSettings { keyspace: "object".into(), mode: Mode::Propose, ..settings() };
    let mut sim = Sim::new(vec![settings(), object]);
    let mut other = hot("c42", 700.0);
    other.keyspace = 1;
    let mut stray = hot("c42", 700.0);
    stray.keyspace = 7;
    sim.hot = vec![hot("c42", 700.0), other, stray];
    sim.settle();
    let states: Vec<_> =
        sim.table.plans().map(|(key, entry)| (key.keyspace.as_str(), entry.record.state.label())).collect();
    assert_eq!(states, [("customer", "settled"), ("object", "proposed")]);
}

#[test]
fn a_router_that_comes_late_is_only_waited_for() {
    let mut sim = Sim::new(vec![settings()]);
    sim.routers[0].stuck = true;
    sim.hot = vec![hot("c42", 700.0)];
    sim.pass(300);
    assert_eq!(sim.states_of("c42"), ["prepare"]);
    sim.routers[0].stuck = false;
    sim.now = sim.now.saturating_add(Span::from_secs(1));
    sim.settle();
    assert_eq!(sim.states_of("c42").last(), Some(&"retire"));
}

/// A key that is hot only by hysteresis, its count being below the threshold again, begins nothing: a gap in the input would else be
/// planned on half-filled counts.
#[test]
fn nothing_begins_while_the_count_is_below_the_threshold() {
    let mut sim = Sim::new(vec![settings()]);
    let mut cooling = hot("a", 700.0);
    cooling.reason.count = Estimate::exact(cooling.reason.threshold - 1);
    sim.hot = vec![cooling.clone()];
    sim.settle();
    assert_eq!(sim.table.plans().len(), 0);
    assert_eq!(sim.planner.hindrances()[&customer("a")], Hindrance::Cooling);
    cooling.reason.count = Estimate::exact(cooling.reason.threshold);
    sim.hot = vec![cooling];
    sim.settle();
    assert_eq!(sim.table.plans().len(), 1);
}
