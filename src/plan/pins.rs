//! What operators have set for keys, as it is obeyed: a pinned key is split to its number of buckets, hot or not, and a blocked one
//! stays as it is.
//!
//! A pin rests on no count: it is begun from a cold window and without anybody's approval. It keeps to all that guards the store and
//! the topic: the freeze, the budget, the dwell between changes of a key, growth by doubling and shrinking by halving.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::beginning::{Beginning, Change};
use super::evidence;
use super::hindrance::Hindrance;
use super::migration::Standing;
use super::operation::Operation;
use super::placement::{self, Place, Placement};
use super::running::Running;
use super::settings::{Merge, Mode, PlanSettings};
use super::view::View;
use crate::protocol::{Evidence, Layout, PlanEntry, PlanKey, PlanRecord, Policy, Prediction};
use crate::units::Span;

/// The rule of evidence of a migration that an operator's pin began.
pub(super) const PINNED: &str = "pinned";
/// The rule of evidence of a migration that an operator's withdrawal began.
pub(super) const WITHDRAWN: &str = "withdrawn";
/// The rule of evidence of a migration that the end of a pin began: nothing but the operator's word had kept the split.
pub(super) const UNPINNED: &str = "unpinned";
/// A pin stays on the topic for so long after its end.
const KEPT_AFTER: Span = Span::from_secs(86_400);

impl View<'_> {
    /// What an operator has set for the key.
    pub(super) fn policy(&self, key: &PlanKey) -> Option<&Policy> {
        self.world.table.policy(key).map(|entry| &entry.policy)
    }

    /// The number of buckets that the key is pinned to at this time.
    pub(super) fn pinned(&self, key: &PlanKey) -> Option<u32> {
        self.policy(key)?.pin.as_ref().filter(|pin| pin.lasts_at(self.now)).map(|pin| pin.buckets)
    }

    /// True when the planner leaves the key as it is.
    pub(super) fn is_blocked(&self, key: &PlanKey) -> bool {
        self.policy(key).is_some_and(|policy| policy.block)
    }

    /// Whether an operator's word ends a migration that may still be turned round, or keeps it; none where heat decides.
    pub(super) fn ruled_out(&self, key: &PlanKey, record: &PlanRecord) -> Option<bool> {
        let (from, to) = (record.migration.from.buckets(), record.migration.to.buckets());
        if let Some(pinned) = self.pinned(key) {
            Some(towards(from, pinned) != Some(to))
        } else if record.evidence.rule == WITHDRAWN {
            Some(false)
        } else {
            // What goes back goes on: a block that came with the withdrawal would else undo it.
            self.is_blocked(key).then_some(to > from)
        }
    }

    /// Pins that have been over for long: nobody asks any more what they were.
    pub(super) fn pins_of_the_past(&self) -> impl Iterator<Item = Operation> {
        let long_ago = self.now.saturating_sub(KEPT_AFTER);
        let policies = self.world.table.policies();
        let past =
            policies.filter(move |(_, entry)| entry.policy.pin.as_ref().is_some_and(|pin| pin.is_over_at(long_ago)));
        past.map(|(key, _)| Operation::RemovePolicy(key.clone()))
    }
}

/// The number of buckets that comes next on the way from `current` to `pinned`; none once it is there.
const fn towards(current: u32, pinned: u32) -> Option<u32> {
    if current == pinned {
        None
    } else if current == 1 {
        Some(pinned)
    } else if current < pinned {
        Some(current.saturating_mul(2))
    } else {
        Some(current / 2)
    }
}

impl Beginning<'_> {
    /// The one migration that a pin begins next.
    pub(super) fn pinned(
        &self,
        running: &Running<'_>,
        rested: &BTreeSet<PlanKey>,
        hindrances: &mut BTreeMap<PlanKey, Hindrance>,
    ) -> Option<Operation> {
        let view = self.view;
        let mut begun = None;
        for key in view.world.table.policies().map(|(key, _)| key) {
            let Some((pinned, settings)) = view.pinned(key).zip(view.settings(key)) else { continue };
            let entry = view.world.table.plan(key);
            if entry.is_some() && !rested.contains(key) {
                continue;
            }
            let Some(standing) = Standing::of(entry.map(|entry| &entry.record)) else { continue };
            let Some(buckets) = towards(standing.write.buckets(), pinned) else { continue };
            let outcome = match self.pin_hindrance(key, entry, settings, (standing.write, buckets), running) {
                Some(hindrance) => Err(hindrance),
                None if begun.is_none() => {
                    let record = entry.map(|entry| &entry.record);
                    self.first_record(key, settings, record, &standing, Change::Pin(buckets))
                        .map(|operation| begun = Some(operation))
                }
                None => Ok(()),
            };
            if let Err(hindrance) = outcome {
                hindrances.insert(key.clone(), hindrance);
            }
        }
        begun
    }

    /// What keeps a pin from being carried out now.
    fn pin_hindrance(
        &self,
        key: &PlanKey,
        entry: Option<&PlanEntry>,
        settings: &PlanSettings,
        (from, to): (Layout, u32),
        running: &Running<'_>,
    ) -> Option<Hindrance> {
        let view = self.view;
        if settings.mode == Mode::Observe {
            Some(Hindrance::Observed)
        } else if view.budget.freeze {
            Some(Hindrance::Frozen)
        } else if settings.is_listed(&key.key) {
            Some(Hindrance::Listed)
        } else if settings.merge == Merge::None && to > from.buckets() {
            Some(Hindrance::OneObject)
        } else if to > settings.max_buckets {
            Some(Hindrance::PinnedAbove { buckets: to, most: settings.max_buckets })
        } else {
            self.unripe(key, entry, running)
                .or_else(|| view.over_budget(Mode::Auto, from.is_bare(), to < from.buckets()).map(Hindrance::Budget))
        }
    }

    /// Where the buckets of a key go of which nothing is known: spread over the shards as if it brought as much load as all of them
    /// carry. What that is expected to do cannot be said beyond an even spread.
    pub(super) fn foreseen(&self, key: &PlanKey, current: Layout, buckets: u32) -> (u32, Prediction) {
        let even = 1.0 / f64::from(buckets);
        let shares = vec![even; buckets as usize];
        let (mapper, shards) = self.view.store(key);
        let own: [(Arc<[u8]>, u64); 1] = [(Arc::from([]), shards.iter().map(|shard| shard.count.upper).sum())];
        let place = Place { mapper, key: &key.key, shares: &shares, shards, own: &own };
        let first = if current.is_bare() {
            let Placement { first, .. } = placement::search(&place);
            first
        } else {
            current.first()
        };
        let prediction = Prediction {
            hottest_bucket_share: even,
            hottest_shard_before: None,
            hottest_shard_after: None,
            added_load: 0.0,
        };
        (first, prediction)
    }
}

/// The numbers behind a pin: those of a hot key; of any other none, over a window without length.
pub(super) fn evidence_of_pin(view: &View<'_>, key: &PlanKey) -> Evidence {
    let numbers = match view.hot(key) {
        Some(hot) => evidence::of(hot, view.world),
        None => evidence::of_nothing(view.world),
    };
    Evidence { rule: PINNED.to_owned(), ..numbers }
}

/// The rule behind the withdrawal of a key that is not hot, of what its split rested on.
pub(super) fn rule_after(split_by: &str) -> &str {
    if matches!(split_by, PINNED | WITHDRAWN) { UNPINNED } else { split_by }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_reached_by_one_split_and_by_doubling_or_halving() {
        assert_eq!(towards(1, 16), Some(16));
        assert_eq!(towards(4, 16), Some(8));
        assert_eq!(towards(16, 4), Some(8));
        assert_eq!(towards(16, 16), None);
    }

    #[test]
    fn what_an_operator_began_does_not_lend_its_rule() {
        assert_eq!(rule_after(WITHDRAWN), UNPINNED);
        assert_eq!(rule_after("share"), "share");
    }
}
