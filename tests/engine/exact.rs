//! Exact mode: the truth itself while its maps have room, bounds beyond, and never later than the sketch.

use std::collections::BTreeSet;

use keyheat::engine::{Change, CountingMode, Engine, EngineSettings, Subject, Verdict};
use keyheat::input::AccessEvent;
use proptest::prelude::*;

use crate::oracle::{Pair, absolute, at, settings, window};
use crate::random::{Step, feed, key_name, steps, tiny};

fn exact(mut settings: EngineSettings, max_keys: usize) -> EngineSettings {
    settings.keyspaces[0].counting.mode = CountingMode::Exact { max_keys };
    settings
}

fn keys(steps: &[Step]) -> BTreeSet<String> {
    steps.iter().map(|step| key_name(step.key)).collect()
}

/// True when the key was hot before the verdicts from `fresh` on, or is so by one of them. Times of verdicts say less: those of one
/// key never go back.
fn was_hot(verdicts: &[Verdict], fresh: usize, subject: &Subject) -> bool {
    let is_hot = |verdict: &&Verdict| verdict.change == Change::Hot;
    let own = |verdict: &&Verdict| verdict.subject == *subject;
    let (before, now) = verdicts.split_at(fresh);
    now.iter().filter(own).any(|verdict| is_hot(&verdict)) || before.iter().rfind(own).is_some_and(|last| is_hot(&last))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Every key, candidate or not, in every window, after every event.
    #[test]
    fn every_count_is_the_truth(settings in tiny(), steps in steps(250)) {
        let mut pair = Pair::new(exact(settings, 64));
        let keys = keys(&steps);
        feed(&mut pair, &steps, |pair| {
            for number in 0..pair.windows.len() {
                for key in &keys {
                    let (truth, bounds) = (pair.count(number, key.as_bytes()), pair.engine.estimate(0, number, key.as_bytes()));
                    prop_assert!(bounds.is_exact() && bounds.lower == truth, "{key} in window {number}: {truth} is {bounds}");
                }
                for (key, bounds) in pair.engine.top_keys(0, number, usize::MAX) {
                    prop_assert!(bounds.is_exact() && bounds.lower == pair.count(number, &key));
                }
            }
            prop_assert_eq!(pair.engine.status(0).exact_panes_cut, 0);
            Ok(())
        })?;
    }

    /// The sketch beside it: its bounds hold the exact count, and what it proves hot is hot there, then or before.
    #[test]
    fn the_sketch_contains_it_and_is_never_earlier(mut settings in tiny(), steps in steps(300)) {
        // Room for every key: what finds no room among the candidates is missed in either mode.
        settings.keyspaces[0].counting.max_candidates = 64;
        let mut truth = Pair::new(exact(settings.clone(), 64));
        let mut sketch = Pair::new(settings);
        let keys = keys(&steps);
        let (mut place, mut told) = (0, 0);
        feed(&mut sketch, &steps, |sketch| {
            let fresh = truth.verdicts.len();
            feed_one(&mut truth, &steps, place);
            place += 1;
            for verdict in sketch.verdicts[told..].iter().filter(|verdict| verdict.change == Change::Hot) {
                prop_assert!(was_hot(&truth.verdicts, fresh, &verdict.subject), "{verdict:?}, exact: {:?}", truth.verdicts);
            }
            told = sketch.verdicts.len();
            for number in 0..sketch.windows.len() {
                for key in &keys {
                    let (own, exact) = (sketch.engine.estimate(0, number, key.as_bytes()), truth.engine.estimate(0, number, key.as_bytes()));
                    prop_assert!(own.lower <= exact.lower && exact.upper <= own.upper, "{key} in window {number}: {exact} in {own}");
                }
            }
            Ok(())
        })?;
    }

    /// With more names than its maps hold: bounds, never a wrong number.
    #[test]
    fn beyond_its_room_it_has_bounds(settings in tiny(), steps in steps(250), max_keys in 2usize..20) {
        let mut pair = Pair::new(exact(settings, max_keys));
        let keys = keys(&steps);
        feed(&mut pair, &steps, |pair| {
            for number in 0..pair.windows.len() {
                for key in &keys {
                    let (truth, bounds) = (pair.count(number, key.as_bytes()), pair.engine.estimate(0, number, key.as_bytes()));
                    prop_assert!(bounds.lower <= truth && truth <= bounds.upper, "{key} in window {number}: {truth} in {bounds}");
                }
            }
            Ok(())
        })?;
    }
}

/// The step at a place, when the clock has come to its time.
fn feed_one(pair: &mut Pair, steps: &[Step], place: usize) {
    let now_ms: i64 = steps[..=place].iter().map(|step| step.forward_ms).sum();
    let (step, name) = (&steps[place], key_name(steps[place].key));
    pair.send(step.partition, &AccessEvent::new(at(now_ms - step.late_ms), name.as_bytes()), at(now_ms));
}

/// A pane with one name too many is counted, once for each window that it belongs to, and exactness comes back with new panes.
#[test]
fn a_pane_without_room_is_counted_and_passes() {
    let settings = exact(settings(&[window(4_000, 1_000), window(12_000, 4_000)], &[absolute(100.0)]), 10);
    let mut pair = Pair::new(settings);
    let cut = |pair: &Pair| pair.engine.status(0).exact_panes_cut;
    for second in 0..4 {
        (0..10).for_each(|key| pair.event(second * 1_000, &format!("k{key}")));
    }
    pair.event(4_000, "k1");
    assert_eq!(cut(&pair), 0, "ten names a pane, the longer window's included");
    (0..12).for_each(|key| pair.event(4_500, &format!("k{key}")));
    assert!(!pair.engine.estimate(0, 0, b"k11").is_exact() || !pair.engine.estimate(0, 0, b"k10").is_exact());
    pair.event(5_000, "k1");
    assert_eq!(cut(&pair), 2, "a short pane and the long one that it is part of");
    // A late event makes a closed pane too large.
    pair.event(6_000, "k1");
    (0..10).for_each(|key| pair.event(4_900 + 100, &format!("l{key}")));
    assert_eq!(cut(&pair), 3, "the long one was cut before");
    for second in 7..30 {
        pair.event(second * 1_000, "k1");
    }
    assert!((0..12).all(|key| pair.engine.estimate(0, 1, format!("k{key}").as_bytes()).is_exact()));
    assert_eq!(cut(&pair), 3);
}

/// What it takes is known at the start: a map of 100,000 names a pane takes 2.1 MiB.
#[test]
fn memory_is_bounded_by_the_number_of_keys() {
    let plain = settings(&[window(10_000, 1_000), window(60_000, 5_000)], &[absolute(10.0)]);
    let bytes = |max_keys| Engine::memory_bytes(&exact(plain.clone(), max_keys));
    assert_eq!(bytes(8_192), Engine::memory_bytes(&plain), "the sketch's sample is such a map");
    // 31 panes and the 12 that the median of the longer window is made of.
    let map = (1u64 << 17) * 17;
    assert_eq!(bytes(100_000) - bytes(8_192), 43 * (map - (1 << 14) * 17));
}
