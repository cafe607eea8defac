//! What travels on topics: records of version 1 as types and as bytes.
//!
//! Pure: bytes in, bytes out; the fence folds a log record by record.

mod ack;
mod ack_table;
mod advice;
pub mod client;
mod digest;
mod headers;
mod heartbeat;
mod layout;
mod log_record;
mod plan_record;
mod policy;
mod record_key;
mod refusal;
#[cfg(feature = "schema")]
pub mod schema;
mod table;
mod version;
mod wire;

pub use ack::{BackfillReport, MAX_ACK_BYTES, MAX_LISTED, RefusedKey, RetiredReport, RouterAck, WaitingKey};
pub use ack_table::{AckApplied, AckTable, Contradiction, MAX_REPORTS, MAX_ROUTERS, RouterEntry};
pub use advice::{Action, Advice};
pub use digest::Digest;
pub use headers::{InvalidHeaders, MAX_SOURCE_BYTES, MAX_VERSION_NUMBER, RecordHeaders, RecordKind};
pub use heartbeat::{Claim, Heartbeat};
pub use layout::{InvalidLayout, Layout, MAX_BUCKETS, bucket_hash, plan_seed};
pub use log_record::LogRecord;
pub use plan_record::{
    BUCKET_HASH, BUCKET_KEY, BucketField, Delete, Evidence, History, InvalidKeyField, KeyField, MAX_BUCKET_KEY_BYTES,
    MAX_READ_LAYOUTS, MAX_VALUE_BYTES, MigrationField, Outcome, PlanRecord, Prediction, SCHEMA, State, Writes,
};
pub use policy::{MAX_REASON_CHARS, Pin, Policy};
pub use record_key::{
    AckTopicKey, InvalidRecordKey, MAX_KEYSPACE_NAME_BYTES, MAX_ROUTER_ID_BYTES, PlanKey, PlanTopicKey,
    is_keyspace_name, is_router_id,
};
pub use refusal::{IgnoredRecord, RefusedRecord};
pub use table::{
    AdviceEntry, Applied, HeartbeatEntry, MAX_OTHERS, MAX_PLANS, MAX_TROUBLED, OtherEntry, PlanEntry, PlanTable,
    PolicyEntry, Shadow, Unreadable,
};
pub use version::{InvalidNonce, Nonce, Version};
