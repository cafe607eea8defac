//! keyheat reads access-log events from Kafka, counts every key and every shard over sliding windows in bounded memory, says
//! which are hot and how sure it is, and walks routers safely through bucket splits over a compacted control topic.
//!
//! # The way of the data
//!
//! ```text
//! source --bytes--> input --AccessEvent--> engine --Verdict--> plan --Operation--> control --records--> router
//!                                                                ^                                        |
//!                                                                +--------------- acks -------------------+
//! ```
//!
//! One direction, one folder a stage, a named type between each two. A folder may use those above it in the list below.

pub mod units;

pub mod input;

pub mod engine;

pub mod protocol;

pub mod plan;

pub mod router;

pub mod telemetry;

pub mod config;

#[cfg(feature = "kafka")]
pub mod source;

#[cfg(feature = "kafka")]
pub mod control;

#[cfg(feature = "service")]
pub mod observe;

#[cfg(feature = "service")]
pub mod service;

#[cfg(feature = "service")]
pub mod simulate;

#[cfg(feature = "service")]
pub mod cli;
