//! The value of an `advice/…` record, version 1: what to do other than split.

use serde::{Deserialize, Serialize};

use super::plan_record::{Evidence, KeyField};
use super::record_key::PlanKey;
use super::refusal::RefusedRecord;
use super::wire;

/// Advice: a record, never a layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// Number of the schema: 1.
    #[cfg_attr(feature = "schema", schemars(extend("const" = super::SCHEMA)))]
    pub schema: u32,
    /// Name of the keyspace.
    pub keyspace: String,
    /// The key.
    #[serde(flatten)]
    pub key: KeyField,
    /// What to do.
    pub action: Action,
    /// Why, in one sentence, with the numbers.
    pub reason: String,
    /// The numbers behind it.
    pub evidence: Evidence,
    /// RFC 3339.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub decided_at: String,
}

/// What to do other than split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Mostly reads: cache or replicate.
    CacheOrReplicate,
    /// One caller or one request id makes the heat: limit it.
    Limit,
    /// Full overwrites of one object: coalesce.
    Coalesce,
    /// Even the most buckets are not enough: a shard of its own.
    Isolate,
}

impl Action {
    /// Every action.
    pub const ALL: [Self; 4] = [Self::CacheOrReplicate, Self::Limit, Self::Coalesce, Self::Isolate];

    /// The word in records and labels.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::CacheOrReplicate => "cache_or_replicate",
            Self::Limit => "limit",
            Self::Coalesce => "coalesce",
            Self::Isolate => "isolate",
        }
    }
}

impl Advice {
    /// Whose advice it is.
    #[must_use]
    pub fn plan_key(&self) -> PlanKey {
        PlanKey::new(&self.keyspace, &self.key.0)
    }

    /// The record's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        wire::to_json(self)
    }

    /// Reads the value of the record of `key`.
    ///
    /// # Errors
    /// [`RefusedRecord`] for a value that is too long, of another schema or shape, or of another key.
    pub fn decode(key: &PlanKey, value: &[u8]) -> Result<Self, RefusedRecord> {
        let advice: Self = wire::from_json(value)?;
        if advice.plan_key() == *key { Ok(advice) } else { Err(RefusedRecord::KeyMismatch) }
    }
}
