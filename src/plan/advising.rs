//! Advice: what to do where buckets are not the cure, or not enough of one.

use std::collections::BTreeMap;

use super::evidence;
use super::memory::Memory;
use super::operation::Operation;
use super::settings::{Merge, Mode, PlanSettings};
use super::sizing::{self, Cause, Load, Sizing};
use super::view::{View, is_within};
use crate::engine::HotKey;
use crate::protocol::{Action, Advice, KeyField, PlanKey, SCHEMA};

/// From this share of reads and scans on, caching or replicas help and buckets do not.
const MOSTLY_READS: f64 = 0.9;
/// From this share of requests on, one caller makes the heat.
const ONE_CALLER: f64 = 0.9;

/// True when at least nine in ten requests read.
pub(super) fn is_mostly_reads(load: &Load<'_>) -> bool {
    load.read_share() >= MOSTLY_READS
}

/// True when one caller, other than the key itself, makes the heat: without it the key would not be hot.
pub(super) fn is_one_caller(hot: &HotKey) -> bool {
    busiest_caller(hot).is_some_and(|(_, share)| {
        let rest = hot.reason.count.upper as f64 * (1.0 - share);
        share >= ONE_CALLER && rest < hot.reason.threshold as f64
    })
}

/// The busiest caller and the least share that it makes; none where callers are not known, or where the key is the caller.
fn busiest_caller(hot: &HotKey) -> Option<(&[u8], f64)> {
    let (caller, count) = hot.profile.callers.first().filter(|(caller, _)| !caller.is_empty() && *caller != hot.key)?;
    (hot.profile.sampled > 0).then(|| (&**caller, count.lower as f64 / hot.profile.sampled as f64))
}

/// What to advise on a hot key, and why.
pub(super) fn advice_on(hot: &HotKey, settings: &PlanSettings) -> Option<(Action, String)> {
    let load = Load::at_peak(hot);
    let rate = hot.peak.as_per_second();
    if is_mostly_reads(&load) {
        let percent = load.read_share() * 100.0;
        let reason = format!(
            "{percent:.1}% of {rate:.1} requests/s read: a cache or replicas take them; a cached read may be older than the last write"
        );
        return Some((Action::CacheOrReplicate, reason));
    }
    if settings.merge == Merge::None {
        let caller = busiest_caller(hot).map_or_else(String::new, |(caller, share)| {
            format!("; caller '{}' makes at least {:.1}% of them", evidence::shown(caller), share * 100.0)
        });
        let reason = format!(
            "{rate:.1} requests/s replace one object over and over: keep the last write of each moment and send only that{caller}"
        );
        return Some((Action::Coalesce, reason));
    }
    if is_one_caller(hot) {
        let (caller, share) = busiest_caller(hot).unwrap_or_default();
        let (caller, percent) = (evidence::shown(caller), share * 100.0);
        let reason = format!(
            "caller '{caller}' makes at least {percent:.1}% of {rate:.1} requests/s: without it the key is not hot"
        );
        return Some((Action::Limit, reason));
    }
    match sizing::size(&load, settings) {
        Sizing::LittleGain { cause, gain } => {
            let most = settings.max_buckets;
            Some(by_cause(cause, &format!("{most} buckets would cut the hottest part of {rate:.1} requests/s only {gain:.2} times")))
        }
        Sizing::Split(size) => size.not_enough.map(|cause| {
            let (buckets, share) = (size.buckets, size.hottest_bucket_share * 100.0);
            let limit = settings.bucket_rate.as_per_second();
            by_cause(cause, &format!("{buckets} buckets leave {share:.1}% of {rate:.1} requests/s on one of them, which may carry {limit:.1}/s"))
        }),
        Sizing::Undecided { .. } | Sizing::NoRequestIds { .. } => None,
    }
}

fn by_cause(cause: Cause, what: &str) -> (Action, String) {
    match cause {
        Cause::OneRequestId => (Action::Limit, format!("{what}: one request id makes most of it")),
        Cause::Scans => (Action::Isolate, format!("{what}: every scan visits every bucket")),
        Cause::Cap => (Action::Isolate, format!("{what}: more would be needed than are allowed")),
    }
}

/// Advice to send and to take back.
pub(super) fn operations(view: &View<'_>, memory: &Memory) -> Vec<Operation> {
    let mut operations = Vec::new();
    if !view.world.condition.is_settled() || view.budget.freeze {
        return operations;
    }
    let wanted: BTreeMap<PlanKey, (Action, String, &HotKey)> = view
        .hottest()
        .into_iter()
        .filter(|(_, _, settings)| settings.mode != Mode::Observe)
        .filter_map(|(key, hot, settings)| {
            advice_on(hot, settings).map(|(action, reason)| (key, (action, reason, hot)))
        })
        .collect();
    // Advice does not flap either: it stands for the time of a dwell before it changes.
    let dwells = |decided_at: &str| is_within(decided_at, view.now, view.budget.min_dwell);
    let mut room = view.budget.max_changes_per_minute.saturating_sub(view.advised_lately());
    for (key, (action, reason, hot)) in &wanted {
        let current = view.world.table.advice(key).map(|entry| &entry.advice);
        let stands = current.is_some_and(|advice| advice.action == *action || dwells(&advice.decided_at));
        if !stands && room > 0 {
            room -= 1;
            operations.push(Operation::Advise(Box::new(Advice {
                schema: SCHEMA,
                keyspace: key.keyspace.clone(),
                key: KeyField(key.key.clone()),
                action: *action,
                reason: reason.clone(),
                evidence: evidence::of(hot, view.world),
                decided_at: view.now.to_rfc3339(),
            })));
        }
    }
    for (key, entry) in view.world.table.advised() {
        let Some(settings) = view.settings(key) else { continue };
        let cool = memory.cool_for(key, view.now).is_some_and(|cool| cool >= settings.quiet);
        // A key that is still hot, of which all is known that was known, no longer needs the advice.
        let other = view.hot(key).is_some() && !wanted.contains_key(key) && !dwells(&entry.advice.decided_at);
        if cool || other {
            operations.push(Operation::Unadvise(key.clone()));
        }
    }
    operations
}
