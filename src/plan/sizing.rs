//! Into how many buckets, or why not.
//!
//! The load of a bucket = (writes + point reads) x its share of them + scans, since every scan visits every bucket. The least power
//! of two is taken whose hottest bucket stays within `bucket_rate` at the measured peak with headroom. Shares come from the key's 256
//! counters, folded: a bucket of N is the sum of every N-th. A counted share is noisy; a size is passed over only when its hottest
//! bucket is too hot by more than four standard deviations of the count (Poisson: the square root of it): the hottest of 256 even
//! buckets is above that once in a hundred counts.

use super::settings::PlanSettings;
use crate::engine::{
    BUCKET_COUNTERS, BUCKET_NOISE, BUCKET_POWERS, EVENTS_PER_BUCKET, HotKey, MAX_WITHOUT_ID, Operations,
    hottest_buckets,
};

/// Where the cap is not enough, more buckets are taken only while they cool the hottest one by more than this factor.
const WORTH_DOUBLING: f64 = 1.1;
/// One of 256 counters with this share of all events is one request id, not chance: an even share is 0.4 %.
const ONE_ID: f64 = 0.25;

/// What a key's load is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load<'a> {
    /// Requests per second that the split has to carry, without headroom.
    pub per_s: f64,
    /// Requests by operation.
    pub operations: Operations,
    /// Events by the low 8 bits of the bucket hash.
    pub buckets: &'a [u32; BUCKET_COUNTERS],
    /// Events that a bucket would have been chosen for, had they had a request id.
    pub without_request_id: u64,
}

/// The answer: a size, or the reason why there is none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sizing {
    /// So many buckets.
    Split(Size),
    /// Too few events were counted by bucket: wait.
    Undecided {
        /// Counted events.
        events: u64,
        /// How many are needed.
        needed: u64,
    },
    /// More than 1 % of the events have no request id to choose a bucket by.
    NoRequestIds {
        /// Their share.
        share: f64,
    },
    /// Even the most buckets would not cut the hottest part enough.
    LittleGain {
        /// By which factor they would cut it, at best.
        gain: f64,
        /// What keeps it hot.
        cause: Cause,
    },
}

/// What keeps the hottest bucket hot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// One request id makes most of the load, wherever its bucket is.
    OneRequestId,
    /// Every scan visits every bucket.
    Scans,
    /// More buckets than are allowed would be needed.
    Cap,
}

/// A number of buckets and what it does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    /// Number of buckets, a power of two.
    pub buckets: u32,
    /// Share of the key's point load on its hottest bucket.
    pub hottest_bucket_share: f64,
    /// Requests that the split adds to the store, as a share of the key's requests.
    pub added_load: f64,
    /// What keeps the hottest bucket above `bucket_rate`; none when it is not.
    pub not_enough: Option<Cause>,
}

impl<'a> Load<'a> {
    /// The load of a key at its peak.
    #[must_use]
    pub fn at_peak(hot: &'a HotKey) -> Self {
        Self::at(hot, hot.peak.as_per_second())
    }

    /// The load of a key at another rate, in requests per second.
    #[must_use]
    pub fn at(hot: &'a HotKey, per_s: f64) -> Self {
        Self {
            per_s,
            operations: hot.profile.operations,
            buckets: &hot.profile.buckets,
            without_request_id: hot.profile.without_request_id,
        }
    }

    /// Events counted by bucket.
    #[must_use]
    pub fn counted(&self) -> u64 {
        self.buckets.iter().copied().map(u64::from).sum()
    }

    /// Share of scans in all requests.
    #[must_use]
    pub fn scan_share(&self) -> f64 {
        let Operations { reads, writes, scans, unknown } = self.operations;
        let all = reads + writes + scans + unknown;
        if all == 0 { 0.0 } else { scans as f64 / all as f64 }
    }

    /// Share of reads and scans in all requests.
    #[must_use]
    pub fn read_share(&self) -> f64 {
        let Operations { reads, writes, scans, unknown } = self.operations;
        let all = reads + writes + scans + unknown;
        if all == 0 { 0.0 } else { (reads + scans) as f64 / all as f64 }
    }

    /// Share of the point load on each of `buckets` buckets, a power of two up to 256; even when nothing was counted.
    #[must_use]
    pub fn shares(&self, buckets: u32) -> Vec<f64> {
        let mut counts = vec![0_u64; buckets as usize];
        for (at, count) in self.buckets.iter().enumerate() {
            counts[at % buckets as usize] += u64::from(*count);
        }
        let all: u64 = counts.iter().sum();
        let even = 1.0 / f64::from(buckets);
        counts.iter().map(|count| if all == 0 { even } else { *count as f64 / all as f64 }).collect()
    }
}

/// The most buckets that the counters say something of.
const MOST_BUCKETS: u32 = 1 << BUCKET_POWERS;

/// The hottest bucket of every size, counted once.
pub(super) struct Hottest {
    all: f64,
    /// Events of the hottest of 2^power buckets, by power.
    most: [u64; BUCKET_POWERS + 1],
}

impl Hottest {
    pub(super) fn of(buckets: &[u32; BUCKET_COUNTERS]) -> Self {
        let most = hottest_buckets(buckets);
        Self { all: most[0] as f64, most }
    }

    /// Share of the hottest bucket as counted.
    pub(super) fn share(&self, buckets: u32) -> f64 {
        if self.all == 0.0 { 1.0 / f64::from(buckets) } else { self.count(buckets) / self.all }
    }

    /// Share of the hottest bucket at the least: noise taken out, and never below an even share.
    pub(super) fn least(&self, buckets: u32) -> f64 {
        let (even, count) = (1.0 / f64::from(buckets), self.count(buckets));
        if self.all == 0.0 { even } else { ((count - BUCKET_NOISE * count.sqrt()) / self.all).max(even) }
    }

    fn count(&self, buckets: u32) -> f64 {
        self.most.get(buckets.trailing_zeros() as usize).copied().unwrap_or(0) as f64
    }
}

/// How many buckets the load needs under these settings.
#[must_use]
pub fn size(load: &Load<'_>, settings: &PlanSettings) -> Sizing {
    let counted = load.counted();
    let without = load.without_request_id as f64 / (counted + load.without_request_id).max(1) as f64;
    if without > MAX_WITHOUT_ID {
        return Sizing::NoRequestIds { share: without };
    }
    let needed = load.per_s * (1.0 + settings.headroom);
    let scans = needed * load.scan_share();
    let points = needed - scans;
    let rate = settings.bucket_rate.as_per_second();
    let counters = Hottest::of(load.buckets);
    // What the hottest bucket carries at least, noise taken out.
    let hottest = |buckets| points * counters.least(buckets) + scans;
    // A key without load has nothing to cut: any size will do, and the least is taken.
    let gain = |buckets| if hottest(buckets) > 0.0 { needed / hottest(buckets) } else { f64::INFINITY };
    let good = |buckets| hottest(buckets) <= rate && gain(buckets) >= settings.min_gain;
    let undecided = |buckets: u32| {
        let needed = EVENTS_PER_BUCKET * u64::from(buckets);
        (counted < needed).then_some(Sizing::Undecided { events: counted, needed })
    };
    let sizes = || (1..=8).map(|power| 1_u32 << power).filter(|buckets| *buckets <= settings.max_buckets.max(2));
    // An even split is the best that can be: smaller sizes need no counters to be ruled out.
    let possible = |buckets: &u32| points / f64::from(*buckets) + scans <= rate;
    // What one of the counters holds at least, one bucket of any size does: where that alone leaves too little gain, there is no need to
    // count more, and a key that comes and goes would never be counted enough.
    if counted >= 2 * EVENTS_PER_BUCKET && gain(MOST_BUCKETS) < settings.min_gain {
        return Sizing::LittleGain { gain: gain(MOST_BUCKETS), cause: cause(&counters, scans, rate) };
    }
    for buckets in sizes().filter(possible) {
        if let Some(undecided) = undecided(buckets) {
            return undecided;
        }
        if good(buckets) {
            return Sizing::Split(split(load, &counters, buckets, None));
        }
    }
    let cap = sizes().next_back().unwrap_or(2);
    if let Some(undecided) = undecided(cap) {
        return undecided;
    }
    let cause = cause(&counters, scans, rate);
    if gain(cap) < settings.min_gain {
        return Sizing::LittleGain { gain: gain(cap), cause };
    }
    let worth =
        |buckets: &u32| hottest(*buckets) <= hottest(cap) * WORTH_DOUBLING && gain(*buckets) >= settings.min_gain;
    let buckets = sizes().find(worth).unwrap_or(cap);
    Sizing::Split(split(load, &counters, buckets, (hottest(buckets) > rate).then_some(cause)))
}

fn split(load: &Load<'_>, counters: &Hottest, buckets: u32, not_enough: Option<Cause>) -> Size {
    Size {
        buckets,
        hottest_bucket_share: counters.share(buckets),
        added_load: load.scan_share() * f64::from(buckets - 1),
        not_enough,
    }
}

fn cause(counters: &Hottest, scans: f64, rate: f64) -> Cause {
    if counters.least(MOST_BUCKETS) >= ONE_ID {
        Cause::OneRequestId
    } else if scans > rate / 2.0 {
        Cause::Scans
    } else {
        Cause::Cap
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::{Merge, Mode};
    use crate::protocol::{History, Writes};
    use crate::units::{Rate, Span};

    fn settings(bucket_rate: f64) -> PlanSettings {
        PlanSettings {
            keyspace: "customer".into(),
            seed: 1,
            mode: Mode::Auto,
            writes: Writes::Update,
            history: History::Move,
            expire_after: Span::ZERO,
            bucket_rate: Rate::per_second(bucket_rate).unwrap(),
            headroom: 0.0,
            max_buckets: 256,
            min_gain: 1.5,
            window: Span::from_secs(60),
            cooldown: Span::ZERO,
            merge: Merge::Union,
            mapper: None,
            quiet: Span::from_secs(600),
            allow: Vec::new(),
            block: Vec::new(),
        }
    }

    const EVEN: [u32; BUCKET_COUNTERS] = [1000; BUCKET_COUNTERS];
    const WRITES: Operations = Operations { reads: 0, writes: 1000, scans: 0, unknown: 0 };

    fn load(per_s: f64, buckets: &[u32; BUCKET_COUNTERS]) -> Load<'_> {
        Load { per_s, operations: WRITES, buckets, without_request_id: 0 }
    }

    fn buckets(sizing: Sizing) -> u32 {
        match sizing {
            Sizing::Split(size) => size.buckets,
            other => panic!("no split: {other:?}"),
        }
    }

    /// Case S7 (iis#1612, starrocks#72753): the factor grows with the excess, bounded below and above.
    #[test]
    fn s7_the_factor_grows_with_the_excess() {
        let settings = settings(100.0);
        for (ratio, expected) in
            [(0.5, 2), (2.0, 2), (2.1, 4), (12.0, 16), (16.0, 16), (200.0, 256), (280.0, 256), (136_000.0, 256)]
        {
            assert_eq!(buckets(size(&load(ratio * 100.0, &EVEN), &settings)), expected, "{ratio}");
        }
        let Sizing::Split(size) = size(&load(28_000.0, &EVEN), &settings) else { panic!("no split") };
        assert_eq!(size.not_enough, Some(Cause::Cap), "the cap leaves it above the rate, and says so");
    }

    /// A key that has just fallen silent is hot until it clears: its growth was asked for, up to the cap, since 0/0 is no gain.
    #[test]
    fn a_key_without_load_wants_no_more_buckets() {
        assert_eq!(buckets(size(&load(0.0, &EVEN), &settings(100.0))), 2);
        assert_eq!(buckets(size(&load(f64::MIN_POSITIVE, &EVEN), &settings(100.0))), 2);
    }

    #[test]
    fn headroom_counts() {
        assert_eq!(buckets(size(&load(400.0, &EVEN), &settings(100.0))), 4);
        let roomy = PlanSettings { headroom: 0.25, ..settings(100.0) };
        assert_eq!(buckets(size(&load(400.0, &EVEN), &roomy)), 8);
    }

    #[test]
    fn a_size_is_judged_on_a_hundred_events_a_bucket() {
        let few = [3_u32; BUCKET_COUNTERS];
        assert_eq!(size(&load(1600.0, &few), &settings(100.0)), Sizing::Undecided { events: 768, needed: 1600 });
        assert_eq!(buckets(size(&load(400.0, &few), &settings(100.0))), 4);
    }

    /// One request id makes nearly all of it: no number of buckets helps, and 200 events are enough to see it.
    #[test]
    fn what_no_split_would_help_is_seen_early() {
        let mut one = [0_u32; BUCKET_COUNTERS];
        one[77] = 197;
        one[3] = 3;
        let sizing = size(&load(100.0, &one), &settings(20.0));
        assert!(matches!(sizing, Sizing::LittleGain { cause: Cause::OneRequestId, .. }), "{sizing:?}");
        one[3] = 2;
        let sizing = size(&load(100.0, &one), &settings(20.0));
        assert_eq!(sizing, Sizing::Undecided { events: 199, needed: 800 });
    }

    #[test]
    fn without_request_ids_there_is_no_split() {
        let lacking = |number| Load { without_request_id: number, ..load(400.0, &EVEN) };
        // 1 % of all is 2,585.9 beside the 256,000 that have one.
        assert_eq!(buckets(size(&lacking(2_585), &settings(100.0))), 4);
        assert!(matches!(size(&lacking(2_586), &settings(100.0)), Sizing::NoRequestIds { .. }));
        let none = Load { without_request_id: 9, ..load(400.0, &[0; BUCKET_COUNTERS]) };
        assert_eq!(size(&none, &settings(100.0)), Sizing::NoRequestIds { share: 1.0 });
    }

    #[test]
    fn scans_visit_every_bucket() {
        // 200/s of 1000/s are scans: every bucket carries them beside its part of the 800/s.
        let scanned = Load { operations: Operations { scans: 250, ..WRITES }, ..load(1000.0, &EVEN) };
        assert_eq!(buckets(size(&scanned, &settings(300.0))), 8);
        let Sizing::Split(eight) = size(&scanned, &settings(300.0)) else { panic!("no split") };
        assert!((eight.added_load - 0.2 * 7.0).abs() < 1e-9);
        let mostly = Load { operations: Operations { scans: 4000, ..WRITES }, ..load(1000.0, &EVEN) };
        let Sizing::LittleGain { gain, cause } = size(&mostly, &settings(300.0)) else { panic!("split") };
        assert_eq!(cause, Cause::Scans);
        assert!((1.2..1.26).contains(&gain), "{gain}");
    }

    #[test]
    fn a_skew_beyond_noise_raises_the_size() {
        // Two of 256 counters, one in each half of the buckets of 2, carry a fifth each.
        let mut skewed = EVEN;
        skewed[0] = 80_000;
        skewed[2] = 80_000;
        assert_eq!(buckets(size(&load(200.0, &EVEN), &settings(110.0))), 2);
        assert_eq!(buckets(size(&load(200.0, &skewed), &settings(110.0))), 4);
        let mut noisy = EVEN;
        noisy[0] = 1_900;
        assert_eq!(buckets(size(&load(200.0, &noisy), &settings(100.0))), 2, "noise does not");
    }

    #[test]
    fn one_request_id_is_not_cured_by_buckets() {
        let mut one = [10_u32; BUCKET_COUNTERS];
        one[7] = 100_000;
        let Sizing::LittleGain { cause, gain } = size(&load(1000.0, &one), &settings(100.0)) else { panic!("split") };
        assert_eq!(cause, Cause::OneRequestId);
        assert!((1.0..1.1).contains(&gain));
        // Half of the load on one id: a few buckets do all that can be done, more would only cost.
        let mut half = [100_u32; BUCKET_COUNTERS];
        half[7] = 25_600;
        let Sizing::Split(size) = size(&load(1000.0, &half), &settings(100.0)) else { panic!("no split") };
        assert_eq!(size.not_enough, Some(Cause::OneRequestId));
        assert!(size.buckets <= 16, "{size:?}");
    }

    proptest! {
        #[test]
        fn a_size_is_a_power_of_two_in_range_and_does_what_it_says(
            per_s in 1.0_f64..1e6, rate in 1.0_f64..1e4, most in 1_u32..9, counters in prop::collection::vec(0_u32..4000, BUCKET_COUNTERS),
            reads in 0_u64..1000, writes in 0_u64..1000, scans in 0_u64..300,
        ) {
            let settings = PlanSettings { max_buckets: 1 << most, ..settings(rate) };
            let counters: [u32; BUCKET_COUNTERS] = counters.try_into().unwrap();
            let load = Load { per_s, operations: Operations { reads, writes, scans, unknown: 0 }, buckets: &counters, without_request_id: 0 };
            if let Sizing::Split(size) = size(&load, &settings) {
                prop_assert!(size.buckets.is_power_of_two() && size.buckets >= 2 && size.buckets <= settings.max_buckets);
                prop_assert!(load.counted() >= EVENTS_PER_BUCKET * u64::from(size.buckets));
                let shares = load.shares(size.buckets);
                prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                let most = shares.into_iter().fold(0.0, f64::max);
                prop_assert!((most - size.hottest_bucket_share).abs() < 1e-12);
                let even = per_s * ((1.0 - load.scan_share()) / f64::from(size.buckets) + load.scan_share());
                prop_assert!(size.not_enough.is_some() || even <= rate * 1.000_001);
            }
        }

        /// More load never asks for fewer buckets.
        #[test]
        fn the_size_grows_with_the_load(low in 1.0_f64..1e5, more in 1.0_f64..10.0) {
            let settings = settings(100.0);
            prop_assert!(buckets(size(&load(low, &EVEN), &settings)) <= buckets(size(&load(low * more, &EVEN), &settings)));
        }
    }
}
