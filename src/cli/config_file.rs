//! The configuration that a command is given: read, checked, its warnings said.

use std::fs;
use std::path::Path;

use super::exit::CommandError;
use super::output::Output;
use crate::config::{self, Faults, Loaded};

/// The text of a file.
///
/// # Errors
/// When it cannot be read, or is no UTF-8.
pub(super) fn read(path: &Path) -> Result<String, CommandError> {
    let failed = |source| CommandError::Io { what: format!("cannot read {}", path.display()), source };
    fs::read_to_string(path).map_err(failed)
}

/// Reads a configuration for a command that needs one.
///
/// # Errors
/// [`CommandError::Usage`] with every fault.
pub(super) fn load(path: &Path, output: &mut Output) -> Result<Loaded, CommandError> {
    let loaded = config::load(&read(path)?).map_err(|faults| {
        let lines: Vec<String> = fault_lines(path, &faults).collect();
        CommandError::Usage(format!(
            "{} has {} faults\n{}",
            path.display(),
            faults.list.len() + faults.cut,
            lines.join("\n")
        ))
    })?;
    for warning in &loaded.warnings {
        output.note(format_args!("{}:{warning}", path.display()));
    }
    Ok(loaded)
}

/// `file:line:column: key: what; rule; remedy`, which editors jump to.
pub(super) fn fault_lines(path: &Path, faults: &Faults) -> impl Iterator<Item = String> {
    let cut = (faults.cut > 0).then(|| format!("{}: {} more not listed; mend these first", path.display(), faults.cut));
    faults.list.iter().map(move |fault| format!("{}:{fault}", path.display())).chain(cut)
}
