//! What librdkafka calls back: every callback becomes an event in a queue, and all are handled in one place.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, RebalanceProtocol};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::statistics::Statistics;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::util::Timeout;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use super::held::Held;
use super::rebalance::Assignment;
use super::record::SourceEvent;
use crate::telemetry::KafkaErrorClass;
use crate::units::{EventTime, Offset, Partition, Span};

/// How long one look-up of offsets may take; the poll thread waits for it, far below `max.poll.interval.ms`.
const LOOKUP_LIMIT: Duration = Duration::from_secs(5);
/// Events that callbacks may leave behind before the next poll; more are dropped, oldest first, and counted.
const MAX_PENDING: usize = 1024;

/// Where a partition is read from when this process has not read it before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    /// At the oldest record that is newer than now less this span.
    Back(Span),
    /// At the oldest record.
    Earliest,
    /// Behind the newest record.
    Latest,
}

/// State shared between callbacks and the poll loop; both run on one thread, so the lock is never contended.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) assignment: Assignment,
    pub(super) held: Held,
    pub(super) pending: VecDeque<SourceEvent<'static>>,
    pub(super) dropped_events: u64,
    pub(super) broker_up: bool,
    pub(super) partitions_known: usize,
    pub(super) now: EventTime,
}

impl Shared {
    pub(super) fn push(&mut self, event: SourceEvent<'static>) {
        if self.pending.len() >= MAX_PENDING {
            self.pending.pop_front();
            self.dropped_events += 1;
        }
        self.pending.push_back(event);
    }
}

pub(super) struct SourceContext {
    topic: String,
    start: StartAt,
    /// Only committed records are handed out: what lies behind the last stable one is not to be had yet.
    read_committed: bool,
    shared: Mutex<Shared>,
}

impl SourceContext {
    pub(super) fn new(topic: String, start: StartAt, read_committed: bool) -> Self {
        let shared = Shared {
            assignment: Assignment::default(),
            held: Held::default(),
            pending: VecDeque::new(),
            dropped_events: 0,
            broker_up: false,
            partitions_known: 0,
            now: EventTime::MIN,
        };
        Self { topic, start, read_committed, shared: Mutex::new(shared) }
    }

    pub(super) fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Offsets to begin at, by number; where the broker does not answer, the beginning: reading too much is safe.
    fn look_up(
        &self,
        consumer: &BaseConsumer<Self>,
        partitions: &[Partition],
        now: EventTime,
    ) -> Vec<(Partition, Offset)> {
        let by_time = match self.start {
            StartAt::Back(span) => self.look_up_times(consumer, partitions, now.saturating_sub(span)),
            StartAt::Earliest | StartAt::Latest => BTreeMap::new(),
        };
        let mut found = Vec::with_capacity(partitions.len());
        for &partition in partitions {
            if let Some(&offset) = by_time.get(&partition) {
                found.push((partition, offset));
                continue;
            }
            let offset = match consumer.fetch_watermarks(&self.topic, partition.0, LOOKUP_LIMIT) {
                Ok((low, high)) => Offset(if self.start == StartAt::Earliest { low } else { high }),
                Err(error) => {
                    self.shared().push(failure(&error, "look-up of offsets failed, reading from the beginning"));
                    Offset(0)
                }
            };
            found.push((partition, offset));
        }
        found
    }

    fn look_up_times(
        &self,
        consumer: &BaseConsumer<Self>,
        partitions: &[Partition],
        since: EventTime,
    ) -> BTreeMap<Partition, Offset> {
        let mut wanted = TopicPartitionList::new();
        for partition in partitions {
            // The offset field carries the time here; the list is made for this one call.
            if let Err(error) =
                wanted.add_partition_offset(&self.topic, partition.0, KafkaOffset::Offset(since.as_millis()))
            {
                self.shared().push(failure(&error, "look-up of offsets by time failed"));
            }
        }
        match consumer.offsets_for_times(wanted, LOOKUP_LIMIT) {
            Ok(list) => list
                .elements()
                .iter()
                .filter_map(|element| match element.offset() {
                    KafkaOffset::Offset(offset) => Some((Partition(element.partition()), Offset(offset))),
                    _ => None,
                })
                .collect(),
            Err(error) => {
                self.shared().push(failure(&error, "look-up of offsets by time failed"));
                BTreeMap::new()
            }
        }
    }

    fn assign(&self, consumer: &BaseConsumer<Self>, partitions: &[Partition]) {
        let now = self.shared().now;
        let found = self.look_up(consumer, partitions, now);
        let starts = self.shared().assignment.starts(&found);
        // A pause outlives the assignment: a partition that was paused when it was taken away would stay so for ever.
        let result = self.list(&starts).and_then(|list| {
            consumer.resume(&self.list(&starts)?)?;
            match consumer.rebalance_protocol() {
                RebalanceProtocol::Cooperative => consumer.incremental_assign(&list),
                _ => consumer.assign(&list),
            }
        });
        match result {
            Ok(()) => {
                let mut shared = self.shared();
                shared.assignment.handle_assigned(&starts);
                shared.push(SourceEvent::Assigned(starts));
            }
            Err(error) => self.shared().push(failure(&error, "assignment failed")),
        }
    }

    fn revoke(&self, consumer: &BaseConsumer<Self>, partitions: &[Partition], list: &TopicPartitionList) {
        let lost = consumer.assignment_lost();
        let uncommitted = self.shared().assignment.take_uncommitted();
        if !uncommitted.is_empty() && !lost {
            let committed = self.list(&uncommitted).and_then(|list| consumer.commit(&list, CommitMode::Sync));
            self.shared().push(SourceEvent::Committed(committed.map_err(|error| error.to_string())));
        }
        let result = match consumer.rebalance_protocol() {
            RebalanceProtocol::Cooperative => consumer.incremental_unassign(list),
            _ => consumer.unassign(),
        };
        let mut shared = self.shared();
        if let Err(error) = result {
            shared.push(failure(&error, "giving partitions up failed"));
        }
        shared.assignment.handle_revoked(partitions, lost);
        shared.held.forget(partitions);
        let partitions = partitions.to_vec();
        shared.push(if lost { SourceEvent::TakenAway(partitions) } else { SourceEvent::Revoked(partitions) });
    }

    pub(super) fn list(&self, offsets: &[(Partition, Offset)]) -> KafkaResult<TopicPartitionList> {
        let mut list = TopicPartitionList::with_capacity(offsets.len());
        for (partition, offset) in offsets {
            list.add_partition_offset(&self.topic, partition.0, KafkaOffset::Offset(offset.0))?;
        }
        Ok(list)
    }
}

/// A client's error as an event, with what was being done.
pub(super) fn failure(error: &KafkaError, doing: &str) -> SourceEvent<'static> {
    SourceEvent::Failed(KafkaErrorClass::from(error), format!("{doing}: {error}"))
}

impl ClientContext for SourceContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        // Errors come as events as well; librdkafka's own words help only who reads its source.
        tracing::debug!(level = ?level, facility, message, "librdkafka");
    }

    fn stats(&self, statistics: Statistics) {
        let mut shared = self.shared();
        shared.broker_up = statistics.brokers.values().any(|broker| broker.state == "UP");
        let Some(topic) = statistics.topics.get(&self.topic) else { return };
        shared.partitions_known = topic.partitions.keys().filter(|partition| **partition >= 0).count();
        for (partition, numbers) in &topic.partitions {
            let stable = if self.read_committed && numbers.ls_offset >= 0 { numbers.ls_offset } else { i64::MAX };
            if *partition >= 0 && numbers.hi_offset >= 0 {
                let (end, nothing_before) = (Offset(numbers.hi_offset.min(stable)), Offset(numbers.eof_offset));
                shared.assignment.handle_end(Partition(*partition), end, nothing_before);
            }
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        // The client tells of the end of a partition here as well; it is no error, and comes with the poll.
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::PartitionEOF) {
            return;
        }
        self.shared().push(failure(&error, reason));
    }
}

impl ConsumerContext for SourceContext {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, kind: RDKafkaRespErr, list: &mut TopicPartitionList) {
        let partitions: Vec<Partition> = list.elements().iter().map(|element| Partition(element.partition())).collect();
        if kind == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
            self.assign(consumer, &partitions);
        } else {
            self.revoke(consumer, &partitions, list);
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, _offsets: &TopicPartitionList) {
        self.shared().push(SourceEvent::Committed(result.map_err(|error| error.to_string())));
    }

    fn main_queue_min_poll_interval(&self) -> Timeout {
        // Statistics and errors wait at most this long behind an idle queue.
        Timeout::After(Duration::from_millis(100))
    }
}
