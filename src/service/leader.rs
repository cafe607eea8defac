//! The loop of the plan topic: follow both topics, lead when the fence allows it, decide, publish, keep alive.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::clerk::{Clerk, Standing};
use super::clock::Clock;
use super::exchange::{Exchange, Led};
use super::stop::Stop;
use super::topic_check::TopicFaults;
use crate::control::{Draft, LeaderGroup, Ownership, Published, Publisher, Purpose, about, control_kind};
use crate::observe::Readiness;
use crate::plan::{Operation, Planned, Planner, World};
use crate::protocol::{AckApplied, AckTable, Applied, PlanKey, PlanTable, PlanTopicKey, PolicyEntry, State, Version};
use crate::router::{FollowError, TopicFollower};
use crate::telemetry::{ControlView, Events, KafkaErrorClass, Latch, MAX_LOG_CHARS, PlanView, RouterView, escape};
use crate::units::{EventTime, Span};

/// The wait for a record of the plan topic; everything else is looked at as often.
const POLL_LIMIT: Duration = Duration::from_millis(10);
/// The longest wait for a broker's word on where a topic ends.
const ASK_LIMIT: Duration = Duration::from_secs(2);
/// How often missing topics are looked for.
const LOOK_EVERY: Span = Span::from_secs(2);
/// Records of one topic that are folded before the other is looked at.
const FOLD_RECORDS: usize = 1024;
/// How often what the leader knows is laid down for the view.
const LED_EVERY: Span = Span::from_millis(500);
/// How often the planner is asked when nothing new was read.
const DECIDE_EVERY: Span = Span::from_millis(200);

/// What the leader's loop works with.
pub(super) struct LeaderParts {
    pub(super) clock: Clock,
    pub(super) stop: Stop,
    pub(super) group: LeaderGroup,
    pub(super) plan_topic: TopicFollower,
    pub(super) acks_topic: TopicFollower,
    pub(super) publisher: Publisher,
    pub(super) planner: Planner,
    pub(super) topic_faults: TopicFaults,
    pub(super) keyspaces: Vec<String>,
    pub(super) heartbeat_every: Span,
    pub(super) grace: Span,
    pub(super) events: Arc<Events>,
    pub(super) readiness: Arc<Readiness>,
    pub(super) exchange: Arc<Exchange>,
    pub(super) clerk: Clerk,
}

/// How the leader's loop ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LeaderEnd {
    /// What was wanted and is not known to be on the topic, by key.
    pub(super) unsent: Vec<String>,
}

/// The loop of the plan topic.
pub(super) struct Leader {
    parts: LeaderParts,
    table: PlanTable,
    acks: AckTable,
    /// The epoch that this process was last seen to lead.
    led_epoch: Option<u64>,
    /// The topic must be read to its end, as asked after the assignment, before a claim.
    asked_for_claim: bool,
    heartbeat_at: Span,
    decide_at: Span,
    led_at: Span,
    look_at: Span,
    topics_seen: bool,
    topics_looked_at: bool,
    sent_at: Option<Span>,
    unsent: usize,
    contradicted: bool,
    /// The plan topic was read to where it ended at some moment after the start.
    plans_known: bool,
}

impl Leader {
    pub(super) fn new(parts: LeaderParts) -> Self {
        Self {
            parts,
            table: PlanTable::new(),
            acks: AckTable::new(),
            led_epoch: None,
            asked_for_claim: false,
            heartbeat_at: Span::ZERO,
            decide_at: Span::ZERO,
            led_at: Span::ZERO,
            look_at: Span::ZERO,
            topics_seen: false,
            topics_looked_at: false,
            sent_at: None,
            unsent: 0,
            contradicted: false,
            plans_known: false,
        }
    }

    /// Runs until told to stop; then publishes what is decided, within the grace time.
    pub(super) fn run(mut self) -> LeaderEnd {
        while !self.parts.stop.is_set() {
            self.turn();
            if self.free_to_publish() {
                self.act();
            }
        }
        self.finish()
    }

    /// Everything but deciding.
    fn turn(&mut self) {
        let now = self.parts.clock.now();
        for change in self.parts.group.poll() {
            match change {
                Ownership::Assigned => {
                    self.asked_for_claim = false;
                    self.parts.publisher.leadership_mut().handle_assigned();
                }
                Ownership::Revoked => self.parts.publisher.leadership_mut().handle_revoked(),
            }
        }
        self.follow_plan(now);
        self.plans_known |= self.parts.plan_topic.reached_asked_end();
        self.follow_acks(now);
        self.claim_when_read(now);
        for published in self.parts.publisher.drive(now) {
            self.tell(now, &published);
        }
        if self.parts.publisher.leadership().should_rejoin(now) && self.parts.group.rejoin().is_err() {
            self.parts.events.kafka_error(now, "leader group", KafkaErrorClass::Group, "joining anew failed");
        }
        self.note_leadership();
        self.take_orders();
        let elapsed = self.parts.clock.elapsed();
        if !self.topics_seen && elapsed >= self.look_at {
            self.look_at = elapsed.saturating_add(LOOK_EVERY);
            self.look_for_topics(now);
        }
        if elapsed.as_millis() >= self.led_at.as_millis() + LED_EVERY.as_millis() {
            self.led_at = elapsed;
            self.lay_down(now, elapsed);
        }
    }

    /// Answers what people ask and tell the leader.
    fn take_orders(&mut self) {
        let now = self.parts.clock.now();
        let standing = Standing { leads: self.led_epoch.is_some(), contradicted: self.contradicted };
        let LeaderParts { clerk, planner, events, .. } = &mut self.parts;
        clerk.answer(standing, planner, &self.table, &self.acks);
        if clerk.carry_out(standing, planner, events, now) {
            self.decide_at = Span::ZERO;
        }
    }

    fn follow_plan(&mut self, now: EventTime) {
        let mut timeout = POLL_LIMIT;
        for _ in 0..FOLD_RECORDS {
            match self.parts.plan_topic.poll(timeout) {
                None => break,
                Some(Ok(record)) => {
                    let applied = self.table.apply(&record);
                    let published = self.parts.publisher.handle_applied(&record, &applied, &self.table, now);
                    if let Some(published) = published {
                        self.tell(now, &published);
                    }
                    if !matches!(applied, Applied::Heartbeat { .. }) {
                        self.decide_at = Span::ZERO;
                    }
                    self.topic_is_there(Latch::PlanTopic);
                }
                Some(Err(error)) => {
                    self.follow_failed(now, "plan topic", Latch::PlanTopic, &error);
                    if matches!(error, FollowError::OutOfRange(_)) {
                        self.stop_for_loss(&error.to_string());
                    }
                }
            }
            timeout = Duration::ZERO;
        }
    }

    fn follow_acks(&mut self, now: EventTime) {
        for _ in 0..FOLD_RECORDS {
            match self.parts.acks_topic.poll(Duration::ZERO) {
                None => break,
                Some(Ok(record)) => {
                    let applied = self.acks.apply(&record);
                    self.tell_refusals(now, &applied);
                    self.decide_at = Span::ZERO;
                    self.topic_is_there(Latch::AcksTopic);
                }
                Some(Err(error)) => {
                    self.follow_failed(now, "acks topic", Latch::AcksTopic, &error);
                    if matches!(error, FollowError::OutOfRange(_)) {
                        // Compacted and kept: a cut means that it was made anew. Routers say where they are within seconds.
                        self.acks = AckTable::new();
                        if let Err(error) = self.parts.acks_topic.restart() {
                            self.parts.events.kafka_error(
                                now,
                                "acks topic",
                                KafkaErrorClass::Other,
                                &error.to_string(),
                            );
                        }
                    }
                }
            }
        }
    }

    /// A topic can be read: it is ready, unless its settings break the contract.
    fn topic_is_there(&self, latch: Latch) {
        let topic = if latch == Latch::AcksTopic { &self.parts.acks_topic } else { &self.parts.plan_topic };
        let fault = self.parts.topic_faults.of(topic.name());
        self.parts.readiness.set(latch, fault.is_none(), fault.as_deref().unwrap_or(""));
    }

    fn follow_failed(&self, now: EventTime, client: &'static str, latch: Latch, error: &FollowError) {
        let class = match error {
            FollowError::Missing(_) => KafkaErrorClass::UnknownTopic,
            FollowError::OutOfRange(_) => KafkaErrorClass::OffsetOutOfRange,
            FollowError::Client { error, .. } => KafkaErrorClass::from(error.as_ref()),
        };
        self.parts.events.kafka_error(now, client, class, &error.to_string());
        if !matches!(error, FollowError::Client { .. }) {
            self.parts.readiness.set(latch, false, &error.to_string());
        }
    }

    /// A candidate asks once where the topic ends, reads up to there, and claims.
    fn claim_when_read(&mut self, now: EventTime) {
        if !self.parts.publisher.leadership().is_candidate() || self.contradicted {
            return;
        }
        if !self.asked_for_claim {
            match self.parts.plan_topic.ask_end(ASK_LIMIT) {
                Ok(_) => {
                    self.asked_for_claim = true;
                    self.topic_is_there(Latch::PlanTopic);
                }
                Err(error) => self.follow_failed(now, "plan topic", Latch::PlanTopic, &error),
            }
        } else if self.parts.plan_topic.reached_asked_end() {
            self.asked_for_claim = false;
            self.parts.publisher.leadership_mut().handle_read_to_end(now);
        }
    }

    /// A topic without a record says nothing by itself: until both are there the broker is asked for their ends.
    fn look_for_topics(&mut self, now: EventTime) {
        let mut seen = true;
        if !self.parts.publisher.leadership().is_candidate() {
            seen &= self.look_for(now, "plan topic", Latch::PlanTopic);
        }
        seen &= self.look_for(now, "acks topic", Latch::AcksTopic);
        let faulty =
            [&self.parts.plan_topic, &self.parts.acks_topic].map(|topic| self.parts.topic_faults.of(topic.name()));
        // A fault that was mended shows only when somebody looks again.
        self.topics_seen = seen && self.topics_looked_at && faulty.iter().all(Option::is_none);
        self.topics_looked_at = seen;
    }

    fn look_for(&mut self, now: EventTime, client: &'static str, latch: Latch) -> bool {
        let follower = match latch {
            Latch::AcksTopic => &mut self.parts.acks_topic,
            _ => &mut self.parts.plan_topic,
        };
        match follower.ask_end(ASK_LIMIT) {
            Ok(_) => self.topic_is_there(latch),
            Err(error) => {
                self.follow_failed(now, client, latch, &error);
                return false;
            }
        }
        true
    }

    fn note_leadership(&mut self) {
        let leading = self.parts.publisher.leadership().leading();
        if leading != self.led_epoch {
            self.parts.events.leader(leading.is_some(), leading.unwrap_or(self.table.highest_epoch()));
            self.led_epoch = leading;
            // What was wanted under another epoch must not come true when nobody thinks of it any more.
            self.parts.clerk.forget(&mut self.parts.planner);
            self.heartbeat_at = Span::ZERO;
            self.decide_at = Span::ZERO;
        }
        let known = leading.is_some() || self.table.heartbeat().is_some();
        let detail = if known { "" } else { "nobody leads yet: waiting for the plan topic and for a claim" };
        self.parts.readiness.set(Latch::Control, known && !self.contradicted, detail);
    }

    fn free_to_publish(&self) -> bool {
        !self.contradicted && self.parts.publisher.leadership().next_version().is_some()
    }

    /// Leads and has nothing in flight: answers refused records first, then decisions, then says that it is there.
    fn act(&mut self) {
        let elapsed = self.parts.clock.elapsed();
        if let Some(draft) = Draft::answer(&self.table) {
            self.submit(draft, elapsed);
            return;
        }
        if elapsed >= self.decide_at {
            self.decide_at = elapsed.saturating_add(DECIDE_EVERY);
            if let Some(operation) = self.decide() {
                self.tell_turned_back(&operation);
                self.submit(draft_of(operation), elapsed);
                return;
            }
        }
        if elapsed >= self.heartbeat_at {
            self.heartbeat_at = elapsed.saturating_add(self.parts.heartbeat_every);
            let acks_seen = self.parts.acks_topic.position().0;
            let draft = Draft::heartbeat(&self.table, self.parts.clock.now(), Some(acks_seen));
            self.submit(draft, elapsed);
        }
    }

    fn submit(&mut self, draft: Draft, elapsed: Span) {
        let now = self.parts.clock.now();
        let heartbeat = draft.purpose == Purpose::Heartbeat;
        if self.parts.publisher.submit(draft, now) && !heartbeat {
            self.sent_at = Some(elapsed);
        }
    }

    /// The most important decision, resting on the acks topic as it is now.
    fn decide(&mut self) -> Option<Operation> {
        let next = self.parts.publisher.leadership().next_version()?;
        self.unsent = self.ask_planner(next).len();
        if self.unsent == 0 || !self.read_acks_to_end() {
            return None;
        }
        // Reading the acks topic may have brought news of the plan topic as well.
        let next = self.parts.publisher.leadership().next_version()?;
        let operations = self.ask_planner(next);
        self.unsent = operations.len();
        operations.into_iter().next()
    }

    fn ask_planner(&mut self, next: Version) -> Vec<Operation> {
        let heat = self.parts.exchange.heat();
        let world = World {
            hot: &heat.hot,
            shards: &heat.shards,
            mappers: &heat.mappers,
            condition: heat.condition,
            table: &self.table,
            acks: &self.acks,
            next,
            end_offsets: &heat.end_offsets,
            config_hash: &heat.config_hash,
        };
        self.parts.planner.decide(&world, self.parts.clock.now())
    }

    /// A record is decided only on acknowledgements read to their end: else a router that has just joined is not waited for.
    fn read_acks_to_end(&mut self) -> bool {
        let now = self.parts.clock.now();
        if let Err(error) = self.parts.acks_topic.ask_end(ASK_LIMIT) {
            self.follow_failed(now, "acks topic", Latch::AcksTopic, &error);
            return false;
        }
        self.topic_is_there(Latch::AcksTopic);
        let deadline = self.parts.clock.elapsed().saturating_add(Span::from_secs(2));
        while !self.parts.acks_topic.reached_asked_end() && self.parts.clock.elapsed() < deadline {
            self.follow_acks(now);
            if !self.parts.acks_topic.reached_asked_end() {
                // The plan topic's poll is the wait.
                self.follow_plan(now);
            }
        }
        self.parts.acks_topic.reached_asked_end() && !self.stops_on_contradiction(now)
    }

    /// Routers that know more than the log, or something else: records were lost, and every further decision would be a guess.
    fn stops_on_contradiction(&mut self, now: EventTime) -> bool {
        // Acknowledgements may run ahead of what has been read here, never ahead of the topic.
        let behind = self.acks.routers().any(|router| router.ack.applied > self.table.last_version());
        if behind {
            if self.parts.plan_topic.ask_end(ASK_LIMIT).is_err() {
                return true;
            }
            let deadline = self.parts.clock.elapsed().saturating_add(Span::from_secs(2));
            while !self.parts.plan_topic.reached_asked_end() && self.parts.clock.elapsed() < deadline {
                self.follow_plan(now);
            }
            if !self.parts.plan_topic.reached_asked_end() {
                return true;
            }
        }
        if let Some(contradiction) = self.acks.contradiction(&self.table) {
            self.stop_for_loss(&contradiction.to_string());
        }
        self.contradicted
    }

    fn stop_for_loss(&mut self, detail: &str) {
        if !self.contradicted {
            self.contradicted = true;
            self.parts.events.plan_topic_lost(detail);
            self.parts.readiness.set(Latch::Control, false, detail);
        }
    }

    fn tell(&mut self, now: EventTime, published: &Published) {
        let Published { key, version, result, detail } = published;
        self.parts.events.control(now, (control_kind(key), *result), *version, about(key), detail);
        if self.parts.publisher.leadership().in_flight().is_none() {
            self.sent_at = None;
        }
    }

    /// A hold whose next record is prepare again: not every router acknowledged in time.
    fn tell_turned_back(&self, operation: &Operation) {
        let Operation::Put(record) = operation else { return };
        let key = PlanKey::new(&record.keyspace, &record.key.0);
        let Some(entry) = self.table.plan(&key) else { return };
        if entry.record.state == State::Hold && record.state == State::Prepare {
            let waiting_for = self.acks.stragglers(&key, entry.version).count();
            self.parts.events.hold_turned_back(self.parts.clock.now(), &key.keyspace, &key.key, waiting_for);
        }
    }

    fn tell_refusals(&self, now: EventTime, applied: &AckApplied) {
        let AckApplied::Router { id, nonce, .. } = applied else { return };
        let Some(router) = self.acks.routers().find(|router| router.ack.id == *id && router.ack.nonce == *nonce) else {
            return;
        };
        for refused in &router.ack.refusals {
            self.parts.events.router_refusal(now, id, &refused.keyspace, &refused.key.0, &refused.reason);
        }
    }

    fn lay_down(&self, now: EventTime, elapsed: Span) {
        let index: BTreeMap<&str, usize> =
            self.parts.keyspaces.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
        let mut led = Led {
            control: ControlView {
                leader: self.led_epoch.is_some(),
                version: self.table.last_version(),
                read_back_lag: self
                    .sent_at
                    .map_or(Span::ZERO, |sent| Span::from_millis(elapsed.as_millis().saturating_sub(sent.as_millis()))),
                unsent: self.unsent,
                frozen: self.parts.planner.budget().freeze,
            },
            routers: Vec::new(),
            plans: Vec::new(),
            policies: self.policies(&index),
            planned: vec![Vec::new(); self.parts.keyspaces.len()],
            in_force: vec![Vec::new(); self.parts.keyspaces.len()],
            plans_known: self.plans_known,
        };
        let mut waited_for = BTreeSet::new();
        for (key, entry) in self.table.plans() {
            let stragglers: Vec<_> = self.acks.stragglers(key, entry.version).map(|router| router.ack.nonce).collect();
            if let Some(&keyspace) = index.get(key.keyspace.as_str()) {
                led.plans.push((keyspace, PlanView::new(&entry.record, entry.version, stragglers.len())));
                let planned = Planned::of(&key.key, entry);
                led.planned[keyspace].push(Arc::clone(&planned.key));
                led.in_force[keyspace].push(planned);
            }
            waited_for.extend(stragglers);
        }
        led.routers = self
            .acks
            .routers()
            .map(|router| RouterView {
                id: router.ack.id.clone(),
                applied: router.ack.applied,
                ack_age: router.log_time.map_or(Span::ZERO, |time| now.since(time)),
                waiting: waited_for.contains(&router.ack.nonce),
            })
            .collect();
        self.parts.exchange.put_led(led);
    }

    fn policies(&self, index: &BTreeMap<&str, usize>) -> Vec<(usize, Arc<PolicyEntry>)> {
        let known = |(key, entry): (&PlanKey, &Arc<PolicyEntry>)| {
            index.get(key.keyspace.as_str()).map(|keyspace| (*keyspace, Arc::clone(entry)))
        };
        self.table.policies().filter_map(known).collect()
    }

    /// The end: no new heat is taken. What is wanted now is published, one record after the other, within the grace time; what
    /// follows from it (the next phase of a migration) is left to the next leader.
    fn finish(mut self) -> LeaderEnd {
        let Some(epoch) = self.led_epoch else { return LeaderEnd::default() };
        let deadline = self.parts.clock.elapsed().saturating_add(self.parts.grace);
        let mut wanted: BTreeSet<PlanTopicKey> = self.drafts(epoch).into_iter().map(|draft| draft.key).collect();
        let mut sent: Option<PlanTopicKey> = self.flying();
        wanted.extend(sent.clone());
        while !wanted.is_empty()
            && self.parts.publisher.leadership().leading() == Some(epoch)
            && self.parts.clock.elapsed() < deadline
        {
            if self.free_to_publish() {
                let drafts = self.drafts(epoch);
                // What was sent is there; what is not asked for any more was overtaken.
                wanted.retain(|key| sent.as_ref() != Some(key) && drafts.iter().any(|draft| draft.key == *key));
                let Some(draft) = drafts.into_iter().find(|draft| wanted.contains(&draft.key)) else { break };
                sent = Some(draft.key.clone());
                let elapsed = self.parts.clock.elapsed();
                self.submit(draft, elapsed);
            }
            self.turn();
        }
        if self.table.highest_epoch() > epoch {
            // Another process leads by the log's word: what is wanted is for that one to decide.
            wanted.clear();
        }
        LeaderEnd { unsent: wanted.iter().map(|key| escape(&key.to_bytes(), MAX_LOG_CHARS).to_string()).collect() }
    }

    /// What the planner asks for now.
    fn drafts(&mut self, epoch: u64) -> Vec<Draft> {
        let seq = self
            .parts
            .publisher
            .leadership()
            .in_flight()
            .map_or(self.table.last_version().seq, |flying| flying.version.seq);
        let next = self.parts.publisher.leadership().next_version().unwrap_or(Version { epoch, seq: seq + 1 });
        self.ask_planner(next).into_iter().map(draft_of).collect()
    }

    /// The key of a decision that is sent and not read back.
    fn flying(&self) -> Option<PlanTopicKey> {
        let flying = self.parts.publisher.leadership().in_flight()?;
        (flying.draft.purpose != Purpose::Heartbeat).then(|| flying.draft.key.clone())
    }
}

fn draft_of(operation: Operation) -> Draft {
    let (key, value) = match operation {
        Operation::Put(record) => {
            let key = PlanKey::new(&record.keyspace, &record.key.0);
            (PlanTopicKey::Plan(key), Some(record.encode()))
        }
        Operation::Remove(key) => (PlanTopicKey::Plan(key), None),
        Operation::Advise(advice) => (PlanTopicKey::Advice(advice.plan_key()), Some(advice.encode())),
        Operation::Unadvise(key) => (PlanTopicKey::Advice(key), None),
        Operation::SetPolicy(policy) => (PlanTopicKey::Policy(policy.plan_key()), Some(policy.encode())),
        Operation::RemovePolicy(key) => (PlanTopicKey::Policy(key), None),
    };
    Draft { key, value, purpose: Purpose::Decision }
}
