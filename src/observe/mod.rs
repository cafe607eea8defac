//! What can be seen from outside: metrics, health and a JSON API over HTTP, from loopback by default and read-only.

mod http;
mod process;
mod readiness;

pub use http::{HttpLimits, HttpServer, HttpSettings, ServeError, Serving, exposition, serve};
pub use readiness::{LatchReport, Readiness};
