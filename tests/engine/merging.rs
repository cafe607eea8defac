//! Windows as values: split over instances and merged, carried as bytes, restored: the same as one instance that never stopped.

use std::collections::BTreeSet;

use keyheat::engine::{
    Change, CountingMode, CountingSettings, Engine, EngineSettings, HotOn, MergeError, ReadError, RestoreError, Window,
};
use keyheat::input::AccessEvent;
use keyheat::units::{Partition, Span};
use proptest::prelude::*;

use crate::laws;
use crate::operations::{operations, small};
use crate::oracle::{Pair, absolute, at, settings, window};
use crate::random::{Step, feed, key_name, steps, tiny};

fn taken(engine: &Engine) -> Window {
    engine.window(0).unwrap()
}

fn merged(parts: &[Window]) -> Window {
    let mut parts = parts.iter();
    let mut sum = parts.next().unwrap().clone();
    parts.for_each(|part| sum.merge(part).unwrap());
    sum
}

fn read(bytes: &[u8], settings: &EngineSettings) -> Result<Window, ReadError> {
    Window::from_bytes(bytes, &settings.keyspaces[0], &settings.time)
}

fn restored(window: &Window, settings: &EngineSettings) -> Engine {
    let mut engine = Engine::new(settings.clone());
    engine.restore(0, window).unwrap();
    engine
}

/// An event by a hash of its place: where it goes and how late it comes.
fn scatter(seed: u64, place: usize) -> u64 {
    let mut z = seed ^ (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 27)
}

/// Events in the order of their arrival, none later than 2 s, and the end of event time.
fn shuffled(times: &[(u8, i64)], seed: u64) -> (Vec<(i64, u8)>, i64) {
    let mut clock = 0;
    let mut arriving: Vec<(i64, (i64, u8))> = Vec::new();
    for (place, (key, forward)) in times.iter().enumerate() {
        clock += forward;
        let delay = i64::try_from(scatter(seed, place) >> 40).unwrap() % 2_000;
        arriving.push((clock + delay, (clock, *key)));
    }
    arriving.sort_by_key(|entry| entry.0);
    (arriving.into_iter().map(|entry| entry.1).collect(), clock + 2_000)
}

fn send(engine: &mut Engine, instance: usize, ms: i64, key: &str) {
    let shard = format!("s{}", key.len() % 2);
    let event = AccessEvent { shard: shard.as_bytes(), ..AccessEvent::new(at(ms), key.as_bytes()) };
    let partition = Partition(i32::try_from(instance).unwrap());
    engine.handle_event(partition, &event, at(ms + 4_000)).unwrap();
    while engine.poll_verdict().is_some() {}
}

/// What must not depend on how a window came to be: every number about panes, samples and shards.
fn numbers(window: &Window) -> Vec<String> {
    let of_window = |number| {
        let (keys, median) = (window.keys(number), window.median(number));
        format!(
            "{} events, {keys} keys, median {median:?}, left out {}",
            window.events(number),
            window.left_out(number)
        )
    };
    let digest = format!("digest {:016x}", window.digest());
    (0..window.windows()).map(of_window).chain([digest]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Shuffled, split over instances in any way, carried as bytes, merged in any order and grouping, and gone on from: as one.
    #[test]
    fn split_and_merged_is_one_instance(
        mut settings in tiny(),
        times in prop::collection::vec((0u8..30, 0i64..400), 1..300),
        seed in any::<u64>(), instances in 2usize..6, first in 0usize..5,
    ) {
        settings.time.disorder = Span::from_millis(2_000);
        settings.time.max_ahead = Span::from_secs(5);
        let (events, end_ms) = shuffled(&times, seed);
        let mut one = Engine::new(settings.clone());
        let mut many: Vec<Engine> = (0..instances).map(|_| Engine::new(settings.clone())).collect();
        let mut truth = Pair::new(settings.clone());
        let mut both = |one: &mut Engine, many: &mut [Engine], instance: usize, ms: i64, key: &str| {
            send(one, instance, ms, key);
            send(&mut many[instance], instance, ms, key);
            truth.event(ms, key);
        };
        (0..instances).for_each(|instance| both(&mut one, &mut many, instance, 0, "begin"));
        for (place, (ms, key)) in events.iter().enumerate() {
            let instance = usize::try_from(scatter(!seed, place)).unwrap() % instances;
            both(&mut one, &mut many, instance, *ms, &key_name(*key));
        }
        (0..instances).for_each(|instance| both(&mut one, &mut many, instance, end_ms, "end"));

        let parts: Vec<Window> = many.iter().map(|engine| read(&taken(engine).to_bytes(), &settings).unwrap()).collect();
        let sum = merged(&parts);
        prop_assert_eq!(sum.digest(), one.digest(0).unwrap());
        prop_assert_eq!(numbers(&sum), numbers(&taken(&one)));
        // Any order.
        let mut turned = parts.clone();
        turned.rotate_left(first % instances);
        turned.reverse();
        prop_assert_eq!(numbers(&merged(&turned)), numbers(&sum));
        // Any grouping.
        let cut = 1 + first % (instances - 1);
        let grouped = merged(&[merged(&parts[..cut]), merged(&parts[cut..])]);
        prop_assert_eq!(numbers(&grouped), numbers(&sum));
        // Two at a time the bytes are the same whichever comes first.
        prop_assert_eq!(merged(&[parts[0].clone(), parts[1].clone()]).to_bytes(), merged(&[parts[1].clone(), parts[0].clone()]).to_bytes());
        for window in [&sum, &grouped] {
            for key in (0..30).map(key_name) {
                for number in 0..window.windows() {
                    let (count, bounds) = (truth.count(number, key.as_bytes()), window.estimate(number, key.as_bytes()));
                    prop_assert!(bounds.lower <= count && count <= bounds.upper, "{key} in window {number}: {count} in {bounds}");
                    let listed = window.top_keys(number, usize::MAX).iter().any(|(name, _)| **name == *key.as_bytes());
                    let promised = window.complete_above(number);
                    prop_assert!(listed || count < promised, "{key} has {count} and is not listed, promised from {promised}");
                }
            }
        }
        // Going on from the sum: the pane that was open closes the same as that of the one that never stopped.
        let mut gone_on = restored(&sum, &settings);
        prop_assert_eq!(gone_on.shard_loads(0, 0), one.shard_loads(0, 0).into_iter().map(|load| keyheat::engine::ShardLoad { hot_since: None, ..load }).collect::<Vec<_>>());
        for step in 1..9 {
            for instance in 0..instances {
                send(&mut one, instance, end_ms + step * 700, "more");
                send(&mut gone_on, instance, end_ms + step * 700, "more");
            }
            prop_assert_eq!(gone_on.digest(0), one.digest(0));
        }
    }

    /// The same with other rules, planned keys and ticks in between, and with judgement after it.
    #[test]
    fn split_and_merged_goes_on_as_one(
        shape in any::<[u8; 4]>(), bytes in prop::collection::vec(any::<u8>(), 4..500), cut in 0usize..100, split in any::<u64>(),
    ) {
        laws::split_and_merged_is_whole(small(shape), &operations(&bytes), cut, split);
    }

    /// Instances that stand at different panes, with late and refused events: order and grouping do not matter, bounds hold.
    #[test]
    fn instances_at_different_times_merge_the_same_in_any_order(settings in tiny(), steps in steps(250), three in any::<bool>()) {
        let instances = if three { 3 } else { 2 };
        let mut pairs: Vec<Pair> = (0..instances).map(|_| Pair::new(settings.clone())).collect();
        let mut now_ms = 0;
        for step in &steps {
            now_ms += step.forward_ms;
            let event_ms = now_ms - step.late_ms;
            let instance = usize::try_from(step.partition).unwrap() % instances;
            pairs[instance].send(0, &AccessEvent::new(at(event_ms), key_name(step.key).as_bytes()), at(now_ms));
        }
        let parts: Vec<Window> = pairs.iter().map(|pair| taken(&pair.engine)).collect();
        let sum = merged(&parts);
        let orders: [&[usize]; 2] = if three { [&[2, 0, 1], &[1, 2, 0]] } else { [&[1, 0], &[0, 1]] };
        for order in orders {
            let turned: Vec<Window> = order.iter().map(|at| parts[*at].clone()).collect();
            prop_assert_eq!(numbers(&merged(&turned)), numbers(&sum));
            let last = merged(&turned[1..]);
            prop_assert_eq!(numbers(&merged(&[turned[0].clone(), last])), numbers(&sum));
        }
        let newest_ms = pairs.iter().map(Pair::newest_ms).max().unwrap();
        let keys: BTreeSet<u8> = steps.iter().map(|step| step.key).collect();
        for key in keys.into_iter().map(key_name) {
            for number in 0..sum.windows() {
                let count: u64 = pairs.iter().map(|pair| pair.count_ending(number, newest_ms, key.as_bytes())).sum();
                let bounds = sum.estimate(number, key.as_bytes());
                prop_assert!(bounds.lower <= count && count <= bounds.upper, "{key} in window {number}: {count} in {bounds}");
            }
        }
        for number in 0..sum.windows() {
            let counted: u64 = pairs.iter().map(|pair| pair.counts_ending(number, newest_ms).values().sum::<u64>()).sum();
            prop_assert_eq!(sum.events(number), counted);
        }
    }

    /// Folded to narrower rows: the panes of an engine that has such rows, before and after merging.
    #[test]
    fn a_folded_window_is_one_of_narrower_rows(mut settings in tiny(), steps in steps(200), width_log2 in 1u32..4) {
        let mut narrow = settings.clone();
        settings.keyspaces[0].counting.width_log2 = 6;
        narrow.keyspaces[0].counting.width_log2 = width_log2;
        let (mut wide, mut thin) = (Pair::new(settings), Pair::new(narrow.clone()));
        feed(&mut wide, &steps, |_| Ok(()))?;
        feed(&mut thin, &steps, |_| Ok(()))?;
        let (whole, own) = (taken(&wide.engine), taken(&thin.engine));
        let folded = whole.folded(u8::try_from(width_log2).unwrap());
        prop_assert_eq!(folded.digest(), own.digest());
        prop_assert_eq!(merged(&[folded.clone(), own.clone()]).digest(), merged(&[whole.clone(), whole.clone()]).folded(u8::try_from(width_log2).unwrap()).digest());
        prop_assert_eq!(read(&folded.to_bytes(), &narrow).unwrap().to_bytes(), folded.to_bytes());
        prop_assert!(folded.clone().merge(&whole).is_err());
        for key in (0..40).map(key_name) {
            for number in 0..folded.windows() {
                let (count, bounds) = (wide.count(number, key.as_bytes()), folded.estimate(number, key.as_bytes()));
                prop_assert!(bounds.lower <= count && count <= bounds.upper, "{key} in window {number}: {count} in {bounds}");
            }
        }
        prop_assert_eq!(whole.folded(24).to_bytes(), whole.to_bytes());
    }

    /// A snapshot at any moment, restored and gone on with: the panes of one that never stopped, bit for bit, and bounds that hold.
    #[test]
    fn a_restored_engine_goes_on_as_if_it_had_not_stopped(settings in tiny(), steps in steps(250), stop in 0usize..250) {
        let steps: Vec<Step> = steps.into_iter().map(|step| Step { partition: 0, ..step }).collect();
        let stop = stop % (steps.len() + 1);
        let mut whole = Pair::new(settings.clone());
        feed(&mut whole, &steps[..stop], |_| Ok(()))?;
        let bytes = taken(&whole.engine).to_bytes();
        let window = read(&bytes, &settings).unwrap();
        prop_assert_eq!(window.to_bytes(), bytes.clone());
        prop_assert_eq!(window.digest(), whole.engine.digest(0).unwrap());
        let mut again = restored(&window, &settings);
        prop_assert_eq!(taken(&again).digest(), window.digest());
        let mut now_ms: i64 = steps[..stop].iter().map(|step| step.forward_ms).sum();
        let keys: BTreeSet<u8> = steps.iter().map(|step| step.key).collect();
        for step in &steps[stop..] {
            now_ms += step.forward_ms;
            let name = key_name(step.key);
            let event = AccessEvent::new(at(now_ms - step.late_ms), name.as_bytes());
            whole.send(0, &event, at(now_ms));
            // What one refuses the other refuses: else the digests differ.
            again.handle_event(Partition(0), &event, at(now_ms)).ok();
            prop_assert_eq!(again.digest(0), whole.engine.digest(0));
            let raised: BTreeSet<Vec<u8>> = again.hot_keys(0).iter().map(|hot| hot.key.to_vec()).collect();
            let promised = again.status(0).windows;
            for key in &keys {
                let name = key_name(*key);
                for (number, window) in promised.iter().enumerate() {
                    let (Some(threshold), truth) = (window.threshold, whole.count(number, name.as_bytes())) else { continue };
                    let promised = threshold.max(window.recall_above.unwrap_or(0));
                    prop_assert!(truth < promised || raised.contains(name.as_bytes()), "{name} has {truth}, promised from {promised}");
                }
                for number in 0..whole.windows.len() {
                    let (count, bounds) = (whole.count(number, name.as_bytes()), again.estimate(0, number, name.as_bytes()));
                    prop_assert!(bounds.lower <= count && count <= bounds.upper, "{name} in window {number}: {count} in {bounds}");
                }
            }
        }
    }

    /// While nothing is hot and candidates have room, every estimate is that of an engine that never stopped.
    #[test]
    fn a_restored_engine_says_the_same_of_every_key(mut settings in tiny(), steps in steps(300), stop in 0usize..300) {
        settings.keyspaces[0].key_rules = vec![absolute(40.0)];
        settings.keyspaces[0].counting.max_candidates = 64;
        let steps: Vec<Step> = steps.into_iter().map(|step| Step { partition: 0, ..step }).collect();
        let stop = stop % (steps.len() + 1);
        let mut whole = Pair::new(settings.clone());
        feed(&mut whole, &steps[..stop], |_| Ok(()))?;
        let mut again = restored(&taken(&whole.engine), &settings);
        let mut now_ms: i64 = steps[..stop].iter().map(|step| step.forward_ms).sum();
        let mut compared = 0;
        for step in &steps[stop..] {
            now_ms += step.forward_ms;
            let name = key_name(step.key);
            let event = AccessEvent::new(at(now_ms - step.late_ms), name.as_bytes());
            whole.send(0, &event, at(now_ms));
            again.handle_event(Partition(0), &event, at(now_ms)).ok();
            if !whole.verdicts.is_empty() {
                break;
            }
            for number in 0..whole.windows.len() {
                prop_assert_eq!(again.top_keys(0, number, 100), whole.engine.top_keys(0, number, 100));
                for key in (0..40).map(key_name) {
                    let (own, other) = (again.estimate(0, number, key.as_bytes()), whole.engine.estimate(0, number, key.as_bytes()));
                    prop_assert_eq!(own, other);
                    compared += 1;
                }
            }
        }
        prop_assert!(compared > 0 || stop == steps.len() || !whole.verdicts.is_empty());
    }
}

fn plain() -> EngineSettings {
    settings(&[window(10_000, 1_000), window(60_000, 5_000)], &[absolute(10.0)])
}

fn counted(settings: &EngineSettings, events: i64) -> Engine {
    let mut engine = Engine::new(settings.clone());
    (0..events).for_each(|n| send(&mut engine, 0, n * 10, &format!("k{}", n % 7)));
    engine
}

/// H19 (mattlorimor/ProbabilisticDataStructures#39): what differs in shape or seed is refused, with both values, and never mixed.
#[test]
fn h19_other_shapes_and_seeds_are_refused() {
    let own = taken(&counted(&plain(), 100));
    let before = own.to_bytes();
    let refused = |change: fn(&mut EngineSettings), what: &str, values: [&str; 2]| {
        let mut settings = plain();
        change(&mut settings);
        let other = taken(&counted(&settings, 100));
        let mut sum = own.clone();
        let error = sum.merge(&other).unwrap_err();
        let MergeError::Differs(mismatch) = &error else { panic!("{error}") };
        assert_eq!((mismatch.what, [&*mismatch.own, &*mismatch.other]), (what, values));
        assert!(values.iter().all(|value| error.to_string().contains(value)), "{error}");
        assert_eq!(sum.to_bytes(), before, "nothing is mixed");
        assert_eq!(read(&before, &settings).unwrap_err().to_string(), {
            let ReadError::Differs(turned) = read(&before, &settings).unwrap_err() else { panic!("{what}") };
            assert_eq!((turned.what, [&*turned.other, &*turned.own]), (what, values));
            turned.to_string()
        });
        let refused = Engine::new(settings).restore(0, &own).unwrap_err();
        assert!(matches!(refused, RestoreError::Differs(_)), "{refused}");
    };
    refused(|settings| counting(settings).width_log2 = 10, "the sketch's width", ["65536", "1024"]);
    refused(|settings| counting(settings).depth = 3, "the sketch's depth", ["4", "3"]);
    refused(|settings| counting(settings).sample_k = 100, "the number of names listed a pane", ["8192", "200"]);
    refused(
        |settings| counting(settings).mode = CountingMode::Exact { max_keys: 1_000 },
        "the number of names listed a pane",
        ["8192", "1000"],
    );
    refused(|settings| settings.keyspaces[0].hot_on = HotOn::Writes, "what is counted (hot_on)", ["all", "writes"]);
    refused(|settings| settings.keyspaces[0].windows[0] = window(5_000, 1_000), "the window", ["10 panes", "5 panes"]);
    refused(
        |settings| settings.keyspaces[0].windows[1] = window(60_000, 10_000),
        "the longer window's pane",
        ["5000 ms", "10000 ms"],
    );
    refused(|settings| settings.keyspaces[0].windows.truncate(1), "the number of windows", ["2", "1"]);
    refused(|settings| settings.time.disorder = Span::from_secs(30), "the slack", ["7 panes", "35 panes"]);
    let mut settings = plain();
    counting(&mut settings).seed = 43;
    let error = own.clone().merge(&taken(&counted(&settings, 5))).unwrap_err().to_string();
    assert!(error.starts_with("the seed's fingerprint differs: "), "{error}");
    assert!(!error.contains("42") || !error.contains("43"), "no seed is told: {error}");
    // The rounding that hides a difference in other structures: 1,024 and 2,048 cells.
    let narrow = |width_log2| {
        let mut settings = plain();
        counting(&mut settings).width_log2 = width_log2;
        taken(&counted(&settings, 5))
    };
    let error = narrow(10).merge(&narrow(11)).unwrap_err().to_string();
    assert!(error.contains("1024 here, 2048 there"), "{error}");
}

fn counting(settings: &mut EngineSettings) -> &mut CountingSettings {
    &mut settings.keyspaces[0].counting
}

#[test]
fn an_empty_window_changes_nothing_and_one_with_itself_is_double() {
    let settings = plain();
    let own = taken(&counted(&settings, 3_000));
    let empty = Window::new(&settings.keyspaces[0], &settings.time);
    assert!(empty.is_empty() && !own.is_empty());
    let mut sum = own.clone();
    sum.merge(&empty).unwrap();
    assert_eq!(sum.to_bytes(), own.to_bytes());
    let mut sum = empty.clone();
    sum.merge(&own).unwrap();
    assert_eq!(sum.to_bytes(), own.to_bytes());
    sum.merge(&own).unwrap();
    assert_eq!(sum.events(0), 2 * own.events(0));
    let (twice, once) = (sum.estimate(0, b"k3"), own.estimate(0, b"k3"));
    assert_eq!((twice.lower, twice.upper), (2 * once.lower, 2 * once.upper));
    assert!(once.is_exact() && once.lower > 100);
    assert_eq!(merged(&[empty.clone(), empty.clone()]).to_bytes(), empty.to_bytes());
    assert_eq!(read(&empty.to_bytes(), &settings).unwrap().to_bytes(), empty.to_bytes());
}

/// The later part has forgotten panes that the earlier one still has: they are left out and counted, and the newest windows are whole.
#[test]
fn what_falls_out_of_the_rings_is_counted() {
    let settings = plain();
    let early = taken(&counted(&settings, 500));
    let mut engine = Engine::new(settings.clone());
    send(&mut engine, 0, 7_000, "late");
    let mut sum = early.clone();
    sum.merge(&taken(&engine)).unwrap();
    assert_eq!((sum.events(0), sum.left_out(0), sum.left_out(1)), (501, 0, 0));
    send(&mut engine, 0, 600_000, "late");
    let far = taken(&engine);
    let mut sum = early.clone();
    sum.merge(&far).unwrap();
    assert_eq!((sum.events(0), sum.events(1)), (1, 1));
    assert_eq!((sum.left_out(0), sum.left_out(1)), (500, 500));
    assert_eq!(sum.digest(), far.digest());
    // Counts survive bytes and further merges.
    let mut again = read(&sum.to_bytes(), &settings).unwrap();
    again.merge(&early).unwrap();
    assert_eq!(again.left_out(0), 1_000);
}

/// Candidates beyond the limit are dropped, and what is promised says so.
#[test]
fn candidates_beyond_the_limit_are_dropped_and_told() {
    let mut settings = plain();
    *counting(&mut settings) =
        CountingSettings { max_candidates: 16, sample_k: 2, width_log2: 12, seed: 42, ..CountingSettings::default() };
    let busy = |name: &str, heaviest: i64| {
        let mut engine = Engine::new(settings.clone());
        for key in 0..12 {
            (0..40 + heaviest * key).for_each(|n| send(&mut engine, 0, n * 5, &format!("{name}{key}")));
        }
        taken(&engine)
    };
    let (a, b) = (busy("a", 3), busy("b", 1));
    assert_eq!((a.top_keys(0, 100).len(), b.top_keys(0, 100).len()), (12, 12));
    let sum = merged(&[a.clone(), b]);
    assert_eq!(sum.top_keys(0, 100).len(), 16);
    assert!(sum.complete_above(0) > a.complete_above(0));
    let listed: BTreeSet<Vec<u8>> = sum.top_keys(0, 100).iter().map(|(key, _)| key.to_vec()).collect();
    for (name, heaviest) in [("a", 3), ("b", 1)] {
        for key in 0..12u64 {
            let (name, count) = (format!("{name}{key}"), 40 + heaviest * key);
            assert!(listed.contains(name.as_bytes()) || count < sum.complete_above(0), "{name} has {count}");
        }
    }
}

/// What is hot when a window is restored is judged at once; what had only not cleared yet is cold.
#[test]
fn heat_is_judged_at_once_after_a_restore() {
    let settings = plain();
    let mut pair = Pair::new(settings.clone());
    pair.events(0, "hot", 150);
    pair.events(500, "warm", 150);
    pair.events(9_500, "hot", 90);
    pair.events(9_500, "calm", 20);
    pair.events(11_500, "calm", 1);
    assert_eq!((pair.changes("hot"), pair.changes("warm")), (vec![Change::Hot], vec![Change::Hot]));
    pair.events(12_000, "hot", 60);
    assert_eq!(pair.engine.hot_keys(0).len(), 2);
    let mut engine = restored(&taken(&pair.engine), &settings);
    let verdict = engine.poll_verdict().unwrap();
    assert_eq!((verdict.change, verdict.reason.count.lower, verdict.at), (Change::Hot, 150, at(12_000)));
    assert_eq!(
        engine.poll_verdict().map(|verdict| verdict.change),
        None,
        "in neither window is another key at its threshold"
    );
    assert_eq!(engine.hot_keys(0).len(), 1);
    let refused = engine.restore(0, &taken(&pair.engine)).unwrap_err();
    assert!(matches!(refused, RestoreError::NotNew(_)), "{refused}");
    let refused = engine.restore(1, &taken(&pair.engine)).unwrap_err();
    assert_eq!(refused, RestoreError::NoKeyspace(1));
}

/// What was watched before counts as watched: a restored engine is not warming up again.
#[test]
fn a_restored_engine_is_as_warm_as_it_was() {
    let settings = plain();
    for (events, warming_up) in [(3_000, true), (7_000, false)] {
        let mut engine = counted(&settings, events);
        assert_eq!(engine.condition().warming_up, warming_up);
        let mut again = restored(&taken(&engine), &settings);
        for engine in [&mut engine, &mut again] {
            send(engine, 0, events * 10, "more");
            assert_eq!(engine.condition().warming_up, warming_up, "{events}");
        }
    }
}
