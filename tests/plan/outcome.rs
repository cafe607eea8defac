//! What a split was measured to do: published once, and one that did not help is undone.

use keyheat::plan::{Hindrance, Mode, PlanSettings, migration::CannotBegin, migration::Wait};
use keyheat::protocol::{History, Layout, Outcome, PlanRecord, State};
use keyheat::units::{Estimate, Span};

use super::sim::{Sim, customer, hot, settings};

const COOLDOWN_S: u64 = 1800;

/// A world in which a key is hot and whose store spreads its buckets, or leaves all of them on one shard.
fn world(settings: PlanSettings, spread: bool) -> Sim {
    let mut sim = Sim::new(vec![settings]);
    sim.spread = spread;
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    sim
}

fn outcome(sim: &Sim) -> Option<&Outcome> {
    sim.plan("c42").and_then(|record| record.outcome.as_ref())
}

fn buckets(sim: &Sim) -> u32 {
    sim.plan("c42").and_then(|record| record.write).map_or(1, Layout::buckets)
}

/// Records with an outcome of the migration that they are of.
fn told(sim: &Sim) -> Vec<PlanRecord> {
    let records = sim.history("c42").into_iter().flatten();
    records.filter(|record| record.outcome.is_some() && !record.migration.to.is_bare()).collect()
}

#[test]
fn a_split_that_helps_is_told_once_and_nothing_moves() {
    let mut sim = world(settings(), true);
    let settled = sim.plan("c42").unwrap().clone();
    sim.pass(119);
    assert_eq!(
        sim.plan("c42"),
        Some(&settled),
        "two windows have not passed: numbers would reach back before the split"
    );
    sim.pass(1);
    let outcome = outcome(&sim).unwrap().clone();
    assert_eq!(PlanRecord { outcome: None, ..sim.plan("c42").unwrap().clone() }, settled);
    assert!(outcome.helped);
    assert_eq!((outcome.hottest_bucket_share, outcome.key_shard_share), (Some(0.125), Some(0.125)));
    assert_eq!((outcome.hottest_shard, outcome.window_ms), (None, Some(60_000)));
    assert_eq!(outcome.settled_at.as_deref(), Some("2026-11-30T10:11:32.120Z"));
    assert_eq!(outcome.measured_at, "2026-11-30T10:13:32.120Z");
    sim.pass(3600);
    sim.new_leader();
    sim.pass(600);
    assert_eq!(told(&sim).len(), 1);
    assert_eq!(buckets(&sim), 8);
}

#[test]
fn what_cannot_be_trusted_is_not_measured() {
    let mut sim = world(settings(), false);
    sim.count_of_ten(9);
    sim.pass(600);
    assert_eq!(told(&sim).len(), 0);
    sim.count_of_ten(10);
    sim.condition.catching_up = true;
    sim.pass(600);
    sim.condition.catching_up = false;
    // Event time stands two seconds before the second window ends.
    sim.condition.watermark = Some(sim.now);
    let settled = world(settings(), false).now;
    sim.condition.watermark = Some(settled.saturating_add(Span::from_secs(119)));
    sim.settle();
    assert_eq!(told(&sim).len(), 0);
    sim.condition.watermark = Some(settled.saturating_add(Span::from_secs(120)));
    sim.settle();
    assert_eq!(told(&sim).len(), 1);
}

/// Nothing is counted of a cool key by bucket: it is measured when it is hot again.
#[test]
fn a_key_that_has_gone_cool_is_measured_when_it_is_hot_again() {
    let mut sim = world(settings(), true);
    sim.hot.clear();
    sim.pass(500);
    assert_eq!(told(&sim).len(), 0);
    let mut few = hot("c42", 700.0);
    few.profile.buckets.fill(3);
    sim.hot = vec![few];
    sim.pass(10);
    assert_eq!(told(&sim).len(), 0, "768 events for 8 buckets say too little");
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    assert_eq!(told(&sim).len(), 1);
}

/// Routers that do not obey, or a store with one shard: all events still name the shard of the bare key.
#[test]
fn a_split_that_did_not_help_is_undone_and_its_key_rests() {
    let mut sim = world(settings(), false);
    sim.pass(120);
    let failed = outcome(&sim).unwrap().clone();
    assert_eq!((failed.helped, failed.hottest_bucket_share, failed.key_shard_share), (false, Some(0.125), Some(1.0)));
    assert_eq!(buckets(&sim), 8);
    sim.pass(179);
    assert_eq!((buckets(&sim), sim.planner.hindrances()[&customer("c42")]), (8, Hindrance::Dwell));
    sim.pass(1);
    assert_eq!(buckets(&sim), 1, "a dwell after it had settled it goes back, though it is hot");
    let back = sim.history("c42").split_off(7);
    assert!(back.iter().flatten().all(|record| record.outcome.as_ref() == Some(&failed)), "{back:?}");
    assert_eq!(sim.states_of("c42")[6..], ["prepare", "hold", "dual", "moving", "settled", "retire"]);
    sim.pass(COOLDOWN_S - 1);
    assert_eq!((buckets(&sim), sim.planner.hindrances()[&customer("c42")]), (1, Hindrance::Cooldown));
    sim.pass(1);
    assert_eq!(buckets(&sim), 8, "after that it may be split again");
    assert_eq!(outcome(&sim), None);
}

/// Whatever a leader knows of it is on the topic: another one goes on at any point.
#[test]
fn a_new_leader_undoes_it_as_well_and_lets_the_key_rest() {
    let mut sim = world(settings(), false);
    sim.pass(120);
    sim.new_leader();
    sim.pass(180);
    assert_eq!(buckets(&sim), 1);
    sim.new_leader();
    sim.pass(COOLDOWN_S - 1);
    sim.new_leader();
    sim.settle();
    assert_eq!((buckets(&sim), sim.planner.hindrances()[&customer("c42")]), (1, Hindrance::Cooldown));
    sim.pass(1);
    assert_eq!(buckets(&sim), 8);
}

/// Between prepare and dual of the way back too: heat is no reason to turn it round.
#[test]
fn the_way_back_is_not_turned_round_by_heat() {
    let mut sim = world(settings(), false);
    sim.routers[0].waits_in = vec![State::Prepare];
    sim.pass(400);
    assert_eq!(sim.states_of("c42").last(), Some(&"prepare"));
    sim.new_leader();
    sim.pass(1000);
    assert_eq!(sim.states_of("c42").last(), Some(&"prepare"));
    sim.routers[0].waits_in.clear();
    sim.settle();
    assert_eq!(buckets(&sim), 1);
}

/// A key that is cool by then goes back all the same, without waiting to be quiet.
#[test]
fn a_failed_split_of_a_cool_key_goes_back_too() {
    let mut sim = world(settings(), false);
    sim.pass(120);
    sim.hot.clear();
    sim.pass(180);
    assert_eq!(buckets(&sim), 1);
    assert!(outcome(&sim).is_some_and(|outcome| !outcome.helped));
}

/// The record of the bare key is why the key rests: it is not removed before.
#[test]
fn its_tombstone_waits_for_the_cooldown() {
    let week = 7 * 86_400;
    let mut sim = world(PlanSettings { cooldown: Span::from_secs(week + 3600), ..settings() }, false);
    sim.pass(300);
    assert_eq!(buckets(&sim), 1);
    sim.hot.clear();
    sim.now = sim.now.saturating_add(Span::from_secs(week + 1));
    sim.settle();
    assert!(sim.plan("c42").is_some());
    sim.now = sim.now.saturating_add(Span::from_secs(3600));
    sim.settle();
    assert!(sim.plan("c42").is_none());
}

#[test]
fn in_propose_the_way_back_is_proposed() {
    let mut sim = world(PlanSettings { mode: Mode::Propose, ..settings() }, false);
    assert!(sim.planner.approve(&customer("c42")));
    sim.settle();
    sim.pass(600);
    let proposal = sim.plan("c42").unwrap().clone();
    assert_eq!((proposal.state, proposal.migration.to, buckets(&sim)), (State::Proposed, Layout::BARE, 8));
    assert!(proposal.did_not_help());
    assert_eq!(sim.planner.hindrances()[&customer("c42")], Hindrance::Waits(Wait::Approval));
    assert!(sim.planner.approve(&customer("c42")));
    sim.settle();
    assert_eq!(buckets(&sim), 1);
    sim.pass(COOLDOWN_S - 1);
    assert_eq!(sim.planner.hindrances()[&customer("c42")], Hindrance::Cooldown);
    sim.pass(1);
    assert_eq!(sim.plan("c42").unwrap().state, State::Proposed);
}

/// Buckets count as well as shards: a request id that grew hot after the split leaves its bucket as hot as the key was.
#[test]
fn the_hottest_bucket_is_held_against_the_bare_key_too() {
    for (hot_counter, helped) in [(250_000, true), (600_000, false)] {
        let mut sim = world(settings(), true);
        sim.hot[0].profile.buckets[7] = hot_counter;
        sim.hot[0].profile.shards.clear();
        sim.pass(120);
        let outcome = outcome(&sim).unwrap();
        assert_eq!((outcome.helped, outcome.key_shard_share), (helped, None), "{outcome:?}");
    }
}

/// What may be chance is not held against a split.
#[test]
fn a_share_just_over_the_limit_on_few_events_is_chance() {
    for (named, helped) in [(1_000_u64, true), (100_000, false)] {
        let mut sim = world(settings(), false);
        let tenths = |number| Estimate::exact(number * named / 10);
        sim.hot[0].profile.shards = vec![(b"s0"[..].into(), tenths(7)), (b"s1"[..].into(), tenths(3))];
        sim.pass(120);
        assert_eq!(outcome(&sim).unwrap().helped, helped, "{named}");
    }
}

#[test]
fn kept_layouts_are_measured_in_moving_and_cannot_be_undone() {
    let mut sim = world(PlanSettings { history: History::Keep, ..settings() }, false);
    sim.pass(3600);
    assert_eq!((told(&sim).len(), sim.plan("c42").unwrap().state, buckets(&sim)), (1, State::Moving, 8));
    assert_eq!(sim.planner.hindrances()[&customer("c42")], Hindrance::Record(CannotBegin::Kept));
}

#[test]
fn growth_is_measured_anew() {
    let mut sim = world(settings(), true);
    sim.pass(120);
    sim.hot = vec![hot("c42", 1500.0)];
    sim.pass(181);
    assert_eq!(buckets(&sim), 16);
    assert_eq!(outcome(&sim), None, "the old outcome is of another layout");
    sim.pass(120);
    assert_eq!(outcome(&sim).unwrap().hottest_bucket_share, Some(0.0625));
    assert_eq!(told(&sim).len(), 2);
}

/// Nothing moved by it: the dwell of the key runs from when it settled, and nothing of a proposal or a way back is measured.
#[test]
fn only_splits_are_measured() {
    let mut sim = world(settings(), true);
    sim.hot.clear();
    sim.pass(700);
    assert_eq!(buckets(&sim), 1);
    sim.hot = vec![hot("c42", 50.0)];
    sim.pass(200);
    assert_eq!((told(&sim).len(), outcome(&sim)), (0, None));
}

#[test]
fn a_keyspace_that_is_observed_is_told_nothing() {
    let mut sim = world(settings(), true);
    sim.keyspaces[0].mode = Mode::Observe;
    sim.new_leader();
    sim.pass(600);
    assert_eq!(told(&sim).len(), 0);
}
