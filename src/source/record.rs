//! What a source hands out.

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

/// What a source has to say, in the order in which it happened.
#[derive(Debug)]
pub enum SourceEvent<'a> {
    /// The next record of its partition.
    Record(Record<'a>),
    /// Partitions were assigned, each with the offset that it will be read from.
    Assigned(Vec<(Partition, Offset)>),
    /// Partitions were taken away.
    Revoked(Vec<Partition>),
    /// How far a partition reaches: the offset after its last record, as far as is known now.
    End(Partition, Offset),
    /// Offsets from the first to before the second do not exist any more.
    Lost(Partition, Offset, Offset),
    /// A record that had been handed out before came again and was left out.
    Repeated(Partition, Offset),
    /// A partition begins anew below its position: its topic was re-created or its log cut.
    Rewound(Partition, Offset),
    /// The client reports an error; it goes on by itself.
    Failed(ErrorClass, String),
    /// A commit of positions ended.
    Committed(Result<(), String>),
}

/// Errors of the Kafka client by what an operator must do about them: a closed list, used as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorClass {
    /// A connection broke or could not be made.
    Transport,
    /// No broker can be reached.
    AllBrokersDown,
    /// The broker refused the credentials, or TLS failed.
    Authentication,
    /// An access rule forbids it.
    Authorization,
    /// The topic does not exist.
    UnknownTopic,
    /// The group evicted this member since it did not poll in time.
    MaxPollExceeded,
    /// The client cannot go on.
    Fatal,
    /// Anything else.
    Other,
}

impl ErrorClass {
    /// Every class.
    pub const ALL: [Self; 8] = [
        Self::Transport,
        Self::AllBrokersDown,
        Self::Authentication,
        Self::Authorization,
        Self::UnknownTopic,
        Self::MaxPollExceeded,
        Self::Fatal,
        Self::Other,
    ];

    /// The value of the label `class`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Transport => "transport",
            Self::AllBrokersDown => "all_brokers_down",
            Self::Authentication => "authentication",
            Self::Authorization => "authorization",
            Self::UnknownTopic => "unknown_topic",
            Self::MaxPollExceeded => "max_poll_exceeded",
            Self::Fatal => "fatal",
            Self::Other => "other",
        }
    }
}

impl From<rdkafka::types::RDKafkaErrorCode> for ErrorClass {
    fn from(code: rdkafka::types::RDKafkaErrorCode) -> Self {
        use rdkafka::types::RDKafkaErrorCode as Code;
        match code {
            Code::BrokerTransportFailure | Code::Resolve | Code::OperationTimedOut | Code::RequestTimedOut => {
                Self::Transport
            }
            Code::AllBrokersDown => Self::AllBrokersDown,
            Code::Authentication | Code::SaslAuthenticationFailed | Code::SSL => Self::Authentication,
            Code::TopicAuthorizationFailed | Code::GroupAuthorizationFailed | Code::ClusterAuthorizationFailed => {
                Self::Authorization
            }
            Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::UnknownPartition => Self::UnknownTopic,
            Code::PollExceeded => Self::MaxPollExceeded,
            Code::Fatal => Self::Fatal,
            _ => Self::Other,
        }
    }
}
