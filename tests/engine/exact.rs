//! Exact mode: the truth itself while its maps have room, bounds beyond, and never later than the sketch.

use std::collections::BTreeSet;

use keyheat::engine::{Change, CountingMode, Engine, EngineSettings, Subject, Verdict};
use keyheat::units::EventTime;
use proptest::prelude::*;

use crate::oracle::{Pair, absolute, settings, window};
use crate::random::{Step, feed, key_name, steps, tiny};

fn exact(mut settings: EngineSettings, max_keys: usize) -> EngineSettings {
    settings.keyspaces[0].counting.mode = CountingMode::Exact { max_keys };
    settings
}

fn keys(steps: &[Step]) -> BTreeSet<String> {
    steps.iter().map(|step| key_name(step.key)).collect()
}

/// The last thing said of the key up to a moment, a cooling at that very moment left aside.
fn said(verdicts: &[Verdict], subject: &Subject, at: EventTime) -> Option<Change> {
    let own = verdicts.iter().filter(|verdict| verdict.subject == *subject && verdict.at <= at);
    own.filter(|verdict| verdict.at < at || verdict.change != Change::Cleared).map(|verdict| verdict.change).next_back()
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
        let mut at = 0;
        feed(&mut sketch, &steps, |sketch| {
            // The same event, after the clock has come to the same time.
            let mut now_ms = steps[..at].iter().map(|step| step.forward_ms).sum();
            feed_one(&mut truth, &steps[at], &mut now_ms);
            at += 1;
            for number in 0..sketch.windows.len() {
                for key in &keys {
                    let (own, exact) = (sketch.engine.estimate(0, number, key.as_bytes()), truth.engine.estimate(0, number, key.as_bytes()));
                    prop_assert!(own.lower <= exact.lower && exact.upper <= own.upper, "{key} in window {number}: {exact} in {own}");
                }
            }
            Ok(())
        })?;
        for verdict in sketch.verdicts.iter().filter(|verdict| verdict.change == Change::Hot) {
            let there = said(&truth.verdicts, &verdict.subject, verdict.at);
            prop_assert!(there == Some(Change::Hot), "{verdict:?}, exact: {there:?}\n{:?}", truth.verdicts);
        }
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

fn feed_one(pair: &mut Pair, step: &Step, now_ms: &mut i64) {
    use keyheat::input::AccessEvent;
    *now_ms += step.forward_ms;
    let name = key_name(step.key);
    let event = AccessEvent::new(crate::oracle::at(*now_ms - step.late_ms), name.as_bytes());
    pair.send(step.partition, &event, crate::oracle::at(*now_ms));
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
