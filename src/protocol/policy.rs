//! The value of a `policy/…` record, version 1: what an operator has set for a key. The planner obeys it; it places nothing, so that
//! routers need not read it.

use serde::{Deserialize, Serialize};

use super::layout::MAX_BUCKETS;
use super::plan_record::KeyField;
use super::record_key::PlanKey;
use super::refusal::RefusedRecord;
use super::wire;
use crate::units::EventTime;

/// The longest reason of an operator, in characters.
pub const MAX_REASON_CHARS: usize = 256;

/// What an operator has set for a key: a block or a pin, never both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Policy {
    /// Number of the schema: 1.
    #[cfg_attr(feature = "schema", schemars(extend("const" = super::SCHEMA)))]
    pub schema: u32,
    /// Name of the keyspace.
    pub keyspace: String,
    /// The key.
    #[serde(flatten)]
    pub key: KeyField,
    /// True: the planner leaves the key as it is.
    pub block: bool,
    /// The number of buckets that the key is to have; none for a block.
    pub pin: Option<Pin>,
    /// RFC 3339, when it was set.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub decided_at: String,
    /// Why, in the operator's words: at most 256 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 256)))]
    pub reason: Option<String>,
}

/// A number of buckets for a span of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pin {
    /// Number of buckets: a power of two from 2 to 256.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = [2, 4, 8, 16, 32, 64, 128, 256])))]
    pub buckets: u32,
    /// RFC 3339: from then on; none: from when it was set.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub from: Option<String>,
    /// RFC 3339: up to then; none: until it is taken back.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub until: Option<String>,
}

impl Policy {
    /// Whose it is.
    #[must_use]
    pub fn plan_key(&self) -> PlanKey {
        PlanKey::new(&self.keyspace, &self.key.0)
    }

    /// The record's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        wire::to_json(self)
    }

    /// Reads the value of the record of `key`.
    ///
    /// # Errors
    /// [`RefusedRecord`] for a value that is too long, of another schema, shape or key, or that contradicts itself.
    pub fn decode(key: &PlanKey, value: &[u8]) -> Result<Self, RefusedRecord> {
        let policy: Self = wire::from_json(value)?;
        if policy.plan_key() != *key {
            return Err(RefusedRecord::KeyMismatch);
        }
        policy.check().map_err(RefusedRecord::Shape)?;
        Ok(policy)
    }

    /// Holds the record against the rules of its fields.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.block == self.pin.is_some() {
            return Err("a policy is either a block or a pin");
        }
        if self.reason.as_ref().is_some_and(|reason| reason.chars().count() > MAX_REASON_CHARS) {
            return Err("a reason has at most 256 characters");
        }
        self.pin.as_ref().map_or(Ok(()), Pin::check)
    }
}

impl Pin {
    fn check(&self) -> Result<(), &'static str> {
        if !self.buckets.is_power_of_two() || !(2..=MAX_BUCKETS).contains(&self.buckets) {
            return Err("a pin has a power of two from 2 to 256 buckets");
        }
        let given = [&self.from, &self.until].map(|time| time.as_deref().map(moment));
        if given.contains(&Some(None)) {
            return Err("from and until are RFC 3339");
        }
        let [from, until] = given.map(Option::flatten);
        let ends_first = from.zip(until).is_some_and(|(from, until)| until <= from);
        if ends_first { Err("a pin begins before it ends") } else { Ok(()) }
    }

    /// True within the span of the pin: `from` is part of it, `until` is not.
    #[must_use]
    pub fn lasts_at(&self, now: EventTime) -> bool {
        let begun = self.from.as_deref().and_then(moment).is_none_or(|from| from <= now);
        begun && !self.is_over_at(now)
    }

    /// True once the span of the pin has ended.
    #[must_use]
    pub fn is_over_at(&self, now: EventTime) -> bool {
        self.until.as_deref().and_then(moment).is_some_and(|until| until <= now)
    }
}

/// A time of a record, cut to milliseconds.
fn moment(text: &str) -> Option<EventTime> {
    let time = text.parse::<jiff::Timestamp>().ok()?;
    EventTime::from_millis(time.as_millisecond()).ok()
}
