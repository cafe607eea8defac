//! What travels on topics: records of version 1 as types and as bytes.
//!
//! Pure: bytes in, bytes out; the fence folds a log record by record.

mod layout;
mod plan_record;
mod record_key;
mod version;

pub use layout::{InvalidLayout, Layout, MAX_BUCKETS, bucket_hash, plan_seed};
pub use plan_record::{
    BUCKET_HASH, BUCKET_KEY, BucketField, Delete, Evidence, History, InvalidKeyField, KeyField, MAX_VALUE_BYTES,
    MigrationField, Outcome, PlanRecord, Prediction, SCHEMA, State, Writes,
};
pub use record_key::{AckTopicKey, PlanKey, PlanTopicKey};
pub use version::{InvalidNonce, Nonce, Version};
