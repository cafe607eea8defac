//! Slots of a Redis cluster: CRC-16 of the key, or of its hash tag, modulo 16,384; each range of slots belongs to a shard.

use super::hash::crc16;
use super::{InvalidMapper, MAX_RANGES};

/// The number of slots.
pub const SLOTS: u16 = 16_384;

/// A range of slots of one shard, both ends included. A shard may have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotRange {
    /// The first slot.
    pub first: u16,
    /// The last slot.
    pub last: u16,
    /// The number of its shard.
    pub shard: usize,
}

/// The part of a key that is hashed: what stands between the first `{` and the first `}` behind it, if anything does.
pub(super) fn tagged(key: &[u8]) -> &[u8] {
    let tag = || {
        let begin = key.iter().position(|byte| *byte == b'{')? + 1;
        let rest = key.get(begin..)?;
        let length = rest.iter().position(|byte| *byte == b'}')?;
        rest.get(..length).filter(|tag| !tag.is_empty())
    };
    tag().unwrap_or(key)
}

/// The slot of a key.
pub(super) fn slot_of(key: &[u8]) -> u16 {
    crc16(tagged(key)) % SLOTS
}

/// Ranges that cover every slot once, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slots(Vec<SlotRange>);

impl Slots {
    pub(super) fn new(mut ranges: Vec<SlotRange>) -> Result<Self, InvalidMapper> {
        let fault =
            |rule| InvalidMapper { setting: "ranges", rule, remedy: "give each slot from 0 to 16383 one shard" };
        if ranges.len() > MAX_RANGES {
            return Err(fault(format!("should be at most {MAX_RANGES} ranges")));
        }
        ranges.sort_by_key(|range| range.first);
        let mut next = 0_u16;
        for range in &ranges {
            if range.first > range.last {
                return Err(fault(format!(
                    "should not end before it begins, and one is {}..{}",
                    range.first, range.last
                )));
            }
            if range.first < next {
                return Err(fault(format!("should not overlap, and slot {} is in two ranges", range.first)));
            }
            if range.first > next {
                return Err(fault(format!("should leave no slot out, and slot {next} is in none")));
            }
            if range.last >= SLOTS {
                return Err(fault(format!("should end at slot {}, and one ends at {}", SLOTS - 1, range.last)));
            }
            next = range.last + 1;
        }
        if next < SLOTS {
            return Err(fault(format!("should leave no slot out, and slot {next} is in none")));
        }
        Ok(Self(ranges))
    }

    pub(super) fn shard_of(&self, key: &[u8]) -> usize {
        let slot = slot_of(key);
        let index = self.0.partition_point(|range| range.last < slot);
        self.0.get(index).map_or(0, |range| range.shard)
    }
}

#[cfg(test)]
mod tests {
    use super::super::md5::md5_hex;
    use super::*;

    fn range(first: u16, last: u16, shard: usize) -> SlotRange {
        SlotRange { first, last, shard }
    }

    #[test]
    fn keys_have_the_slots_of_redis() {
        // `CLUSTER KEYSLOT` in the Redis documentation: somekey, foo{hash_tag}, bar{hash_tag}. The others, and which part is hashed: the
        // section on hash tags of the Redis cluster specification, with slots by redis-py 8.1.0 (redis.crc.key_slot).
        for (key, slot) in [
            ("somekey", 11_058),
            ("foo{hash_tag}", 2515),
            ("bar{hash_tag}", 2515),
            ("foo", 12_182),
            ("bar", 5061),
            ("hello", 866),
            ("{user1000}.following", 3443),
            ("{user1000}.followers", 3443),
            ("foo{}{bar}", 8363),
            ("foo{{bar}}zap", 4015),
            ("foo{bar}{zap}", 5061),
            ("", 0),
            ("{}", 15_257),
            ("{a", 10_276),
            ("a}b{c}", 7365),
        ] {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
        // MD5 of the slots of key-0 ... key-9999, a line each, by the same (`pip install redis==8.1.0`).
        let slots: String = (0..10_000).map(|n| format!("{}\n", slot_of(format!("key-{n}").as_bytes()))).collect();
        assert_eq!(md5_hex(slots.as_bytes()), "2e2c968b3002d094f9ca25f23b31e6d2");
    }

    #[test]
    fn each_range_belongs_to_its_shard() {
        let slots = Slots::new(vec![range(5461, 10_922, 1), range(0, 5460, 0), range(10_923, 16_383, 2)]).unwrap();
        for (key, shard) in [("hello", 0), ("foo{bar}{zap}", 0), ("{user1000}.following", 0), ("a}b{c}", 1), ("foo", 2)]
        {
            assert_eq!(slots.shard_of(key.as_bytes()), shard, "{key}");
        }
        let single = Slots::new((0..SLOTS / 16).map(|n| range(16 * n, 16 * n + 15, usize::from(n))).collect()).unwrap();
        assert_eq!(single.shard_of(b"foo"), 12_182 / 16);
    }

    #[test]
    fn slots_that_are_left_out_or_in_two_ranges_are_refused() {
        let refused = |ranges: &[(u16, u16)]| {
            Slots::new(ranges.iter().map(|(first, last)| range(*first, *last, 0)).collect()).unwrap_err().rule
        };
        assert!(refused(&[]).contains("slot 0 is in none"));
        assert!(refused(&[(0, 100), (102, 16_383)]).contains("slot 101 is in none"));
        assert!(refused(&[(0, 16_382)]).contains("slot 16383 is in none"));
        assert!(refused(&[(0, 100), (100, 16_383)]).contains("slot 100 is in two ranges"));
        assert!(refused(&[(0, 16_384)]).contains("should end at slot 16383"));
        assert!(refused(&[(100, 0)]).contains("100..0"));
    }
}
