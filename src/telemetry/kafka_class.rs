//! Which class an error of the Kafka client belongs to.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::labels::KafkaErrorClass;

impl From<RDKafkaErrorCode> for KafkaErrorClass {
    fn from(code: RDKafkaErrorCode) -> Self {
        use RDKafkaErrorCode as Code;
        match code {
            Code::BrokerTransportFailure | Code::Resolve | Code::NetworkException | Code::BrokerNotAvailable => {
                Self::Transport
            }
            Code::AllBrokersDown => Self::AllBrokersDown,
            Code::OperationTimedOut | Code::RequestTimedOut | Code::MessageTimedOut | Code::TimedOutQueue => {
                Self::Timeout
            }
            Code::Authentication
            | Code::SaslAuthenticationFailed
            | Code::UnsupportedSASLMechanism
            | Code::IllegalSASLState
            | Code::SSL => Self::Authentication,
            Code::TopicAuthorizationFailed
            | Code::GroupAuthorizationFailed
            | Code::ClusterAuthorizationFailed
            | Code::TransactionalIdAuthorizationFailed => Self::Authorization,
            Code::UnknownTopic | Code::UnknownPartition | Code::UnknownTopicOrPartition | Code::UnknownTopicId => {
                Self::UnknownTopic
            }
            Code::OffsetOutOfRange | Code::AutoOffsetReset | Code::NoOffset => Self::OffsetOutOfRange,
            Code::RebalanceInProgress
            | Code::IllegalGeneration
            | Code::UnknownMemberId
            | Code::FencedInstanceId
            | Code::FencedMemberEpoch
            | Code::StaleMemberEpoch
            | Code::MemberIdRequired
            | Code::NotCoordinator
            | Code::CoordinatorNotAvailable
            | Code::CoordinatorLoadInProgress
            | Code::PollExceeded
            | Code::AssignmentLost
            | Code::AssignPartitions
            | Code::RevokePartitions => Self::Group,
            Code::MessageSizeTooLarge
            | Code::InvalidMessage
            | Code::InvalidMessageSize
            | Code::InvalidRecord
            | Code::PolicyViolation
            | Code::NotEnoughReplicas
            | Code::NotEnoughReplicasAfterAppend => Self::Rejected,
            Code::Fatal | Code::Fenced | Code::InvalidProducerEpoch | Code::OutOfOrderSequenceNumber => Self::Fatal,
            _ => Self::Other,
        }
    }
}

impl From<&KafkaError> for KafkaErrorClass {
    fn from(error: &KafkaError) -> Self {
        error.rdkafka_error_code().map_or(Self::Other, Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_a_person_can_act_on_have_a_class() {
        for (code, class) in [
            (RDKafkaErrorCode::AllBrokersDown, KafkaErrorClass::AllBrokersDown),
            (RDKafkaErrorCode::UnknownTopicOrPartition, KafkaErrorClass::UnknownTopic),
            (RDKafkaErrorCode::TopicAuthorizationFailed, KafkaErrorClass::Authorization),
            (RDKafkaErrorCode::PollExceeded, KafkaErrorClass::Group),
            (RDKafkaErrorCode::UnsupportedVersion, KafkaErrorClass::Other),
        ] {
            assert_eq!(KafkaErrorClass::from(code), class);
            assert_eq!(KafkaErrorClass::from(&KafkaError::MessageConsumption(code)), class);
        }
        assert_eq!(KafkaErrorClass::from(&KafkaError::Canceled), KafkaErrorClass::Other);
    }
}
