//! The closed loop over half an hour of simulated time: events are counted by the engine, what is hot is planned, routers and owner follow.
//! A key changes its layout no more often than the settings say, whatever its load does.

use keyheat::engine::{
    CountingSettings, Engine, EngineSettings, HotOn, KeyspaceSettings, Rule, TimeSettings, WindowSettings,
};
use keyheat::input::{AccessEvent, Operation};
use keyheat::plan::{BudgetSettings, PlanSettings};
use keyheat::protocol::Layout;
use keyheat::units::{Partition, Rate, Share, Span};

use super::sim::{Sim, settings};

/// A key is hot from here on.
const HOT_PER_S: u64 = 30;
const QUIET: Span = Span::from_secs(120);
const HALF_HOUR: u64 = 1800;
/// The most events a second of one key.
const TRIALS: u64 = 200;
/// Other keys, so that something else is counted too.
const OTHERS: u64 = 40;

/// Engine, planner and all that obeys it.
struct Loop {
    sim: Sim,
    engine: Engine,
    random: u64,
    events: u64,
    second: u64,
    /// Keys and the seconds at which a migration of theirs began, with where it led.
    begun: Vec<(String, u64, Layout)>,
}

impl Loop {
    fn new() -> Self {
        let window = |length_ms, pane_ms| WindowSettings {
            length: Span::from_millis(length_ms),
            pane: Span::from_millis(pane_ms),
        };
        let keyspace = KeyspaceSettings {
            name: "customer".to_owned(),
            windows: vec![window(5_000, 500), window(10_000, 1_000)],
            key_rules: vec![Rule::Absolute { rate: Rate::per_second(HOT_PER_S as f64).unwrap() }],
            overrides: Vec::new(),
            shard_rules: vec![Rule::Relative { multiple: 5.0, floor: 20 }],
            min_keys: 8,
            clear: Share::new(0.7).unwrap(),
            clear_after: Span::from_secs(30),
            hot_on: HotOn::All,
            declared_shards: Vec::new(),
            shard_memory: Span::from_secs(600),
            plan_seed: 1,
            counting: CountingSettings { seed: 42, ..CountingSettings::default() },
        };
        let plans = PlanSettings { bucket_rate: Rate::per_second(20.0).unwrap(), quiet: QUIET, ..settings() };
        Self {
            sim: Sim::new(vec![plans]),
            engine: Engine::new(EngineSettings { keyspaces: vec![keyspace], time: TimeSettings::default() }),
            random: 88_172_645_463_325_252,
            events: 0,
            second: 0,
            begun: Vec::new(),
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound
    }

    /// One second with these loads, in events a second: each event at a moment of its own.
    fn second(&mut self, loads: &[(String, u64)]) {
        let begin = self.sim.now;
        let mut moments = Vec::new();
        for (key, per_s) in loads {
            // As often as chance has it: so many trials a second.
            for _ in 0..TRIALS {
                if self.below(TRIALS * 1000) < per_s * 1000 {
                    moments.push((self.below(1000), key.clone()));
                }
            }
        }
        moments.extend((0..OTHERS).map(|_| (self.below(1000), format!("other-{}", self.below(OTHERS)))));
        moments.sort();
        for (ms, key) in moments {
            self.events += 1;
            let now = begin.saturating_add(Span::from_millis(ms));
            let (id, caller) = (format!("request-{}", self.events), format!("service-{}", self.events % 7));
            let event = AccessEvent {
                operation: Operation::Write,
                shard: b"s0",
                request_id: id.as_bytes(),
                caller: caller.as_bytes(),
                ..AccessEvent::new(now, key.as_bytes())
            };
            self.engine.handle_event(Partition(0), &event, now).unwrap();
            while self.engine.poll_verdict().is_some() {}
        }
        self.second += 1;
        self.sim.now = begin.saturating_add(Span::from_secs(1));
        self.engine.handle_tick(self.sim.now);
        while self.engine.poll_verdict().is_some() {}
        self.sim.hot = self.engine.hot_keys(0);
        self.sim.condition = self.engine.condition();
        self.sim.settle();
        self.note();
    }

    /// Notes the migrations that began in this second.
    fn note(&mut self) {
        for (key, entry) in self.sim.table.plans() {
            let (key, to) = (String::from_utf8_lossy(&key.key).into_owned(), entry.record.migration.to);
            let last = self.begun.iter().rev().find(|(own, ..)| *own == key);
            if last.is_none_or(|(.., own)| *own != to) {
                self.begun.push((key, self.second, to));
            }
        }
    }

    /// When migrations of a key began.
    fn begun(&self, key: &str) -> Vec<u64> {
        self.begun.iter().filter(|(own, ..)| own == key).map(|(_, second, _)| *second).collect()
    }

    fn is_split(&self, key: &str) -> bool {
        self.sim.plan(key).is_some_and(|record| record.write.is_some_and(|layout| !layout.is_bare()))
    }
}

fn keys(number: usize, per_s: u64) -> Vec<(String, u64)> {
    (0..number).map(|key| (format!("c{key}"), per_s)).collect()
}

/// The least time between two changes of a key, in seconds.
fn dwell_s() -> u64 {
    BudgetSettings::default().min_dwell.as_millis() / 1000
}

/// Load that chance lifts over the threshold and lets fall below it, again and again.
#[test]
fn a_key_at_the_threshold_is_split_once_and_stays_split() {
    let mut world = Loop::new();
    for _ in 0..HALF_HOUR {
        world.second(&keys(3, HOT_PER_S));
    }
    for key in ["c0", "c1", "c2"] {
        assert_eq!(world.begun(key).len(), 1, "{key}: {:?}", world.begun(key));
        assert!(world.is_split(key));
    }
}

/// Four buckets carry just as much as this: chance lifts the load over that and lets it fall below, again and again.
#[test]
fn a_key_at_the_edge_of_its_size_grows_once_and_does_not_shrink() {
    let mut world = Loop::new();
    for _ in 0..HALF_HOUR {
        world.second(&keys(3, 80));
    }
    for key in ["c0", "c1", "c2"] {
        assert!(world.begun(key).len() <= 2, "{key}: {:?}", world.begun(key));
        assert!(world.sim.plan(key).unwrap().write.unwrap().buckets() >= 4);
    }
}

/// Load that comes and goes faster than `quiet`.
#[test]
fn a_key_that_comes_and_goes_is_split_once() {
    let mut world = Loop::new();
    for second in 0..HALF_HOUR {
        let on = second % 90 < 45;
        world.second(&keys(3, if on { 60 } else { 0 }));
    }
    for key in ["c0", "c1", "c2"] {
        assert_eq!(world.begun(key).len(), 1, "{key}: {:?}", world.begun(key));
    }
}

/// Load that comes and goes more slowly than `quiet`: every change answers a change of the load, and none comes sooner.
#[test]
fn a_key_changes_no_more_often_than_its_load_and_quiet_say() {
    let mut world = Loop::new();
    for second in 0..HALF_HOUR {
        let on = second % 600 < 300;
        world.second(&keys(3, if on { 60 } else { 0 }));
    }
    for key in ["c0", "c1", "c2"] {
        let begun = world.begun(key);
        assert!((2..=6).contains(&begun.len()), "{key}: {begun:?}");
        assert!(begun.windows(2).all(|pair| pair[1] - pair[0] >= dwell_s()), "{key}: {begun:?}");
    }
}

/// Everything slows down by nine tenths for ten minutes: splits are undone one a minute at most, and not redone at once.
#[test]
fn a_general_slow_down_is_no_wave_of_withdrawals() {
    let mut world = Loop::new();
    let number = 12;
    for second in 0..HALF_HOUR {
        let slow = (600..1200).contains(&second);
        world.second(&keys(number, if slow { 6 } else { 60 }));
        if second == 599 {
            assert!((0..number).all(|key| world.is_split(&format!("c{key}"))), "{:?}", world.begun);
        }
    }
    let back: Vec<u64> = world.begun.iter().filter(|(.., to)| to.is_bare()).map(|(_, second, _)| *second).collect();
    assert!(!back.is_empty() && back.len() <= 10, "{back:?}");
    assert!(back.windows(2).all(|pair| pair[1] - pair[0] >= 60), "{back:?}");
    for key in 0..number {
        let begun = world.begun(&format!("c{key}"));
        assert!(begun.len() <= 3, "{key}: {begun:?}");
        assert!(begun.windows(2).all(|pair| pair[1] - pair[0] >= dwell_s()), "{key}: {begun:?}");
    }
}
