//! A mapper as it is declared, and what it makes of a key.

use std::sync::Arc;

use jiff::civil::Date;

use super::hash::ShardHash;
use super::jump::jump;
use super::maglev::Maglev;
use super::multi_probe::{MultiProbe, SeededHash};
use super::ranges::{DatePlace, DateRanges, KeyRanges};
use super::rendezvous::Rendezvous;
use super::ring::{Ring, RingPoints};
use super::slots::{SlotRange, Slots};
use super::table::Table;

/// The most shards of a mapper.
pub const MAX_SHARDS: usize = 10_000;
/// The most ranges of keys, of dates or of slots.
pub const MAX_RANGES: usize = 16_384;
/// The most keys of a table.
pub const MAX_TABLE_KEYS: usize = 10_000;

/// The function from a key to the number of a shard, as it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MapperKind {
    /// `hash(key) mod shards`.
    Modulo(ShardHash),
    /// Jump consistent hash of `hash(key)` (Lamping and Veach, 2014).
    Jump(ShardHash),
    /// Highest random weight.
    Rendezvous(ShardHash),
    /// A ring with many points a shard.
    Ring {
        /// How points and keys are hashed.
        hash: RingPoints,
        /// Points of each shard.
        points: usize,
    },
    /// One point a shard and several probes a key.
    MultiProbe {
        /// The hash.
        hash: SeededHash,
        /// Seeds of the key's two hashes.
        seeds: [u64; 2],
        /// Probes of each key.
        probes: u32,
    },
    /// A table that shards fill in turn.
    Maglev {
        /// Places in the table: a prime.
        table_size: u32,
    },
    /// Slots of a Redis cluster.
    Slots(Vec<SlotRange>),
    /// Ranges of the bytes of keys: where each begins, and the number of its shard; the first begins with the empty key.
    Ranges(Vec<(Vec<u8>, usize)>),
    /// Ranges of dates in keys: where each begins, and the number of its shard.
    Dates {
        /// Where the date stands.
        place: DatePlace,
        /// The ranges.
        ranges: Vec<(Date, usize)>,
        /// The shard of keys with no date or an earlier one.
        otherwise: usize,
    },
    /// A table of keys and of the numbers of their shards.
    Table {
        /// The keys.
        keys: Vec<(Vec<u8>, usize)>,
        /// The shard of all others.
        otherwise: usize,
    },
}

impl MapperKind {
    /// Its name in configurations.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Modulo(_) => "modulo",
            Self::Jump(_) => "jump",
            Self::Rendezvous(_) => "rendezvous",
            Self::Ring { .. } => "ring",
            Self::MultiProbe { .. } => "multi_probe",
            Self::Maglev { .. } => "maglev",
            Self::Slots(_) => "slots",
            Self::Ranges(_) => "ranges",
            Self::Dates { .. } => "dates",
            Self::Table { .. } => "table",
        }
    }

    /// The greatest number of a shard that it names.
    fn greatest(&self) -> usize {
        fn numbers<T>(pairs: &[(T, usize)]) -> usize {
            pairs.iter().map(|(_, shard)| *shard).max().unwrap_or(0)
        }
        match self {
            Self::Slots(ranges) => ranges.iter().map(|range| range.shard).max().unwrap_or(0),
            Self::Ranges(ranges) => numbers(ranges),
            Self::Dates { ranges, otherwise, .. } => numbers(ranges).max(*otherwise),
            Self::Table { keys, otherwise } => numbers(keys).max(*otherwise),
            _ => 0,
        }
    }
}

/// A mapper that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} {rule}; {remedy}")]
pub struct InvalidMapper {
    /// The setting that is at fault, as configurations name it.
    pub setting: &'static str,
    /// What it should be.
    pub rule: String,
    /// What to do.
    pub remedy: &'static str,
}

/// A declared shard mapper with the names of its shards, in the order of their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapper {
    /// Shared by all copies: a ring takes up to 4 MiB.
    function: Arc<Function>,
    label: &'static str,
    hash: Option<&'static str>,
    shards: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Function {
    Modulo(ShardHash),
    Jump(ShardHash),
    Rendezvous(Rendezvous),
    Ring(Ring),
    MultiProbe(MultiProbe),
    Maglev(Maglev),
    Slots(Slots),
    Ranges(KeyRanges),
    Dates(DateRanges),
    Table(Table),
}

impl Mapper {
    /// A mapper onto these shards, named as they appear in events; where names of shards are hashed, these are.
    ///
    /// # Errors
    /// [`InvalidMapper`] names the setting and its rule.
    pub fn new(kind: MapperKind, shards: Vec<String>) -> Result<Self, InvalidMapper> {
        let nodes = shards.clone();
        Self::with_nodes(kind, shards, &nodes)
    }

    /// A mapper whose function hashes `nodes`, one a shard, in the place of the names that the shards have in events.
    ///
    /// # Errors
    /// [`InvalidMapper`] names the setting and its rule.
    pub fn with_nodes(kind: MapperKind, shards: Vec<String>, nodes: &[String]) -> Result<Self, InvalidMapper> {
        let fault = |setting, rule, remedy| Err(InvalidMapper { setting, rule, remedy });
        if shards.is_empty() || shards.len() > MAX_SHARDS {
            return fault("shards", format!("should be 1 to {MAX_SHARDS} names"), "name every shard of the store");
        }
        if let Some(twice) = first_twice(&shards) {
            let rule = format!("should have no name twice, and has '{twice}'");
            return fault("shards", rule, "each number is a shard of its own");
        }
        if nodes.len() != shards.len() {
            let rule = format!("should be one a shard, {} in all", shards.len());
            return fault("nodes", rule, "give them in the order of the shards");
        }
        if let Some(twice) = first_twice(nodes) {
            let rule = format!("should have no name twice, and has '{twice}'");
            return fault("nodes", rule, "two shards of one name would have the same places");
        }
        if kind.greatest() >= shards.len() {
            let rule = format!("should have {} names, since a key is mapped to the last of them", kind.greatest() + 1);
            return fault("shards", rule, "name every shard of the store");
        }
        let label = kind.label();
        let (function, hash) = match kind {
            MapperKind::Modulo(hash) => (Function::Modulo(hash), Some(hash.label())),
            MapperKind::Jump(hash) => (Function::Jump(hash), Some(hash.label())),
            MapperKind::Rendezvous(hash) => (Function::Rendezvous(Rendezvous::new(hash, nodes)), Some(hash.label())),
            MapperKind::Ring { hash, points } => (Function::Ring(Ring::new(hash, points, nodes)?), Some(hash.label())),
            MapperKind::MultiProbe { hash, seeds, probes } => {
                (Function::MultiProbe(MultiProbe::new(hash, seeds, probes, nodes)), Some(hash.label()))
            }
            MapperKind::Maglev { table_size } => {
                (Function::Maglev(Maglev::new(table_size, nodes)?), Some(ShardHash::Xxh64.label()))
            }
            MapperKind::Slots(ranges) => (Function::Slots(Slots::new(ranges)?), Some(ShardHash::Crc16.label())),
            MapperKind::Ranges(ranges) => (Function::Ranges(KeyRanges::new(ranges)?), None),
            MapperKind::Dates { place, ranges, otherwise } => {
                (Function::Dates(DateRanges::new(place, ranges, otherwise)?), None)
            }
            MapperKind::Table { keys, otherwise } => (Function::Table(Table::new(keys, otherwise)?), None),
        };
        Ok(Self { function: Arc::new(function), label, hash, shards })
    }

    /// A store that is one shard.
    #[must_use]
    pub fn single(shard: String) -> Self {
        let hash = ShardHash::Murmur2;
        Self {
            function: Arc::new(Function::Modulo(hash)),
            label: "modulo",
            hash: Some(hash.label()),
            shards: vec![shard],
        }
    }

    /// The number of the shard of a key of the store: below the number of shards.
    #[must_use]
    pub fn shard_of(&self, key: &[u8]) -> usize {
        let shards = self.shards.len() as u64;
        let number = |number: u64| usize::try_from(number).unwrap_or(0);
        match &*self.function {
            Function::Modulo(hash) => number(hash.number(key) % shards.max(1)),
            Function::Jump(hash) => number(jump(hash.number(key), shards)),
            Function::Rendezvous(rendezvous) => rendezvous.shard_of(key),
            Function::Ring(ring) => ring.shard_of(key),
            Function::MultiProbe(probes) => probes.shard_of(key),
            Function::Maglev(maglev) => maglev.shard_of(key),
            Function::Slots(slots) => slots.shard_of(key),
            Function::Ranges(ranges) => ranges.shard_of(key),
            Function::Dates(dates) => dates.shard_of(key),
            Function::Table(table) => table.shard_of(key),
        }
    }

    /// The name of the shard of a key of the store, as it appears in events.
    #[must_use]
    pub fn shard_name(&self, key: &[u8]) -> &str {
        self.shards.get(self.shard_of(key)).map_or("", String::as_str)
    }

    /// Names of the shards, in the order of their numbers: at least one.
    #[must_use]
    pub fn shards(&self) -> &[String] {
        &self.shards
    }

    /// The function's name in configurations.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        self.label
    }

    /// The name of the hash that it rests on, if it rests on any.
    #[must_use]
    pub const fn hash_label(&self) -> Option<&'static str> {
        self.hash
    }
}

/// The first name, in their alphabetical order, that a list has twice.
#[must_use]
pub fn first_twice(names: &[String]) -> Option<&str> {
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

#[cfg(test)]
mod tests {
    use super::super::hash::murmur2;
    use super::super::maglev::MAGLEV_TABLE;
    use super::super::slots::SLOTS;
    use super::*;

    fn names(shards: usize) -> Vec<String> {
        (0..shards).map(|number| format!("s{number}")).collect()
    }

    fn mapper(kind: MapperKind, shards: usize) -> Mapper {
        Mapper::new(kind, names(shards)).unwrap()
    }

    /// Case S1 (Dekaf#1336, `kafka_ex#398`): masked 10, unsigned 3, absolute value 13.
    #[test]
    fn s1_the_sign_bit_is_masked() {
        let kafka = mapper(MapperKind::Modulo(ShardHash::Murmur2), 15);
        assert_eq!(kafka.shard_of(b"TT0124"), 10);
        assert_eq!(kafka.shard_name(b"TT0124"), "s10");
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

    /// Every function that hashes, with every hash that it can have.
    fn hashing() -> Vec<MapperKind> {
        let mut kinds = vec![
            MapperKind::Ring { hash: RingPoints::Ketama, points: 160 },
            MapperKind::Ring { hash: RingPoints::Xxh64, points: 160 },
            MapperKind::MultiProbe { hash: SeededHash::Siphash, seeds: [1, 2], probes: 21 },
            MapperKind::MultiProbe { hash: SeededHash::Xxh64, seeds: [1, 2], probes: 21 },
            MapperKind::Maglev { table_size: MAGLEV_TABLE },
            MapperKind::Slots(
                (0..15)
                    .map(|shard: u16| SlotRange {
                        first: shard * 1092,
                        last: if shard == 14 { SLOTS - 1 } else { shard * 1092 + 1091 },
                        shard: usize::from(shard),
                    })
                    .collect(),
            ),
        ];
        for hash in ShardHash::ALL {
            kinds.extend([MapperKind::Modulo(hash), MapperKind::Jump(hash), MapperKind::Rendezvous(hash)]);
        }
        kinds
    }

    /// Case S3 (librdkafka#1816): the signed hash of `TT0124` is negative, its signed remainder -13.
    #[test]
    fn s3_no_key_has_a_negative_index() {
        let hash = murmur2(b"TT0124").cast_signed();
        assert_eq!((hash, hash % 15), (-1_442_328_778, -13));
        for kind in hashing() {
            let what = format!("{kind:?}");
            let fifteen = mapper(kind, 15);
            assert!(fifteen.shard_of(b"") < 15);
            let mut hit = [false; 15];
            for number in 0..20_000_u32 {
                hit[fifteen.shard_of(&number.wrapping_mul(2_654_435_761).to_le_bytes())] = true;
            }
            assert!(hit.iter().all(|hit| *hit), "{what} leaves a shard out");
        }
    }

    #[test]
    fn other_names_than_those_of_events_can_be_hashed() {
        let kind = || MapperKind::Ring { hash: RingPoints::Ketama, points: 160 };
        let nodes: Vec<String> = (0..4).map(|number| format!("127.0.0.1:{}", 10_000 + number)).collect();
        let mapper = Mapper::with_nodes(kind(), names(4), &nodes).unwrap();
        assert_eq!((mapper.shard_name(b"noelani"), mapper.shard_name(b"V5XS8C8N")), ("s2", "s3"));
        assert_eq!((mapper.label(), mapper.hash_label()), ("ring", Some("ketama")));
        let few = Mapper::with_nodes(kind(), names(4), &nodes[..3]).unwrap_err();
        assert_eq!((few.setting, few.rule.as_str()), ("nodes", "should be one a shard, 4 in all"));
        let twice = Mapper::with_nodes(kind(), names(2), &[nodes[0].clone(), nodes[0].clone()]).unwrap_err();
        assert_eq!(twice.setting, "nodes");
    }

    #[test]
    fn mappers_that_cannot_be_are_refused() {
        let refused = |kind, shards| Mapper::new(kind, shards).unwrap_err().to_string();
        let jump = || MapperKind::Jump(ShardHash::Xxh64);
        assert!(refused(jump(), Vec::new()).starts_with("shards should be 1 to 10000 names"));
        assert!(refused(jump(), vec!["a".to_owned(); 2]).contains("has 'a'; each number is a shard of its own"));
        assert!(refused(jump(), names(MAX_SHARDS + 1)).contains("1 to 10000"));
        let table = MapperKind::Table { keys: vec![(b"a".to_vec(), 2)], otherwise: 0 };
        assert!(refused(table, names(2)).contains("shards should have 3 names"));
    }
}
