//! `GET /v1/plans/show`: everything that is known of one key. Where keys are not shown as they are it needs the token: who could ask
//! after any key could try out which there are.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use base64::Engine as _;
use serde::{Deserialize, Serialize};

use super::json::stands;
use super::orders::allowed;
use super::routes::{Sources, answer, problem};
use crate::observe::questions::{KeyKnown, RouterKnown};
use crate::protocol::{Advice, BackfillReport, KeyField, PlanKey, PlanRecord, Policy, RetiredReport, Version};
use crate::telemetry::KeyDisplay;
use crate::units::EventTime;

/// Which key: `?keyspace=NAME&key=KEY`, or `key_b64` for bytes that are not UTF-8.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    keyspace: String,
    key: Option<String>,
    key_b64: Option<String>,
}

#[derive(Serialize)]
struct Shown<'a> {
    keyspace: &'a str,
    #[serde(flatten)]
    key: &'a KeyField,
    /// Only a leader knows hindrances.
    leader: bool,
    plan: Option<Of<&'a PlanRecord>>,
    routers: Vec<Router<'a>>,
    backfill: Option<&'a BackfillReport>,
    retired: Option<&'a RetiredReport>,
    policy: Option<Ruled<'a>>,
    advice: Option<Of<Advised<'a>>>,
    hindrance: Option<Hindered>,
}

/// A record with its version.
#[derive(Serialize)]
struct Of<T> {
    epoch: u64,
    seq: u64,
    /// When the broker appended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_time: Option<String>,
    record: T,
}

#[derive(Serialize)]
struct Ruled<'a> {
    epoch: u64,
    seq: u64,
    /// A pin: `ahead`, `in_force` or `past`; a block is always in force.
    stands: &'static str,
    record: &'a Policy,
}

/// Advice.
#[derive(Serialize)]
struct Advised<'a> {
    action: &'static str,
    reason: &'a str,
    decided_at: &'a str,
}

#[derive(Serialize)]
struct Router<'a> {
    id: &'a str,
    epoch: u64,
    seq: u64,
    acknowledged: bool,
    refusal: Option<&'a str>,
}

#[derive(Serialize)]
struct Hindered {
    reason: &'static str,
    text: String,
}

/// `GET /v1/plans/show`.
pub(super) async fn show(
    State(sources): State<Sources>,
    headers: HeaderMap,
    which: Result<Query<Which>, QueryRejection>,
) -> Response {
    let display = sources.telemetry.settings().key_display;
    if display != KeyDisplay::Plain
        && let Err(refused) = allowed(&sources, &headers)
    {
        return *refused;
    }
    let Query(which) = match which {
        Ok(which) => which,
        Err(rejection) => return problem(StatusCode::BAD_REQUEST, &rejection.body_text()),
    };
    let Some(key) = key_of(which.key, which.key_b64) else {
        return problem(StatusCode::BAD_REQUEST, "either key or key_b64 (standard base64 with padding) is needed");
    };
    let view = sources.telemetry.view();
    if view.keyspaces.iter().all(|keyspace| keyspace.name != which.keyspace) {
        let known: Vec<&str> = view.keyspaces.iter().map(|keyspace| keyspace.name.as_str()).collect();
        return problem(StatusCode::NOT_FOUND, &format!("no such keyspace; there are: {}", known.join(", ")));
    }
    let asked = match &sources.questions {
        Some(questions) => questions.ask(PlanKey { keyspace: which.keyspace.clone(), key: key.clone() }).await,
        None => None,
    };
    let Some(known) = asked else {
        let rule = "too many questions wait, or nobody follows the plan topic here; try again";
        return problem(StatusCode::SERVICE_UNAVAILABLE, rule);
    };
    answer(StatusCode::OK, &shown(&which.keyspace, &KeyField(key), &known, view.at))
}

fn key_of(key: Option<String>, key_b64: Option<String>) -> Option<Vec<u8>> {
    match (key, key_b64) {
        (Some(key), None) => Some(key.into_bytes()),
        (None, Some(text)) => base64::engine::general_purpose::STANDARD.decode(text).ok(),
        _ => None,
    }
}

fn shown<'a>(keyspace: &'a str, key: &'a KeyField, known: &'a KeyKnown, now: Option<EventTime>) -> Shown<'a> {
    let router = |router: &'a RouterKnown| Router {
        id: &router.id,
        epoch: router.applied.epoch,
        seq: router.applied.seq,
        acknowledged: router.acknowledged,
        refusal: router.refusal.as_deref(),
    };
    Shown {
        keyspace,
        key,
        leader: known.leads,
        plan: known.plan.as_ref().map(|entry| of(entry.version, entry.log_time, &entry.record)),
        routers: known.routers.iter().map(router).collect(),
        backfill: known.backfill.as_ref(),
        retired: known.retired.as_ref(),
        policy: known.policy.as_ref().map(|entry| Ruled {
            epoch: entry.version.epoch,
            seq: entry.version.seq,
            stands: stands(&entry.policy, now),
            record: &entry.policy,
        }),
        advice: known.advice.as_ref().map(|entry| of(entry.version, None, advised(&entry.advice))),
        hindrance: known.hindrance.map(|hindrance| Hindered { reason: hindrance.label(), text: hindrance.to_string() }),
    }
}

fn of<T>(version: Version, log_time: Option<EventTime>, record: T) -> Of<T> {
    let Version { epoch, seq } = version;
    Of { epoch, seq, log_time: log_time.map(EventTime::to_rfc3339), record }
}

fn advised(advice: &Advice) -> Advised<'_> {
    Advised { action: advice.action.label(), reason: &advice.reason, decided_at: &advice.decided_at }
}
