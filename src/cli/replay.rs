//! `keyheat replay FILE`: the engine and the planner over recorded events, without Kafka and without a clock.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;

use super::args::OutputFormat;
use super::exit::{CommandError, ExitStatus};
use super::keyspace::KeyspaceArgs;
use super::output::Output;
use crate::analyze::{Behind, Decision, Replay, ReplaySettings, Summary};
use crate::config::Settings;
use crate::service::Clock;
use crate::source::{Line, Lines};
use crate::units::{EventTime, Span};

/// Arguments of `replay`.
///
/// Prints every decision (suspect, hot, cleared, shard_suspect, shard_hot, shard_cleared, plan, advice) and at the end a summary: with
/// --output json one object a line. The same input and flags give the same bytes. Plans are carried out on paper: accepted,
/// acknowledged and moved at once.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Records, one a line; zstd and gzip are unpacked; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// How events are read and judged.
    #[command(flatten)]
    pub keyspace: KeyspaceArgs,
}

/// Records between two looks at the clock for the progress line.
const PROGRESS_RECORDS: u64 = 8192;
/// How often the progress line is renewed.
const PROGRESS_EVERY: Span = Span::from_millis(200);

/// Replays the file.
///
/// # Errors
/// [`CommandError::Usage`] for wrong flags; otherwise when the file cannot be read, or standard output cannot be written.
pub(super) fn run(args: &ReplayArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let settings = args.keyspace.settings(output)?;
    let cannot_read = |source| CommandError::Io { what: format!("cannot read {}", args.file.display()), source };
    // The decoder refuses what is longer, and counts it.
    let max_bytes = settings.input.max_record_bytes;
    let lines = if args.file.as_os_str() == "-" {
        Lines::read(io::stdin(), max_bytes, None)
    } else {
        Lines::open(&args.file, max_bytes)
    };
    let mut lines = lines.map_err(cannot_read)?;
    let format = output.format_or(if output.interactive() { OutputFormat::Table } else { OutputFormat::Json });
    let mut replay = Replay::new(replay_settings(settings));
    let mut progress = Progress::new(output);
    if format == OutputFormat::Table {
        output.line(TABLE_HEAD)?;
    }
    while let Some(line) = lines.next_line().map_err(cannot_read)? {
        match line {
            Line::Record(record) => replay.handle_record(record),
            Line::TooLong => replay.handle_too_long(),
        }
        print_decisions(&mut replay, format, output)?;
        progress.show(&replay, &lines, output);
    }
    replay.handle_end();
    print_decisions(&mut replay, format, output)?;
    progress.clear(output);
    let summary = replay.summary();
    match format {
        OutputFormat::Json => output.json(&summary)?,
        OutputFormat::Table => print_summary(&summary, output)?,
    }
    Ok(warn(&summary, output))
}

fn replay_settings(settings: Settings) -> ReplaySettings {
    ReplaySettings {
        input: settings.input,
        engine: settings.engine,
        plans: settings.plans,
        budget: settings.budget,
        protocol: settings.protocol,
        config_hash: settings.hash.to_string(),
    }
}

fn print_decisions(replay: &mut Replay, format: OutputFormat, output: &mut Output) -> io::Result<()> {
    while let Some(decision) = replay.poll_decision() {
        match format {
            OutputFormat::Json => output.json(&decision)?,
            OutputFormat::Table => output.line(table_line(&decision))?,
        }
    }
    Ok(())
}

const TABLE_HEAD: &str = "time                      event         count          threshold  window  rule      what";

fn table_line(decision: &Decision) -> String {
    let time = EventTime::from_millis(decision.at).map_or_else(|_| decision.at.to_string(), EventTime::to_rfc3339);
    let count = match (decision.lower, decision.upper) {
        (Some(lower), Some(upper)) if lower != upper => format!("{lower}..{upper}"),
        (Some(count), _) => count.to_string(),
        _ => String::new(),
    };
    let threshold = decision.threshold.map(|threshold| threshold.to_string()).unwrap_or_default();
    let window = decision.window_ms.map(|millis| Span::from_millis(millis).to_string()).unwrap_or_default();
    let key = decision.key.as_deref().map(|key| key.escape_debug().to_string());
    let key = key.or_else(|| decision.key_b64.as_ref().map(|key| format!("base64:{key}")));
    let mut what = key.or_else(|| decision.shard.clone()).unwrap_or_default();
    if let Some(layout) = decision.layout.filter(|layout| !layout.is_bare()) {
        what.push_str(&format!(" in {} buckets", layout.buckets()));
    }
    let cause = match &decision.behind {
        Some(Behind::Shard(behind)) => behind.cause,
        Some(Behind::Key(_)) | None => None,
    };
    for more in [cause, decision.state, decision.action, decision.reason.as_deref()].into_iter().flatten() {
        what.push_str(", ");
        what.push_str(more);
    }
    let rule = decision.rule.as_deref().unwrap_or_default();
    format!("{time}  {:13} {count:14} {threshold:10} {window:7} {rule:9} {what}", decision.event)
}

fn print_summary(summary: &Summary, output: &mut Output) -> io::Result<()> {
    output.line(format_args!(
        "\n{} records read, {} events counted, {} too late, {} in the future",
        summary.read, summary.counted, summary.too_late, summary.future
    ))?;
    for (reason, count) in summary.refused.iter().filter(|(_, count)| **count > 0) {
        output.line(format_args!("{count} refused: {reason}"))?;
    }
    for keyspace in &summary.keyspaces {
        output.line(format_args!(
            "{}: {} distinct keys, {} were hot, {} more suspect",
            keyspace.keyspace, keyspace.keys, keyspace.flagged, keyspace.suspected
        ))?;
        if let Some(mapper) = &keyspace.mapper {
            output.line(format_args!(
                "{}: {} of {} events looked at were on other shards than the declared mapper says; it is {}",
                keyspace.keyspace, mapper.elsewhere, mapper.checked, mapper.trust
            ))?;
        }
    }
    Ok(())
}

/// Says what a reader of the decisions alone would miss. A replay that counted nothing has failed.
fn warn(summary: &Summary, output: &mut Output) -> ExitStatus {
    let worst = summary.refused.iter().max_by_key(|(_, count)| **count).filter(|(_, count)| **count > 0);
    if let Some((reason, count)) = worst {
        output.note(format_args!("{count} of {} records refused: {reason}", summary.read));
    }
    for keyspace in summary.keyspaces.iter().filter(|keyspace| keyspace.recall_above.is_some()) {
        output.note(format_args!(
            "{}: more keys near the threshold than there is room for; some below {} events may be missing",
            keyspace.keyspace,
            keyspace.recall_above.unwrap_or_default()
        ));
    }
    if summary.read > 0 && summary.counted == 0 {
        output.note("no event was counted; see --key and --time, and the summary for the reasons");
        return ExitStatus::Failed;
    }
    ExitStatus::Success
}

/// The line on standard error that says how far it is, where a person looks at one that does not show the data.
struct Progress {
    clock: Option<Clock>,
    next: Span,
}

impl Progress {
    fn new(output: &Output) -> Self {
        let wanted = io::stderr().is_terminal() && !output.interactive() && !output.quiet();
        Self { clock: wanted.then(Clock::system), next: PROGRESS_EVERY }
    }

    fn show(&mut self, replay: &Replay, lines: &Lines, output: &mut Output) {
        let Some(clock) = self.clock.filter(|_| replay.read().is_multiple_of(PROGRESS_RECORDS)) else { return };
        let elapsed = clock.elapsed();
        if elapsed < self.next {
            return;
        }
        self.next = elapsed.saturating_add(PROGRESS_EVERY);
        let part =
            lines.total().filter(|total| *total > 0).map(|total| format!("{:3} %, ", lines.consumed() * 100 / total));
        let rate = replay.read().saturating_mul(1000) / elapsed.as_millis().max(1);
        output.progress(format_args!("{}{} records, {rate}/s", part.unwrap_or_default(), replay.read()));
    }

    fn clear(&self, output: &mut Output) {
        if self.clock.is_some() {
            output.progress("");
        }
    }
}
