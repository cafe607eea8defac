//! Streams and contestants of the benches that count: the same work for clocks and for instruction counts.

use hashbrown::HashMap;
use keyheat::engine::{CountingSettings, Engine, EngineSettings, KeyspaceSettings, Rule, TimeSettings, WindowSettings};
use keyheat::input::{AccessEvent, Operation};
use keyheat::units::{EventTime, Partition, Rate, Span};

const BATCH: usize = 64;
const IDS: u64 = 1009;
const KEYS: u32 = 1_000_000;
const SPAN_MS: u64 = 20_000;
const BASE_MS: i64 = 1_700_000_000_000;

/// Keys of all events one after the other, as a consumer reads them, with their ranks and times.
pub(crate) struct Stream {
    text: String,
    ends: Vec<usize>,
    ranks: Vec<u32>,
    times: Vec<EventTime>,
}

impl Stream {
    pub(crate) fn new(events: usize) -> Self {
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

    fn len(&self) -> usize {
        self.ranks.len()
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

/// What is counted beside the keys, and how many of them get counters of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// The rival: every key in a hash map, no window.
    ExactMap,
    /// Nothing is counted, keys are read.
    ReadOnly,
    /// Nothing is counted, events with a key and a time are made.
    MakeKeys,
    /// Nothing is counted, whole events are made.
    MakeEvents,
    /// Keys alone, about 80 candidates.
    Keys,
    /// Whole events (operation, shard, caller, request id), about 80 candidates.
    Events,
    /// Whole events, about 4,096 candidates.
    ManyCandidates,
    /// Whole events, about 80 candidates by rate, and a rule by the median.
    Median,
}

impl Case {
    pub(crate) const ALL: [Self; 8] = [
        Self::ExactMap,
        Self::ReadOnly,
        Self::MakeKeys,
        Self::MakeEvents,
        Self::Keys,
        Self::Events,
        Self::ManyCandidates,
        Self::Median,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ExactMap => "exact_map",
            Self::ReadOnly => "read_only",
            Self::MakeKeys => "make_keys",
            Self::MakeEvents => "make_events",
            Self::Keys => "keys",
            Self::Events => "events",
            Self::ManyCandidates => "many_candidates",
            Self::Median => "median",
        }
    }

    /// Does the work; gives a number that depends on all of it.
    pub(crate) fn run(self, stream: &Stream) -> u64 {
        // An eighth of a threshold makes a candidate, and the key of rank r has 7 % / r of all events.
        let per_s = stream.len() as f64 / (SPAN_MS as f64 / 1000.0);
        let few = 8.0 * 0.07 / 80.0 * per_s;
        let many = 8.0 * 0.07 / 4096.0 * per_s;
        match self {
            Self::ExactMap => count_exactly(stream),
            Self::ReadOnly => read_only(stream),
            Self::MakeKeys => make(stream, false),
            Self::MakeEvents => make(stream, true),
            Self::Keys => count_in_windows(stream, engine(few, &[]), false),
            Self::Events => count_in_windows(stream, engine(few, &[]), true),
            Self::ManyCandidates => count_in_windows(stream, engine(many, &[]), true),
            Self::Median => {
                count_in_windows(stream, engine(few, &[Rule::Relative { multiple: 1_000.0, floor: 20 }]), true)
            }
        }
    }
}

fn engine(rate: f64, rules: &[Rule]) -> Engine {
    let window = |length, pane| WindowSettings { length: Span::from_secs(length), pane: Span::from_secs(pane) };
    let mut key_rules = vec![Rule::Absolute { rate: Rate::per_second(rate).unwrap() }];
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
    hand_over(stream, whole, |events, now| {
        engine.handle_events(Partition(0), events, now, |_, refusal| panic!("{refusal}"));
        while engine.poll_verdict().is_some() {}
    });
    engine.status(0).candidates as u64
}

fn make(stream: &Stream, whole: bool) -> u64 {
    let mut made = 0;
    hand_over(stream, whole, |events, _| made += std::hint::black_box(events).len() as u64);
    made
}

/// Hands the stream over in events that were read together, and the clock.
fn hand_over(stream: &Stream, whole: bool, mut take: impl FnMut(&[AccessEvent<'_>], EventTime)) {
    let shards: Vec<String> = (0..16).map(|shard| format!("shard-{shard}")).collect();
    let callers: Vec<String> = (0..64).map(|caller| format!("service-{caller}")).collect();
    // Events are written over, not made anew, as a decoder with buffers of its own does.
    let mut batch = [AccessEvent::new(EventTime::MIN, &[]); BATCH];
    let mut filled = 0;
    let ids: Vec<[u8; 8]> = (0..IDS).map(u64::to_le_bytes).collect();
    for (event, key) in stream.keys().enumerate() {
        let access = &mut batch[filled];
        filled += 1;
        access.time = stream.times[event];
        access.keys.0[0] = key;
        if whole {
            access.shard = shards[stream.ranks[event] as usize & 15].as_bytes();
            access.caller = callers[(event * 7) & 63].as_bytes();
            access.operation = if event.is_multiple_of(4) { Operation::Write } else { Operation::Read };
            access.request_id = &ids[event % ids.len()];
        }
        if filled == BATCH || event + 1 == stream.len() {
            take(&batch[..filled], stream.times[event]);
            filled = 0;
        }
    }
}

fn read_only(stream: &Stream) -> u64 {
    stream.keys().map(|key| u64::from(key[key.len() - 1])).sum()
}
