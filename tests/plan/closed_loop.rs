//! The closed loop in simulated time: events are counted by the engine, what is hot is planned, routers and owner follow.

use keyheat::engine::{
    CountingSettings, Engine, EngineSettings, KeyspaceSettings, Rule, ShardLoad, TimeSettings, WindowSettings,
};
use keyheat::input::{AccessEvent, Operation};
use keyheat::plan::PlanSettings;
use keyheat::protocol::Layout;
use keyheat::units::{EventTime, Partition, Rate, Span};

use super::sim::{Sim, settings};

/// A key is hot from here on.
pub(crate) const HOT_PER_S: u64 = 30;
pub(crate) const QUIET: Span = Span::from_secs(120);
/// The most events a second of one key.
const TRIALS: u64 = 200;
/// Other keys, so that something else is counted too.
const OTHERS: u64 = 40;

/// Requests of one kind.
#[derive(Debug, Clone)]
pub(crate) struct Traffic {
    pub(crate) key: String,
    /// Requests a second.
    pub(crate) per_s: u64,
    /// So many of ten read, the others write.
    pub(crate) reads_of_ten: u64,
    /// Who asks; else one of seven.
    pub(crate) caller: Option<&'static str>,
    /// The request id; else one each.
    pub(crate) id: Option<&'static str>,
    pub(crate) shard: &'static str,
}

impl Traffic {
    /// Writes with an id each, of many callers.
    pub(crate) fn new(key: &str, per_s: u64) -> Self {
        Self { key: key.to_owned(), per_s, reads_of_ten: 0, caller: None, id: None, shard: "s0" }
    }
}

/// Engine, planner and all that obeys it.
pub(crate) struct Loop {
    pub(crate) sim: Sim,
    engine: Engine,
    random: u64,
    events: u64,
    second: u64,
    /// Keys and the seconds at which a migration of theirs began, with where it led.
    pub(crate) begun: Vec<(String, u64, Layout)>,
    /// Each bucket of a key is on a shard of its own; else all of them are where the bare key was.
    pub(crate) spread: bool,
}

impl Loop {
    pub(crate) fn new() -> Self {
        let window = |length_ms, pane_ms| WindowSettings {
            length: Span::from_millis(length_ms),
            pane: Span::from_millis(pane_ms),
        };
        let keyspace = KeyspaceSettings {
            name: "customer".to_owned(),
            windows: vec![window(5_000, 500), window(10_000, 1_000)],
            key_rules: vec![Rule::Absolute { rate: Rate::per_second(HOT_PER_S as f64).unwrap() }],
            shard_rules: vec![Rule::Relative { multiple: 5.0, floor: 20 }],
            plan_seed: 1,
            counting: CountingSettings { seed: 42, ..CountingSettings::default() },
            ..KeyspaceSettings::default()
        };
        let plans = PlanSettings {
            bucket_rate: Rate::per_second(20.0).unwrap(),
            quiet: QUIET,
            window: Span::from_secs(10),
            ..settings()
        };
        // Events say themselves which shard served them.
        let mut sim = Sim::new(vec![plans]);
        sim.spread = false;
        Self {
            sim,
            engine: Engine::new(EngineSettings { keyspaces: vec![keyspace], time: TimeSettings::default() }),
            random: 88_172_645_463_325_252,
            events: 0,
            second: 0,
            begun: Vec::new(),
            spread: true,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound
    }

    /// One second with these loads, and some that no key is hot by: each event at a moment of its own.
    pub(crate) fn second(&mut self, traffic: &[Traffic]) {
        let begin = self.sim.now;
        let mut moments: Vec<(u64, Traffic)> = Vec::new();
        for kind in traffic {
            // As often as chance has it: so many trials a second.
            for _ in 0..TRIALS {
                if self.below(TRIALS * 1000) < kind.per_s * 1000 {
                    moments.push((self.below(1000), kind.clone()));
                }
            }
        }
        for _ in 0..OTHERS {
            let other = format!("other-{}", self.below(OTHERS));
            moments.push((self.below(1000), Traffic { shard: "s1", ..Traffic::new(&other, 0) }));
        }
        moments.sort_by_key(|(ms, _)| *ms);
        for (ms, kind) in moments {
            self.request(begin.saturating_add(Span::from_millis(ms)), &kind);
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

    fn request(&mut self, now: EventTime, kind: &Traffic) {
        self.events += 1;
        let (id, caller) = (format!("request-{}", self.events), format!("service-{}", self.events % 7));
        let reads = self.below(10) < kind.reads_of_ten;
        let id = kind.id.unwrap_or(&id);
        let shard = self.bucket_of(&kind.key, id).filter(|_| self.spread).map(|bucket| format!("b{bucket}"));
        let event = AccessEvent {
            operation: if reads { Operation::Read } else { Operation::Write },
            shard: shard.as_deref().unwrap_or(kind.shard).as_bytes(),
            request_id: id.as_bytes(),
            caller: kind.caller.unwrap_or(&caller).as_bytes(),
            ..AccessEvent::new(now, kind.key.as_bytes())
        };
        self.engine.handle_event(Partition(0), &event, now).unwrap();
        while self.engine.poll_verdict().is_some() {}
    }

    /// The bucket of an id that is written, while the key is split.
    fn bucket_of(&self, key: &str, id: &str) -> Option<u32> {
        let record = self.sim.plan(key)?;
        let layout = record.write.filter(|layout| !layout.is_bare())?;
        Some(layout.bucket_of(id.as_bytes(), record.bucket.seed))
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

    /// The load of the known shards over the shortest window.
    pub(crate) fn shard_loads(&self) -> Vec<ShardLoad> {
        self.engine.shard_loads(0, 0)
    }

    /// When migrations of a key began.
    pub(crate) fn begun(&self, key: &str) -> Vec<u64> {
        self.begun.iter().filter(|(own, ..)| own == key).map(|(_, second, _)| *second).collect()
    }

    pub(crate) fn is_split(&self, key: &str) -> bool {
        self.sim.plan(key).is_some_and(|record| record.write.is_some_and(|layout| !layout.is_bare()))
    }
}
