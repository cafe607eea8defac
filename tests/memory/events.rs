//! Events that fill whatever can be filled: every one on a key of its own, beside keys warm enough to be followed exactly.

use std::fmt::Write as _;

/// Where event time begins.
pub(crate) const BASE_MS: i64 = 1_700_000_000_000;
/// Events a second of event time.
const PER_SECOND: u64 = 50_000;
/// Every so many events one is on a warm key.
const WARM_EVERY: u64 = 5;
/// More warm keys than there are candidates, each with some 170 events in the longer window: many times the floor.
const WARM_KEYS: u64 = 3_500;
/// Shards, callers.
const SHARDS: u64 = 64;

/// Writes the `number`th event over the text.
pub(crate) fn write(text: &mut String, number: u64) {
    text.clear();
    let ms = BASE_MS + i64::try_from(number * 1000 / PER_SECOND).unwrap();
    let shard = number % SHARDS;
    let key = if number.is_multiple_of(WARM_EVERY) {
        format!("warm-{}", number / WARM_EVERY % WARM_KEYS)
    } else {
        format!("customer-{number}")
    };
    write!(text, r#"{{"ts":{ms},"client":"{key}","shard":"s{shard}","id":"r{number}","op":"write"}}"#).unwrap();
}

/// Events that have so many keys of their own.
pub(crate) const fn events_with(keys: u64) -> u64 {
    keys * WARM_EVERY / (WARM_EVERY - 1)
}
