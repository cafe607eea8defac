//! What is known of a key that is at least half hot: its shards, its callers, and the load of the buckets it would have.
//!
//! Two generations of one longest window each: the answer covers the last one to two windows.

use std::sync::Arc;

use super::super::verdict::BUCKET_COUNTERS;
use crate::input::Operation;
use crate::protocol::{bucket_hash, plan_seed};

/// Shards kept a key.
pub(crate) const MAX_KEY_SHARDS: usize = 16;
/// Callers kept a key.
pub(crate) const MAX_KEY_CALLERS: usize = 8;
/// The longest caller kept; of a longer one only so many bytes are.
pub(crate) const MAX_CALLER_BYTES: usize = 256;

/// What one event says of the request behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// What it did.
    pub(crate) operation: Operation,
    /// How much it counts for in weighted measures.
    pub(crate) weight: u64,
    /// The shard's name as it is known, with its hash.
    pub(crate) shard: Option<(u64, &'a Arc<[u8]>)>,
    /// Empty when unknown.
    pub(crate) caller: &'a [u8],
    /// Empty when there is none.
    pub(crate) id: &'a [u8],
}

/// The most frequent of a stream of names, by Space-Saving (Metwally and others, 2005): a count is too high by at most the
/// least count kept.
#[derive(Debug, Clone, Default)]
struct Frequent(Vec<(u64, Arc<[u8]>, u64)>);

impl Frequent {
    fn add(&mut self, room: usize, hash: u64, name: impl FnOnce() -> Arc<[u8]>) {
        if let Some(at) = self.0.iter().position(|entry| entry.0 == hash) {
            self.0[at].2 += 1;
            // Frequent names drift to the front, where they are found first.
            if at > 0 && self.0[at].2 > self.0[at - 1].2 {
                self.0.swap(at, at - 1);
            }
        } else if self.0.len() < room {
            self.0.push((hash, name(), 1));
        } else if let Some(least) = self.0.iter_mut().min_by_key(|entry| entry.2) {
            *least = (hash, name(), least.2 + 1);
        }
    }
}

/// Names with counts, the busiest first.
fn merged(generations: [&Frequent; 2], room: usize) -> Vec<(Arc<[u8]>, u64)> {
    let mut all: Vec<(Arc<[u8]>, u64)> = Vec::new();
    for (_, name, count) in generations.into_iter().flat_map(|frequent| &frequent.0) {
        match all.iter_mut().find(|entry| entry.0 == *name) {
            Some(entry) => entry.1 += count,
            None => all.push((Arc::clone(name), *count)),
        }
    }
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    all.truncate(room);
    all
}

#[derive(Debug, Clone)]
struct Generation {
    shards: Frequent,
    callers: Frequent,
    buckets: Box<[u32; BUCKET_COUNTERS]>,
    without_request_id: u64,
}

impl Generation {
    fn new() -> Self {
        Self {
            shards: Frequent::default(),
            callers: Frequent::default(),
            buckets: Box::new([0; BUCKET_COUNTERS]),
            without_request_id: 0,
        }
    }
}

/// Detail of one key.
#[derive(Debug, Clone)]
pub(crate) struct Detail {
    /// Seed of the key's own plans.
    seed: u64,
    generation: i64,
    current: Generation,
    previous: Generation,
}

impl Detail {
    /// The most bytes that one detail takes.
    pub(crate) const MAX_BYTES: u64 = 2
        * (size_of::<Generation>()
            + 4 * BUCKET_COUNTERS
            + 32 * MAX_KEY_SHARDS
            + (48 + MAX_CALLER_BYTES) * MAX_KEY_CALLERS) as u64
        + 64;

    /// Nothing known yet.
    pub(crate) fn new(key: &[u8], keyspace_seed: u64, generation: i64) -> Self {
        let seed = plan_seed(key, keyspace_seed);
        Self { seed, generation, current: Generation::new(), previous: Generation::new() }
    }

    /// Counts one request. `generation` is the number of the longest window's length that event time is in.
    pub(crate) fn add(&mut self, generation: i64, request: &Request<'_>) {
        self.turn_to(generation);
        let current = &mut self.current;
        if let Some((hash, name)) = request.shard {
            current.shards.add(MAX_KEY_SHARDS, hash, || Arc::clone(name));
        }
        if let Some(caller) = request.caller.get(..request.caller.len().min(MAX_CALLER_BYTES)).filter(|c| !c.is_empty())
        {
            current.callers.add(MAX_KEY_CALLERS, bucket_hash(caller, 0), || Arc::from(caller));
        }
        // A scan visits every bucket, so it has no bucket of its own.
        if request.operation == Operation::Scan {
            return;
        }
        if request.id.is_empty() {
            current.without_request_id += 1;
        } else {
            let bucket = usize::from(bucket_hash(request.id, self.seed).to_le_bytes()[0]);
            current.buckets[bucket] = current.buckets[bucket].saturating_add(1);
        }
    }

    fn turn_to(&mut self, generation: i64) {
        if generation <= self.generation {
            return;
        }
        let old = std::mem::replace(&mut self.current, Generation::new());
        self.previous = if generation == self.generation + 1 { old } else { Generation::new() };
        self.generation = generation;
    }

    /// Shards, the busiest first.
    pub(crate) fn shards(&self) -> Vec<(Arc<[u8]>, u64)> {
        merged([&self.current.shards, &self.previous.shards], MAX_KEY_SHARDS)
    }

    /// Callers, the busiest first.
    pub(crate) fn callers(&self) -> Vec<(Arc<[u8]>, u64)> {
        merged([&self.current.callers, &self.previous.callers], MAX_KEY_CALLERS)
    }

    /// Events by the low 8 bits of the bucket hash.
    pub(crate) fn buckets(&self) -> Box<[u32; BUCKET_COUNTERS]> {
        let mut sum = self.current.buckets.clone();
        sum.iter_mut().zip(self.previous.buckets.iter()).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
        sum
    }

    /// Events that could be split and have no request id.
    pub(crate) const fn without_request_id(&self) -> u64 {
        self.current.without_request_id + self.previous.without_request_id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Layout;

    fn request<'a>(caller: &'a [u8], id: &'a [u8]) -> Request<'a> {
        Request { operation: Operation::Write, weight: 1, shard: None, caller, id }
    }

    #[test]
    fn counters_say_what_every_split_would_do() {
        let mut detail = Detail::new(b"c42", 99, 0);
        let ids: Vec<String> = (0..1000).map(|n| format!("req-{n}")).collect();
        for id in &ids {
            detail.add(0, &request(b"", id.as_bytes()));
        }
        detail.add(0, &request(b"", b""));
        detail.add(0, &Request { operation: Operation::Scan, ..request(b"", b"") });
        assert_eq!(detail.without_request_id(), 1);
        for buckets in [2u32, 8, 64, 256] {
            let layout = Layout::split(1, buckets, 0).unwrap();
            let mut wanted = vec![0u32; buckets as usize];
            ids.iter().for_each(|id| wanted[layout.bucket_of(id.as_bytes(), plan_seed(b"c42", 99)) as usize] += 1);
            let mut folded = vec![0u32; buckets as usize];
            detail.buckets().iter().enumerate().for_each(|(at, count)| folded[at % buckets as usize] += count);
            assert_eq!(folded, wanted);
        }
    }

    #[test]
    fn the_busiest_caller_is_kept_and_two_generations_are_remembered() {
        let mut detail = Detail::new(b"k", 1, 0);
        for n in 0..600u32 {
            detail.add(0, &request(b"busy", b"x"));
            detail.add(0, &request(format!("once-{n}").as_bytes(), b"x"));
        }
        let callers = detail.callers();
        assert_eq!(callers.len(), MAX_KEY_CALLERS);
        assert_eq!(&*callers[0].0, b"busy");
        assert!(callers[0].1 >= 600);
        detail.add(1, &request(b"busy", b"x"));
        assert_eq!(detail.buckets().iter().sum::<u32>(), 1201);
        detail.add(3, &request(b"busy", b"x"));
        assert_eq!(detail.callers(), vec![(Arc::from(&b"busy"[..]), 1)]);
    }
}
