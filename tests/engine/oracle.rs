//! The truth: every accepted event by its millisecond, and windows over it aligned to panes as the engine defines them.

use std::collections::BTreeMap;

use keyheat::engine::{
    Change, CountingSettings, Engine, EngineSettings, KeyspaceSettings, Rule, Subject, TimeSettings, Verdict,
    WindowSettings,
};
use keyheat::input::{AccessEvent, Operation, Refusal};
use keyheat::units::{EventTime, Partition, Rate, Share, Span};

/// Where the tests' event time begins; a multiple of every pane used.
pub(crate) const BASE_MS: i64 = 1_699_999_920_000;

pub(crate) fn at(ms: i64) -> EventTime {
    EventTime::from_millis(BASE_MS + ms).unwrap()
}

pub(crate) fn window(length_ms: u64, pane_ms: u64) -> WindowSettings {
    WindowSettings { length: Span::from_millis(length_ms), pane: Span::from_millis(pane_ms) }
}

pub(crate) fn absolute(rate: f64) -> Rule {
    Rule::Absolute { rate: Rate::per_second(rate).unwrap() }
}

pub(crate) fn relative(multiple: f64, floor: u64) -> Rule {
    Rule::Relative { multiple, floor }
}

pub(crate) fn share(share: f64, floor: u64) -> Rule {
    Rule::Share { share: Share::new(share).unwrap(), floor }
}

/// One keyspace with these windows and rules for keys, all else as by default.
pub(crate) fn settings(windows: &[WindowSettings], key_rules: &[Rule]) -> EngineSettings {
    let keyspace = KeyspaceSettings {
        name: "default".to_owned(),
        windows: windows.to_vec(),
        key_rules: key_rules.to_vec(),
        plan_seed: 17,
        counting: CountingSettings { seed: 42, ..CountingSettings::default() },
        ..KeyspaceSettings::default()
    };
    EngineSettings { keyspaces: vec![keyspace], time: TimeSettings::default() }
}

/// An engine beside the exact counts of what it accepted.
pub(crate) struct Pair {
    pub(crate) engine: Engine,
    pub(crate) windows: Vec<WindowSettings>,
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) refused: BTreeMap<&'static str, u64>,
    /// Events of each key by the shortest window's pane.
    panes: BTreeMap<i64, BTreeMap<Vec<u8>, u64>>,
    newest_ms: i64,
}

impl Pair {
    pub(crate) fn new(settings: EngineSettings) -> Self {
        let windows = settings.keyspaces[0].windows.clone();
        let refused = BTreeMap::new();
        Self {
            engine: Engine::new(settings),
            windows,
            verdicts: Vec::new(),
            refused,
            panes: BTreeMap::new(),
            newest_ms: 0,
        }
    }

    /// One event at `ms` after the base, the clock showing the same time.
    pub(crate) fn event(&mut self, ms: i64, key: &str) {
        self.send(0, &AccessEvent::new(at(ms), key.as_bytes()), at(ms));
    }

    pub(crate) fn events(&mut self, ms: i64, key: &str, times: usize) {
        (0..times).for_each(|_| self.event(ms, key));
    }

    /// One event with a shard and an operation.
    pub(crate) fn request(&mut self, ms: i64, key: &str, shard: &str, operation: Operation) {
        let event = AccessEvent { shard: shard.as_bytes(), operation, ..AccessEvent::new(at(ms), key.as_bytes()) };
        self.send(0, &event, at(ms));
    }

    pub(crate) fn send(&mut self, partition: i32, event: &AccessEvent<'_>, now: EventTime) {
        let outcome = self.engine.handle_event(Partition(partition), event, now);
        while let Some(verdict) = self.engine.poll_verdict() {
            self.verdicts.push(verdict);
        }
        match outcome {
            Ok(()) => {
                let ms = event.time.as_millis();
                self.newest_ms = self.newest_ms.max(ms);
                let pane = ms.div_euclid(self.pane_ms(0));
                let key = event.keys.get(0).unwrap().to_vec();
                *self.panes.entry(pane).or_default().entry(key).or_default() += 1;
            }
            Err(refusal) => *self.refused.entry(refusal.label()).or_default() += 1,
        }
    }

    pub(crate) fn refused(&self, refusal: Refusal) -> u64 {
        self.refused.get(refusal.label()).copied().unwrap_or(0)
    }

    fn pane_ms(&self, window: usize) -> i64 {
        i64::try_from(self.windows[window].pane.as_millis()).unwrap()
    }

    /// The true count in the window whose last pane holds the time `ms` since the epoch.
    pub(crate) fn count_ending(&self, window: usize, ms: i64, key: &[u8]) -> u64 {
        let pane_ms = self.pane_ms(window);
        let until = (ms.div_euclid(pane_ms) + 1) * pane_ms;
        let from = until - i64::try_from(self.windows[window].length.as_millis()).unwrap();
        let panes = self.panes.range(from / self.pane_ms(0)..until / self.pane_ms(0));
        panes.filter_map(|(_, keys)| keys.get(key)).sum()
    }

    /// The true count in the newest window.
    pub(crate) fn count(&self, window: usize, key: &[u8]) -> u64 {
        self.count_ending(window, self.newest_ms, key)
    }

    /// The newest accepted event's time, in milliseconds since the epoch.
    pub(crate) const fn newest_ms(&self) -> i64 {
        self.newest_ms
    }

    /// The true counts in the newest window.
    pub(crate) fn counts(&self, window: usize) -> BTreeMap<Vec<u8>, u64> {
        self.counts_ending(window, self.newest_ms)
    }

    /// The true counts in the window whose last pane holds the time `ms` since the epoch.
    pub(crate) fn counts_ending(&self, window: usize, ms: i64) -> BTreeMap<Vec<u8>, u64> {
        let pane_ms = self.pane_ms(window);
        let until = (ms.div_euclid(pane_ms) + 1) * pane_ms;
        let from = until - i64::try_from(self.windows[window].length.as_millis()).unwrap();
        let mut counts = BTreeMap::new();
        for (key, count) in self.panes.range(from / self.pane_ms(0)..until / self.pane_ms(0)).flat_map(|(_, keys)| keys)
        {
            *counts.entry(key.clone()).or_default() += count;
        }
        counts
    }

    /// The highest true count over all windows aligned to panes.
    pub(crate) fn most(&self, window: usize, key: &[u8]) -> u64 {
        let ends = self.panes.keys().flat_map(|pane| {
            let last = i64::try_from(self.windows[window].length.as_millis()).unwrap() / self.pane_ms(0);
            (0..last).map(move |step| (pane + step) * self.pane_ms(0))
        });
        ends.map(|ms| self.count_ending(window, ms, key)).max().unwrap_or(0)
    }

    /// Changes of one key, in order.
    pub(crate) fn changes(&self, key: &str) -> Vec<Change> {
        let of_key = |verdict: &&Verdict| matches!(&verdict.subject, Subject::Key(name) if **name == *key.as_bytes());
        self.verdicts.iter().filter(of_key).map(|verdict| verdict.change).collect()
    }

    /// Changes of one shard, in order.
    pub(crate) fn shard_changes(&self, shard: &str) -> Vec<Change> {
        let of_shard =
            |verdict: &&Verdict| matches!(&verdict.subject, Subject::Shard(name) if **name == *shard.as_bytes());
        self.verdicts.iter().filter(of_shard).map(|verdict| verdict.change).collect()
    }
}
