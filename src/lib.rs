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
//! One direction, one folder a stage, a named type between each two. A folder may use those above it in the list of modules
//! below, never those below it. From [`units`] to [`config`] everything is pure (the parts of [`router`] behind the feature
//! `kafka` aside): no clock, no I/O, no log. Time is an argument, a decision is a value.
//!
//! # What always holds
//!
//! - An estimate is `{lower, upper}` with `lower <= true <= upper`; nothing hot is missed, nothing is wrongly confirmed
//!   ([`engine`]).
//! - The same version of a record is the same bytes; accepted versions only grow; a superseded publisher changes nothing
//!   ([`protocol`]).
//! - What was decided is on the topic or was superseded ([`plan`], `control`).
//! - An offset counts at most once (`source`).
//! - Every write goes where every read looks ([`router`]); a silent control topic changes nothing.
//! - Bad input is a named, counted refusal; every collection has a limit, and what it cuts is counted.
//!
//! `docs/design.md` has them all, numbered, with the reasons.
//!
//! # What is absent on purpose
//!
//! - **No state on disk** but a router's snapshot: windows are rebuilt from Kafka.
//! - **No exactly-once by transactions**: readers check versions themselves, whatever the log delivers.
//! - **No store drivers**: a plan names layouts and buckets; how a store is asked is its router's.
//! - **No sampling of events**: every event is counted; bounds come from the structure, not from luck.
//! - **No keys in metric labels** but the few hottest, cut, and only where the settings allow it.

pub mod units;

pub mod input;

pub mod protocol;

pub mod engine;

pub mod plan;

pub mod router;

pub mod analyze;

pub mod telemetry;

pub mod config;

#[cfg(feature = "service")]
pub mod source;

pub mod control;

#[cfg(feature = "service")]
pub mod observe;

#[cfg(feature = "service")]
pub mod service;

#[cfg(feature = "service")]
pub mod simulate;

#[cfg(feature = "service")]
pub mod cli;
