//! Properties: whatever comes in whatever order, the bounds hold, nothing hot is missed and nothing is wrongly confirmed.

use std::collections::BTreeSet;

use keyheat::engine::{Change, CountingSettings, Rule, Subject};
use keyheat::input::AccessEvent;
use keyheat::units::{Partition, Span};
use proptest::prelude::*;

use crate::oracle::{BASE_MS, Pair, at, settings, window};
use crate::random::{Step, feed, key_name, steps, tiny};

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn bounds_hold_after_every_event(settings in tiny(), steps in steps(250)) {
        let mut pair = Pair::new(settings);
        let keys: BTreeSet<u8> = steps.iter().map(|step| step.key).collect();
        feed(&mut pair, &steps, |pair| {
            for key in &keys {
                let name = key_name(*key);
                for number in 0..pair.windows.len() {
                    let truth = pair.count(number, name.as_bytes());
                    let bounds = pair.engine.estimate(0, number, name.as_bytes());
                    prop_assert!(bounds.lower <= truth && truth <= bounds.upper, "{name} window {number}: {truth} in {bounds}");
                }
            }
            for number in 0..pair.windows.len() {
                for (key, bounds) in pair.engine.top_keys(0, number, usize::MAX) {
                    let truth = pair.count(number, &key);
                    prop_assert!(bounds.lower <= truth && truth <= bounds.upper, "candidate: {truth} in {bounds}");
                }
            }
            Ok(())
        })?;
    }

    /// A key at or above both the threshold and `recall_above` is hot or suspect.
    #[test]
    fn nothing_hot_is_missed(settings in tiny(), steps in steps(250)) {
        let mut pair = Pair::new(settings);
        let keys: BTreeSet<u8> = steps.iter().map(|step| step.key).collect();
        feed(&mut pair, &steps, |pair| {
            let status = pair.engine.status(0);
            let raised: BTreeSet<Vec<u8>> = pair.engine.hot_keys(0).iter().map(|hot| hot.key.to_vec()).collect();
            for (number, window) in status.windows.iter().enumerate() {
                let Some(threshold) = window.threshold else { continue };
                let promised = threshold.max(window.recall_above.unwrap_or(0));
                for key in &keys {
                    let name = key_name(*key);
                    let truth = pair.count(number, name.as_bytes());
                    prop_assert!(
                        truth < promised || raised.contains(name.as_bytes()),
                        "{name} has {truth} in window {number}, promised from {promised}: {status:?}"
                    );
                }
            }
            Ok(())
        })?;
    }

    /// Whatever is said to be hot by an absolute rule has reached its threshold in some window.
    #[test]
    fn nothing_is_wrongly_confirmed(settings in tiny(), steps in steps(400)) {
        let mut pair = Pair::new(settings);
        feed(&mut pair, &steps, |_| Ok(()))?;
        for verdict in pair.verdicts.iter().filter(|verdict| verdict.change == Change::Hot) {
            let Subject::Key(key) = &verdict.subject else { continue };
            let number = pair.windows.iter().position(|window| window.length == verdict.reason.window).unwrap();
            prop_assert!(verdict.reason.count.lower >= verdict.reason.threshold);
            let most = pair.most(number, key);
            prop_assert!(most >= verdict.reason.count.lower, "{verdict:?}: at most {most}");
        }
    }

    /// Panes and samples are sums of events: shuffled within the disorder they are the same bit for bit.
    #[test]
    fn order_within_the_disorder_does_not_matter(
        mut settings in tiny(), times in prop::collection::vec((0u8..30, 0i64..400), 1..300), seed in any::<u64>(),
    ) {
        settings.time.disorder = Span::from_millis(2_000);
        let mut clock = 0;
        let mut events: Vec<(i64, u8)> = times.iter().map(|(key, forward)| { clock += forward; (clock, *key) }).collect();
        let digest = |events: &[(i64, u8)]| {
            let mut pair = Pair::new(settings.clone());
            // The first and the last event are the same in both orders, so that both begin and end at the same time.
            pair.event(0, "begin");
            events.iter().for_each(|(ms, key)| pair.send(0, &AccessEvent::new(at(*ms), key_name(*key).as_bytes()), at(*ms + 2_000)));
            pair.event(clock + 2_000, "end");
            assert!(pair.refused.is_empty(), "{:?}", pair.refused);
            pair.engine.digest(0)
        };
        let straight = digest(&events);
        // Each event arrives up to 2 s after its time, by a hash of its place and the seed.
        let mut state = seed;
        let mut delayed: Vec<(i64, (i64, u8))> = events.iter().map(|event| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (event.0 + i64::try_from(state >> 33).unwrap() % 2_000, *event)
        }).collect();
        delayed.sort_by_key(|entry| entry.0);
        events = delayed.into_iter().map(|entry| entry.1).collect();
        prop_assert_eq!(straight, digest(&events));
    }

    /// Split over partitions, interleaved in any way that no event is too late: the same panes.
    #[test]
    fn the_partition_of_an_event_does_not_matter(settings in tiny(), steps in steps(200)) {
        let in_order: Vec<Step> = steps.iter().map(|step| Step { late_ms: 0, ..*step }).collect();
        let mut one = Pair::new(settings.clone());
        feed(&mut one, &in_order.iter().map(|step| Step { partition: 0, ..*step }).collect::<Vec<_>>(), |_| Ok(()))?;
        let mut many = Pair::new(settings);
        feed(&mut many, &in_order, |_| Ok(()))?;
        // Both end with every partition at the end of time.
        let end_ms: i64 = in_order.iter().map(|step| step.forward_ms).sum();
        for pair in [&mut one, &mut many] {
            for partition in 0..3 {
                pair.send(partition, &AccessEvent::new(at(end_ms), b"end"), at(end_ms));
            }
        }
        prop_assert_eq!(one.engine.digest(0), many.engine.digest(0));
    }
}

/// The sample's median and number of keys lie inside their bounds at every pane, whatever the number of keys.
#[test]
fn the_median_of_the_newest_closed_window_is_inside_its_bounds() {
    for seed in 0..8u64 {
        let mut settings = settings(&[window(4_000, 1_000)], &[Rule::Relative { multiple: 50.0, floor: 1_000 }]);
        settings.keyspaces[0].counting =
            CountingSettings { seed, sample_k: 512, width_log2: 10, ..CountingSettings::default() };
        let mut pair = Pair::new(settings);
        let keys = 300 + 900 * seed;
        let mut counts = std::collections::BTreeMap::<i64, std::collections::BTreeMap<u64, u64>>::new();
        for second in 0..8i64 {
            for key in 0..keys {
                for _ in 0..1 + (key * key + seed) % 7 {
                    pair.event(second * 1_000 + 500, &format!("n{key}"));
                    *counts.entry(second).or_default().entry(key).or_default() += 1;
                }
            }
            let status = pair.engine.status(0).windows.remove(0);
            let mut truth: std::collections::BTreeMap<u64, u64> = std::collections::BTreeMap::new();
            counts
                .range(second - 4..second)
                .flat_map(|(_, pane)| pane)
                .for_each(|(key, n)| *truth.entry(*key).or_default() += n);
            let mut sorted: Vec<u64> = truth.values().copied().collect();
            sorted.sort_unstable();
            let distinct = sorted.len() as u64;
            assert!(status.keys.lower <= distinct && distinct <= status.keys.upper, "{distinct} in {}", status.keys);
            if let Some(median) = status.median {
                let doubled = sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2];
                assert!(2 * median.lower <= doubled && doubled <= 2 * median.upper, "{doubled}/2 in {median}");
                assert_eq!(median.is_exact() || doubled % 2 == 1, keys <= 1_024, "exact with few keys: {median}");
            }
        }
        assert_eq!(BASE_MS % 60_000, 0);
        assert_eq!(pair.engine.condition().watermark.map(|time| time.as_millis()), Some(BASE_MS + 5_500));
        let _ = Partition(0);
    }
}
