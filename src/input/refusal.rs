//! Why a record was not counted: a closed list, each with the label that its counter carries.

/// Why a record, or an event's key in one keyspace, was not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum Refusal {
    /// The record has no value: a tombstone, which is no event.
    #[error("no value: a tombstone is not an event")]
    Tombstone,
    /// The value is zero bytes long.
    #[error("empty value, which should be one JSON object")]
    Empty,
    /// The value is longer than the limit.
    #[error("value too long; raise input.max_record_bytes or send shorter records")]
    TooLong,
    /// The value is not one JSON object in UTF-8.
    #[error("not one JSON object in UTF-8")]
    NotJson,
    /// No keyspace finds its key in the event.
    #[error("key missing: no field that the key template names")]
    KeyMissing,
    /// The key is there and is the empty text.
    #[error("key empty")]
    KeyEmpty,
    /// The key is longer than the limit.
    #[error("key too long; raise input.max_key_bytes or choose a shorter key")]
    KeyTooLong,
    /// The event has no time.
    #[error("time missing")]
    TimeMissing,
    /// The time is neither a number in range nor RFC 3339.
    #[error("time invalid, which should be epoch seconds, milliseconds, microseconds or nanoseconds, or RFC 3339")]
    TimeInvalid,
    /// The event is older than the ring holds.
    #[error("too late: older than the window and its slack")]
    TooLate,
    /// The event is further ahead of the clock than `max_ahead`.
    #[error("future: ahead of the clock by more than max_ahead")]
    Future,
}

impl Refusal {
    /// Every reason, in the order of the enum.
    pub const ALL: [Self; 11] = [
        Self::Tombstone,
        Self::Empty,
        Self::TooLong,
        Self::NotJson,
        Self::KeyMissing,
        Self::KeyEmpty,
        Self::KeyTooLong,
        Self::TimeMissing,
        Self::TimeInvalid,
        Self::TooLate,
        Self::Future,
    ];

    /// The value of the label `reason`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Tombstone => "tombstone",
            Self::Empty => "empty",
            Self::TooLong => "too_long",
            Self::NotJson => "not_json",
            Self::KeyMissing => "key_missing",
            Self::KeyEmpty => "key_empty",
            Self::KeyTooLong => "key_too_long",
            Self::TimeMissing => "time_missing",
            Self::TimeInvalid => "time_invalid",
            Self::TooLate => "too_late",
            Self::Future => "future",
        }
    }
}
