//! `[keyspace.mapper]`: how a store maps keys to shards.

use std::collections::BTreeMap;

use jiff::civil::Date;

use super::kind::{Choice, KeyBytes, Parsed, Text, Whole};
use super::section::Section;
use crate::plan::{
    DatePlace, InvalidMapper, MAGLEV_TABLE, MAX_MAGLEV_TABLE, MAX_RANGES, MAX_SHARDS, MAX_TABLE_KEYS, Mapper,
    MapperKind, RingPoints, SLOTS, SeededHash, ShardHash, SlotRange,
};

/// A shard as events name it.
pub(super) const SHARD: Text = Text::any(256, "the name of a shard as events have it, 1 to 256 bytes");

#[derive(Clone, Copy, PartialEq)]
enum Function {
    Modulo,
    Jump,
    Rendezvous,
    Ring,
    MultiProbe,
    Maglev,
    Slots,
    Ranges,
    Dates,
    Table,
}

const FUNCTION: Choice<Function> = Choice(&[
    ("modulo", Function::Modulo),
    ("jump", Function::Jump),
    ("rendezvous", Function::Rendezvous),
    ("ring", Function::Ring),
    ("multi_probe", Function::MultiProbe),
    ("maglev", Function::Maglev),
    ("slots", Function::Slots),
    ("ranges", Function::Ranges),
    ("dates", Function::Dates),
    ("table", Function::Table),
]);
const HASH: Choice<ShardHash> = Choice(&[
    ("murmur2", ShardHash::Murmur2),
    ("crc16", ShardHash::Crc16),
    ("crc32", ShardHash::Crc32),
    ("fnv1a", ShardHash::Fnv1a),
    ("xxh64", ShardHash::Xxh64),
]);
const RING_HASH: Choice<RingPoints> = Choice(&[("ketama", RingPoints::Ketama), ("xxh64", RingPoints::Xxh64)]);
const SEEDED_HASH: Choice<SeededHash> = Choice(&[("siphash", SeededHash::Siphash), ("xxh64", SeededHash::Xxh64)]);

const SLOT: Whole = Whole { min: 0, max: SLOTS as u64 - 1 };
const DATE: Parsed<Date> = Parsed::new("a date, e.g. \"2026-11-30\"");
const KEY: KeyBytes = KeyBytes { max_bytes: 1024 };
const POINTS: Whole = Whole { min: 1, max: 4096 };
/// Points a shard as libketama has them.
const KETAMA_POINTS: u64 = 160;
/// Probes of the paper: the busiest shard then has 1.05 times what it should.
const PROBES: u64 = 21;

/// Keys with plain values, and those with a list of sections.
const KEYS: [&str; 13] = [
    "kind",
    "hash",
    "shards",
    "count",
    "prefix",
    "nodes",
    "points",
    "probes",
    "seeds",
    "table_size",
    "delimiter",
    "part",
    "otherwise",
];
const LISTS: [(&str, usize); 2] = [("ranges", MAX_RANGES), ("keys", MAX_TABLE_KEYS)];

impl Function {
    /// Keys of the section that it needs or may have, beside `kind`.
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Modulo | Self::Jump => &["hash", "shards", "count", "prefix"],
            Self::Rendezvous => &["hash", "shards", "count", "prefix", "nodes"],
            Self::Ring => &["hash", "shards", "count", "prefix", "nodes", "points"],
            Self::MultiProbe => &["hash", "shards", "count", "prefix", "nodes", "probes", "seeds"],
            Self::Maglev => &["shards", "count", "prefix", "nodes", "table_size"],
            Self::Slots | Self::Ranges => &["ranges"],
            Self::Dates => &["ranges", "delimiter", "part", "otherwise"],
            Self::Table => &["keys", "otherwise"],
        }
    }
}

/// The mapper of a keyspace, where it declares one. None as well after a fault was noted.
pub(super) fn mapper(keyspace: &Section<'_, '_>) -> Option<Mapper> {
    let section = keyspace.section("mapper");
    if !section.is_present() {
        section.note_known(&KEYS);
        return None;
    }
    let function = section.required("kind", &FUNCTION);
    let mapper = function.and_then(|function| read(function, &section));
    if let Some(function) = function {
        refuse_others(function, &section);
    }
    section.note_known(&KEYS);
    for (name, max) in LISTS.into_iter().filter(|(name, _)| function.is_none_or(|f| !f.keys().contains(name))) {
        drop(section.sections(name, max));
    }
    section.finish();
    mapper
}

/// What another function would need is no slip to pass over: the function is perhaps not the one that was meant.
fn refuse_others(function: Function, section: &Section<'_, '_>) {
    let known = KEYS.into_iter().chain(LISTS.map(|(name, _)| name)).filter(|name| *name != "kind");
    for name in known.filter(|name| section.has(name) && !function.keys().contains(name)) {
        let of: Vec<String> =
            FUNCTION.0.iter().filter(|(_, f)| f.keys().contains(&name)).map(|(w, _)| format!("{w:?}")).collect();
        section.fault(
            name,
            format!("has no use with this kind, only with {}", of.join(", ")),
            "set that kind, or leave this out",
        );
    }
}

fn read(function: Function, section: &Section<'_, '_>) -> Option<Mapper> {
    match function {
        Function::Modulo => hashed(section, section.required("hash", &HASH).map(MapperKind::Modulo), false),
        Function::Jump => hashed(section, section.required("hash", &HASH).map(MapperKind::Jump), false),
        Function::Rendezvous => hashed(section, section.required("hash", &HASH).map(MapperKind::Rendezvous), true),
        Function::Ring => hashed(section, ring(section), true),
        Function::MultiProbe => hashed(section, multi_probe(section), true),
        Function::Maglev => {
            let size = Whole { min: 2, max: u64::from(MAX_MAGLEV_TABLE) };
            let table_size = section.or("table_size", &size, u64::from(MAGLEV_TABLE));
            let kind = u32::try_from(table_size).ok().map(|table_size| MapperKind::Maglev { table_size });
            hashed(section, kind, true)
        }
        Function::Slots => listed(section, slots),
        Function::Ranges => listed(section, ranges),
        Function::Dates => listed(section, dates),
        Function::Table => listed(section, table),
    }
}

fn ring(section: &Section<'_, '_>) -> Option<MapperKind> {
    let hash = section.required("hash", &RING_HASH)?;
    let points = match hash {
        RingPoints::Ketama => section.or("points", &POINTS, KETAMA_POINTS),
        RingPoints::Xxh64 => section.required("points", &POINTS)?,
    };
    Some(MapperKind::Ring { hash, points: usize::try_from(points).ok()? })
}

fn multi_probe(section: &Section<'_, '_>) -> Option<MapperKind> {
    let hash = section.required("hash", &SEEDED_HASH);
    let probes = section.or("probes", &Whole { min: 1, max: 1000 }, PROBES);
    let seeds = section.list("seeds", &Whole { min: 0, max: i64::MAX as u64 }, 2..3, vec![1, 2]);
    Some(MapperKind::MultiProbe { hash: hash?, seeds: seeds.try_into().ok()?, probes: u32::try_from(probes).ok()? })
}

fn slots(section: &Section<'_, '_>, names: &mut Names) -> Option<MapperKind> {
    let ranges = entries(section, "ranges", "first, last and shard", |range| {
        let (first, last) = (range.required("first", &SLOT), range.required("last", &SLOT));
        let shard = names.number(range.required("shard", &SHARD)?);
        Some(SlotRange { first: u16::try_from(first?).ok()?, last: u16::try_from(last?).ok()?, shard })
    });
    ranges.map(MapperKind::Slots)
}

fn ranges(section: &Section<'_, '_>, names: &mut Names) -> Option<MapperKind> {
    let ranges = entries(section, "ranges", "from and shard", |range| {
        range.note_known(&["from"]);
        let from = if range.has("from") { range.required("from", &KEY) } else { Some(Vec::new()) };
        let shard = names.number(range.required("shard", &SHARD)?);
        Some((from?, shard))
    });
    ranges.map(MapperKind::Ranges)
}

fn dates(section: &Section<'_, '_>, names: &mut Names) -> Option<MapperKind> {
    let delimiter = section.or("delimiter", &Text::any(16, "what separates the parts of a key"), ":".to_owned());
    let part = section.or("part", &Whole { min: 0, max: 64 }, 0);
    let ranges = entries(section, "ranges", "from and shard", |range| {
        let from = range.required("from", &DATE);
        let shard = names.number(range.required("shard", &SHARD)?);
        Some((from?, shard))
    });
    let otherwise = names.number(section.required("otherwise", &SHARD)?);
    let place = DatePlace { delimiter, part: usize::try_from(part).ok()? };
    Some(MapperKind::Dates { place, ranges: ranges?, otherwise })
}

fn table(section: &Section<'_, '_>, names: &mut Names) -> Option<MapperKind> {
    let keys = entries(section, "keys", "key and shard", |entry| {
        let key = entry.required("key", &KEY);
        let shard = names.number(entry.required("shard", &SHARD)?);
        Some((key?, shard))
    });
    let otherwise = names.number(section.required("otherwise", &SHARD)?);
    Some(MapperKind::Table { keys: keys?, otherwise })
}

/// Names of shards in the order in which they first stand there.
#[derive(Default)]
struct Names(BTreeMap<String, usize>);

impl Names {
    fn number(&mut self, name: String) -> usize {
        let next = self.0.len();
        *self.0.entry(name).or_insert(next)
    }

    fn in_order(self) -> Vec<String> {
        let mut names: Vec<(String, usize)> = self.0.into_iter().collect();
        names.sort_unstable_by_key(|(_, number)| *number);
        names.into_iter().map(|(name, _)| name).collect()
    }
}

/// A function that names the shard of each entry.
fn listed(section: &Section<'_, '_>, kind: fn(&Section<'_, '_>, &mut Names) -> Option<MapperKind>) -> Option<Mapper> {
    let mut names = Names::default();
    let kind = kind(section, &mut names)?;
    or_fault(section, Mapper::new(kind, names.in_order()))
}

/// The sections of a list; none when one has a fault.
fn entries<T>(
    section: &Section<'_, '_>,
    name: &'static str,
    each: &str,
    mut read: impl FnMut(&Section<'_, '_>) -> Option<T>,
) -> Option<Vec<T>> {
    if !section.has(name) {
        section.missing(name, format!("sections [[keyspace.mapper.{name}]], each with {each}"), None);
    }
    let max = LISTS.iter().find(|(list, _)| *list == name).map_or(0, |(_, max)| *max);
    let sections = section.sections(name, max);
    // Every one is read, so that all faults are told.
    let mut entries = Vec::with_capacity(sections.len());
    let mut whole = !sections.is_empty();
    for entry in sections {
        match read(&entry) {
            Some(value) => entries.push(value),
            None => whole = false,
        }
        entry.finish();
    }
    whole.then_some(entries)
}

/// A function of a hash, onto shards that are named in the order of their numbers.
fn hashed(section: &Section<'_, '_>, kind: Option<MapperKind>, hashes_names: bool) -> Option<Mapper> {
    let shards = shards(section);
    let nodes = hashes_names.then(|| {
        let node = Text::any(256, "what the store hashes in the place of the shard's name, 1 to 256 bytes");
        section.has("nodes").then(|| section.list("nodes", &node, 1..MAX_SHARDS + 1, Vec::new()))
    });
    let (kind, shards) = (kind?, shards?);
    if !section.are_sound(&["nodes"]) {
        return None;
    }
    let nodes = nodes.flatten().unwrap_or_else(|| shards.clone());
    or_fault(section, Mapper::with_nodes(kind, shards, &nodes))
}

fn or_fault(section: &Section<'_, '_>, mapper: Result<Mapper, InvalidMapper>) -> Option<Mapper> {
    mapper.map_err(|InvalidMapper { setting, rule, remedy }| section.fault(setting, rule, remedy)).ok()
}

/// Names of the shards: a list, or a number of them with a prefix. None after a fault that leaves nothing to go on with.
fn shards(section: &Section<'_, '_>) -> Option<Vec<String>> {
    let listed = section.has("shards").then(|| section.list("shards", &SHARD, 1..MAX_SHARDS + 1, Vec::new()));
    let count = section.optional("count", &Whole { min: 1, max: MAX_SHARDS as u64 });
    let prefix = section.optional("prefix", &Text::any(200, "what stands before the number of a shard, e.g. \"s\""));
    if section.has("shards") && (section.has("count") || section.has("prefix")) {
        section.fault("shards", "should not stand beside count or prefix", "give the names, or count and prefix");
    } else if section.has("prefix") && !section.has("count") {
        section.missing("count", "the number of shards, since prefix is set".to_owned(), None);
    } else if !section.has("shards") && !section.has("count") {
        let rule = "the names of all shards in the order of their numbers".to_owned();
        section.missing("shards", rule, Some("or set count and prefix".to_owned()));
    }
    if !section.are_sound(&["shards", "count", "prefix"]) {
        return None;
    }
    listed.or_else(|| {
        let prefix = prefix.as_deref().unwrap_or_default();
        Some((0..count?).map(|number| format!("{prefix}{number}")).collect())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::load;
    use super::*;

    const MINIMAL: &str = include_str!("../../fixtures/config/good/minimal.toml");

    fn with(mapper: &str) -> String {
        format!("{MINIMAL}\n{mapper}")
    }

    fn loaded(mapper: &str) -> Mapper {
        let loaded = load(&with(mapper)).unwrap_or_else(|faults| panic!("{mapper}\n{faults}"));
        loaded.settings.plans[0].mapper.clone().expect("a mapper")
    }

    /// Faults of a mapper, without their places.
    fn faults(mapper: &str) -> Vec<String> {
        let faults = load(&with(mapper)).map(|_| ()).unwrap_err();
        faults
            .list
            .iter()
            .map(|fault| fault.to_string().splitn(3, ": ").skip(1).collect::<Vec<_>>().join(": "))
            .collect()
    }

    /// Blocks of TOML in the documentation that declare a mapper.
    fn documented() -> Vec<&'static str> {
        let blocks = include_str!("../../docs/configuration.md").split("```toml\n").skip(1);
        let blocks = blocks.filter_map(|block| block.split("```").next());
        blocks.filter(|block| block.starts_with("[keyspace.mapper]")).collect()
    }

    #[test]
    fn each_function_has_an_example_that_loads() {
        let functions: BTreeSet<&str> = documented().into_iter().map(|example| loaded(example).label()).collect();
        assert_eq!(functions, FUNCTION.0.iter().map(|(word, _)| *word).collect());
    }

    #[test]
    fn keys_go_where_the_examples_say() {
        let shards = |kind: &str| {
            let example = documented().into_iter().find(|example| example.contains(&format!("kind = {kind:?}")));
            let mapper = loaded(example.unwrap());
            move |key: &str| mapper.shard_name(key.as_bytes()).to_owned()
        };
        let slots = shards("slots");
        assert_eq!((slots("hello"), slots("somekey")), ("10.0.0.1:6379".to_owned(), "10.0.0.3:6379".to_owned()));
        let ranges = shards("ranges");
        assert_eq!(["Acme", "acme:1", "lx", "m"].map(ranges), ["tablet-1", "tablet-2", "tablet-2", "tablet-3"]);
        let dates = shards("dates");
        assert_eq!(["c42:2026-10-31", "c42:20261101:7", "c42"].map(dates), ["archive", "current", "archive"]);
        let table = shards("table");
        assert_eq!(["acme", "globex", "acme:3"].map(table), ["large-1", "large-2", "shared"]);
        assert_eq!(
            shards("modulo")("c42"),
            loaded("mapper = { kind = \"modulo\", hash = \"murmur2\", count = 8, prefix = \"s\" }").shard_name(b"c42")
        );
    }

    #[test]
    fn what_is_hashed_may_differ_from_the_names_of_shards() {
        let ring = |rest: &str| loaded(&format!("mapper = {{ kind = \"ring\", hash = \"ketama\", {rest} }}"));
        let named =
            ring("shards = [\"127.0.0.1:10000\", \"127.0.0.1:10001\", \"127.0.0.1:10002\", \"127.0.0.1:10003\"]");
        let mapped = ring(
            "count = 4, prefix = \"s\", nodes = [\"127.0.0.1:10000\", \"127.0.0.1:10001\", \"127.0.0.1:10002\", \"127.0.0.1:10003\"]",
        );
        assert_eq!((named.shard_name(b"noelani"), mapped.shard_name(b"noelani")), ("127.0.0.1:10002", "s2"));
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_remedy() {
        let faulty = [
            r#"{ kind = "mod", hash = "murmur2", count = 8 }"#,
            r#"{ kind = "modulo", hash = "ketama", count = 8, points = 160 }"#,
            r#"{ kind = "ring", hash = "xxh64", count = 8 }"#,
            r#"{ kind = "ring", hash = "ketama", count = 8, points = 150 }"#,
            r#"{ kind = "ring", hash = "ketama", count = 3, nodes = ["a", "b"] }"#,
            r#"{ kind = "multi_probe", hash = "siphash", count = 3, seeds = [1] }"#,
            r#"{ kind = "maglev", count = 3, table_size = 65536 }"#,
            r#"{ kind = "slots", ranges = [{ first = 0, last = 8191, shard = "a" }, { first = 8193, last = 16384, shard = "b" }] }"#,
            r#"{ kind = "slots", ranges = [{ first = 0, last = 8191, shard = "a" }, { first = 8193, last = 16383, shard = "b" }] }"#,
            r#"{ kind = "slots", shards = ["a"] }"#,
            r#"{ kind = "ranges", ranges = [{ from = "a", shard = "a" }, { form = "b", shard = "b" }] }"#,
            r#"{ kind = "ranges", ranges = [{ shard = "a" }, { shard = "b" }] }"#,
            r#"{ kind = "dates", ranges = [{ from = "2026-13-01", shard = "a" }] }"#,
            r#"{ kind = "table", keys = [{ key = "a", shard = "a" }, { key = "a", shard = "b" }], otherwise = "c" }"#,
            r#"{ kind = "table", keys = "a", otherwise = "c" }"#,
        ];
        let told: Vec<String> = faulty.iter().flat_map(|mapper| faults(&format!("mapper = {mapper}"))).collect();
        insta::assert_snapshot!(told.join("\n"), @r##"
        keyspace[0].mapper.kind: got "mod"; should be one of "modulo", "jump", "rendezvous", "ring", "multi_probe", "maglev", "slots", "ranges", "dates", "table"
        keyspace[0].mapper.hash: got "ketama"; should be one of "murmur2", "crc16", "crc32", "fnv1a", "xxh64"
        keyspace[0].mapper.points: got 160; has no use with this kind, only with "ring"; set that kind, or leave this out
        keyspace[0].mapper.points: missing; should be a whole number from 1 to 4096
        keyspace[0].mapper.points: got 150; should be a multiple of 4 with hash = "ketama", of which each MD5 gives 4; 160 is what libketama has
        keyspace[0].mapper.nodes: got ["a", "b"]; should be one a shard, 3 in all; give them in the order of the shards
        keyspace[0].mapper.seeds: got a list of 1; should be a list of 2 to 2, each a whole number from 0 to 9223372036854775807
        keyspace[0].mapper.table_size: got 65536; should be a prime of at most 655373: every step has to reach every place; 65537 is what the paper and Envoy have
        keyspace[0].mapper.ranges[1].last: got 16384; should be a whole number from 0 to 16383
        keyspace[0].mapper.ranges: got [{ first = 0, last = 8191, shard = "a" }, { first = 8193, last =...; should leave no slot out, and slot 8192 is in none; give each slot from 0 to 16383 one shard
        keyspace[0].mapper.ranges: missing; should be sections [[keyspace.mapper.ranges]], each with first, last and shard
        keyspace[0].mapper.shards: got ["a"]; has no use with this kind, only with "modulo", "jump", "rendezvous", "ring", "multi_probe", "maglev"; set that kind, or leave this out
        keyspace[0].mapper.ranges: got [{ from = "a", shard = "a" }, { form = "b", shard = "b" }]; should begin with the least of all keys, so that each key is in a range; leave from out in the first one
        keyspace[0].mapper.ranges[1].form: unknown key; should be a name that docs/configuration.md lists; the nearest known name is 'from'
        keyspace[0].mapper.ranges: got [{ shard = "a" }, { shard = "b" }]; should ascend, and ranges[1] does not begin behind ranges[0]; put them in the order of from
        keyspace[0].mapper.otherwise: missing; should be the name of a shard as events have it, 1 to 256 bytes
        keyspace[0].mapper.ranges[0].from: got "2026-13-01"; should be a date, e.g. "2026-11-30"
        keyspace[0].mapper.keys: got [{ key = "a", shard = "a" }, { key = "a", shard = "b" }]; should have no key twice, and has 'a'; leave one out
        keyspace[0].mapper.keys: got "a"; should be sections [[keyspace.mapper.keys]], with two brackets, at most 10000
        "##);
    }
}
