//! `/metrics`, `/livez`, `/readyz` and the JSON API under `/v1`.
//!
//! Read-only but for commands, which need a token; no cookies, no cross-origin access. Every request has limits of size and time, every connection a longest
//! life, and only names that are known may be in the Host header, so that a web page cannot reach it by DNS rebinding.

mod exposition;
mod guard;
mod json;
mod orders;
mod routes;
mod serve;
mod show;

pub use exposition::exposition;
pub use serve::{HttpLimits, HttpServer, HttpSettings, ServeError, Serving, serve};
