//! Errors of the Kafka client, sorted by what an operator must do about them.

use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode as Code;

use crate::telemetry::KafkaErrorClass as Class;

/// The class of an error.
#[must_use]
pub fn class_of(error: &KafkaError) -> Class {
    match error {
        KafkaError::MessageConsumptionFatal(_) => Class::Fatal,
        other => other.rdkafka_error_code().map_or(Class::Other, class_of_code),
    }
}

fn class_of_code(code: Code) -> Class {
    match code {
        Code::BrokerTransportFailure | Code::Resolve | Code::BrokerDestroy => Class::Transport,
        Code::AllBrokersDown => Class::AllBrokersDown,
        Code::OperationTimedOut | Code::RequestTimedOut | Code::MessageTimedOut | Code::TimedOutQueue => Class::Timeout,
        Code::Authentication | Code::SaslAuthenticationFailed | Code::SSL => Class::Authentication,
        Code::TopicAuthorizationFailed | Code::GroupAuthorizationFailed | Code::ClusterAuthorizationFailed => {
            Class::Authorization
        }
        Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::UnknownPartition => Class::UnknownTopic,
        Code::OffsetOutOfRange | Code::AutoOffsetReset => Class::OffsetOutOfRange,
        Code::PollExceeded
        | Code::RebalanceInProgress
        | Code::UnknownMemberId
        | Code::IllegalGeneration
        | Code::NotCoordinator
        | Code::CoordinatorNotAvailable
        | Code::FencedInstanceId
        | Code::AssignmentLost => Class::Group,
        Code::MessageSizeTooLarge | Code::InvalidRecord | Code::PolicyViolation | Code::InvalidTimestamp => {
            Class::Rejected
        }
        Code::Fatal | Code::Fenced => Class::Fatal,
        _ => Class::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_need_a_person_have_a_class_of_their_own() {
        assert_eq!(class_of(&KafkaError::MessageConsumption(Code::UnknownTopicOrPartition)), Class::UnknownTopic);
        assert_eq!(class_of(&KafkaError::MessageConsumption(Code::PollExceeded)), Class::Group);
        assert_eq!(class_of(&KafkaError::MessageConsumptionFatal(Code::BrokerTransportFailure)), Class::Fatal);
        assert_eq!(class_of(&KafkaError::Subscription("topic".to_owned())), Class::Other);
    }
}
