//! A record of a topic as a client hands it over, and the topics' limits.

use super::headers::{InvalidHeaders, RecordHeaders};
use crate::units::{EventTime, Offset};

/// A record read from the plan topic or the acks topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    /// Its place in the partition.
    pub offset: Offset,
    /// The record's key; empty when it has none.
    pub key: Vec<u8>,
    /// The record's value; none for a tombstone.
    pub value: Option<Vec<u8>>,
    /// The headers as they came.
    pub headers: Vec<(String, Vec<u8>)>,
    /// When the broker appended it; none where the topic does not keep that time.
    pub log_time: Option<EventTime>,
}

impl LogRecord {
    /// A record as it will be read back: `headers` are written out first.
    #[must_use]
    pub fn new(offset: Offset, key: Vec<u8>, value: Option<Vec<u8>>, headers: &RecordHeaders) -> Self {
        let headers = headers.to_pairs().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self { offset, key, value, headers, log_time: None }
    }

    /// The same record with the time at which the broker appended it.
    #[must_use]
    pub fn at(mut self, log_time: EventTime) -> Self {
        self.log_time = Some(log_time);
        self
    }

    /// The headers, read.
    ///
    /// # Errors
    /// [`InvalidHeaders`] when one that every record has is missing or has a wrong form.
    pub fn parsed_headers(&self) -> Result<RecordHeaders, InvalidHeaders> {
        RecordHeaders::parse(self.headers.iter().map(|(name, value)| (name.as_str(), value.as_slice())))
    }
}
