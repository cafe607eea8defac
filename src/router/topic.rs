//! Follows the one partition of a compacted topic from its beginning: the plan topic and the acks topic, by routers and leaders.
//!
//! No group, no commits: every reader reads everything. The follower knows how to say "read to the end as it was when I asked",
//! which joining and leading rest on.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers, Message, Timestamp};
use rdkafka::util::Timeout;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use crate::protocol::LogRecord;
use crate::units::{EventTime, Offset};

/// The only partition of such a topic.
const PARTITION: i32 = 0;
/// Errors that callbacks may leave behind before the next poll.
const MAX_PENDING: usize = 256;
/// Polls without a record, short of the asked end, after which the follower looks whether anything is there at all.
const IDLE_POLLS_BEFORE_NUDGE: u32 = 3;

/// A reader of one compacted topic.
pub struct TopicFollower {
    consumer: BaseConsumer<FollowContext>,
    topic: String,
    /// The offset after the last record that was handed out.
    position: i64,
    /// The end as it was when asked for.
    asked_end: Option<i64>,
    nudge: Nudge,
}

/// The last offsets of a log may hold no record any more (compaction, aborted transactions): then the position stays below the
/// end for ever, and only the client's own word, after a seek, tells that nothing is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nudge {
    Idle(u32),
    Sought,
    NothingLeft,
}

/// Why a topic cannot be followed at the moment.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// It does not exist; it is followed as soon as it does.
    #[error("topic '{0}' does not exist; create it with 'keyheat topics create'")]
    Missing(String),
    /// The position lies outside of the log: records were lost, or the topic was made anew. Nothing is read until `restart`.
    #[error("topic '{0}' does not reach back to the position any more: its log was cut, or it was made anew")]
    OutOfRange(String),
    /// The client reports an error and goes on by itself.
    #[error("following topic '{topic}': {error}: {reason}")]
    Client {
        /// The topic.
        topic: String,
        /// The error.
        error: Box<KafkaError>,
        /// The client's words.
        reason: String,
    },
}

struct FollowContext {
    pending: Mutex<VecDeque<(KafkaError, String)>>,
}

impl ClientContext for FollowContext {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _message: &str) {
        // What matters of it comes as an error.
    }

    fn error(&self, error: KafkaError, reason: &str) {
        // The client tells of the end of the partition here as well; it is no error, and comes with the poll.
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::PartitionEOF) {
            return;
        }
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.len() >= MAX_PENDING {
            pending.pop_front();
        }
        pending.push_back((error, reason.to_owned()));
    }
}

impl ConsumerContext for FollowContext {
    fn main_queue_min_poll_interval(&self) -> Timeout {
        Timeout::After(Duration::from_millis(100))
    }
}

impl TopicFollower {
    /// Begins at the beginning of `topic`. A topic that does not exist yet is followed when it appears.
    ///
    /// # Errors
    /// The client's, when a setting is wrong.
    pub fn start(client: &ClientConfig, topic: &str) -> KafkaResult<Self> {
        let mut client = client.clone();
        client
            // The client insists on a name for a group; nothing is joined and nothing committed.
            .set("group.id", "keyheat-follower")
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("enable.partition.eof", "true")
            .set("auto.offset.reset", "error")
            .set("isolation.level", "read_committed")
            .set("check.crcs", "true")
            .set("fetch.queue.backoff.ms", "10")
            .set("fetch.wait.max.ms", "100")
            .set("topic.metadata.refresh.interval.ms", "5000")
            .set("allow.auto.create.topics", "false");
        let context = FollowContext { pending: Mutex::new(VecDeque::new()) };
        let consumer: BaseConsumer<FollowContext> = client.create_with_context(context)?;
        let mut follower =
            Self { consumer, topic: topic.to_owned(), position: 0, asked_end: None, nudge: Nudge::Idle(0) };
        follower.restart()?;
        Ok(follower)
    }

    /// Begins anew at the beginning.
    ///
    /// # Errors
    /// The client's.
    pub fn restart(&mut self) -> KafkaResult<()> {
        let mut list = TopicPartitionList::with_capacity(1);
        list.add_partition_offset(&self.topic, PARTITION, KafkaOffset::Beginning)?;
        self.consumer.assign(&list)?;
        self.position = 0;
        self.nudge = Nudge::Idle(0);
        Ok(())
    }

    /// The topic's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.topic
    }

    /// Waits for at most `timeout` for the next record or error.
    ///
    /// # Errors
    /// [`FollowError`]; the follower can be polled on after each.
    pub fn poll(&mut self, timeout: Duration) -> Option<Result<LogRecord, FollowError>> {
        let pending = self.consumer.context().pending.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        if let Some((error, reason)) = pending {
            return Some(Err(self.failure(error, reason)));
        }
        match self.consumer.poll(timeout) {
            None => {
                self.nudge_if_stuck();
                None
            }
            Some(Ok(message)) => {
                let record = log_record(&message);
                self.position = record.offset.0 + 1;
                self.nudge = Nudge::Idle(0);
                Some(Ok(record))
            }
            Some(Err(KafkaError::PartitionEOF(_))) => {
                if self.nudge == Nudge::Sought {
                    self.nudge = Nudge::NothingLeft;
                }
                None
            }
            Some(Err(error)) => Some(Err(self.failure(error, "reading".to_owned()))),
        }
    }

    /// Asks the broker where the topic ends now and remembers the answer for [`TopicFollower::reached_asked_end`].
    ///
    /// # Errors
    /// [`FollowError`] when the broker does not answer within `timeout`; the earlier question is forgotten then.
    pub fn ask_end(&mut self, timeout: Duration) -> Result<Offset, FollowError> {
        self.asked_end = None;
        self.nudge = Nudge::Idle(0);
        match self.consumer.fetch_watermarks(&self.topic, PARTITION, timeout) {
            Ok((_, high)) => {
                self.asked_end = Some(high);
                Ok(Offset(high))
            }
            Err(error) => Err(self.failure(error, "asking for the end".to_owned())),
        }
    }

    /// True when everything has been handed out that the topic held when [`TopicFollower::ask_end`] was last answered.
    #[must_use]
    pub fn reached_asked_end(&self) -> bool {
        self.asked_end.is_some_and(|end| self.position >= end || self.nudge == Nudge::NothingLeft)
    }

    /// The offset after the last record that was handed out.
    #[must_use]
    pub const fn position(&self) -> Offset {
        Offset(self.position)
    }

    /// Idle short of the asked end: a seek to the position makes the client ask again, and say when nothing is there.
    fn nudge_if_stuck(&mut self) {
        let Nudge::Idle(polls) = self.nudge else { return };
        if self.asked_end.is_none_or(|end| self.position >= end) {
            return;
        }
        self.nudge = Nudge::Idle(polls + 1);
        if polls + 1 >= IDLE_POLLS_BEFORE_NUDGE {
            let to = KafkaOffset::Offset(self.position);
            // A seek that fails is tried again after as many idle polls.
            let sought = self.consumer.seek(&self.topic, PARTITION, to, Duration::from_millis(500)).is_ok();
            self.nudge = if sought { Nudge::Sought } else { Nudge::Idle(0) };
        }
    }

    fn failure(&self, error: KafkaError, reason: String) -> FollowError {
        match error.rdkafka_error_code() {
            Some(
                RDKafkaErrorCode::UnknownTopic
                | RDKafkaErrorCode::UnknownTopicOrPartition
                | RDKafkaErrorCode::UnknownPartition,
            ) => FollowError::Missing(self.topic.clone()),
            Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange) => {
                FollowError::OutOfRange(self.topic.clone())
            }
            _ => FollowError::Client { topic: self.topic.clone(), error: Box::new(error), reason },
        }
    }
}

fn log_record(message: &BorrowedMessage<'_>) -> LogRecord {
    let headers = message.headers().map_or_else(Vec::new, |headers| {
        headers.iter().map(|header| (header.key.to_owned(), header.value.unwrap_or_default().to_vec())).collect()
    });
    let log_time = match message.timestamp() {
        Timestamp::LogAppendTime(millis) => EventTime::from_millis(millis).ok(),
        Timestamp::CreateTime(_) | Timestamp::NotAvailable => None,
    };
    LogRecord {
        offset: Offset(message.offset()),
        key: message.key().unwrap_or_default().to_vec(),
        value: message.payload().map(<[u8]>::to_vec),
        headers,
        log_time,
    }
}
