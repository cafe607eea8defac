//! The beginning and the end of a name as two numbers, to compare names without fetching them.

/// Names of at most so many bytes are in their [`Near`] as a whole.
const WHOLE_BYTES: usize = 15;
/// In place of the length of a name that is longer.
const LONGER: u8 = u8::MAX;

/// A short name as a whole, or the first and last bytes of a longer one. Equal names have equal ones.
///
/// The first number is the first eight bytes, the second the last eight: of a name of less than eight bytes the first and the last
/// four, each twice. The lowest byte of the second number is there twice as well, and so has room for the length. Lengths are chosen
/// by arithmetic, since a branch on them is foreseen badly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Near([u64; 2]);

impl Near {
    /// That of a name.
    #[inline]
    pub(crate) fn of(name: &[u8]) -> Self {
        let length = name.len();
        let Some(last) = length.checked_sub(4) else { return Self::of_at_most_three(name) };
        let four = |at: usize| {
            let bytes = name.get(at..).and_then(<[u8]>::first_chunk);
            u64::from(bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes)))
        };
        let more = (length.min(WHOLE_BYTES) >> 3) << 2;
        let kept = if length > WHOLE_BYTES { LONGER } else { low_byte(length) };
        let (first, last) = (four(0) | four(more) << 32, four(last - more) | four(last) << 32);
        Self([first, last & !0xff | u64::from(kept)])
    }

    #[cold]
    fn of_at_most_three(name: &[u8]) -> Self {
        let first = name.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        Self([first, u64::from(low_byte(name.len()))])
    }

    /// True when no other name has the same.
    #[inline]
    pub(crate) const fn is_whole(self) -> bool {
        self.0[1] & 0xff != LONGER as u64
    }

    /// A number below `2^bits` that differs for most names which differ in their last bytes.
    #[inline]
    pub(crate) const fn slot(self, bits: u32) -> u64 {
        // The golden ratio, by multiply-shift.
        (self.0[0].rotate_left(32) ^ self.0[1]).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)
    }
}

/// Lengths are below 16 here.
const fn low_byte(length: usize) -> u8 {
    length.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_short_name_is_there_as_a_whole(name in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(Near::of(&name).is_whole(), name.len() <= WHOLE_BYTES);
            if name.len() >= 8 {
                let Near([first, last]) = Near::of(&name);
                let (first, last) = (first.to_le_bytes(), last.to_le_bytes());
                prop_assert_eq!(&first[..], &name[..8]);
                prop_assert_eq!(&last[1..], &name[name.len() - 7..]);
            }
        }

        /// One byte more, less or other makes another one.
        #[test]
        fn a_change_anywhere_is_seen(
            name in prop::collection::vec(any::<u8>(), 0..16), at in any::<prop::sample::Index>(), byte in any::<u8>(),
        ) {
            let mut other = name.clone();
            other.insert(at.index(name.len() + 1), byte);
            prop_assert_ne!(Near::of(&name), Near::of(&other));
            if !name.is_empty() {
                let mut other = name.clone();
                other[at.index(name.len())] = byte;
                prop_assert_eq!(Near::of(&name) == Near::of(&other), name == other);
            }
        }

        #[test]
        fn short_names_differ(
            one in prop::collection::vec(0u8..3, 0..16), other in prop::collection::vec(0u8..3, 0..16),
        ) {
            prop_assert_eq!(Near::of(&one) == Near::of(&other), one == other);
        }
    }

    #[test]
    fn numbered_names_have_slots_of_their_own() {
        for form in ["s", "shard-", "shard-of-the-eu-west-region-"] {
            let slots: std::collections::BTreeSet<u64> =
                (0..16).map(|n| Near::of(format!("{form}{n:02}").as_bytes()).slot(12)).collect();
            assert_eq!(slots.len(), 16, "{form}: {slots:?}");
        }
    }
}
