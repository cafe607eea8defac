//! Carries decisions to the plan topic: one record in flight, sent until it is read back.

use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::error::KafkaResult;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::BaseRecord;

use super::leadership::{Draft, Leadership, Outgoing, Purpose, Send};
use crate::protocol::{Applied, Claim, LogRecord, Nonce, PlanTable, PlanTopicKey, RecordHeaders, RecordKind, Version};
use crate::router::{Reported, Sender};
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
    sender: Sender,
    leadership: Leadership,
}

impl Publisher {
    /// A publisher to `topic` that calls itself `source` (a URI reference) in its records. It leads nothing yet.
    ///
    /// # Errors
    /// The client's, when a setting is wrong.
    pub fn new(client: ClientConfig, topic: &str, source: String, nonce: Nonce) -> KafkaResult<Self> {
        let sender = Sender::new(&client)?;
        Ok(Self { client, topic: topic.to_owned(), source, sender, leadership: Leadership::new(nonce) })
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
        let Reported { outcomes, fatal } = self.sender.poll(Duration::ZERO);
        for detail in outcomes.into_iter().filter_map(Result::err) {
            self.leadership.handle_send_failed(now);
            if let Some((key, version)) = self.awaited() {
                told.push(Published { key, version, result: ControlResult::Failed, detail });
            }
        }
        told.extend(fatal.map(|reason| self.replace_sender(&reason)));
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
        let nonce = record.parsed_headers().ok().map(|headers| headers.nonce);
        let answered = self.leadership.handle_applied(nonce, applied, table.last_version(), now);
        match applied {
            Applied::Claim { epoch, nonce, won, repeated } => {
                let key = PlanTopicKey::Claim { epoch: *epoch, nonce: *nonce };
                let version = Version { epoch: *epoch, seq: 0 };
                let (result, detail) = match (*won, *repeated) {
                    (true, _) => (ControlResult::Published, ""),
                    (false, true) => (ControlResult::Refused, "the claim is there twice"),
                    (false, false) => (ControlResult::Refused, "another claim of the epoch was first"),
                };
                let mine = *nonce == self.leadership.nonce();
                mine.then(|| Published { key, version, result, detail: detail.to_owned() })
            }
            Applied::Refused { key, version, reason } => Some(Published {
                key: key.clone(),
                version: (*version)?,
                result: ControlResult::Refused,
                detail: reason.to_string(),
            }),
            Applied::Ignored(_) => None,
            _ => answered.map(|flying| Published {
                result: if flying.draft.purpose == Purpose::Answer {
                    ControlResult::Reasserted
                } else {
                    ControlResult::Published
                },
                key: flying.draft.key,
                version: flying.version,
                detail: String::new(),
            }),
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
        let mut list = OwnedHeaders::new();
        for (name, bytes) in headers.to_pairs() {
            list = list.insert(Header { key: name, value: Some(&bytes) });
        }
        let mut record = BaseRecord::to(&self.topic).partition(0).key(bytes.as_slice()).headers(list);
        if let Some(value) = &value {
            record = record.payload(value.as_slice());
        }
        let sent = self.sender.send(record);
        (key, version, sent)
    }

    /// A new producer takes the place of a dead one; since the old one's last record may still arrive, a new epoch is claimed.
    fn replace_sender(&mut self, reason: &str) -> Published {
        let (key, version) = self.awaited().unwrap_or((PlanTopicKey::Heartbeat, Version::default()));
        let lost = format!("the producer met a fatal error: {reason}; it is made anew and a new epoch is claimed");
        let detail = match Sender::new(&self.client) {
            Ok(sender) => {
                self.sender.purge();
                self.sender = sender;
                lost
            }
            Err(error) => format!("{lost}; the new producer failed: {error}"),
        };
        self.leadership.handle_producer_lost();
        Published { key, version, result: ControlResult::Failed, detail }
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
