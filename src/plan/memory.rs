//! What the planner remembers between decisions. All of it may be lost: a new leader begins without, and only waits a little longer.

use std::collections::BTreeMap;

use super::view::View;
use crate::protocol::{PlanEntry, PlanKey, State, Version};
use crate::units::{EventTime, Span};

/// How long a key rests after a router has refused its plan.
const REFUSED_REST: Span = Span::from_secs(3600);
/// The first wait before a hold is tried again; it doubles each time.
const HOLD_RETRY: Span = Span::from_secs(60);
/// The wait doubles so many times at the most: 32 minutes.
const MAX_DOUBLINGS: u32 = 5;
/// The most keys that rest since their proposal was removed by command; more do not rest.
const MAX_TAKEN_BACK: usize = 1000;

/// What was seen, and since when.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    newest: BTreeMap<PlanKey, Seen>,
    cool_since: BTreeMap<PlanKey, EventTime>,
    small_since: BTreeMap<PlanKey, EventTime>,
    taken_back: BTreeMap<PlanKey, EventTime>,
}

/// The newest record of a key and what its migration has been through.
#[derive(Debug, Clone, Copy)]
struct Seen {
    version: Version,
    state: State,
    migration: Version,
    since: EventTime,
    holds_turned_back: u32,
    hold_not_before: EventTime,
    refused_at: Option<EventTime>,
}

impl Memory {
    /// Takes in the world of this moment.
    pub(super) fn observe(&mut self, view: &View<'_>) {
        let table = view.world.table;
        self.taken_back.retain(|_, at| view.now.since(*at) < view.budget.min_dwell);
        self.newest.retain(|key, _| table.plan(key).is_some());
        for (key, entry) in table.plans() {
            let seen = self.newest.get(key).copied();
            let seen = Seen::after(seen, entry, view.now);
            let refused = entry.record.state == State::Prepare && view.world.acks.refusal(key, entry.version).is_some();
            let refused_at = if refused { Some(view.now) } else { seen.refused_at };
            self.newest.insert(key.clone(), Seen { refused_at, ..seen });
        }
        let (now, trusted) = (view.now, view.world.condition.is_settled());
        self.cool_since.retain(|key, _| table.plan(key).is_some() || table.advice(key).is_some());
        for key in table.plans().map(|(key, _)| key).chain(table.advised().map(|(key, _)| key)) {
            // A suspect may be hot: only what is neither counts as cool, and only while all of it is counted.
            since(&mut self.cool_since, key, now, trusted && view.heat(key).is_none());
        }
        self.small_since.retain(|key, _| table.plan(key).is_some());
        for (key, entry) in table.plans() {
            since(&mut self.small_since, key, now, trusted && view.fits_in_half(key, &entry.record));
        }
    }

    /// When the newest record of a key was first seen.
    pub(super) fn seen_at(&self, key: &PlanKey) -> Option<EventTime> {
        self.newest.get(key).map(|seen| seen.since)
    }

    /// True when a hold of the key may be tried: after one was turned back, 1, 2, 4 … minutes later.
    pub(super) fn may_hold(&self, key: &PlanKey, now: EventTime) -> bool {
        self.newest.get(key).is_none_or(|seen| now >= seen.hold_not_before)
    }

    /// True while the key rests since a router has refused its plan.
    pub(super) fn rests(&self, key: &PlanKey, now: EventTime) -> bool {
        self.newest.get(key).and_then(|seen| seen.refused_at).is_some_and(|at| now.since(at) < REFUSED_REST)
    }

    /// A proposal was removed by command, which leaves no record behind: the key is not proposed again at once.
    pub(super) fn take_back(&mut self, key: &PlanKey, now: EventTime) {
        if self.taken_back.len() < MAX_TAKEN_BACK {
            self.taken_back.insert(key.clone(), now);
        }
    }

    /// True for the time of a dwell after the key's proposal was removed by command.
    pub(super) fn was_taken_back(&self, key: &PlanKey) -> bool {
        self.taken_back.contains_key(key)
    }

    /// For how long the key has been neither hot nor suspect, without a gap.
    pub(super) fn cool_for(&self, key: &PlanKey, now: EventTime) -> Option<Span> {
        self.cool_since.get(key).map(|since| now.since(*since))
    }

    /// For how long half of the key's buckets would have been enough, without a gap.
    pub(super) fn small_for(&self, key: &PlanKey, now: EventTime) -> Option<Span> {
        self.small_since.get(key).map(|since| now.since(*since))
    }
}

impl Seen {
    fn after(before: Option<Self>, entry: &PlanEntry, now: EventTime) -> Self {
        let record = &entry.record;
        let fresh = Self {
            version: entry.version,
            state: record.state,
            migration: record.migration.version,
            since: now,
            holds_turned_back: 0,
            hold_not_before: EventTime::MIN,
            refused_at: before.and_then(|before| before.refused_at),
        };
        match before {
            Some(before) if before.version == fresh.version => before,
            Some(before) if before.migration == fresh.migration => {
                let mut seen = Self { state: fresh.state, version: fresh.version, since: now, ..before };
                if before.state == State::Hold && seen.state == State::Prepare {
                    let wait = HOLD_RETRY.saturating_mul(1 << before.holds_turned_back.min(MAX_DOUBLINGS));
                    seen.holds_turned_back += 1;
                    seen.hold_not_before = now.saturating_add(wait);
                }
                seen
            }
            _ => fresh,
        }
    }
}

fn since(times: &mut BTreeMap<PlanKey, EventTime>, key: &PlanKey, now: EventTime, holds: bool) {
    if !holds {
        times.remove(key);
    } else if !times.contains_key(key) {
        times.insert(key.clone(), now);
    }
}
