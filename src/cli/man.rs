//! `keyheat man`: the manual page, of the program or of one command.

use clap::{Args, CommandFactory};
use clap_mangen::Man;

use super::args::Cli;
use super::exit::{CommandError, ExitStatus};
use super::output::Output;

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The command whose page is wanted; without it the program's
    pub command: Option<String>,
}

/// Prints the page in roff, for `man -l -`.
///
/// # Errors
/// When there is no such command, or standard output cannot be written.
pub(super) fn run(args: &ManArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let mut program = Cli::command();
    program.build();
    let page = match &args.command {
        None => program,
        Some(name) => program.find_subcommand(name).cloned().ok_or_else(|| {
            CommandError::Usage(format!("no command '{name}', which should be one that keyheat --help lists"))
        })?,
    };
    let mut roff = Vec::new();
    Man::new(page).render(&mut roff)?;
    output.data(&roff)?;
    Ok(ExitStatus::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_the_exit_codes_and_a_wrong_command_is_refused() {
        let (mut output, written) = Output::captured(None);
        run(&ManArgs { command: None }, &mut output).unwrap();
        assert!(written.data().contains("Exit codes"));
        let refused = run(&ManArgs { command: Some("fly".to_owned()) }, &mut output).unwrap_err();
        assert_eq!(refused.exit_status(), ExitStatus::Usage);
    }
}
