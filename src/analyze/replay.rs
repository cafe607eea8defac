//! Recorded events through decoder, engine and planner.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::decision::{Decision, KeyspaceSummary, MapperSummary, Summary};
use super::look_ahead::LookAhead;
use super::paper_topic::{PaperTopic, Seen};
use crate::engine::{Change, Engine, EngineSettings, Subject, Verdict};
use crate::input::{Decoder, InputSettings, Refusal};
use crate::plan::{BudgetSettings, MapperCheck, MapperTrust, Mode, PlanSettings, Planned, Planner, ProtocolSettings};
use crate::units::{Estimate, EventTime, Offset, Partition, Span};

/// The most keys a keyspace of which is remembered that they were hot or suspect.
pub const MAX_FLAGGED: usize = 1_000_000;
/// How often the planner is asked, in event time.
const DECIDE_EVERY: Span = Span::from_secs(1);
/// The most operations at one moment: a migration has five phases, and each may let another key begin.
const MAX_OPERATIONS: usize = 1000;
/// A file is one partition.
const PARTITION: Partition = Partition(0);

/// What a replay is told.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplaySettings {
    /// How a record becomes an event.
    pub input: InputSettings,
    /// How keys are counted and judged.
    pub engine: EngineSettings,
    /// How splits are planned; one for each keyspace, in the same order.
    pub plans: Vec<PlanSettings>,
    /// Limits over all keyspaces.
    pub budget: BudgetSettings,
    /// Times of the protocol.
    pub protocol: ProtocolSettings,
    /// Names the settings in evidence: 16 hexadecimal digits.
    pub config_hash: String,
}

/// A replay: records in their order go in, decisions come out.
#[derive(Debug)]
pub struct Replay {
    decoder: Decoder,
    ahead: LookAhead,
    engine: Engine,
    planning: Option<Planning>,
    keyspaces: Vec<Keyspace>,
    decisions: VecDeque<Decision>,
    read: u64,
    counted: u64,
    refused: BTreeMap<Refusal, u64>,
    first: Option<EventTime>,
    newest: Option<EventTime>,
}

#[derive(Debug)]
struct Planning {
    planner: Planner,
    topic: PaperTopic,
    config_hash: String,
    due: Option<EventTime>,
}

/// What is remembered of a keyspace.
#[derive(Debug)]
struct Keyspace {
    name: String,
    windows: usize,
    /// Holds the declared mapper against where events were served.
    mapper: Option<MapperCheck>,
    /// Each key that was ever suspect or hot; true when hot.
    flagged: HashMap<Arc<[u8]>, bool>,
    flagged_cut: u64,
    without_key: u64,
}

impl Replay {
    /// A replay that has read nothing.
    #[must_use]
    pub fn new(settings: ReplaySettings) -> Self {
        let keyspace = |settings: &crate::engine::KeyspaceSettings| Keyspace {
            name: settings.name.clone(),
            windows: settings.windows.len(),
            mapper: None,
            flagged: HashMap::new(),
            flagged_cut: 0,
            without_key: 0,
        };
        let mut keyspaces: Vec<Keyspace> = settings.engine.keyspaces.iter().map(keyspace).collect();
        for (keyspace, plan) in keyspaces.iter_mut().zip(&settings.plans) {
            keyspace.mapper = plan.mapper.clone().map(MapperCheck::new);
            // Before the first decision no key has a plan.
            keyspace.set_plans(&[]);
        }
        let plans = settings.plans.iter().any(|plan| plan.mode != Mode::Observe);
        let planning = plans.then(|| Planning {
            planner: Planner::new(settings.plans, settings.budget, settings.protocol).over_recorded_events(),
            topic: PaperTopic::default(),
            config_hash: settings.config_hash,
            due: None,
        });
        Self {
            decoder: Decoder::new(&settings.input),
            ahead: LookAhead::new(settings.engine.time.disorder),
            keyspaces,
            engine: Engine::new(settings.engine),
            planning,
            decisions: VecDeque::new(),
            read: 0,
            counted: 0,
            refused: BTreeMap::new(),
            first: None,
            newest: None,
        }
    }

    /// Takes the next record. Decisions on it come once enough records behind it are known.
    pub fn handle_record(&mut self, record: &[u8]) {
        self.read += 1;
        match self.decoder.decode(record) {
            Ok(event) => self.ahead.push(&event),
            Err(refusal) => self.refuse(refusal),
        }
        while self.ahead.is_full() {
            self.count_next();
        }
    }

    /// A record was too long to be read at all.
    pub fn handle_too_long(&mut self) {
        self.read += 1;
        self.refuse(Refusal::TooLong);
    }

    /// There are no more records: counts those that are left.
    pub fn handle_end(&mut self) {
        while self.count_next() {}
    }

    /// The next decision, in the order of event time at which they were taken.
    pub fn poll_decision(&mut self) -> Option<Decision> {
        self.decisions.pop_front()
    }

    /// The engine, for questions on what it has counted.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Records read so far.
    #[must_use]
    pub const fn read(&self) -> u64 {
        self.read
    }

    fn refuse(&mut self, refusal: Refusal) {
        *self.refused.entry(refusal).or_default() += 1;
    }

    fn count_next(&mut self) -> bool {
        let Some((stored, now)) = self.ahead.pop() else { return false };
        let event = stored.event();
        match self.engine.handle_event(PARTITION, &event, now) {
            Ok(()) => {
                self.counted += 1;
                self.first = self.first.or(Some(event.time));
                self.newest = self.newest.max(Some(event.time));
                for (index, keyspace) in self.keyspaces.iter_mut().enumerate() {
                    match (event.keys.get(index), &mut keyspace.mapper) {
                        (None, _) => keyspace.without_key += 1,
                        (Some(key), Some(mapper)) => mapper.see(key, &event),
                        (Some(_), None) => {}
                    }
                }
            }
            Err(refusal) => self.refuse(refusal),
        }
        self.ahead.recycle(stored);
        self.take_verdicts();
        self.plan();
        true
    }

    fn take_verdicts(&mut self) {
        while let Some(verdict) = self.engine.poll_verdict() {
            let Some(keyspace) = self.keyspaces.get_mut(verdict.keyspace) else { continue };
            keyspace.remember(&verdict);
            self.decisions.push_back(Decision::of_verdict(&verdict, &keyspace.name));
        }
    }

    /// Asks the planner when it is time, again after each operation that it gave.
    fn plan(&mut self) {
        let (Some(planning), Some(now)) = (&mut self.planning, self.newest) else { return };
        if planning.due.is_some_and(|due| now < due) {
            return;
        }
        planning.due = Some(now.saturating_add(DECIDE_EVERY));
        let keyspaces = 0..self.keyspaces.len();
        let hot: Vec<_> = keyspaces.clone().flat_map(|keyspace| self.engine.hot_keys(keyspace)).collect();
        let longest = |keyspace: usize| self.keyspaces.get(keyspace).map_or(0, |known| known.windows.saturating_sub(1));
        let shards: Vec<_> =
            keyspaces.clone().map(|keyspace| self.engine.shard_loads(keyspace, longest(keyspace))).collect();
        let trust =
            |keyspace: &Keyspace| keyspace.mapper.as_ref().map_or_else(MapperTrust::default, MapperCheck::trust);
        let mappers: Vec<MapperTrust> = self.keyspaces.iter().map(trust).collect();
        let end_offsets = BTreeMap::from([(PARTITION, Offset(i64::try_from(self.counted).unwrap_or(i64::MAX)))]);
        for _ in 0..MAX_OPERATIONS {
            let seen = Seen {
                hot: &hot,
                shards: &shards,
                mappers: &mappers,
                condition: self.engine.condition(),
                config_hash: &planning.config_hash,
                end_offsets: &end_offsets,
            };
            let operations = planning.planner.decide(&planning.topic.world(&seen), now);
            let Some(operation) = operations.first() else { break };
            if !planning.topic.append(operation, now) {
                break;
            }
            self.decisions.push_back(Decision::of_operation(operation, now));
        }
        for (index, keyspace) in self.keyspaces.iter_mut().enumerate() {
            let of_keyspace = planning.topic.planned().filter(|key| key.keyspace == keyspace.name);
            let planned: Vec<Arc<[u8]>> = of_keyspace.map(|key| Arc::from(key.key.as_slice())).collect();
            self.engine.protect(index, &planned);
            keyspace.set_plans(&planned);
        }
    }

    /// What it came to so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let count = |refusal| self.refused.get(&refusal).copied().unwrap_or(0);
        let reasons = Refusal::ALL.into_iter().filter(|reason| !matches!(reason, Refusal::TooLate | Refusal::Future));
        let keyspaces: Vec<_> =
            self.keyspaces.iter().enumerate().map(|(index, known)| self.keyspace(index, known)).collect();
        Summary {
            event: "summary",
            read: self.read,
            counted: self.counted,
            refused: reasons.map(|reason| (reason.label(), count(reason))).collect(),
            too_late: count(Refusal::TooLate),
            future: count(Refusal::Future),
            keys: Estimate {
                lower: keyspaces.iter().map(|keyspace| keyspace.keys.lower).sum(),
                upper: keyspaces.iter().map(|keyspace| keyspace.keys.upper).sum(),
            },
            flagged: keyspaces.iter().map(|keyspace| keyspace.flagged).sum(),
            span: self.first.zip(self.newest).map(|(first, newest)| [first.as_millis(), newest.as_millis()]),
            keyspaces,
        }
    }

    fn keyspace(&self, index: usize, known: &Keyspace) -> KeyspaceSummary {
        let status = self.engine.status(index);
        let hot = known.flagged.values().filter(|hot| **hot).count() as u64;
        KeyspaceSummary {
            keyspace: known.name.clone(),
            keys: status.keys_ever,
            flagged: hot,
            suspected: known.flagged.len() as u64 - hot,
            flagged_cut: known.flagged_cut,
            without_key: known.without_key,
            recall_above: status.recall_above,
            verdicts_cut: status.verdicts_cut,
            mapper: known.mapper.as_ref().map(MapperSummary::of),
        }
    }
}

impl Keyspace {
    /// Plans on paper are obeyed by nobody: what was recorded says nothing of their keys, nor where these are.
    fn set_plans(&mut self, planned: &[Arc<[u8]>]) {
        if let Some(mapper) = &mut self.mapper {
            let unknown = |key: &Arc<[u8]>| Planned { key: Arc::clone(key), settled: None };
            mapper.set_plans(&planned.iter().map(unknown).collect::<Vec<_>>());
        }
    }

    fn remember(&mut self, verdict: &Verdict) {
        let Subject::Key(key) = &verdict.subject else { return };
        let hot = match verdict.change {
            Change::Suspect => false,
            Change::Hot => true,
            Change::Cleared => return,
        };
        if let Some(was_hot) = self.flagged.get_mut(key) {
            *was_hot |= hot;
        } else if self.flagged.len() < MAX_FLAGGED {
            self.flagged.insert(Arc::clone(key), hot);
        } else {
            self.flagged_cut += 1;
        }
    }
}
