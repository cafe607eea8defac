//! What can be seen from outside: metrics, health and a JSON API over HTTP, from loopback by default; what changes
//! something needs a token.

mod commands;
mod http;
mod process;
mod questions;
mod readiness;

pub use commands::{Answer, Command, Commands, Desk, InvalidToken, Order, Orders, Token, commands};
pub use http::{HttpLimits, HttpServer, HttpSettings, ServeError, Serving, exposition, serve};
pub use questions::{Asked, KeyKnown, Question, Questions, RouterKnown, questions};
pub use readiness::{LatchReport, Readiness};
