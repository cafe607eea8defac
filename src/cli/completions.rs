//! `keyheat completions SHELL`: the completion script of a shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::args::Cli;
use super::exit::{CommandError, ExitStatus};
use super::output::Output;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Prints the script.
///
/// # Errors
/// When standard output cannot be written.
pub(super) fn run(args: &CompletionsArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    // The generator panics when its writer fails, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "keyheat", &mut script);
    output.data(&script)?;
    Ok(ExitStatus::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_gets_a_script_that_knows_the_commands() {
        for shell in [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh] {
            let (mut output, written) = Output::captured(None);
            run(&CompletionsArgs { shell }, &mut output).unwrap();
            assert!(written.data().contains("completions"), "{shell}");
        }
    }
}
