//! How a store maps keys to shards.

use super::kind::{Choice, Text, Whole};
use super::section::Section;
use crate::plan::{Mapper, MapperKind, ShardHash};

/// The most shards that can be declared.
pub(super) const MAX_SHARDS: usize = 10_000;

/// A shard as events name it.
pub(super) const SHARD: Text = Text::any(256, "the name of a shard as events have it, 1 to 256 bytes");

#[derive(Clone, Copy, PartialEq)]
enum Function {
    Modulo,
    Jump,
}

const FUNCTION: Choice<Function> = Choice(&[("modulo", Function::Modulo), ("jump", Function::Jump)]);

const HASH: Choice<ShardHash> = Choice(&[
    ("murmur2", ShardHash::Murmur2),
    ("crc32", ShardHash::Crc32),
    ("fnv1a", ShardHash::Fnv1a),
    ("xxh64", ShardHash::Xxh64),
]);

/// The mapper of a keyspace, where it declares one.
pub(super) fn mapper(keyspace: &Section<'_, '_>) -> Option<Mapper> {
    let section = keyspace.section("mapper");
    if !section.is_present() {
        section.note_known(&["kind", "hash", "shards", "count", "prefix"]);
        return None;
    }
    let function = section.required("kind", &FUNCTION);
    let hash = section.required("hash", &HASH);
    let listed = section.has("shards").then(|| section.list("shards", &SHARD, 1..MAX_SHARDS + 1, Vec::new()));
    let count = section.optional("count", &Whole { min: 1, max: MAX_SHARDS as u64 });
    let prefix = section.optional("prefix", &Text::any(200, "what stands before the number of a shard, e.g. \"s\""));
    section.note_known(&["shards"]);
    let both = section.has("shards") && (section.has("count") || section.has("prefix"));
    if both {
        section.fault("shards", "should not stand beside count or prefix", "give the names, or count and prefix");
    } else if section.has("prefix") && !section.has("count") {
        section.missing("count", "the number of shards, since prefix is set".to_owned(), None);
    } else if !section.has("shards") && !section.has("count") {
        let rule = "the names of all shards in the order of their numbers".to_owned();
        section.missing("shards", rule, Some("or set count and prefix".to_owned()));
    }
    let shards = listed.unwrap_or_else(|| numbered(count.unwrap_or(0), prefix.as_deref().unwrap_or_default()));
    if let Some(twice) = first_twice(&shards) {
        section.fault(
            "shards",
            format!("should have no name twice, and has '{twice}'"),
            "each number is a shard of its own",
        );
    }
    section.finish();
    let kind = match (function?, hash?) {
        (Function::Modulo, hash) => MapperKind::Modulo(hash),
        (Function::Jump, hash) => MapperKind::Jump(hash),
    };
    Some(Mapper { kind, shards })
}

/// `prefix0`, `prefix1`, ...
fn numbered(count: u64, prefix: &str) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}{number}")).collect()
}

/// The first name that a list has twice.
pub(super) fn first_twice(names: &[String]) -> Option<&str> {
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}
