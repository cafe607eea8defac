//! The configuration read again on SIGHUP, while the service runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGHUP;
use signal_hook::flag;

use super::config_file;
use super::exit::CommandError;
use crate::config::{self, Loaded};
use crate::service::Service;

/// What is in force, and whether another look at the file was asked for.
pub(super) struct Reload {
    path: PathBuf,
    in_force: Loaded,
    asked: Arc<AtomicBool>,
}

impl Reload {
    /// From now on SIGHUP asks for another look at `path`, of which `in_force` was read.
    ///
    /// # Errors
    /// When the signal cannot be listened for.
    pub(super) fn on_signal(path: PathBuf, in_force: Loaded) -> Result<Self, CommandError> {
        let asked = Arc::new(AtomicBool::new(false));
        flag::register(SIGHUP, Arc::clone(&asked))
            .map_err(|source| CommandError::Io { what: "cannot listen for SIGHUP".to_owned(), source })?;
        Ok(Self { path, in_force, asked })
    }

    /// The configuration in force.
    pub(super) const fn in_force(&self) -> &Loaded {
        &self.in_force
    }

    /// Does what was asked for, if anything: all of it or nothing. What happened is in the log and in a counter.
    pub(super) fn look(&mut self, service: &Service) {
        // One change after the other: each is told with the moment from which it is in force.
        if service.is_changing_rules() || !self.asked.swap(false, Ordering::SeqCst) {
            return;
        }
        let new = match self.read() {
            Ok(new) => new,
            Err(lines) => return service.events().reload_refused(&lines),
        };
        match self.in_force.has_other_rules(&new) {
            Err(fixed) => service.events().reload_refused(&[fixed.to_string()]),
            Ok(false) => service.events().reload_unchanged(),
            Ok(true) => {
                for warning in &new.warnings {
                    service.events().config_warning(&format!("{}:{warning}", self.path.display()));
                }
                service.change_rules(&new.settings);
                self.in_force = new;
            }
        }
    }

    /// The file as it is now, or what is wrong with it, line by line.
    fn read(&self) -> Result<Loaded, Vec<String>> {
        let text = config_file::read(&self.path).map_err(|error| vec![error.to_string()])?;
        config::load(&text).map_err(|faults| config_file::fault_lines(&self.path, &faults).collect())
    }
}
