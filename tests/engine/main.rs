//! The engine against an exact count of every event.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod bounds;
mod carrying;
mod cases;
mod exact;
mod floods;
mod judging;
mod laws;
mod merging;
mod operations;
mod oracle;
mod partitions;
mod random;
mod reloading;
mod requests;
mod rules;
mod streams;
mod wrapping;
