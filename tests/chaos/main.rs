//! A closed loop on a real Apache Kafka while its processes are killed, paused and restarted at random: whatever happens, a read sees
//! the last completed write.
//!
//! The store, the callers and the owner of the records are threads of the test; routers and detectors are processes. A router's guard
//! spans the call to the store: the router answers where a request goes and keeps the placement until the caller says that its
//! call is over.
//!
//! - `KEYHEAT_CHAOS_SEED`: faults and load anew as in a run that told this seed, as far as a machine's timing lets them.
//! - `KEYHEAT_CHAOS_SECS`: how long faults are made, 180 unless set.
//! - `KEYHEAT_CHAOS_BREAK`: a rule that routers do not keep, to see that the test finds it: `guard` (acknowledge without waiting for
//!   calls) or `old_layout` (reads look in the newest layout only).

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails; figures are told")]

#[allow(dead_code, unused_imports, reason = "each rung uses its part of what the rungs share")]
#[path = "../support/mod.rs"]
mod support;

#[allow(dead_code, reason = "each rung uses its part of what the rungs share")]
#[path = "../kafka/stage.rs"]
mod stage;

mod callers;
mod calls;
mod control;
mod faults;
mod link;
mod load;
mod owner;
mod records;
mod router;
mod run;
mod wire;
