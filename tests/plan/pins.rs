//! What operators have set: a pinned key is split whether it is hot or not, a blocked one stays as it is.

use std::collections::BTreeSet;

use keyheat::plan::{
    BudgetSettings, Disobeyed, Effect, Hindrance, Mapper, MapperKind, Mode, PlanSettings, ShardHash, Wish,
};
use keyheat::protocol::{History, State};
use keyheat::units::Span;

use super::sim::{Sim, customer, hot, settings};

const PIN: Wish = Wish::Pin { buckets: 8, from: None, until: None };

fn buckets(sim: &Sim, key: &str) -> u32 {
    sim.plan(key).map_or(1, |record| record.write.unwrap().buckets())
}

/// A pin from so many seconds ahead to so many.
fn pin(sim: &Sim, buckets: u32, from: u64, until: u64) -> Wish {
    let ahead = |secs| Some(sim.now.saturating_add(Span::from_secs(secs)));
    Wish::Pin { buckets, from: ahead(from), until: ahead(until) }
}

/// A sale known beforehand: bare before its time, split from then on though nobody asks for the key, and bare again after it.
#[test]
fn a_quiet_key_is_split_for_the_time_of_its_pin() {
    for mode in [Mode::Auto, Mode::Propose] {
        let mut sim = Sim::new(vec![PlanSettings { mode, ..settings() }]);
        let wish = pin(&sim, 8, 100, 4000);
        assert_eq!(sim.say("c42", wish), Ok(Effect::Set));
        sim.pass(98);
        assert_eq!(sim.states_of("c42"), Vec::<&str>::new());
        sim.pass(2);
        assert_eq!(sim.states_of("c42"), ["prepare", "hold", "dual", "moving", "settled", "retire"]);
        assert_eq!(buckets(&sim, "c42"), 8);
        let evidence = &sim.plan("c42").unwrap().evidence;
        assert_eq!((evidence.rule.as_str(), evidence.window_ms, evidence.count.upper), ("pinned", 0, 0));
        sim.pass(3890);
        assert_eq!((buckets(&sim, "c42"), sim.states_of("c42").len()), (8, 6), "quiet does not end it");
        sim.pass(20);
        let last = sim.states_of("c42").last().copied();
        match mode {
            Mode::Auto => assert_eq!((buckets(&sim, "c42"), last), (1, Some("retire"))),
            _ => assert_eq!((buckets(&sim, "c42"), last), (8, Some("proposed")), "after it the ordinary rules hold"),
        }
        assert_eq!(sim.plan("c42").unwrap().evidence.rule, "unpinned");
    }
}

#[test]
fn a_pin_neither_shrinks_nor_grows_by_heat_and_is_reached_step_by_step() {
    let mut sim = Sim::new(vec![settings()]);
    sim.hot = vec![hot("c42", 390.0)];
    sim.pass(10);
    assert_eq!(buckets(&sim, "c42"), 4);
    assert_eq!(sim.say("c42", Wish::Pin { buckets: 16, from: None, until: None }), Ok(Effect::Set));
    let mut seen = Vec::new();
    for _ in 0..1500 {
        sim.pass(1);
        seen.push(buckets(&sim, "c42"));
    }
    seen.dedup();
    assert_eq!(seen, [4, 8, 16], "by doubling, and no further");
    let record = sim.plan("c42").unwrap();
    assert_eq!((record.evidence.rule.as_str(), record.evidence.count.lower), ("pinned", 23_400));
    sim.hot = vec![hot("c42", 9000.0)];
    sim.pass(1500);
    assert_eq!(buckets(&sim, "c42"), 16, "not for heat");
    sim.hot.clear();
    sim.pass(1500);
    assert_eq!(buckets(&sim, "c42"), 16, "not for coolness");
    assert_eq!(sim.say("c42", Wish::Pin { buckets: 4, from: None, until: None }), Ok(Effect::Set));
    sim.pass(1500);
    assert_eq!(buckets(&sim, "c42"), 4);
    assert_eq!(sim.say("c42", Wish::Unpin), Ok(Effect::TakenBack));
    sim.pass(700);
    assert_eq!(buckets(&sim, "c42"), 1);
}

/// A pin rests on no count, but it is a change like any other for the store and the topic.
#[test]
fn a_pin_needs_no_counts_and_keeps_to_freeze_and_budget() {
    let budget = BudgetSettings { max_splits: 2, max_changes_per_minute: 1, ..BudgetSettings::default() };
    let mut sim = Sim::with_budget(vec![settings()], budget);
    sim.condition.warming_up = true;
    sim.planner.set_freeze(true);
    for key in ["a", "b", "c"] {
        assert_eq!(sim.say(key, PIN), Ok(Effect::Set), "what is set is no change");
    }
    sim.pass(5);
    assert_eq!(sim.table.plans().len(), 0);
    assert_eq!(sim.planner.hindrances()[&customer("a")], Hindrance::Frozen);
    sim.planner.set_freeze(false);
    sim.pass(5);
    assert_eq!(sim.states(), [("a".to_owned(), "retire")]);
    assert_eq!(sim.planner.hindrances()[&customer("b")], Hindrance::Budget("max_changes_per_minute"));
    sim.pass(300);
    assert_eq!(sim.states().len(), 2);
    assert_eq!(sim.planner.hindrances()[&customer("c")], Hindrance::Budget("max_splits"));
}

#[test]
fn a_new_leader_keeps_what_was_set() {
    let mut sim = Sim::new(vec![settings()]);
    let wish = pin(&sim, 8, 100, 200_000);
    assert_eq!(sim.say("c42", wish), Ok(Effect::Set));
    assert_eq!(sim.say("c43", Wish::Block), Ok(Effect::Set));
    sim.new_leader();
    sim.hot = vec![hot("c43", 900.0)];
    sim.pass(110);
    assert_eq!(buckets(&sim, "c42"), 8);
    sim.new_leader();
    sim.pass(2000);
    assert_eq!((buckets(&sim, "c42"), sim.plan("c43")), (8, None));
    assert_eq!(sim.planner.hindrances()[&customer("c43")], Hindrance::Blocked);
}

#[test]
fn a_pin_in_the_past_is_forgotten_after_a_day() {
    let mut sim = Sim::new(vec![settings()]);
    let wish = pin(&sim, 8, 10, 20);
    assert_eq!(sim.say("c42", wish), Ok(Effect::Set));
    sim.pass(30);
    sim.now = sim.now.saturating_add(Span::from_secs(86_380));
    sim.settle();
    assert!(sim.table.policy(&customer("c42")).is_some());
    sim.now = sim.now.saturating_add(Span::from_secs(20));
    sim.settle();
    assert!(sim.table.policy(&customer("c42")).is_none());
}

#[test]
fn buckets_of_a_quiet_key_are_spread_over_the_declared_shards() {
    let shards = (0..8).map(|shard| format!("s{shard}")).collect();
    let mapper = Mapper::new(MapperKind::Modulo(ShardHash::Murmur2), shards).unwrap();
    let mut sim = Sim::new(vec![PlanSettings { mapper: Some(mapper.clone()), ..settings() }]);
    assert_eq!(sim.say("c42", PIN), Ok(Effect::Set));
    sim.pass(1);
    let record = sim.plan("c42").unwrap();
    let write = record.write.unwrap();
    let shard = |bucket| mapper.shard_of(format!("c42:{}", write.label(bucket).unwrap()).as_bytes());
    let places: BTreeSet<usize> = (0..8).map(shard).collect();
    assert_eq!(places.len(), 8);
    let prediction = &record.prediction;
    assert_eq!((prediction.hottest_bucket_share, prediction.hottest_shard_after), (0.125, None));
}

#[test]
fn a_pin_ends_a_proposal_of_another_size_and_needs_nobody_for_its_own() {
    for (wanted, states) in [(8, &["proposed", "prepare"][..]), (32, &["proposed", "end", "prepare"])] {
        let mut sim = Sim::new(vec![PlanSettings { mode: Mode::Propose, ..settings() }]);
        sim.hot = vec![hot("c42", 700.0)];
        sim.pass(3);
        assert_eq!(sim.states_of("c42"), ["proposed"]);
        assert_eq!(sim.say("c42", Wish::Pin { buckets: wanted, from: None, until: None }), Ok(Effect::Set));
        sim.pass(1);
        assert_eq!(&sim.states_of("c42")[..states.len()], states);
        assert_eq!(buckets(&sim, "c42"), wanted);
    }
}

/// The way back from a split that did not help is proposed or has just begun when the key is pinned to that very split: the pin ends it
/// and is not taken for its approval.
#[test]
fn a_pin_ends_the_way_back_from_a_split_that_did_not_help() {
    for mode in [Mode::Propose, Mode::Auto] {
        let mut sim = Sim::new(vec![PlanSettings { mode, ..settings() }]);
        sim.spread = false;
        sim.hot = vec![hot("c42", 700.0)];
        sim.settle();
        sim.planner.approve(&customer("c42"));
        sim.settle();
        sim.routers[0].waits_in = vec![State::Prepare];
        sim.pass(310);
        let back = sim.plan("c42").unwrap();
        assert!(back.did_not_help() && back.migration.to.is_bare() && back.write.unwrap().buckets() == 8, "{back:?}");
        assert_eq!(sim.say("c42", PIN), Ok(Effect::Set));
        sim.routers[0].waits_in.clear();
        sim.pass(600);
        assert_eq!(buckets(&sim, "c42"), 8);
        assert!(sim.states_of("c42").contains(&"round"), "{mode:?}: {:?}", sim.states_of("c42"));
    }
}

#[test]
fn a_blocked_key_is_neither_split_nor_grown_nor_shrunk() {
    let mut sim = Sim::new(vec![settings()]);
    sim.hot = vec![hot("c42", 390.0)];
    sim.pass(400);
    assert_eq!(buckets(&sim, "c42"), 4);
    assert_eq!(sim.say("c42", Wish::Block), Ok(Effect::Set));
    sim.hot = vec![hot("c42", 3000.0), hot("c43", 900.0)];
    assert_eq!(sim.say("c43", Wish::Block), Ok(Effect::Set));
    sim.pass(1000);
    sim.hot.clear();
    sim.pass(2000);
    assert_eq!((buckets(&sim, "c42"), sim.plan("c43")), (4, None));
    assert_eq!(sim.say("c42", Wish::Unblock), Ok(Effect::TakenBack));
    sim.pass(700);
    assert_eq!(buckets(&sim, "c42"), 1);
}

#[test]
fn a_block_ends_a_split_that_no_write_has_entered() {
    for mode in [Mode::Auto, Mode::Propose] {
        let mut sim = Sim::new(vec![PlanSettings { mode, ..settings() }]);
        sim.routers[1].waits_in = vec![State::Prepare];
        sim.hot = vec![hot("c42", 700.0)];
        sim.pass(3);
        assert_eq!(sim.say("c42", Wish::Block), Ok(Effect::Set));
        sim.routers[1].waits_in.clear();
        sim.pass(1000);
        let last = if mode == Mode::Auto { "round" } else { "end" };
        assert_eq!((sim.states_of("c42").last(), buckets(&sim, "c42")), (Some(&last), 1));
    }
}

#[test]
fn what_cannot_be_pinned_is_refused_with_the_rule() {
    let keys = |name: &str| vec![name.as_bytes().to_vec()];
    let limited = PlanSettings { max_buckets: 16, block: keys("listed"), ..settings() };
    let observed = PlanSettings { keyspace: "object".into(), mode: Mode::Observe, ..settings() };
    let mut sim = Sim::new(vec![limited, observed]);
    let mut refused = |key: &str, wish: Wish| sim.say(key, wish).unwrap_err();
    let of = |buckets| Wish::Pin { buckets, from: None, until: None };
    for wrong in [0, 1, 3, 512] {
        assert_eq!(refused("c42", of(wrong)), Disobeyed::Buckets(wrong));
    }
    assert_eq!(refused("c42", of(32)), Disobeyed::AboveMost { buckets: 32, most: 16 });
    assert_eq!(refused("listed", of(4)), Disobeyed::Listed);
    assert_eq!(refused("", of(4)), Disobeyed::Key(0));
    assert_eq!(refused(&"k".repeat(1025), of(4)), Disobeyed::Key(1025));
    assert_eq!(refused("c42", Wish::Unpin), Disobeyed::NotPinned);
    assert_eq!(refused("c42", Wish::Unblock), Disobeyed::NotBlocked);
    let wish = pin(&sim, 4, 100, 100);
    assert!(matches!(sim.say("c42", wish), Err(Disobeyed::EndsFirst { .. })));
    let past = Wish::Pin { buckets: 4, from: None, until: Some(sim.now) };
    assert!(matches!(sim.say("c42", past), Err(Disobeyed::Past(_))));
    let elsewhere = keyheat::protocol::PlanKey::new("orders", b"c42");
    let nowhere = sim.say_of(elsewhere, of(4), None).unwrap_err();
    assert_eq!(nowhere.to_string(), "no keyspace 'orders'; there are: customer, object");
    let object = keyheat::protocol::PlanKey::new("object", b"c42");
    assert_eq!(sim.say_of(object, of(4), None), Err(Disobeyed::Observed));
    assert_eq!(sim.say_of(customer("c42"), of(4), Some("x".repeat(257))), Err(Disobeyed::Reason(257)));
    let escaped = keyheat::protocol::PlanKey::new("customer", &[1; 1024]);
    assert!(matches!(sim.say_of(escaped, of(4), None), Err(Disobeyed::TooLong(_))));
    assert_eq!(sim.table.policies().len(), 0);
    assert_eq!(sim.say_of(customer("c42"), of(4), Some("x".repeat(256))), Ok(Effect::Set));
    assert_eq!(sim.say("c42", Wish::Unblock), Err(Disobeyed::NotBlocked));
}

/// A limit that was lowered after the pin, and records that stay where they are: the pin waits, and it is said why.
#[test]
fn a_pin_that_has_become_impossible_waits_and_says_why() {
    let mut sim = Sim::new(vec![settings()]);
    sim.planner.set_freeze(true);
    assert_eq!(sim.say("c42", PIN), Ok(Effect::Set));
    sim.keyspaces = vec![PlanSettings { max_buckets: 4, ..settings() }];
    sim.new_leader();
    sim.pass(1);
    assert_eq!(sim.planner.hindrances()[&customer("c42")], Hindrance::PinnedAbove { buckets: 8, most: 4 });
    sim.keyspaces =
        vec![PlanSettings { writes: keyheat::protocol::Writes::Insert, history: History::Keep, ..settings() }];
    sim.new_leader();
    sim.pass(400);
    assert_eq!(buckets(&sim, "c42"), 8);
    assert_eq!(sim.say("c42", Wish::Pin { buckets: 2, from: None, until: None }), Ok(Effect::Set));
    sim.pass(400);
    assert_eq!(sim.planner.hindrances()[&customer("c42")].label(), "record");
    assert_eq!(buckets(&sim, "c42"), 8);
}
