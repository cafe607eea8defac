//! The tombstone that a dead router cannot write.

use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::producer::BaseRecord;

use super::whole::{ReadError, read_whole};
use crate::protocol::{AckTable, AckTopicKey};
use crate::router::Sender;

/// The longest wait for one delivery report.
const POLL_LIMIT: Duration = Duration::from_millis(50);

/// Why a router was not dropped.
#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    /// A client cannot be made from these settings.
    #[error("kafka client: {0}; check kafka.librdkafka")]
    Client(#[from] KafkaError),
    /// The acks topic cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// No router of this id is registered.
    #[error("no router '{id}' on '{topic}'; there are: {there_are}")]
    Unknown {
        /// The id.
        id: String,
        /// The acks topic.
        topic: String,
        /// The ids that are registered.
        there_are: String,
    },
    /// The cluster has not answered in time, or does not take the tombstone.
    #[error("'{topic}': {reason}; the tombstone may be there all the same: try again")]
    NotTaken {
        /// The acks topic.
        topic: String,
        /// What happened.
        reason: String,
    },
}

/// Drops every registration of router `id`: gates no longer wait for it. Only for one that is down and will not come back from its
/// snapshot. Gives the number of registrations that were dropped.
///
/// # Errors
/// [`ForgetError`]; a tombstone that was not taken in time may be on the topic all the same.
pub fn forget_router(
    consumer: &ClientConfig,
    producer: &ClientConfig,
    topic: &str,
    id: &str,
    limit: Duration,
) -> Result<usize, ForgetError> {
    let mut acks = AckTable::new();
    read_whole(consumer, topic, limit, |record| drop(acks.apply(record)))?;
    let keys: Vec<AckTopicKey> = acks
        .routers()
        .filter(|router| router.ack.id == id)
        .map(|router| AckTopicKey::Router { id: id.to_owned(), nonce: router.ack.nonce })
        .collect();
    if keys.is_empty() {
        let known: Vec<&str> = acks.routers().map(|router| router.ack.id.as_str()).collect();
        let there_are = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(ForgetError::Unknown { id: id.to_owned(), topic: topic.to_owned(), there_are });
    }
    let sender = Sender::new(producer)?;
    for key in &keys {
        let bytes = key.to_bytes();
        let sent = sender.send(BaseRecord::to(topic).partition(0).key(bytes.as_slice()));
        sent.and_then(|()| await_report(&sender, limit))
            .map_err(|reason| ForgetError::NotTaken { topic: topic.to_owned(), reason })?;
    }
    Ok(keys.len())
}

fn await_report(sender: &Sender, limit: Duration) -> Result<(), String> {
    for _ in 0..polls(limit) {
        let reported = sender.poll(POLL_LIMIT);
        if let Some(reason) = reported.fatal {
            return Err(reason);
        }
        if let Some(outcome) = reported.outcomes.into_iter().next() {
            return outcome;
        }
    }
    Err(format!("no word from the broker within {limit:?}"))
}

/// So many polls fill the time.
const fn polls(limit: Duration) -> u128 {
    limit.as_millis() / POLL_LIMIT.as_millis() + 1
}
