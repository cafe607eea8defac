//! The log line of a verdict: the comparison, and what lies behind it.

use std::sync::Arc;

use tracing::field::{DisplayValue, display};
use tracing::info;

use super::display::{KeyDisplay, MAX_LOG_CHARS, escape};
use crate::engine::{Change, KeyProfile, Profile, ShardCause, ShardProfile, Subject, Verdict};
use crate::units::{Estimate, ShareBounds};

/// Writes the line. Keys and callers are shown as configured, shards escaped.
pub(super) fn log(verdict: &Verdict, keyspace: &str, shown: KeyDisplay, suppressed: u64) {
    match &verdict.subject {
        Subject::Key(key) => {
            let profile = match &verdict.profile {
                Profile::Key(profile) => Some(&**profile),
                Profile::Shard(_) => None,
            };
            log_key(verdict, keyspace, &shown.text(key, MAX_LOG_CHARS), profile, shown, suppressed);
        }
        Subject::Shard(shard) => {
            let profile = match &verdict.profile {
                Profile::Shard(profile) => Some(&**profile),
                Profile::Key(_) => None,
            };
            log_shard(verdict, keyspace, &escape(shard, MAX_LOG_CHARS), profile, shown, suppressed);
        }
    }
}

fn log_key(
    verdict: &Verdict,
    keyspace: &str,
    name: &str,
    profile: Option<&KeyProfile>,
    shown: KeyDisplay,
    suppressed: u64,
) {
    let (change, reason) = (word(verdict.change), &verdict.reason);
    let (rule, window, count, median) = (reason.rule.label(), reason.window, reason.count, reason.median.map(display));
    let operations = profile.map(|profile| profile.operations);
    let (reads, writes) = (operations.map(|all| all.reads), operations.map(|all| all.writes));
    let first = |names: &[(Arc<[u8]>, Estimate)]| names.first().cloned();
    let shard = profile.and_then(|profile| first(&profile.shards));
    let caller = profile.and_then(|profile| first(&profile.callers));
    let share = |first: &Option<(Arc<[u8]>, Estimate)>| share(first.as_ref()?.1, profile?.sampled);
    let (shard_share, caller_share) = (share(&shard), share(&caller));
    let shard = shard.map(|(shard, _)| escape(&shard, MAX_LOG_CHARS));
    let caller = caller.map(|(caller, _)| shown.text(&caller, MAX_LOG_CHARS));
    info!(
        keyspace, subject = "key", name, change, rule, %window, %count, threshold = reason.threshold,
        median, keys = %reason.subjects, reads, writes, weight = profile.map(|profile| profile.weight),
        shard, shard_share, caller, caller_share, since = profile.map(|profile| display(profile.since)),
        at = %verdict.at, suppressed, "key {change}"
    );
}

fn log_shard(
    verdict: &Verdict,
    keyspace: &str,
    name: &str,
    profile: Option<&ShardProfile>,
    shown: KeyDisplay,
    suppressed: u64,
) {
    let (change, reason) = (word(verdict.change), &verdict.reason);
    let (rule, window, count, median) = (reason.rule.label(), reason.window, reason.count, reason.median.map(display));
    let cause = profile.and_then(|profile| profile.cause).map(ShardCause::label);
    let first = profile.and_then(|profile| profile.keys.first());
    let key = first.map(|(key, _)| shown.text(key, MAX_LOG_CHARS));
    let key_share = first.and_then(|(_, events)| share(*events, profile?.sampled));
    info!(
        keyspace, subject = "shard", name, change, rule, %window, %count, threshold = reason.threshold,
        median, shards = %reason.subjects, cause, key, key_share, at = %verdict.at, suppressed, "shard {change}"
    );
}

const fn word(change: Change) -> &'static str {
    match change {
        Change::Suspect => "suspect",
        Change::Hot => "hot",
        Change::Cleared => "cleared",
    }
}

fn share(events: Estimate, sampled: u64) -> Option<DisplayValue<ShareBounds>> {
    (sampled > 0).then(|| display(events.share_of(sampled)))
}
