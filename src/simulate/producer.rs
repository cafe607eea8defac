//! Sends generated events to a topic and accounts for each of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};

/// A producer of access events: idempotent, so that each event is on the topic once whatever happens to the connection.
pub struct EventProducer {
    producer: BaseProducer<Reports>,
    topic: String,
}

/// What became of the events that were sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delivered {
    /// Events that a broker has confirmed.
    pub confirmed: u64,
    /// Events that were given up, or are still on their way.
    pub lost: u64,
    /// The first reason.
    pub reason: Option<String>,
}

#[derive(Default)]
struct Reports {
    sent: AtomicU64,
    confirmed: AtomicU64,
    lost: AtomicU64,
    reason: Mutex<Option<String>>,
}

impl Reports {
    fn keep_reason(&self, reason: impl FnOnce() -> String) {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(reason);
    }
}

impl ClientContext for Reports {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _message: &str) {
        // What concerns an event comes as its delivery report, what concerns the connection as an error.
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::warn!(%error, reason, "generator: Kafka client");
    }
}

impl ProducerContext for Reports {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): Self::DeliveryOpaque) {
        match result {
            Ok(_) => {
                self.confirmed.fetch_add(1, Ordering::Relaxed);
            }
            Err((error, _)) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                self.keep_reason(|| error.to_string());
            }
        }
    }
}

impl EventProducer {
    /// A producer for `topic`, on top of the connection's settings.
    ///
    /// # Errors
    /// The client's, when a setting is wrong.
    pub fn new(client: &ClientConfig, topic: &str) -> KafkaResult<Self> {
        let mut client = client.clone();
        client
            .set("enable.idempotence", "true")
            .set("acks", "all")
            .set("linger.ms", "5")
            .set("compression.type", "lz4")
            // As Java's producer does, so that a key is in the partition where any other client would put it.
            .set("partitioner", "murmur2_random");
        Ok(Self { producer: client.create_with_context(Reports::default())?, topic: topic.to_owned() })
    }

    /// Hands an event to the client; waits while its queue is full, as long as `go_on` says so.
    ///
    /// # Errors
    /// The client's, when it does not take the event.
    pub fn send(&self, key: &[u8], value: &[u8], go_on: impl Fn() -> bool) -> KafkaResult<()> {
        let mut record = BaseRecord::to(&self.topic).key(key).payload(value);
        loop {
            match self.producer.send(record) {
                Ok(()) => {
                    self.producer.context().sent.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) if go_on() => record = back,
                Err((error, _)) => return Err(error),
            }
            self.producer.poll(Duration::from_millis(20));
        }
    }

    /// Serves delivery reports without waiting; to be called often.
    pub fn poll(&self) {
        self.producer.poll(Duration::ZERO);
    }

    /// What has become of the events so far.
    #[must_use]
    pub fn delivered(&self) -> Delivered {
        let reports = self.producer.context();
        Delivered {
            confirmed: reports.confirmed.load(Ordering::Relaxed),
            lost: reports.lost.load(Ordering::Relaxed),
            reason: reports.reason.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Waits for at most `limit` until every event has its report; those without one count as lost.
    #[must_use]
    pub fn finish(self, limit: Duration) -> Delivered {
        let flushed = self.producer.flush(limit);
        if let Err(error) = flushed {
            self.producer.context().keep_reason(|| error.to_string());
        }
        let mut delivered = self.delivered();
        // The client's own count of what is under way has its notices in it as well.
        delivered.lost = self.producer.context().sent.load(Ordering::Relaxed).saturating_sub(delivered.confirmed);
        delivered
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::mocking::MockCluster;

    use super::*;

    #[test]
    fn every_event_is_confirmed_or_counted_as_lost() {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("access", 4, 1).unwrap();
        let mut client = ClientConfig::new();
        client.set("bootstrap.servers", cluster.bootstrap_servers());
        let producer = EventProducer::new(&client, "access").unwrap();
        for index in 0..500_u32 {
            producer.send(&index.to_be_bytes(), b"{}", || true).unwrap();
        }
        let delivered = producer.finish(Duration::from_secs(30));
        assert_eq!(delivered, Delivered { confirmed: 500, lost: 0, reason: None });

        client.set("bootstrap.servers", "127.0.0.1:1").set("message.timeout.ms", "100");
        let producer = EventProducer::new(&client, "access").unwrap();
        producer.send(b"key", b"{}", || true).unwrap();
        let delivered = producer.finish(Duration::from_secs(30));
        assert_eq!((delivered.confirmed, delivered.lost), (0, 1));
        assert!(delivered.reason.is_some());
    }
}
