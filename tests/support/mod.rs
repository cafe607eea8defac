//! What the rungs against real servers share. A rung includes it with `#[path = "../support/mod.rs"] mod support;`.

pub(crate) mod exposition;
mod kafka;
mod kcat;
mod record;
mod wait;

pub(crate) use kafka::Kafka;
pub(crate) use record::Record;
pub(crate) use wait::poll_until;
