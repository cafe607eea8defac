//! What is known of a key that is at least half hot: its shards, its callers, and the load of the buckets it would have.
//!
//! Two generations of one longest window each: the answer covers the last one to two windows. Of a busy key a sample of the events
//! is looked at, so what is told are numbers of sampled events: their shares are what counts.

use std::sync::Arc;

use super::super::sketch::key_hash;
use super::super::verdict::BUCKET_COUNTERS;
use super::frequent::{Frequent, ranked};
use super::sampler::Generations;
use crate::input::Operation;
use crate::protocol::{bucket_hash, plan_seed};
use crate::units::Estimate;

/// Shards kept a key.
pub(crate) const MAX_KEY_SHARDS: usize = 16;
/// Callers kept a key.
pub(crate) const MAX_KEY_CALLERS: usize = 8;
/// The longest caller kept; of a longer one only so many bytes are.
pub(crate) const MAX_CALLER_BYTES: usize = 128;

/// What one event says of the request behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// What it did.
    pub(crate) operation: Operation,
    /// The shard's name as it is known, with its hash.
    pub(crate) shard: Option<(u64, &'a Arc<[u8]>)>,
    /// Empty when unknown.
    pub(crate) caller: &'a [u8],
    /// Empty when there is none.
    pub(crate) id: &'a [u8],
}

/// A caller's name, or the beginning of a long one. In place: most events of a key with many callers list another one.
#[derive(Debug, Clone)]
struct Caller {
    length: u8,
    bytes: [u8; MAX_CALLER_BYTES],
}

const _: () = assert!(MAX_CALLER_BYTES <= u8::MAX as usize, "a length is a byte");

impl Default for Caller {
    fn default() -> Self {
        Self { length: 0, bytes: [0; MAX_CALLER_BYTES] }
    }
}

impl AsRef<[u8]> for Caller {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

impl Caller {
    #[inline]
    fn set(&mut self, name: &[u8]) {
        let name = name.get(..MAX_CALLER_BYTES).unwrap_or(name);
        if let Some(own) = self.bytes.get_mut(..name.len()) {
            own.copy_from_slice(name);
            self.length = u8::try_from(name.len()).unwrap_or(0);
        }
    }
}

/// Counters of one generation: as long as the longest window.
#[derive(Debug, Clone)]
struct Generation {
    events: u64,
    without_request_id: u64,
    shards: Frequent<Arc<[u8]>, MAX_KEY_SHARDS>,
    callers: Frequent<Caller, MAX_KEY_CALLERS>,
    buckets: [u32; BUCKET_COUNTERS],
}

impl Default for Generation {
    fn default() -> Self {
        let (shards, callers) = (Frequent::default(), Frequent::default());
        Self { events: 0, without_request_id: 0, shards, callers, buckets: [0; BUCKET_COUNTERS] }
    }
}

/// Detail of one key, from a sample of its events.
#[derive(Debug, Clone)]
pub(crate) struct Detail {
    /// Seed of the key's own plans.
    seed: u64,
    generations: Generations<Generation>,
}

impl Detail {
    /// The most bytes that one detail takes.
    pub(crate) const MAX_BYTES: u64 =
        2 * (size_of::<Generation>() + 16 * MAX_KEY_SHARDS + size_of::<Caller>() * MAX_KEY_CALLERS) as u64 + 64;

    /// Nothing known yet.
    pub(crate) fn new(key: &[u8], keyspace_seed: u64, generation: i64) -> Self {
        let seed = plan_seed(key, keyspace_seed);
        Self { seed, generations: Generations::new(seed, generation) }
    }

    /// Counts one request; gives the distance to the next event to be counted. `generation` is the number of the longest window's
    /// length that event time is in.
    pub(crate) fn add(&mut self, generation: i64, request: &Request<'_>) -> u32 {
        self.generations.turn_to(generation);
        let current = &mut self.generations.current;
        current.events += 1;
        if let Some((hash, name)) = request.shard {
            current.shards.add(hash, |own| own.clone_from(name));
        }
        if !request.caller.is_empty() {
            let hash = key_hash(request.caller, self.seed);
            current.callers.add(hash, |own| own.set(request.caller));
        }
        if request.operation == Operation::Scan {
            // A scan visits every bucket, so it has no bucket of its own.
        } else if request.id.is_empty() {
            current.without_request_id += 1;
        } else {
            let bucket = usize::from(bucket_hash(request.id, self.seed).to_le_bytes()[0]);
            current.buckets[bucket] = current.buckets[bucket].saturating_add(1);
        }
        self.generations.next()
    }

    /// Events that were looked at: all other numbers are of these.
    pub(crate) const fn events(&self) -> u64 {
        self.generations.current.events + self.generations.previous.events
    }

    /// Shards, the busiest first.
    pub(crate) fn shards(&self) -> Vec<(Arc<[u8]>, Estimate)> {
        ranked([&self.generations.current.shards, &self.generations.previous.shards])
    }

    /// Callers, the busiest first.
    pub(crate) fn callers(&self) -> Vec<(Arc<[u8]>, Estimate)> {
        ranked([&self.generations.current.callers, &self.generations.previous.callers])
    }

    /// Events by the low 8 bits of the bucket hash.
    pub(crate) fn buckets(&self) -> Box<[u32; BUCKET_COUNTERS]> {
        let mut sum = Box::new(self.generations.current.buckets);
        sum.iter_mut()
            .zip(self.generations.previous.buckets.iter())
            .for_each(|(sum, more)| *sum = sum.saturating_add(*more));
        sum
    }

    /// Events that could be split and have no request id.
    pub(crate) const fn without_request_id(&self) -> u64 {
        self.generations.current.without_request_id + self.generations.previous.without_request_id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Layout;

    fn request<'a>(caller: &'a [u8], id: &'a [u8]) -> Request<'a> {
        Request { operation: Operation::Write, shard: None, caller, id }
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
        assert_eq!(callers[0].1.lower, 600, "it was listed from the first event on");
        detail.add(1, &request(b"busy", b"x"));
        assert_eq!(detail.buckets().iter().sum::<u32>(), 1201);
        detail.add(3, &request(b"busy", b"x"));
        assert_eq!(detail.callers(), vec![(Arc::from(&b"busy"[..]), Estimate::exact(1))]);
    }

    #[test]
    fn a_long_caller_is_cut_and_still_one_caller() {
        let mut detail = Detail::new(b"k", 1, 0);
        let long = [b'a'; MAX_CALLER_BYTES + 1];
        for caller in [b"short".as_slice(), &long, &long] {
            detail.add(0, &request(caller, b"x"));
        }
        let callers = detail.callers();
        assert_eq!((&*callers[0].0, callers[0].1), (&long[..MAX_CALLER_BYTES], Estimate::exact(2)));
        assert_eq!(&*callers[1].0, b"short");
    }

    /// A million events: some thousands are looked at, and shares are those of the whole stream, although callers and ids follow a
    /// rhythm.
    #[test]
    fn a_busy_key_is_sampled_without_following_its_rhythm() {
        let mut detail = Detail::new(b"k", 1, 0);
        let (mut wait, mut taken) = (1u32, 0u64);
        for n in 0..1_000_000u32 {
            wait -= 1;
            if wait == 0 {
                let caller: &[u8] = if n % 4 == 0 { b"quarter" } else { b"rest" };
                wait = detail.add(0, &request(caller, &(n % 1_000).to_le_bytes()));
                taken += 1;
            }
        }
        assert_eq!(detail.events(), taken);
        assert!((25_600..60_000).contains(&taken), "enough for 256 buckets: {taken}");
        let callers = detail.callers();
        let share = callers[1].1.upper as f64 / taken as f64;
        assert!((0.24..0.26).contains(&share), "{share}");
    }
}
