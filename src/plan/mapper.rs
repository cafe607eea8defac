//! How a store maps a key to a shard, declared so that the placement of buckets can be chosen.
//!
//! Every reduction is written down: the same hash reduced in another way sends half of all keys elsewhere.
//!
//! | Hash | Number | Vectors from |
//! |---|---|---|
//! | `murmur2` | 32 bits with seed 0x9747b28c, then `& 0x7fffffff`, as Kafka's default partitioner does | Kafka's own unit test |
//! | `crc32` | CRC-32 (IEEE 802.3, reflected, as in zlib), unsigned 32 bits | the check value of the CRC catalogue |
//! | `fnv1a` | FNV-1a, 64 bits, unsigned | the authors' test vectors |
//! | `xxh64` | xxHash 64 with seed 0, unsigned | the specification |

use xxhash_rust::xxh64::xxh64;

/// A declared shard mapper with the names of its shards, in the order of their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapper {
    /// The function.
    pub kind: MapperKind,
    /// Names of the shards: as they appear in events.
    pub shards: Vec<String>,
}

/// The function from a key to a shard number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapperKind {
    /// `hash(key) mod shards`.
    Modulo(ShardHash),
    /// Jump consistent hash of `hash(key)` (Lamping and Veach, 2014).
    Jump(ShardHash),
}

/// Hash functions of shard mappers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardHash {
    /// Kafka's murmur2, its sign bit masked.
    Murmur2,
    /// CRC-32 (IEEE).
    Crc32,
    /// FNV-1a, 64 bits.
    Fnv1a,
    /// xxh64 with seed 0.
    Xxh64,
}

impl Mapper {
    /// The number of the shard of a key of the store; 0 when no shards are declared.
    #[must_use]
    pub fn shard_of(&self, key: &[u8]) -> usize {
        let shards = u64::try_from(self.shards.len()).unwrap_or(u64::MAX).max(1);
        let number = match self.kind {
            MapperKind::Modulo(hash) => hash.number(key) % shards,
            MapperKind::Jump(hash) => jump(hash.number(key), shards),
        };
        usize::try_from(number).unwrap_or(0)
    }

    /// The name of the shard of a key of the store; none when no shards are declared.
    #[must_use]
    pub fn shard_name(&self, key: &[u8]) -> Option<&str> {
        self.shards.get(self.shard_of(key)).map(String::as_str)
    }
}

impl ShardHash {
    /// The hash of a key as the number that is reduced.
    #[must_use]
    pub fn number(self, key: &[u8]) -> u64 {
        match self {
            Self::Murmur2 => u64::from(murmur2(key) & 0x7fff_ffff),
            Self::Crc32 => u64::from(crc32(key)),
            Self::Fnv1a => fnv1a(key),
            Self::Xxh64 => xxh64(key, 0),
        }
    }
}

/// `MurmurHash2`, 32 bits, little-endian, with the seed that Kafka uses.
fn murmur2(data: &[u8]) -> u32 {
    const MULTIPLIER: u32 = 0x5bd1_e995;
    const SEED: u32 = 0x9747_b28c;
    // Kafka mixes the length as a 32-bit number; a longer key is no key of a record.
    let mut hash = SEED ^ u32::try_from(data.len()).unwrap_or(u32::MAX);
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let mut mixed = u32::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        mixed ^= mixed >> 24;
        hash = hash.wrapping_mul(MULTIPLIER) ^ mixed.wrapping_mul(MULTIPLIER);
    }
    if !rest.is_empty() {
        let tail = rest.iter().rev().fold(0_u32, |tail, byte| tail << 8 | u32::from(*byte));
        hash = (hash ^ tail).wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ hash >> 15
}

/// One byte's contribution to the CRC, for every byte.
const CRC32_TABLE: [u32; 256] = {
    let mut table = [0_u32; 256];
    let mut byte = 0_u32;
    while byte < 256 {
        let mut rest = byte;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 { rest >> 1 ^ 0xedb8_8320 } else { rest >> 1 };
            bit += 1;
        }
        table[byte as usize] = rest;
        byte += 1;
    }
    table
};

fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(u32::MAX, |crc, byte| {
        let [low, ..] = crc.to_le_bytes();
        CRC32_TABLE[usize::from(low ^ byte)] ^ crc >> 8
    })
}

fn fnv1a(data: &[u8]) -> u64 {
    data.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Jump consistent hash: from `n` to `n + 1` shards only the keys of the new one move.
#[expect(
    clippy::cast_precision_loss,
    reason = "the published algorithm divides in doubles: 2^31 and at most 2^31 are exact"
)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the published algorithm cuts off the fraction; a quotient above u64 saturates and ends the loop"
)]
fn jump(mut key: u64, shards: u64) -> u64 {
    let (mut shard, mut next) = (0_u64, 0_u64);
    while next < shards {
        shard = next;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        next = ((shard + 1) as f64 * ((1_u64 << 31) as f64 / ((key >> 33) + 1) as f64)) as u64;
    }
    shard
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mapper(kind: MapperKind, shards: usize) -> Mapper {
        Mapper { kind, shards: (0..shards).map(|number| format!("s{number}")).collect() }
    }

    const HASHES: [ShardHash; 4] = [ShardHash::Murmur2, ShardHash::Crc32, ShardHash::Fnv1a, ShardHash::Xxh64];

    #[test]
    fn murmur2_is_kafkas() {
        // org.apache.kafka.common.utils.UtilsTest.testMurmur2.
        for (key, hash) in [
            ("21", -973_932_308_i32),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes()), hash.cast_unsigned(), "{key}");
        }
    }

    #[test]
    fn the_other_hashes_have_their_published_values() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926); // catalogue of parametrised CRC algorithms, CRC-32/ISO-HDLC
        assert_eq!(crc32(b""), 0);
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325); // fnv.c test vectors
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(ShardHash::Xxh64.number(b""), 0xef46_db37_51d8_e999); // xxHash specification
    }

    #[test]
    fn jump_has_its_published_values() {
        for (key, shards, shard) in
            [(1, 1, 0), (42, 57, 43), (0xdead_10cc, 1, 0), (0xdead_10cc, 666, 361), (256, 1024, 520)]
        {
            assert_eq!(jump(key, shards), shard, "{key} on {shards}");
        }
    }

    /// Case S1 (Dekaf#1336, `kafka_ex#398`): masked 10, unsigned 3, absolute value 13.
    #[test]
    fn s1_the_sign_bit_is_masked() {
        let kafka = mapper(MapperKind::Modulo(ShardHash::Murmur2), 15);
        assert_eq!(kafka.shard_of(b"TT0124"), 10);
        assert_eq!(kafka.shard_name(b"TT0124"), Some("s10"));
        assert_eq!(murmur2(b"TT0124") % 15, 3, "what the unsigned remainder would give");
        let (keys, mut unsigned, mut absolute) = (100_000_u32, 0_u32, 0_u32);
        for number in 0..keys {
            let hash = murmur2(format!("key-{number}").as_bytes());
            let masked = (hash & 0x7fff_ffff) % 12;
            unsigned += u32::from(hash % 12 != masked);
            absolute += u32::from(hash.cast_signed().unsigned_abs() % 12 != masked);
        }
        assert!((0.488..0.508).contains(&(f64::from(unsigned) / f64::from(keys))), "{unsigned}");
        assert!((0.405..0.425).contains(&(f64::from(absolute) / f64::from(keys))), "{absolute}");
    }

    /// Case S2 (node-sinek#39): 0 is Java's murmur2, 5 was one without the seed.
    #[test]
    fn s2_the_seed_is_kafkas() {
        assert_eq!(mapper(MapperKind::Modulo(ShardHash::Murmur2), 10).shard_of(b"wu"), 0);
    }

    /// Case S3 (librdkafka#1816): the signed hash of `TT0124` is negative, its signed remainder -13.
    #[test]
    fn s3_no_key_has_a_negative_index() {
        let hash = murmur2(b"TT0124").cast_signed();
        assert_eq!((hash, hash % 15), (-1_442_328_778, -13));
        for hash in HASHES {
            for kind in [MapperKind::Modulo(hash), MapperKind::Jump(hash)] {
                let fifteen = mapper(kind, 15);
                assert!(fifteen.shard_of(b"") < 15);
                let mut hit = [false; 15];
                for number in 0..125_000_u32 {
                    hit[fifteen.shard_of(&number.wrapping_mul(2_654_435_761).to_le_bytes())] = true;
                }
                assert!(hit.iter().all(|hit| *hit), "{kind:?} leaves a shard out");
            }
        }
    }

    #[test]
    fn without_shards_there_is_no_name() {
        let none = mapper(MapperKind::Jump(ShardHash::Xxh64), 0);
        assert_eq!((none.shard_of(b"a"), none.shard_name(b"a")), (0, None));
    }

    proptest! {
        #[test]
        fn jump_moves_keys_to_the_new_shard_only(key: u64, shards in 1_u64..2000) {
            let (before, after) = (jump(key, shards), jump(key, shards + 1));
            prop_assert!(before < shards);
            prop_assert!(after == before || after == shards);
        }
    }
}
