//! Properties of verdicts: who is told what, when, and on what proof, whatever comes.

use std::collections::BTreeSet;

use keyheat::engine::{Change, Engine, HotOn, RuleKind, Subject};
use proptest::prelude::*;

use crate::laws;
use crate::operations::{
    Op, World, check_verdicts, compared, key_of, name, number, operations, roomy, small, with_rules,
};
use crate::oracle::{absolute, at, relative, share};

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 4..most)
}

fn plain(bytes: &[u8]) -> Vec<Op> {
    laws::plain(&operations(bytes))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever comes: late events, ticks, other rules, planned keys, eviction and re-admission.
    #[test]
    fn all_holds_after_every_operation(shape in any::<[u8; 4]>(), bytes in bytes(600)) {
        laws::all_holds(small(shape), &operations(&bytes));
    }

    /// The same operations give the same verdicts.
    #[test]
    fn a_stream_repeats_itself(shape in any::<[u8; 4]>(), bytes in bytes(600)) {
        let (one, two) = (World::run(small(shape), &operations(&bytes)), World::run(small(shape), &operations(&bytes)));
        prop_assert_eq!(one.verdicts, two.verdicts);
        prop_assert_eq!(one.engine.digest(0), two.engine.digest(0));
    }

    /// Event time only: the same stream some hours later is told the same, some hours later. Zones and eras change nothing.
    #[test]
    fn hours_later_all_is_told_hours_later(shape in any::<[u8; 4]>(), bytes in bytes(500), hours in 1i64..100_000) {
        let shift_ms = hours * 3_600_000;
        let mut later = plain(&bytes);
        for op in &mut later {
            match op {
                Op::Request(now_ms, request) => (*now_ms, request.ms) = (*now_ms + shift_ms, request.ms + shift_ms),
                Op::Tick(now_ms) => *now_ms += shift_ms,
                _ => {}
            }
        }
        // Both begin with a request, so that neither has a clock before its first event.
        later.retain({ let mut begun = false; move |op| { begun |= matches!(op, Op::Request(..)); begun } });
        let mut first = plain(&bytes);
        first.retain({ let mut begun = false; move |op| { begun |= matches!(op, Op::Request(..)); begun } });
        let (one, two) = (World::run(small(shape), &first), World::run(small(shape), &later));
        let told = |world: &World, shift_ms: i64| -> Vec<(Subject, Change, i64, u64)> {
            let verdict = |verdict: &keyheat::engine::Verdict| (
                verdict.subject.clone(), verdict.change, verdict.at.as_millis() - shift_ms, verdict.reason.threshold,
            );
            world.verdicts.iter().map(verdict).collect()
        };
        prop_assert_eq!(told(&one, 0), told(&two, shift_ms));
    }

    /// What a rule by a share confirms has that share of all events of its window.
    #[test]
    fn a_share_is_a_share_of_all(shape in any::<[u8; 4]>(), bytes in bytes(600)) {
        let mut settings = roomy(shape);
        settings.keyspaces[0].key_rules = vec![share(0.3, 4)];
        settings.time.disorder = keyheat::units::Span::ZERO;
        let mut world = World::new(settings);
        for op in plain(&bytes) {
            let before = world.verdicts.len();
            world.step(&op);
            let is_last = |request: &crate::operations::Request| matches!(&op, Op::Request(_, last) if last == request);
            for verdict in world.verdicts[before..].iter().filter(|verdict| verdict.change == Change::Hot) {
                let Subject::Key(key) = &verdict.subject else { continue };
                // It was proved for the window that ended then, or a little before where something later was said already.
                let window = usize::from(verdict.reason.window != world.settings.keyspaces[0].windows[0].length);
                let told_ms = verdict.at.as_millis() - at(0).as_millis();
                let held = (0..80).any(|half_panes| {
                    let ms = told_ms - half_panes * 500;
                    // A pane is judged when it opens, before the request that opened it is counted.
                    let others = |request: &&crate::operations::Request| request.key != number(key) && is_last(request);
                    let opened = world.in_window(window, ms).filter(others).count().min(1);
                    let all = world.in_window(window, ms).count() - opened;
                    let own = world.in_window(window, ms).filter(|request| request.key == number(key)).count();
                    own >= 4 && 10 * own >= 3 * all
                });
                prop_assert!(held, "{verdict:?}");
            }
        }
    }

    /// The relative rule proves nothing with fewer keys than it takes, nor before a full window; and says why.
    #[test]
    fn a_median_waits_for_keys_and_for_a_full_window(shape in any::<[u8; 4]>(), bytes in bytes(500)) {
        let mut settings = roomy(shape);
        settings.keyspaces[0].key_rules = vec![relative(2.0, 3)];
        settings.keyspaces[0].min_keys = 5;
        let mut world = World::new(settings);
        for op in plain(&bytes) {
            world.step(&op);
            for window in world.engine.status(0).windows {
                let rule = window.rules[0];
                prop_assert_eq!(rule.rule, RuleKind::Relative);
                prop_assert_eq!(rule.hot_from.is_none(), rule.not_applicable.is_some(), "{:?}", rule);
                prop_assert!(rule.hot_from.is_none() || window.keys.upper >= 5);
            }
        }
        for verdict in world.verdicts.iter().filter(|verdict| matches!(verdict.subject, Subject::Key(_))) {
            if verdict.change == Change::Hot {
                prop_assert!(verdict.reason.subjects.lower >= 5, "{:?}", verdict.reason);
                let median = verdict.reason.median.unwrap();
                prop_assert!(verdict.reason.count.lower >= 2 * median.lower, "{:?}", verdict.reason);
            }
        }
    }

    /// Time alone cools everything: after enough of it nothing is hot, suspect or counted, and no deadline is left.
    #[test]
    fn silence_ends_all_heat(shape in any::<[u8; 4]>(), bytes in bytes(500)) {
        let mut world = World::run(small(shape), &operations(&bytes));
        for partition in 0..3 {
            let progress = keyheat::engine::Progress {
                partition: keyheat::units::Partition(partition),
                position: keyheat::units::Offset(1),
                end: Some(keyheat::units::Offset(1)),
                paused: false,
            };
            world.engine.handle_progress(progress, at(world.newest_ms));
        }
        let mut ticks = 0;
        while let Some(deadline) = world.engine.next_deadline() {
            world.engine.handle_tick(deadline);
            ticks += 1;
            prop_assert!(ticks < 2_000, "deadlines come to an end");
        }
        world.verdicts.extend(std::iter::from_fn(|| world.engine.poll_verdict()));
        prop_assert!(world.engine.hot_keys(0).is_empty());
        prop_assert!(world.engine.shard_loads(0, 0).iter().all(|load| load.hot_since.is_none() && load.count.upper == 0));
        for (subject, story) in world.stories() {
            prop_assert_eq!(story.last().map(|last| last.0), Some(Change::Cleared), "{:?}", subject);
        }
        check_verdicts(&world.verdicts);
    }

    /// What is compared is what counts: an engine that compares reads alone says what one says that is given reads alone.
    #[test]
    fn reads_alone_are_judged_like_a_stream_of_reads(shape in any::<[u8; 4]>(), bytes in bytes(500), writes in any::<bool>()) {
        let hot_on = if writes { HotOn::Writes } else { HotOn::Reads };
        let mut settings = roomy(shape);
        let all = plain(&bytes);
        let mut some = all.clone();
        // The clock is moved by every request: those that do not count become ticks.
        let mut begun = false;
        some.retain_mut(|op| match op {
            Op::Request(now_ms, request) if !compared(hot_on, request.operation) => {
                *op = Op::Tick(*now_ms);
                begun
            }
            _ => { begun = true; true }
        });
        settings.keyspaces[0].shard_rules = Vec::new();
        let given = World::run(settings.clone(), &some);
        settings.keyspaces[0].hot_on = hot_on;
        let compared_alone = World::run(settings, &all);
        // Event time differs where the last request was not compared; what was counted then does not.
        for key in 0..40u8 {
            let key = key_of(key);
            if given.engine.newest() == compared_alone.engine.newest() {
                prop_assert_eq!(
                    given.engine.estimate(0, 0, key.as_bytes()), compared_alone.engine.estimate(0, 0, key.as_bytes()), "{}", key
                );
            }
        }
    }

    /// Refused events change nothing: without them the panes and the verdicts are the same.
    #[test]
    fn refused_events_change_nothing(shape in any::<[u8; 4]>(), bytes in bytes(500), every in 2usize..6, ahead in any::<bool>()) {
        let ops = plain(&bytes);
        let clean = World::run(small(shape), &ops);
        let mut world = World::new(small(shape));
        for (place, op) in ops.iter().enumerate() {
            if let (0, Op::Request(now_ms, request)) = (place % every, op) {
                let wrong = if ahead { now_ms + 1_001 } else { request.ms - 400_000_000 };
                if ahead || (!world.taken.is_empty() && wrong > -1_000_000_000) {
                    let before = world.taken.len();
                    world.step(&Op::Request(*now_ms, crate::operations::Request { ms: wrong, ..request.clone() }));
                    prop_assert_eq!(world.taken.len(), before, "it was refused");
                }
            }
            world.step(op);
        }
        prop_assert_eq!(world.verdicts, clean.verdicts);
        prop_assert_eq!(world.engine.digest(0), clean.engine.digest(0));
    }

    /// Two keyspaces of one engine are two engines.
    #[test]
    fn keyspaces_do_not_touch_each_other(shape in any::<[u8; 4]>(), other in any::<[u8; 4]>(), bytes in bytes(400)) {
        let (one, mut two) = (small(shape), small(other));
        two.time = one.time;
        let mut both = one.clone();
        both.keyspaces.push(two.keyspaces[0].clone());
        let mut engine = Engine::new(both);
        let (mut left, mut right) = (World::new(one), World::new(two));
        let (mut told_left, mut told_right) = (Vec::new(), Vec::new());
        for op in plain(&bytes) {
            left.step(&op);
            right.step(&op);
            match &op {
                Op::Request(now_ms, request) => {
                    let key = key_of(request.key);
                    let mut event = keyheat::input::AccessEvent {
                        shard: request.shard.as_bytes(),
                        operation: request.operation,
                        weight: request.weight,
                        ..keyheat::input::AccessEvent::new(at(request.ms), key.as_bytes())
                    };
                    event.keys.0[1] = key.as_bytes();
                    let outcome = engine.handle_event(keyheat::units::Partition(request.partition), &event, at(*now_ms));
                    prop_assert!(outcome.is_ok() || !event.keys.0[0].is_empty());
                }
                Op::Tick(now_ms) => engine.handle_tick(at(*now_ms)),
                _ => {}
            }
            while let Some(verdict) = engine.poll_verdict() {
                let told = (verdict.subject, verdict.change, verdict.at);
                if verdict.keyspace == 0 { told_left.push(told) } else { told_right.push(told) }
            }
        }
        let of = |world: &World| -> Vec<_> {
            world.verdicts.iter().map(|verdict| (verdict.subject.clone(), verdict.change, verdict.at)).collect()
        };
        // A refusal as too late needs every keyspace: rings of both have to be as long for both to tell the same.
        if left.windows() == right.windows() {
            prop_assert_eq!(told_left, of(&left));
            prop_assert_eq!(told_right, of(&right));
            prop_assert_eq!(engine.digest(1), right.engine.digest(0));
        }
    }

    /// A rule by rate says hot at the very request that makes it, where nothing is late.
    #[test]
    fn hot_at_the_very_request(shape in any::<[u8; 4]>(), bytes in bytes(600)) {
        let mut settings = roomy(shape);
        settings.keyspaces[0].key_rules = vec![absolute(1.0)];
        settings.keyspaces[0].windows.truncate(1);
        let mut world = World::new(settings);
        let mut told: BTreeSet<String> = BTreeSet::new();
        for mut op in plain(&bytes) {
            if let Op::Request(now_ms, request) = &mut op {
                request.ms = *now_ms;
            }
            let before = world.verdicts.len();
            world.step(&op);
            if let Op::Request(_, request) = &op {
                let is_due = world.count(0, request.key) >= 4;
                let raised = world.raised().contains(&key_of(request.key));
                prop_assert!(!is_due || raised, "{} has {}", request.key, world.count(0, request.key));
                let now: Vec<_> = world.verdicts[before..].iter().filter(|verdict| verdict.change == Change::Hot).collect();
                for verdict in now {
                    let Subject::Key(key) = &verdict.subject else { continue };
                    told.insert(name(key));
                    prop_assert!(world.count(0, number(key)) >= 4 || verdict.at < at(request.ms), "{verdict:?}");
                }
            }
        }
    }

    #[test]
    fn together_is_as_one_by_one(shape in any::<[u8; 4]>(), bytes in bytes(800), has_room in any::<bool>()) {
        laws::together_is_as_one_by_one(if has_room { roomy(shape) } else { small(shape) }, &plain(&bytes), has_room);
    }

    /// Rules that were always there, and the same rules set before the first event, say the same.
    #[test]
    fn rules_set_before_the_first_event_are_the_rules(shape in any::<[u8; 4]>(), bytes in bytes(400), rules in 0u8..4) {
        let from_start = World::run(with_rules(small(shape), rules), &plain(&bytes));
        let mut set = World::new(small(shape));
        set.step(&Op::Rules(rules));
        plain(&bytes).iter().for_each(|op| set.step(op));
        prop_assert_eq!(from_start.verdicts, set.verdicts);
    }
}

/// What fuzzing begins with, and what it has found.
#[test]
fn all_holds_of_the_seeds_of_the_fuzz_target() {
    let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds/bounds");
    let mut replayed = 0;
    for seed in std::fs::read_dir(seeds).unwrap() {
        let seed = std::fs::read(seed.unwrap().path()).unwrap();
        let (shape, bytes) = seed.split_first_chunk().unwrap();
        laws::all_holds(small(*shape), &operations(bytes));
        replayed += 1;
    }
    assert!(replayed > 3);
}
