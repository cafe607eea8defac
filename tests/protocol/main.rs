//! What travels on topics: golden bytes of version 1, the fold of the plan topic under late, doubled and lost records, and compaction;
//! the document and the schemas that say so, and a reader in another language.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop at the first surprise as tests do")]

mod acks;
#[cfg(all(feature = "schema", feature = "kafka"))]
mod document;
mod fold;
mod golden;
mod golden_log;
mod judge;
mod log;
mod mutate;
#[cfg(all(feature = "schema", feature = "kafka"))]
mod passages;
mod policies;
mod reader;
#[cfg(all(feature = "schema", feature = "kafka"))]
mod schemas;
mod survey;
mod traps;
