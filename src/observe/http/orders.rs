//! The paths that change something: for who knows the token, and from no web page.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::routes::{Sources, answer, problem};
use crate::observe::commands::{Answer, Command};
use crate::protocol::{KeyField, PlanKey};
use crate::telemetry::HttpRefusal;

/// Whose plan: `keyspace`, and `key` or `key_b64`.
#[derive(Debug, Deserialize)]
pub(super) struct Whose {
    keyspace: String,
    #[serde(flatten)]
    key: KeyField,
}

/// Whether nothing new may begin.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Freeze {
    frozen: bool,
}

#[derive(Debug, Serialize)]
struct Done {
    done: bool,
}

/// `POST /v1/plans/approve`.
pub(super) async fn approve(
    State(sources): State<Sources>,
    headers: HeaderMap,
    whose: Result<Json<Whose>, JsonRejection>,
) -> Response {
    let command = |Whose { keyspace, key }| Command::Approve(PlanKey::new(&keyspace, &key.0));
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

async fn carry_out<T>(
    sources: &Sources,
    headers: &HeaderMap,
    body: Result<Json<T>, JsonRejection>,
    command: impl FnOnce(T) -> Command,
) -> Response {
    let Some(desk) = &sources.desk else {
        return problem(StatusCode::FORBIDDEN, "commands are off; set observe.token_file to a file with a token");
    };
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    if !bearer.is_some_and(|given| desk.token.is(given)) {
        sources.telemetry.count_http_refused(HttpRefusal::Token);
        let rule = "this needs the token of observe.token_file, as header 'authorization: Bearer TOKEN'";
        return problem(StatusCode::UNAUTHORIZED, rule);
    }
    let Json(body) = match body {
        Ok(body) => body,
        Err(rejection) => return problem(StatusCode::BAD_REQUEST, &rejection.body_text()),
    };
    match desk.commands.give(command(body)).await {
        Some(Answer::Done) => answer(StatusCode::OK, &Done { done: true }),
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
