//! Records of one Kafka topic, read as a member of a consumer group.

use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::Message;

use super::held::{Kept, Steer};
use super::kafka_context::{SourceContext, StartAt, failure};
use super::rebalance::Place;
use super::record::{Answer, Reach, Record, SourceEvent};
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
        let read_committed = client.get("isolation.level").is_none_or(|level| level == "read_committed");
        let context = SourceContext::new(settings.topic.clone(), settings.start, read_committed);
        let consumer: BaseConsumer<SourceContext> = client.create_with_context(context)?;
        consumer.subscribe(&[&settings.topic])?;
        Ok(Self { consumer })
    }

    /// Waits for at most `timeout` for the first record, then hands out what is there, at most `limit` records, and the events
    /// between them, in order. The answer to what is no record does not matter.
    ///
    /// `now` is the clock: partitions that are assigned meanwhile begin in relation to it.
    pub fn poll(
        &mut self,
        now: EventTime,
        timeout: Duration,
        limit: usize,
        mut sink: impl FnMut(SourceEvent<'_>) -> Answer,
    ) {
        self.consumer.context().shared().now = now;
        let handed = self.hand_out(limit, &mut sink);
        let mut timeout = if handed > 0 { Duration::ZERO } else { timeout };
        for _ in handed..limit {
            if !self.poll_one(timeout, &mut sink) {
                return;
            }
            timeout = Duration::ZERO;
        }
    }

    /// One record or event of the broker, after the events that callbacks left; false when nothing came.
    fn poll_one(&self, timeout: Duration, sink: &mut impl FnMut(SourceEvent<'_>) -> Answer) -> bool {
        let polled = self.consumer.poll(timeout);
        let mut shared = self.consumer.context().shared();
        if !shared.pending.is_empty() {
            let pending = std::mem::take(&mut shared.pending);
            let dropped = std::mem::take(&mut shared.dropped_events);
            drop(shared);
            pending.into_iter().for_each(|event| tell(sink, event));
            if dropped > 0 {
                let text = format!("{dropped} events of the client were dropped: the loop did not poll for too long");
                tell(sink, SourceEvent::Failed(KafkaErrorClass::Other, text));
            }
            shared = self.consumer.context().shared();
        }
        match polled {
            None => return false,
            Some(Ok(message)) => {
                let (partition, offset) = (Partition(message.partition()), Offset(message.offset()));
                let kept = || Kept::Record(offset, message.payload().map(<[u8]>::to_vec));
                if shared.held.holds(partition) {
                    shared.held.keep(partition, kept());
                    drop(shared);
                    self.steer(sink);
                    return true;
                }
                let place = shared.assignment.handle_record(partition, offset);
                drop(shared);
                let record = Record { partition, offset, value: message.payload() };
                if self.hand(record, place, sink) == Answer::MustWait {
                    self.consumer.context().shared().held.put_back(partition, kept());
                }
            }
            Some(Err(KafkaError::PartitionEOF(partition))) if shared.held.holds(Partition(partition)) => {
                shared.held.keep(Partition(partition), Kept::End);
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                shared.assignment.handle_end_reached(Partition(partition));
            }
            Some(Err(error)) => {
                drop(shared);
                tell(sink, failure(&error, "reading"));
            }
        }
        true
    }

    /// Hands one record out, with what its place says.
    fn hand(&self, record: Record<'_>, place: Place, sink: &mut impl FnMut(SourceEvent<'_>) -> Answer) -> Answer {
        let Record { partition, offset, .. } = record;
        match place {
            Place::Next => {}
            Place::AfterGap(from) => tell(sink, SourceEvent::Lost(partition, from, offset)),
            Place::Rewound => tell(sink, SourceEvent::Rewound(partition, offset)),
            Place::Repeated | Place::NotAssigned => {
                tell(sink, SourceEvent::Repeated(partition, offset));
                return Answer::Taken;
            }
        }
        let answer = sink(SourceEvent::Record(record));
        if answer == Answer::MustWait {
            self.consumer.context().shared().assignment.handle_held(partition, offset);
        }
        answer
    }

    /// Hands out what was held back and may go on; gives the number of records.
    fn hand_out(&self, limit: usize, sink: &mut impl FnMut(SourceEvent<'_>) -> Answer) -> usize {
        let context = self.consumer.context();
        let mut handed = 0;
        while handed < limit {
            let mut shared = context.shared();
            let Some((partition, kept)) = shared.held.pop() else { break };
            let Kept::Record(offset, value) = &kept else {
                shared.assignment.handle_end_reached(partition);
                continue;
            };
            let place = shared.assignment.handle_record(partition, *offset);
            drop(shared);
            handed += 1;
            let record = Record { partition, offset: *offset, value: value.as_deref() };
            if self.hand(record, place, sink) == Answer::MustWait {
                context.shared().held.put_back(partition, kept);
            }
        }
        self.steer(sink);
        handed
    }

    /// Pauses and resumes partitions in the client, so that what is held back stays bounded. A pause drops what the client has queued of
    /// the partition; it goes on behind the last record that it gave out, which is kept here.
    fn steer(&self, sink: &mut impl FnMut(SourceEvent<'_>) -> Answer) {
        let context = self.consumer.context();
        loop {
            let Some(steer) = context.shared().held.steer() else { break };
            let (Steer::Pause(partition) | Steer::Resume(partition)) = steer;
            let told = context.list(&[(partition, Offset(0))]).and_then(|list| match steer {
                Steer::Pause(_) => self.consumer.pause(&list),
                Steer::Resume(_) => self.consumer.resume(&list),
            });
            if let Err(error) = told {
                return tell(sink, failure(&error, "pausing or resuming a partition, which is tried again"));
            }
            context.shared().held.steered(steer);
        }
        context.shared().held.tidy();
    }

    /// What was held back of a partition may be handed out, at the next poll.
    pub fn go_on(&mut self, partition: Partition) {
        self.consumer.context().shared().held.release(partition);
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

    /// How far every assigned partition is read.
    #[must_use]
    pub fn positions(&self) -> Vec<Reach> {
        let shared = self.consumer.context().shared();
        let reach =
            |(partition, position, end)| Reach { partition, position, end, waits: shared.held.holds(partition) };
        shared.assignment.positions().map(reach).collect()
    }

    /// Records known to be unread.
    #[must_use]
    pub fn lag(&self) -> u64 {
        self.consumer.context().shared().assignment.lag()
    }
}

/// Tells what is no record: there is nothing to answer.
fn tell(sink: &mut impl FnMut(SourceEvent<'_>) -> Answer, event: SourceEvent<'_>) {
    let (Answer::Taken | Answer::MustWait) = sink(event);
}
