//! `keyheat plan …`: what people ask and tell the service, over its HTTP side. `forget-router` writes to the acks topic itself: see
//! `forget`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use clap::{Args, Subcommand};
use hyper::{Request, Uri, header};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

use super::args::OutputFormat;
use super::exit::{CommandError, ExitStatus};
use super::forget::ForgetArgs;
use super::output::Output;
use super::show::ShowArgs;
use super::words::{self, PinArgs, WithdrawArgs, WordArgs};
use crate::config::ObserveSettings;
use crate::observe::Token;
use crate::protocol::KeyField;

/// The longest answer that is read.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: PlanAction,
}

/// What to ask or to tell.
#[derive(Debug, Subcommand)]
pub enum PlanAction {
    /// List the plans on the control topic, and which keys are pinned or blocked
    List(ListArgs),
    /// Show everything that is known of one key
    Show(ShowArgs),
    /// Split a key into so many buckets, hot or not, e.g. for a sale that is known beforehand
    ///
    /// It needs nobody's approval and no counts; it keeps to a freeze and to the budget. The key is not shrunk or withdrawn while the pin
    /// lasts; after it the ordinary rules hold.
    Pin(PinArgs),
    /// Take a pin back: the ordinary rules hold again
    Unpin(WordArgs),
    /// Leave a key as it is: it is neither split nor grown nor shrunk
    Block(WordArgs),
    /// Take a block back
    Unblock(WordArgs),
    /// Take a split back: to the bare key, whatever the heat
    ///
    /// A proposal is removed, a migration before dual is turned round; from dual on it goes forward, and the split can be withdrawn once
    /// it has settled. Without --block a key that is hot is split again after plan.min_dwell.
    Withdraw(WithdrawArgs),
    /// Let the proposal of a key go on
    Approve(ApproveArgs),
    /// Let nothing new begin; what runs goes on
    Freeze(TellArgs),
    /// Let new plans begin again
    Unfreeze(TellArgs),
    /// Drop a router for good: gates no longer wait for it
    ///
    /// Only for one that is down and will not come back from its snapshot: if it served again, its requests would go where nobody
    /// looks. Its name may be used again by a router that joins anew.
    ForgetRouter(ForgetArgs),
}

/// Where the service is asked.
#[derive(Debug, Args)]
pub struct ServiceArgs {
    /// Where the service is asked, http://HOST:PORT
    #[arg(long, value_name = "URL", default_value_t = format!("http://{}", ObserveSettings::DEFAULT_LISTEN))]
    pub url: String,
    /// Seconds to wait for an answer
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub timeout: u64,
}

/// Which plans.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Where.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// Only plans of this keyspace
    #[arg(long, value_name = "NAME")]
    pub keyspace: Option<String>,
}

/// Where commands go, and the leave to give them.
#[derive(Debug, Args)]
pub struct TellArgs {
    /// Where.
    #[command(flatten)]
    pub service: ServiceArgs,
    /// The file with the token of observe.token_file
    #[arg(long, value_name = "FILE")]
    pub token_file: PathBuf,
}

/// Whose proposal.
#[derive(Debug, Args)]
pub struct ApproveArgs {
    /// Where, and the leave.
    #[command(flatten)]
    pub tell: TellArgs,
    /// The keyspace
    pub keyspace: String,
    /// The key, as it is in events
    pub key: String,
}

/// Asks or tells the service.
///
/// # Errors
/// [`CommandError::Usage`] for an address or a token that cannot be one; otherwise when the service cannot be asked or refuses.
pub(super) fn run(args: &PlanArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    match &args.action {
        PlanAction::List(list) => {
            let answer = ask(&list.service, "GET", "/v1/plans", None, String::new())?;
            show(&answer, list.keyspace.as_deref(), output)?;
        }
        PlanAction::Approve(approve) => {
            let body = key_body(&approve.keyspace, &approve.key)?;
            tell(&approve.tell, "/v1/plans/approve", &body)?;
            output.note(format_args!("approved: {} {}", approve.keyspace, approve.key));
        }
        PlanAction::Show(show) => super::show::run(show, output)?,
        PlanAction::Pin(pin) => words::pin(pin, output)?,
        PlanAction::Unpin(word) => words::plain(word, "unpin", output)?,
        PlanAction::Block(word) => words::plain(word, "block", output)?,
        PlanAction::Unblock(word) => words::plain(word, "unblock", output)?,
        PlanAction::Withdraw(withdraw) => words::withdraw(withdraw, output)?,
        PlanAction::Freeze(told) => {
            tell(told, "/v1/freeze", &json!({ "frozen": true }))?;
            output.note("frozen: nothing new begins until `keyheat plan unfreeze`, or until that process ends");
        }
        PlanAction::ForgetRouter(forget) => super::forget::run(forget, output)?,
        PlanAction::Unfreeze(told) => {
            tell(told, "/v1/freeze", &json!({ "frozen": false }))?;
            output.note("no longer frozen");
        }
    }
    Ok(ExitStatus::Success)
}

/// Of each keyspace pins and blocks, then plans, one a line.
fn show(answer: &Value, keyspace: Option<&str>, output: &mut Output) -> Result<(), CommandError> {
    let empty = Vec::new();
    let list = |value: &Value, name: &str| value[name].as_array().unwrap_or(&empty).clone();
    let keyspaces = list(answer, "keyspaces");
    if let Some(wanted) = keyspace.filter(|wanted| keyspaces.iter().all(|own| own["keyspace"] != **wanted)) {
        let known: Vec<&str> = keyspaces.iter().filter_map(|own| own["keyspace"].as_str()).collect();
        return Err(CommandError::failed(format!("no keyspace '{wanted}'; there are: {}", known.join(", "))));
    }
    let is_table = output.format_or(OutputFormat::Table) == OutputFormat::Table;
    if is_table {
        output.line(format_args!(
            "{:16} {:32} {:9} {:>12} {:>8}  DECIDED",
            "KEYSPACE", "KEY", "STATE", "VERSION", "BUCKETS"
        ))?;
    }
    for own in keyspaces.iter().filter(|own| keyspace.is_none_or(|wanted| own["keyspace"] == wanted)) {
        for mut policy in list(own, "policies") {
            policy["keyspace"] = own["keyspace"].clone();
            if !is_table {
                output.json(&policy)?;
                continue;
            }
            let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
            let pin = &policy["pin"];
            let span = if pin.is_null() {
                String::new()
            } else {
                format!("  {} to {}", text(&pin["from"]), text(&pin["until"]))
            };
            output.line(format_args!(
                "{:16} {:32} {:9} {:>12} {:>8}  {}{span}",
                text(&policy["keyspace"]),
                text(&policy["key"]),
                if pin.is_null() { "blocked" } else { "pinned" },
                text(&policy["stands"]),
                pin["buckets"].as_u64().map_or("-".to_owned(), |buckets| buckets.to_string()),
                text(&policy["decided_at"])
            ))?;
        }
        for mut plan in list(own, "plans") {
            plan["keyspace"] = own["keyspace"].clone();
            if !is_table {
                output.json(&plan)?;
                continue;
            }
            let text = |name: &str| plan[name].as_str().unwrap_or("-").to_owned();
            let buckets = plan["write"]["buckets"].as_u64().map_or("-".to_owned(), |buckets| buckets.to_string());
            output.line(format_args!(
                "{:16} {:32} {:9} {:>12} {:>8}  {}",
                text("keyspace"),
                text("key"),
                text("state"),
                format!("{}/{}", plan["epoch"], plan["seq"]),
                buckets,
                text("decided_at")
            ))?;
        }
    }
    Ok(())
}

/// The names of a key in a request.
pub(super) fn key_body(keyspace: &str, key: &str) -> Result<Value, CommandError> {
    let mut body =
        serde_json::to_value(KeyField(key.as_bytes().to_vec())).map_err(|error| CommandError::Failed(error.into()))?;
    body["keyspace"] = json!(keyspace);
    Ok(body)
}

/// What a file says, if it can be a token.
pub(super) fn token(path: &Path) -> Result<String, CommandError> {
    let file = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|source| CommandError::Io { what: format!("cannot read {file}"), source })?;
    Token::new(&text).map_err(|error| CommandError::Usage(format!("{file}: {error}")))?;
    Ok(text.trim().to_owned())
}

pub(super) fn tell(args: &TellArgs, path: &str, body: &Value) -> Result<Value, CommandError> {
    ask(&args.service, "POST", path, Some(&token(&args.token_file)?), body.to_string())
}

/// One request to the service; what it refuses is an error with its own words.
pub(super) fn ask(
    service: &ServiceArgs,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: String,
) -> Result<Value, CommandError> {
    let wrong = || {
        let url = &service.url;
        CommandError::Usage(format!("--url: got '{url}'; should be http://HOST:PORT, e.g. http://127.0.0.1:9464"))
    };
    let url: Uri = service.url.parse().map_err(|_| wrong())?;
    let Some(authority) = url.authority().filter(|_| url.scheme_str() == Some("http") && url.path() == "/") else {
        return Err(wrong());
    };
    let mut request = Request::builder().method(method).uri(path).header(header::HOST, authority.as_str());
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    let request = request.body(Body::from(body)).map_err(|error| CommandError::Failed(error.into()))?;
    let address = format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(80));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::Failed(error.into()))?;
    let limit = Duration::from_secs(service.timeout);
    let answered = runtime.block_on(async { tokio::time::timeout(limit, exchange(&address, request)).await });
    let (status, bytes) = match answered {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => {
            return Err(CommandError::failed(format!("cannot ask {address}: {error}; is the service up?")));
        }
        Err(_) => return Err(CommandError::failed(format!("{address} has not answered within {limit:?}"))),
    };
    let answer: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    if status != 200 {
        let words = answer["error"].as_str().unwrap_or("it does not say why");
        return Err(CommandError::failed(format!("{address} refuses with {status}: {words}")));
    }
    Ok(answer)
}

async fn exchange(
    address: &str,
    request: Request<Body>,
) -> Result<(u16, Vec<u8>), Box<dyn std::error::Error + Send + Sync>> {
    let stream = tokio::net::TcpStream::connect(address).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let answer = sender.send_request(request).await?;
    let status = answer.status().as_u16();
    let bytes = to_bytes(Body::new(answer.into_body()), MAX_ANSWER_BYTES).await?;
    drop(sender);
    connection.abort();
    Ok((status, bytes.to_vec()))
}
