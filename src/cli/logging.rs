//! The log: structured lines on standard error, text on a terminal and JSON elsewhere.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::args::{ColorChoice, GlobalArgs, LogFormat};
use super::exit::CommandError;

/// Sets the process's log up. Called once, by `main`.
///
/// # Errors
/// [`CommandError::Usage`] when the filter does not read.
pub fn init(args: &GlobalArgs, default: LevelFilter) -> Result<(), CommandError> {
    let filter = filter(args.log_level.as_deref(), default)?;
    let terminal = io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(terminal && args.color != ColorChoice::Never || args.color == ColorChoice::Always);
    let set = if is_json(args.log_format, terminal) {
        builder.json().flatten_event(true).try_init()
    } else {
        builder.try_init()
    };
    set.map_err(CommandError::Failed)
}

const fn is_json(format: LogFormat, terminal: bool) -> bool {
    match format {
        LogFormat::Auto => !terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    }
}

fn filter(text: Option<&str>, default: LevelFilter) -> Result<EnvFilter, CommandError> {
    let builder = EnvFilter::builder().with_default_directive(default.into());
    builder.parse(text.unwrap_or_default()).map_err(|error| {
        CommandError::Usage(format!(
            "invalid log filter '{}' ({error}), which should be a level (error, warn, info, debug, trace, off) or filters \
             such as info,keyheat::plan=debug",
            text.unwrap_or_default()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read_and_wrong_ones_name_the_rule() {
        assert_eq!(filter(None, LevelFilter::WARN).unwrap().to_string(), "warn");
        assert_eq!(
            filter(Some("info,keyheat::plan=debug"), LevelFilter::WARN).unwrap().to_string(),
            "keyheat::plan=debug,info"
        );
        let refused = filter(Some("keyheat=loud"), LevelFilter::WARN).unwrap_err();
        assert_eq!(refused.exit_status(), super::super::ExitStatus::Usage);
        assert!(refused.to_string().contains("keyheat=loud"));
    }

    #[test]
    fn json_where_no_person_looks() {
        assert!(is_json(LogFormat::Auto, false));
        assert!(!is_json(LogFormat::Auto, true));
        assert!(is_json(LogFormat::Json, true));
        assert!(!is_json(LogFormat::Text, false));
    }
}
