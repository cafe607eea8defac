//! What a record says once it is decoded: one request, and its key in each keyspace.

use crate::units::EventTime;

/// The most keyspaces that one input can have.
pub const MAX_KEYSPACES: usize = 8;

/// What the request did to the record behind its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Operation {
    /// Read one record.
    Read,
    /// Wrote one record.
    Write,
    /// Read all records of the key.
    Scan,
    /// Deleted one record.
    Delete,
    /// The event does not say, or says a word that is not configured.
    #[default]
    Unknown,
}

/// One request, borrowed from the record and from the decoder's buffer.
///
/// Text fields are bytes as they came, after JSON escapes; an empty slice means that the event does not have the field.
#[derive(Debug, Clone, Copy)]
pub struct AccessEvent<'a> {
    /// When the request was made, by the event itself.
    pub time: EventTime,
    /// What the request did.
    pub operation: Operation,
    /// How much the request counts for in weighted measures: 1 unless configured.
    pub weight: u64,
    /// The shard that served it; empty when unknown.
    pub shard: &'a [u8],
    /// The id that a split would hash; empty when there is none.
    pub request_id: &'a [u8],
    /// Who asked; empty when unknown.
    pub caller: &'a [u8],
    /// The key in each keyspace, in the order of the configuration.
    pub keys: Keys<'a>,
}

impl<'a> AccessEvent<'a> {
    /// An event of one keyspace with nothing but a key and a time.
    #[must_use]
    pub fn new(time: EventTime, key: &'a [u8]) -> Self {
        let mut keys = Keys::default();
        keys.0[0] = key;
        Self { time, operation: Operation::Unknown, weight: 1, shard: &[], request_id: &[], caller: &[], keys }
    }
}

/// The keys of one event, one a keyspace; an empty slice where the event has none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Keys<'a>(pub [&'a [u8]; MAX_KEYSPACES]);

impl<'a> Keys<'a> {
    /// The key in the keyspace with this index, if the event has one there.
    #[must_use]
    pub fn get(&self, keyspace: usize) -> Option<&'a [u8]> {
        self.0.get(keyspace).copied().filter(|key| !key.is_empty())
    }
}
