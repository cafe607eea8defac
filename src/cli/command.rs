//! The commands. A new one adds a line here in the enum and one in [`Command::run`].

use clap::Subcommand;
use tracing_subscriber::filter::LevelFilter;

use super::completions::CompletionsArgs;
use super::exit::{CommandError, ExitStatus};
use super::generate::GenerateArgs;
use super::man::ManArgs;
use super::output::Output;
use super::route::RouteArgs;
use super::run::RunArgs;
use super::{completions, generate, man, route, run};

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the completion script of a shell
    Completions(CompletionsArgs),
    /// Generate access events: to Kafka, a file or standard output
    Generate(GenerateArgs),
    /// Print the manual page
    Man(ManArgs),
    /// Obey the plan topic as a router, and say where requests go
    Route(RouteArgs),
    /// Run the service: read, count, detect, plan, publish
    Run(RunArgs),
}

impl Command {
    /// Carries the command out.
    ///
    /// # Errors
    /// What stopped it; [`CommandError::exit_status`] says what the process ends with.
    pub fn run(self, output: &mut Output) -> Result<ExitStatus, CommandError> {
        match self {
            Self::Completions(args) => completions::run(&args, output),
            Self::Generate(args) => generate::run(&args, output),
            Self::Man(args) => man::run(&args, output),
            Self::Route(args) => route::run(&args, output),
            Self::Run(args) => run::run(&args, output),
        }
    }

    /// What is logged unless the command line says otherwise: services tell what they do, tools only what is wrong.
    #[must_use]
    pub const fn default_log_level(&self) -> LevelFilter {
        match self {
            Self::Completions(_) | Self::Generate(_) | Self::Man(_) => LevelFilter::WARN,
            Self::Route(_) | Self::Run(_) => LevelFilter::INFO,
        }
    }
}
