//! One stream: an engine for each threshold, their rivals and the truth, tick by tick.

use std::collections::BTreeMap;

use datasketches::frequencies::{ErrorType, FrequentItemsSketch, Row};
use hashbrown::HashMap;
use heavykeeper::TopK;
use keyheat::engine::{CountingSettings, Engine, EngineSettings, KeyspaceSettings, Rule, TimeSettings};
use keyheat::input::AccessEvent;
use keyheat::units::{Estimate, EventTime, Partition, Rate};

use crate::score::{Answer, Score};
use crate::streams::{Event, Stream};

/// Entries of a FrequentItems sketch a pane, and of one for the whole window: each way takes about what the engine takes.
const PANE_ENTRIES: usize = 1 << 15;
const WINDOW_ENTRIES: usize = 1 << 18;
/// Shape of heavykeeper for the whole window, likewise; as many keys as the engine has candidates.
const KEEPER: (usize, usize, usize, f64) = (4096, 1 << 18, 4, 0.9);
/// The most ticks of a stream at which everybody is asked; of more, every second, third and so on.
const TICKS: usize = 200;

type Items = FrequentItemsSketch<String>;

/// What came out for each contestant at one threshold.
pub(crate) struct Outcome {
    pub(crate) name: String,
    pub(crate) threshold: u64,
    pub(crate) own: Score,
    pub(crate) panes: Score,
    pub(crate) items: Score,
    pub(crate) keeper: Score,
}

impl Outcome {
    /// True when keyheat kept its promises.
    pub(crate) const fn is_right(&self) -> bool {
        self.own.is_right()
    }
}

/// Accepted events of a pane in their order, and a sketch of them.
struct Pane {
    events: Vec<u32>,
    items: Items,
}

/// A contest that is being run.
pub(crate) struct Contest<'a> {
    stream: &'a Stream,
    places: HashMap<&'a str, u32>,
    /// For each threshold.
    engines: Vec<Engine>,
    memory: u64,
    panes: BTreeMap<i64, Pane>,
    outcomes: Vec<Outcome>,
}

impl<'a> Contest<'a> {
    pub(crate) fn new(stream: &'a Stream) -> Self {
        let names = stream.names.iter().enumerate();
        let settings = |threshold: &u64| settings(stream, *threshold);
        let outcome = |threshold: &u64| Outcome {
            name: stream.name.clone(),
            threshold: *threshold,
            own: Score::default(),
            panes: Score::default(),
            items: Score::default(),
            keeper: Score::default(),
        };
        Self {
            places: names.map(|(place, name)| (name.as_str(), u32::try_from(place).unwrap())).collect(),
            stream,
            engines: stream.thresholds.iter().map(settings).map(Engine::new).collect(),
            memory: stream
                .thresholds
                .iter()
                .map(settings)
                .map(|settings| Engine::memory_bytes(&settings))
                .max()
                .unwrap(),
            panes: BTreeMap::new(),
            outcomes: stream.thresholds.iter().map(outcome).collect(),
        }
    }

    /// Feeds all; asks at the last event of a pane, once a whole window has been seen.
    pub(crate) fn run(mut self) -> Vec<Outcome> {
        let ticks = self.ticks();
        let every = ticks.len().div_ceil(TICKS).max(1);
        let mut ticks = ticks.into_iter().step_by(every).peekable();
        for (number, event) in self.stream.events.iter().enumerate() {
            self.feed(event);
            if ticks.next_if_eq(&number).is_some() {
                self.ask();
            }
        }
        self.outcomes
    }

    /// Numbers of the events before which event time enters the next pane, from a whole window on.
    fn ticks(&self) -> Vec<usize> {
        let mut newest: Option<EventTime> = None;
        let mut ticks = Vec::new();
        let first = self.stream.events.iter().find(|event| !is_future(event)).map_or(0, |event| self.pane(event.time));
        for (number, event) in self.stream.events.iter().enumerate().filter(|(_, event)| !is_future(event)) {
            if let Some(before) = newest.filter(|before| self.pane(event.time) > self.pane(*before))
                && self.pane(before) >= first + self.window_panes() - 1
            {
                ticks.push(number - 1);
            }
            newest = newest.max(Some(event.time));
        }
        if newest.is_some_and(|newest| self.pane(newest) >= first + self.window_panes() - 1) {
            ticks.push(self.stream.events.len() - 1);
        }
        ticks
    }

    fn pane(&self, time: EventTime) -> i64 {
        time.as_millis().div_euclid(i64::try_from(self.stream.window.pane.as_millis()).unwrap())
    }

    fn window_panes(&self) -> i64 {
        i64::try_from(self.stream.window.length.as_millis() / self.stream.window.pane.as_millis()).unwrap()
    }

    fn feed(&mut self, event: &Event) {
        let name = &self.stream.names[event.key as usize];
        let access = AccessEvent::new(event.time, name.as_bytes());
        let mut accepted = false;
        for engine in &mut self.engines {
            accepted = engine.handle_event(Partition(0), &access, event.now).is_ok();
            while engine.poll_verdict().is_some() {}
        }
        if accepted {
            let number = self.pane(event.time);
            let new = || Pane { events: Vec::new(), items: Items::new(PANE_ENTRIES).unwrap() };
            let pane = self.panes.entry(number).or_insert_with(new);
            pane.events.push(event.key);
            pane.items.update_ref(name.as_str());
        }
    }

    fn ask(&mut self) {
        let head = self.panes.last_key_value().map_or(0, |(pane, _)| *pane);
        // Late events may still come to older panes, but to none that is older than the window and the disorder.
        let slack = i64::try_from(self.stream.disorder.as_millis()).unwrap() * 2;
        let oldest = head - self.window_panes() - slack / i64::try_from(self.stream.window.pane.as_millis()).unwrap();
        self.panes = self.panes.split_off(&oldest);
        let from = head - self.window_panes() + 1;
        let mut truth: HashMap<u32, u64> = HashMap::new();
        for key in self.panes.range(from..).flat_map(|(_, pane)| &pane.events) {
            *truth.entry(*key).or_default() += 1;
        }
        self.ask_own(&truth);
        self.ask_panes(&truth, from);
        self.ask_fed_anew(&truth, from);
    }

    fn ask_own(&mut self, truth: &HashMap<u32, u64>) {
        let place = |key: &[u8]| self.places[std::str::from_utf8(key).unwrap()];
        for (engine, outcome) in self.engines.iter().zip(&mut self.outcomes) {
            let answer =
                |key: &[u8], bounds: Estimate| Answer { key: place(key), lower: bounds.lower, upper: bounds.upper };
            let flagged = engine.hot_keys(0);
            let flagged: Vec<_> = flagged.iter().map(|hot| answer(&hot.key, hot.reason.count)).collect();
            let status = engine.status(0);
            let promised = outcome.threshold.max(status.recall_above.unwrap_or(0));
            outcome.own.judge(truth, outcome.threshold, &flagged, true);
            outcome.own.hold(truth, promised, outcome.threshold, &flagged);
            // Every other candidate's bounds have to hold as well.
            let others = engine.top_keys(0, 0, usize::MAX);
            outcome.own.check(truth, others.iter().map(|(key, bounds)| answer(key, *bounds)));
            outcome.own.note(status.candidates, self.memory);
        }
    }

    /// One sketch a pane, merged at each tick, as its authors mean it.
    fn ask_panes(&mut self, truth: &HashMap<u32, u64>, from: i64) {
        let mut merged = Items::new(PANE_ENTRIES).unwrap();
        let mut bytes = 0;
        for pane in self.panes.range(from..).map(|(_, pane)| pane) {
            bytes += bytes_of(&pane.items);
            merged.merge(&pane.items);
        }
        bytes += bytes_of(&merged);
        for outcome in &mut self.outcomes {
            let answers = answers(&self.places, &merged, outcome.threshold);
            outcome.panes.judge(truth, outcome.threshold, &answers, true);
            outcome.panes.note(merged.num_active_items(), bytes);
        }
    }

    /// Sketches that know no windows, filled with the whole window again at each tick: what they could do at their best, had they one.
    fn ask_fed_anew(&mut self, truth: &HashMap<u32, u64>, from: i64) {
        let mut items = Items::new(WINDOW_ENTRIES).unwrap();
        let (k, width, depth, decay) = KEEPER;
        let mut keeper: TopK<String> = TopK::with_seed(k, width, depth, decay, 42);
        for key in self.panes.range(from..).flat_map(|(_, pane)| &pane.events) {
            let name = self.stream.names[*key as usize].as_str();
            items.update_ref(name);
            keeper.add(name, 1);
        }
        let listed: Vec<Answer> = keeper
            .list()
            .iter()
            .map(|node| Answer { key: self.places[node.item.as_str()], lower: node.count, upper: node.count })
            .collect();
        for outcome in &mut self.outcomes {
            let answers = answers(&self.places, &items, outcome.threshold);
            outcome.items.judge(truth, outcome.threshold, &answers, true);
            outcome.items.note(items.num_active_items(), bytes_of(&items));
            outcome.keeper.judge(truth, outcome.threshold, &listed, false);
            outcome.keeper.note(listed.len(), keeper.mem_bytes(String::capacity) as u64);
        }
    }
}

fn answers(places: &HashMap<&str, u32>, items: &Items, threshold: u64) -> Vec<Answer> {
    let rows = items.frequent_items_with_threshold(ErrorType::NoFalseNegatives, threshold - 1);
    let answer = |row: &Row<String>| Answer {
        key: places[row.item().as_str()],
        lower: row.lower_bound(),
        upper: row.upper_bound(),
    };
    rows.iter().map(answer).collect()
}

/// Ahead of the clock by more than the engine allows.
fn is_future(event: &Event) -> bool {
    event.time > event.now.saturating_add(TimeSettings::default().max_ahead)
}

/// Its own figure, and the texts of the keys, which that leaves out.
fn bytes_of(items: &Items) -> u64 {
    (items.estimated_size() + items.num_active_items() * 16) as u64
}

#[expect(clippy::cast_precision_loss, reason = "a threshold far below 2^53")]
fn settings(stream: &Stream, threshold: u64) -> EngineSettings {
    let rate = Rate::per_second(threshold as f64 / stream.window.length.as_secs_f64()).unwrap();
    let keyspace = KeyspaceSettings {
        name: "bench".to_owned(),
        windows: vec![stream.window],
        key_rules: vec![Rule::Absolute { rate }],
        plan_seed: 17,
        counting: CountingSettings { seed: 42, ..CountingSettings::default() },
        ..KeyspaceSettings::default()
    };
    let time = TimeSettings { disorder: stream.disorder, ..TimeSettings::default() };
    EngineSettings { keyspaces: vec![keyspace], time }
}
