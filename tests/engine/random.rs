//! Random streams, and structures so small that everything collides.

use keyheat::engine::{CountingMode, CountingSettings, EngineSettings, Rule, TimeSettings};
use keyheat::input::AccessEvent;
use keyheat::units::Span;
use proptest::prelude::*;

use crate::oracle::{Pair, absolute, at, settings, window};

/// One step: a key, how far event time moves on, how late the event is, its partition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) key: u8,
    pub(crate) forward_ms: i64,
    pub(crate) late_ms: i64,
    pub(crate) partition: i32,
}

pub(crate) fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let key = prop_oneof![4 => Just(0u8), 3 => 1u8..4, 3 => 4u8..40];
    let forward = prop_oneof![6 => Just(0i64), 3 => 0i64..400, 1 => 0i64..3_000, 1 => Just(40_000i64)];
    let late = prop_oneof![6 => Just(0i64), 3 => 0i64..2_500, 1 => 0i64..20_000];
    let step = (key, forward, late, 0i32..3).prop_map(|(key, forward_ms, late_ms, partition)| Step {
        key,
        forward_ms,
        late_ms,
        partition,
    });
    prop::collection::vec(step, 1..most)
}

/// A structure so small that everything collides: rows of 8 or 64 cells, few listed names, few candidates.
pub(crate) fn tiny() -> impl Strategy<Value = EngineSettings> {
    let rules = prop_oneof![
        Just(vec![absolute(0.75)]),
        Just(vec![absolute(2.0)]),
        Just(vec![Rule::Relative { multiple: 3.0, floor: 3 }, absolute(5.0)]),
    ];
    let shape = (1usize..5, prop_oneof![Just(3u32), Just(6)], 1usize..6, 2usize..12, 0usize..8);
    (rules, shape, any::<u64>(), any::<bool>(), 0u64..3_000).prop_map(|(rules, shape, seed, two, disorder)| {
        let (depth, width_log2, sample_k, max_candidates, max_protected) = shape;
        let short = window(4_000, 1_000);
        let windows = if two { vec![short, window(12_000, 3_000)] } else { vec![short] };
        let mut settings = settings(&windows, &rules);
        settings.keyspaces[0].counting = CountingSettings {
            depth,
            width_log2,
            seed,
            max_candidates,
            max_protected: max_protected.min(max_candidates),
            sample_k,
            mode: CountingMode::Sketch,
        };
        settings.keyspaces[0].clear_after = Span::from_secs(2);
        settings.time = TimeSettings {
            disorder: Span::from_millis(disorder),
            max_ahead: Span::from_secs(1),
            idle_timeout: Span::from_secs(5),
        };
        settings
    })
}

pub(crate) fn key_name(key: u8) -> String {
    format!("k{key}")
}

/// Feeds the steps; calls `check` after each.
pub(crate) fn feed(
    pair: &mut Pair,
    steps: &[Step],
    mut check: impl FnMut(&Pair) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let mut now_ms = 0;
    for step in steps {
        now_ms += step.forward_ms;
        let name = key_name(step.key);
        let event = AccessEvent::new(at(now_ms - step.late_ms), name.as_bytes());
        pair.send(step.partition, &event, at(now_ms));
        check(pair)?;
    }
    Ok(())
}
