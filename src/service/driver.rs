//! The loop of the input: poll, decode, count, tick, lay down what is hot. It waits for nothing but its source.

use std::sync::Arc;
use std::time::Duration;

use super::batch::Batch;
use super::clock::Clock;
use super::exchange::{Exchange, Heat};
use super::stop::Stop;
use super::view::view_of;
use crate::engine::{Change, Completeness, Condition, Engine, Progress as ReadProgress};
use crate::input::Decoder;
use crate::observe::Readiness;
use crate::plan::{Mapper, MapperCheck, MapperTrust};
use crate::source::{Answer, KafkaSource, Progress, Reach, SourceEvent, Watchdog};
use crate::telemetry::{Events, KafkaErrorClass, Latch, Rebalance, Telemetry};
use crate::units::{EventTime, Partition, Span};

/// Records that are handled before the engine is ticked and the numbers are handed on.
const BATCH_RECORDS: usize = 1024;
/// The longest wait for a record: deadlines and the stop flag are looked at as often.
const POLL_LIMIT: Duration = Duration::from_millis(20);
/// The loop comes round many times in so long: when the clock says otherwise, it was set, or the process stood still.
const ROUND_LIMIT: Span = Span::from_secs(2);
/// How often the engine is ticked when nothing asks for it earlier.
const TICK_EVERY: Span = Span::from_millis(100);
/// How often what is hot is laid down for the leader's loop.
const HEAT_EVERY: Span = Span::from_millis(200);
/// How often gauges and the API are given a new view.
const VIEW_EVERY: Span = Span::from_millis(500);
/// How often positions are committed.
const COMMIT_EVERY: Span = Span::from_secs(5);
/// How often the watchdog is given a pulse.
const WATCH_EVERY: Span = Span::from_secs(1);

/// What the driver works with.
pub(super) struct DriverParts {
    pub(super) clock: Clock,
    pub(super) stop: Stop,
    pub(super) source: KafkaSource,
    pub(super) topic: String,
    pub(super) decoder: Decoder,
    pub(super) engine: Engine,
    /// Names the configuration whose rules are in force.
    pub(super) config_hash: Arc<str>,
    /// Name and number of windows of each keyspace.
    pub(super) keyspaces: Vec<(String, usize)>,
    /// The declared mapper of each keyspace.
    pub(super) mappers: Vec<Option<Mapper>>,
    pub(super) stall_timeout: Span,
    pub(super) events: Arc<Events>,
    pub(super) readiness: Arc<Readiness>,
    pub(super) exchange: Arc<Exchange>,
}

/// How the driver ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DriverEnd {
    /// It was told to stop.
    Stopped,
    /// A partition has not moved for too long though a broker answers (I10).
    Stalled,
    /// The client cannot go on.
    Fatal,
}

/// The loop of the input.
pub(super) struct Driver {
    parts: DriverParts,
    telemetry: Arc<Telemetry>,
    watchdog: Watchdog,
    batch: Batch,
    timers: Timers,
    /// What the log was last told of each keyspace's mapper.
    trust: Vec<MapperTrust>,
    /// The clock at the last round.
    round_at: EventTime,
    /// Partitions that were lost with the session, until the next assignment.
    taken_away: Vec<Partition>,
    end: Option<DriverEnd>,
}

/// When each thing was last done, on the monotonic clock.
#[derive(Default)]
struct Timers {
    tick: Span,
    heat: Span,
    view: Span,
    commit: Span,
    watch: Span,
}

/// True when `every` has passed since `last`, which is then moved to `now`.
fn due(last: &mut Span, every: Span, now: Span) -> bool {
    let is_due = now.as_millis() >= last.as_millis() + every.as_millis();
    if is_due {
        *last = now;
    }
    is_due
}

/// A keyspace without a mapper has nothing to place by, and nothing to doubt.
fn trust_of(mapper: &Option<MapperCheck>) -> MapperTrust {
    mapper.as_ref().map_or_else(MapperTrust::default, MapperCheck::trust)
}

impl Driver {
    pub(super) fn new(mut parts: DriverParts) -> Self {
        let telemetry = Arc::clone(parts.events.telemetry());
        let watchdog = Watchdog::new(parts.stall_timeout);
        let batch = Batch::new(std::mem::take(&mut parts.mappers));
        let trust = vec![MapperTrust::default(); parts.keyspaces.len()];
        let round_at = parts.clock.now();
        let (timers, taken_away) = (Timers::default(), Vec::new());
        Self { parts, telemetry, watchdog, batch, timers, trust, round_at, taken_away, end: None }
    }

    /// Runs until told to stop, then commits and leaves the group.
    pub(super) fn run(mut self) -> DriverEnd {
        while self.end.is_none() && !self.parts.stop.is_set() {
            self.read_batch();
            self.change_rules();
            self.tick();
        }
        let end = self.end.unwrap_or(DriverEnd::Stopped);
        self.lay_down_heat();
        if !self.parts.source.close() {
            tracing::warn!("the last positions could not be committed; the next start does not need them");
        }
        end
    }

    fn read_batch(&mut self) {
        let begin_ns = self.parts.clock.elapsed_ns();
        let now = self.parts.clock.now();
        self.look_at_clock(now);
        self.read(now);
        let records = self.batch.flush(&self.telemetry, &self.parts.events, &mut self.parts.decoder, now);
        if records > 0 {
            let took_ns = self.parts.clock.elapsed_ns().saturating_sub(begin_ns);
            self.telemetry.observe_batch(records, Duration::from_nanos(took_ns));
        }
    }

    fn look_at_clock(&mut self, now: EventTime) {
        let before = std::mem::replace(&mut self.round_at, now);
        if now < before || now.since(before) > ROUND_LIMIT {
            tracing::warn!(%before, %now, "the clock was set, or this process stood still: silence is measured anew");
            self.parts.engine.handle_clock_set(now);
        }
    }

    fn read(&mut self, now: EventTime) {
        let DriverParts { source, decoder, engine, events, readiness, .. } = &mut self.parts;
        let (batch, end, taken_away) = (&mut self.batch, &mut self.end, &mut self.taken_away);
        source.poll(now, POLL_LIMIT, BATCH_RECORDS, |event| {
            match event {
                SourceEvent::Record(record) => return batch.take(record, decoder, engine, now),
                SourceEvent::Assigned(starts) => {
                    let partitions: Vec<_> = starts.iter().map(|(partition, _)| *partition).collect();
                    events.rebalance(Rebalance::Assigned, &partitions);
                    // What has not come back belongs to another member.
                    let gone = taken_away.drain(..).filter(|partition| !partitions.contains(partition));
                    gone.for_each(|partition| engine.handle_revoke(partition));
                    // Before anything more is counted: what they hold may be older than all the rest.
                    for (partition, position) in starts {
                        let progress = ReadProgress { partition, position, end: None, paused: false };
                        engine.handle_progress(progress, now);
                    }
                    readiness.set(Latch::Assigned, true, &format!("{} partitions came", partitions.len()));
                }
                SourceEvent::Revoked(partitions) => {
                    events.rebalance(Rebalance::Revoked, &partitions);
                    partitions.iter().for_each(|partition| engine.handle_revoke(*partition));
                }
                SourceEvent::TakenAway(partitions) => {
                    events.rebalance(Rebalance::Lost, &partitions);
                    // Until it is known whose they are they hold event time back: else an outage longer than the window would make their
                    // backlog too late.
                    partitions.iter().for_each(|partition| engine.handle_lost(*partition));
                    taken_away.extend(partitions);
                }
                SourceEvent::Rewound(partition, offset) => {
                    events.partition_rewound(partition, offset);
                    // What was counted belongs to a log that is gone: the partition is cold.
                    engine.handle_revoke(partition);
                }
                SourceEvent::Lost(partition, from, to) => events.offsets_lost(now, partition, from, to),
                SourceEvent::Repeated(partition, offset) => events.record_repeated(now, partition, offset),
                SourceEvent::Failed(class, text) => {
                    events.kafka_error(now, "input", class, &text);
                    if class == KafkaErrorClass::Fatal {
                        *end = Some(DriverEnd::Fatal);
                    }
                }
                SourceEvent::Committed(result) => events.commit(now, result.err().as_deref()),
            }
            Answer::Taken
        });
    }

    /// Between two batches: no event is judged by rules of two configurations.
    fn change_rules(&mut self) {
        let Some(new) = self.parts.exchange.rules() else { return };
        match self.parts.engine.set_all_rules(&new.keyspaces) {
            Ok(()) => {
                self.parts.config_hash = Arc::clone(&new.config_hash);
                self.tell_rules();
                // What was laid down was judged by the rules before.
                (self.timers.heat, self.timers.view) = (Span::ZERO, Span::ZERO);
            }
            Err(fixed) => self.parts.events.reload_refused(&[fixed.to_string()]),
        }
        self.parts.exchange.rules_done();
    }

    fn tell_rules(&self) {
        let names = self.parts.keyspaces.iter().map(|(name, _)| name.as_str());
        let complete_from =
            |index| self.parts.engine.status(index).windows.iter().filter_map(|w| w.complete_from).max();
        let in_force: Vec<_> = names.enumerate().map(|(index, name)| (name, complete_from(index))).collect();
        self.parts.events.reload_applied(&self.parts.config_hash, &in_force);
    }

    fn tick(&mut self) {
        let elapsed = self.parts.clock.elapsed();
        let now = self.parts.clock.now();
        let engine = &self.parts.engine;
        let asked = engine.is_holding_back() || engine.next_deadline().is_some_and(|deadline| deadline <= now);
        if asked || due(&mut self.timers.tick, TICK_EVERY, elapsed) {
            self.tick_engine(now);
        }
        let raised = self.tell_verdicts(now);
        if raised || due(&mut self.timers.heat, HEAT_EVERY, elapsed) {
            self.lay_down_heat();
        }
        if due(&mut self.timers.view, VIEW_EVERY, elapsed) {
            self.tell_mappers(now);
            self.publish_view(now);
        }
        if due(&mut self.timers.commit, COMMIT_EVERY, elapsed) {
            self.parts.source.commit();
        }
        if due(&mut self.timers.watch, WATCH_EVERY, elapsed) {
            self.watch(now);
        }
    }

    fn tick_engine(&mut self, now: EventTime) {
        let begin_ns = self.parts.clock.elapsed_ns();
        // Without a broker nobody knows where a partition ends: it is not idle, and event time does not run on by the clock.
        let broker_up = self.parts.source.broker_up();
        for Reach { partition, position, end, waits } in self.parts.source.positions() {
            let end = end.filter(|_| broker_up).map(|end| end.max(position));
            self.parts.engine.handle_progress(ReadProgress { partition, position, end, paused: waits }, now);
        }
        self.parts.engine.handle_partitions(self.parts.source.partitions_known());
        self.parts.engine.handle_tick(now);
        while let Some(partition) = self.parts.engine.poll_released() {
            self.parts.source.go_on(partition);
        }
        while let Some(partition) = self.parts.engine.poll_given_up() {
            self.parts.events.partition_given_up(now, partition);
        }
        let took_ns = self.parts.clock.elapsed_ns().saturating_sub(begin_ns);
        self.telemetry.observe_tick(Duration::from_nanos(took_ns));
    }

    /// Tells every verdict; true when something became hot.
    fn tell_verdicts(&mut self, now: EventTime) -> bool {
        let mut raised = false;
        while let Some(verdict) = self.parts.engine.poll_verdict() {
            raised |= verdict.change == Change::Hot;
            let keyspace = self.parts.keyspaces.get(verdict.keyspace).map_or("", |(name, _)| name.as_str());
            self.parts.events.verdict(now, keyspace, &verdict);
        }
        raised
    }

    fn lay_down_heat(&mut self) {
        let led = self.parts.exchange.led();
        for (keyspace, keys) in led.planned.iter().enumerate() {
            self.parts.engine.protect(keyspace, keys);
        }
        if led.plans_known {
            self.batch.set_plans(&led.in_force);
        }
        let engine = &self.parts.engine;
        let keyspaces = &self.parts.keyspaces;
        let longest =
            |(index, (_, windows)): (usize, &(String, usize))| engine.shard_loads(index, windows.saturating_sub(1));
        let positions = self.parts.source.positions();
        let heat = Heat {
            hot: (0..keyspaces.len()).flat_map(|keyspace| engine.hot_keys(keyspace)).collect(),
            shards: keyspaces.iter().enumerate().map(longest).collect(),
            mappers: self.batch.mappers().iter().map(trust_of).collect(),
            condition: engine.condition(),
            end_offsets: positions.iter().map(|reach| (reach.partition, reach.position)).collect(),
            config_hash: Arc::clone(&self.parts.config_hash),
        };
        self.parts.exchange.put_heat(heat);
    }

    fn tell_mappers(&mut self, now: EventTime) {
        for ((check, told), (name, _)) in self.batch.mappers().iter().zip(&mut self.trust).zip(&self.parts.keyspaces) {
            let trust = trust_of(check);
            if trust != std::mem::replace(told, trust) {
                let mismatch = check.as_ref().and_then(MapperCheck::share).unwrap_or_default();
                self.parts.events.mapper(now, name, trust, mismatch);
            }
        }
    }

    fn publish_view(&mut self, now: EventTime) {
        let heat = self.parts.exchange.heat();
        let led = self.parts.exchange.led();
        let condition = self.parts.engine.condition();
        self.show_condition(condition);
        let positions = self.parts.source.positions();
        let names: Vec<&str> = self.parts.keyspaces.iter().map(|(name, _)| name.as_str()).collect();
        let view = view_of(now, &self.parts.engine, &names, self.batch.mappers(), &heat, &led, &positions);
        self.telemetry.publish(view);
    }

    fn show_condition(&self, condition: Condition) {
        let Completeness { counted, exist } = condition.completeness;
        let detail = match condition.lag {
            Some(lag) if condition.catching_up => {
                format!("reading a backlog of {lag} records: event time is behind the clock")
            }
            None if condition.catching_up => "reading a backlog: event time is behind the clock".to_owned(),
            // With several instances that is how it is: ready, and nothing is planned.
            _ if condition.incomplete => {
                format!("incomplete, nothing is begun or withdrawn: {counted} of {exist} partitions are counted here")
            }
            _ => String::new(),
        };
        self.parts.readiness.set(Latch::CaughtUp, !condition.catching_up, &detail);
        let source = &self.parts.source;
        let detail = match (source.partitions_known(), source.broker_up()) {
            (0, true) => format!("topic '{}' does not exist, or has no partitions; create it", self.parts.topic),
            (0, false) => "no broker answers; check kafka.brokers and kafka.security".to_owned(),
            _ => String::new(),
        };
        self.parts.readiness.set(Latch::InputTopic, detail.is_empty(), &detail);
    }

    fn watch(&mut self, now: EventTime) {
        let broker_up = self.parts.source.broker_up();
        let positions = self.parts.source.positions();
        // One that waits for others stands still on purpose.
        let moving = positions.into_iter().filter(|reach| !reach.waits);
        let moving = moving.map(|reach| (reach.partition, reach.position, reach.end));
        match self.watchdog.handle(broker_up, moving, now) {
            Progress::Fine => self.parts.readiness.set(Latch::Progress, true, ""),
            Progress::Stalled(partition, span) => {
                let detail = format!("partition {} of '{}' has not moved for {span}", partition.0, self.parts.topic);
                self.parts.readiness.set(Latch::Progress, false, &detail);
                self.parts.events.stall(span, self.parts.source.lag());
            }
            Progress::Dead(_, span) => {
                self.parts.events.stall(span, self.parts.source.lag());
                self.end = Some(DriverEnd::Stalled);
            }
        }
    }
}
