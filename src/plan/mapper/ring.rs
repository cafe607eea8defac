//! A ring with many points a shard (Karger and others, 1997): a key belongs to the first point at or behind its hash.
//!
//! | Points | Point `i` of a node | Hash of a key | As in |
//! |---|---|---|---|
//! | `ketama` | MD5 of `{node}-{i / 4}`, 32 bits from byte `4 x (i mod 4)` on, little-endian | the first 32 bits of its MD5 | libketama, libmemcached, spymemcached, twemproxy |
//! | `xxh64` | xxh64 of `{node}_{i}` | xxh64 | Envoy's `ring_hash` |
//!
//! Points of two nodes in one place, which nobody defines: the lowest number wins.

use xxhash_rust::xxh64::xxh64;

use super::InvalidMapper;
use super::md5::md5;

/// The most points of a ring.
pub const MAX_RING_POINTS: usize = 1 << 18;

/// How points and keys are hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingPoints {
    /// As libketama does.
    Ketama,
    /// As Envoy does.
    Xxh64,
}

impl RingPoints {
    /// Its name in configurations.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Ketama => "ketama",
            Self::Xxh64 => "xxh64",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ring {
    kind: RingPoints,
    /// Places in ascending order, each with its shard.
    points: Vec<(u64, u32)>,
}

impl Ring {
    pub(super) fn new(kind: RingPoints, points: usize, nodes: &[String]) -> Result<Self, InvalidMapper> {
        let fault = |rule, remedy| Err(InvalidMapper { setting: "points", rule, remedy });
        if points == 0 || kind == RingPoints::Ketama && !points.is_multiple_of(4) {
            let rule = "should be a multiple of 4 with hash = \"ketama\", of which each MD5 gives 4";
            return fault(rule.to_owned(), "160 is what libketama has");
        }
        if points.saturating_mul(nodes.len()) > MAX_RING_POINTS {
            let rule = format!("should make at most {MAX_RING_POINTS} points for all {} shards together", nodes.len());
            return fault(rule, "choose fewer points");
        }
        let mut ring: Vec<(u64, u32)> = Vec::with_capacity(points * nodes.len());
        for (node, shard) in nodes.iter().zip(0..) {
            match kind {
                RingPoints::Ketama => {
                    let digests = (0..points / 4).map(|index| md5(format!("{node}-{index}").as_bytes()));
                    ring.extend(digests.flatten().map(|place| (u64::from(place), shard)));
                }
                RingPoints::Xxh64 => {
                    ring.extend((0..points).map(|index| (xxh64(format!("{node}_{index}").as_bytes(), 0), shard)));
                }
            }
        }
        ring.sort_unstable();
        Ok(Self { kind, points: ring })
    }

    pub(super) fn shard_of(&self, key: &[u8]) -> usize {
        let hash = match self.kind {
            RingPoints::Ketama => u64::from(md5(key)[0]),
            RingPoints::Xxh64 => xxh64(key, 0),
        };
        self.at(hash)
    }

    /// The shard of a place.
    fn at(&self, hash: u64) -> usize {
        let index = self.points.partition_point(|(place, _)| *place < hash);
        self.points.get(index).or(self.points.first()).map_or(0, |(_, shard)| *shard as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::md5::md5_hex;
    use super::*;

    fn nodes(count: u16, name: impl Fn(u16) -> String) -> Vec<String> {
        (0..count).map(name).collect()
    }

    fn ketama(nodes: &[String]) -> Ring {
        Ring::new(RingPoints::Ketama, 160, nodes).unwrap()
    }

    #[test]
    fn ketama_has_the_places_of_spymemcached() {
        // KetamaNodeLocatorTest of spymemcached: testLookups, testContinuumWrapping, testClusterResizing, testLibKetamaCompat.
        let local = |count| ketama(&nodes(count, |number| format!("127.0.0.1:{}", 10_000 + number)));
        let four = local(4);
        assert_eq!(four.points.last().unwrap().0, 4_294_887_009);
        for (key, shard) in
            [("dustin", 0), ("noelani", 2), ("some other key", 0), ("V5XS8C8N", 3), ("8KR2DKR2", 3), ("L9KH6X4X", 3)]
        {
            assert_eq!(four.shard_of(key.as_bytes()), shard, "{key} on 4");
        }
        let five = local(5);
        for (key, shard) in
            [("dustin", 0), ("noelani", 2), ("some other key", 4), ("36", 2), ("10037", 3), ("22051", 1), ("49044", 4)]
        {
            assert_eq!(five.shard_of(key.as_bytes()), shard, "{key} on 5");
        }
    }

    #[test]
    fn ketama_has_the_places_of_libketama() {
        // testLibKetamaCompatTwo of the same test: keys that libketama itself placed on 10.0.1.1:11211 ... 10.0.1.8:11211.
        let eight = nodes(8, |number| format!("10.0.1.{}:11211", number + 1));
        let ring = ketama(&eight);
        let placed = [1, 7, 3, 1, 6, 2, 1, 6, 5, 3, 7, 3, 6, 1, 2, 3, 8, 4, 4, 3, 4, 7, 4, 2, 2, 3, 2, 7, 5, 5];
        for (number, node) in placed.into_iter().enumerate() {
            assert_eq!(ring.shard_of((233 * number).to_string().as_bytes()) + 1, node, "{}", 233 * number);
        }
        // MD5 of the nodes of key-0 ... key-9999, a line each, by `pip install uhashring==2.5`: `HashRing(nodes=nodes, hash_fn="ketama").get_node(key)`.
        let all: String =
            (0..10_000).map(|n| format!("{}\n", eight[ring.shard_of(format!("key-{n}").as_bytes())])).collect();
        assert_eq!(md5_hex(all.as_bytes()), "97bc343cd52af3882b64a0113c8e0195");
    }

    #[test]
    fn xxh64_has_the_places_of_envoy() {
        // RingHashLoadBalancerTest.Basic of Envoy: 127.0.0.1:90 ... 95, twelve points; then BasicWithHostname: 90 ... 95.
        let hosts = nodes(6, |number| format!("127.0.0.1:{}", 90 + number));
        let ring = Ring::new(RingPoints::Xxh64, 2, &hosts).unwrap();
        let expected = [
            (833_437_586_790_550_860, 4),
            (928_266_305_478_181_108, 2),
            (1_033_482_794_131_418_490, 0),
            (3_551_244_743_356_806_947, 5),
            (3_851_675_632_748_031_481, 3),
            (5_583_722_120_771_150_861, 1),
            (6_311_230_543_546_372_928, 1),
            (7_700_377_290_971_790_572, 3),
            (13_144_177_310_400_110_813, 5),
            (13_444_792_449_719_432_967, 2),
            (15_516_499_411_664_133_160, 4),
            (16_117_243_373_044_804_889, 0),
        ];
        assert_eq!(ring.points, expected);
        for (hash, shard) in [
            (0, 4),
            (u64::MAX, 4),
            (3_551_244_743_356_806_947, 5),
            (3_551_244_743_356_806_948, 3),
            (16_117_243_373_044_804_880, 0),
        ] {
            assert_eq!(ring.at(hash), shard, "{hash}");
        }
        let ring = Ring::new(RingPoints::Xxh64, 2, &nodes(6, |number| (90 + number).to_string())).unwrap();
        assert_eq!(ring.points[0], (1_975_508_444_536_362_413, 5));
        assert_eq!((ring.at(7_225_015_537_174_310_577), ring.at(6_803_900_775_736_438_537)), (2, 3));
        let key = b"c42";
        assert_eq!(ring.shard_of(key), ring.at(xxh64(key, 0)));
    }

    #[test]
    fn only_the_keys_of_a_shard_that_goes_move() {
        let (nine, eight) = (ketama(&nodes(9, |n| format!("s{n}"))), ketama(&nodes(8, |n| format!("s{n}"))));
        for number in 0..10_000 {
            let key = format!("key-{number}");
            let (before, after) = (nine.shard_of(key.as_bytes()), eight.shard_of(key.as_bytes()));
            assert!(before == after || before == 8, "{key}");
        }
    }

    #[test]
    fn rings_that_cannot_be_are_refused() {
        let refused = |kind, points, count| Ring::new(kind, points, &nodes(count, |n| n.to_string())).unwrap_err().rule;
        assert!(refused(RingPoints::Ketama, 10, 4).contains("multiple of 4"));
        assert!(refused(RingPoints::Xxh64, 1024, 1000).contains("at most 262144 points"));
    }
}
