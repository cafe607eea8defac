//! The engine against an exact count of every event.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod bounds;
mod carrying;
mod cases;
mod exact;
mod floods;
mod merging;
mod oracle;
mod partitions;
mod random;
mod streams;
mod wrapping;
