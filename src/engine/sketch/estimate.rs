//! Bounds on the number of distinct keys and on their median, from a theta sample.
//!
//! Both hold with probability at least `1 - 10^-6` an evaluation. Theta depends on the data through one of 64 possible
//! values, so every tail is taken 64 times smaller (union bound), and twice smaller for its two sides.

use crate::units::Estimate;

/// `ln(2 x 64 / 10^-6)`.
const LOG_TAIL: f64 = 18.667_6;

/// The median of counts, doubled so that the mean of two middle counts stays whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Median {
    /// Twice the lower bound.
    pub(crate) lower_doubled: u64,
    /// Twice the upper bound.
    pub(crate) upper_doubled: u64,
}

impl Median {
    /// Nothing is known but that every count is at least 1.
    pub(crate) const UNKNOWN: Self = Self { lower_doubled: 2, upper_doubled: u64::MAX / 2 };

    /// The bounds as whole counts, rounded outwards.
    pub(crate) const fn estimate(self) -> Estimate {
        Estimate { lower: self.lower_doubled / 2, upper: self.upper_doubled.div_ceil(2) }
    }
}

/// Bounds on the number of distinct keys of which `kept` have a hash at or below `theta`.
///
/// Chernoff bounds for a sum of independent indicators with mean `mu = keys x share`:
/// `P[kept <= mu - t] <= exp(-t^2 / 2 mu)` and `P[kept >= mu + t] <= exp(-t^2 / 2(mu + t/3))`, solved for `mu`.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bounds are rounded outwards by more than the 53 bits lose; `as` saturates"
)]
pub(crate) fn distinct_bounds(kept: usize, theta: u64) -> Estimate {
    if theta == u64::MAX {
        return Estimate::exact(kept as u64);
    }
    let share = (theta as f64 + 1.0) / 2.0f64.powi(64);
    let n = kept as f64;
    let root = f64::midpoint((2.0 * LOG_TAIL).sqrt(), (2.0f64.mul_add(LOG_TAIL, 4.0 * n)).sqrt());
    let most = root * root;
    let slack = (4.0 * LOG_TAIL * LOG_TAIL / 9.0 + 2.0 * LOG_TAIL * n).sqrt() - 2.0 * LOG_TAIL / 3.0;
    let least = (n - slack).max(n * share);
    Estimate { lower: (least / share).floor() as u64, upper: (most / share).ceil() as u64 + 1 }
}

/// Bounds on the median of the counts of all keys, from those of a uniform sample; none without any.
///
/// With `complete` the sample is all keys and the median is exact; an even number gives the mean of the middle two.
/// Else order statistics at `1/2 - e` and `1/2 + e` with `e = sqrt(LOG_TAIL / 2n)` (Hoeffding, without replacement).
/// The order of `counts` changes.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "ranks of a sample far below 2^53, clamped to it"
)]
pub(crate) fn median_bounds(counts: &mut [u64], complete: bool) -> Option<Median> {
    let last = counts.len().checked_sub(1)?;
    let middle = counts.len() / 2;
    if complete {
        let (below, at, _) = counts.select_nth_unstable(middle);
        let upper = *at;
        let doubled = if last % 2 == 0 { 2 * upper } else { upper + below.iter().max().copied().unwrap_or(upper) };
        return Some(Median { lower_doubled: doubled, upper_doubled: doubled });
    }
    let n = counts.len() as f64;
    let spread = (LOG_TAIL * n / 2.0).sqrt();
    let low = (n / 2.0 - spread).floor() - 1.0;
    let high = ((n / 2.0 + spread).ceil() as usize).saturating_add(1);
    if low < 0.0 || high > last {
        // Too few for any bound on the upper side but none that is known: every count is at least 1.
        return Some(Median::UNKNOWN);
    }
    let lower = *counts.select_nth_unstable(low as usize).1;
    let upper = *counts.select_nth_unstable(high).1;
    Some(Median { lower_doubled: 2 * lower, upper_doubled: 2 * upper })
}

#[cfg(test)]
mod tests {
    use super::super::hash::key_hash;
    use super::super::key_sample::KeySample;
    use super::*;

    #[test]
    fn the_median_of_all_keys_is_exact() {
        let median = |counts: &[u64]| median_bounds(&mut counts.to_vec(), true).map(|median| median.lower_doubled);
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[7]), Some(14));
        assert_eq!(median(&[1, 2]), Some(3));
        assert_eq!(median(&[10, 2, 2, 2, 1, 1]), Some(4));
        assert_eq!(median(&[5, 1, 3]), Some(6));
        assert_eq!(Median { lower_doubled: 3, upper_doubled: 3 }.estimate(), Estimate { lower: 1, upper: 2 });
    }

    #[test]
    fn the_truth_lies_inside_the_bounds_for_200_seeds() {
        for seed in 0..200u64 {
            let keys = 3_000 + seed * 17;
            let count = |n: u64| 1 + (n % 100) * (n % 100) / 100;
            let mut sample = KeySample::new(512);
            for n in 0..keys {
                sample.add(key_hash(&n.to_le_bytes(), seed), u32::try_from(count(n)).unwrap());
            }
            assert!(!sample.is_complete());
            let distinct = distinct_bounds(sample.len(), sample.theta());
            assert!(distinct.lower <= keys && keys <= distinct.upper, "{keys} in {distinct}");
            let mut counts: Vec<u64> = sample.iter().map(|entry| u64::from(entry.1)).collect();
            let bounds = median_bounds(&mut counts, false).unwrap();
            let mut all: Vec<u64> = (0..keys).map(count).collect();
            let truth = median_bounds(&mut all, true).unwrap();
            assert!(bounds.lower_doubled <= truth.lower_doubled, "seed {seed}");
            assert!(truth.upper_doubled <= bounds.upper_doubled, "seed {seed}");
        }
    }
}
