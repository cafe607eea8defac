//! The producer of control records: idempotent, one for them alone, no delivery report dropped.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::{DeliveryResult, Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext, PurgeConfig};

use crate::protocol::RecordHeaders;

/// What became of a record that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The broker has it. Whether it counts is known when it is read back.
    Appended,
    /// It may or may not be on the topic.
    Unknown(String),
}

/// Sends control records to one topic.
pub struct ControlProducer {
    producer: BaseProducer<Reports>,
    topic: String,
}

struct Reports {
    deliveries: Mutex<Vec<Delivery>>,
}

impl ClientContext for Reports {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _message: &str) {
        // Every failure that concerns a record comes as its delivery report.
    }

    fn error(&self, _error: KafkaError, _reason: &str) {
        // A fatal error is asked for after each poll; others end in a delivery report.
    }
}

impl ProducerContext for Reports {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): Self::DeliveryOpaque) {
        let delivery = match result {
            Ok(_) => Delivery::Appended,
            Err((error, _)) => Delivery::Unknown(error.to_string()),
        };
        self.deliveries.lock().unwrap_or_else(PoisonError::into_inner).push(delivery);
    }
}

/// The producer cannot go on: make a new one, and claim anew.
#[derive(Debug, thiserror::Error)]
#[error("the producer of '{topic}' met a fatal error: {reason}; it is made anew and a new epoch is claimed")]
pub struct ProducerLost {
    /// The topic.
    pub topic: String,
    /// The client's words.
    pub reason: String,
}

impl ControlProducer {
    /// A producer for `topic`.
    ///
    /// # Errors
    /// The client's, when a setting is wrong.
    pub fn new(client: &ClientConfig, topic: &str) -> KafkaResult<Self> {
        let mut client = client.clone();
        client
            .set("enable.idempotence", "true")
            .set("acks", "all")
            // A decision that could not be delivered by then is looked for on the topic and sent again.
            .set("message.timeout.ms", "5000")
            .set("linger.ms", "0")
            .set("queue.buffering.max.messages", "1000");
        let producer = client.create_with_context(Reports { deliveries: Mutex::new(Vec::new()) })?;
        Ok(Self { producer, topic: topic.to_owned() })
    }

    /// Hands a record to the client.
    ///
    /// # Errors
    /// The client's words, when it does not take the record (its queue is full, the record is too large).
    pub fn send(&self, key: &[u8], value: Option<&[u8]>, headers: &RecordHeaders) -> Result<(), String> {
        let mut list = OwnedHeaders::new();
        for (name, bytes) in headers.to_pairs() {
            list = list.insert(Header { key: name, value: Some(&bytes) });
        }
        let mut record = BaseRecord::to(&self.topic).partition(0).key(key).headers(list);
        if let Some(value) = value {
            record = record.payload(value);
        }
        self.producer.send(record).map_err(|(error, _)| error.to_string())
    }

    /// Serves delivery reports without waiting.
    ///
    /// # Errors
    /// [`ProducerLost`] after a fatal error of the client.
    pub fn poll(&self) -> Result<Vec<Delivery>, ProducerLost> {
        self.producer.poll(Duration::ZERO);
        if let Some((code, reason)) = self.producer.client().fatal_error() {
            return Err(ProducerLost { topic: self.topic.clone(), reason: format!("{code:?}: {reason}") });
        }
        let mut deliveries = self.producer.context().deliveries.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut *deliveries))
    }

    /// Drops what is queued or on its way; its outcome stays unknown.
    pub fn purge(&self) {
        self.producer.purge(PurgeConfig::default().queue().inflight());
    }
}
