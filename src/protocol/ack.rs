//! Values of records on the acks topic, version 1: what routers and owners say.

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::plan_record::KeyField;
use super::record_key::PlanKey;
use super::refusal::RefusedRecord;
use super::version::{Nonce, Version};
use super::wire;

/// The longest value of a record on the acks topic, in bytes.
pub const MAX_ACK_BYTES: usize = 65_536;
/// The most waiting keys, and the most refused ones, that an acknowledgement lists.
pub const MAX_LISTED: usize = 200;

/// What a router says: which version its table has, and which keys still have guards that this version would place elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RouterAck {
    /// Number of the schema: 1.
    #[cfg_attr(feature = "schema", schemars(extend("const" = super::SCHEMA)))]
    pub schema: u32,
    /// The router's name.
    pub id: String,
    /// Made with its snapshot: two routers with one id are two members.
    pub nonce: Nonce,
    /// The newest version that its table has and its snapshot holds; `0.0` when it has just joined.
    pub applied: Version,
    /// Digest of its table at that version.
    pub digest: Digest,
    /// Keys that are not acknowledged yet: a guard is left that the key's record would place elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingKey>,
    /// True when more keys wait than are listed: then no key counts as acknowledged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_waiting: bool,
    /// Keys whose newest record it cannot obey.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<RefusedKey>,
    /// True when more keys are refused than are listed: then no key counts as acknowledged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_refused: bool,
    /// RFC 3339, by the router's clock.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub time: String,
    /// RFC 3339: until then a store call of unknown outcome may still land; absent when there is none. Informative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub unknown_until: Option<String>,
}

/// A key that a router has not acknowledged yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitingKey {
    /// Name of the keyspace.
    pub keyspace: String,
    /// The key.
    #[serde(flatten)]
    pub key: KeyField,
    /// Version of the record that it waits to acknowledge.
    pub version: Version,
}

/// A key whose record a router cannot obey.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RefusedKey {
    /// Name of the keyspace.
    pub keyspace: String,
    /// The key.
    #[serde(flatten)]
    pub key: KeyField,
    /// Version of the record that it refuses.
    pub version: Version,
    /// Label of the reason, e.g. `hash`.
    pub reason: String,
}

impl RouterAck {
    /// The record's value; lists that are too long are cut, and the cut is marked in the value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut ack = self.clone();
        let mut most = MAX_LISTED;
        loop {
            ack.more_waiting |= ack.waiting.len() > most;
            ack.more_refused |= ack.refusals.len() > most;
            ack.waiting.truncate(most);
            ack.refusals.truncate(most);
            let bytes = wire::to_json(&ack);
            if bytes.len() <= MAX_ACK_BYTES || most == 0 {
                return bytes;
            }
            most /= 2;
        }
    }

    /// Reads the value of the record of router `id` with `nonce`.
    ///
    /// # Errors
    /// [`RefusedRecord`] for a value that is too long, of another schema or shape, or of another router.
    pub fn decode(id: &str, nonce: Nonce, value: &[u8]) -> Result<Self, RefusedRecord> {
        let ack: Self = wire::from_json_within(value, MAX_ACK_BYTES)?;
        if ack.id == id && ack.nonce == nonce { Ok(ack) } else { Err(RefusedRecord::KeyMismatch) }
    }

    /// True when the router has acknowledged the record of `key` with this version: it has applied it, no guard is left that it
    /// would place elsewhere, and it did not refuse it.
    #[must_use]
    pub fn acknowledges(&self, key: &PlanKey, version: Version) -> bool {
        let is_key = |keyspace: &str, field: &KeyField| keyspace == key.keyspace && field.0 == key.key;
        self.applied >= version
            && !self.more_waiting
            && !self.more_refused
            && !self.waiting.iter().any(|waiting| is_key(&waiting.keyspace, &waiting.key))
            && !self.refusals.iter().any(|refused| is_key(&refused.keyspace, &refused.key))
    }

    /// The refusal of `key`, if the router refuses its record.
    #[must_use]
    pub fn refusal(&self, key: &PlanKey) -> Option<&RefusedKey> {
        self.refusals.iter().find(|refused| refused.keyspace == key.keyspace && refused.key.0 == key.key)
    }
}

/// What the owner says of the move of a key's records into a new layout. All its movers have ended before it says `done`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackfillReport {
    /// Number of the schema: 1.
    #[cfg_attr(feature = "schema", schemars(extend("const" = super::SCHEMA)))]
    pub schema: u32,
    /// Name of the keyspace.
    pub keyspace: String,
    /// The key.
    #[serde(flatten)]
    pub key: KeyField,
    /// Number of the layout that is entered.
    pub layout: u32,
    /// `migration.version` of the record that asked for the move.
    pub migration: Version,
    /// Ids of the old layout that have in the new one their copy, a newer record or a tombstone.
    pub moved: u64,
    /// Ids of the old layout.
    pub expected: u64,
    /// The owner's checksum over the ids and versions that it read.
    pub checksum_from: String,
    /// The same over what it found in the new layout afterwards.
    pub checksum_to: String,
    /// True once every mover has ended.
    pub done: bool,
    /// RFC 3339, by the owner's clock.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub time: String,
}

impl BackfillReport {
    /// The record's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        wire::to_json(self)
    }

    /// Reads the value of the record of `key` and `layout`.
    ///
    /// # Errors
    /// [`RefusedRecord`] for a value that is too long, of another schema or shape, or of another key or layout.
    pub fn decode(key: &PlanKey, layout: u32, value: &[u8]) -> Result<Self, RefusedRecord> {
        let report: Self = wire::from_json_within(value, MAX_ACK_BYTES)?;
        let same = report.keyspace == key.keyspace && report.key.0 == key.key && report.layout == layout;
        if same { Ok(report) } else { Err(RefusedRecord::KeyMismatch) }
    }

    /// True when the records of this very migration are proved to be in the new layout.
    #[must_use]
    pub fn proves(&self, migration: Version) -> bool {
        self.done
            && self.migration == migration
            && self.moved == self.expected
            && !self.checksum_from.is_empty()
            && self.checksum_from == self.checksum_to
    }
}

/// What the owner says of the layout that was left: how much is still in the places that the current layout does not share, and of
/// the purge of the current layout's tombstones. All its deleters have ended before it says `remaining` 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RetiredReport {
    /// Number of the schema: 1.
    #[cfg_attr(feature = "schema", schemars(extend("const" = super::SCHEMA)))]
    pub schema: u32,
    /// Name of the keyspace.
    pub keyspace: String,
    /// The key.
    #[serde(flatten)]
    pub key: KeyField,
    /// Number of the layout that was left.
    pub layout: u32,
    /// `migration.version` of the record that listed it under `retire`.
    pub migration: Version,
    /// Records and tombstones that are still to go.
    pub remaining: u64,
    /// RFC 3339, by the owner's clock.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub time: String,
}

impl RetiredReport {
    /// The record's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        wire::to_json(self)
    }

    /// Reads the value of the record of `key` and `layout`.
    ///
    /// # Errors
    /// [`RefusedRecord`] for a value that is too long, of another schema or shape, or of another key or layout.
    pub fn decode(key: &PlanKey, layout: u32, value: &[u8]) -> Result<Self, RefusedRecord> {
        let report: Self = wire::from_json_within(value, MAX_ACK_BYTES)?;
        let same = report.keyspace == key.keyspace && report.key.0 == key.key && report.layout == layout;
        if same { Ok(report) } else { Err(RefusedRecord::KeyMismatch) }
    }

    /// True when what this very migration left behind is gone.
    #[must_use]
    pub fn proves(&self, migration: Version) -> bool {
        self.remaining == 0 && self.migration == migration
    }
}
