//! This router's record on the acks topic: the newest one is sent until the broker has it.

use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::error::KafkaResult;
use rdkafka::producer::BaseRecord;

use crate::protocol::{AckTopicKey, KeyField, Nonce, RefusedKey, RouterAck, SCHEMA, WaitingKey};
use crate::router::{AckState, Reported, Sender};
use crate::units::EventTime;

/// Sends one record's newest value; earlier ones are superseded, and an acknowledgement once true stays true, so that one that
/// arrives late does no harm.
pub(super) struct AckPublisher {
    client: ClientConfig,
    topic: String,
    key: Vec<u8>,
    sender: Sender,
    /// The newest value with its number, until the broker has it.
    wanted: Option<(u64, Option<Vec<u8>>)>,
    in_flight: Option<u64>,
    last_number: u64,
    delivered: u64,
    failed: u64,
    last_error: Option<String>,
}

impl AckPublisher {
    /// The record of router `id` with `nonce`.
    pub(super) fn new(client: &ClientConfig, topic: &str, id: &str, nonce: Nonce) -> KafkaResult<Self> {
        let key = AckTopicKey::Router { id: id.to_owned(), nonce }.to_bytes();
        Ok(Self {
            sender: Sender::new(client)?,
            client: client.clone(),
            topic: topic.to_owned(),
            key,
            wanted: None,
            in_flight: None,
            last_number: 0,
            delivered: 0,
            failed: 0,
            last_error: None,
        })
    }

    /// This value, none for the tombstone, should be on the topic; returns its number.
    pub(super) fn want(&mut self, value: Option<Vec<u8>>) -> u64 {
        self.last_number += 1;
        self.wanted = Some((self.last_number, value));
        self.last_number
    }

    /// The number of the newest value that the broker is known to have; 0: none.
    pub(super) const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// How many sends failed, and the last reason; each was made again.
    pub(super) fn failures(&self) -> (u64, Option<&str>) {
        (self.failed, self.last_error.as_deref())
    }

    /// Takes delivery reports and sends what is wanted, one record in flight.
    pub(super) fn drive(&mut self, timeout: Duration) {
        let Reported { outcomes, fatal } = self.sender.poll(timeout);
        for outcome in outcomes {
            self.reported(outcome);
        }
        if let Some(reason) = fatal {
            self.fail(reason);
            self.in_flight = None;
            match Sender::new(&self.client) {
                Ok(sender) => self.sender = sender,
                Err(error) => return self.fail(error.to_string()),
            }
        }
        self.send();
    }

    fn reported(&mut self, result: Result<(), String>) {
        let Some(number) = self.in_flight.take() else { return };
        match result {
            Ok(()) => {
                self.delivered = number;
                self.wanted.take_if(|(wanted, _)| *wanted <= number);
            }
            Err(reason) => self.fail(reason),
        }
    }

    fn send(&mut self) {
        let (None, Some((number, value))) = (self.in_flight, &self.wanted) else { return };
        let mut record = BaseRecord::to(&self.topic).partition(0).key(self.key.as_slice());
        if let Some(value) = value {
            record = record.payload(value.as_slice());
        }
        let (number, sent) = (*number, self.sender.send(record));
        match sent {
            Ok(()) => self.in_flight = Some(number),
            Err(reason) => self.fail(reason),
        }
    }

    fn fail(&mut self, reason: String) {
        self.failed += 1;
        self.last_error = Some(reason);
    }
}

/// The acknowledgement as it goes on the topic; until `unknown_until` a store call of unknown outcome may still land.
pub(super) fn router_ack(
    id: &str,
    nonce: Nonce,
    state: &AckState,
    unknown_until: Option<EventTime>,
    now: EventTime,
) -> RouterAck {
    let waiting = state.waiting.iter().map(|waiting| WaitingKey {
        keyspace: waiting.key.keyspace.clone(),
        key: KeyField(waiting.key.key.clone()),
        version: waiting.version,
    });
    let refusals = state.refused.iter().map(|refused| RefusedKey {
        keyspace: refused.key.keyspace.clone(),
        key: KeyField(refused.key.key.clone()),
        version: refused.version,
        reason: refused.reason.label().to_owned(),
    });
    RouterAck {
        schema: SCHEMA,
        id: id.to_owned(),
        nonce,
        applied: state.applied,
        digest: state.digest,
        waiting: waiting.collect(),
        more_waiting: false,
        refusals: refusals.collect(),
        more_refused: false,
        time: now.to_rfc3339(),
        unknown_until: unknown_until.map(EventTime::to_rfc3339),
    }
}
