//! Why a shard is hot, and the keys behind it.

use super::super::rules::Seen;
use super::super::verdict::{MAX_LISTED_SHARD_KEYS, ShardCause, ShardProfile};
use super::super::window::{Shard, ShardDetail};
use super::counting::Keyspace;
use crate::units::Share;

/// Keys that are few.
const FEW: usize = 16;
/// Part of what has to go that one key, or a few, must make.
const HALF: f64 = 0.5;
/// Share of events on new keys that makes a moving front.
const FRONT: f64 = 0.8;
/// Fewer events of keys whose first event is known say nothing of a front.
const MIN_DATED: u64 = 30;
/// What is new is known when the engine has watched so many longest windows.
const WATCHED_WINDOWS: i64 = 2;

impl Keyspace {
    /// The keys behind a shard, and why it is hot.
    pub(super) fn shard_profile(&self, shard: &Shard) -> ShardProfile {
        let Some(detail) = shard.detail.as_deref() else {
            return ShardProfile { cause: None, sampled: 0, keys: Vec::new(), fresh: None };
        };
        let mut keys = detail.keys();
        let fresh = self.fresh(detail);
        let cause = self.cause(shard, detail.events(), keys.iter().map(|(_, events)| events.lower), fresh);
        keys.truncate(MAX_LISTED_SHARD_KEYS);
        ShardProfile { cause, sampled: detail.events(), keys, fresh }
    }

    fn fresh(&self, detail: &ShardDetail) -> Option<Share> {
        let (dated, fresh) = detail.front();
        let watched_ms = self.timeline.head_from_ms().saturating_sub(self.started_ms);
        let is_old = watched_ms >= WATCHED_WINDOWS * self.timeline.longest().window_ms();
        (is_old && dated >= MIN_DATED).then(|| Share::new(part(fresh, dated)).unwrap_or_default())
    }

    /// What has to go for the shard to cool is its count above the clear level: at the moment when it is raised nothing is above the
    /// threshold itself.
    fn cause(
        &self,
        shard: &Shard,
        sampled: u64,
        keys: impl Iterator<Item = u64>,
        fresh: Option<Share>,
    ) -> Option<ShardCause> {
        if sampled == 0 {
            return None;
        }
        let seen = Seen { counts: shard.tally.head(), events: self.head_events };
        let reason = shard.heat.reason(&self.shard_levels, &seen);
        let count = reason.count.lower.max(1);
        let clear = self.calm.level(reason.threshold).min(count - 1);
        let needed = part(count - clear, count) * HALF;
        let mut lowers: Vec<u64> = keys.collect();
        lowers.sort_unstable_by(|a, b| b.cmp(a));
        let makes = |number: usize| part(lowers.iter().take(number).sum(), sampled) >= needed;
        Some(if makes(1) {
            ShardCause::OneKey
        } else if makes(FEW) {
            ShardCause::FewKeys
        } else if fresh.is_some_and(|fresh| fresh.as_f64() >= FRONT) {
            ShardCause::MovingFront
        } else {
            ShardCause::Broad
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn part(count: u64, all: u64) -> f64 {
    count as f64 / all.max(1) as f64
}
