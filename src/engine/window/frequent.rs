//! The most frequent names of a stream, in bounded memory.

use std::sync::Arc;

use crate::units::Estimate;

/// The most frequent of a stream of names, by Space-Saving (Metwally, Agrawal and El Abbadi, 2005): every name with more than
/// `events / ROOM` of them is listed, and a count is too high by at most what its name took over. Fewer than 2^32 events.
///
/// `N` holds a name: bytes of its own, or shared ones. It lies apart from the numbers, so that a look-up reads little memory.
#[derive(Debug, Clone)]
pub(crate) struct Frequent<N, const ROOM: usize> {
    hashes: [u64; ROOM],
    counts: [u32; ROOM],
    /// Of the count, at most so many are of names that were listed before.
    taken_over: [u32; ROOM],
    /// Those that are listed; the numbers of others are zero.
    names: Vec<N>,
}

impl<N, const ROOM: usize> Default for Frequent<N, ROOM> {
    fn default() -> Self {
        Self { hashes: [0; ROOM], counts: [0; ROOM], taken_over: [0; ROOM], names: Vec::new() }
    }
}

impl<N: Default + AsRef<[u8]>, const ROOM: usize> Frequent<N, ROOM> {
    /// Counts one event of a name; `set` writes the name where it is not listed yet, over an older one or an empty one.
    #[inline]
    pub(crate) fn add(&mut self, hash: u64, set: impl FnOnce(&mut N)) {
        match self.position(hash) {
            Some(0) => self.counts[0] += 1,
            Some(at) => {
                self.counts[at] += 1;
                // Frequent names drift to the front, where they are found first.
                if self.counts[at] > self.counts[at - 1] {
                    self.swap(at, at - 1);
                }
            }
            None => self.list(hash, set),
        }
    }

    fn list(&mut self, hash: u64, set: impl FnOnce(&mut N)) {
        let mut at = self.names.len();
        if at < ROOM {
            self.names.reserve_exact(ROOM - at);
            self.names.push(N::default());
        } else {
            let least = self.least();
            at = self.counts.iter().position(|count| *count == least).unwrap_or(0);
        }
        self.hashes[at] = hash;
        self.taken_over[at] = self.counts[at];
        self.counts[at] += 1;
        if let Some(name) = self.names.get_mut(at) {
            set(name);
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.hashes.swap(a, b);
        self.counts.swap(a, b);
        self.taken_over.swap(a, b);
        self.names.swap(a, b);
    }

    #[inline]
    fn position(&self, hash: u64) -> Option<usize> {
        self.hashes.iter().take(self.names.len()).position(|own| *own == hash)
    }

    /// Events of a name that is not listed, at the most.
    fn least(&self) -> u32 {
        self.counts.iter().fold(u32::MAX, |least, count| least.min(*count))
    }

    fn bounds(&self, hash: u64) -> Estimate {
        let [lower, upper] = match self.position(hash) {
            Some(at) => [self.counts[at] - self.taken_over[at], self.counts[at]],
            None => [0, self.least()],
        };
        Estimate { lower: lower.into(), upper: upper.into() }
    }

    fn listed(&self) -> impl Iterator<Item = (u64, &N)> {
        self.hashes.iter().copied().zip(&self.names)
    }
}

/// Names of both lists with bounds on their events, the busiest first; at most twice the room of one.
pub(crate) fn ranked<N: Default + AsRef<[u8]>, const ROOM: usize>(
    [first, second]: [&Frequent<N, ROOM>; 2],
) -> Vec<(Arc<[u8]>, Estimate)> {
    let more = second.listed().filter(|(hash, _)| first.position(*hash).is_none());
    let both = |hash| sum(first.bounds(hash), second.bounds(hash));
    let all = first.listed().chain(more).map(|(hash, name)| (Arc::from(name.as_ref()), both(hash)));
    let mut all: Vec<(Arc<[u8]>, Estimate)> = all.collect();
    all.sort_by(|a, b| (b.1.upper, b.1.lower).cmp(&(a.1.upper, a.1.lower)).then_with(|| a.0.cmp(&b.0)));
    all
}

const fn sum(a: Estimate, b: Estimate) -> Estimate {
    Estimate { lower: a.lower + b.lower, upper: a.upper + b.upper }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROOM: usize = 8;

    fn feed(frequent: &mut Frequent<Vec<u8>, ROOM>, names: &[u8]) {
        names.iter().for_each(|name| frequent.add(u64::from(*name), |own| [*name].as_slice().clone_into(own)));
    }

    proptest! {
        #[test]
        fn bounds_hold_and_frequent_names_are_listed(
            first in prop::collection::vec(prop_oneof![3 => 0u8..4, 1 => any::<u8>()], 0..600),
            second in prop::collection::vec(prop_oneof![3 => 2u8..6, 1 => any::<u8>()], 0..600),
        ) {
            let (mut one, mut two) = (Frequent::default(), Frequent::default());
            feed(&mut one, &first);
            feed(&mut two, &second);
            let found = ranked([&one, &two]);
            let truth = |name: u8| first.iter().chain(&second).filter(|other| **other == name).count() as u64;
            for (name, events) in &found {
                let truth = truth(name[0]);
                prop_assert!(events.lower <= truth && truth <= events.upper, "{name:?}: {truth} in {events}");
            }
            let all = (first.len() + second.len()) as u64;
            for name in 0..=u8::MAX {
                let listed = found.iter().any(|(other, _)| **other == [name]);
                prop_assert!(listed || truth(name) * ROOM as u64 <= all, "{name} of {all}");
            }
        }
    }
}
