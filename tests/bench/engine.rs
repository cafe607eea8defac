//! What it costs to count one event, beside an exact hash map without any window, in the same run.
//!
//! `cargo bench --no-default-features --bench engine [-- MILLIONS]`: so many millions of events (4 unless given) on one
//! million keys by Zipf 1.0, 20 s of event time, one thread. Contestants take turns, so that a busy machine slows all of
//! them; the medians of five rounds and their ratio to the map are printed.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on panics")]

use std::time::Duration;

use hashbrown::HashMap;
use keyheat::engine::{
    CountingSettings, Engine, EngineSettings, HotOn, KeyspaceSettings, Rule, TimeSettings, WindowSettings,
};
use keyheat::input::{AccessEvent, Operation};
use keyheat::units::{EventTime, Partition, Rate, Share, Span};

const KEYS: u32 = 1_000_000;
const ROUNDS: usize = 5;
const SPAN_MS: u64 = 20_000;
const BASE_MS: i64 = 1_700_000_000_000;

/// Events as places of their keys in one text, and that text.
struct Stream {
    text: String,
    keys: Vec<(usize, usize)>,
    events: Vec<u32>,
}

impl Stream {
    fn new(events: usize) -> Self {
        let mut text = String::new();
        let keys = (0..KEYS)
            .map(|key| {
                let from = text.len();
                text.push_str("user:");
                // Ranks are spread over the names, so that neighbours in rank are not neighbours in memory.
                text.push_str(&(u64::from(key) * 7_919 % 1_000_003).to_string());
                (from, text.len())
            })
            .collect();
        let mut state = 88_172_645_463_325_252u64;
        let uniform = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            f64::from(u32::try_from(state >> 32).unwrap()) / f64::from(u32::MAX)
        };
        let events = std::iter::repeat_with(uniform).map(zipf).take(events).collect();
        Self { text, keys, events }
    }

    fn key(&self, event: usize) -> &[u8] {
        let (from, until) = self.keys[self.events[event] as usize];
        &self.text.as_bytes()[from..until]
    }
}

/// The rank behind a uniform number: `keys^u`, whose density is `1 / rank`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the number of keys")]
fn zipf(uniform: f64) -> u32 {
    (f64::from(KEYS).powf(uniform) as u32 - 1).min(KEYS - 1)
}

/// Keys from this rate on are hot; an eighth of it makes a candidate.
fn engine(rate: f64, rules: &[Rule]) -> Engine {
    let window = |length, pane| WindowSettings { length: Span::from_secs(length), pane: Span::from_secs(pane) };
    let mut key_rules = vec![Rule::Absolute { rate: Rate::per_second(rate).unwrap() }];
    key_rules.extend_from_slice(rules);
    let keyspace = KeyspaceSettings {
        name: "bench".to_owned(),
        windows: vec![window(10, 1), window(60, 5)],
        key_rules,
        shard_rules: vec![Rule::Relative { multiple: 5.0, floor: 20 }],
        min_keys: 8,
        clear: Share::new(0.7).unwrap(),
        clear_after: Span::from_secs(30),
        hot_on: HotOn::All,
        declared_shards: Vec::new(),
        shard_memory: Span::from_secs(600),
        plan_seed: 17,
        counting: CountingSettings { seed: 42, ..CountingSettings::default() },
    };
    Engine::new(EngineSettings { keyspaces: vec![keyspace], time: TimeSettings::default() })
}

fn count_exactly(stream: &Stream) -> u64 {
    let mut counts: HashMap<&[u8], u64> = HashMap::new();
    for event in 0..stream.events.len() {
        *counts.entry(stream.key(event)).or_default() += 1;
    }
    counts.len() as u64
}

fn count_in_windows(stream: &Stream, mut engine: Engine, whole: bool) -> u64 {
    let shards: Vec<String> = (0..16).map(|shard| format!("shard-{shard}")).collect();
    let callers: Vec<String> = (0..64).map(|caller| format!("service-{caller}")).collect();
    let events = stream.events.len() as u64;
    for event in 0..stream.events.len() {
        let number = event as u64;
        let time = EventTime::from_millis(BASE_MS + i64::try_from(number * SPAN_MS / events).unwrap()).unwrap();
        let mut access = AccessEvent::new(time, stream.key(event));
        let id = number.to_le_bytes();
        if whole {
            access.shard = shards[stream.events[event] as usize % shards.len()].as_bytes();
            access.caller = callers[event * 7 % callers.len()].as_bytes();
            access.operation = if number.is_multiple_of(4) { Operation::Write } else { Operation::Read };
            access.request_id = &id;
        }
        engine.handle_event(Partition(0), &access, time).unwrap();
        while engine.poll_verdict().is_some() {}
    }
    engine.status(0).candidates as u64
}

fn read_only(stream: &Stream) -> u64 {
    (0..stream.events.len()).map(|event| stream.key(event).len() as u64).sum()
}

/// Processor time of this thread where the system tells it, so that what else runs is not measured; else the clock.
#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn timed(run: &dyn Fn() -> u64) -> (Duration, u64) {
    let processor = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    };
    let (clock, begin) = (std::time::Instant::now(), processor());
    let result = std::hint::black_box(run());
    let used = processor().zip(begin).map(|(end, begin)| end - begin);
    (used.unwrap_or_else(|| clock.elapsed()), result)
}

fn main() {
    // `cargo test --all-targets` starts benchmarks as tests: nothing to measure there.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let millions = std::env::args().filter_map(|argument| argument.parse::<usize>().ok()).next().unwrap_or(4);
    let stream = Stream::new(millions * 1_000_000);
    let relative = [Rule::Relative { multiple: 1_000.0, floor: 20 }];
    let contestants: [(&str, &dyn Fn() -> u64); 6] = [
        ("exact map without a window", &|| count_exactly(&stream)),
        ("reading the keys alone", &|| read_only(&stream)),
        ("keys alone, few candidates", &|| count_in_windows(&stream, engine(3_000.0, &[]), false)),
        ("whole events, few candidates", &|| count_in_windows(&stream, engine(3_000.0, &[]), true)),
        ("whole events, many candidates", &|| count_in_windows(&stream, engine(80.0, &[]), true)),
        ("whole events, relative rule", &|| count_in_windows(&stream, engine(3_000.0, &relative), true)),
    ];
    let mut times = vec![Vec::new(); contestants.len()];
    let mut results = vec![0; contestants.len()];
    for _ in 0..ROUNDS {
        for (at, (_, run)) in contestants.iter().enumerate() {
            let (time, result) = timed(run);
            times[at].push(time.as_secs_f64() * 1e9 / (millions as f64 * 1e6));
            results[at] = result;
        }
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let medians: Vec<f64> = times.iter_mut().map(median).collect();
    for (((name, _), ns), result) in contestants.iter().zip(&medians).zip(&results) {
        println!("{name:32} {ns:7.1} ns/event  {:5.2} of the map  ({result} names or bytes)", ns / medians[0]);
    }
}
