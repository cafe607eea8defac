//! The memory of the whole process stays under its limit, whatever the number of keys.
//!
//! The program is the one that `KEYHEAT_BIN` names (`tests/run` names the release build), else that of the tests. How many keys go
//! through Kafka is told by `KEYHEAT_MEMORY_KEYS`, 3,000,000 if it is not set. Linux tells the highest number of resident bytes
//! of a process; elsewhere these tests say so and pass as skipped.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "figures and what is skipped are told")]

#[allow(dead_code, unused_imports, reason = "each rung uses its part of what the rungs share")]
#[path = "../support/mod.rs"]
mod support;

#[allow(dead_code, reason = "each rung uses its part of what the rungs share")]
#[path = "../kafka/stage.rs"]
mod stage;

mod events;
mod replay;
mod resident;
mod run;
