//! What it costs to count one event, beside an exact hash map without any window, in the same run.
//!
//! `cargo bench --no-default-features --bench engine [-- MILLIONS [NAME]]`: so many millions of events (4 unless given) on
//! one million keys by Zipf 1.0, 20 s of event time, one thread; only contestants with NAME in theirs, beside the map. Contestants take turns, so that a busy machine slows all of
//! them; the medians of five rounds and their ratio to the map are printed.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on panics")]
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

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

/// Keys of all events one after the other, as a consumer reads them, with their ranks and times.
struct Stream {
    text: String,
    ends: Vec<usize>,
    ranks: Vec<u32>,
    times: Vec<EventTime>,
}

impl Stream {
    fn new(events: usize) -> Self {
        let mut state = 88_172_645_463_325_252u64;
        let uniform = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            f64::from(u32::try_from(state >> 32).unwrap()) / f64::from(u32::MAX)
        };
        let ranks: Vec<u32> = std::iter::repeat_with(uniform).map(zipf).take(events).collect();
        let mut text = String::new();
        let mut end_of = |rank: &u32| {
            text.push_str("user:");
            text.push_str(&rank.to_string());
            text.len()
        };
        let ends = ranks.iter().map(&mut end_of).collect();
        let time = |event: usize| {
            let ms = event as u64 * SPAN_MS / events as u64;
            EventTime::from_millis(BASE_MS + i64::try_from(ms).unwrap()).unwrap()
        };
        Self { text, ends, ranks, times: (0..events).map(time).collect() }
    }

    fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        self.ends.iter().map(move |end| {
            let key = &self.text.as_bytes()[from..*end];
            from = *end;
            key
        })
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
        overrides: Vec::new(),
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
    let mut counts: HashMap<Box<[u8]>, u64> = HashMap::new();
    for key in stream.keys() {
        match counts.get_mut(key) {
            Some(count) => *count += 1,
            None => {
                counts.insert(key.into(), 1);
            }
        }
    }
    counts.len() as u64
}

fn count_in_windows(stream: &Stream, mut engine: Engine, whole: bool) -> u64 {
    let shards: Vec<String> = (0..16).map(|shard| format!("shard-{shard}")).collect();
    let callers: Vec<String> = (0..64).map(|caller| format!("service-{caller}")).collect();
    for (event, key) in stream.keys().enumerate() {
        let (number, time) = (event as u64, stream.times[event]);
        let mut access = AccessEvent::new(time, key);
        let id = number.to_le_bytes();
        if whole {
            access.shard = shards[stream.ranks[event] as usize & 15].as_bytes();
            access.caller = callers[(event * 7) & 63].as_bytes();
            access.operation = if number.is_multiple_of(4) { Operation::Write } else { Operation::Read };
            access.request_id = &id;
        }
        engine.handle_event(Partition(0), &access, time).unwrap();
        while engine.poll_verdict().is_some() {}
    }
    engine.status(0).candidates as u64
}

fn read_only(stream: &Stream) -> u64 {
    stream.keys().map(|key| u64::from(key[key.len() - 1])).sum()
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
    let only =
        std::env::args().skip(1).find(|argument| !argument.starts_with('-') && argument.parse::<usize>().is_err());
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
    let wanted = |name: &str, at: usize| at == 0 || only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let contestants: Vec<_> = contestants
        .into_iter()
        .enumerate()
        .filter(|(at, entry)| wanted(entry.0, *at))
        .map(|(_, entry)| entry)
        .collect();
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
        println!("{name:32} {ns:7.1} ns/event  {:5.2} of the map  ({result} names or candidates)", ns / medians[0]);
    }
}
