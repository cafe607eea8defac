//! `keyheat route`: a router that obeys the plan topic and says what it does; asked on standard input, it says where a request goes.

use std::collections::VecDeque;
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use clap::Args;
use rdkafka::config::ClientConfig;
use serde::{Deserialize, Serialize};

use super::exit::{CommandError, ExitStatus};
use super::output::Output;
use super::signals::end_on_signals;
use crate::config::{ControlSettings, KafkaSettings};
use crate::protocol::{Applied, KeyField, Layout, PlanKey, PlanTable, Version};
use crate::router::{Departure, Place, Router, RouterSettings, Table, TopicFollower, Write};
use crate::service::{Clock, Stop};
use crate::units::Span;

/// Arguments of `route`.
///
/// Follows the plan topic as a registered router: plans wait for its acknowledgements. Each record that it applies is one JSON object
/// on standard output. Each line on standard input asks where a request would go, e.g.
/// {"operation":"write","keyspace":"customer","key":"c42","id":"r1"} with operation write, point_read, scan or delete.
#[derive(Debug, Args)]
pub struct RouteArgs {
    /// Kafka brokers, host:port, separated by commas
    #[arg(long, value_delimiter = ',', required = true, value_name = "HOST:PORT")]
    pub brokers: Vec<String>,
    /// The router's name; keep it over restarts
    #[arg(long)]
    pub id: String,
    /// Topic of plans
    #[arg(long, default_value = ControlSettings::DEFAULT_PLAN_TOPIC, value_name = "TOPIC")]
    pub plan_topic: String,
    /// Topic of acknowledgements
    #[arg(long, default_value = ControlSettings::DEFAULT_ACKS_TOPIC, value_name = "TOPIC")]
    pub acks_topic: String,
    /// Where its table is kept for a start without Kafka; without it every start joins anew
    #[arg(long, value_name = "FILE")]
    pub snapshot: Option<PathBuf>,
    /// The longest that a call to the store can be in flight; the store must enforce it
    #[arg(long, default_value = "30s", value_name = "SPAN")]
    pub call_limit: Span,
    /// A property of librdkafka, e.g. for security; repeatable
    #[arg(short = 'X', value_name = "NAME=VALUE", value_parser = super::generate::read_property)]
    pub properties: Vec<(String, String)>,
}

/// Questions that wait for their answer; the reader of standard input waits when there are more.
const MAX_QUESTIONS: usize = 64;
/// The longest line of a question.
const MAX_QUESTION_BYTES: usize = 16 * 1024;
/// Records that were read and wait to be applied by the router's own thread.
const MAX_UNAPPLIED: usize = 10_000;
/// The longest wait for a record; questions and the stop flag are looked at as often.
const FOLLOW_WAIT: Duration = Duration::from_millis(20);
/// How long leaving may take.
const LEAVE_LIMIT: Span = Span::from_secs(10);

/// Runs until SIGTERM or SIGINT, then leaves by tombstone.
///
/// # Errors
/// [`CommandError`] when the router cannot start, or output cannot be written.
pub(super) fn run(args: &RouteArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let stop = Stop::default();
    end_on_signals(&stop)?;
    let brokers: Vec<&str> = args.brokers.iter().map(String::as_str).collect();
    let mut kafka = KafkaSettings::plain(&brokers);
    kafka.librdkafka.extend(args.properties.iter().cloned());
    let client = kafka.client_config().map_err(|error| CommandError::Failed(Box::new(error)))?;
    let clock = Clock::system();
    let mut settings = RouterSettings::new(client.clone(), &args.id, move || clock.now());
    settings.plan_topic.clone_from(&args.plan_topic);
    settings.acks_topic.clone_from(&args.acks_topic);
    settings.snapshot.clone_from(&args.snapshot);
    settings.call_limit = args.call_limit;
    let router = Router::start(settings).map_err(|error| CommandError::Failed(Box::new(error)))?;
    let told = tell(&router, &client, args, &stop, output);
    let departure = router.shutdown(LEAVE_LIMIT);
    told?;
    match departure {
        Departure::Left => Ok(ExitStatus::Success),
        Departure::Registered(why) => {
            output.note(format_args!("still registered, and every plan waits for it: {why}"));
            Ok(ExitStatus::Unsent)
        }
    }
}

/// One line of output.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line<'a> {
    /// Requests are placed from now on.
    Ready { id: &'a str },
    /// A plan's record was applied.
    Plan {
        keyspace: &'a str,
        #[serde(flatten)]
        key: KeyField,
        version: Version,
        state: &'static str,
        write: Option<Layout>,
        read: &'a [Layout],
    },
    /// A plan's tombstone was applied: the key is in the bare layout.
    Removed {
        keyspace: &'a str,
        #[serde(flatten)]
        key: KeyField,
        version: Version,
    },
    /// The answer to a question.
    Places { operation: Operation, held: bool, places: Vec<PlaceLine> },
    /// A question that cannot be answered.
    Refused { reason: String },
}

/// One place of the store.
#[derive(Debug, Serialize)]
struct PlaceLine {
    #[serde(flatten)]
    key: KeyField,
    label: Option<u32>,
}

/// A question on standard input.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    operation: Operation,
    keyspace: String,
    key: String,
    #[serde(default)]
    id: String,
}

/// What a request does.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Operation {
    /// Write one record.
    Write,
    /// Read one record.
    PointRead,
    /// Read all records of the key.
    Scan,
    /// Delete one record.
    Delete,
}

/// Prints what is read once the router has applied it, and answers questions.
fn tell(
    router: &Router,
    client: &ClientConfig,
    args: &RouteArgs,
    stop: &Stop,
    output: &mut Output,
) -> Result<(), CommandError> {
    let mut follower =
        TopicFollower::start(client, &args.plan_topic).map_err(|error| CommandError::Failed(Box::new(error)))?;
    let mut table = PlanTable::new();
    let mut unapplied: VecDeque<Applied> = VecDeque::new();
    let questions = ask_from_stdin();
    let mut ready = false;
    while !stop.is_set() {
        // The router itself reports errors of the topic; records that it has not applied yet wait in the client.
        if unapplied.len() >= MAX_UNAPPLIED {
            thread::sleep(FOLLOW_WAIT);
        } else if let Some(Ok(record)) = follower.poll(FOLLOW_WAIT) {
            unapplied.push_back(table.apply(&record));
        }
        let status = router.status();
        if status.ready && !ready {
            ready = true;
            output.json(&Line::Ready { id: &args.id })?;
        }
        while let Some(applied) = unapplied.front() {
            if !tell_applied(applied, status.applied, output)? {
                break;
            }
            unapplied.pop_front();
        }
        while let Ok(question) = questions.try_recv() {
            output.json(&answer(router.table(), &question))?;
        }
        output.flush()?;
    }
    Ok(())
}

/// Prints a change that the router has applied; false while it has not.
fn tell_applied(applied: &Applied, reached: Version, output: &mut Output) -> Result<bool, CommandError> {
    match applied {
        Applied::Plan { entry, .. } => {
            if entry.version > reached {
                return Ok(false);
            }
            let record = &entry.record;
            output.json(&Line::Plan {
                keyspace: &record.keyspace,
                key: record.key.clone(),
                version: entry.version,
                state: record.state.label(),
                write: record.write,
                read: &record.read,
            })?;
        }
        Applied::Removed { key: PlanKey { keyspace, key }, version, .. } => {
            if *version > reached {
                return Ok(false);
            }
            output.json(&Line::Removed { keyspace, key: KeyField(key.clone()), version: *version })?;
        }
        _ => {}
    }
    Ok(true)
}

/// Lines of standard input, as long as there are any.
fn ask_from_stdin() -> Receiver<String> {
    let (asked, questions) = sync_channel(MAX_QUESTIONS);
    let read = move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if asked.send(line).is_err() {
                return;
            }
        }
    };
    // The thread ends with its input, or with the process: nothing waits for it.
    drop(thread::Builder::new().name("questions".to_owned()).spawn(read));
    questions
}

fn answer(table: &Table, question: &str) -> Line<'static> {
    if question.len() > MAX_QUESTION_BYTES {
        let reason = format!("a question of {} bytes, which should be at most {MAX_QUESTION_BYTES}", question.len());
        return Line::Refused { reason };
    }
    match serde_json::from_str::<Question>(question) {
        Ok(question) => place(table, &question).unwrap_or_else(|reason| Line::Refused { reason }),
        Err(error) => Line::Refused { reason: format!("no question: {error}") },
    }
}

/// Where a request would go now. The placement's guard ends with the answer: nothing waits for who only asks.
fn place(table: &Table, question: &Question) -> Result<Line<'static>, String> {
    let Question { operation, keyspace, key, id } = question;
    let (key, id) = (key.as_bytes(), id.as_bytes());
    let line = |place: &Place<'_>| PlaceLine { key: KeyField(place.key.to_vec()), label: place.label };
    let (held, places) = match operation {
        Operation::Write => match table.write(keyspace, key, id).map_err(|refused| refused.to_string())? {
            Write::Placed(placement) => (false, vec![line(placement.place())]),
            Write::Held(_) => (true, Vec::new()),
        },
        Operation::Delete => match table.delete(keyspace, key, id).map_err(|refused| refused.to_string())? {
            Write::Placed(placement) => (false, vec![line(placement.place())]),
            Write::Held(_) => (true, Vec::new()),
        },
        Operation::PointRead => {
            let placement = table.point_read(keyspace, key, id).map_err(|refused| refused.to_string())?;
            (false, placement.places().iter().map(line).collect())
        }
        Operation::Scan => {
            let placement = table.scan(keyspace, key).map_err(|refused| refused.to_string())?;
            let places = placement.places().iter();
            (false, places.map(|place| PlaceLine { key: KeyField(place.key.to_vec()), label: place.label }).collect())
        }
    };
    Ok(Line::Places { operation: *operation, held, places })
}
