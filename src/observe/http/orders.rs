//! The paths that change something: for who knows the token, and from no web page.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::routes::{Sources, answer, problem};
use crate::observe::commands::{Answer, Command, Desk};
use crate::plan::{Disobeyed, Wish, Word};
use crate::protocol::{KeyField, PlanKey};
use crate::telemetry::HttpRefusal;
use crate::units::EventTime;

/// Whose plan: `keyspace`, and `key` or `key_b64`.
#[derive(Debug, Deserialize)]
pub(super) struct Whose {
    keyspace: String,
    #[serde(flatten)]
    key: KeyField,
    #[serde(flatten)]
    _rest: Nothing,
}

/// Whether nothing new may begin.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Freeze {
    frozen: bool,
}

/// A pin: whose, so many buckets, and when; times are RFC 3339.
#[derive(Debug, Deserialize)]
pub(super) struct PinOrder {
    keyspace: String,
    #[serde(flatten)]
    key: KeyField,
    buckets: u32,
    from: Option<Moment>,
    until: Option<Moment>,
    reason: Option<String>,
    #[serde(flatten)]
    _rest: Nothing,
}

/// What is said of a key without more than a reason.
#[derive(Debug, Deserialize)]
pub(super) struct WordOrder {
    keyspace: String,
    #[serde(flatten)]
    key: KeyField,
    reason: Option<String>,
    #[serde(flatten)]
    _rest: Nothing,
}

/// A split to take back.
#[derive(Debug, Deserialize)]
pub(super) struct WithdrawOrder {
    keyspace: String,
    #[serde(flatten)]
    key: KeyField,
    #[serde(default)]
    block: bool,
    reason: Option<String>,
    #[serde(flatten)]
    _rest: Nothing,
}

/// What is left of a request besides its known fields: a field with a slip in its name must not be passed over.
#[derive(Debug, Deserialize)]
#[serde(try_from = "BTreeMap<String, IgnoredAny>")]
struct Nothing;

/// A field that the request does not have.
#[derive(Debug, thiserror::Error)]
#[error("unknown field '{0}'")]
struct UnknownField(String);

impl TryFrom<BTreeMap<String, IgnoredAny>> for Nothing {
    type Error = UnknownField;

    fn try_from(rest: BTreeMap<String, IgnoredAny>) -> Result<Self, Self::Error> {
        match rest.into_keys().next() {
            Some(name) => Err(UnknownField(name.chars().take(64).collect())),
            None => Ok(Self),
        }
    }
}

/// A time of a request.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
struct Moment(EventTime);

/// A text that is no time.
#[derive(Debug, thiserror::Error)]
#[error("got '{0}'; a time should be RFC 3339 with a zone, e.g. 2026-11-27T00:00:00Z")]
struct InvalidMoment(String);

impl TryFrom<String> for Moment {
    type Error = InvalidMoment;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let time = text.parse::<jiff::Timestamp>().ok();
        let time = time.and_then(|time| EventTime::from_millis(time.as_millisecond()).ok());
        time.map(Self).ok_or_else(|| InvalidMoment(text.chars().take(64).collect()))
    }
}

#[derive(Debug, Serialize)]
struct Done {
    done: bool,
    /// What a word on a key has done.
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<&'static str>,
}

/// `POST /v1/plans/approve`.
pub(super) async fn approve(
    State(sources): State<Sources>,
    headers: HeaderMap,
    whose: Result<Json<Whose>, JsonRejection>,
) -> Response {
    let command = |Whose { keyspace, key, .. }| Command::Approve(PlanKey::new(&keyspace, &key.0));
    carry_out(&sources, &headers, whose, command).await
}

/// `POST /v1/freeze`.
pub(super) async fn freeze(
    State(sources): State<Sources>,
    headers: HeaderMap,
    freeze: Result<Json<Freeze>, JsonRejection>,
) -> Response {
    carry_out(&sources, &headers, freeze, |Freeze { frozen }| Command::Freeze(frozen)).await
}

/// `POST /v1/plans/pin`.
pub(super) async fn pin(
    State(sources): State<Sources>,
    headers: HeaderMap,
    pin: Result<Json<PinOrder>, JsonRejection>,
) -> Response {
    let command = |order: PinOrder| {
        let [from, until] = [order.from, order.until].map(|time| time.map(|Moment(time)| time));
        tell(order.keyspace, order.key, Wish::Pin { buckets: order.buckets, from, until }, order.reason)
    };
    carry_out(&sources, &headers, pin, command).await
}

/// `POST /v1/plans/withdraw`.
pub(super) async fn withdraw(
    State(sources): State<Sources>,
    headers: HeaderMap,
    withdraw: Result<Json<WithdrawOrder>, JsonRejection>,
) -> Response {
    let command =
        |order: WithdrawOrder| tell(order.keyspace, order.key, Wish::Withdraw { block: order.block }, order.reason);
    carry_out(&sources, &headers, withdraw, command).await
}

/// `POST /v1/plans/unpin`, `block` and `unblock`.
pub(super) async fn word(
    wish: Wish,
    State(sources): State<Sources>,
    headers: HeaderMap,
    word: Result<Json<WordOrder>, JsonRejection>,
) -> Response {
    let command = |WordOrder { keyspace, key, reason, .. }| tell(keyspace, key, wish, reason);
    carry_out(&sources, &headers, word, command).await
}

fn tell(keyspace: String, key: KeyField, wish: Wish, reason: Option<String>) -> Command {
    Command::Tell(Word { key: PlanKey { keyspace, key: key.0 }, wish, reason })
}

/// The status of what is not obeyed: 400 where the request is wrong in itself, 404 where what it names is not there, 409 where the
/// world is not as it would have to be, 503 where it may be tried again as it is.
const fn status_of(disobeyed: &Disobeyed) -> StatusCode {
    match disobeyed {
        Disobeyed::Key(_)
        | Disobeyed::Buckets(_)
        | Disobeyed::AboveMost { .. }
        | Disobeyed::EndsFirst { .. }
        | Disobeyed::Past(_)
        | Disobeyed::Reason(_)
        | Disobeyed::TooLong(_) => StatusCode::BAD_REQUEST,
        Disobeyed::Keyspace { .. } | Disobeyed::NotPinned | Disobeyed::NotBlocked | Disobeyed::NotSplit => {
            StatusCode::NOT_FOUND
        }
        Disobeyed::Observed
        | Disobeyed::Listed
        | Disobeyed::OneObject
        | Disobeyed::Full
        | Disobeyed::Pinned
        | Disobeyed::Frozen
        | Disobeyed::GoesForward(_)
        | Disobeyed::Unfinished(_)
        | Disobeyed::Hindered(_) => StatusCode::CONFLICT,
        Disobeyed::TooMany | Disobeyed::Void | Disobeyed::Late(_) | Disobeyed::Stopped => {
            StatusCode::SERVICE_UNAVAILABLE
        }
    }
}

/// The desk, for who knows the token.
pub(super) fn allowed<'a>(sources: &'a Sources, headers: &HeaderMap) -> Result<&'a Desk, Box<Response>> {
    let Some(desk) = &sources.desk else {
        let rule = "commands are off; set observe.token_file to a file with a token";
        return Err(Box::new(problem(StatusCode::FORBIDDEN, rule)));
    };
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    if bearer.is_some_and(|given| desk.token.is(given)) {
        return Ok(desk);
    }
    sources.telemetry.count_http_refused(HttpRefusal::Token);
    let rule = "this needs the token of observe.token_file, as header 'authorization: Bearer TOKEN'";
    Err(Box::new(problem(StatusCode::UNAUTHORIZED, rule)))
}

async fn carry_out<T>(
    sources: &Sources,
    headers: &HeaderMap,
    body: Result<Json<T>, JsonRejection>,
    command: impl FnOnce(T) -> Command,
) -> Response {
    let desk = match allowed(sources, headers) {
        Ok(desk) => desk,
        Err(refused) => return *refused,
    };
    let Json(body) = match body {
        Ok(body) => body,
        Err(rejection) => return problem(StatusCode::BAD_REQUEST, &rejection.body_text()),
    };
    match desk.commands.give(command(body)).await {
        Some(Answer::Done) => answer(StatusCode::OK, &Done { done: true, effect: None }),
        Some(Answer::Told(effect)) => answer(StatusCode::OK, &Done { done: true, effect: Some(effect.label()) }),
        Some(Answer::Disobeyed(disobeyed)) => problem(status_of(&disobeyed), &disobeyed.to_string()),
        Some(Answer::NothingProposed) => {
            problem(StatusCode::NOT_FOUND, "this key has no proposal that waits for approval; /v1/plans lists plans")
        }
        Some(Answer::NotLeading) => {
            let rule = "another process leads the plan topic, or nobody yet; ask the one whose /v1/status says leader";
            problem(StatusCode::CONFLICT, rule)
        }
        None => {
            problem(StatusCode::SERVICE_UNAVAILABLE, "too many commands wait, or the service is stopping; try again")
        }
    }
}
