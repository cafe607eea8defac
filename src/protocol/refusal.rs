//! Why a record of the plan topic or the acks topic does not count: a closed list, each with the label of its counter.

use super::headers::InvalidHeaders;
use super::plan_record::{BUCKET_HASH, SCHEMA};
use super::record_key::InvalidRecordKey;
use super::version::Version;

/// Why a record does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefusedRecord {
    /// Its headers do not give a version.
    #[error(transparent)]
    Headers(#[from] InvalidHeaders),
    /// Its epoch is not the highest claimed one, or another claim of that epoch came first.
    #[error("version {0} is not of the leader at this place of the log: a superseded publisher")]
    NotLeader(Version),
    /// Its version does not grow.
    #[error("version {got} is not above {last}: sent twice, or late")]
    OldVersion {
        /// Of the record.
        got: Version,
        /// The last accepted one.
        last: Version,
    },
    /// It reached the log after its `not_after`.
    #[error("reached the log after its not_after {0}: void")]
    Void(String),
    /// The value is too long.
    #[error("value of {bytes} bytes, which should be at most {limit}")]
    TooLong {
        /// Of the value.
        bytes: usize,
        /// What is allowed.
        limit: usize,
    },
    /// The value has not the shape of its kind of record.
    #[error("value is not the JSON of its kind of record: {0}")]
    Json(String),
    /// A schema of another version of the protocol.
    #[error("unknown schema {0}, which should be {SCHEMA}; upgrade the reader")]
    Schema(u32),
    /// A bucket hash of another version of the protocol.
    #[error("unknown bucket hash '{0}', which should be {BUCKET_HASH}; upgrade the reader")]
    Hash(String),
    /// A state of another version of the protocol.
    #[error("unknown state '{0}'; upgrade the reader")]
    State(String),
    /// The record contradicts itself.
    #[error("record contradicts itself: {0}")]
    Shape(&'static str),
    /// Key of the record and key in the value differ.
    #[error("key of the record and key in its value differ")]
    KeyMismatch,
    /// The table is full.
    #[error("table full: {0} at most")]
    TooMany(usize),
    /// A claim is never removed.
    #[error("tombstone of a claim: claims are kept")]
    ClaimRemoved,
    /// An epoch that no reader could count on from.
    #[error("claim of epoch {0}, which should be from 1 to 2^53 - 1")]
    ClaimEpoch(u64),
}

impl RefusedRecord {
    /// Every label that [`RefusedRecord::label`] gives.
    pub const LABELS: [&'static str; 14] = [
        "headers",
        "not_leader",
        "old_version",
        "void",
        "too_long",
        "json",
        "schema",
        "hash",
        "state",
        "shape",
        "key_mismatch",
        "too_many",
        "claim_removed",
        "claim_epoch",
    ];

    /// The value of the label `reason`.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Headers(_) => "headers",
            Self::NotLeader(_) => "not_leader",
            Self::OldVersion { .. } => "old_version",
            Self::Void(_) => "void",
            Self::TooLong { .. } => "too_long",
            Self::Json(_) => "json",
            Self::Schema(_) => "schema",
            Self::Hash(_) => "hash",
            Self::State(_) => "state",
            Self::Shape(_) => "shape",
            Self::KeyMismatch => "key_mismatch",
            Self::TooMany(_) => "too_many",
            Self::ClaimRemoved => "claim_removed",
            Self::ClaimEpoch(_) => "claim_epoch",
        }
    }

    /// True when the leader sent it and this reader cannot obey it: the key keeps its last accepted record, and a router reports it.
    #[must_use]
    pub const fn is_unreadable(&self) -> bool {
        matches!(
            self,
            Self::TooLong { .. }
                | Self::Json(_)
                | Self::Schema(_)
                | Self::Hash(_)
                | Self::State(_)
                | Self::Shape(_)
                | Self::KeyMismatch
                | Self::TooMany(_)
        )
    }
}

/// A record that a reader passes over without a word to anyone: its key is of no form that this version knows.
pub type IgnoredRecord = InvalidRecordKey;
