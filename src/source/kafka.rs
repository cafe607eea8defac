//! Records of one Kafka topic, read as a member of a consumer group.

use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::Message;

use super::kafka_context::{SourceContext, StartAt, failure};
use super::rebalance::Place;
use super::record::{Record, SourceEvent};
use crate::telemetry::KafkaErrorClass;
use crate::units::{EventTime, Offset, Partition};

/// What the source is told.
#[derive(Debug, Clone)]
pub struct KafkaSourceSettings {
    /// Connection, security and limits of the client.
    pub client: ClientConfig,
    /// The topic.
    pub topic: String,
    /// The consumer group.
    pub group: String,
    /// Where partitions are begun.
    pub start: StartAt,
}

/// A member of a consumer group. It must be polled from one thread, more often than `max.poll.interval.ms`.
pub struct KafkaSource {
    consumer: BaseConsumer<SourceContext>,
}

impl KafkaSource {
    /// Joins the group. Nothing is read before the first poll; a topic that does not exist yet is joined when it appears.
    ///
    /// # Errors
    /// The client's, when a setting is wrong.
    pub fn start(settings: &KafkaSourceSettings) -> KafkaResult<Self> {
        let mut client = settings.client.clone();
        client
            .set("group.id", &settings.group)
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("enable.partition.eof", "true")
            .set("partition.assignment.strategy", "cooperative-sticky")
            // Out of range means that retention took records: go on with the oldest, and the jump shows as a gap.
            .set("auto.offset.reset", "earliest")
            .set("statistics.interval.ms", "1000")
            .set("topic.metadata.refresh.interval.ms", "5000");
        let context = SourceContext::new(settings.topic.clone(), settings.start);
        let consumer: BaseConsumer<SourceContext> = client.create_with_context(context)?;
        consumer.subscribe(&[&settings.topic])?;
        Ok(Self { consumer })
    }

    /// Waits for at most `timeout` for the first record, then hands out what is there, at most `limit` records, and the events
    /// between them, in order.
    ///
    /// `now` is the clock: partitions that are assigned meanwhile begin in relation to it.
    pub fn poll(&mut self, now: EventTime, timeout: Duration, limit: usize, mut sink: impl FnMut(SourceEvent<'_>)) {
        let mut timeout = timeout;
        self.consumer.context().shared().now = now;
        for _ in 0..limit {
            if !self.poll_one(timeout, &mut sink) {
                return;
            }
            timeout = Duration::ZERO;
        }
    }

    /// One record or event of the broker, after the events that callbacks left; false when nothing came.
    fn poll_one(&mut self, timeout: Duration, sink: &mut impl FnMut(SourceEvent<'_>)) -> bool {
        let polled = self.consumer.poll(timeout);
        let mut shared = self.consumer.context().shared();
        if !shared.pending.is_empty() {
            let pending = std::mem::take(&mut shared.pending);
            let dropped = std::mem::take(&mut shared.dropped_events);
            drop(shared);
            pending.into_iter().for_each(&mut *sink);
            if dropped > 0 {
                let text = format!("{dropped} events of the client were dropped: the loop did not poll for too long");
                sink(SourceEvent::Failed(KafkaErrorClass::Other, text));
            }
            shared = self.consumer.context().shared();
        }
        match polled {
            None => return false,
            Some(Ok(message)) => {
                let (partition, offset) = (Partition(message.partition()), Offset(message.offset()));
                let place = shared.assignment.handle_record(partition, offset);
                drop(shared);
                match place {
                    Place::Next => {}
                    Place::AfterGap(from) => sink(SourceEvent::Lost(partition, from, offset)),
                    Place::Rewound => sink(SourceEvent::Rewound(partition, offset)),
                    Place::Repeated | Place::NotAssigned => {
                        sink(SourceEvent::Repeated(partition, offset));
                        return true;
                    }
                }
                sink(SourceEvent::Record(Record { partition, offset, value: message.payload() }));
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                shared.assignment.handle_end_reached(Partition(partition));
            }
            Some(Err(error)) => {
                drop(shared);
                sink(failure(&error, "reading"));
            }
        }
        true
    }

    /// Sends the positions reached to the group, without waiting for the answer; it comes as [`SourceEvent::Committed`].
    pub fn commit(&self) {
        self.commit_with(CommitMode::Async);
    }

    fn commit_with(&self, mode: CommitMode) {
        if self.consumer.assignment_lost() {
            return;
        }
        let context = self.consumer.context();
        let moved = context.shared().assignment.take_uncommitted();
        if moved.is_empty() {
            return;
        }
        let sent = context.list(&moved).and_then(|list| self.consumer.commit(&list, mode));
        if sent.is_err() || matches!(mode, CommitMode::Sync) {
            context.shared().push(SourceEvent::Committed(sent.map_err(|error| error.to_string())));
        }
    }

    /// Commits the last positions and leaves the group; says whether the commit was taken (true when there was none to send).
    #[must_use]
    pub fn close(self) -> bool {
        let broker_up = self.broker_up();
        if broker_up {
            self.commit_with(CommitMode::Sync);
        }
        let shared = self.consumer.context().shared();
        broker_up && !shared.pending.iter().any(|event| matches!(event, SourceEvent::Committed(Err(_))))
    }

    /// Whether some broker answered within the last second.
    #[must_use]
    pub fn broker_up(&self) -> bool {
        self.consumer.context().shared().broker_up
    }

    /// Partitions that the topic has, as far as is known.
    #[must_use]
    pub fn partitions_known(&self) -> usize {
        self.consumer.context().shared().partitions_known
    }

    /// Every assigned partition with its position and, where known, its end.
    #[must_use]
    pub fn positions(&self) -> Vec<(Partition, Offset, Option<Offset>)> {
        self.consumer.context().shared().assignment.positions().collect()
    }

    /// Records known to be unread.
    #[must_use]
    pub fn lag(&self) -> u64 {
        self.consumer.context().shared().assignment.lag()
    }
}
