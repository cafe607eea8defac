//! The secret from which all seeds are made.

use toml::de::DeValue;
use xxhash_rust::xxh64::xxh64;

use super::kind::{Kind, Wrong};
use super::section::Section;

/// The secret of a cluster of instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seed(u64);

impl Seed {
    /// The seed for one use in one keyspace.
    pub(super) fn for_use(self, purpose: &str, keyspace: &str) -> u64 {
        xxh64(format!("{purpose}/{keyspace}").as_bytes(), self.0)
    }
}

struct Digits;

impl Kind for Digits {
    type Value = Seed;

    fn rule(&self) -> String {
        "16 hexadecimal digits, e.g. of: openssl rand -hex 8".to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<Seed, Wrong> {
        let digits =
            value.as_str().filter(|text| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        digits.and_then(|text| u64::from_str_radix(text, 16).ok()).map(Seed).ok_or(Wrong::Rule)
    }

    fn show(&self, _: &Seed) -> String {
        "\"(secret)\"".to_owned()
    }
}

/// The seed of the file, or one that anybody can compute: instances still agree, but who chooses keys can make them collide.
pub(super) fn read(root: &Section<'_, '_>, topic: &str) -> Seed {
    let public = || {
        root.warn(
            "seed",
            "is not set: it is made from the topic's name, so whoever chooses keys can choose ones that collide",
            "set seed to 16 hexadecimal digits, the same in all instances",
        );
        Seed(xxh64(topic.as_bytes(), 0))
    };
    match root.optional("seed", &Digits) {
        Some(seed) => seed,
        // A faulty one was noted.
        None if root.has("seed") => Seed(0),
        None => public(),
    }
}
