//! The command line: one file a command, and what all commands share.
//!
//! Data goes to standard output, words and logs to standard error. A command is a `pub struct XArgs` and a
//! `pub(super) fn run(&args, &mut Output) -> Result<ExitStatus, CommandError>` in its own file, and a line each in the enum
//! and in `run` of `command.rs`.

mod args;
mod check;
mod check_report;
mod command;
mod completions;
mod config_file;
mod demo;
mod exit;
mod forget;
mod generate;
mod keyspace;
pub mod logging;
mod man;
mod output;
mod plan;
mod reload;
mod replay;
mod route;
mod run;
mod schema;
mod show;
mod signals;
mod topics;
mod verify;
mod words;

pub use args::{Cli, ColorChoice, GlobalArgs, LogFormat, OutputFormat};
pub use command::Command;
pub use demo::DemoArgs;
pub use exit::{CommandError, ExitStatus};
pub use generate::{GenerateArgs, MapperName};
pub use keyspace::{Format, KeyspaceArgs};
pub use output::Output;
pub use replay::ReplayArgs;
pub use route::RouteArgs;
pub use run::RunArgs;
pub use schema::{SchemaArgs, SchemaName};
