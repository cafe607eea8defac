//! A topic read from its beginning to where it ended when it was asked.

use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::error::KafkaError;

use crate::protocol::LogRecord;
use crate::router::{FollowError, TopicFollower};

/// The longest wait for one record.
const POLL_LIMIT: Duration = Duration::from_millis(50);

/// Why a topic was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A client cannot be made from these settings.
    #[error("kafka client: {0}; check kafka.librdkafka")]
    Client(#[from] KafkaError),
    /// The topic cannot be read.
    #[error(transparent)]
    Follow(#[from] FollowError),
    /// The cluster was too slow.
    #[error("'{topic}': not read to its end within {limit:?}; allow more time by --timeout")]
    NotInTime {
        /// The topic.
        topic: String,
        /// How long it was read.
        limit: Duration,
    },
}

/// Hands every record of `topic` to `take`, in log order. Waits at most `limit` in all for records that do not come.
///
/// # Errors
/// [`ReadError`]; records may have been handed over before.
pub fn read_whole(
    client: &ClientConfig,
    topic: &str,
    limit: Duration,
    mut take: impl FnMut(&LogRecord),
) -> Result<(), ReadError> {
    let mut follower = TopicFollower::start(client, topic)?;
    follower.ask_end(limit)?;
    for _ in 0..=limit.as_millis() / POLL_LIMIT.as_millis() {
        while let Some(record) = follower.poll(POLL_LIMIT) {
            take(&record?);
            // Others may write as fast as this reads.
            if follower.reached_asked_end() {
                return Ok(());
            }
        }
        if follower.reached_asked_end() {
            return Ok(());
        }
    }
    Err(ReadError::NotInTime { topic: topic.to_owned(), limit })
}
