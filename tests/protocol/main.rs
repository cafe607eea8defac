//! What travels on topics: golden bytes of version 1, the fold of the plan topic under late, doubled and lost records, and compaction.

mod acks;
mod fold;
mod golden;
mod log;
mod traps;
