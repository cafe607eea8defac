//! How commands that run until they are told to stop are told.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::exit::{CommandError, ExitStatus};
use crate::service::Stop;

/// SIGTERM or SIGINT sets the flag; a second one finds it set and ends the process.
pub(super) fn end_on_signals(stop: &Stop) -> Result<(), CommandError> {
    for signal in [SIGTERM, SIGINT] {
        flag::register_conditional_shutdown(signal, ExitStatus::Failed as i32, stop.flag())
            .and_then(|_| flag::register(signal, stop.flag()))
            .map_err(|source| CommandError::Io { what: "cannot listen for signals".to_owned(), source })?;
    }
    Ok(())
}
