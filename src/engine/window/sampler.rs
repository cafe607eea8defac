//! How closely the events of a busy key or shard are looked at.

/// Which events of a busy stream are looked at closely: all of the first [`ALL_OF`] a generation, then every second until twice as
/// many were taken, every fourth until [`MOST_OF`] were, every eighth until as many, and so on, each picked by chance at the same
/// mean distance, so that no rhythm of the stream is followed. More are taken of a busier stream, whose key needs more buckets.
#[derive(Debug, Clone)]
struct Sampler {
    state: u64,
    taken: u32,
    /// The mean distance is `2^doublings` events.
    doublings: u32,
}

/// Events of a generation that are all looked at.
const ALL_OF: u32 = 1024;
/// Events that are looked at before the distance doubles, at the most.
const MOST_OF: u32 = 4096;
/// The mean distance stays below 2^20.
const MAX_DOUBLINGS: u32 = 20;

impl Sampler {
    /// Every event is looked at first.
    const fn new(seed: u64) -> Self {
        Self { state: seed, taken: 0, doublings: 0 }
    }

    /// A new generation begins.
    const fn restart(&mut self) {
        (self.taken, self.doublings) = (0, 0);
    }

    /// Notes that an event was looked at; gives the distance to the next one.
    fn next(&mut self) -> u32 {
        self.taken += 1;
        if self.taken >= MOST_OF.min(ALL_OF << self.doublings) && self.doublings < MAX_DOUBLINGS {
            (self.taken, self.doublings) = (0, self.doublings + 1);
        }
        if self.doublings == 0 {
            return 1;
        }
        // Knuth's generator; its high bits are uniform over 1..2^(doublings + 1), whose mean is 2^doublings.
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let high = self.state >> (63 - self.doublings);
        u32::try_from(high).unwrap_or(u32::MAX).max(1)
    }
}

/// Counters of the sampled events of two generations, each as long as the longest window: the answer covers the last one to two of
/// them.
#[derive(Debug, Clone)]
pub(super) struct Generations<T> {
    sampler: Sampler,
    number: i64,
    pub(super) current: T,
    pub(super) previous: T,
}

impl<T: Default> Generations<T> {
    /// Nothing counted, in this generation.
    pub(super) fn new(seed: u64, number: i64) -> Self {
        Self { sampler: Sampler::new(seed), number, current: T::default(), previous: T::default() }
    }

    /// Event time is in this generation; an earlier one changes nothing.
    #[inline]
    pub(super) fn turn_to(&mut self, number: i64) {
        if number > self.number {
            let old = std::mem::take(&mut self.current);
            self.previous = if number == self.number + 1 { old } else { T::default() };
            self.number = number;
            self.sampler.restart();
        }
    }

    /// Notes that an event was looked at; gives the distance to the next one.
    #[inline]
    pub(super) fn next(&mut self) -> u32 {
        self.sampler.next()
    }
}
