//! What travels on topics: golden bytes of version 1, the fold of the plan topic under late, doubled and lost records, and compaction.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop at the first surprise as tests do")]

mod acks;
mod fold;
mod golden;
mod log;
mod traps;
