//! How a store maps a key to a shard, declared so that the placement of buckets can be chosen.

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
    /// Jump consistent hash of `hash(key)`.
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
