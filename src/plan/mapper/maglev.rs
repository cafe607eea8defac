//! Maglev (Eisenbud and others, 2016): a table that shards fill in turn, each by a permutation of its own.
//!
//! As in Envoy: a node's permutation begins at `xxh64(node, 0) mod M` and steps by `xxh64(node, 1) mod (M - 1) + 1`, where M is the
//! size of the table, a prime; a key's place is `xxh64(key, 0) mod M`.

use xxhash_rust::xxh64::xxh64;

use super::InvalidMapper;

/// The size of the table unless another is asked for: the smaller one of the paper.
pub const MAGLEV_TABLE: u32 = 65_537;
/// The largest table: the larger one of the paper.
pub const MAX_MAGLEV_TABLE: u32 = 655_373;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Maglev {
    table: Vec<u16>,
}

/// Where a permutation begins, and its step.
type Permutation = (usize, usize);

impl Maglev {
    pub(super) fn new(size: u32, nodes: &[String]) -> Result<Self, InvalidMapper> {
        let fault = |rule, remedy| Err(InvalidMapper { setting: "table_size", rule, remedy });
        if !(2..=MAX_MAGLEV_TABLE).contains(&size) || !is_prime(size) {
            let rule = format!("should be a prime of at most {MAX_MAGLEV_TABLE}: every step has to reach every place");
            return fault(rule, "65537 is what the paper and Envoy have");
        }
        if nodes.len() > size as usize {
            return fault(format!("should be at least the number of shards, {}", nodes.len()), "choose a larger prime");
        }
        let permutation = |node: &String| {
            let remainder = |seed, modulus: u32| reduced(xxh64(node.as_bytes(), seed), modulus as usize);
            (remainder(0, size), remainder(1, size - 1) + 1)
        };
        Ok(Self { table: populate(nodes.iter().map(permutation).collect(), size as usize) })
    }

    pub(super) fn shard_of(&self, key: &[u8]) -> usize {
        self.at(xxh64(key, 0))
    }

    /// The shard of a hash.
    fn at(&self, hash: u64) -> usize {
        self.table.get(reduced(hash, self.table.len())).copied().map_or(0, usize::from)
    }
}

/// The remainder, as an index.
fn reduced(hash: u64, modulus: usize) -> usize {
    usize::try_from(hash % (modulus as u64).max(1)).unwrap_or(0)
}

/// Shards take the next free place of their permutation, in turn, until none is free.
fn populate(mut permutations: Vec<Permutation>, size: usize) -> Vec<u16> {
    let mut table: Vec<Option<u16>> = vec![None; size];
    let mut free = size;
    while free > 0 && !permutations.is_empty() {
        for ((next, step), shard) in permutations.iter_mut().zip(0..) {
            while table.get(*next).is_some_and(Option::is_some) {
                *next = (*next + *step) % size;
            }
            if let Some(place) = table.get_mut(*next).filter(|_| free > 0) {
                *place = Some(shard);
                free -= 1;
            }
            if free == 0 {
                break;
            }
        }
    }
    table.into_iter().map(Option::unwrap_or_default).collect()
}

fn is_prime(number: u32) -> bool {
    number >= 2
        && (2..).take_while(|divisor| divisor * divisor <= number).all(|divisor| !number.is_multiple_of(divisor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_paper() {
        // Table 1: permutations (offset, skip) of B0, B1, B2 are (3, 4), (0, 2), (3, 1); the table before and after B1 is removed.
        assert_eq!(populate(vec![(3, 4), (0, 2), (3, 1)], 7), [1, 0, 1, 0, 2, 2, 0]);
        assert_eq!(populate(vec![(3, 4), (3, 1)], 7), [0, 0, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn the_tables_of_envoy() {
        // MaglevLoadBalancerTest of Envoy: Basic, BasicWithHostName; hash `i` is at place `i mod 7`.
        let of = |name: &dyn Fn(u16) -> String| Maglev::new(7, &(90..96).map(name).collect::<Vec<_>>()).unwrap();
        let basic = of(&|port| format!("127.0.0.1:{port}"));
        assert_eq!(basic.table, [2, 4, 0, 1, 5, 0, 3]);
        assert_eq!((0..21).map(|hash| basic.at(hash)).collect::<Vec<_>>(), [2, 4, 0, 1, 5, 0, 3].repeat(3));
        assert_eq!(of(&|port| port.to_string()).table, [2, 5, 0, 3, 4, 1, 0]);
        assert_eq!(basic.shard_of(b"c42"), basic.at(xxh64(b"c42", 0)));
        // LocalityWeightedSameLocalityWeights: two hosts alike on 17 places.
        let two = Maglev::new(17, &["127.0.0.1:90".to_owned(), "127.0.0.1:91".to_owned()]).unwrap();
        assert_eq!(two.table, [1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1]);
    }

    #[test]
    fn shards_have_almost_the_same_number_of_places() {
        let names: Vec<String> = (0..100).map(|number| format!("s{number}")).collect();
        let maglev = Maglev::new(MAGLEV_TABLE, &names).unwrap();
        let mut places = vec![0; 100];
        maglev.table.iter().for_each(|shard| places[usize::from(*shard)] += 1);
        let (least, most) = (places.iter().min().unwrap(), places.iter().max().unwrap());
        assert!(most - least <= 1, "{least} to {most}");
    }

    #[test]
    fn tables_that_cannot_be_are_refused() {
        let refused = |size, count: usize| Maglev::new(size, &vec![String::new(); count]).unwrap_err().rule;
        assert!(refused(8, 2).contains("a prime of at most 655373"));
        assert!(refused(655_387, 2).contains("a prime of at most 655373"));
        assert!(refused(0, 2).contains("a prime"));
        assert!(refused(7, 8).contains("at least the number of shards, 8"));
    }
}
