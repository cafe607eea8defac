//! `keyheat run`: the service, from start to exit status.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::config_file;
use super::exit::{CommandError, ExitStatus};
use super::output::Output;
use super::reload::Reload;
use super::signals::end_on_signals;
use crate::service::{Service, ServiceEnd};

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The configuration; see keyheat check
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Address of the HTTP side, instead of observe.listen
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
}

/// Runs until SIGTERM or SIGINT; a second one ends the process at once. SIGHUP reads the configuration again.
///
/// # Errors
/// [`CommandError::Usage`] for a configuration with faults; otherwise when a part cannot start or fails.
pub(super) fn run(args: &RunArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let loaded = config_file::load(&args.config, output)?;
    // Before anything is begun, since without a listener the signal ends the process.
    let mut reload = Reload::on_signal(args.config.clone(), loaded)?;
    let settings = reload.in_force().settings.clone();
    let listen = args.listen.unwrap_or(settings.observe.listen);
    let service = Service::start(&settings, Some(listen)).map_err(|error| CommandError::Failed(Box::new(error)))?;
    end_on_signals(service.stop_flag())?;
    if let Some(addr) = service.http_addr() {
        output.note(format_args!(
            "reading '{}'; http://{addr}/readyz says what is missing, if anything",
            settings.source.topic
        ));
    }
    match service.wait_with(|service| reload.look(service)) {
        ServiceEnd::Clean => Ok(ExitStatus::Success),
        ServiceEnd::Unsent(records) => {
            let list = records.join("\n  ");
            output.note(format_args!("stopped with {} wanted records unsent:\n  {list}", records.len()));
            Ok(ExitStatus::Unsent)
        }
        ServiceEnd::Stalled => {
            output.note("gave up: records wait, a broker answers and nothing moved; the log says which partition");
            Ok(ExitStatus::Stalled)
        }
        ServiceEnd::Failed(what) => Err(CommandError::failed(what)),
    }
}
