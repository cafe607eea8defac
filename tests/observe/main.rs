//! The HTTP side as a scraper, a probe, a person and an attacker see it: over real sockets, without Kafka.
#![cfg(feature = "service")]
#![allow(clippy::unwrap_used, clippy::string_slice, reason = "a helper of a test fails the test")]

#[path = "../support/exposition.rs"]
mod exposition;

mod client;
mod limits;
mod metrics;
mod orders;
mod pages;
mod show;
