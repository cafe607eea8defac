//! Seeded randomness whose values stay the same from version to version, and draws from a Zipf distribution.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};

/// A generator of which the same seed gives the same draws on every machine.
#[derive(Debug, Clone)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Any number.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from 0 to `bound - 1`; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from 0 up to, not including, 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are what a double holds exactly")]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Draws ranks from 0 on, rank `r` with a weight of `1 / (r + 1)^exponent`, in constant time (Walker's alias method).
#[derive(Debug, Clone)]
pub struct Zipf {
    /// For each rank: the chance to keep it, and the rank taken otherwise.
    columns: Vec<(f64, u32)>,
}

impl Zipf {
    /// A distribution over `ranks` ranks; at least one.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "ranks are below 2^32")]
    pub fn new(ranks: u32, exponent: f64) -> Self {
        let ranks = ranks.max(1);
        let weights: Vec<f64> = (1..=ranks).map(|rank| f64::from(rank).powf(-exponent)).collect();
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        let mut columns: Vec<(f64, u32)> =
            weights.iter().zip(0..).map(|(weight, rank)| (weight / mean, rank)).collect();
        // Columns that are not full are filled up from those that are more than full.
        let (mut poor, mut rich): (Vec<u32>, Vec<u32>) = (0..ranks).partition(|&rank| weight_of(&columns, rank) < 1.0);
        while let (Some(low), Some(high)) = (poor.pop(), rich.last().copied()) {
            let given = 1.0 - weight_of(&columns, low);
            set(&mut columns, low, |column| column.1 = high);
            set(&mut columns, high, |column| column.0 -= given);
            if weight_of(&columns, high) < 1.0 {
                rich.pop();
                poor.push(high);
            }
        }
        // What is left differs from 1 by rounding only, and each stands for itself.
        Self { columns }
    }

    /// A rank.
    pub fn draw(&self, random: &mut Random) -> u32 {
        let column = random.below(self.columns.len() as u64);
        let (keep, other) =
            usize::try_from(column).ok().and_then(|at| self.columns.get(at)).copied().unwrap_or((1.0, 0));
        if random.unit() < keep { u32::try_from(column).unwrap_or(other) } else { other }
    }
}

fn weight_of(columns: &[(f64, u32)], rank: u32) -> f64 {
    columns.get(rank as usize).map_or(1.0, |column| column.0)
}

fn set(columns: &mut [(f64, u32)], rank: u32, change: impl FnOnce(&mut (f64, u32))) {
    if let Some(column) = columns.get_mut(rank as usize) {
        change(column);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_draws_for_ever() {
        let mut random = Random::new(42);
        assert_eq!([random.next_u64(), random.next_u64()], [15_021_278_609_987_233_951, 5_881_210_131_331_364_753]);
        assert_eq!(random.below(0), 0);
        assert!((0..1000).all(|_| random.below(7) < 7 && random.unit() < 1.0));
    }

    #[test]
    fn draws_follow_the_weights() {
        for exponent in [0.0, 0.8, 1.0, 2.0] {
            let (ranks, draws) = (50, 400_000_u32);
            let (zipf, mut random) = (Zipf::new(ranks, exponent), Random::new(1));
            let mut counts = vec![0_u32; 50];
            (0..draws).for_each(|_| counts[zipf.draw(&mut random) as usize] += 1);
            let total: f64 = (1..=ranks).map(|rank| f64::from(rank).powf(-exponent)).sum();
            for (rank, count) in (1..=ranks).zip(counts) {
                let expected = f64::from(draws) * f64::from(rank).powf(-exponent) / total;
                let error = (f64::from(count) - expected).abs();
                assert!(error < 5.0 * expected.sqrt() + 1.0, "{exponent} {rank}: {count}, expected {expected}");
            }
        }
        assert_eq!(Zipf::new(1, 1.0).draw(&mut Random::new(3)), 0);
    }
}
