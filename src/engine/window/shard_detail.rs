//! What is known of a shard that is at least half hot: the keys behind it, and how many of them are new.
//!
//! Two generations of one longest window each, as of a key; of a busy shard a sample of the events is looked at.

use std::sync::Arc;

use super::frequent::{Frequent, ranked};
use super::sampler::Generations;
use crate::input::DEFAULT_MAX_KEY_BYTES;
use crate::units::Estimate;

/// Keys kept a shard and generation: a key with more than one event in so many is listed.
pub(crate) const MAX_SHARD_KEYS: usize = 64;

#[derive(Debug, Clone, Default)]
struct Generation {
    keys: Frequent<Vec<u8>, MAX_SHARD_KEYS>,
    events: u64,
    /// Events of keys whose first event is known.
    dated: u64,
    /// Of these, events of keys that were first seen less than a longest window ago.
    fresh: u64,
}

/// Detail of one shard.
#[derive(Debug, Clone)]
pub(crate) struct ShardDetail {
    wait: u32,
    generations: Generations<Generation>,
}

impl ShardDetail {
    /// The most bytes that one detail takes, keys being no longer than usual.
    pub(crate) const MAX_BYTES: u64 =
        2 * (size_of::<Generation>() + (24 + DEFAULT_MAX_KEY_BYTES) * MAX_SHARD_KEYS) as u64 + 64;

    /// Nothing known yet.
    pub(crate) fn new(seed: u64, generation: i64) -> Self {
        Self { wait: 1, generations: Generations::new(seed, generation) }
    }

    /// Notes one event of the shard. `generation` is the number of the longest window's length that event time is in; `is_fresh` says
    /// whether the key was first seen less than a longest window ago, where that is known.
    pub(crate) fn add(&mut self, generation: i64, hash: u64, key: &[u8], is_fresh: Option<bool>) {
        self.generations.turn_to(generation);
        let current = &mut self.generations.current;
        current.dated += u64::from(is_fresh.is_some());
        current.fresh += u64::from(is_fresh == Some(true));
        self.wait -= 1;
        if self.wait == 0 {
            current.events += 1;
            current.keys.add(hash, |own| key.clone_into(own));
            self.wait = self.generations.next();
        }
    }

    /// Events that were looked at: those of keys are of these.
    pub(crate) const fn events(&self) -> u64 {
        self.generations.current.events + self.generations.previous.events
    }

    /// Keys, the busiest first.
    pub(crate) fn keys(&self) -> Vec<(Arc<[u8]>, Estimate)> {
        ranked([&self.generations.current.keys, &self.generations.previous.keys])
    }

    /// Events of keys whose first event is known, and of these the events of new keys.
    pub(crate) const fn front(&self) -> (u64, u64) {
        (
            self.generations.current.dated + self.generations.previous.dated,
            self.generations.current.fresh + self.generations.previous.fresh,
        )
    }
}
