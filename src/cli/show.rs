//! `keyheat plan show`: everything that is known of one key, in words or as JSON.

use std::path::PathBuf;

use clap::Args;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde_json::Value;

use super::args::OutputFormat;
use super::exit::CommandError;
use super::output::Output;
use super::plan::{ServiceArgs, ask, token};
use crate::telemetry::escape;

/// What stands for itself in no part of a query.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The longest text of an answer that is shown on one line, in characters.
const MAX_SHOWN_CHARS: usize = 400;

/// Which key.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Where.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// The file with the token of observe.token_file: needed where observe.key_label is not "plain"
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The keyspace
    pub keyspace: String,
    /// The key, as it is in events
    pub key: String,
}

/// Asks and shows.
///
/// # Errors
/// When the service cannot be asked or refuses, or the output cannot be written.
pub(super) fn run(args: &ShowArgs, output: &mut Output) -> Result<(), CommandError> {
    let path = format!("/v1/plans/show?keyspace={}&key={}", encoded(&args.keyspace), encoded(&args.key));
    let token = args.token_file.as_deref().map(token).transpose()?;
    let answer = ask(&args.service, "GET", &path, token.as_deref(), String::new())?;
    if output.format_or(OutputFormat::Table) != OutputFormat::Table {
        output.json(&answer)?;
        return Ok(());
    }
    output.line(format_args!("{} {}", shown(&answer["keyspace"]), shown(&answer["key"])))?;
    plan(&answer, output)?;
    routers(&answer, output)?;
    let policy = &answer["policy"];
    if !policy.is_null() {
        output.line(format_args!("policy      {} ({})", ruled(&policy["record"]), shown(&policy["stands"])))?;
    }
    let advice = &answer["advice"]["record"];
    if !advice.is_null() {
        output.line(format_args!("advice      {}: {}", shown(&advice["action"]), shown(&advice["reason"])))?;
    }
    let hindrance = &answer["hindrance"];
    if !hindrance.is_null() {
        output.line(format_args!("hindrance   {}: {}", shown(&hindrance["reason"]), shown(&hindrance["text"])))?;
    } else if answer["leader"] != true {
        output.line("hindrance   not known here: another process leads")?;
    }
    Ok(())
}

fn plan(answer: &Value, output: &mut Output) -> Result<(), CommandError> {
    let (plan, record) = (&answer["plan"], &answer["plan"]["record"]);
    if record.is_null() {
        output.line("plan        none: the key is bare")?;
        return Ok(());
    }
    let reads = record["read"].as_array().into_iter().flatten().map(layout).collect::<Vec<_>>().join(", then ");
    output.line(format_args!(
        "plan        {} {}.{}, decided {}",
        shown(&record["state"]),
        plan["epoch"],
        plan["seq"],
        shown(&record["decided_at"])
    ))?;
    let migration = &record["migration"];
    output.line(format_args!("migration   {} to {}", layout(&migration["from"]), layout(&migration["to"])))?;
    output.line(format_args!("write       {}", layout(&record["write"])))?;
    output.line(format_args!("read        {reads}"))?;
    for part in ["evidence", "prediction", "outcome"] {
        if !record[part].is_null() {
            output.line(format_args!("{part:11} {}", shown(&record[part])))?;
        }
    }
    for (name, report) in [("moved", &answer["backfill"]), ("retired", &answer["retired"])] {
        if !report.is_null() {
            output.line(format_args!("{name:11} {}", shown(report)))?;
        }
    }
    Ok(())
}

fn routers(answer: &Value, output: &mut Output) -> Result<(), CommandError> {
    for router in answer["routers"].as_array().into_iter().flatten() {
        let word = match (&router["refusal"], router["acknowledged"] == true) {
            (Value::String(reason), _) => format!("refuses: {}", escape(reason.as_bytes(), MAX_SHOWN_CHARS)),
            (_, true) => "has acknowledged".to_owned(),
            (_, false) => format!("has not acknowledged; it has applied {}.{}", router["epoch"], router["seq"]),
        };
        output.line(format_args!("router      {} {word}", shown(&router["id"])))?;
    }
    Ok(())
}

/// A layout in words.
fn layout(layout: &Value) -> String {
    match (layout["buckets"].as_u64(), layout.is_null()) {
        (Some(buckets), _) => format!("{buckets} buckets from label {}", layout["first"].as_u64().unwrap_or(0)),
        (None, true) => "nowhere: writes wait".to_owned(),
        (None, false) => "the bare key".to_owned(),
    }
}

/// A pin or a block in words.
fn ruled(policy: &Value) -> String {
    let pin = &policy["pin"];
    let mut text = match pin["buckets"].as_u64() {
        Some(buckets) => format!("pinned to {buckets} buckets"),
        None => "blocked".to_owned(),
    };
    for (name, time) in [("from", &pin["from"]), ("until", &pin["until"])] {
        if !time.is_null() {
            text.push_str(&format!(" {name} {}", shown(time)));
        }
    }
    if let Some(reason) = policy["reason"].as_str() {
        text.push_str(&format!(": {}", escape(reason.as_bytes(), MAX_SHOWN_CHARS)));
    }
    text
}

/// Text that any terminal can show.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => escape(text.as_bytes(), MAX_SHOWN_CHARS),
        other => escape(other.to_string().as_bytes(), MAX_SHOWN_CHARS),
    }
}

/// A part of a query: every byte that is not a letter, a digit or one of `-._~` percent-encoded.
fn encoded(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, QUERY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_key_can_be_asked_for() {
        assert_eq!(encoded("c-4.2_~").to_string(), "c-4.2_~");
        assert_eq!(encoded("a&b=c d+é/%").to_string(), "a%26b%3Dc%20d%2B%C3%A9%2F%25");
    }

    #[test]
    fn what_comes_from_outside_moves_no_cursor() {
        assert_eq!(shown(&Value::from("a\u{1b}[2J")), "a\\u{1b}[2J");
        assert_eq!(ruled(&serde_json::json!({"pin": null, "reason": "\u{202e}x"})), "blocked: \\u{202e}x");
    }
}
