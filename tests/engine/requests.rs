//! Properties of what lies behind keys and shards: operations, weights, shards, callers, buckets, and the keys of a shard.

use std::collections::BTreeMap;

use keyheat::engine::ShardCause;
use keyheat::input::Operation;
use keyheat::units::Estimate;
use proptest::prelude::*;

use crate::operations::{Op, World, name, of_key, operations, roomy, small};
use crate::oracle::{Pair, absolute, at, relative, settings, window};

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 4..most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Operations and weights are never above the truth, and the truth for a key that has been a candidate for a window.
    #[test]
    fn operations_and_weights_are_the_truth_after_a_window(shape in any::<[u8; 4]>(), bytes in bytes(600)) {
        let mut world = World::new(small(shape));
        for op in operations(&bytes) {
            world.step(&op);
            let longest = world.settings.keyspaces[0].windows.last().unwrap().length.as_millis();
            for hot in world.engine.hot_keys(0) {
                let mut truth: BTreeMap<Operation, u64> = BTreeMap::new();
                let mut weight = 0;
                for request in of_key(&world, &hot) {
                    *truth.entry(request.operation).or_default() += 1;
                    weight += request.weight;
                }
                let of = |operation| truth.get(&operation).copied().unwrap_or(0);
                let told = hot.profile.operations;
                let pairs = [
                    (told.reads, of(Operation::Read)), (told.writes, of(Operation::Write)),
                    (told.scans, of(Operation::Scan)), (told.unknown, of(Operation::Unknown)), (hot.profile.weight, weight),
                ];
                let is_old = at(world.head_ms()).since(hot.profile.since).as_millis() > longest + 30_000;
                for (told, truth) in pairs {
                    prop_assert!(told <= truth && (!is_old || told == truth), "{told} of {truth}: {hot:?}");
                }
            }
        }
    }

    /// Every event that was looked at is in the numbers of its shard, its caller and its bucket, within their bounds.
    #[test]
    fn what_was_looked_at_adds_up(shape in any::<[u8; 4]>(), bytes in bytes(900)) {
        let mut settings = roomy(shape);
        settings.keyspaces[0].key_rules = vec![absolute(0.25)];
        let world = World::run(settings, &operations(&bytes));
        for hot in world.engine.hot_keys(0) {
            let profile = &hot.profile;
            let buckets: u64 = profile.buckets.iter().copied().map(u64::from).sum();
            prop_assert!(buckets + profile.without_request_id <= profile.sampled);
            let lower = |list: &[(std::sync::Arc<[u8]>, Estimate)]| list.iter().map(|entry| entry.1.lower).sum::<u64>();
            prop_assert!(lower(&profile.shards) <= profile.sampled && lower(&profile.callers) <= profile.sampled);
            // Five shards and two callers have room: nothing is taken over.
            prop_assert_eq!(lower(&profile.shards), profile.sampled);
            prop_assert_eq!(lower(&profile.callers), profile.sampled);
            prop_assert!(profile.shards.iter().all(|entry| entry.1.is_exact()));
            let mine = |shard: &str| world.taken.iter().filter(|r| r.shard == shard && super::operations::key_of(r.key) == name(&hot.key)).count() as u64;
            prop_assert!(profile.shards.iter().all(|(shard, events)| events.lower <= mine(&name(shard))));
        }
    }

    /// Known shards have exact counts, and together with events of no shard they are all events.
    #[test]
    fn shards_add_up_to_all_events(shape in any::<[u8; 4]>(), bytes in bytes(600)) {
        let mut world = World::new(small(shape));
        for op in operations(&bytes) {
            world.step(&op);
            for window in 0..world.windows() {
                let loads = world.engine.shard_loads(0, window);
                prop_assert!(loads.iter().all(|load| load.count.is_exact()));
                let sum: u64 = loads.iter().map(|load| load.count.lower).sum();
                prop_assert_eq!(sum, world.engine.status(0).windows[window].events, "window {}", window);
            }
        }
    }

    /// The keys behind a hot shard: numbers within bounds of what was looked at, never more than the shard has had.
    #[test]
    fn keys_behind_a_shard_are_its_own(shape in any::<[u8; 4]>(), bytes in bytes(900)) {
        let world = World::run(roomy(shape), &operations(&bytes));
        for load in world.engine.shard_loads(0, 0) {
            let Some(profile) = load.profile else { continue };
            let shard = name(&load.shard);
            let lower: u64 = profile.keys.iter().map(|entry| entry.1.lower).sum();
            prop_assert!(lower <= profile.sampled);
            for (key, events) in &profile.keys {
                let of_both = |r: &&crate::operations::Request| r.shard == shard && super::operations::key_of(r.key) == name(key);
                let had = world.taken.iter().filter(of_both).count() as u64;
                prop_assert!(events.lower <= had && had > 0, "{} has {events}, had {had}", name(key));
            }
            prop_assert_eq!(profile.cause.is_none(), profile.sampled == 0);
        }
    }

    /// Planned keys are exact from the plan on, are never evicted, and change no pane.
    #[test]
    fn planned_keys_change_no_pane(shape in any::<[u8; 4]>(), bytes in bytes(500)) {
        let all = operations(&bytes);
        let mut without = all.clone();
        without.retain(|op| !matches!(op, Op::Protect(_)));
        let (planned, unplanned) = (World::run(small(shape), &all), World::run(small(shape), &without));
        prop_assert_eq!(planned.engine.digest(0), unplanned.engine.digest(0));
    }
}

/// A shard with these keys, so many events each a second, among nine shards of five even keys; for a minute.
fn cause_of(keys: &[(&str, i64)], fresh: bool) -> Option<ShardCause> {
    let mut settings = settings(&[window(5_000, 1_000), window(10_000, 1_000)], &[absolute(1_000_000.0)]);
    settings.keyspaces[0].shard_rules = vec![relative(3.0, 20)];
    let mut pair = Pair::new(settings);
    for second in 0..60i64 {
        for shard in 0..9 {
            for key in 0..10 {
                let ms = second * 1_000 + key * 50;
                pair.request(ms, &format!("even-{shard}-{}", key % 5), &format!("even-{shard}"), Operation::Write);
            }
        }
        for (key, times) in keys {
            for n in 0..*times {
                let key = if fresh { format!("{key}-{second}-{n}") } else { (*key).to_owned() };
                pair.request(second * 1_000 + 600 + n, &key, "busy", Operation::Write);
            }
        }
    }
    let loads = pair.engine.shard_loads(0, 0);
    assert_eq!(name(&loads[0].shard), "busy");
    assert!(loads[0].hot_since.is_some() && loads[1..].iter().all(|load| load.profile.is_none()));
    loads[0].profile.as_ref().unwrap().cause
}

/// Case H23 (awslabs/amazon-kinesis-client#50, tikv/pd#4588), the causes of a hot shard.
#[test]
fn h23_a_hot_shard_has_a_cause() {
    assert_eq!(cause_of(&[("one", 80), ("two", 10)], false), Some(ShardCause::OneKey));
    let few: Vec<(String, i64)> = (0..10).map(|n| (format!("few-{n}"), 10)).collect();
    let few: Vec<(&str, i64)> = few.iter().map(|(key, times)| (key.as_str(), *times)).collect();
    assert_eq!(cause_of(&few, false), Some(ShardCause::FewKeys));
    let many: Vec<(String, i64)> = (0..120).map(|n| (format!("many-{n}"), 1)).collect();
    let many: Vec<(&str, i64)> = many.iter().map(|(key, times)| (key.as_str(), *times)).collect();
    assert_eq!(cause_of(&many, false), Some(ShardCause::Broad));
    assert_eq!(cause_of(&[("front", 100)], true), Some(ShardCause::MovingFront));
}

/// The keys behind a hot shard are listed with their share of what was looked at.
#[test]
fn from_a_hot_shard_to_its_keys() {
    let mut settings = settings(&[window(10_000, 1_000)], &[absolute(1_000_000.0)]);
    settings.keyspaces[0].shard_rules = vec![absolute(50.0)];
    let mut pair = Pair::new(settings);
    for n in 0..30_000i64 {
        let key = if n % 2 == 0 { "heavy".to_owned() } else { format!("light-{}", n % 997) };
        pair.request(n, &key, "s", Operation::Read);
    }
    let loads = pair.engine.shard_loads(0, 0);
    let profile = loads[0].profile.as_ref().unwrap();
    let (key, events) = &profile.keys[0];
    assert_eq!(name(key), "heavy");
    let share = |events: u64| events as f64 / profile.sampled as f64;
    assert!(share(events.lower) <= 0.51 && share(events.upper) >= 0.49, "{events} of {}", profile.sampled);
    assert_eq!(profile.cause, Some(ShardCause::OneKey));
}
