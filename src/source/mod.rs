//! Where records come from.
//!
//! # The delivery contract
//!
//! - **Order.** Records of one partition come in the order of their offsets; between partitions there is no order.
//! - **Once.** Within one process an offset is handed out at most once (invariant I5): a record below the partition's
//!   position is counted as a repeat and not handed out. A partition that comes back after a rebalance goes on where it was.
//! - **Positions.** The position of a partition is the offset after the last record handed out. Positions are committed as a
//!   hint for lag monitors; they are never ahead of what was handed out.
//! - **Start.** Windows live in memory, so a new process begins at the offset of the oldest event that its longest window can
//!   hold, whatever was committed. What lies before could not change any verdict.
//! - **Waiting.** Who takes the records may answer that one must wait ([`Answer::MustWait`]). It and all that follow in its
//!   partition are held back until [`KafkaSource::go_on`], and come then in the same order, from this very record on. Neither position
//!   nor commit passes it; a partition that is taken away meanwhile goes on at it.
//! - **Gaps.** Offsets that retention, compaction or truncation took are counted as lost, never jumped over in silence.

mod client;
mod file;
mod held;
mod kafka;
mod kafka_context;
mod rebalance;
mod record;
mod watchdog;

pub use client::ClientError;
pub use file::{Line, Lines};
pub use kafka::{KafkaSource, KafkaSourceSettings};
pub use kafka_context::StartAt;
pub use rebalance::{Assignment, Place};
pub use record::{Answer, Reach, Record, SourceEvent};
pub use watchdog::{Progress, Watchdog};
