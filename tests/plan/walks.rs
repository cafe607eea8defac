//! Whole migrations: from a hot key to a settled split, on to growth, shrinking and back to the bare key.

use std::sync::Arc;

use keyheat::engine::ShardLoad;
use keyheat::plan::{Hindrance, Mapper, MapperKind, Mode, PlanSettings, ShardHash, migration::Wait};
use keyheat::protocol::{
    AckTopicKey, BackfillReport, Delete, History, Layout, Nonce, PlanRecord, State, Version, Writes, plan_seed,
};
use keyheat::units::{Estimate, Span};

use super::sim::{Sim, customer, hot, moved, settings};

const UPDATE: [&str; 6] = ["prepare", "hold", "dual", "moving", "settled", "retire"];

#[test]
fn a_hot_key_is_split_and_settled() {
    for (writes, states) in [
        (Writes::Update, UPDATE.as_slice()),
        (Writes::Insert, &["prepare", "dual", "moving", "settled", "retire"]),
        (Writes::Versioned, &["prepare", "dual", "moving", "settled", "retire"]),
    ] {
        let mut sim = Sim::new(vec![PlanSettings { writes, ..settings() }]);
        sim.hot = vec![hot("c42", 700.0)];
        sim.settle();
        assert_eq!(sim.states_of("c42"), states);
        let record = sim.plan("c42").unwrap();
        assert_eq!((record.write.unwrap().buckets(), record.bucket.seed), (8, plan_seed(b"c42", 1)));
        assert_eq!((record.retire.as_slice(), record.delete), ([Layout::BARE].as_slice(), Delete::Remove));
        assert_eq!(record.evidence.config, "5b1c00000000d2a7");
        assert_eq!(record.evidence.end_offsets["0"], 88_120);
        assert!(!sim.step(), "nothing more is to be done");
    }
}

/// Everything that a router obeys comes from records that pass its own checks, and each names the migration by its first version.
#[test]
fn every_record_of_a_walk_names_its_migration() {
    let mut sim = Sim::new(vec![settings()]);
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    let first = sim.log.iter().position(|record| record.key.starts_with(b"plan/")).unwrap();
    let version = sim.log[first].parsed_headers().unwrap().version;
    for record in sim.history("c42").into_iter().flatten() {
        assert_eq!(record.migration.version, version);
        assert_eq!(record.check(), Ok(()));
    }
}

#[test]
fn no_gate_opens_before_every_router_has_acknowledged() {
    let mut sim = Sim::new(vec![settings()]);
    sim.hot = vec![hot("c42", 700.0)];
    for state in [State::Prepare, State::Hold, State::Dual, State::Moving, State::Settled] {
        sim.routers[1].waits_in = vec![state];
        sim.settle();
        assert_eq!(sim.plan("c42").unwrap().state, state);
        assert!(sim.plan("c42").unwrap().retire.is_empty());
        let waits = Hindrance::Waits(Wait::Routers);
        assert_eq!(sim.planner.hindrances().get(&customer("c42")), Some(&waits), "{state:?}");
    }
    sim.routers[1].waits_in.clear();
    sim.settle();
    assert_eq!(sim.states_of("c42"), UPDATE);
}

/// With fewer routers than expected no gate opens: nobody would obey.
#[test]
fn no_gate_opens_without_routers() {
    let mut sim = Sim::new(vec![settings()]);
    sim.routers.clear();
    for id in ["r1", "r2"] {
        sim.tell(&AckTopicKey::Router { id: id.into(), nonce: Nonce(1) }, None);
    }
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    assert_eq!(sim.states_of("c42"), ["prepare"]);
}

/// A router that has joined and knows nothing yet holds every gate.
#[test]
fn a_gate_waits_for_a_router_that_has_just_joined() {
    let mut sim = Sim::new(vec![settings()]);
    sim.routers[1].stuck = true;
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    assert_eq!(sim.states_of("c42"), ["prepare"]);
    sim.routers[1].stuck = false;
    sim.settle();
    assert_eq!(sim.states_of("c42"), UPDATE);
}

#[test]
fn moving_waits_for_the_proof_of_this_very_migration() {
    let mut sim = Sim::new(vec![settings()]);
    sim.owner_works = false;
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    assert_eq!(sim.plan("c42").unwrap().state, State::Moving);
    let version = sim.plan("c42").unwrap().migration.version;
    let key = AckTopicKey::Backfill { key: customer("c42"), layout: 1 };
    let proof = moved(&customer("c42"), 1, version);
    for wrong in [
        BackfillReport { migration: Version { epoch: 0, seq: 9 }, ..proof.clone() },
        BackfillReport { moved: 9, ..proof.clone() },
        BackfillReport { checksum_to: "cd".into(), ..proof.clone() },
        BackfillReport { done: false, ..proof.clone() },
    ] {
        sim.tell(&key, Some(wrong.encode()));
        sim.settle();
        assert_eq!(sim.plan("c42").unwrap().state, State::Moving, "{wrong:?}");
    }
    assert_eq!(sim.planner.hindrances()[&customer("c42")], Hindrance::Waits(Wait::Owner));
    sim.tell(&key, Some(proof.encode()));
    sim.settle();
    assert_eq!(sim.states_of("c42").last(), Some(&"retire"));
    assert_eq!(sim.planner.hindrances()[&customer("c42")], Hindrance::Waits(Wait::Retirement));
}

#[test]
fn history_decides_how_moving_ends() {
    let mut sim = Sim::new(vec![PlanSettings { history: History::Expire, ..settings() }]);
    sim.owner_works = false;
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    sim.pass(59);
    assert_eq!(sim.plan("c42").unwrap().state, State::Moving);
    sim.pass(1);
    assert_eq!(sim.states_of("c42").last(), Some(&"retire"));

    let mut sim = Sim::new(vec![PlanSettings { history: History::Keep, ..settings() }]);
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    sim.pass(3600);
    assert_eq!(sim.states_of("c42"), ["prepare", "hold", "dual", "moving"]);

    let mut sim = Sim::new(vec![PlanSettings { history: History::None, ..settings() }]);
    sim.owner_works = false;
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    assert_eq!(sim.states_of("c42").last(), Some(&"retire"));
}

#[test]
fn a_split_grows_by_doubling_with_the_same_place_and_seed() {
    let shards = (0..8).map(|number| format!("s{number}")).collect();
    let mapper = Mapper::new(MapperKind::Modulo(ShardHash::Murmur2), shards).unwrap();
    let mut sim = Sim::new(vec![PlanSettings { mapper: Some(mapper), ..settings() }]);
    sim.hot = vec![hot("c42", 350.0)];
    sim.settle();
    let before = sim.plan("c42").unwrap().clone();
    assert_eq!(before.write.unwrap().buckets(), 4);
    sim.hot = vec![hot("c42", 1500.0)];
    sim.settle();
    assert_eq!(sim.plan("c42").unwrap(), &before, "not within min_dwell");
    sim.pass(301);
    let after = sim.plan("c42").unwrap();
    assert_eq!((after.migration.from, after.migration.to.buckets()), (before.migration.to, 8));
    assert_eq!(after.migration.to.first(), before.migration.to.first());
    assert_eq!(after.bucket, before.bucket);
    assert_eq!(after.retire, [before.migration.to]);
    sim.pass(301);
    assert_eq!(sim.plan("c42").unwrap().write.unwrap().buckets(), 16);
    sim.pass(3600);
    assert_eq!(sim.plan("c42").unwrap().write.unwrap().buckets(), 16, "as many as it needs");
}

/// A report on an earlier migration out of the same layout, late or kept from then, counts for nothing.
#[test]
fn retirement_waits_for_the_report_of_this_very_migration() {
    let mut sim = Sim::new(vec![PlanSettings { history: History::None, ..settings() }]);
    sim.hot = vec![hot("c42", 350.0)];
    sim.settle();
    sim.hot.clear();
    sim.pass(602);
    assert!(sim.plan("c42").unwrap().write.unwrap().is_bare());
    // Both reports on layout 0 and layout 1 are on the topic when the key leaves layout 0 again, and the owner is away.
    sim.owner_works = false;
    sim.hot = vec![hot("c42", 350.0)];
    sim.pass(301);
    let again = sim.plan("c42").unwrap().clone();
    assert_eq!((again.migration.from, again.retire.as_slice()), (Layout::BARE, [Layout::BARE].as_slice()));
    sim.hot = vec![hot("c42", 1500.0)];
    sim.pass(600);
    let told = sim.plan("c42").unwrap().clone();
    assert!(told.outcome.is_some(), "what it does is seen before the purge has ended");
    assert_eq!(PlanRecord { outcome: None, ..told }, again);
    assert_eq!(sim.planner.hindrances()[&customer("c42")], Hindrance::Waits(Wait::Retirement));
}

/// The next migration of a key begins only when the owner has reported the old layout empty.
#[test]
fn nothing_begins_before_the_last_migration_is_retired() {
    let mut sim = Sim::new(vec![PlanSettings { history: History::None, ..settings() }]);
    sim.owner_works = false;
    sim.hot = vec![hot("c42", 350.0)];
    sim.settle();
    sim.hot = vec![hot("c42", 1500.0)];
    sim.pass(3600);
    assert_eq!(sim.states_of("c42").last(), Some(&"retire"));
    sim.owner_works = true;
    sim.settle();
    assert_eq!(sim.plan("c42").unwrap().migration.to.buckets(), 8);
}

#[test]
fn a_cooler_key_shrinks_by_halves_and_a_cool_one_goes_back_and_loses_its_record() {
    let mut sim = Sim::new(vec![settings()]);
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    let mut cooler = hot("c42", 700.0);
    cooler.rate = hot("c42", 120.0).rate;
    sim.hot = vec![cooler];
    sim.pass(599);
    assert_eq!(sim.plan("c42").unwrap().write.unwrap().buckets(), 8, "not before it was quiet for long enough");
    sim.pass(2);
    assert_eq!(sim.plan("c42").unwrap().write.unwrap().buckets(), 4);
    sim.pass(1200);
    assert_eq!(sim.plan("c42").unwrap().write.unwrap().buckets(), 2, "half of two is no split");
    sim.hot.clear();
    sim.pass(599);
    assert_eq!(sim.plan("c42").unwrap().write.unwrap().buckets(), 2);
    sim.pass(2);
    let back = sim.plan("c42").unwrap();
    assert_eq!((back.write, back.read.as_slice()), (Some(Layout::BARE), [Layout::BARE].as_slice()));
    assert_eq!(sim.states_of("c42").last(), Some(&"retire"));
    sim.now = sim.now.saturating_add(Span::from_secs(7 * 86_400 - 60));
    sim.settle();
    assert!(sim.plan("c42").is_some(), "routers that were away are still to be told");
    sim.pass(61);
    assert_eq!(sim.states_of("c42").last(), Some(&"end"));
    // Hot again: a split anew.
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    assert_eq!(sim.states_of("c42").last(), Some(&"retire"));
}

#[test]
fn a_proposal_waits_for_approval() {
    let mut sim = Sim::new(vec![PlanSettings { mode: Mode::Propose, ..settings() }]);
    sim.hot = vec![hot("c42", 700.0)];
    sim.pass(60);
    assert_eq!(sim.states_of("c42"), ["proposed"]);
    let record = sim.plan("c42").unwrap();
    assert_eq!((record.write, record.read.as_slice()), (Some(Layout::BARE), [Layout::BARE].as_slice()));
    assert!(!sim.planner.approve(&customer("c43")), "there is none");
    assert!(sim.planner.approve(&customer("c42")));
    sim.settle();
    assert_eq!(sim.states_of("c42")[1..], UPDATE);
    let limits: Vec<_> = sim.history("c42").into_iter().flatten().map(|record| record.not_after).collect();
    assert!(limits[1].is_some() && limits[1] != limits[0], "the limit runs from the approval");
    assert!(limits[2..].iter().all(Option::is_none));
}

#[test]
fn a_proposal_whose_reason_has_gone_is_withdrawn() {
    let mut sim = Sim::new(vec![PlanSettings { mode: Mode::Propose, ..settings() }]);
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    sim.hot.clear();
    sim.pass(601);
    assert_eq!(sim.states_of("c42"), ["proposed", "end"]);
}

/// Case H26 (pelikan#148): what is only observed publishes nothing.
#[test]
fn h26_observe_publishes_nothing() {
    let mut sim = Sim::new(vec![PlanSettings { mode: Mode::Observe, ..settings() }]);
    let mut reads = hot("read", 700.0);
    reads.profile.operations.reads = 1_000_000;
    sim.hot = vec![hot("c42", 700.0), reads];
    let before = sim.log.len();
    sim.pass(1200);
    assert_eq!(sim.log.len(), before);
    assert_eq!(sim.planner.hindrances()[&customer("c42")], Hindrance::Observed);
}

/// Amendment: a router that cannot obey turns the migration round; the key rests.
#[test]
fn a_refusing_router_turns_the_migration_round() {
    let mut sim = Sim::new(vec![settings()]);
    sim.routers[1].refuses = true;
    sim.hot = vec![hot("c42", 700.0)];
    sim.pass(3000);
    assert_eq!(sim.states_of("c42"), ["prepare", "round"]);
    assert_eq!(sim.planner.hindrances()[&customer("c42")], Hindrance::Refused);
    sim.routers[1].refuses = false;
    sim.pass(700);
    assert_eq!(sim.states_of("c42")[2..], UPDATE);
}

/// A prepare that routers never let on ends when its reason has gone.
#[test]
fn a_prepare_without_a_reason_is_turned_round() {
    let mut sim = Sim::new(vec![settings()]);
    sim.routers[1].stuck = true;
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    sim.hot.clear();
    sim.pass(601);
    assert_eq!(sim.states_of("c42"), ["prepare", "round"]);
}

/// A withdrawal that waits in prepare ends when the key is hot again.
#[test]
fn a_withdrawal_is_turned_round_when_the_key_is_hot_again() {
    let mut sim = Sim::new(vec![settings()]);
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    sim.routers[1].waits_in = vec![State::Prepare];
    sim.hot.clear();
    sim.pass(602);
    assert_eq!(sim.states_of("c42").last(), Some(&"prepare"));
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    assert_eq!(sim.states_of("c42").last(), Some(&"round"));
    assert_eq!(sim.plan("c42").unwrap().write.unwrap().buckets(), 8);
}

/// A log whose clock is ahead makes every first record void: it is answered, and not begun again and again.
#[test]
fn a_record_that_comes_too_late_is_not_sent_again_at_once() {
    let mut sim = Sim::new(vec![settings()]);
    sim.log_delay = Span::from_secs(11);
    sim.hot = vec![hot("c42", 700.0)];
    sim.pass(250);
    assert_eq!(sim.states_of("c42"), ["prepare", "end"]);
    assert_eq!(sim.planner.hindrances()[&customer("c42")], Hindrance::Void);
    sim.log_delay = Span::ZERO;
    sim.pass(100);
    assert_eq!(sim.states_of("c42")[2..], UPDATE);
}

/// The topic has lost records: nothing is decided on what is left.
#[test]
fn nothing_is_decided_when_routers_know_more_than_the_topic() {
    let mut sim = Sim::new(vec![settings()]);
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    let key = AckTopicKey::Router { id: "r1".into(), nonce: Nonce(1) };
    let mut ack = sim.acks.routers().next().unwrap().ack.clone();
    ack.applied = Version { epoch: 9, seq: 9 };
    sim.tell(&key, Some(ack.encode()));
    sim.hot.push(hot("c43", 700.0));
    assert_eq!(sim.decide(), []);
}

/// A key that has just become hot was a candidate for a part of the window only: what came before is its own load all the same, and
/// one bucket goes to each shard, its old one too.
#[test]
fn a_key_that_was_counted_late_is_spread_over_all_shards() {
    let names: Vec<String> = (0..8).map(|number| format!("s{number}")).collect();
    let mapper = Mapper::new(MapperKind::Modulo(ShardHash::Murmur2), names).unwrap();
    for number in 0..20 {
        let key = format!("c{number}");
        let home = mapper.shard_name(key.as_bytes()).to_owned();
        let mut late = hot(&key, 700.0);
        late.profile.operations.writes = late.reason.count.lower * 8 / 10;
        late.profile.shards = vec![(Arc::from(home.as_bytes()), Estimate::exact(late.profile.operations.writes))];
        let mut sim = Sim::new(vec![PlanSettings { mapper: Some(mapper.clone()), ..settings() }]);
        let load = |name: &String| {
            let own = if *name == home { late.reason.count.lower } else { 0 };
            ShardLoad {
                shard: Arc::from(name.as_bytes()),
                count: Estimate::exact(6_000 + own),
                hot_since: None,
                profile: None,
            }
        };
        sim.shards = vec![mapper.shards().iter().map(load).collect()];
        sim.hot = vec![late];
        sim.settle();
        let plan = sim.plan(&key).unwrap();
        let write = plan.write.unwrap();
        let places: std::collections::BTreeSet<usize> = (0..write.buckets())
            .map(|bucket| mapper.shard_of(format!("{key}:{}", write.label(bucket).unwrap()).as_bytes()))
            .collect();
        assert_eq!((write.buckets(), places.len()), (8, 8), "{key}: {places:?}");
        let after = plan.prediction.hottest_shard_after.unwrap();
        assert!((after - 0.125).abs() < 0.001, "{after}");
    }
}
