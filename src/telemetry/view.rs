//! What the service says of itself at each tick: plain data, made by the driver, read by whoever looks.

use std::sync::Arc;

use super::counters::KeyspaceLabels;
use super::labels::EngineCut;
use crate::engine::{
    Change, Condition, HotKey, KeyspaceStatus, Operations, RuleKind, RuleStatus, ShardLoad, ShardProfile, Splittable,
    WindowStatus,
};
use crate::plan::{MapperCheck, MapperTrust};
use crate::protocol::{Layout, Outcome, PlanRecord, PolicyEntry, Prediction, State, Version};
use crate::units::{Estimate, EventTime, Offset, Partition, Rate, Share, Span};

/// The most keys of a keyspace that a view lists, the hottest first; all are counted.
pub const MAX_LISTED_KEYS: usize = 100;
/// The most shards of a keyspace that a view lists, the busiest first; all are counted.
pub const MAX_LISTED_SHARDS: usize = 4096;
/// The most plans of a keyspace that a view lists; all are counted.
pub const MAX_LISTED_PLANS: usize = 1000;
/// The most routers that a view lists, those that are waited for first; all are counted.
pub const MAX_LISTED_ROUTERS: usize = 1000;

/// Everything that gauges and the API show, as it was at one tick.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The clock when the tick ended; none before the first one.
    pub at: Option<EventTime>,
    /// Names the configuration whose rules are in force: 16 hexadecimal digits.
    pub config: String,
    /// How far the engine's answers can be trusted.
    pub condition: Condition,
    /// The input.
    pub source: SourceView,
    /// The keyspaces, in the order of the configuration.
    pub keyspaces: Vec<KeyspaceView>,
    /// The plan topic and this process's part in it.
    pub control: ControlView,
    /// Registered routers, in all.
    pub routers_registered: usize,
    /// Of these, those that a gate waits for.
    pub routers_waiting: usize,
    /// Time since the last word of the one that has been silent for longest.
    pub oldest_ack: Span,
    /// The routers, cut; fill by [`View::set_routers`].
    pub routers: Vec<RouterView>,
}

/// The input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceView {
    /// Assigned partitions.
    pub partitions: Vec<PartitionView>,
}

/// One assigned partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionView {
    /// Its number.
    pub partition: Partition,
    /// The next record to read; none before the first.
    pub position: Option<Offset>,
    /// Records that are unread; none while the end is not known.
    pub lag: Option<u64>,
    /// Paused because it runs ahead of the slowest one.
    pub paused: bool,
}

/// One keyspace.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyspaceView {
    /// Its name.
    pub name: String,
    /// Its windows, in the order of the configuration.
    pub windows: Vec<WindowView>,
    /// Keys with exact counters.
    pub candidates: usize,
    /// Events in the window from which a key becomes a candidate.
    pub admission_level: u64,
    /// A hot key below so many events may be missed; none when none can be.
    pub recall_above: Option<u64>,
    /// Hot keys, in all.
    pub hot_keys: usize,
    /// Suspect keys, in all.
    pub suspect_keys: usize,
    /// Hot and suspect keys, the hottest first, cut; fill by [`KeyspaceView::set_keys`].
    pub keys: Vec<HotKeyView>,
    /// Length of the window of `shards`.
    pub shard_window: Span,
    /// Known shards, in all.
    pub known_shards: usize,
    /// Hot shards, in all.
    pub hot_shards: usize,
    /// Shards, the busiest first, cut; fill by [`KeyspaceView::set_shards`].
    pub shards: Vec<ShardView>,
    /// Lower bound of the median shard's count in the window; none without shards.
    pub shard_median: Option<u64>,
    /// The declared shard mapper, held against where events were served; none where none is declared.
    pub mapper: Option<MapperView>,
    /// What the engine left out since the start, in the order of [`EngineCut::ALL`].
    pub cuts: [u64; EngineCut::ALL.len()],
    /// Memory that counting uses.
    pub memory_bytes: u64,
    /// Plans by state, in the order of [`State::ALL`].
    pub plans_by_state: [usize; State::ALL.len()],
    /// Plans whose split was measured, by whether it helped: `true`, `false`.
    pub plans_by_outcome: [usize; 2],
    /// Plans, cut; fill by [`KeyspaceView::add_plan`].
    pub plans: Vec<PlanView>,
    /// Keys that operators have set something for: `pin`, `block`.
    pub policies_by_kind: [usize; 2],
    /// What operators have set for them, cut; fill by [`KeyspaceView::add_policy`].
    pub policies: Vec<Arc<PolicyEntry>>,
}

/// A declared shard mapper, held against where events were served.
#[derive(Debug, Clone, PartialEq)]
pub struct MapperView {
    /// Its function, as configurations name it.
    pub kind: &'static str,
    /// How many shards it names.
    pub shards: usize,
    /// Events that were looked at.
    pub checked: u64,
    /// Of these, those that another shard served than it says.
    pub elsewhere: u64,
    /// Share of such events among the last that were looked at; none before the first.
    pub mismatch: Option<Share>,
    /// Whether buckets are placed by it.
    pub trust: MapperTrust,
}

impl From<&MapperCheck> for MapperView {
    fn from(check: &MapperCheck) -> Self {
        Self {
            kind: check.mapper().label(),
            shards: check.mapper().shards().len(),
            checked: check.checked(),
            elsewhere: check.elsewhere(),
            mismatch: check.share().and_then(|share| Share::new(share).ok()),
            trust: check.trust(),
        }
    }
}

/// One window of a keyspace.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowView {
    /// Its length.
    pub length: Span,
    /// Events in it.
    pub events: u64,
    /// Distinct keys in it.
    pub distinct_keys: Estimate,
    /// The median over active keys; none while there is none.
    pub median: Option<Estimate>,
    /// It holds so many events that counters may have wrapped: upper bounds are all its events.
    pub wrapped: bool,
    /// The least threshold in force; none while no rule says anything.
    pub threshold: Option<u64>,
    /// A hot key below so many events may be missed; none when none can be.
    pub recall_above: Option<u64>,
    /// Event time from which on that is over.
    pub complete_from: Option<EventTime>,
    /// The rules for keys that no pattern matches.
    pub rules: Vec<RuleStatus>,
}

impl From<&WindowStatus> for WindowView {
    fn from(status: &WindowStatus) -> Self {
        Self {
            length: status.length,
            events: status.events,
            distinct_keys: status.keys,
            median: status.median,
            wrapped: status.wrapped,
            threshold: status.threshold,
            recall_above: status.recall_above,
            complete_from: status.complete_from,
            rules: status.rules.clone(),
        }
    }
}

/// A hot or suspect key.
#[derive(Debug, Clone, PartialEq)]
pub struct HotKeyView {
    /// The key's bytes.
    pub key: Arc<[u8]>,
    /// [`Change::Hot`] or [`Change::Suspect`].
    pub state: Change,
    /// Event time at which it became hot; none while suspect.
    pub hot_since: Option<EventTime>,
    /// The rule that raised it.
    pub rule: RuleKind,
    /// Length of the rule's window.
    pub window: Span,
    /// What the count is compared with.
    pub threshold: u64,
    /// Events in that window.
    pub count: Estimate,
    /// The median over active keys; none where the window has none.
    pub median: Option<Estimate>,
    /// The number of keys that it runs over.
    pub distinct_keys: Estimate,
    /// Confirmed rate over the shortest window now.
    pub rate: Rate,
    /// The highest such rate since it became hot.
    pub peak: Rate,
    /// Events by operation.
    pub operations: Operations,
    /// Sum of the weights of these events.
    pub weight: u64,
    /// Event time since when its requests are counted one by one.
    pub candidate_since: EventTime,
    /// Events that were looked at closely: of these are the numbers of shards and callers.
    pub sampled: u64,
    /// Shards that served it, the busiest first.
    pub shards: Vec<(Arc<[u8]>, Estimate)>,
    /// Callers, the busiest first.
    pub callers: Vec<(Arc<[u8]>, Estimate)>,
    /// Whether buckets would spread it.
    pub splittable: Splittable,
}

impl From<&HotKey> for HotKeyView {
    fn from(hot: &HotKey) -> Self {
        Self {
            key: Arc::clone(&hot.key),
            state: if hot.hot_since.is_some() { Change::Hot } else { Change::Suspect },
            hot_since: hot.hot_since,
            rule: hot.reason.rule,
            window: hot.reason.window,
            threshold: hot.reason.threshold,
            count: hot.reason.count,
            median: hot.reason.median,
            distinct_keys: hot.reason.subjects,
            rate: hot.rate,
            peak: hot.peak,
            operations: hot.profile.operations,
            weight: hot.profile.weight,
            candidate_since: hot.profile.since,
            sampled: hot.profile.sampled,
            shards: hot.profile.shards.clone(),
            callers: hot.profile.callers.clone(),
            splittable: hot.profile.splittable(&hot.key, &hot.reason),
        }
    }
}

/// A shard.
#[derive(Debug, Clone, PartialEq)]
pub struct ShardView {
    /// The shard's bytes.
    pub shard: Arc<[u8]>,
    /// Events in the window.
    pub count: Estimate,
    /// Event time at which it became hot, if it is.
    pub hot_since: Option<EventTime>,
    /// Why it is hot and the keys behind it; none for a cold one.
    pub profile: Option<Box<ShardProfile>>,
}

/// A plan as the plan topic has it.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanView {
    /// The key's bytes.
    pub key: Vec<u8>,
    /// Version of its newest accepted record.
    pub version: Version,
    /// Where its migration stands.
    pub state: State,
    /// Where writes go; none while they wait.
    pub write: Option<Layout>,
    /// Where reads look, in this order.
    pub read: Vec<Layout>,
    /// When it was decided, RFC 3339.
    pub decided_at: String,
    /// What is expected of it.
    pub prediction: Prediction,
    /// What it was measured to do, once it was.
    pub outcome: Option<Outcome>,
    /// Routers that have not acknowledged it.
    pub waiting_for: usize,
}

impl PlanView {
    /// What `record` of `version` says; `waiting_for` routers have not acknowledged it.
    #[must_use]
    pub fn new(record: &PlanRecord, version: Version, waiting_for: usize) -> Self {
        Self {
            key: record.key.0.clone(),
            version,
            state: record.state,
            write: record.write,
            read: record.read.clone(),
            decided_at: record.decided_at.clone(),
            prediction: record.prediction.clone(),
            outcome: record.outcome.clone(),
            waiting_for,
        }
    }
}

/// The plan topic and this process's part in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ControlView {
    /// This process publishes.
    pub leader: bool,
    /// Version of the newest accepted record; all zero before the first.
    pub version: Version,
    /// How long the oldest record sent has waited to be read back.
    pub read_back_lag: Span,
    /// Records that are wanted and not read back.
    pub unsent: usize,
    /// Nothing new may begin.
    pub frozen: bool,
}

/// A registered router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterView {
    /// Its name, as it gave it.
    pub id: String,
    /// The newest version that it has applied.
    pub applied: Version,
    /// Time since its last word.
    pub ack_age: Span,
    /// A gate waits for it.
    pub waiting: bool,
}

impl View {
    /// Before the first tick: every keyspace and window is there, and empty.
    #[must_use]
    pub fn empty(keyspaces: &[KeyspaceLabels]) -> Self {
        Self {
            at: None,
            config: String::new(),
            condition: Condition::COLD,
            source: SourceView::default(),
            keyspaces: keyspaces.iter().map(KeyspaceView::empty).collect(),
            control: ControlView::default(),
            routers_registered: 0,
            routers_waiting: 0,
            oldest_ack: Span::ZERO,
            routers: Vec::new(),
        }
    }

    /// Counts all routers and lists them, those that are waited for first, then the longest silent.
    pub fn set_routers(&mut self, mut routers: Vec<RouterView>) {
        self.routers_registered = routers.len();
        self.routers_waiting = routers.iter().filter(|router| router.waiting).count();
        self.oldest_ack = routers.iter().map(|router| router.ack_age).max().unwrap_or_default();
        routers.sort_by(|a, b| (b.waiting, b.ack_age, &a.id).cmp(&(a.waiting, a.ack_age, &b.id)));
        routers.truncate(MAX_LISTED_ROUTERS);
        self.routers = routers;
    }
}

impl KeyspaceView {
    /// A keyspace in which nothing was counted.
    #[must_use]
    pub fn empty(labels: &KeyspaceLabels) -> Self {
        let window = |length: &Span| WindowView {
            length: *length,
            events: 0,
            distinct_keys: Estimate::exact(0),
            median: None,
            wrapped: false,
            threshold: None,
            recall_above: None,
            complete_from: None,
            rules: Vec::new(),
        };
        Self {
            name: labels.name.clone(),
            windows: labels.windows.iter().map(window).collect(),
            candidates: 0,
            admission_level: 0,
            recall_above: None,
            hot_keys: 0,
            suspect_keys: 0,
            keys: Vec::new(),
            shard_window: labels.windows.first().copied().unwrap_or_default(),
            known_shards: 0,
            hot_shards: 0,
            shards: Vec::new(),
            shard_median: None,
            mapper: None,
            cuts: [0; EngineCut::ALL.len()],
            memory_bytes: 0,
            plans_by_state: [0; State::ALL.len()],
            plans_by_outcome: [0; 2],
            plans: Vec::new(),
            policies_by_kind: [0; 2],
            policies: Vec::new(),
        }
    }

    /// A keyspace as the engine sees it; keys, shards and plans are still to be set.
    #[must_use]
    pub fn from_status(name: &str, status: &KeyspaceStatus) -> Self {
        let least_threshold = status.windows.iter().filter_map(|window| window.threshold).min();
        let labels = KeyspaceLabels {
            name: name.to_owned(),
            windows: status.windows.iter().map(|window| window.length).collect(),
        };
        Self {
            windows: status.windows.iter().map(WindowView::from).collect(),
            candidates: status.candidates,
            admission_level: least_threshold.map_or(0, |threshold| part_of(threshold, status.level)),
            recall_above: status.recall_above,
            hot_keys: status.hot,
            suspect_keys: status.suspect,
            known_shards: status.shards,
            cuts: [
                status.candidates_cut,
                status.protected_cut,
                status.shards_cut,
                status.exact_panes_cut,
                status.verdicts_cut,
            ],
            memory_bytes: status.memory_bytes,
            ..Self::empty(&labels)
        }
    }

    /// Counts all hot and suspect keys and lists the hottest: hot before suspect, then by rate.
    pub fn set_keys<'a>(&mut self, keys: impl IntoIterator<Item = &'a HotKey>) {
        let mut keys: Vec<&HotKey> = keys.into_iter().collect();
        self.hot_keys = keys.iter().filter(|key| key.hot_since.is_some()).count();
        self.suspect_keys = keys.len() - self.hot_keys;
        keys.sort_by(|a, b| {
            let by_state = b.hot_since.is_some().cmp(&a.hot_since.is_some());
            let by_rate = b.rate.as_per_second().total_cmp(&a.rate.as_per_second());
            by_state.then(by_rate).then_with(|| a.key.cmp(&b.key))
        });
        self.keys = keys.into_iter().take(MAX_LISTED_KEYS).map(HotKeyView::from).collect();
    }

    /// Counts all known shards, in a window of length `window`, takes their median and lists the busiest.
    pub fn set_shards(&mut self, window: Span, shards: &[ShardLoad]) {
        self.shard_window = window;
        self.known_shards = shards.len();
        self.hot_shards = shards.iter().filter(|shard| shard.hot_since.is_some()).count();
        let view = |load: &ShardLoad| ShardView {
            shard: Arc::clone(&load.shard),
            count: load.count,
            hot_since: load.hot_since,
            profile: load.profile.clone(),
        };
        let mut listed: Vec<ShardView> = shards.iter().map(view).collect();
        listed.sort_by(|a, b| b.count.lower.cmp(&a.count.lower).then_with(|| a.shard.cmp(&b.shard)));
        self.shard_median = median(&listed);
        listed.truncate(MAX_LISTED_SHARDS);
        self.shards = listed;
    }

    /// Counts one plan and lists it while there is room.
    pub fn add_plan(&mut self, plan: PlanView) {
        if let Some(state) = State::ALL.iter().position(|state| *state == plan.state) {
            self.plans_by_state[state] += 1;
        }
        if let Some(outcome) = &plan.outcome {
            self.plans_by_outcome[usize::from(!outcome.helped)] += 1;
        }
        if self.plans.len() < MAX_LISTED_PLANS {
            self.plans.push(plan);
        }
    }

    /// Counts one pin or block and lists it while there is room.
    pub fn add_policy(&mut self, policy: Arc<PolicyEntry>) {
        self.policies_by_kind[usize::from(policy.policy.block)] += 1;
        if self.policies.len() < MAX_LISTED_PLANS {
            self.policies.push(policy);
        }
    }
}

/// `ceil(count x part)`, at least 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "for display; a threshold is far below 2^53, and `as` saturates"
)]
fn part_of(count: u64, part: f64) -> u64 {
    (count as f64 * part).ceil().max(1.0) as u64
}

/// Median of the lower bounds, of an even number the mean of the middle two, rounded down.
fn median(sorted: &[ShardView]) -> Option<u64> {
    let upper_middle = sorted.get(sorted.len() / 2)?.count.lower;
    let lower_middle = sorted.get(sorted.len().saturating_sub(1) / 2)?.count.lower;
    Some(upper_middle.midpoint(lower_middle))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(name: &str, count: u64, hot: bool) -> ShardLoad {
        let hot_since = hot.then_some(EventTime::MIN);
        ShardLoad { shard: name.as_bytes().into(), count: Estimate::exact(count), hot_since, profile: None }
    }

    fn keyspace() -> KeyspaceView {
        KeyspaceView::empty(&KeyspaceLabels { name: "customer".to_owned(), windows: vec![Span::from_secs(10)] })
    }

    #[test]
    fn shards_are_sorted_counted_and_cut() {
        let mut view = keyspace();
        view.set_shards(Span::from_secs(10), &[load("b", 10, false), load("a", 70, true), load("c", 30, false)]);
        assert_eq!((view.known_shards, view.hot_shards, view.shard_median), (3, 1, Some(30)));
        assert_eq!(&*view.shards[0].shard, b"a");
        view.set_shards(Span::from_secs(10), &[load("b", 10, false), load("a", 31, false)]);
        assert_eq!(view.shard_median, Some(20));
        view.set_shards(Span::from_secs(10), &[]);
        assert_eq!(view.shard_median, None);
        let many: Vec<_> = (0..5000).map(|n| load(&n.to_string(), n, false)).collect();
        view.set_shards(Span::from_secs(10), &many);
        assert_eq!((view.known_shards, view.shards.len(), view.shards[0].count.lower), (5000, MAX_LISTED_SHARDS, 4999));
    }

    #[test]
    fn the_engine_status_is_taken_over() {
        let window = WindowStatus {
            length: Span::from_secs(10),
            events: 900,
            keys: Estimate { lower: 40, upper: 44 },
            median: Some(Estimate::exact(3)),
            threshold: Some(20),
            recall_above: None,
            complete_from: None,
            rules: Vec::new(),
            wrapped: true,
        };
        let view = KeyspaceView::from_status(
            "customer",
            &KeyspaceStatus {
                windows: vec![window],
                keys_ever: Estimate::exact(50),
                candidates: 5,
                hot: 2,
                suspect: 1,
                shards: 3,
                level: 0.125,
                recall_above: Some(25),
                too_late: 0,
                candidates_cut: 1,
                protected_cut: 2,
                shards_cut: 3,
                exact_panes_cut: 4,
                verdicts_cut: 5,
                memory_bytes: 1 << 20,
            },
        );
        assert_eq!((view.name.as_str(), view.admission_level, view.recall_above), ("customer", 3, Some(25)));
        assert_eq!((view.hot_keys, view.suspect_keys, view.known_shards, view.candidates), (2, 1, 3, 5));
        assert_eq!((view.cuts, view.memory_bytes, view.windows[0].events), ([1, 2, 3, 4, 5], 1 << 20, 900));
        assert!(view.windows[0].wrapped);
    }

    #[test]
    fn routers_that_are_waited_for_come_first() {
        let router = |id: &str, waiting, secs| RouterView {
            id: id.to_owned(),
            applied: Version::default(),
            ack_age: Span::from_secs(secs),
            waiting,
        };
        let mut view = View::empty(&[]);
        view.set_routers(vec![router("a", false, 90), router("b", true, 1), router("c", true, 5)]);
        let ids: Vec<&str> = view.routers.iter().map(|router| router.id.as_str()).collect();
        assert_eq!((view.routers_registered, view.routers_waiting, ids), (3, 2, vec!["c", "b", "a"]));
        assert_eq!(view.oldest_ack, Span::from_secs(90));
    }
}
