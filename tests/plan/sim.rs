//! A world in memory: what the planner decides is appended to a plan topic, routers follow and acknowledge, the owner moves and retires.

use std::collections::BTreeMap;
use std::sync::Arc;

use keyheat::engine::{
    BUCKET_COUNTERS, Completeness, Condition, HotKey, KeyProfile, Operations, Reason, RuleKind, ShardLoad,
};
use keyheat::plan::{
    BudgetSettings, Disobeyed, Effect, MapperTrust, Merge, Mode, Operation, PlanSettings, Planner, ProtocolSettings,
    Wish, Word, World,
};
use keyheat::protocol::{
    AckTable, AckTopicKey, Applied, BackfillReport, Claim, History, KeyField, LogRecord, Nonce, PlanKey, PlanRecord,
    PlanTable, PlanTopicKey, RecordHeaders, RecordKind, RefusedKey, RefusedRecord, RetiredReport, RouterAck, SCHEMA,
    State, Version, WaitingKey, Writes,
};
use keyheat::units::{Estimate, EventTime, Offset, Partition, Rate, Span};

/// Settings of keyspace `customer` that a test changes where it wants to.
pub(crate) fn settings() -> PlanSettings {
    PlanSettings {
        keyspace: "customer".into(),
        seed: 1,
        mode: Mode::Auto,
        writes: Writes::Update,
        history: History::Move,
        expire_after: Span::from_secs(60),
        bucket_rate: Rate::per_second(100.0).unwrap(),
        headroom: 0.0,
        max_buckets: 256,
        min_gain: 1.5,
        window: Span::from_secs(60),
        cooldown: Span::from_secs(1800),
        merge: Merge::Union,
        mapper: None,
        quiet: Span::from_secs(600),
        allow: Vec::new(),
        block: Vec::new(),
    }
}

/// A hot key that only writes, evenly over all request ids.
pub(crate) fn hot(key: &str, per_s: f64) -> HotKey {
    let rate = Rate::per_second(per_s).unwrap();
    let count = Estimate::exact(rate.count_in(Span::from_secs(60)));
    HotKey {
        keyspace: 0,
        key: Arc::from(key.as_bytes()),
        hot_since: EventTime::from_millis(1_000_000).ok(),
        reason: Reason {
            rule: RuleKind::Absolute,
            window: Span::from_secs(60),
            threshold: 3_000,
            count,
            median: Some(Estimate::exact(3)),
            subjects: Estimate::exact(100),
        },
        peak: rate,
        rate,
        profile: KeyProfile {
            since: EventTime::MIN,
            operations: Operations { reads: 0, writes: count.lower, scans: 0, unknown: 0 },
            weight: count.lower,
            sampled: 256_000,
            shards: vec![(Arc::from(b"s0".as_slice()), count)],
            callers: Vec::new(),
            buckets: Box::new([1_000; BUCKET_COUNTERS]),
            without_request_id: 0,
        },
    }
}

/// A router and how it behaves.
#[derive(Debug, Clone)]
pub(crate) struct Router {
    pub(crate) id: String,
    pub(crate) table: PlanTable,
    /// How much of the log it has read.
    read: usize,
    /// It reads and acknowledges nothing while it is stuck.
    pub(crate) stuck: bool,
    /// States whose records it does not get to acknowledge: guards are left.
    pub(crate) waits_in: Vec<State>,
    /// It refuses every prepare.
    pub(crate) refuses: bool,
}

/// All is counted, up to now, over whole windows.
const WHOLE: Condition = Condition {
    warming_up: false,
    catching_up: false,
    incomplete: false,
    completeness: Completeness { counted: 10, exist: 10 },
    lag: Some(0),
    watermark: None,
};

/// The world.
pub(crate) struct Sim {
    pub(crate) now: EventTime,
    pub(crate) planner: Planner,
    pub(crate) keyspaces: Vec<PlanSettings>,
    pub(crate) budget: BudgetSettings,
    pub(crate) hot: Vec<HotKey>,
    /// Each bucket of a key is on a shard of its own; else all of them are where the bare key was.
    pub(crate) spread: bool,
    pub(crate) shards: Vec<Vec<ShardLoad>>,
    pub(crate) mappers: Vec<MapperTrust>,
    pub(crate) condition: Condition,
    pub(crate) log: Vec<LogRecord>,
    pub(crate) table: PlanTable,
    pub(crate) acks: AckTable,
    pub(crate) routers: Vec<Router>,
    /// The owner moves and retires as soon as it is asked to.
    pub(crate) owner_works: bool,
    /// How much later than the planner's clock records reach the log.
    pub(crate) log_delay: Span,
    epoch: u64,
    seq: u64,
}

const HALF_HOUR_PAST: i64 = 1_796_033_492_120;

impl Sim {
    pub(crate) fn new(keyspaces: Vec<PlanSettings>) -> Self {
        Self::with_budget(keyspaces, BudgetSettings::default())
    }

    pub(crate) fn with_budget(keyspaces: Vec<PlanSettings>, budget: BudgetSettings) -> Self {
        let router = |number| Router {
            id: format!("r{number}"),
            table: PlanTable::new(),
            read: 0,
            stuck: false,
            waits_in: Vec::new(),
            refuses: false,
        };
        let mut sim = Self {
            now: EventTime::from_millis(HALF_HOUR_PAST).unwrap(),
            planner: Planner::new(keyspaces.clone(), budget, ProtocolSettings::default()),
            keyspaces,
            budget,
            hot: Vec::new(),
            spread: true,
            shards: vec![Vec::new()],
            mappers: Vec::new(),
            condition: WHOLE,
            log: Vec::new(),
            table: PlanTable::new(),
            acks: AckTable::new(),
            routers: (1..=2).map(router).collect(),
            owner_works: true,
            log_delay: Span::ZERO,
            epoch: 0,
            seq: 0,
        };
        sim.new_leader();
        sim
    }

    /// Of ten partitions so many are counted.
    pub(crate) fn count_of_ten(&mut self, counted: usize) {
        let completeness = Completeness { counted, exist: 10 };
        self.condition = Condition { incomplete: !completeness.is_whole(), completeness, ..self.condition };
    }

    /// Another publisher takes the lead, with a planner of its own.
    pub(crate) fn new_leader(&mut self) {
        self.epoch += 1;
        self.seq = 0;
        self.planner = Planner::new(self.keyspaces.clone(), self.budget, ProtocolSettings::default());
        let key = PlanTopicKey::Claim { epoch: self.epoch, nonce: Nonce(self.epoch) };
        self.append(
            &key,
            Version { epoch: self.epoch, seq: 0 },
            Some(Claim::new("test", "").encode()),
            RecordKind::Claim,
        );
        self.follow();
    }

    fn append(&mut self, key: &PlanTopicKey, version: Version, value: Option<Vec<u8>>, kind: RecordKind) {
        let headers = RecordHeaders {
            version,
            nonce: Nonce(self.epoch),
            kind,
            source: "/keyheat/test".into(),
            time: self.now.to_rfc3339(),
            subject: key.to_bytes(),
            has_value: value.is_some(),
        };
        let offset = Offset(i64::try_from(self.log.len()).unwrap());
        let record =
            LogRecord::new(offset, key.to_bytes(), value, &headers).at(self.now.saturating_add(self.log_delay));
        let applied = self.table.apply(&record);
        let void = matches!(&applied, Applied::Refused { reason: RefusedRecord::Void(_), .. });
        assert!(void || !matches!(applied, Applied::Refused { .. }), "{applied:?}");
        self.log.push(record);
    }

    fn send(&mut self, operation: &Operation) {
        self.seq += 1;
        let version = Version { epoch: self.epoch, seq: self.seq };
        let (key, value, kind) = match operation {
            Operation::Put(record) => (PlanTopicKey::Plan(record.plan_key()), Some(record.encode()), RecordKind::Plan),
            Operation::Remove(key) => (PlanTopicKey::Plan(key.clone()), None, RecordKind::PlanRemoved),
            Operation::Advise(advice) => {
                (PlanTopicKey::Advice(advice.plan_key()), Some(advice.encode()), RecordKind::Advice)
            }
            Operation::Unadvise(key) => (PlanTopicKey::Advice(key.clone()), None, RecordKind::AdviceRemoved),
            Operation::SetPolicy(policy) => {
                (PlanTopicKey::Policy(policy.plan_key()), Some(policy.encode()), RecordKind::Policy)
            }
            Operation::RemovePolicy(key) => (PlanTopicKey::Policy(key.clone()), None, RecordKind::PolicyRemoved),
        };
        self.append(&key, version, value, kind);
    }

    /// What the planner would send now.
    pub(crate) fn decide(&mut self) -> Vec<Operation> {
        let end_offsets = BTreeMap::from([(Partition(0), Offset(88_120))]);
        let hot: Vec<HotKey> = self.hot.iter().map(|hot| self.served(hot)).collect();
        let world = World {
            hot: &hot,
            shards: &self.shards,
            mappers: &self.mappers,
            condition: self.condition,
            table: &self.table,
            acks: &self.acks,
            next: Version { epoch: self.epoch, seq: self.seq + 1 },
            end_offsets: &end_offsets,
            config_hash: "5b1c00000000d2a7",
        };
        self.planner.decide(&world, self.now)
    }

    /// Tells the planner something of a key; the number asks for the answer.
    pub(crate) fn say_only(&mut self, key: &str, wish: Wish) -> Result<u64, Disobeyed> {
        self.planner.tell(Word { key: customer(key), wish, reason: None }, self.now)
    }

    /// Says something of a key and waits for the answer.
    pub(crate) fn say(&mut self, key: &str, wish: Wish) -> Result<Effect, Disobeyed> {
        self.say_of(customer(key), wish, None)
    }

    /// The same of any key, with a reason.
    pub(crate) fn say_of(&mut self, key: PlanKey, wish: Wish, reason: Option<String>) -> Result<Effect, Disobeyed> {
        let number = self.planner.tell(Word { key, wish, reason }, self.now)?;
        for _ in 0..20 {
            let sent = self.step();
            if let Some(answer) = self.planner.answer(number) {
                return answer;
            }
            assert!(sent, "a word that nothing is sent for is answered");
        }
        panic!("no answer to a word");
    }

    /// The hot key as its events are served: by a shard for each bucket.
    fn served(&self, hot: &HotKey) -> HotKey {
        let keyspace = self.keyspaces.get(hot.keyspace).map_or("", |settings| &settings.keyspace);
        let entry = self.table.plan(&PlanKey::new(keyspace, &hot.key));
        let layout = entry.and_then(|entry| entry.record.write);
        let Some(layout) = layout.filter(|layout| self.spread && !layout.is_bare()) else { return hot.clone() };
        let all: u64 = hot.profile.shards.iter().map(|(_, count)| count.upper).sum();
        let count = Estimate::exact(all / u64::from(layout.buckets()));
        let shard = |bucket| (Arc::from(format!("s{bucket}").as_bytes()), count);
        let profile = KeyProfile { shards: (0..layout.buckets()).map(shard).collect(), ..hot.profile.clone() };
        HotKey { profile, ..hot.clone() }
    }

    /// Answers the shadowed, else decides and sends the first operation; lets everybody follow. False when there is nothing to send.
    pub(crate) fn step(&mut self) -> bool {
        let shadowed = self.table.shadowed().next().map(|(key, _)| key.clone());
        if let Some(key) = shadowed {
            let value = self.table.answer(&key);
            self.seq += 1;
            self.append(&key, Version { epoch: self.epoch, seq: self.seq }, value, RecordKind::Plan);
            self.follow();
            return true;
        }
        let operations = self.decide();
        let Some(first) = operations.first() else { return false };
        self.send(first);
        self.follow();
        true
    }

    /// Goes on until nothing is left to send at this time.
    pub(crate) fn settle(&mut self) {
        self.follow();
        let mut steps = 0;
        while self.step() {
            steps += 1;
            assert!(steps < 1000, "the planner does not come to rest: {:?}", self.states());
        }
    }

    /// Lets time pass in steps of a second, each settled.
    pub(crate) fn pass(&mut self, secs: u64) {
        for _ in 0..secs {
            self.now = self.now.saturating_add(Span::from_secs(1));
            self.settle();
        }
    }

    /// Routers read and acknowledge; the owner works.
    pub(crate) fn follow(&mut self) {
        for at in 0..self.routers.len() {
            self.router_follows(at);
        }
        if self.owner_works {
            self.owner_follows();
        }
    }

    fn router_follows(&mut self, at: usize) {
        let router = &mut self.routers[at];
        if !router.stuck {
            for record in &self.log[router.read..] {
                router.table.apply(record);
            }
            router.read = self.log.len();
        }
        let field = |key: &PlanKey| KeyField(key.key.clone());
        let plans = router.table.plans();
        let waiting = plans.filter(|(_, entry)| router.waits_in.contains(&entry.record.state));
        let waiting = waiting.map(|(key, entry)| WaitingKey {
            keyspace: key.keyspace.clone(),
            key: field(key),
            version: entry.version,
        });
        let refused = router.table.plans().filter(|(_, entry)| router.refuses && entry.record.state == State::Prepare);
        let refusals = refused.map(|(key, entry)| RefusedKey {
            keyspace: key.keyspace.clone(),
            key: field(key),
            version: entry.version,
            reason: "hash".into(),
        });
        let ack = RouterAck {
            schema: SCHEMA,
            id: router.id.clone(),
            nonce: Nonce(1),
            applied: router.table.last_version(),
            digest: router.table.digest(),
            waiting: waiting.collect(),
            more_waiting: false,
            refusals: refusals.collect(),
            more_refused: false,
            time: self.now.to_rfc3339(),
            unknown_until: None,
        };
        let key = AckTopicKey::Router { id: ack.id.clone(), nonce: ack.nonce };
        self.tell(&key, Some(ack.encode()));
    }

    /// Appends a record to the acks topic.
    pub(crate) fn tell(&mut self, key: &AckTopicKey, value: Option<Vec<u8>>) {
        let record =
            LogRecord { offset: Offset(0), key: key.to_bytes(), value, headers: Vec::new(), log_time: Some(self.now) };
        self.acks.apply(&record);
    }

    fn owner_follows(&mut self) {
        let plans: Vec<_> = self.table.plans().map(|(key, entry)| (key.clone(), entry.record.clone())).collect();
        for (key, record) in plans {
            if record.state == State::Moving {
                let (to, version) = (record.migration.to.number(), record.migration.version);
                self.tell(
                    &AckTopicKey::Backfill { key: key.clone(), layout: to },
                    Some(moved(&key, to, version).encode()),
                );
            }
            if let [layout, ..] = record.retire[..] {
                let report = RetiredReport {
                    schema: SCHEMA,
                    keyspace: key.keyspace.clone(),
                    key: KeyField(key.key.clone()),
                    layout: layout.number(),
                    migration: record.migration.version,
                    remaining: 0,
                    time: self.now.to_rfc3339(),
                };
                self.tell(&AckTopicKey::Retired { key, layout: layout.number() }, Some(report.encode()));
            }
        }
    }

    /// The plan of a key.
    pub(crate) fn plan(&self, key: &str) -> Option<&PlanRecord> {
        self.table.plan(&customer(key)).map(|entry| &entry.record)
    }

    /// Every value that the log holds for a key, tombstones as none.
    pub(crate) fn history(&self, key: &str) -> Vec<Option<PlanRecord>> {
        let bytes = PlanTopicKey::Plan(customer(key)).to_bytes();
        let records = self.log.iter().filter(|record| record.key == bytes);
        records
            .map(|record| record.value.as_ref().map(|value| PlanRecord::decode(&customer(key), value).unwrap()))
            .collect()
    }

    /// The states that a key went through; `retire` and `end` for a settled record with a list, and for a tombstone. A record that only
    /// tells what was measured is none of them.
    pub(crate) fn states_of(&self, key: &str) -> Vec<&'static str> {
        let tells = |record: &PlanRecord| record.outcome.is_some() && !record.migration.to.is_bare();
        let history = self.history(key);
        let steps = history.iter().filter(|record| !record.as_ref().is_some_and(tells));
        steps.map(|record| record.as_ref().map_or("end", name)).collect()
    }

    /// The state of every key.
    pub(crate) fn states(&self) -> Vec<(String, &'static str)> {
        let shown = |key: &PlanKey| String::from_utf8_lossy(&key.key).into_owned();
        self.table.plans().map(|(key, entry)| (shown(key), name(&entry.record))).collect()
    }
}

fn name(record: &PlanRecord) -> &'static str {
    match record.state {
        State::Settled if !record.retire.is_empty() => "retire",
        State::Settled if record.is_turned_round() => "round",
        state => state.label(),
    }
}

/// The owner's proof that everything is in layout `to`.
pub(crate) fn moved(key: &PlanKey, to: u32, migration: Version) -> BackfillReport {
    BackfillReport {
        schema: SCHEMA,
        keyspace: key.keyspace.clone(),
        key: KeyField(key.key.clone()),
        layout: to,
        migration,
        moved: 10,
        expected: 10,
        checksum_from: "ab".into(),
        checksum_to: "ab".into(),
        done: true,
        time: String::new(),
    }
}

/// A key of the keyspace of these tests.
pub(crate) fn customer(key: &str) -> PlanKey {
    PlanKey::new("customer", key.as_bytes())
}
