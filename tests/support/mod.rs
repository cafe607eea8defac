//! What the rungs against real servers share. A rung includes it with `#[path = "../support/mod.rs"] mod support;`.

pub(crate) mod dashboard;
pub(crate) mod exposition;
mod kafka;
mod kcat;
pub(crate) mod process;
mod prometheus;
mod record;
mod server;
mod wait;

pub(crate) use kafka::Kafka;
pub(crate) use prometheus::{Prometheus, Series};
pub(crate) use record::Record;
pub(crate) use server::Server;
pub(crate) use wait::{now, poll_until};
