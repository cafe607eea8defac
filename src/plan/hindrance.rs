//! Why nothing begins for a hot key: for `explain`, the page and a counter.

use super::migration::{CannotBegin, Wait};
use super::sizing::Cause;

/// Why nothing begins for a hot key, or why its migration stands still.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Hindrance {
    /// The keyspace is only observed.
    #[error("mode is observe: nothing is planned")]
    Observed,
    /// The window is cold, or the input is behind.
    #[error("counts cannot be trusted yet: the window is warming up or the input is behind")]
    Unsettled,
    /// The key is hot because it was: its count has fallen below the threshold, though not far or long enough to be called cool.
    #[error("the count is below the threshold now: the key is hot only until it is known to be cool")]
    Cooling,
    /// Planning is frozen.
    #[error("planning is frozen")]
    Frozen,
    /// The key is not among those that may be split, or among those that may not.
    #[error("the allow or block list keeps the key as it is")]
    Listed,
    /// An operator has blocked the key.
    #[error("an operator has blocked the key: it stays as it is")]
    Blocked,
    /// The key is pinned to more buckets than the keyspace may have: its limit was lowered since.
    #[error("the key is pinned to {buckets} buckets, more than max_buckets, {most}; pin it anew or raise the limit")]
    PinnedAbove {
        /// Of the pin.
        buckets: u32,
        /// Of the keyspace.
        most: u32,
    },
    /// As many keys are split, or as many migrations were begun in the last minute, as may be.
    #[error("the budget is used up: {0}")]
    Budget(&'static str),
    /// The key's last migration ended too short a time ago.
    #[error("the last migration of the key ended less than min_dwell ago")]
    Dwell,
    /// The key's last plan reached the log after its `not_after`.
    #[error("the last plan reached the log too late and is void: Kafka is slow, or its clock is ahead of this one")]
    Void,
    /// A router could not obey the key's last plan.
    #[error("a router refused the key's last plan; it rests")]
    Refused,
    /// The key's last split was measured not to help, and was undone.
    #[error("the last split of the key did not help and was undone; it rests for the cooldown")]
    Cooldown,
    /// Too few events were counted by bucket.
    #[error("undecided: {events} events counted by bucket, {needed} needed")]
    Undecided {
        /// Counted.
        events: u64,
        /// Needed.
        needed: u64,
    },
    /// Request ids are missing.
    #[error("no request ids: {0:.3} of the events have none to choose a bucket by")]
    NoRequestIds(f64),
    /// Buckets do not help enough.
    #[error("even the most buckets cut the hottest part only {gain:.2} times")]
    LittleGain {
        /// By which factor they would cut it.
        gain: f64,
        /// What keeps it hot.
        cause: Cause,
    },
    /// Mostly reads: advice is given instead.
    #[error("mostly reads: caching or replicas help, buckets do not")]
    Reads,
    /// One caller makes the heat: advice is given instead.
    #[error("one caller makes the heat: limit it")]
    OneCaller,
    /// The key is one object: advice is given instead.
    #[error("the key is one object that every write replaces: buckets cannot share it")]
    OneObject,
    /// The record cannot be made.
    #[error(transparent)]
    Record(#[from] CannotBegin),
    /// The key's migration waits.
    #[error("its migration waits for {}", .0.label())]
    Waits(Wait),
    /// The newest record of the key cannot be read, or is to be answered first.
    #[error("the newest record of the key in the log is not the one that is in force")]
    Troubled,
}

impl Hindrance {
    /// Every label that [`Hindrance::label`] gives.
    pub const LABELS: [&'static str; 21] = [
        "observed",
        "unsettled",
        "cooling",
        "frozen",
        "listed",
        "blocked",
        "pinned_above",
        "budget",
        "dwell",
        "void",
        "refused",
        "cooldown",
        "undecided",
        "no_request_ids",
        "little_gain",
        "reads",
        "one_caller",
        "one_object",
        "record",
        "waits",
        "troubled",
    ];

    /// The value of the label `reason`.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Unsettled => "unsettled",
            Self::Cooling => "cooling",
            Self::Frozen => "frozen",
            Self::Listed => "listed",
            Self::Blocked => "blocked",
            Self::PinnedAbove { .. } => "pinned_above",
            Self::Budget(_) => "budget",
            Self::Dwell => "dwell",
            Self::Void => "void",
            Self::Refused => "refused",
            Self::Cooldown => "cooldown",
            Self::Undecided { .. } => "undecided",
            Self::NoRequestIds(_) => "no_request_ids",
            Self::LittleGain { .. } => "little_gain",
            Self::Reads => "reads",
            Self::OneCaller => "one_caller",
            Self::OneObject => "one_object",
            Self::Record(_) => "record",
            Self::Waits(_) => "waits",
            Self::Troubled => "troubled",
        }
    }
}
