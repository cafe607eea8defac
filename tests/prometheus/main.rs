//! Against a real Prometheus: what it makes of our metrics, rules and dashboards.

#[allow(dead_code, unused_imports, reason = "each rung uses its part of what the rungs share")]
#[path = "../support/mod.rs"]
mod support;

mod server;
