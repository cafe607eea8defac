//! Jump consistent hash (Lamping and Veach, 2014).

/// The shard of a hash: from `n` to `n + 1` shards only the keys of the new one move.
#[expect(
    clippy::cast_precision_loss,
    reason = "the published algorithm divides in doubles: 2^31 and at most 2^31 are exact"
)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the published algorithm cuts off the fraction; a quotient above u64 saturates and ends the loop"
)]
pub(super) fn jump(mut key: u64, shards: u64) -> u64 {
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

    #[test]
    fn jump_has_its_published_values() {
        // jump_test.go of lithammer/go-jump-consistent-hash; the tests of other implementations have the same.
        for (key, shards, shard) in
            [(1, 1, 0), (42, 57, 43), (0xdead_10cc, 1, 0), (0xdead_10cc, 666, 361), (256, 1024, 520)]
        {
            assert_eq!(jump(key, shards), shard, "{key} on {shards}");
        }
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
