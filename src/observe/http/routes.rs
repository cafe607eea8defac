//! Paths and what they answer.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::timeout::TimeoutLayer;

use super::guard::AllowedHosts;
use super::serve::HttpSettings;
use super::{exposition, json, orders, show};
use crate::observe::commands::Desk;
use crate::observe::process;
use crate::observe::questions::Questions;
use crate::observe::readiness::Readiness;
use crate::plan::Wish;
use crate::telemetry::{HttpRefusal, KeyspaceView, Telemetry, View};

/// What every answer is made from.
#[derive(Debug, Clone)]
pub(super) struct Sources {
    pub(super) telemetry: Arc<Telemetry>,
    readiness: Arc<Readiness>,
    hosts: Arc<AllowedHosts>,
    pub(super) desk: Option<Desk>,
    pub(super) questions: Option<Questions>,
}

/// Part of a list: `?keyspace=NAME&limit=N`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Filter {
    keyspace: Option<String>,
    limit: Option<usize>,
}

/// The whole HTTP side.
pub(super) fn routes(settings: &HttpSettings, telemetry: Arc<Telemetry>, readiness: Arc<Readiness>) -> Router {
    let hosts = Arc::new(AllowedHosts::new(&settings.allowed_hosts));
    let sources =
        Sources { telemetry, readiness, hosts, desk: settings.desk.clone(), questions: settings.questions.clone() };
    let limits = settings.limits;
    Router::new()
        .route("/", get(index))
        .route("/metrics", get(metrics))
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/v1/status", get(status))
        .route("/v1/hot-keys", get(hot_keys))
        .route("/v1/shards", get(shards))
        .route("/v1/plans", get(plans))
        .route("/v1/plans/show", get(show::show))
        .route("/v1/plans/approve", post(orders::approve))
        .route("/v1/plans/withdraw", post(orders::withdraw))
        .route("/v1/plans/pin", post(orders::pin))
        .route("/v1/plans/unpin", post(|sources, headers, body| orders::word(Wish::Unpin, sources, headers, body)))
        .route("/v1/plans/block", post(|sources, headers, body| orders::word(Wish::Block, sources, headers, body)))
        .route("/v1/plans/unblock", post(|sources, headers, body| orders::word(Wish::Unblock, sources, headers, body)))
        .route("/v1/freeze", post(orders::freeze))
        .fallback(nowhere)
        .method_not_allowed_fallback(not_that_way)
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, limits.answer))
        .layer(RequestBodyLimitLayer::new(limits.body_bytes))
        .layer(from_fn_with_state(sources.clone(), guard))
        .with_state(sources)
}

/// Around every request: the Host check before it, counting and headers after it.
async fn guard(State(sources): State<Sources>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).map(HeaderValue::as_bytes);
    let named = request.uri().host().map(str::as_bytes);
    let mut response = if sources.hosts.allow(host) && sources.hosts.allow(named) {
        next.run(request).await
    } else {
        sources.telemetry.count_http_refused(HttpRefusal::Host);
        let rule = "the Host header names a host that is not allowed; use an IP address or add the name to observe.allowed_hosts";
        problem(StatusCode::FORBIDDEN, rule)
    };
    match response.status() {
        StatusCode::SERVICE_UNAVAILABLE if !response.headers().contains_key(header::CONTENT_TYPE) => {
            sources.telemetry.count_http_refused(HttpRefusal::Timeout);
        }
        StatusCode::PAYLOAD_TOO_LARGE => sources.telemetry.count_http_refused(HttpRefusal::Body),
        _ => {}
    }
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'"));
    response
}

const INDEX: &str = "keyheat

/metrics      Prometheus metrics
/livez        200 while the process answers
/readyz       200 when it is ready, else 503; either way what it waits for
/v1/status    conditions, input, windows, control topic, routers
/v1/hot-keys  hot and suspect keys, the hottest first   ?keyspace=NAME&limit=N
/v1/shards    shards, the busiest first                 ?keyspace=NAME&limit=N
/v1/plans     plans, pins and blocks                    ?keyspace=NAME&limit=N
/v1/plans/show  everything known of one key             ?keyspace=NAME&key=KEY

With the token of observe.token_file, as authorization: Bearer TOKEN:
POST /v1/plans/approve  {\"keyspace\":\"NAME\",\"key\":\"KEY\"}   the proposal goes on
POST /v1/plans/withdraw {\"keyspace\":\"NAME\",\"key\":\"KEY\",\"block\":false}   the split is taken back
POST /v1/plans/pin      {\"keyspace\":\"NAME\",\"key\":\"KEY\",\"buckets\":N,\"from\":TIME,\"until\":TIME}   split, hot or not
POST /v1/plans/unpin    {\"keyspace\":\"NAME\",\"key\":\"KEY\"}   the pin holds no more
POST /v1/plans/block    {\"keyspace\":\"NAME\",\"key\":\"KEY\"}   the key stays as it is
POST /v1/plans/unblock  {\"keyspace\":\"NAME\",\"key\":\"KEY\"}   the block holds no more
POST /v1/freeze         {\"frozen\":true}                   nothing new begins; false ends it
";

async fn index() -> &'static str {
    INDEX
}

async fn livez() -> &'static str {
    "ok\n"
}

async fn readyz(State(sources): State<Sources>) -> Response {
    let body = json::Ready::new(&sources.readiness);
    let status = if body.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    answer(status, &body)
}

async fn metrics(State(sources): State<Sources>) -> Response {
    let families = sources.telemetry.families(&sources.readiness.states(), &process::usage());
    match exposition(&families) {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response(),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

async fn status(State(sources): State<Sources>) -> Response {
    answer(StatusCode::OK, &json::Status::new(&sources.telemetry, &sources.readiness))
}

async fn hot_keys(State(sources): State<Sources>, filter: Result<Query<Filter>, QueryRejection>) -> Response {
    let display = sources.telemetry.settings().key_display;
    list(&sources, filter, |keyspace, limit| json::hot_keys(keyspace, limit, display))
}

async fn shards(State(sources): State<Sources>, filter: Result<Query<Filter>, QueryRejection>) -> Response {
    let display = sources.telemetry.settings().key_display;
    list(&sources, filter, |keyspace, limit| json::shards(keyspace, limit, display))
}

async fn plans(State(sources): State<Sources>, filter: Result<Query<Filter>, QueryRejection>) -> Response {
    let display = sources.telemetry.settings().key_display;
    let now = sources.telemetry.view().at;
    list(&sources, filter, |keyspace, limit| json::plans(keyspace, limit, display, now))
}

/// The part that the filter asks for, of every keyspace or of one.
fn list<T: Serialize>(
    sources: &Sources,
    filter: Result<Query<Filter>, QueryRejection>,
    part: impl Fn(&KeyspaceView, usize) -> T,
) -> Response {
    let Query(filter) = match filter {
        Ok(filter) => filter,
        Err(rejection) => return problem(StatusCode::BAD_REQUEST, &rejection.body_text()),
    };
    let view: Arc<View> = sources.telemetry.view();
    let wanted = |keyspace: &&KeyspaceView| filter.keyspace.as_ref().is_none_or(|name| *name == keyspace.name);
    let limit = filter.limit.unwrap_or(usize::MAX);
    let parts: Vec<T> = view.keyspaces.iter().filter(wanted).map(|keyspace| part(keyspace, limit)).collect();
    if parts.is_empty() && filter.keyspace.is_some() {
        let known: Vec<&str> = view.keyspaces.iter().map(|keyspace| keyspace.name.as_str()).collect();
        return problem(StatusCode::NOT_FOUND, &format!("no such keyspace; there are: {}", known.join(", ")));
    }
    answer(StatusCode::OK, &json::List { at: view.at.map(|at| at.to_rfc3339()), keyspaces: parts })
}

async fn nowhere() -> Response {
    problem(StatusCode::NOT_FOUND, "no such path; / lists those that there are")
}

async fn not_that_way() -> Response {
    problem(StatusCode::METHOD_NOT_ALLOWED, "this path is not asked in that way: commands take POST, all others GET")
}

pub(super) fn problem(status: StatusCode, error: &str) -> Response {
    answer(status, &json::Problem { error })
}

pub(super) fn answer(status: StatusCode, body: &impl Serialize) -> Response {
    match json::to_harmless_json(body) {
        Ok(text) => (status, [(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
