//! Rendezvous, highest random weight (Thaler and Ravishankar, 1998): of all shards the one whose hash mixed with the key's is highest.
//!
//! The weight is `xorshift*64(hash(key) ^ hash(node))`, as in the Go package dgryski/go-rendezvous, which the ring of go-redis chooses
//! shards by (there with xxh64). Among equal weights the lowest number wins.

use super::hash::ShardHash;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rendezvous {
    hash: ShardHash,
    nodes: Vec<u64>,
}

impl Rendezvous {
    pub(super) fn new(hash: ShardHash, nodes: &[String]) -> Self {
        Self { hash, nodes: nodes.iter().map(|node| hash.number(node.as_bytes())).collect() }
    }

    pub(super) fn shard_of(&self, key: &[u8]) -> usize {
        let key = self.hash.number(key);
        let mut best = (0, 0);
        for (number, node) in self.nodes.iter().enumerate() {
            let weight = mix(key ^ node);
            if number == 0 || weight > best.0 {
                best = (weight, number);
            }
        }
        best.1
    }
}

/// One step of xorshift*64 (Vigna, 2016).
const fn mix(mut number: u64) -> u64 {
    number ^= number >> 12;
    number ^= number << 25;
    number ^= number >> 27;
    number.wrapping_mul(2_685_821_657_736_338_717)
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh64::xxh64;

    use super::*;

    fn nodes(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("shard-{number}")).collect()
    }

    /// No vectors are published. These are the answers of the package itself, on the nodes shard-0 ... shard-7: for c0 ... c23; for
    /// acme:order:0, 1000, 2000, 3000; and the xxh64 of those for key-0 ... key-9999, a line each. In Go 1.26, with
    /// `go get github.com/dgryski/go-rendezvous@v0.0.0-20200823014737-9f7001d12a5f github.com/cespare/xxhash/v2@v2.3.0`:
    /// `rendezvous.New(nodes, hash).Lookup(key)`, the hash `xxhash.Sum64String` and `fnv.New64a` of the standard library.
    #[test]
    fn keys_have_the_nodes_of_go_rendezvous() {
        for (hash, first, orders, digest) in [
            (
                ShardHash::Xxh64,
                [2, 7, 4, 1, 7, 5, 0, 1, 2, 4, 3, 2, 5, 3, 7, 1, 0, 7, 0, 1, 7, 7, 3, 1],
                [3, 6, 7, 2],
                0x506c_c90a_1e9c_2d31,
            ),
            (
                ShardHash::Fnv1a,
                [4, 0, 7, 0, 7, 7, 6, 2, 6, 2, 1, 3, 2, 2, 2, 3, 2, 2, 0, 0, 7, 3, 0, 2],
                [4, 3, 6, 1],
                0x9f6a_84e5_8aec_0cc3,
            ),
        ] {
            let eight = Rendezvous::new(hash, &nodes(8));
            let shard_of = |key: String| eight.shard_of(key.as_bytes());
            assert_eq!(std::array::from_fn(|n| shard_of(format!("c{n}"))), first, "{hash:?}");
            assert_eq!(std::array::from_fn(|n| shard_of(format!("acme:order:{}", n * 1000))), orders, "{hash:?}");
            let all: String = (0..10_000).map(|n| format!("shard-{}\n", shard_of(format!("key-{n}")))).collect();
            assert_eq!(xxh64(all.as_bytes(), 0), digest, "{hash:?}");
        }
    }

    #[test]
    fn only_the_keys_of_a_shard_that_goes_move() {
        let (nine, eight) =
            (Rendezvous::new(ShardHash::Xxh64, &nodes(9)), Rendezvous::new(ShardHash::Xxh64, &nodes(8)));
        for number in 0..10_000 {
            let key = format!("key-{number}");
            let (before, after) = (nine.shard_of(key.as_bytes()), eight.shard_of(key.as_bytes()));
            assert!(before == after || before == 8, "{key}");
        }
    }
}
