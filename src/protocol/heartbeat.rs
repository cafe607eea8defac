//! The values of `heartbeat` and `claim/…` records, version 1.

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::plan_record::SCHEMA;
use super::refusal::RefusedRecord;
use super::version::Version;
use super::wire;

/// The leader is alive and its table is this: a fresh reader serves only when its own digest is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Heartbeat {
    /// Number of the schema: 1.
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    pub schema: u32,
    /// The newest accepted version when the heartbeat was written; its own is in the headers.
    pub newest: Version,
    /// RFC 3339, by the leader's clock.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub time: String,
    /// Number of plans in the table.
    pub plans: u64,
    /// Digest of the table.
    pub digest: Digest,
    /// Offset up to which the leader has read the acks topic; informative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acks_seen: Option<i64>,
}

impl Heartbeat {
    /// The record's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        wire::to_json(self)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// [`RefusedRecord`] for a value that is too long, of another schema or not of this shape.
    pub fn decode(value: &[u8]) -> Result<Self, RefusedRecord> {
        wire::from_json(value)
    }
}

/// A publisher takes the lead. Epoch and nonce are in the record's key; the value is for people.
///
/// A claim is sent once. When its outcome is unknown the publisher reads to the end of the topic and claims anew, with another nonce:
/// were the same claim in the log twice, compaction would keep the second, and a fresh reader would refuse what lies between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claim {
    /// Number of the schema: 1.
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    pub schema: u32,
    /// Which instance it is.
    pub instance: String,
    /// RFC 3339, by its clock.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub time: String,
}

impl Claim {
    /// The claim of `instance` at `time`.
    #[must_use]
    pub fn new(instance: &str, time: &str) -> Self {
        Self { schema: SCHEMA, instance: instance.to_owned(), time: time.to_owned() }
    }

    /// The record's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        wire::to_json(self)
    }
}
