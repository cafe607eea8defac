//! The numbers behind a decision, as they go into its record (I9).

use super::pins;
use super::world::World;
use crate::engine::HotKey;
use crate::protocol::Evidence;
use crate::units::Estimate;

/// The most partitions whose offsets a record lists: more would not fit.
const MAX_LISTED_PARTITIONS: usize = 64;
/// The longest name of a shard in a record, in characters.
const MAX_SHARD_CHARS: usize = 64;

/// What is known of a hot key and of the input behind it.
pub(super) fn of(hot: &HotKey, world: &World<'_>) -> Evidence {
    let offsets = world.end_offsets.iter().take(MAX_LISTED_PARTITIONS);
    Evidence {
        rule: hot.reason.rule.label().to_owned(),
        window_ms: hot.reason.window.as_millis(),
        count: hot.reason.count,
        threshold: hot.reason.threshold,
        rate_per_s: hot.peak.as_per_second(),
        median: hot.reason.median.map(|median| median.upper),
        reads: hot.profile.operations.reads + hot.profile.operations.scans,
        writes: hot.profile.operations.writes,
        shard: hot.profile.shards.first().map(|(shard, _)| shown(shard)),
        completeness: world.condition.completeness.share(),
        end_offsets: offsets.map(|(partition, offset)| (partition.0.to_string(), offset.0)).collect(),
        end_offsets_cut: cut(world),
        config: world.config_hash.to_owned(),
    }
}

/// A name for people: bytes that are not visible ASCII are escaped, unless all is UTF-8.
pub(super) fn shown(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) => text.chars().take(MAX_SHARD_CHARS).collect(),
        Err(_) => name.escape_ascii().to_string().chars().take(MAX_SHARD_CHARS).collect(),
    }
}

/// What is known of a key that is neither hot nor suspect: below the threshold that it was split by, on all input.
pub(super) fn of_absence(before: &Evidence, world: &World<'_>) -> Evidence {
    Evidence {
        rule: pins::rule_after(&before.rule).to_owned(),
        window_ms: before.window_ms,
        count: Estimate { lower: 0, upper: before.threshold.saturating_sub(1) },
        threshold: before.threshold,
        ..of_nothing(world)
    }
}

/// Where a decision rests on no count: none, over a window without length.
pub(super) fn of_nothing(world: &World<'_>) -> Evidence {
    let offsets = world.end_offsets.iter().take(MAX_LISTED_PARTITIONS);
    Evidence {
        rule: String::new(),
        window_ms: 0,
        count: Estimate::exact(0),
        threshold: 0,
        rate_per_s: 0.0,
        median: None,
        reads: 0,
        writes: 0,
        shard: None,
        completeness: world.condition.completeness.share(),
        end_offsets: offsets.map(|(partition, offset)| (partition.0.to_string(), offset.0)).collect(),
        end_offsets_cut: cut(world),
        config: world.config_hash.to_owned(),
    }
}

fn cut(world: &World<'_>) -> u64 {
    u64::try_from(world.end_offsets.len().saturating_sub(MAX_LISTED_PARTITIONS)).unwrap_or(u64::MAX)
}
