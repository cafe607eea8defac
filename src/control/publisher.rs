//! Carries decisions to the plan topic: one record in flight, sent until it is read back.

use rdkafka::config::ClientConfig;
use rdkafka::error::KafkaResult;

use super::leadership::{Draft, Leadership, Outgoing, Purpose, Send};
use super::producer::{ControlProducer, Delivery};
use crate::protocol::{Applied, Claim, LogRecord, Nonce, PlanTable, PlanTopicKey, RecordHeaders, RecordKind, Version};
use crate::telemetry::{ControlKind, ControlResult};
use crate::units::EventTime;

/// What happened to a record, for the log and the counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Its key.
    pub key: PlanTopicKey,
    /// Its version, where it has one.
    pub version: Version,
    /// What became of it.
    pub result: ControlResult,
    /// More about it; empty when all is well.
    pub detail: String,
}

/// The publisher's side of the plan topic.
pub struct Publisher {
    client: ClientConfig,
    topic: String,
    source: String,
    producer: ControlProducer,
    leadership: Leadership,
}

impl Publisher {
    /// A publisher to `topic` that calls itself `source` (a URI reference) in its records. It leads nothing yet.
    ///
    /// # Errors
    /// The client's, when a setting is wrong.
    pub fn new(client: ClientConfig, topic: &str, source: String, nonce: Nonce) -> KafkaResult<Self> {
        let producer = ControlProducer::new(&client, topic)?;
        Ok(Self { client, topic: topic.to_owned(), source, producer, leadership: Leadership::new(nonce) })
    }

    /// Who may publish.
    #[must_use]
    pub const fn leadership(&self) -> &Leadership {
        &self.leadership
    }

    /// Who may publish, to be told what happened to the group and the topic.
    pub const fn leadership_mut(&mut self) -> &mut Leadership {
        &mut self.leadership
    }

    /// Takes a record that should be on the topic; false when not leading or one is in flight.
    pub fn submit(&mut self, draft: Draft, now: EventTime) -> bool {
        self.leadership.submit(draft, now).is_some()
    }

    /// Sends what is due and takes delivery reports.
    pub fn drive(&mut self, now: EventTime) -> Vec<Published> {
        let mut told = Vec::new();
        if let Some(send) = self.leadership.poll_send(now) {
            let (key, version, sent) = self.send(&send);
            if let Err(detail) = sent {
                self.leadership.handle_send_failed(now);
                told.push(Published { key, version, result: ControlResult::Failed, detail });
            }
        }
        match self.producer.poll() {
            Ok(deliveries) => {
                for delivery in deliveries {
                    let Delivery::Unknown(detail) = delivery else { continue };
                    self.leadership.handle_send_failed(now);
                    if let Some((key, version)) = self.awaited() {
                        told.push(Published { key, version, result: ControlResult::Failed, detail });
                    }
                }
            }
            Err(lost) => told.extend(self.replace_producer(&lost.to_string())),
        }
        told
    }

    /// A record of the plan topic was folded into `table`: tells leadership, and what became of our own records.
    pub fn handle_applied(
        &mut self,
        record: &LogRecord,
        applied: &Applied,
        table: &PlanTable,
        now: EventTime,
    ) -> Option<Published> {
        match applied {
            Applied::Claim { epoch, nonce, won, repeated } => {
                let mine = *nonce == self.leadership.nonce();
                if *repeated {
                    self.leadership.handle_claim_repeated(*epoch, *nonce);
                } else {
                    self.leadership.handle_claim(*epoch, *nonce, *won, now);
                }
                let key = PlanTopicKey::Claim { epoch: *epoch, nonce: *nonce };
                let version = Version { epoch: *epoch, seq: 0 };
                let (result, detail) = match (*won, *repeated) {
                    (true, _) => (ControlResult::Published, ""),
                    (false, true) => (ControlResult::Refused, "the claim is there twice"),
                    (false, false) => (ControlResult::Refused, "another claim of the epoch was first"),
                };
                mine.then(|| Published { key, version, result, detail: detail.to_owned() })
            }
            Applied::Refused { key, version, reason } => {
                let version = (*version)?;
                let flying = self.leadership.in_flight().is_some_and(|flying| flying.version == version);
                let mine = record.parsed_headers().is_ok_and(|headers| headers.nonce == self.leadership.nonce());
                if flying && mine {
                    self.leadership.handle_refused(version);
                }
                Some(Published {
                    key: key.clone(),
                    version,
                    result: ControlResult::Refused,
                    detail: reason.to_string(),
                })
            }
            Applied::Ignored(_) => None,
            _ => {
                let version = table.last_version();
                let mine = self.leadership.in_flight().filter(|flying| flying.version == version).cloned();
                self.leadership.handle_accepted(version, now);
                mine.map(|flying| Published {
                    result: if flying.draft.purpose == Purpose::Answer {
                        ControlResult::Reasserted
                    } else {
                        ControlResult::Published
                    },
                    key: flying.draft.key,
                    version,
                    detail: String::new(),
                })
            }
        }
    }

    /// What is sent and not read back.
    fn awaited(&self) -> Option<(PlanTopicKey, Version)> {
        self.leadership.in_flight().map(|flying| (flying.draft.key.clone(), flying.version))
    }

    fn send(&self, send: &Send) -> (PlanTopicKey, Version, Result<(), String>) {
        let (key, value, version, kind, at) = match send {
            Send::Claim(epoch, at) => {
                let key = PlanTopicKey::Claim { epoch: *epoch, nonce: self.leadership.nonce() };
                let value = Claim::new(&self.source, &at.to_rfc3339()).encode();
                (key, Some(value), Version { epoch: *epoch, seq: 0 }, RecordKind::Claim, *at)
            }
            Send::Record(Outgoing { draft, version, decided_at }) => {
                let kind = record_kind(&draft.key, draft.value.is_some());
                (draft.key.clone(), draft.value.clone(), *version, kind, *decided_at)
            }
        };
        let bytes = key.to_bytes();
        let headers = RecordHeaders {
            version,
            nonce: self.leadership.nonce(),
            kind,
            source: self.source.clone(),
            time: at.to_rfc3339(),
            subject: bytes.clone(),
            has_value: value.is_some(),
        };
        let sent = self.producer.send(&bytes, value.as_deref(), &headers);
        (key, version, sent)
    }

    /// A fatal producer stays dead: a new one is made, and since the old one's last record may still arrive, a new epoch claimed.
    fn replace_producer(&mut self, detail: &str) -> Option<Published> {
        let (key, version) = self.awaited().unwrap_or((PlanTopicKey::Heartbeat, Version::default()));
        let detail = match ControlProducer::new(&self.client, &self.topic) {
            Ok(producer) => {
                self.producer.purge();
                self.producer = producer;
                detail.to_owned()
            }
            Err(error) => format!("{detail}; the new producer failed: {error}"),
        };
        self.leadership.handle_producer_lost();
        Some(Published { key, version, result: ControlResult::Failed, detail })
    }
}

/// The kind of a record by its key.
fn record_kind(key: &PlanTopicKey, has_value: bool) -> RecordKind {
    match (key, has_value) {
        (PlanTopicKey::Plan(_), true) => RecordKind::Plan,
        (PlanTopicKey::Plan(_), false) => RecordKind::PlanRemoved,
        (PlanTopicKey::Advice(_) | PlanTopicKey::ShardAdvice(_), true) => RecordKind::Advice,
        (PlanTopicKey::Advice(_) | PlanTopicKey::ShardAdvice(_), false) => RecordKind::AdviceRemoved,
        (PlanTopicKey::Policy(_), true) => RecordKind::Policy,
        (PlanTopicKey::Policy(_), false) => RecordKind::PolicyRemoved,
        (PlanTopicKey::Claim { .. }, _) => RecordKind::Claim,
        (PlanTopicKey::Heartbeat, _) => RecordKind::Heartbeat,
    }
}

/// The kind of a record as a label.
#[must_use]
pub const fn control_kind(key: &PlanTopicKey) -> ControlKind {
    match key {
        PlanTopicKey::Plan(_) => ControlKind::Plan,
        PlanTopicKey::Advice(_) | PlanTopicKey::ShardAdvice(_) => ControlKind::Advice,
        PlanTopicKey::Policy(_) => ControlKind::Policy,
        PlanTopicKey::Claim { .. } => ControlKind::Claim,
        PlanTopicKey::Heartbeat => ControlKind::Heartbeat,
    }
}

/// The keyspace and key that a record is about; none for claims and heartbeats.
#[must_use]
pub fn about(key: &PlanTopicKey) -> Option<(&str, &[u8])> {
    match key {
        PlanTopicKey::Plan(key)
        | PlanTopicKey::Advice(key)
        | PlanTopicKey::ShardAdvice(key)
        | PlanTopicKey::Policy(key) => Some((&key.keyspace, &key.key)),
        PlanTopicKey::Claim { .. } | PlanTopicKey::Heartbeat => None,
    }
}
