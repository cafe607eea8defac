//! The commands. A new one adds a line in the enum and one in [`Command::run`].

use clap::Subcommand;
use tracing_subscriber::filter::LevelFilter;

use super::check::CheckArgs;
use super::completions::CompletionsArgs;
use super::demo::DemoArgs;
use super::exit::{CommandError, ExitStatus};
use super::generate::GenerateArgs;
use super::man::ManArgs;
use super::output::Output;
use super::plan::PlanArgs;
use super::replay::ReplayArgs;
use super::route::RouteArgs;
use super::run::RunArgs;
use super::schema::SchemaArgs;
use super::topics::TopicsArgs;
use super::verify::VerifyArgs;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say all that is wrong with a configuration, or what it does and the memory it takes
    Check(CheckArgs),
    /// Print the completion script of a shell
    Completions(CompletionsArgs),
    /// Watch the whole loop close in this terminal: no Kafka, no configuration
    Demo(DemoArgs),
    /// Generate access events: to Kafka, a file or standard output
    Generate(GenerateArgs),
    /// Print the manual page
    Man(ManArgs),
    /// Ask the service for its plans, approve one, or stop everything new
    Plan(PlanArgs),
    /// Say what would have been decided over recorded events, without Kafka
    Replay(Box<ReplayArgs>),
    /// Obey the plan topic as a router, and say where requests go
    Route(RouteArgs),
    /// Run the service: read, count, detect, plan, publish
    ///
    /// SIGHUP reads the configuration again: other rules are in force at once, without a restart. A file with faults, or one that
    /// differs in anything but rules, changes nothing; the log says why.
    Run(RunArgs),
    /// Print the JSON Schema of a kind of record, or all of them as an AsyncAPI document
    Schema(SchemaArgs),
    /// Make or check the topics between the leader and the routers
    Topics(TopicsArgs),
    /// Say whether the plan topic and the acks topic obey the protocol, and who waits for whom
    Verify(VerifyArgs),
}

impl Command {
    /// Carries the command out.
    ///
    /// # Errors
    /// What stopped it; [`CommandError::exit_status`] says what the process ends with.
    pub fn run(self, output: &mut Output) -> Result<ExitStatus, CommandError> {
        match self {
            Self::Check(args) => super::check::run(&args, output),
            Self::Completions(args) => super::completions::run(&args, output),
            Self::Demo(args) => super::demo::run(&args, output),
            Self::Generate(args) => super::generate::run(&args, output),
            Self::Man(args) => super::man::run(&args, output),
            Self::Plan(args) => super::plan::run(&args, output),
            Self::Replay(args) => super::replay::run(&args, output),
            Self::Route(args) => super::route::run(&args, output),
            Self::Run(args) => super::run::run(&args, output),
            Self::Schema(args) => super::schema::run(&args, output),
            Self::Topics(args) => super::topics::run(&args, output),
            Self::Verify(args) => super::verify::run(&args, output),
        }
    }

    /// What is logged unless the command line says otherwise: services tell what they do, tools only what is wrong.
    #[must_use]
    pub const fn default_log_level(&self) -> LevelFilter {
        match self {
            // A log line would tear the screen; what goes wrong is part of the story.
            Self::Demo(_) => LevelFilter::OFF,
            Self::Route(_) | Self::Run(_) => LevelFilter::INFO,
            _ => LevelFilter::WARN,
        }
    }
}
