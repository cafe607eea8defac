//! One hash a key; the cell of each row by multiply-shift of that hash.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Rows unless told otherwise.
pub(crate) const USUAL_DEPTH: usize = 4;
/// The most rows of a count-min table.
pub(crate) const MAX_DEPTH: usize = 8;
/// The widest row, as a power of two: 16 Mi cells.
pub(crate) const MAX_WIDTH_LOG2: u32 = 24;

/// The hash by which a key is known everywhere in the engine.
#[inline]
pub(crate) fn key_hash(key: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(key, seed)
}

/// Which cell of each row counts a hash.
///
/// `(hash x odd) >> (64 - width_log2)` with one odd factor a row is a 2-approximately universal family (Dietzfelbinger and
/// others, 1997), so two keys that share a cell of one row share one of the next at the chance rate only. Factors made as
/// multiples of a second hash would not have that property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rows {
    factors: Box<[u64]>,
    width_log2: u32,
}

impl Rows {
    /// `depth` rows of `2^width_log2` cells, both brought into range; the factors follow from the seed.
    pub(crate) fn new(depth: usize, width_log2: u32, seed: u64) -> Self {
        let depth = depth.clamp(1, MAX_DEPTH);
        let mut state = seed;
        let factors = (0..depth).map(|_| split_mix(&mut state) | 1).collect();
        Self { factors, width_log2: width_log2.clamp(1, MAX_WIDTH_LOG2) }
    }

    /// Number of rows.
    pub(crate) fn depth(&self) -> usize {
        self.factors.len()
    }

    /// Cells a row, as a power of two.
    pub(crate) const fn width_log2(&self) -> u32 {
        self.width_log2
    }

    /// The factors of the usual depth, so that its loop has a known length; none for another depth.
    #[inline]
    pub(crate) fn usual(&self) -> Option<([u64; USUAL_DEPTH], u32)> {
        Some((<[u64; USUAL_DEPTH]>::try_from(&*self.factors).ok()?, self.width_log2))
    }

    /// Cells of all rows together.
    pub(crate) fn cells(&self) -> usize {
        self.factors.len() << self.width_log2
    }

    /// The index, in a row-major table, of the hash's cell in each row.
    #[inline]
    pub(crate) fn of(&self, hash: u64) -> impl Iterator<Item = usize> + '_ {
        let shift = 64 - self.width_log2;
        self.factors
            .iter()
            .enumerate()
            .map(move |(row, factor)| (row << self.width_log2) + as_index(hash.wrapping_mul(*factor) >> shift))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "at most MAX_WIDTH_LOG2 bits are left after the shift")]
pub(super) const fn as_index(column: u64) -> usize {
    column as usize
}

/// The next number of Vigna's SplitMix64, a fixed public generator: the same seed gives the same rows everywhere.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GOLDEN);
    mixed(*state)
}

/// The step of [`split_mix`]: 2^64 by the golden ratio, odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number of this place in the row that [`split_mix`] gives from zero on: as good as random, and the same in every run.
pub(crate) const fn scatter(place: u64) -> u64 {
    mixed(place.wrapping_mul(GOLDEN))
}

const fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H17 (infinispan/infinispan#17366): pairs that collide in one row collide in the next at the chance rate only.
    #[test]
    fn h17_rows_collide_independently() {
        const WIDTH_LOG2: u32 = 11;
        let rows = Rows::new(4, WIDTH_LOG2, 7);
        let cells: Vec<Vec<usize>> = (0..20_000u32).map(|n| rows.of(key_hash(&n.to_le_bytes(), 7)).collect()).collect();
        let mut by_first: std::collections::BTreeMap<usize, Vec<usize>> = std::collections::BTreeMap::new();
        for (n, own) in cells.iter().enumerate() {
            by_first.entry(own[0]).or_default().push(n);
        }
        for row in 1..4 {
            let (mut pairs, mut both) = (0u64, 0u64);
            for group in by_first.values() {
                for (at, &a) in group.iter().enumerate() {
                    for &b in &group[at + 1..] {
                        pairs += 1;
                        both += u64::from(cells[a].get(row) == cells[b].get(row));
                    }
                }
            }
            // About 97,600 pairs, of which chance lets 1 in 2048 collide again: 48. Twice the 2-universal bound is 191.
            assert!(pairs > 50_000, "{pairs}");
            assert!(both <= 4 * pairs / (1 << WIDTH_LOG2), "row {row}: {both} of {pairs}");
        }
    }

    #[test]
    fn shapes_out_of_range_are_brought_into_it() {
        assert_eq!(Rows::new(0, 0, 1).cells(), 2);
        assert_eq!(Rows::new(99, 3, 1).cells(), MAX_DEPTH * 8);
        assert!(Rows::new(8, 3, 1).of(u64::MAX).all(|cell| cell < 64));
    }
}
