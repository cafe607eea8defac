//! What the planner sees of the world at one moment.

use std::collections::BTreeMap;

use super::mapper::MapperTrust;
use crate::engine::{Condition, HotKey, ShardLoad};
use crate::protocol::{AckTable, PlanTable, Version};
use crate::units::{Offset, Partition};

/// Everything that a decision rests on. The tables are read to the end of their topics before each decision.
#[derive(Debug, Clone, Copy)]
pub struct World<'a> {
    /// What is hot or suspect, of all keyspaces.
    pub hot: &'a [HotKey],
    /// The known shards of each keyspace, by its index, with their load in the longest window.
    pub shards: &'a [Vec<ShardLoad>],
    /// Whether buckets are placed by the declared mapper of each keyspace, by its index; one that is not listed is.
    pub mappers: &'a [MapperTrust],
    /// How far the engine's answers can be trusted.
    pub condition: Condition,
    /// The plan topic.
    pub table: &'a PlanTable,
    /// The acks topic.
    pub acks: &'a AckTable,
    /// The version that the next record will have: epoch of this leader, and one more than its last seq. A migration is named by it.
    pub next: Version,
    /// For each input partition the offset up to which was counted.
    pub end_offsets: &'a BTreeMap<Partition, Offset>,
    /// Hash of the configuration: 16 hexadecimal digits.
    pub config_hash: &'a str,
}
