//! The version of a record, `(epoch, seq)`, and the nonce that tells two claimants of one epoch apart.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::headers::MAX_VERSION_NUMBER;

/// Versions order all accepted records: by epoch, then by sequence number inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Version {
    /// Number of the publisher's claim; grows with every change of leader.
    #[serde(deserialize_with = "version_number")]
    #[cfg_attr(feature = "schema", schemars(range(max = MAX_VERSION_NUMBER)))]
    pub epoch: u64,
    /// Number of the record inside the epoch; starts at 1.
    #[serde(deserialize_with = "version_number")]
    #[cfg_attr(feature = "schema", schemars(range(max = MAX_VERSION_NUMBER)))]
    pub seq: u64,
}

/// The limit of headers holds in values too: a reader that keeps numbers as doubles would take two versions for one.
fn version_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number = u64::deserialize(deserializer)?;
    if number <= MAX_VERSION_NUMBER {
        return Ok(number);
    }
    Err(serde::de::Error::custom(format_args!("number {number} of a version, which should be below 2^53")))
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.seq)
    }
}

/// A random number that names one claimant or one router's snapshot: 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce(pub u64);

/// A text that is no nonce.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid nonce '{0}', which should be 16 hexadecimal digits in lower case")]
pub struct InvalidNonce(pub String);

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Nonce {
    type Err = InvalidNonce;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_hex16(text).map(Self).ok_or_else(|| InvalidNonce(text.chars().take(64).collect()))
    }
}

/// Reads exactly 16 lower-case hexadecimal digits.
pub(crate) fn parse_hex16(text: &str) -> Option<u64> {
    let plain = text.len() == 16 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if plain { u64::from_str_radix(text, 16).ok() } else { None }
}

impl Serialize for Nonce {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Nonce {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
