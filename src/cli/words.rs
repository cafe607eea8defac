//! `keyheat plan pin|unpin|block|unblock|withdraw`: what an operator says of one key, told to the service that leads.

use clap::Args;
use serde_json::{Value, json};

use super::exit::CommandError;
use super::output::Output;
use super::plan::{TellArgs, key_body, tell};

/// Of which key something is said.
#[derive(Debug, Args)]
pub struct WordArgs {
    /// Where, and the leave.
    #[command(flatten)]
    pub tell: TellArgs,
    /// Why, for people: at most 256 characters
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// The keyspace
    pub keyspace: String,
    /// The key, as it is in events
    pub key: String,
}

/// A pin.
#[derive(Debug, Args)]
pub struct PinArgs {
    /// Of which key, and why.
    #[command(flatten)]
    pub word: WordArgs,
    /// Number of buckets: a power of two from 2 to max_buckets of the keyspace
    pub buckets: u32,
    /// From then on, e.g. 2026-11-27T00:00:00Z; from now on when it is not given
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub from: Option<String>,
    /// Up to then; until `keyheat plan unpin` when it is not given
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub until: Option<String>,
}

/// A withdrawal.
#[derive(Debug, Args)]
pub struct WithdrawArgs {
    /// Of which key, and why.
    #[command(flatten)]
    pub word: WordArgs,
    /// And block the key, so that it is not split again
    #[arg(long)]
    pub block: bool,
}

/// A time with its zone, as it was given.
fn time(text: &str) -> Result<String, String> {
    let rule = "should be RFC 3339 with a zone, e.g. 2026-11-27T00:00:00Z";
    text.parse::<jiff::Timestamp>().map(|_| text.to_owned()).map_err(|_| rule.to_owned())
}

/// Pins a key.
///
/// # Errors
/// When the service cannot be told or refuses.
pub(super) fn pin(args: &PinArgs, output: &mut Output) -> Result<(), CommandError> {
    let body = json!({ "buckets": args.buckets, "from": args.from, "until": args.until });
    let until = args.until.as_ref().map_or_else(|| "`keyheat plan unpin`".to_owned(), Clone::clone);
    say(&args.word, "pin", body, output, &format!("pinned to {} buckets until {until}", args.buckets))
}

/// Says something of a key that needs no more than its name: `unpin`, `block` or `unblock`.
///
/// # Errors
/// When the service cannot be told or refuses.
pub(super) fn plain(args: &WordArgs, action: &str, output: &mut Output) -> Result<(), CommandError> {
    let done = match action {
        "unpin" => "no longer pinned",
        "unblock" => "no longer blocked",
        _ => "blocked",
    };
    say(args, action, json!({}), output, done)
}

/// Takes a split back.
///
/// # Errors
/// When the service cannot be told or refuses.
pub(super) fn withdraw(args: &WithdrawArgs, output: &mut Output) -> Result<(), CommandError> {
    say(&args.word, "withdraw", json!({ "block": args.block }), output, "withdrawn")
}

fn say(args: &WordArgs, action: &str, more: Value, output: &mut Output, done: &str) -> Result<(), CommandError> {
    let mut body = key_body(&args.keyspace, &args.key)?;
    for (name, value) in more.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    if let Some(reason) = &args.reason {
        body["reason"] = json!(reason);
    }
    let answer = tell(&args.tell, &format!("/v1/plans/{action}"), &body)?;
    let done = match answer["effect"].as_str() {
        Some("proposal_removed") => "its proposal is removed",
        Some("turned_round") => "its migration is turned round: it stays where it was",
        Some("withdrawing") => "on its way back to the bare key",
        _ => done,
    };
    output.note(format_args!("{} {}: {done}", args.keyspace, args.key));
    Ok(())
}
