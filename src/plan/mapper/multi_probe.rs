//! Multi-probe consistent hashing (Appleton and O'Reilly, 2015): one point a shard, several probes a key; the probe that is nearest
//! before a point has it.
//!
//! Point and probes are as in the Go package dgryski/go-mpchash: the point is the hash of the node with seed 0, probe `i` is
//! `h1 + i x h2`, `h1` and `h2` the key's hashes with two seeds. A point in the very place of a probe is behind it by a whole turn; of
//! equal distances the first probe's counts.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;
use xxhash_rust::xxh64::xxh64;

/// A hash with a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeededHash {
    /// SipHash-2-4 with the key (seed, 0).
    Siphash,
    /// xxh64 with the seed.
    Xxh64,
}

impl SeededHash {
    /// Its name in configurations.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Siphash => "siphash",
            Self::Xxh64 => "xxh64",
        }
    }

    fn number(self, data: &[u8], seed: u64) -> u64 {
        match self {
            Self::Siphash => {
                let mut hasher = SipHasher24::new_with_keys(seed, 0);
                hasher.write(data);
                hasher.finish()
            }
            Self::Xxh64 => xxh64(data, seed),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MultiProbe {
    hash: SeededHash,
    seeds: [u64; 2],
    probes: u32,
    /// Places in ascending order, each with its shard.
    points: Vec<(u64, u32)>,
}

impl MultiProbe {
    pub(super) fn new(hash: SeededHash, seeds: [u64; 2], probes: u32, nodes: &[String]) -> Self {
        let place = |(node, shard): (&String, u32)| (hash.number(node.as_bytes(), 0), shard);
        let mut points: Vec<(u64, u32)> = nodes.iter().zip(0..).map(place).collect();
        points.sort_unstable();
        Self { hash, seeds, probes: probes.max(1), points }
    }

    pub(super) fn shard_of(&self, key: &[u8]) -> usize {
        let [first, step] = self.seeds.map(|seed| self.hash.number(key, seed));
        let behind = |probe: u32| {
            let place = first.wrapping_add(step.wrapping_mul(u64::from(probe)));
            let index = self.points.partition_point(|(point, _)| *point <= place);
            let (point, shard) = self.points.get(index).or(self.points.first()).copied().unwrap_or_default();
            (point.wrapping_sub(place), shard)
        };
        // Of equal minima the first is taken.
        (0..self.probes).map(behind).min_by_key(|(distance, _)| *distance).map_or(0, |(_, shard)| shard as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::md5::md5_hex;
    use super::*;

    #[test]
    fn keys_have_the_shards_of_go_mpchash() {
        // testdata/compat.out of go-mpchash: the shards of the keys shard-1 ... shard-6000 on shards of these names, 21 probes, seeds 1 and
        // 2: the first 24 lines, three others, and the MD5 of the file.
        let names: Vec<String> = (1..=6000).map(|number| format!("shard-{number}")).collect();
        let mapper = MultiProbe::new(SeededHash::Siphash, [1, 2], 21, &names);
        let shards: Vec<usize> = names.iter().map(|key| mapper.shard_of(key.as_bytes()) + 1).collect();
        let first = [
            1389, 4257, 4744, 4613, 3027, 1872, 3565, 5494, 5517, 3009, 163, 2061, 5627, 787, 2917, 2329, 3737, 4750,
            1660, 21, 1366, 1272, 4159, 1618,
        ];
        assert_eq!(shards[..24], first);
        assert_eq!((shards[999], shards[2999], shards[5999]), (4028, 665, 2299));
        let file: String = shards.iter().map(|shard| format!("shard-{shard}\n")).collect();
        assert_eq!(md5_hex(file.as_bytes()), "3c8c617b8f193a12b04c414da353b700");
    }

    #[test]
    fn only_the_keys_of_a_shard_that_goes_move() {
        let names: Vec<String> = (0..9).map(|number| format!("s{number}")).collect();
        let of = |count: usize| MultiProbe::new(SeededHash::Xxh64, [1, 2], 21, &names[..count]);
        let (nine, eight) = (of(9), of(8));
        for number in 0..10_000 {
            let key = format!("key-{number}");
            let (before, after) = (nine.shard_of(key.as_bytes()), eight.shard_of(key.as_bytes()));
            assert!(before == after || before == 8, "{key}");
        }
    }
}
