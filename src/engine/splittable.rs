//! Would buckets spread a key's heat? Answered from the requests behind it, with the very hash that a plan of the key would use.

use std::sync::Arc;

use super::verdict::{BUCKET_COUNTERS, KeyProfile, Reason};
use crate::units::Share;

/// The numbers of buckets that are looked at: the powers of two up to this power.
pub const BUCKET_POWERS: usize = 8;
/// A number of buckets is judged on at least so many counted events a bucket.
pub const EVENTS_PER_BUCKET: u64 = 100;
/// More events without a request id than this share: a bucket cannot be chosen for them.
pub const MAX_WITHOUT_ID: f64 = 0.01;
/// Standard deviations of a counter (Poisson: the square root of it) that pass for noise.
pub const BUCKET_NOISE: f64 = 4.0;

/// Whether buckets chosen by a hash of the request id would spread a key's heat.
#[derive(Debug, Clone, PartialEq)]
pub enum Splittable {
    /// They would, as predicted.
    Yes(Spread),
    /// Too few events were counted by bucket.
    Undecided {
        /// Counted.
        events: u64,
        /// Needed for two buckets.
        needed: u64,
    },
    /// More than 1 % of the events have no request id to choose a bucket by.
    NoRequestIds {
        /// Their share.
        share: Share,
    },
    /// The requests of one id alone make the heat: they go to one bucket, however many there are.
    OneRequestId {
        /// The least share of its events.
        share: Share,
    },
    /// One caller alone makes the heat: limit it.
    OneCaller {
        /// Who.
        caller: Arc<[u8]>,
        /// The least share of its events.
        share: Share,
    },
}

impl Splittable {
    /// The word in records, labels and the API.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Yes(_) => "yes",
            Self::Undecided { .. } => "undecided",
            Self::NoRequestIds { .. } => "no_request_ids",
            Self::OneRequestId { .. } => "one_request_id",
            Self::OneCaller { .. } => "one_caller",
        }
    }
}

/// What each number of buckets would do.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// Share of the key's events on the hottest of 2, 4, ... 256 buckets, as counted.
    pub hottest: [Share; BUCKET_POWERS],
    /// So many buckets, at most, the counted events say something of: [`EVENTS_PER_BUCKET`] each.
    pub decided_up_to: u32,
}

/// Events on the hottest of 1, 2, 4, ... 256 buckets: of N buckets each is the sum of every N-th counter.
#[must_use]
pub fn hottest_buckets(counters: &[u32; BUCKET_COUNTERS]) -> [u64; BUCKET_POWERS + 1] {
    let mut counts: Vec<u64> = counters.iter().copied().map(u64::from).collect();
    let mut hottest = [0; BUCKET_POWERS + 1];
    for hottest in hottest.iter_mut().rev() {
        *hottest = counts.iter().copied().max().unwrap_or(0);
        // Of half as many buckets, each is the sum of two: those whose numbers differ in the highest bit only.
        let upper = counts.split_off(counts.len() / 2);
        counts.iter_mut().zip(upper).for_each(|(count, more)| *count += more);
    }
    hottest
}

impl KeyProfile {
    /// Whether buckets would spread the heat of `key`, which `reason` proves.
    #[must_use]
    pub fn splittable(&self, key: &[u8], reason: &Reason) -> Splittable {
        let [events, hottest @ ..] = hottest_buckets(&self.buckets);
        let without = part(self.without_request_id, events + self.without_request_id);
        if without > MAX_WITHOUT_ID {
            return Splittable::NoRequestIds { share: share(without) };
        }
        if let Some((caller, count)) = self.callers.first().filter(|(caller, _)| **caller != *key) {
            let least = part(count.lower, self.sampled);
            if makes_the_heat(least, reason) {
                return Splittable::OneCaller { caller: Arc::clone(caller), share: share(least) };
            }
        }
        let needed = 2 * EVENTS_PER_BUCKET;
        if events < needed {
            return Splittable::Undecided { events, needed };
        }
        // One id fills one of 256 counters; what is there by chance is its even share and the noise of that.
        let even = float(events) / float(BUCKET_COUNTERS as u64);
        let one = (float(hottest[BUCKET_POWERS - 1]) - even - BUCKET_NOISE * even.sqrt()).max(0.0) / float(events);
        if makes_the_heat(one, reason) {
            return Splittable::OneRequestId { share: share(one) };
        }
        let decided = (1..=BUCKET_POWERS).rev().find(|power| events >= EVENTS_PER_BUCKET << power).unwrap_or(0);
        Splittable::Yes(Spread {
            hottest: hottest.map(|count| share(part(count, events))),
            decided_up_to: 1 << decided,
        })
    }
}

/// Without this share of its events the key would not be hot.
fn makes_the_heat(least: f64, reason: &Reason) -> bool {
    least > 0.0 && float(reason.count.upper) * (1.0 - least) < float(reason.threshold)
}

fn part(count: u64, all: u64) -> f64 {
    float(count) / float(all.max(1))
}

fn share(part: f64) -> Share {
    Share::new(part.clamp(0.0, 1.0)).unwrap_or_default()
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
const fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Operations, RuleKind};
    use crate::units::{Estimate, EventTime, Span};

    fn profile(buckets: [u32; BUCKET_COUNTERS]) -> KeyProfile {
        let sampled = buckets.iter().copied().map(u64::from).sum();
        KeyProfile {
            since: EventTime::MIN,
            operations: Operations::default(),
            weight: 0,
            sampled,
            shards: Vec::new(),
            callers: Vec::new(),
            buckets: Box::new(buckets),
            without_request_id: 0,
        }
    }

    fn reason(count: u64, threshold: u64) -> Reason {
        Reason {
            rule: RuleKind::Absolute,
            window: Span::from_secs(10),
            threshold,
            count: Estimate::exact(count),
            median: None,
            subjects: Estimate::exact(100),
        }
    }

    #[test]
    fn every_number_of_buckets_is_predicted() {
        let mut counters = [100; BUCKET_COUNTERS];
        counters[3] = 300;
        counters[131] = 200;
        let Splittable::Yes(spread) = profile(counters).splittable(b"k", &reason(20_000, 10_000)) else { panic!() };
        let all = f64::from(100 * 256 + 300);
        let of = |power: usize| spread.hottest[power - 1].as_f64() * all;
        // 3 and 131 share a bucket up to 128 buckets.
        let wanted = [(1, 128 * 100 + 300), (2, 64 * 100 + 300), (7, 500), (8, 300)];
        wanted.into_iter().for_each(|(power, count)| assert!((of(power) - f64::from(count)).abs() < 1e-6, "{power}"));
        assert_eq!(spread.decided_up_to, 256);
    }

    #[test]
    fn each_refusal_has_its_reason() {
        let even = profile([10; BUCKET_COUNTERS]);
        let hot = reason(2_000, 1_000);
        assert!(matches!(even.splittable(b"k", &hot), Splittable::Yes(Spread { decided_up_to: 16, .. })));
        let few = profile([0; BUCKET_COUNTERS]).splittable(b"k", &hot);
        assert_eq!(few, Splittable::Undecided { events: 0, needed: 200 });
        let lacking = KeyProfile { without_request_id: 26, ..even.clone() };
        assert_eq!(lacking.splittable(b"k", &hot).label(), "no_request_ids");
        assert_eq!(KeyProfile { without_request_id: 25, ..even.clone() }.splittable(b"k", &hot).label(), "yes");

        let mut counters = [10; BUCKET_COUNTERS];
        counters[9] = 4_000;
        let one = profile(counters);
        assert_eq!(one.splittable(b"k", &hot).label(), "one_request_id");
        // Hot without that id as well: buckets help the rest.
        assert_eq!(one.splittable(b"k", &reason(20_000, 1_000)).label(), "yes");

        let caller = |lower| KeyProfile {
            callers: vec![(Arc::from(&b"job"[..]), Estimate { lower, upper: 2_560 })],
            ..even.clone()
        };
        assert_eq!(caller(1_400).splittable(b"k", &hot).label(), "one_caller");
        assert_eq!(caller(1_200).splittable(b"k", &hot).label(), "yes");
        assert_eq!(caller(1_400).splittable(b"job", &hot).label(), "yes", "the key is the caller");
    }
}
