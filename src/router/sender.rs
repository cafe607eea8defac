//! The producer of records on the plan topic and the acks topic: idempotent, no delivery report dropped. Routers and leaders use it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext, PurgeConfig};

use crate::protocol::client::PRODUCER_PROPERTIES;

/// A producer that is asked for what became of its records.
pub(crate) struct Sender {
    producer: BaseProducer<Reports>,
}

/// What became of records since the last poll.
pub(crate) struct Reported {
    /// One a record, in the order in which they ended. A failure is an unknown outcome: the record may be on the topic all the same.
    pub(crate) outcomes: Vec<Result<(), String>>,
    /// The client's words when it cannot go on: an idempotent producer stays dead after a fatal error and has to be made anew.
    pub(crate) fatal: Option<String>,
}

struct Reports {
    outcomes: Mutex<Vec<Result<(), String>>>,
}

impl ClientContext for Reports {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _message: &str) {
        // Every failure that concerns a record comes as its delivery report.
    }

    fn error(&self, _error: KafkaError, _reason: &str) {
        // A fatal error is asked for with each poll; others end in a delivery report.
    }
}

impl ProducerContext for Reports {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): Self::DeliveryOpaque) {
        let outcome = result.as_ref().map(|_| ()).map_err(|(error, _)| error.to_string());
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
    }
}

impl Sender {
    /// A producer for the cluster of `client`; what is set there wins over [`PRODUCER_PROPERTIES`].
    ///
    /// # Errors
    /// The client's, when a setting is wrong.
    pub(crate) fn new(client: &ClientConfig) -> KafkaResult<Self> {
        let mut client = client.clone();
        for (name, value) in PRODUCER_PROPERTIES {
            if client.get(name).is_none() {
                client.set(*name, *value);
            }
        }
        // What could not be delivered by then is looked for on the topic, or sent anew with the newest state.
        client.set("message.timeout.ms", "5000").set("topic.metadata.refresh.interval.ms", "5000");
        let producer = client.create_with_context(Reports { outcomes: Mutex::new(Vec::new()) })?;
        Ok(Self { producer })
    }

    /// Hands a record to the client.
    ///
    /// # Errors
    /// The client's words, when it does not take the record (its queue is full, the record is too large).
    pub(crate) fn send(&self, record: BaseRecord<'_, [u8], [u8]>) -> Result<(), String> {
        self.producer.send(record).map_err(|(error, _)| error.to_string())
    }

    /// Serves delivery reports for at most `timeout`.
    pub(crate) fn poll(&self, timeout: Duration) -> Reported {
        self.producer.poll(timeout);
        let mut outcomes = self.producer.context().outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        let fatal = self.producer.client().fatal_error().map(|(code, reason)| format!("{code:?}: {reason}"));
        Reported { outcomes: std::mem::take(&mut *outcomes), fatal }
    }

    /// Drops what is queued or on its way; its outcome stays unknown.
    pub(crate) fn purge(&self) {
        self.producer.purge(PurgeConfig::default().queue().inflight());
    }
}
