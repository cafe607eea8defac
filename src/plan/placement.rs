//! Where the buckets fall: the first label is searched so that they land on as many shards as possible, away from the hot ones.
//!
//! Eight buckets on eight shards hit eight different ones by luck in one of four hundred placements. The labels of a layout follow
//! one another, so that `first` is all there is to choose; every value of it up to a limit is tried against the declared mapper.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::mapper::Mapper;
use crate::engine::ShardLoad;
use crate::protocol::Layout;

/// How many values of `first` are tried.
pub const SEARCHED: u32 = 4096;

/// What placing needs to know.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// How the store maps keys to shards; without it there is nothing to choose by.
    pub mapper: Option<&'a Mapper>,
    /// The key.
    pub key: &'a [u8],
    /// Share of the key's requests on each bucket; with scans, which visit all, the sum is above 1.
    pub shares: &'a [f64],
    /// The load of every known shard.
    pub shards: &'a [ShardLoad],
    /// What the key itself put on each shard, in the same window.
    pub own: &'a [(Arc<[u8]>, u64)],
}

/// A place for a layout and what it does to the hottest shard.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Placement {
    /// The first label.
    pub first: u32,
    /// Share of all load on the hottest shard now; none where it is not known.
    pub hottest_shard_before: Option<f64>,
    /// The same with the buckets in place; none without a mapper.
    pub hottest_shard_after: Option<f64>,
}

/// The key of a bucket in the store: `{key}:{label}`.
#[must_use]
pub fn bucket_key(key: &[u8], label: u32) -> Vec<u8> {
    [key, b":", label.to_string().as_bytes()].concat()
}

/// Loads of shards with one key taken out.
struct Loads {
    /// Load by the mapper's number of the shard, without the key.
    mapped: Vec<f64>,
    /// The highest load of a shard that the mapper does not name.
    unmapped: f64,
    /// The key's own load.
    own: f64,
    /// Of all shards, the key with it.
    total: f64,
    /// Of the hottest shard now.
    hottest: f64,
}

impl Loads {
    fn of(place: &Place<'_>, mapper: &Mapper) -> Self {
        let own_of = |shard: &[u8]| place.own.iter().find(|(name, _)| **name == *shard).map_or(0, |(_, count)| *count);
        let numbers: BTreeMap<&[u8], usize> =
            mapper.shards().iter().enumerate().map(|(number, name)| (name.as_bytes(), number)).collect();
        let mut loads =
            Self { mapped: vec![0.0; mapper.shards().len()], unmapped: 0.0, own: 0.0, total: 0.0, hottest: 0.0 };
        for shard in place.shards {
            let count = shard.count.upper;
            // The key's counts may come from a slightly other stretch of time; a shard carries at least what the key put on it.
            let rest = count.saturating_sub(own_of(&shard.shard)) as f64;
            match numbers.get(&*shard.shard).and_then(|number| loads.mapped.get_mut(*number)) {
                Some(load) => *load += rest,
                None => loads.unmapped = loads.unmapped.max(rest),
            }
            loads.total += count as f64;
            loads.hottest = loads.hottest.max(count as f64);
        }
        loads.own = place.own.iter().map(|(_, count)| *count as f64).sum();
        loads
    }
}

/// Searches `first` for a new layout.
#[must_use]
pub fn search(place: &Place<'_>) -> Placement {
    let Some(mapper) = place.mapper else { return unplaced(place) };
    let loads = Loads::of(place, mapper);
    let buckets = place.shares.len();
    let last = SEARCHED as usize + buckets;
    let shard_of_label: Vec<usize> = (0..last)
        .map(|label| mapper.shard_of(&bucket_key(place.key, u32::try_from(label).unwrap_or(u32::MAX))))
        .collect();
    let mut trial = Trial::of(&loads);
    let mut best = (f64::INFINITY, usize::MAX, 0_u32);
    for (first, window) in (0..SEARCHED).zip(shard_of_label.windows(buckets)) {
        let (hottest, spread) = trial.outcome(&loads, window, place.shares);
        let unused = buckets - spread;
        if (hottest, unused) < (best.0, best.1) {
            best = (hottest, unused, first);
        }
    }
    placement(place, &loads, best.2, best.0)
}

/// What a layout whose `first` is given already will do: growth and shrinking keep it.
#[must_use]
pub fn predict(place: &Place<'_>, layout: Layout) -> Placement {
    let Some(mapper) = place.mapper else {
        return Placement { first: layout.first(), ..unplaced(place) };
    };
    let loads = Loads::of(place, mapper);
    let key_of = |bucket| layout.label(bucket).map_or_else(|| place.key.to_vec(), |label| bucket_key(place.key, label));
    let window: Vec<usize> = (0..layout.buckets()).map(|bucket| mapper.shard_of(&key_of(bucket))).collect();
    let (hottest, _) = Trial::of(&loads).outcome(&loads, &window, place.shares);
    placement(place, &loads, layout.first(), hottest)
}

/// Loads of shards while one value of `first` is tried; made once for all of them.
struct Trial {
    loads: Vec<f64>,
    used: Vec<bool>,
}

impl Trial {
    fn of(loads: &Loads) -> Self {
        Self { loads: loads.mapped.clone(), used: vec![false; loads.mapped.len()] }
    }

    /// Load of the hottest shard, and on how many shards the buckets are, when bucket `b` is on shard `window[b]`.
    fn outcome(&mut self, loads: &Loads, window: &[usize], shares: &[f64]) -> (f64, usize) {
        self.loads.copy_from_slice(&loads.mapped);
        self.used.fill(false);
        // Without counts by shard every bucket weighs its share alone: spread is what is left to choose by.
        let weight = if loads.own > 0.0 { loads.own } else { 1.0 };
        for (shard, share) in window.iter().zip(shares) {
            if let (Some(load), Some(used)) = (self.loads.get_mut(*shard), self.used.get_mut(*shard)) {
                *load += share * weight;
                *used = true;
            }
        }
        let hottest = self.loads.iter().copied().fold(loads.unmapped, f64::max);
        (hottest, self.used.iter().filter(|used| **used).count())
    }
}

fn placement(place: &Place<'_>, loads: &Loads, first: u32, hottest: f64) -> Placement {
    // Scans that visit every bucket add to the total as well.
    let total = loads.total + loads.own * (place.shares.iter().sum::<f64>() - 1.0).max(0.0);
    let known = loads.total > 0.0 && loads.own > 0.0;
    Placement {
        first,
        hottest_shard_before: known.then(|| loads.hottest / loads.total),
        hottest_shard_after: known.then(|| (hottest / total).min(1.0)),
    }
}

fn unplaced(place: &Place<'_>) -> Placement {
    let total: f64 = place.shards.iter().map(|shard| shard.count.upper as f64).sum();
    let hottest = place.shards.iter().map(|shard| shard.count.upper as f64).fold(0.0, f64::max);
    Placement {
        first: 0,
        hottest_shard_before: (total > 0.0 && place.mapper.is_some()).then(|| hottest / total),
        hottest_shard_after: None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::plan::{MapperKind, ShardHash};
    use crate::units::Estimate;

    fn mapper(shards: usize) -> Mapper {
        let shards = (0..shards).map(|number| format!("s{number}")).collect();
        Mapper::new(MapperKind::Modulo(ShardHash::Murmur2), shards).unwrap()
    }

    fn loads(counts: &[u64]) -> Vec<ShardLoad> {
        let load = |(number, count): (usize, &u64)| ShardLoad {
            shard: format!("s{number}").into_bytes().into(),
            count: Estimate::exact(*count),
            hot_since: None,
            profile: None,
        };
        counts.iter().enumerate().map(load).collect()
    }

    fn shards_of(mapper: &Mapper, key: &[u8], first: u32, buckets: u32) -> BTreeSet<usize> {
        (first..first + buckets).map(|label| mapper.shard_of(&bucket_key(key, label))).collect()
    }

    #[test]
    fn eight_buckets_go_to_eight_shards() {
        let mapper = mapper(8);
        let shares = [0.125; 8];
        for number in 0..100 {
            let key = format!("c{number}").into_bytes();
            let own: [(Arc<[u8]>, u64); 1] = [(Arc::from(b"s3".as_slice()), 8000)];
            let shards = loads(&[1000, 1000, 1000, 9000, 1000, 1000, 1000, 1000]);
            let place = Place { mapper: Some(&mapper), key: &key, shares: &shares, shards: &shards, own: &own };
            let placement = search(&place);
            assert_eq!(shards_of(&mapper, &key, placement.first, 8).len(), 8, "c{number}");
            assert!((placement.hottest_shard_before.unwrap() - 9.0 / 16.0).abs() < 1e-9);
            assert!((placement.hottest_shard_after.unwrap() - 1.0 / 8.0).abs() < 1e-9);
            assert_eq!(predict(&place, Layout::split(1, 8, placement.first).unwrap()), placement);
        }
    }

    #[test]
    fn hot_shards_are_avoided() {
        let mapper = mapper(8);
        let shards = loads(&[50_000, 1000, 1000, 6000, 1000, 1000, 1000, 50_000]);
        let own: [(Arc<[u8]>, u64); 1] = [(Arc::from(b"s3".as_slice()), 5000)];
        let place = Place { mapper: Some(&mapper), key: b"c42", shares: &[0.25; 4], shards: &shards, own: &own };
        let placement = search(&place);
        let used = shards_of(&mapper, b"c42", placement.first, 4);
        assert!(!used.contains(&0) && !used.contains(&7), "{used:?}");
    }

    #[test]
    fn without_a_mapper_nothing_is_predicted() {
        let shards = loads(&[1, 2]);
        let place = Place { mapper: None, key: b"c42", shares: &[0.5; 2], shards: &shards, own: &[] };
        assert_eq!(search(&place), Placement { first: 0, hottest_shard_before: None, hottest_shard_after: None });
    }

    #[test]
    fn without_counts_the_buckets_are_spread_and_nothing_is_predicted() {
        let mapper = mapper(8);
        let place = Place { mapper: Some(&mapper), key: b"c42", shares: &[0.125; 8], shards: &[], own: &[] };
        let placement = search(&place);
        assert_eq!(shards_of(&mapper, b"c42", placement.first, 8).len(), 8);
        assert_eq!((placement.hottest_shard_before, placement.hottest_shard_after), (None, None));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// The best of all values is found: none of those that are searched does better.
        #[test]
        fn no_other_first_is_better(counts in prop::collection::vec(0_u64..10_000, 6), own in 1_u64..5_000, key in "[a-z]{1,6}", power in 1_u32..5) {
            let mapper = mapper(6);
            let mut shards = loads(&counts);
            shards[2].count = Estimate::exact(counts[2] + own);
            let own: [(Arc<[u8]>, u64); 1] = [(Arc::from(b"s2".as_slice()), own)];
            let buckets = 1_u32 << power;
            let shares = vec![1.0 / f64::from(buckets); buckets as usize];
            let place = Place { mapper: Some(&mapper), key: key.as_bytes(), shares: &shares, shards: &shards, own: &own };
            let best = search(&place).hottest_shard_after.unwrap();
            for first in 0..SEARCHED {
                let other = predict(&place, Layout::split(1, buckets, first).unwrap());
                prop_assert!(best <= other.hottest_shard_after.unwrap() + 1e-12);
            }
        }
    }
}
