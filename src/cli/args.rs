//! What every command takes: form of the data, colours, log.

use clap::{Args, Parser, ValueEnum};

use super::command::Command;
use super::exit::EXIT_CODES_HELP;

/// The command line as typed.
#[derive(Debug, Parser)]
#[command(name = "keyheat", version, about, after_help = EXIT_CODES_HELP, propagate_version = true)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    /// What every command takes.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Form of the data on standard output [default: what suits the command]
    #[arg(long, global = true, value_enum)]
    pub output: Option<OutputFormat>,
    /// Colours: auto asks the terminal and NO_COLOR
    #[arg(long, global = true, value_enum, default_value_t)]
    pub color: ColorChoice,
    /// No words on standard error but errors; data and log stay
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// What is logged: a level, or filters such as info,keyheat::plan=debug
    #[arg(long, global = true, value_name = "FILTER")]
    pub log_level: Option<String>,
    /// Form of log lines on standard error: auto is text on a terminal and json elsewhere
    #[arg(long, global = true, value_enum, default_value_t)]
    pub log_format: LogFormat,
}

/// Form of the data on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// One JSON object a line.
    Json,
    /// Lines and columns for people.
    Table,
}

/// Whether to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set or `TERM` is dumb.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// For people.
    Text,
    /// For machines: one object a line.
    Json,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_options_are_taken_before_and_after_the_command() {
        let before = Cli::try_parse_from(["keyheat", "--output", "json", "completions", "bash"]).unwrap();
        let after = Cli::try_parse_from(["keyheat", "completions", "bash", "--output", "json"]).unwrap();
        assert_eq!(before.global.output, Some(OutputFormat::Json));
        assert_eq!(after.global.output, Some(OutputFormat::Json));
    }
}
