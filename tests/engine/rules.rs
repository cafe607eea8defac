//! Properties of rules by pattern, and of rules that change while events come.

use std::sync::Arc;

use keyheat::engine::{Change, CountingSettings};
use keyheat::input::Operation;
use keyheat::units::Span;
use proptest::prelude::*;

use crate::laws::{self, plain};
use crate::operations::{Op, World, operations, roomy, small, with_rules};
use crate::oracle::{Pair, absolute, at, relative, settings, window};

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 4..most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_pattern_s_keys_are_judged_by_its_rules(shape in any::<[u8; 4]>(), bytes in bytes(600)) {
        laws::a_pattern_s_keys_have_its_rules(&roomy(shape), &plain(&operations(&bytes)));
    }

    #[test]
    fn the_same_rules_again_change_nothing(shape in any::<[u8; 4]>(), bytes in bytes(400), rules in 0u8..4) {
        laws::the_same_rules_change_nothing(&small(shape), &plain(&operations(&bytes)), rules);
    }

    #[test]
    fn rules_change_no_pane(shape in any::<[u8; 4]>(), bytes in bytes(500)) {
        laws::rules_change_no_pane(&small(shape), &operations(&bytes));
    }

    #[test]
    fn a_pattern_is_its_definition(text in "[ab*\\\\]{0,12}", key in "[ab*\\\\]{0,10}") {
        laws::a_pattern_is_its_definition(&text, key.as_bytes());
    }

    /// One window after a change all is as if the rules had always been so, where there is room for all.
    #[test]
    fn one_window_later_rules_are_fully_in_force(shape in any::<[u8; 4]>(), bytes in bytes(400), from in 0u8..4, to in 0u8..4) {
        let ops = plain(&operations(&bytes));
        let mut changed = World::run(with_rules(roomy(shape), from), &ops);
        changed.step(&Op::Rules(to));
        let always = World::run(with_rules(roomy(shape), to), &ops);
        let mut worlds = [changed, always];
        let start_ms = worlds[0].newest_ms.max(0) + 1_000;
        // Longer than the longest window with its slack, and than what is hot needs to cool.
        let more: Vec<Op> = (0..400i64).map(|n| {
            let ms = start_ms + n * 125;
            let request = crate::operations::Request {
                ms, key: if n % 80 == 0 { 1 } else if n % 160 == 7 { 30 } else { 0 }, shard: "s0",
                operation: Operation::Read, weight: 1, partition: 0,
            };
            Op::Request(ms, request)
        }).collect();
        for world in &mut worlds {
            more.iter().for_each(|op| world.step(op));
            prop_assert!(world.engine.status(0).windows.iter().all(|window| window.complete_from.is_none()));
        }
        let [changed, always] = worlds;
        let set = |world: &World| world.raised().into_iter().collect::<std::collections::BTreeSet<_>>();
        prop_assert_eq!(set(&changed), set(&always));
    }
}

/// Thresholds fall by ten times within a pane, by hand: what is known is judged at once, what was too cool to be counted exactly may
/// be missed until the moment that is said, and is found from then on.
#[test]
fn a_threshold_that_falls_is_in_force_at_once_and_fully_a_window_later() {
    let mut settings = settings(&[window(10_000, 1_000)], &[absolute(100.0)]);
    settings.keyspaces[0].counting = CountingSettings { sample_k: 8, width_log2: 10, ..CountingSettings::default() };
    let mut lower = settings.clone();
    lower.keyspaces[0].key_rules = vec![absolute(10.0)];
    let mut pair = Pair::new(settings);
    let second = |pair: &mut Pair, second: i64| {
        for n in 0..1_000i64 {
            let ms = second * 1_000 + n;
            pair.event(ms, &format!("tail-{}", (second * 31 + n) % 400));
            if n % 50 == 0 {
                pair.event(ms, "warm");
            }
            if n % 80 == 0 {
                pair.event(ms, "mild");
            }
        }
    };
    (0..20).for_each(|number| second(&mut pair, number));
    assert!(pair.verdicts.is_empty(), "{:?}", pair.verdicts);
    pair.engine.set_rules(0, &lower.keyspaces[0]).unwrap();
    pair.event(20_000, "clock");
    // 200 in ten seconds had reached an eighth of 1,000 and is counted exactly: judged at once. 130 had not, all the time.
    assert_eq!(pair.changes("warm"), [Change::Hot]);
    let status = pair.engine.status(0).windows.remove(0);
    assert_eq!(status.threshold, Some(100));
    let complete_from = status.complete_from.expect("said when");
    assert!(status.recall_above.is_some_and(|above| above > 100 && above <= 125), "{status:?}");
    assert!(complete_from > at(29_000) && complete_from <= at(32_000), "{complete_from}");
    (20..34).for_each(|number| second(&mut pair, number));
    let status = pair.engine.status(0).windows.remove(0);
    assert_eq!((status.recall_above, status.complete_from), (None, None));
    assert_eq!(pair.changes("mild").last(), Some(&Change::Hot));
}

/// Before the first event as well: a planned key is judged by the rules of now.
#[test]
fn rules_that_change_before_the_first_event_are_in_force_with_it() {
    let mut settings = settings(&[window(10_000, 1_000)], &[absolute(100.0)]);
    settings.keyspaces[0].declared_shards = vec![b"s".to_vec()];
    settings.keyspaces[0].shard_rules = vec![absolute(100.0)];
    let mut lower = settings.keyspaces[0].clone();
    lower.key_rules = vec![absolute(1.0)];
    lower.shard_rules = vec![absolute(1.0)];
    let mut pair = Pair::new(settings);
    pair.engine.protect(0, &[Arc::from(&b"planned"[..])]);
    pair.engine.set_rules(0, &lower).unwrap();
    (0..10).for_each(|ms| pair.request(ms, "planned", "s", Operation::Read));
    assert_eq!((pair.changes("planned"), pair.shard_changes("s")), (vec![Change::Hot], vec![Change::Hot]));
}

/// A threshold that rises: what is hot by the old one is let go when it is cool by the new one, and is not held to the old one.
#[test]
fn a_threshold_that_rises_lets_go() {
    let mut settings = settings(&[window(10_000, 1_000)], &[absolute(1.0)]);
    settings.keyspaces[0].clear_after = Span::from_secs(5);
    let mut higher = settings.clone();
    higher.keyspaces[0].key_rules = vec![absolute(100.0)];
    let mut pair = Pair::new(settings);
    (0..200).for_each(|n| pair.event(n * 100, "k"));
    assert_eq!(pair.changes("k"), [Change::Hot]);
    pair.engine.set_rules(0, &higher.keyspaces[0]).unwrap();
    (200..350).for_each(|n| pair.event(n * 100, "k"));
    assert_eq!(pair.changes("k"), [Change::Hot, Change::Cleared]);
}

/// What cannot change while it runs is refused by name, and nothing is changed.
#[test]
fn other_settings_are_refused() {
    let settings = settings(&[window(10_000, 1_000)], &[absolute(1.0)]);
    let mut pair = Pair::new(settings.clone());
    let mut other = settings.keyspaces[0].clone();
    other.windows = vec![window(20_000, 1_000)];
    other.key_rules = vec![relative(2.0, 20)];
    let error = pair.engine.set_rules(0, &other).unwrap_err().to_string();
    assert_eq!(error, "keyspace 'default': windows cannot change while it runs; restart to change it");
    other.windows = settings.keyspaces[0].windows.clone();
    other.counting.seed += 1;
    assert!(pair.engine.set_rules(0, &other).unwrap_err().to_string().contains("seed"));
    assert!(pair.engine.set_rules(1, &settings.keyspaces[0]).is_err());
    (0..20).for_each(|n| pair.event(n, "k"));
    assert_eq!(pair.changes("k"), [Change::Hot], "by the rules that it had");
}
