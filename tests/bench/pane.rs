//! How long the call takes that ends a pane: everything is judged anew then, and events wait.
//!
//! `cargo bench --no-default-features --bench pane`: almost 4,096 candidates, 1,000 of them hot, so that as many as may have detail, 20,000
//! other keys in each second, 16 shards, both windows full, samples full. Every round does the same work; the least of the rounds
//! is taken for each pane, so that what else runs is not measured, then the median and the worst of the panes.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on panics")]
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::time::Duration;

use keyheat::engine::{CountingSettings, Engine, EngineSettings, KeyspaceSettings, Rule, TimeSettings, WindowSettings};
use keyheat::input::{AccessEvent, Operation};
use keyheat::units::{EventTime, Partition, Rate, Span};

const BASE_MS: i64 = 1_700_000_000_000;
const ROUNDS: usize = 5;
/// Seconds of event time before the first that is measured: both windows and the slack are full.
const FILL_S: i64 = 66;
/// Seconds that are measured.
const MEASURED_S: i64 = 30;
/// Keys above the threshold, with their events a second.
const HOT: (u32, u32) = (1_000, 24);
/// Keys above an eighth of it.
const WARM: (u32, u32) = (3_060, 4);
/// Keys of one event in one second.
const OTHERS: u32 = 20_000;

fn engine(rules: &[Rule]) -> Engine {
    let window = |length, pane| WindowSettings { length: Span::from_secs(length), pane: Span::from_secs(pane) };
    let mut key_rules = vec![Rule::Absolute { rate: Rate::per_second(20.0).unwrap() }];
    key_rules.extend_from_slice(rules);
    let keyspace = KeyspaceSettings {
        name: "bench".to_owned(),
        windows: vec![window(10, 1), window(60, 5)],
        key_rules,
        shard_rules: vec![Rule::Relative { multiple: 5.0, floor: 20 }],
        plan_seed: 17,
        counting: CountingSettings { seed: 42, ..CountingSettings::default() },
        ..KeyspaceSettings::default()
    };
    Engine::new(EngineSettings { keyspaces: vec![keyspace], time: TimeSettings::default() })
}

/// Times of the calls that end a pane, and of the ticks in the middle of one.
#[derive(Default)]
struct Times {
    closes: Vec<Duration>,
    ticks: Vec<Duration>,
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn timed(work: impl FnOnce()) -> Duration {
    let begin = std::time::Instant::now();
    work();
    begin.elapsed()
}

fn run(mut engine: Engine) -> (Times, Engine) {
    let shards: Vec<String> = (0..16).map(|shard| format!("shard-{shard}")).collect();
    // The steady keys take turns, as they come in a log.
    let rounds = (0..HOT.1).flat_map(|round| (0..HOT.0).chain(HOT.0..HOT.0 + if round < WARM.1 { WARM.0 } else { 0 }));
    let steady: Vec<(u32, String)> = rounds.map(|key| (key, format!("user:{key}"))).collect();
    let mut times = Times::default();
    for second in 0..FILL_S + MEASURED_S {
        let at = |ms: i64| EventTime::from_millis(BASE_MS + second * 1_000 + ms).unwrap();
        let others = (0..OTHERS).map(|key| (key, format!("other:{second}:{key}")));
        let is_measured = second >= FILL_S;
        for (place, (number, key)) in steady.iter().cloned().chain(others).enumerate() {
            let ms = if place == 0 { 0 } else { 1 + i64::from(number % 900) };
            let id = place.to_le_bytes();
            let event = AccessEvent {
                shard: shards[number as usize % 16].as_bytes(),
                operation: if place % 4 == 0 { Operation::Write } else { Operation::Read },
                caller: b"service",
                request_id: &id,
                ..AccessEvent::new(at(ms), key.as_bytes())
            };
            let mut work = || engine.handle_event(Partition(0), &event, at(ms)).unwrap();
            if place == 0 && is_measured {
                times.closes.push(timed(work));
            } else {
                work();
            }
            while engine.poll_verdict().is_some() {}
        }
        let tick = timed(|| engine.handle_tick(at(950)));
        if is_measured {
            times.ticks.push(tick);
        }
    }
    (times, engine)
}

fn main() {
    // `cargo test --all-targets` starts benchmarks as tests: nothing to measure there.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let median = [Rule::Relative { multiple: 1_000.0, floor: 20 }];
    for (name, rules) in [("a rate", &[][..]), ("a rate and a median", &median[..])] {
        let mut least = Times::default();
        for _ in 0..ROUNDS {
            let (times, engine) = run(engine(rules));
            let status = engine.status(0);
            assert!((4_000..=4_096).contains(&status.candidates) && status.hot >= 1_000, "{status:?}");
            for (least, times) in [(&mut least.closes, times.closes), (&mut least.ticks, times.ticks)] {
                least.resize(times.len(), Duration::MAX);
                least.iter_mut().zip(times).for_each(|(least, time)| *least = time.min(*least));
            }
        }
        for (what, times) in [("end of a pane", &mut least.closes), ("tick", &mut least.ticks)] {
            times.sort();
            let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
            println!("{name}: {what}: median {median:.2?}, worst {worst:.2?} of {} panes", times.len());
        }
    }
}
