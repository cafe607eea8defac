//! `keyheat schema NAME`: what records on the control topics look like, for programs that read or write them.

use clap::{Args, ValueEnum};

use super::exit::{CommandError, ExitStatus};
use super::output::Output;
use crate::config::ControlSettings;
use crate::control::asyncapi;
use crate::protocol::schema::documents;

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// The kind of record, or asyncapi for both topics in one document
    #[arg(value_enum)]
    pub name: SchemaName,
}

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaName {
    /// Advice on a key: plan topic.
    Advice,
    /// Both topics with their records, as an `AsyncAPI` 3 document.
    Asyncapi,
    /// An owner's report on a move: acks topic.
    Backfill,
    /// A publisher's claim: plan topic.
    Claim,
    /// The leader's heartbeat: plan topic.
    Heartbeat,
    /// The plan of a key: plan topic.
    Plan,
    /// What an operator has set for a key: plan topic.
    Policy,
    /// An owner's report on a layout that was left: acks topic.
    Retired,
    /// A router's acknowledgement: acks topic.
    Router,
}

/// Prints the document as JSON.
///
/// # Errors
/// When standard output cannot be written.
pub(super) fn run(args: &SchemaArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let name = args.name.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let document = documents().into_iter().find(|document| document.name == name).map(|document| document.schema);
    let document = document.unwrap_or_else(|| asyncapi(&ControlSettings::default()));
    output.data(format!("{document:#}\n").as_bytes())?;
    Ok(ExitStatus::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_document_of_its_own() {
        let mut printed: Vec<String> = SchemaName::value_variants()
            .iter()
            .map(|name| {
                let (mut output, written) = Output::captured(None);
                run(&SchemaArgs { name: *name }, &mut output).unwrap();
                written.data()
            })
            .collect();
        assert!(printed.iter().all(|text| serde_json::from_str::<serde_json::Value>(text).is_ok()));
        assert_eq!(printed.iter().filter(|text| text.contains("\"asyncapi\": \"3.0.0\"")).count(), 1);
        printed.sort();
        printed.dedup();
        assert_eq!(printed.len(), documents().len() + 1);
    }
}
