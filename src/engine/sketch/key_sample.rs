//! A uniform sample of distinct keys with exact counts (theta sample, after Cohen and Kaplan's bottom-k sketches).

use hashbrown::HashTable;

/// Every key whose hash is at or below `theta`, with its exact count.
///
/// Whether a key is kept depends on its hash alone, so the counts are exact from the first event on, the sample is uniform
/// over distinct keys, and the same set of events in any order leaves the same sample. `theta` starts at 1 (all hashes) and
/// halves whenever more than `limit` keys are kept: with at most `limit` names the sample is the whole truth.
#[derive(Debug, Clone)]
pub(crate) struct KeySample {
    theta: u64,
    limit: usize,
    counts: HashTable<(u64, u32)>,
}

impl KeySample {
    /// An empty sample of at most `limit` keys, and of at least 2.
    pub(crate) fn new(limit: usize) -> Self {
        Self { theta: u64::MAX, limit: limit.max(2), counts: HashTable::new() }
    }

    /// A sample of these keys, all of them different and with hashes at or below `theta`.
    pub(crate) fn of(limit: usize, theta: u64, entries: &[(u64, u32)]) -> Self {
        let mut sample = Self { theta, ..Self::new(limit) };
        for entry in entries.iter().take(sample.limit) {
            sample.counts.insert_unique(spread(entry.0), *entry, |entry| spread(entry.0));
        }
        sample
    }

    /// Bytes that a sample of at most `limit` keys can take.
    pub(crate) fn max_bytes(limit: usize) -> u64 {
        let slots = limit.max(2).saturating_add(1).saturating_mul(8).div_ceil(7).next_power_of_two();
        (slots as u64).saturating_mul(size_of::<(u64, u32)>() as u64 + 1)
    }

    /// True when keys with this hash are kept, those without events included.
    #[inline]
    pub(crate) const fn covers(&self, hash: u64) -> bool {
        hash <= self.theta
    }

    /// True when every key is kept.
    pub(crate) const fn is_complete(&self) -> bool {
        self.theta == u64::MAX
    }

    /// The share of all hashes that is kept is `(theta + 1) / 2^64`.
    pub(crate) const fn theta(&self) -> u64 {
        self.theta
    }

    /// The most keys kept.
    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }

    /// Number of keys kept.
    pub(crate) fn len(&self) -> usize {
        self.counts.len()
    }

    /// The count of a key; 0 also where it is not covered.
    pub(crate) fn count(&self, hash: u64) -> u32 {
        self.counts.find(spread(hash), |entry| entry.0 == hash).map_or(0, |entry| entry.1)
    }

    /// The keys with their counts, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.counts.iter().copied()
    }

    /// True when one more event of this key would halve theta.
    pub(crate) fn would_halve(&self, hash: u64) -> bool {
        self.covers(hash)
            && self.counts.len() >= self.limit
            && self.counts.find(spread(hash), |entry| entry.0 == hash).is_none()
    }

    /// Adds events of one key.
    #[inline]
    pub(crate) fn add(&mut self, hash: u64, count: u32) {
        if !self.covers(hash) {
            return;
        }
        if let Some(entry) = self.counts.find_mut(spread(hash), |entry| entry.0 == hash) {
            entry.1 = entry.1.wrapping_add(count);
            return;
        }
        self.insert(hash, count);
    }

    /// What a covered key was noted with first; a key that is new is noted with `value`. The least value of a key counts.
    #[inline]
    pub(crate) fn first(&mut self, hash: u64, value: u32) -> Option<u32> {
        if !self.covers(hash) {
            return None;
        }
        match self.counts.find_mut(spread(hash), |entry| entry.0 == hash) {
            Some(entry) => entry.1 = entry.1.min(value),
            None => self.insert(hash, value),
        }
        self.covers(hash).then(|| self.count(hash))
    }

    #[cold]
    fn insert(&mut self, hash: u64, count: u32) {
        self.counts.insert_unique(spread(hash), (hash, count), |entry| spread(entry.0));
        while self.counts.len() > self.limit && self.theta > 0 {
            self.cut_to(self.theta >> 1);
        }
    }

    /// Adds another sample: the union under the lesser theta.
    pub(crate) fn merge(&mut self, other: &Self) {
        if other.theta < self.theta {
            self.cut_to(other.theta);
        }
        for (hash, count) in other.iter() {
            self.add(hash, count);
        }
    }

    /// Keeps only hashes at or below `theta`.
    fn cut_to(&mut self, theta: u64) {
        self.theta = theta;
        self.counts.retain(|entry| entry.0 <= theta);
    }

    /// Forgets everything; theta is 1 again.
    pub(crate) fn clear(&mut self) {
        self.theta = u64::MAX;
        self.counts.clear();
    }
}

/// The hash for the table: kept hashes share their high bits, by which the table tells entries apart.
const fn spread(hash: u64) -> u64 {
    hash.rotate_left(32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::hash::key_hash;
    use super::*;

    fn sorted(sample: &KeySample) -> (u64, Vec<(u64, u32)>) {
        let mut entries: Vec<_> = sample.iter().collect();
        entries.sort_unstable();
        (sample.theta(), entries)
    }

    #[test]
    fn few_names_are_the_whole_truth() {
        let mut sample = KeySample::new(8);
        for n in 0..8u64 {
            sample.add(key_hash(&n.to_le_bytes(), 1), 1);
        }
        assert!(sample.is_complete());
        assert!(sample.would_halve(key_hash(b"ninth", 1)));
        sample.add(key_hash(b"ninth", 1), 1);
        assert!(!sample.is_complete());
        sample.clear();
        assert!(sample.is_complete() && sample.len() == 0);
    }

    proptest! {
        #[test]
        fn order_and_split_leave_the_same_sample(
            mut names in prop::collection::vec(0u32..300, 0..900), cut in 0usize..900, seed in any::<u64>(),
        ) {
            let hash = |name: &u32| key_hash(&name.to_le_bytes(), seed);
            let mut whole = KeySample::new(32);
            names.iter().for_each(|name| whole.add(hash(name), 1));
            let (mut left, mut right) = (KeySample::new(32), KeySample::new(32));
            let cut = cut.min(names.len());
            names[..cut].iter().for_each(|name| left.add(hash(name), 1));
            names[cut..].iter().for_each(|name| right.add(hash(name), 1));
            left.merge(&right);
            prop_assert_eq!(sorted(&left), sorted(&whole));
            names.reverse();
            let mut turned = KeySample::new(32);
            names.iter().for_each(|name| turned.add(hash(name), 1));
            prop_assert_eq!(sorted(&turned), sorted(&whole));
            for (hash_kept, count) in whole.iter() {
                let true_count = names.iter().filter(|name| hash(name) == hash_kept).count();
                prop_assert_eq!(usize::try_from(count).unwrap(), true_count);
            }
        }
    }
}
