//! What the process ends with, and what a command fails with.

use std::error::Error;
use std::io;
use std::process::ExitCode;

/// Exit codes, part of the public contract: scripts branch on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ExitStatus {
    /// It did what was asked. A reader that closed the pipe early is not a failure.
    Success = 0,
    /// It failed: something could not be read, written or reached, a check found faults in the world, or the demo's loop did not
    /// close.
    Failed = 1,
    /// The command line or the configuration is wrong: nothing was begun.
    Usage = 2,
    /// The service stopped with wanted records unsent; they are listed on standard error.
    Unsent = 3,
    /// The service gave up: Kafka answers, records wait, and nothing has moved for `service.stall_timeout`.
    Stalled = 4,
}

/// The codes as `--help` and the manual show them.
pub(super) const EXIT_CODES_HELP: &str = "\
Exit codes:
  0  done (a reader that closed the pipe early is not a failure)
  1  failed: could not read, write or reach something, a check found faults, or the demo's loop did not close
  2  wrong command line or configuration; nothing was begun
  3  the service stopped with wanted records unsent; standard error lists them
  4  the service gave up: Kafka answers, records wait, and nothing moved for service.stall_timeout";

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status as u8)
    }
}

/// Why a command did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The command line or the configuration is wrong; the text names the value, the rule and the remedy.
    #[error("{0}")]
    Usage(String),
    /// Reading or writing failed; `what` says of what.
    #[error("{what}")]
    Io {
        /// What was read or written, e.g. `cannot read access.log`.
        what: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Anything else that stopped it.
    #[error(transparent)]
    Failed(Box<dyn Error + Send + Sync>),
}

impl CommandError {
    /// A failure of which `text` is all there is to say.
    #[must_use]
    pub fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into().into())
    }

    /// What the process ends with.
    #[must_use]
    pub fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Usage(_) => ExitStatus::Usage,
            Self::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe => ExitStatus::Success,
            Self::Io { .. } | Self::Failed(_) => ExitStatus::Failed,
        }
    }
}

/// Writing to standard output is the only I/O that needs no other words.
impl From<io::Error> for CommandError {
    fn from(source: io::Error) -> Self {
        Self::Io { what: "cannot write standard output".to_owned(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_pipe_is_success_and_other_io_is_not() {
        let broken = CommandError::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(broken.exit_status(), ExitStatus::Success);
        let full = CommandError::from(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(full.exit_status(), ExitStatus::Failed);
    }

    #[test]
    fn the_help_lists_every_code() {
        use ExitStatus::{Failed, Stalled, Success, Unsent, Usage};
        for (line, status) in EXIT_CODES_HELP.lines().skip(1).zip([Success, Failed, Usage, Unsent, Stalled]) {
            assert!(line.starts_with(&format!("  {}  ", status as u8)), "{line}");
        }
        assert_eq!(EXIT_CODES_HELP.lines().count(), 6);
    }
}
