//! The most frequent names of a stream, in bounded memory.

use std::sync::Arc;

use crate::units::Estimate;

/// The most frequent of a stream of names, by Space-Saving (Metwally, Agrawal and El Abbadi, 2005): every name with more than
/// `events / room` of them is listed, and a count is too high by at most what its name took over.
///
/// `N` holds a name: bytes of its own, or shared ones.
#[derive(Debug, Clone)]
pub(crate) struct Frequent<N> {
    /// Apart from the rest, so that a look-up reads little memory.
    hashes: Vec<u64>,
    counted: Vec<Counted<N>>,
}

#[derive(Debug, Clone)]
struct Counted<N> {
    name: N,
    count: u64,
    /// Of `count`, at most so many are of names that were listed before.
    taken_over: u64,
}

impl<N: Default + AsRef<[u8]>> Frequent<N> {
    /// Nothing counted.
    pub(crate) const fn new() -> Self {
        Self { hashes: Vec::new(), counted: Vec::new() }
    }

    /// Counts one event of a name; `set` writes the name where it is not listed yet, over an older one or an empty one.
    pub(crate) fn add(&mut self, room: usize, hash: u64, set: impl FnOnce(&mut N)) {
        if let Some(at) = self.hashes.iter().position(|own| *own == hash) {
            self.counted[at].count += 1;
            // Frequent names drift to the front, where they are found first.
            if at > 0 && self.counted[at].count > self.counted[at - 1].count {
                self.hashes.swap(at, at - 1);
                self.counted.swap(at, at - 1);
            }
        } else if self.hashes.len() < room {
            let mut name = N::default();
            set(&mut name);
            self.hashes.push(hash);
            self.counted.push(Counted { name, count: 1, taken_over: 0 });
        } else if let Some((at, least)) = self.counted.iter_mut().enumerate().min_by_key(|(_, counted)| counted.count) {
            self.hashes[at] = hash;
            least.taken_over = least.count;
            least.count += 1;
            set(&mut least.name);
        }
    }

    /// Events of a name that is not listed, at the most.
    fn unlisted(&self, room: usize) -> u64 {
        if self.hashes.len() < room { 0 } else { self.counted.iter().map(|counted| counted.count).min().unwrap_or(0) }
    }

    fn bounds(&self, room: usize, hash: u64) -> Estimate {
        match self.hashes.iter().position(|own| *own == hash) {
            Some(at) => {
                let Counted { count, taken_over, .. } = self.counted[at];
                Estimate { lower: count - taken_over, upper: count }
            }
            None => Estimate { lower: 0, upper: self.unlisted(room) },
        }
    }
}

/// Names of both lists with bounds on their events, the busiest first; at most twice the room of one.
pub(crate) fn ranked<N: Default + AsRef<[u8]>>(lists: [&Frequent<N>; 2], room: usize) -> Vec<(Arc<[u8]>, Estimate)> {
    let [first, second] = lists;
    let mut all: Vec<(Arc<[u8]>, Estimate)> = Vec::new();
    for (hash, counted) in first.hashes.iter().zip(&first.counted) {
        all.push((Arc::from(counted.name.as_ref()), sum(first.bounds(room, *hash), second.bounds(room, *hash))));
    }
    for (hash, counted) in second.hashes.iter().zip(&second.counted) {
        if !first.hashes.contains(hash) {
            all.push((Arc::from(counted.name.as_ref()), sum(first.bounds(room, *hash), second.bounds(room, *hash))));
        }
    }
    all.sort_by(|a, b| (b.1.upper, b.1.lower).cmp(&(a.1.upper, a.1.lower)).then_with(|| a.0.cmp(&b.0)));
    all
}

/// Writes at most `max_bytes` of a name over another.
pub(crate) fn copy_name(own: &mut Vec<u8>, name: &[u8], max_bytes: usize) {
    own.clear();
    own.extend_from_slice(name.get(..max_bytes).unwrap_or(name));
}

const fn sum(a: Estimate, b: Estimate) -> Estimate {
    Estimate { lower: a.lower + b.lower, upper: a.upper + b.upper }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROOM: usize = 8;

    fn feed(frequent: &mut Frequent<Vec<u8>>, names: &[u8]) {
        names.iter().for_each(|name| frequent.add(ROOM, u64::from(*name), |own| copy_name(own, &[*name], 4)));
    }

    proptest! {
        #[test]
        fn bounds_hold_and_frequent_names_are_listed(
            first in prop::collection::vec(prop_oneof![3 => 0u8..4, 1 => any::<u8>()], 0..600),
            second in prop::collection::vec(prop_oneof![3 => 2u8..6, 1 => any::<u8>()], 0..600),
        ) {
            let (mut one, mut two) = (Frequent::new(), Frequent::new());
            feed(&mut one, &first);
            feed(&mut two, &second);
            let found = ranked([&one, &two], ROOM);
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

    #[test]
    fn a_long_name_is_cut_and_still_one_name() {
        let mut frequent = Frequent::new();
        feed(&mut frequent, b"aab");
        frequent.add(ROOM, 7, |own| copy_name(own, b"long", 2));
        assert_eq!(frequent.counted.last().unwrap().name, b"lo");
    }
}
