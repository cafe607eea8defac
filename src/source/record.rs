//! What a source hands out.

use crate::telemetry::KafkaErrorClass;
use crate::units::{Offset, Partition};

/// One record, borrowed from the client's buffer.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// The partition it came from.
    pub partition: Partition,
    /// Its place in the partition.
    pub offset: Offset,
    /// Its value; none for a tombstone.
    pub value: Option<&'a [u8]>,
}

/// What becomes of a record that was handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Answer {
    /// It was counted, or refused for good.
    Taken,
    /// It must wait, and all that follow it in its partition.
    MustWait,
}

/// How far an assigned partition is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// The partition.
    pub partition: Partition,
    /// The next record to take.
    pub position: Offset,
    /// One past the last record, where it is known.
    pub end: Option<Offset>,
    /// The record at the position came and must wait.
    pub waits: bool,
}

/// What a source has to say, in the order in which it happened.
#[derive(Debug)]
pub enum SourceEvent<'a> {
    /// The next record of its partition.
    Record(Record<'a>),
    /// Partitions were assigned, each with the offset that it will be read from.
    Assigned(Vec<(Partition, Offset)>),
    /// Partitions were given up in good order: another member goes on with them.
    Revoked(Vec<Partition>),
    /// Partitions were lost with the session: they may come back, or be another member's already.
    TakenAway(Vec<Partition>),
    /// Offsets from the first to before the second do not exist any more.
    Lost(Partition, Offset, Offset),
    /// A record that had been handed out before came again and was left out.
    Repeated(Partition, Offset),
    /// A partition begins anew below its position: its topic was re-created or its log cut.
    Rewound(Partition, Offset),
    /// The client reports an error; it goes on by itself.
    Failed(KafkaErrorClass, String),
    /// A commit of positions ended.
    Committed(Result<(), String>),
}
