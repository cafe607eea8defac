//! Makes the topics that keyheat needs, and looks at those that are there.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::MetadataTopic;

use super::topics::{Replication, TopicFault, TopicSetting, TopicSpec};

/// What a look at topics has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verified {
    /// All was looked at; these faults were found.
    Faults(Vec<TopicFault>),
    /// The cluster answers and cannot describe settings (librdkafka's mock cluster cannot), so only existence, partitions and
    /// replicas were looked at; these faults were found.
    NotSupported(Vec<TopicFault>),
}

/// What became of a topic that should be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// It was made.
    Made,
    /// It was there already; whether it is right is for [`TopicAdmin::verify`] to say.
    AlreadyThere,
    /// The cluster refused it.
    Refused(RDKafkaErrorCode),
}

/// Why topics could not be made or looked at.
#[derive(Debug, thiserror::Error)]
pub enum TopicsError {
    /// The client refuses its settings.
    #[error("kafka client: {0}; check kafka.librdkafka")]
    Client(#[source] KafkaError),
    /// No broker answers.
    #[error("no broker answers at {brokers}: {source}; check kafka.brokers, and that Kafka runs")]
    Unreachable {
        /// The brokers that were asked.
        brokers: String,
        /// The client's error.
        source: KafkaError,
    },
    /// A broker answers and refuses.
    #[error("the cluster refuses to {what}: {source}")]
    Refused {
        /// What it was asked to do.
        what: &'static str,
        /// Its answer.
        source: KafkaError,
    },
}

/// Time between two looks for a topic that was just made.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A client for topics. Its calls wait for the cluster, each for at most the time-out.
pub struct TopicAdmin {
    client: AdminClient<DefaultClientContext>,
    brokers: String,
    timeout: Duration,
}

impl TopicAdmin {
    /// A client with these settings; no broker is asked yet.
    ///
    /// # Errors
    /// [`TopicsError::Client`].
    pub fn new(config: &ClientConfig, timeout: Duration) -> Result<Self, TopicsError> {
        let client = config.create().map_err(TopicsError::Client)?;
        let brokers = config.get("bootstrap.servers").unwrap_or_default().to_owned();
        Ok(Self { client, brokers, timeout })
    }

    /// Makes topics, in the order given, with replication as the cluster's number of brokers asks. What is there is left alone.
    ///
    /// # Errors
    /// When no broker answers, or the request as a whole is refused.
    pub fn create(&self, specs: &[TopicSpec]) -> Result<Vec<Created>, TopicsError> {
        let replication = Replication::of(self.brokers_known()?);
        let extra = replication.settings();
        let mut topics = Vec::new();
        for spec in specs {
            topics.push(new_topic(spec, replication, &extra));
        }
        let results = block_on(self.client.create_topics(&topics, &self.options()))
            .map_err(|source| TopicsError::Refused { what: "make topics", source })?;
        let created = |result: Result<String, (String, RDKafkaErrorCode)>| match result {
            Ok(_) => Created::Made,
            Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => Created::AlreadyThere,
            Err((_, code)) => Created::Refused(code),
        };
        let created: Vec<Created> = results.into_iter().map(created).collect();
        for (spec, _) in specs.iter().zip(&created).filter(|(_, created)| **created == Created::Made) {
            self.wait_for(&spec.name)?;
        }
        Ok(created)
    }

    /// The controller has made the topic; the broker that answers us may hear of it a little later.
    fn wait_for(&self, topic: &str) -> Result<(), TopicsError> {
        let mut left = self.timeout;
        while self.look_up(topic)?.is_none() && !left.is_zero() {
            thread::sleep(LOOK_AGAIN);
            left = left.saturating_sub(LOOK_AGAIN);
        }
        Ok(())
    }

    /// Looks at topics; `readable` are topics of others, of which only that they are there matters.
    ///
    /// # Errors
    /// When no broker answers, or it may not be asked.
    pub fn verify(&self, specs: &[TopicSpec], readable: &[&str]) -> Result<Verified, TopicsError> {
        let mut faults = Vec::new();
        for topic in readable {
            if self.look_up(topic)?.is_none() {
                faults.push(TopicFault::missing(topic));
            }
        }
        let mut is_supported = true;
        for spec in specs {
            let Some(Found { partitions, replicas, brokers }) = self.look_up(&spec.name)? else {
                faults.push(TopicFault::missing(&spec.name));
                continue;
            };
            let described = if is_supported { self.describe(&spec.name)? } else { None };
            is_supported &= described.is_some();
            faults.extend(spec.faults(partitions, replicas, brokers, described.as_ref()));
        }
        Ok(if is_supported { Verified::Faults(faults) } else { Verified::NotSupported(faults) })
    }

    fn brokers_known(&self) -> Result<usize, TopicsError> {
        let metadata = self.client.inner().fetch_metadata(None, self.timeout);
        metadata.map(|metadata| metadata.brokers().len()).map_err(|source| self.unreachable(source))
    }

    /// None when there is no such topic.
    fn look_up(&self, topic: &str) -> Result<Option<Found>, TopicsError> {
        // Asked for all topics, since a question for one could make it where the cluster makes topics by itself.
        let metadata =
            self.client.inner().fetch_metadata(None, self.timeout).map_err(|source| self.unreachable(source))?;
        let brokers = metadata.brokers().len();
        let found = metadata.topics().iter().find(|found| found.name() == topic);
        Ok(found.filter(|found| !found.partitions().is_empty()).map(|found| Found {
            partitions: found.partitions().len(),
            replicas: least_replicas(found),
            brokers,
        }))
    }

    /// None when the cluster does not answer this question though it answers others.
    fn describe(&self, topic: &str) -> Result<Option<BTreeMap<String, String>>, TopicsError> {
        let refused = |source| TopicsError::Refused { what: "describe topics", source };
        let specifier = ResourceSpecifier::Topic(topic);
        match block_on(self.client.describe_configs([&specifier], &self.options())) {
            Ok(resources) => {
                let Some(resource) = resources.into_iter().next() else { return Ok(None) };
                let resource = resource.map_err(|code| refused(KafkaError::AdminOp(code)))?;
                let entries = resource.entries.into_iter();
                Ok(Some(entries.filter_map(|entry| Some((entry.name, entry.value?))).collect()))
            }
            Err(error) if is_not_supported(&error) => Ok(None),
            Err(error) => Err(refused(error)),
        }
    }

    fn unreachable(&self, source: KafkaError) -> TopicsError {
        TopicsError::Unreachable { brokers: self.brokers.clone(), source }
    }

    fn options(&self) -> AdminOptions {
        AdminOptions::new().request_timeout(Some(self.timeout)).operation_timeout(Some(self.timeout))
    }
}

fn new_topic<'s>(spec: &'s TopicSpec, replication: Replication, extra: &'s [TopicSetting]) -> NewTopic<'s> {
    let partitions = i32::try_from(spec.partitions).unwrap_or(i32::MAX);
    let factor = TopicReplication::Fixed(i32::try_from(replication.factor).unwrap_or(1));
    let bare = NewTopic::new(&spec.name, partitions, factor);
    spec.settings.iter().chain(extra).fold(bare, |topic, setting| topic.set(setting.name, &setting.value))
}

struct Found {
    partitions: usize,
    replicas: usize,
    brokers: usize,
}

fn least_replicas(topic: &MetadataTopic) -> usize {
    topic.partitions().iter().map(|partition| partition.replicas().len()).min().unwrap_or(0)
}

/// The metadata came a moment ago, so a question that is not answered is one that the cluster does not know.
fn is_not_supported(error: &KafkaError) -> bool {
    use RDKafkaErrorCode::{OperationTimedOut, RequestTimedOut, UnsupportedFeature, UnsupportedVersion};
    let code = match error {
        KafkaError::AdminOp(code) => Some(*code),
        error => error.rdkafka_error_code(),
    };
    matches!(code, Some(OperationTimedOut | RequestTimedOut | UnsupportedFeature | UnsupportedVersion))
}

/// Waits for an answer of the client, which has a thread of its own and a time-out.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::mocking::MockCluster;

    use super::*;
    use crate::config::ControlSettings;

    #[test]
    fn a_mock_cluster_has_topics_and_cannot_describe_them() {
        let cluster = MockCluster::new(1).unwrap();
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", cluster.bootstrap_servers());
        let admin = TopicAdmin::new(&config, Duration::from_secs(2)).unwrap();
        let specs = TopicSpec::control(&ControlSettings::default());
        cluster.create_topic(&specs[0].name, 2, 1).unwrap();
        let Verified::NotSupported(faults) = admin.verify(&specs, &["access"]).unwrap() else { panic!("supported") };
        let shown: Vec<(&str, &str)> = faults.iter().map(|fault| (&*fault.topic, &*fault.setting)).collect();
        assert_eq!(shown, [("access", ""), ("keyheat.plan.v1", "number of partitions"), ("keyheat.acks.v1", "")]);
    }

    #[test]
    fn a_cluster_that_is_not_there_is_named() {
        let mut config = ClientConfig::new();
        // The discard port: nobody listens.
        config.set("bootstrap.servers", "127.0.0.1:9").set_log_level(rdkafka::config::RDKafkaLogLevel::Emerg);
        let admin = TopicAdmin::new(&config, Duration::from_millis(300)).unwrap();
        let error = admin.verify(&[], &["access"]).unwrap_err();
        assert!(error.to_string().starts_with("no broker answers at 127.0.0.1:9: "), "{error}");
    }
}
