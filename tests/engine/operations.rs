//! A stream as a list of operations, read from any bytes, beside a plain list of what was counted.
//!
//! Properties and fuzz targets share it: every list of bytes is a stream, and a shorter list is a shorter stream.

use std::collections::BTreeMap;
use std::sync::Arc;

use keyheat::engine::{
    Change, CountingMode, CountingSettings, Engine, EngineSettings, HotKey, HotOn, Profile, Rule, RuleOverride,
    Subject, TimeSettings, Verdict,
};
use keyheat::input::{AccessEvent, Operation};
use keyheat::units::{EventTime, Partition, Span};

use crate::oracle::{BASE_MS, absolute, at, relative, settings, share, window};

/// Shards of the streams.
const SHARDS: [&str; 5] = ["s0", "s1", "s2", "s3", "s4"];

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) ms: i64,
    pub(crate) key: u8,
    pub(crate) shard: &'static str,
    pub(crate) operation: Operation,
    pub(crate) weight: u64,
    pub(crate) partition: i32,
}

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Op {
    /// A request while the clock shows this, in milliseconds after the base.
    Request(i64, Request),
    /// The clock goes on and nothing comes.
    Tick(i64),
    /// Other rules, by their number.
    Rules(u8),
    /// These keys are planned.
    Protect(Vec<u8>),
}

/// Four bytes an operation; what is left over is left out.
pub(crate) fn operations(bytes: &[u8]) -> Vec<Op> {
    let mut now_ms = 0;
    bytes.chunks_exact(4).map(|chunk| operation(chunk, &mut now_ms)).collect()
}

fn operation(chunk: &[u8], now_ms: &mut i64) -> Op {
    let [what, key, time, more] = [chunk[0], chunk[1], chunk[2], chunk[3]];
    match what {
        0..4 => Op::Rules(key % 4),
        4..8 => Op::Protect((0..key % 6).collect()),
        8..16 => {
            *now_ms += i64::from(time) * 100;
            Op::Tick(*now_ms)
        }
        _ => {
            *now_ms += match time {
                0..140 => 0,
                140..250 => i64::from(time - 140) * 4,
                _ => i64::from(time - 249) * 3_000,
            };
            let late_ms = if what < 64 { i64::from(what) * 80 } else { 0 };
            let key = if key < 100 { key % 3 } else { key % 40 };
            Op::Request(
                *now_ms,
                Request {
                    ms: (*now_ms - late_ms).max(0),
                    key,
                    shard: SHARDS[usize::from(key + more % 2) % SHARDS.len()],
                    operation: [Operation::Read, Operation::Write, Operation::Scan, Operation::Unknown]
                        [usize::from(more / 2 % 4)],
                    weight: u64::from(more) * 1_000,
                    partition: i32::from(more % 3),
                },
            )
        }
    }
}

/// Rules by their number: a rate, a low rate, a multiple of the median with a share, and one tenant apart.
pub(crate) fn with_rules(mut settings: EngineSettings, number: u8) -> EngineSettings {
    let keyspace = &mut settings.keyspaces[0];
    keyspace.overrides = Vec::new();
    keyspace.key_rules = match number {
        0 => vec![absolute(2.0)],
        1 => vec![absolute(0.5)],
        2 => vec![relative(3.0, 3), share(0.3, 4)],
        _ => {
            keyspace.overrides = vec![tenant(absolute(0.5))];
            vec![absolute(4.0)]
        }
    };
    settings
}

/// Keys `k1`, `k10` to `k19`.
pub(crate) fn tenant(rule: Rule) -> RuleOverride {
    RuleOverride { keys: "k1*".parse().unwrap(), rules: vec![rule] }
}

/// A small structure from a few bytes, in which everything collides and little has room.
pub(crate) fn small(shape: [u8; 4]) -> EngineSettings {
    let short = window(4_000, 1_000);
    let windows = if shape[0].is_multiple_of(2) { vec![short, window(12_000, 3_000)] } else { vec![short] };
    let mut settings = settings(&windows, &[absolute(2.0)]);
    let keyspace = &mut settings.keyspaces[0];
    keyspace.shard_rules = vec![relative(2.0, 5), absolute(3.0)];
    keyspace.min_keys = 3;
    keyspace.clear_after = Span::from_secs(2);
    keyspace.counting = CountingSettings {
        depth: 1 + usize::from(shape[1] % 4),
        width_log2: 3 + u32::from(shape[1] / 64),
        seed: u64::from(shape[2]),
        max_candidates: 3 + usize::from(shape[3] % 12),
        max_protected: usize::from(shape[3] / 64),
        sample_k: 1 + usize::from(shape[2] % 6),
        mode: CountingMode::Sketch,
    };
    settings.time = TimeSettings {
        disorder: Span::from_millis(u64::from(shape[0]) * 10),
        max_ahead: Span::from_secs(1),
        idle_timeout: Span::from_secs(5),
    };
    settings
}

/// The same with room for all.
pub(crate) fn roomy(shape: [u8; 4]) -> EngineSettings {
    let mut settings = small(shape);
    let seed = settings.keyspaces[0].counting.seed;
    settings.keyspaces[0].counting = CountingSettings { seed, ..CountingSettings::default() };
    settings
}

pub(crate) fn key_of(number: u8) -> String {
    format!("k{number}")
}

fn event<'a>(request: &Request, key: &'a str, id: &'a [u8]) -> AccessEvent<'a> {
    AccessEvent {
        shard: request.shard.as_bytes(),
        operation: request.operation,
        weight: request.weight,
        request_id: id,
        caller: if request.weight % 7_000 < 3_000 { b"busy" } else { b"other" },
        ..AccessEvent::new(at(request.ms), key.as_bytes())
    }
}

/// An engine beside the list of the requests that it took.
pub(crate) struct World {
    pub(crate) settings: EngineSettings,
    pub(crate) engine: Engine,
    pub(crate) taken: Vec<Request>,
    pub(crate) refused: usize,
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) newest_ms: i64,
}

impl World {
    pub(crate) fn new(settings: EngineSettings) -> Self {
        let engine = Engine::new(settings.clone());
        Self { settings, engine, taken: Vec::new(), refused: 0, verdicts: Vec::new(), newest_ms: 0 }
    }

    pub(crate) fn run(settings: EngineSettings, ops: &[Op]) -> Self {
        let mut world = Self::new(settings);
        ops.iter().for_each(|op| world.step(op));
        world
    }

    pub(crate) fn step(&mut self, op: &Op) {
        match op {
            Op::Request(now_ms, request) => self.request(*now_ms, request),
            Op::Tick(now_ms) => self.engine.handle_tick(at(*now_ms)),
            Op::Rules(number) => {
                self.settings = with_rules(self.settings.clone(), *number);
                self.engine.set_rules(0, &self.settings.keyspaces[0]).unwrap();
            }
            Op::Protect(keys) => {
                let keys: Vec<Arc<[u8]>> = keys.iter().map(|key| Arc::from(key_of(*key).as_bytes())).collect();
                self.engine.protect(0, &keys);
            }
        }
        self.verdicts.extend(std::iter::from_fn(|| self.engine.poll_verdict()));
    }

    fn request(&mut self, now_ms: i64, request: &Request) {
        let (key, id) = (key_of(request.key), request.weight.to_le_bytes());
        let event = event(request, &key, &id);
        if self.engine.handle_event(Partition(request.partition), &event, at(now_ms)).is_ok() {
            self.newest_ms = self.newest_ms.max(request.ms);
            self.taken.push(request.clone());
        } else {
            self.refused += 1;
        }
    }

    /// Requests of one partition that come together.
    pub(crate) fn requests(&mut self, now_ms: i64, requests: &[Request]) {
        let keys: Vec<String> = requests.iter().map(|request| key_of(request.key)).collect();
        let ids: Vec<[u8; 8]> = requests.iter().map(|request| request.weight.to_le_bytes()).collect();
        let events: Vec<AccessEvent<'_>> =
            requests.iter().zip(&keys).zip(&ids).map(|((request, key), id)| event(request, key, id)).collect();
        let mut refused = Vec::new();
        self.engine.handle_events(Partition(0), &events, at(now_ms), |place, _| refused.push(place));
        self.refused += refused.len();
        for (_, request) in requests.iter().enumerate().filter(|(place, _)| !refused.contains(place)) {
            self.newest_ms = self.newest_ms.max(request.ms);
            self.taken.push(request.clone());
        }
        self.verdicts.extend(std::iter::from_fn(|| self.engine.poll_verdict()));
    }

    pub(crate) fn windows(&self) -> usize {
        self.settings.keyspaces[0].windows.len()
    }

    /// The requests of the window whose newest pane holds this time, in milliseconds after the base.
    pub(crate) fn in_window(&self, window: usize, ms: i64) -> impl Iterator<Item = &Request> {
        let window = self.settings.keyspaces[0].windows[window];
        let pane_ms = i64::try_from(window.pane.as_millis()).unwrap();
        let until = ((BASE_MS + ms).div_euclid(pane_ms) + 1) * pane_ms - BASE_MS;
        let from = until - i64::try_from(window.length.as_millis()).unwrap();
        self.taken.iter().filter(move |request| (from..until).contains(&request.ms))
    }

    /// The requests of the newest window: event time may have gone on without them.
    pub(crate) fn in_head(&self, window: usize) -> impl Iterator<Item = &Request> {
        self.in_window(window, self.head_ms())
    }

    /// Where event time is, in milliseconds after the base.
    pub(crate) fn head_ms(&self) -> i64 {
        self.engine.newest().map_or(0, |newest| newest.as_millis() - BASE_MS)
    }

    pub(crate) fn count(&self, window: usize, key: u8) -> u64 {
        self.in_head(window).filter(|request| request.key == key).count() as u64
    }

    pub(crate) fn raised(&self) -> Vec<String> {
        self.engine.hot_keys(0).iter().map(|hot| name(&hot.key)).collect()
    }

    /// Changes of each key or shard, in order.
    pub(crate) fn stories(&self) -> BTreeMap<Subject, Vec<(Change, EventTime)>> {
        let mut stories: BTreeMap<Subject, Vec<(Change, EventTime)>> = BTreeMap::new();
        for verdict in &self.verdicts {
            stories.entry(verdict.subject.clone()).or_default().push((verdict.change, verdict.at));
        }
        stories
    }
}

pub(crate) fn name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The number in a key's name.
pub(crate) fn number(key: &[u8]) -> u8 {
    name(key).trim_start_matches('k').parse().unwrap()
}

/// A key's requests that its profile can know: of the longest window.
pub(crate) fn of_key<'a>(world: &'a World, hot: &'a HotKey) -> impl Iterator<Item = &'a Request> {
    let key = number(&hot.key);
    world.in_head(world.windows() - 1).filter(move |request| request.key == key)
}

/// Everything that has to hold after every operation, for fuzz targets: panics where it does not.
pub(crate) fn check(world: &World) {
    let status = world.engine.status(0);
    let raised = world.raised();
    for window in 0..world.windows() {
        assert_eq!(status.windows[window].events, world.in_head(window).count() as u64, "events of window {window}");
        for key in 0..40 {
            let (truth, bounds) = (world.count(window, key), world.engine.estimate(0, window, key_of(key).as_bytes()));
            assert!(bounds.lower <= truth && truth <= bounds.upper, "{key} in window {window}: {truth} in {bounds}");
        }
        let Some(threshold) = status.windows[window].threshold else { continue };
        let promised = threshold.max(status.windows[window].recall_above.unwrap_or(0));
        for key in 0..40 {
            // Keys of other rules have other thresholds: the least one is of those that match the pattern.
            let is_least = world.settings.keyspaces[0].overrides.is_empty() || key_of(key).starts_with("k1");
            let missed = is_least && world.count(window, key) >= promised && !raised.contains(&key_of(key));
            assert!(!missed, "{key} has {} in window {window}, promised from {promised}", world.count(window, key));
        }
    }
    for load in world.engine.shard_loads(0, 0) {
        let truth = world.in_head(0).filter(|request| request.shard.as_bytes() == &*load.shard).count() as u64;
        assert!(load.count.is_exact() && load.count.lower == truth, "{}: {truth} in {}", name(&load.shard), load.count);
    }
    assert!(status.candidates <= world.settings.keyspaces[0].counting.max_candidates);
}

/// Whatever was said to be hot had proof, in order.
pub(crate) fn check_verdicts(verdicts: &[Verdict]) {
    let mut last: BTreeMap<&Subject, (Change, EventTime)> = BTreeMap::new();
    for verdict in verdicts {
        let before = last.insert(&verdict.subject, (verdict.change, verdict.at));
        match verdict.change {
            Change::Hot => {
                assert!(verdict.reason.count.lower >= verdict.reason.threshold, "{verdict:?}");
                assert!(before.is_none_or(|(change, _)| change != Change::Hot), "hot twice: {verdict:?}");
            }
            Change::Suspect => {
                assert!(verdict.reason.count.upper >= verdict.reason.threshold, "{verdict:?}");
                assert!(before.is_none_or(|(change, _)| change == Change::Cleared), "suspect after more: {verdict:?}");
            }
            Change::Cleared => {
                assert!(before.is_some_and(|(change, _)| change != Change::Cleared), "cleared first: {verdict:?}");
            }
        }
        assert!(before.is_none_or(|(_, at)| at <= verdict.at), "back in time: {verdict:?} after {before:?}");
        assert_eq!(
            matches!(verdict.subject, Subject::Key(_)),
            matches!(verdict.profile, Profile::Key(_)),
            "a profile of the other kind"
        );
    }
}

/// Which operations are compared, with what is counted then.
pub(crate) fn compared(hot_on: HotOn, operation: Operation) -> bool {
    match hot_on {
        HotOn::All => true,
        HotOn::Reads => matches!(operation, Operation::Read | Operation::Scan),
        HotOn::Writes => matches!(operation, Operation::Write | Operation::Delete),
    }
}
