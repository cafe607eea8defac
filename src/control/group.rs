//! Membership in the group whose only partition is the plan topic's: its owner is the candidate for leadership.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rdkafka::TopicPartitionList;
use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult};

/// What happened to the ownership of the partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// It was assigned to this process.
    Assigned,
    /// It was taken away.
    Revoked,
}

/// A member of the leaders' group. It reads nothing through it.
pub struct LeaderGroup {
    consumer: BaseConsumer<GroupContext>,
    topic: String,
}

struct GroupContext {
    changes: Mutex<Vec<Ownership>>,
}

impl GroupContext {
    fn push(&self, change: Ownership) {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).push(change);
    }
}

impl ClientContext for GroupContext {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _message: &str) {
        // What matters of it comes as an error or as a change of ownership.
    }

    fn error(&self, _error: KafkaError, _reason: &str) {
        // The plan topic's follower sees the same broker and reports the same error.
    }
}

impl ConsumerContext for GroupContext {
    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(list) if owns_first(list) => {
                // Only the ownership is wanted: records are read by the follower, from the beginning. Where the pause fails,
                // records are fetched and thrown away by `poll`.
                drop(consumer.pause(list));
                self.push(Ownership::Assigned);
            }
            Rebalance::Revoke(list) if owns_first(list) => self.push(Ownership::Revoked),
            Rebalance::Error(_) => self.push(Ownership::Revoked),
            _ => {}
        }
    }
}

fn owns_first(list: &TopicPartitionList) -> bool {
    list.elements().iter().any(|element| element.partition() == 0)
}

impl LeaderGroup {
    /// Joins the group for `topic`.
    ///
    /// # Errors
    /// The client's, when a setting is wrong.
    pub fn join(client: &ClientConfig, topic: &str, group: &str) -> KafkaResult<Self> {
        let mut client = client.clone();
        client
            .set("group.id", group)
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "latest")
            .set("partition.assignment.strategy", "range")
            .set("topic.metadata.refresh.interval.ms", "5000");
        let consumer: BaseConsumer<GroupContext> =
            client.create_with_context(GroupContext { changes: Mutex::new(Vec::new()) })?;
        consumer.subscribe(&[topic])?;
        Ok(Self { consumer, topic: topic.to_owned() })
    }

    /// Serves the group's callbacks without waiting and returns what changed.
    pub fn poll(&self) -> Vec<Ownership> {
        // Errors of the group show as a lost ownership; a missing topic as none at all. The bound keeps a flood of errors from
        // holding up the caller.
        for _ in 0..100 {
            if self.consumer.poll(Duration::ZERO).is_none() {
                break;
            }
        }
        let mut changes = self.consumer.context().changes.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *changes)
    }

    /// Leaves and joins again, to get a new assignment if the group still sees this process as the owner.
    ///
    /// # Errors
    /// The client's.
    pub fn rejoin(&self) -> KafkaResult<()> {
        self.consumer.unsubscribe();
        self.consumer.subscribe(&[&self.topic])
    }
}
