//! Against a real Apache Kafka: what mock clusters do not show.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a test that cannot go on fails; counts are small")]

#[allow(dead_code, unused_imports, reason = "each rung uses its part of what the rungs share")]
#[path = "../support/mod.rs"]
mod support;

mod alignment;
mod approve;
mod broker;
mod control_log;
mod input;
mod mapper;
mod path;
mod pin;
mod reader;
mod reload;
mod stage;
mod stop;
mod topics;
mod verify;
