//! What a replay prints: one value a decision, and a summary.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use serde::Serialize;

use crate::engine::{Change, KeyProfile, Profile, ShardCause, ShardProfile, Subject, Verdict};
use crate::plan::{MapperCheck, Operation};
use crate::protocol::{Evidence, Layout, PlanKey};
use crate::units::{Estimate, EventTime, Share, ShareBounds};

/// One decision; fields without a value are left out of its JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decision {
    /// Event time of the decision, milliseconds since the epoch.
    pub at: i64,
    /// `suspect`, `hot`, `cleared`, `shard_suspect`, `shard_hot`, `shard_cleared`, `plan` or `advice`.
    pub event: &'static str,
    /// Name of the keyspace.
    pub keyspace: String,
    /// The key, when it is about one that is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The key in base64, when it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_b64: Option<String>,
    /// The shard: the one that it is about, or of a plan the one that served most of the key. Escaped where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// Kind of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Length of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<u64>,
    /// What the count was compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u64>,
    /// The count is at least this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower: Option<u64>,
    /// The count is at most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper: Option<u64>,
    /// What is known of the median over active keys, or known shards; of a plan its upper bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median: Option<Estimate>,
    /// Number of active keys, or of known shards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub among: Option<Estimate>,
    /// Of a verdict: what lies behind it.
    #[serde(flatten)]
    pub behind: Option<Behind>,
    /// Of a plan the state of its migration, or `removed`; of advice `given` or `withdrawn`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// Of a plan the layout that is entered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// Of advice what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<&'static str>,
    /// Of advice why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Decision {
    fn empty(at: EventTime, event: &'static str, keyspace: &str) -> Self {
        Self {
            at: at.as_millis(),
            event,
            keyspace: keyspace.to_owned(),
            key: None,
            key_b64: None,
            shard: None,
            rule: None,
            window_ms: None,
            threshold: None,
            lower: None,
            upper: None,
            median: None,
            among: None,
            behind: None,
            state: None,
            layout: None,
            action: None,
            reason: None,
        }
    }

    /// The decision behind a verdict of the keyspace with this name.
    #[must_use]
    pub fn of_verdict(verdict: &Verdict, keyspace: &str) -> Self {
        let event = match (&verdict.subject, verdict.change) {
            (Subject::Key(_), Change::Suspect) => "suspect",
            (Subject::Key(_), Change::Hot) => "hot",
            (Subject::Key(_), Change::Cleared) => "cleared",
            (Subject::Shard(_), Change::Suspect) => "shard_suspect",
            (Subject::Shard(_), Change::Hot) => "shard_hot",
            (Subject::Shard(_), Change::Cleared) => "shard_cleared",
        };
        let reason = verdict.reason;
        let mut decision = Self {
            rule: Some(reason.rule.label().to_owned()),
            window_ms: Some(reason.window.as_millis()),
            threshold: Some(reason.threshold),
            lower: Some(reason.count.lower),
            upper: Some(reason.count.upper),
            median: reason.median,
            among: Some(reason.subjects),
            behind: Some(match &verdict.profile {
                Profile::Key(profile) => Behind::Key(KeyBehind::of(profile)),
                Profile::Shard(profile) => Behind::Shard(ShardBehind::of(profile)),
            }),
            ..Self::empty(verdict.at, event, keyspace)
        };
        match &verdict.subject {
            Subject::Key(key) => decision.set_key(key),
            Subject::Shard(shard) => decision.shard = Some(text_of(shard)),
        }
        decision
    }

    /// The decision behind an operation of the planner.
    #[must_use]
    pub fn of_operation(operation: &Operation, at: EventTime) -> Self {
        match operation {
            Operation::Put(record) => {
                let mut decision = Self {
                    state: Some(record.state.label()),
                    layout: Some(record.migration.to),
                    ..Self::empty(at, "plan", &record.keyspace)
                };
                decision.set_key(&record.key.0);
                decision.set_evidence(&record.evidence);
                decision
            }
            Operation::Remove(key) => Self::of_key(at, "plan", key, "removed"),
            Operation::Advise(advice) => {
                let mut decision = Self {
                    state: Some("given"),
                    action: Some(advice.action.label()),
                    reason: Some(advice.reason.clone()),
                    ..Self::empty(at, "advice", &advice.keyspace)
                };
                decision.set_key(&advice.key.0);
                decision.set_evidence(&advice.evidence);
                decision
            }
            Operation::Unadvise(key) => Self::of_key(at, "advice", key, "withdrawn"),
            Operation::SetPolicy(policy) => Self::of_key(at, "policy", &policy.plan_key(), "given"),
            Operation::RemovePolicy(key) => Self::of_key(at, "policy", key, "withdrawn"),
        }
    }

    fn of_key(at: EventTime, event: &'static str, key: &PlanKey, state: &'static str) -> Self {
        let mut decision = Self { state: Some(state), ..Self::empty(at, event, &key.keyspace) };
        decision.set_key(&key.key);
        decision
    }

    fn set_key(&mut self, key: &[u8]) {
        (self.key, self.key_b64) = exact_text(key);
    }

    fn set_evidence(&mut self, evidence: &Evidence) {
        self.rule = Some(evidence.rule.clone());
        self.window_ms = Some(evidence.window_ms);
        self.threshold = Some(evidence.threshold);
        (self.lower, self.upper) = (Some(evidence.count.lower), Some(evidence.count.upper));
        self.median = evidence.median.map(|upper| Estimate { lower: 0, upper });
        self.shard.clone_from(&evidence.shard);
    }
}

/// What lies behind the heat of a key or a shard.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Behind {
    /// The requests on a key.
    Key(KeyBehind),
    /// The keys of a shard.
    Shard(ShardBehind),
}

/// The most shards and callers that a decision on a key lists, the busiest first.
pub const MAX_LISTED: usize = 4;

/// The requests on a key, counted since it became a candidate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeyBehind {
    /// Event time since when they are counted, milliseconds since the epoch.
    pub since: i64,
    /// Point reads in the longest window.
    pub reads: u64,
    /// Writes and deletes.
    pub writes: u64,
    /// Scans.
    pub scans: u64,
    /// Events whose operation is not known.
    pub unknown: u64,
    /// Sum of the weights.
    pub weight: u64,
    /// Events that were looked at closely: shares are of these.
    pub sampled: u64,
    /// The busiest shards.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<PartOf>,
    /// The busiest callers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<PartOf>,
}

/// The keys behind a shard.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShardBehind {
    /// Why it is hot: `one_key`, `few_keys`, `moving_front`, `broad`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<&'static str>,
    /// Events that were looked at closely: shares are of these.
    pub sampled: u64,
    /// The busiest keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<PartOf>,
    /// Share of events on keys that are new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fresh: Option<Share>,
}

/// A name, and its part of the events that were looked at closely.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartOf {
    /// A key, shard or caller that is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// One that is not, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_b64: Option<String>,
    /// Its part.
    pub share: ShareBounds,
}

impl KeyBehind {
    fn of(profile: &KeyProfile) -> Self {
        let listed = |names: &[(Arc<[u8]>, Estimate)]| parts(names, MAX_LISTED, profile.sampled);
        Self {
            since: profile.since.as_millis(),
            reads: profile.operations.reads,
            writes: profile.operations.writes,
            scans: profile.operations.scans,
            unknown: profile.operations.unknown,
            weight: profile.weight,
            sampled: profile.sampled,
            shards: listed(&profile.shards),
            callers: listed(&profile.callers),
        }
    }
}

impl ShardBehind {
    fn of(profile: &ShardProfile) -> Self {
        Self {
            cause: profile.cause.map(ShardCause::label),
            sampled: profile.sampled,
            keys: parts(&profile.keys, usize::MAX, profile.sampled),
            fresh: profile.fresh,
        }
    }
}

fn parts(names: &[(Arc<[u8]>, Estimate)], most: usize, sampled: u64) -> Vec<PartOf> {
    let part = |(name, events): &(Arc<[u8]>, Estimate)| {
        let (name, name_b64) = exact_text(name);
        PartOf { name, name_b64, share: events.share_of(sampled) }
    };
    names.iter().take(most).map(part).collect()
}

/// The bytes as text, or else in base64.
fn exact_text(bytes: &[u8]) -> (Option<String>, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(base64::engine::general_purpose::STANDARD.encode(bytes))),
    }
}

fn text_of(bytes: &[u8]) -> String {
    std::str::from_utf8(bytes).map_or_else(|_| bytes.escape_ascii().to_string(), str::to_owned)
}

/// What a replay came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// `summary`.
    pub event: &'static str,
    /// Records that were read: those refused, too late, future and counted together.
    pub read: u64,
    /// Events that were counted.
    pub counted: u64,
    /// Records that are no event, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Events older than every window.
    pub too_late: u64,
    /// Events too far ahead of the clock.
    pub future: u64,
    /// Distinct keys, of all keyspaces together.
    pub keys: Estimate,
    /// Distinct keys that were ever hot, of all keyspaces together.
    pub flagged: u64,
    /// Time of the first and of the newest counted event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<[i64; 2]>,
    /// Each keyspace by itself.
    pub keyspaces: Vec<KeyspaceSummary>,
}

/// What a replay came to in one keyspace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeyspaceSummary {
    /// Its name.
    pub keyspace: String,
    /// Distinct keys.
    pub keys: Estimate,
    /// Distinct keys that were ever hot.
    pub flagged: u64,
    /// Distinct keys that were ever suspect and never hot.
    pub suspected: u64,
    /// Keys beyond the limit that are in neither number.
    pub flagged_cut: u64,
    /// Counted events without a key here.
    pub without_key: u64,
    /// When keys found no room: those with at most this count may have been missed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall_above: Option<u64>,
    /// Verdicts that were lost because more came at once than are kept.
    pub verdicts_cut: u64,
    /// Where a mapper is declared: whether events were where it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapper: Option<MapperSummary>,
}

/// A declared mapper, held against where events were served.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MapperSummary {
    /// Events that were looked at.
    pub checked: u64,
    /// Of these, those that were served elsewhere than it says.
    pub elsewhere: u64,
    /// Share of those among the last that were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mismatch: Option<f64>,
    /// `unchecked`, `confirmed` or `refuted`: by a refuted mapper nothing is placed.
    pub trust: &'static str,
}

impl MapperSummary {
    pub(super) fn of(check: &MapperCheck) -> Self {
        Self {
            checked: check.checked(),
            elsewhere: check.elsewhere(),
            mismatch: check.share(),
            trust: check.trust().label(),
        }
    }
}
