//! The digest of a table of plans: two readers whose digests are equal hold the same plans.
//!
//! Version 1: the exclusive or, over all plans, of xxh64 with seed 0 of these bytes, one after the other:
//!
//! 1. length of the record's key, 4 bytes, big-endian; the record's key (`plan/<keyspace>/<key bytes>`)
//! 2. epoch, 8 bytes, big-endian; seq, 8 bytes, big-endian
//! 3. the record's value
//!
//! A table without plans has digest 0. Order does not matter, and a change costs one hash of what goes and one of what comes. It is
//! written as 16 hexadecimal digits. It finds accidents, not attacks: access to the topic is what keeps others out.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh64::Xxh64;

use super::version::{Version, parse_hex16};

/// The digest of a table of plans, version 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Digest(pub u64);

impl Digest {
    /// The digest after a plan has come, or after the same plan has gone.
    #[must_use]
    pub fn toggled(self, key: &[u8], version: Version, value: &[u8]) -> Self {
        // A key of 4 GiB is no record's key; its length would only be cut to 32 bits.
        let length = u32::try_from(key.len()).unwrap_or(u32::MAX);
        let mut hash = Xxh64::new(0);
        hash.update(&length.to_be_bytes());
        hash.update(key);
        hash.update(&version.epoch.to_be_bytes());
        hash.update(&version.seq.to_be_bytes());
        hash.update(value);
        Self(self.0 ^ hash.digest())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_hex16(&text)
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom("invalid digest, which should be 16 lower-case hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_does_not_matter_and_what_goes_is_taken_out() {
        let version = |seq| Version { epoch: 1, seq };
        let a = Digest::default().toggled(b"plan/k/a", version(1), b"{}").toggled(b"plan/k/b", version(2), b"{}");
        let b = Digest::default().toggled(b"plan/k/b", version(2), b"{}").toggled(b"plan/k/a", version(1), b"{}");
        assert_eq!(a, b);
        assert_eq!(a.toggled(b"plan/k/a", version(1), b"{}").toggled(b"plan/k/b", version(2), b"{}"), Digest(0));
        assert_ne!(a, Digest(0));
    }

    #[test]
    fn the_length_keeps_key_and_value_apart() {
        let version = Version { epoch: 0x6100_0000_0000_0000, seq: 1 };
        assert_ne!(Digest(0).toggled(b"ka", version, b""), Digest(0).toggled(b"k", version, b"a"));
    }

    #[test]
    fn a_published_vector() {
        // Worked out with python-xxhash: xxh64(b'\0\0\0\x08plan/k/a' + (1).to_bytes(8,'big') + (2).to_bytes(8,'big') + b'{}').
        let digest = Digest(0).toggled(b"plan/k/a", Version { epoch: 1, seq: 2 }, b"{}");
        assert_eq!(digest.to_string(), "de049a31ccd4a35c");
    }
}
