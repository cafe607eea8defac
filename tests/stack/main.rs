//! What is shipped beside the program: dashboards, rules, alerts, runbooks, compose file, image and unit. No Grafana and no
//! container engine is run; every name, port, path and label that one file takes from another is held against that other.
#![cfg(feature = "service")]
#![allow(clippy::unwrap_used, clippy::string_slice, reason = "a helper of a test fails the test")]

#[allow(dead_code, reason = "each rung uses its part of what the rungs share")]
#[path = "../support/dashboard.rs"]
mod dashboard;

mod alerts;
mod compose;
mod files;
mod grafana;
mod image;
mod page;
mod promql;
