//! Hashes of keys. Every reduction is written down: the same hash reduced in another way sends half of all keys elsewhere.
//!
//! | Hash | Number | Vectors from |
//! |---|---|---|
//! | `murmur2` | 32 bits with seed 0x9747b28c, then `& 0x7fffffff`, as Kafka's default partitioner does | Kafka's own unit test |
//! | `crc16` | CRC-16 (XMODEM: polynomial 0x1021, from 0), as for the slots of a Redis cluster, unsigned 16 bits | the check value of the Redis cluster specification |
//! | `crc32` | CRC-32 (IEEE 802.3, reflected, as in zlib), unsigned 32 bits | the check value of the CRC catalogue |
//! | `fnv1a` | FNV-1a, 64 bits, unsigned | the authors' test vectors |
//! | `xxh64` | xxHash 64 with seed 0, unsigned | the specification |

use xxhash_rust::xxh64::xxh64;

/// Hash functions of shard mappers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardHash {
    /// Kafka's murmur2, its sign bit masked.
    Murmur2,
    /// CRC-16 (XMODEM).
    Crc16,
    /// CRC-32 (IEEE).
    Crc32,
    /// FNV-1a, 64 bits.
    Fnv1a,
    /// xxh64 with seed 0.
    Xxh64,
}

impl ShardHash {
    /// All, in the order in which they are listed.
    pub const ALL: [Self; 5] = [Self::Murmur2, Self::Crc16, Self::Crc32, Self::Fnv1a, Self::Xxh64];

    /// Its name in configurations.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Murmur2 => "murmur2",
            Self::Crc16 => "crc16",
            Self::Crc32 => "crc32",
            Self::Fnv1a => "fnv1a",
            Self::Xxh64 => "xxh64",
        }
    }

    /// The hash of a key as the number that is reduced.
    #[must_use]
    pub fn number(self, key: &[u8]) -> u64 {
        match self {
            Self::Murmur2 => u64::from(murmur2(key) & 0x7fff_ffff),
            Self::Crc16 => u64::from(crc16(key)),
            Self::Crc32 => u64::from(crc32(key)),
            Self::Fnv1a => fnv1a(key),
            Self::Xxh64 => xxh64(key, 0),
        }
    }
}

/// `MurmurHash2`, 32 bits, little-endian, with the seed that Kafka uses.
pub(super) fn murmur2(data: &[u8]) -> u32 {
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

/// Bit by bit: keys are short, and few are looked at.
pub(super) fn crc16(data: &[u8]) -> u16 {
    data.iter().fold(0, |crc, byte| {
        let mixed = crc ^ u16::from(*byte) << 8;
        (0..8).fold(mixed, |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(crc16(b"123456789"), 0x31c3); // Redis cluster specification, appendix A
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325); // fnv.c test vectors
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(ShardHash::Xxh64.number(b""), 0xef46_db37_51d8_e999); // xxHash specification
    }
}
