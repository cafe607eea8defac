//! The value of a `plan/…` record, version 1.

use serde::{Deserialize, Serialize};

use super::layout::Layout;
use super::record_key::PlanKey;
use super::refusal::RefusedRecord;
use super::version::{Version, parse_hex16};
use super::wire;

/// The schema number that this code writes and reads.
pub const SCHEMA: u32 = 1;
/// The longest value of a record on the plan topic, in bytes.
pub const MAX_VALUE_BYTES: usize = 4096;
/// The only bucket hash of version 1.
pub const BUCKET_HASH: &str = "xxh64-low-bits";
/// The only bucket key form that is written; readers take the record's own.
pub const BUCKET_KEY: &str = "{key}:{label}";
/// The longest form of a bucket's key, in bytes.
pub const MAX_BUCKET_KEY_BYTES: usize = 256;

/// Where a migration stands. Requests go by the record's `write`, `read` and `delete`; by the state only operations that need the old
/// value, which wait in dual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Waits for approval; places nothing.
    Proposed,
    /// Reads look in the new layout as well.
    Prepare,
    /// Writes wait (keyspaces with `writes = update` only).
    Hold,
    /// Writes go to the new layout.
    Dual,
    /// The owner moves old records.
    Moving,
    /// The old layout is read no more.
    Settled,
}

impl State {
    /// Every state, in the order of a migration.
    pub const ALL: [Self; 6] = [Self::Proposed, Self::Prepare, Self::Hold, Self::Dual, Self::Moving, Self::Settled];

    /// The word in records and labels.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Prepare => "prepare",
            Self::Hold => "hold",
            Self::Dual => "dual",
            Self::Moving => "moving",
            Self::Settled => "settled",
        }
    }
}

/// How the keyspace's records are written; decides the phases of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Writes {
    /// An id is written once, by its one author.
    Insert,
    /// Records are rewritten and carry a version.
    Versioned,
    /// Records are rewritten in place.
    #[default]
    Update,
}

/// What becomes of records in the old layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum History {
    /// The owner copies them and reports.
    #[default]
    Move,
    /// There are none that matter; the owner still reports the old place empty.
    None,
    /// The store deletes them within a span.
    Expire,
    /// They stay where they are for ever.
    Keep,
}

/// How a delete is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Delete {
    /// Leave a tombstone in the write layout.
    Tombstone,
    /// Remove the record.
    #[default]
    Remove,
}

/// The decision for one key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = super::schema::plan_record))]
pub struct PlanRecord {
    /// Number of the schema: 1.
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    pub schema: u32,
    /// Name of the keyspace.
    pub keyspace: String,
    /// The key.
    #[serde(flatten)]
    pub key: KeyField,
    /// Where the migration stands: for people, and for the leader.
    pub state: State,
    /// Where a write goes; none while writes wait.
    pub write: Option<Layout>,
    /// Where a read looks, in this order.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 8), extend("uniqueItems" = true)))]
    pub read: Vec<Layout>,
    /// What a delete does.
    pub delete: Delete,
    /// Layouts whose records the owner may delete now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retire: Vec<Layout>,
    /// The migration's layouts; nothing of it changes from prepare on.
    pub migration: MigrationField,
    /// How a request id becomes a bucket and a bucket a key.
    pub bucket: BucketField,
    /// Why it was decided.
    pub evidence: Evidence,
    /// What is expected of it.
    pub prediction: Prediction,
    /// What it was measured to do, once it was. In a migration that undoes a split which did not help: what that was measured to do.
    pub outcome: Option<Outcome>,
    /// RFC 3339, when the migration was decided.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub decided_at: String,
    /// RFC 3339, only in proposed and prepare: a record that reached the log later is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub not_after: Option<String>,
}

/// The most layouts that one key's reads look in: with `history = keep` each migration adds one.
pub const MAX_READ_LAYOUTS: usize = 8;

/// What a reader has to understand before it looks at the rest.
#[derive(Deserialize)]
struct Peek {
    state: String,
    bucket: PeekBucket,
}

#[derive(Deserialize)]
struct PeekBucket {
    hash: String,
}

impl PlanRecord {
    /// Whose plan it is.
    #[must_use]
    pub fn plan_key(&self) -> PlanKey {
        PlanKey::new(&self.keyspace, &self.key.0)
    }

    /// True once the migration has been turned round: it left its new layout before any write went there.
    #[must_use]
    pub fn is_turned_round(&self) -> bool {
        self.state == State::Settled && self.write == Some(self.migration.from)
    }

    /// True when the last split of the key was measured not to help: in its record, and in those of the migration that undoes it.
    #[must_use]
    pub fn did_not_help(&self) -> bool {
        self.outcome.as_ref().is_some_and(|outcome| !outcome.helped)
    }

    /// The record's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        wire::to_json(self)
    }

    /// Reads the value of the record of `key`.
    ///
    /// # Errors
    /// [`RefusedRecord`] for a value that is too long, of another schema, with an unknown state or hash, of another shape or key, or
    /// that contradicts itself.
    pub fn decode(key: &PlanKey, value: &[u8]) -> Result<Self, RefusedRecord> {
        if value.len() > MAX_VALUE_BYTES {
            return Err(RefusedRecord::TooLong { bytes: value.len(), limit: MAX_VALUE_BYTES });
        }
        let shown = |text: &str| text.chars().take(64).collect();
        // What a later version changes is named first: another schema may have another shape altogether.
        wire::check_schema(value)?;
        let peek: Peek = wire::parse(value)?;
        if !State::ALL.iter().any(|state| state.label() == peek.state) {
            return Err(RefusedRecord::State(shown(&peek.state)));
        }
        if peek.bucket.hash != BUCKET_HASH {
            return Err(RefusedRecord::Hash(shown(&peek.bucket.hash)));
        }
        let record: Self = wire::parse(value)?;
        if record.plan_key() != *key {
            return Err(RefusedRecord::KeyMismatch);
        }
        record.check().map_err(RefusedRecord::Shape)?;
        Ok(record)
    }

    /// Holds the record against the table of phases: what each state may place where.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn check(&self) -> Result<(), &'static str> {
        let MigrationField { from, to, .. } = self.migration;
        let reads = |layout: Layout| self.read.contains(&layout);
        if from.number() == to.number() {
            return Err("a migration goes from one layout to another");
        }
        if self.read.is_empty() || self.read.len() > MAX_READ_LAYOUTS {
            return Err("read lists 1 to 8 layouts");
        }
        let repeated =
            |(at, layout): (usize, &Layout)| self.read.iter().skip(at + 1).any(|l| l.number() == layout.number());
        if self.read.iter().enumerate().any(repeated) {
            return Err("read lists a layout once");
        }
        let once = |name: &str| self.bucket.key.matches(name).count() == 1;
        if !once("{key}") || !once("{label}") || self.bucket.key.len() > MAX_BUCKET_KEY_BYTES {
            return Err("the key of a bucket holds {key} and {label} once each, in at most 256 bytes");
        }
        if self.not_after.as_ref().is_some_and(|limit| limit.parse::<jiff::Timestamp>().is_err()) {
            return Err("not_after is RFC 3339");
        }
        match self.write {
            None if self.state == State::Hold => {}
            None => return Err("write is null in hold only"),
            Some(_) if self.state == State::Hold => return Err("write is null in hold"),
            Some(layout) if reads(layout) => {}
            Some(_) => return Err("every write goes where every read looks"),
        }
        let fits = match self.state {
            State::Proposed => self.write == Some(from) && !reads(to),
            State::Prepare => self.write == Some(from) && self.reads_new_layout_first(),
            State::Hold => self.reads_new_layout_first(),
            State::Dual | State::Moving => self.write == Some(to) && self.reads_new_layout_first(),
            State::Settled if self.is_turned_round() => !reads(to),
            State::Settled => self.write == Some(to) && self.read == [to],
        };
        if fits { Ok(()) } else { Err("write and read are not those of the state") }
    }

    fn reads_new_layout_first(&self) -> bool {
        self.read.first() == Some(&self.migration.to) && self.read.contains(&self.migration.from)
    }
}

/// A key in JSON: `key` when it is UTF-8, else `key_b64`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "RawKey", into = "RawKey")]
pub struct KeyField(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
struct RawKey {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key_b64: Option<String>,
}

/// A key field that gives no key, or two.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKeyField {
    /// Neither or both.
    #[error("a record should have either 'key' or 'key_b64'")]
    OneOfTwo,
    /// Not base64.
    #[error("'key_b64' is not standard base64 with padding")]
    Base64,
}

impl TryFrom<RawKey> for KeyField {
    type Error = InvalidKeyField;

    fn try_from(raw: RawKey) -> Result<Self, Self::Error> {
        use base64::Engine as _;
        match (raw.key, raw.key_b64) {
            (Some(key), None) => Ok(Self(key.into_bytes())),
            (None, Some(text)) => {
                base64::engine::general_purpose::STANDARD.decode(text).map(Self).map_err(|_| InvalidKeyField::Base64)
            }
            _ => Err(InvalidKeyField::OneOfTwo),
        }
    }
}

impl From<KeyField> for RawKey {
    fn from(field: KeyField) -> Self {
        use base64::Engine as _;
        match String::from_utf8(field.0) {
            Ok(key) => Self { key: Some(key), key_b64: None },
            Err(error) => {
                let text = base64::engine::general_purpose::STANDARD.encode(error.as_bytes());
                Self { key: None, key_b64: Some(text) }
            }
        }
    }
}

/// The two layouts of a migration and the rules it runs by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MigrationField {
    /// The version with which the migration began: its name. Reports of the owner carry it, so that one of an earlier migration
    /// into the same layout counts for nothing. In a proposal the version that the leader expected to give it.
    pub version: Version,
    /// The layout that is left.
    pub from: Layout,
    /// The layout that is entered.
    pub to: Layout,
    /// How records are written.
    pub writes: Writes,
    /// What becomes of old records.
    pub history: History,
}

/// How a request id becomes a bucket and a bucket becomes a key of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BucketField {
    /// How a request id becomes a number: `xxh64-low-bits`; a router that does not know the hash refuses the record.
    #[cfg_attr(feature = "schema", schemars(extend("const" = BUCKET_HASH)))]
    pub hash: String,
    /// Seed of the hash: 16 hexadecimal digits in lower case.
    #[serde(with = "seed_hex")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("pattern" = super::schema::HEX16)))]
    pub seed: u64,
    /// Key of a bucket: `{key}` and `{label}` are replaced; each is there once.
    #[cfg_attr(feature = "schema", schemars(transform = super::schema::bucket_key))]
    pub key: String,
}

mod seed_hex {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(seed: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{seed:016x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        super::parse_hex16(&text).ok_or_else(|| {
            serde::de::Error::custom(format_args!(
                "invalid seed '{text}', which should be 16 lower-case hexadecimal digits"
            ))
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Why: the numbers behind the decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Kind of rule.
    pub rule: String,
    /// Length of the window.
    pub window_ms: u64,
    /// What was known of the count.
    pub count: crate::units::Estimate,
    /// Events in the window that it was compared with.
    pub threshold: u64,
    /// Peak rate of the key.
    pub rate_per_s: f64,
    /// Median over active keys, its upper bound; none where the window has no median.
    pub median: Option<u64>,
    /// Reads and scans in the window.
    pub reads: u64,
    /// Writes in the window.
    pub writes: u64,
    /// The shard that served most of it; none when unknown.
    pub shard: Option<String>,
    /// Input partitions with fresh counts / partitions that exist.
    pub completeness: f64,
    /// For each input partition the offset up to which was counted; the first 64 partitions.
    pub end_offsets: std::collections::BTreeMap<String, i64>,
    /// How many more partitions there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub end_offsets_cut: u64,
    /// Hash of the configuration: 16 hexadecimal digits.
    pub config: String,
}

/// What is expected of the split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prediction {
    /// Share of the key's point load on its hottest bucket.
    pub hottest_bucket_share: f64,
    /// Share of all load on the hottest shard before; none without a declared shard mapper.
    pub hottest_shard_before: Option<f64>,
    /// The same after the split.
    pub hottest_shard_after: Option<f64>,
    /// Requests that the split adds to the store, as a share of the key's requests: scans that visit every bucket.
    pub added_load: f64,
}

/// What a settled split was measured to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// Share of all load on the hottest shard, measured after settling; none where no shard is known.
    pub hottest_shard: Option<f64>,
    /// RFC 3339.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub measured_at: String,
    /// Whether it cut the hottest part of the key's load by `min_gain` at least.
    pub helped: bool,
    /// Share of the key's point requests on its hottest bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hottest_bucket_share: Option<f64>,
    /// Share of the key's requests on the shard that served most of them; none where events name no shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_shard_share: Option<f64>,
    /// Length of the window that it was measured over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<u64>,
    /// RFC 3339, when the record that ended the migration reached the log: nothing older was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub settled_at: Option<String>,
}
