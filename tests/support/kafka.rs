//! A real Apache Kafka for a test: `tests/tools/kafka` does the work, this calls it and brings the clients.
//!
//! No broker outlives the test; see [`Server`].

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Header, Headers as _, Message as _, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer as _, ProducerContext};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};

use super::server::{Server, unique};
use super::wait::now;
use super::{Record, kcat};

/// How long one request to the broker, or a read to a topic's end, may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A running broker.
pub(crate) struct Kafka {
    /// `host:port` for `bootstrap.servers`; the same after a restart.
    pub(crate) bootstrap: String,
    /// A broker of our own; none where the test command started it.
    own: Option<Server>,
}

impl Kafka {
    /// The broker that tests share which never stop it: that of `KEYHEAT_TEST_KAFKA` (host:port), which `tests/run` starts, else
    /// one for this process. Names of topics and groups come from [`Kafka::name`], so that tests do not meet.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Kafka> = OnceLock::new();
        SHARED.get_or_init(|| match std::env::var("KEYHEAT_TEST_KAFKA") {
            Ok(bootstrap) => Self { bootstrap, own: None },
            Err(_) => Self::start(),
        })
    }

    /// A broker of one's own, to be stopped, frozen and killed.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with settings of `server.properties`.
    pub(crate) fn start_with(settings: &[(&str, &str)]) -> Self {
        let server = Server::new("kafka");
        let mut arguments = vec!["start".to_owned(), "--fresh".to_owned()];
        for (name, value) in settings {
            arguments.extend(["--set".to_owned(), format!("{name}={value}")]);
        }
        let bootstrap = server.start(&arguments);
        Self { bootstrap, own: Some(server) }
    }

    /// A name for a topic, a group or a client that no other test and no other run has.
    pub(crate) fn name(prefix: &str) -> String {
        unique(&format!("{prefix}-{}", std::process::id()))
    }

    // --- its life ---

    /// Ends it in good order; data and ports stay for [`Kafka::start_again`].
    pub(crate) fn stop(&self) {
        self.life("stop");
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&self) {
        self.life("kill");
    }

    /// Starts a stopped or killed one with its old ports and data, and waits until it answers.
    pub(crate) fn start_again(&self) {
        self.life("start");
    }

    /// Stops and starts it.
    pub(crate) fn restart(&self) {
        self.life("restart");
    }

    /// Freezes it: connections stay open and nobody is answered.
    pub(crate) fn pause(&self) {
        self.life("pause");
    }

    /// Lets a frozen one go on.
    pub(crate) fn resume(&self) {
        self.life("resume");
    }

    fn life(&self, command: &str) {
        let server =
            self.own.as_ref().expect("only a broker of Kafka::start() may be stopped: the shared one has other users");
        server.run(&[command.to_owned()]);
    }

    // --- topics ---

    /// Settings for a client of one's own.
    pub(crate) fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.bootstrap).set("broker.address.family", "v4");
        config
    }

    /// Makes a topic and waits until it has leaders.
    pub(crate) fn create_topic(&self, name: &str, partitions: i32, settings: &[(&str, &str)]) {
        let mut topic = NewTopic::new(name, partitions, TopicReplication::Fixed(1));
        for (setting, value) in settings {
            topic = topic.set(setting, value);
        }
        let results = block_on(self.admin().create_topics([&topic], &options())).expect("create topics");
        assert_eq!(results, [Ok(name.to_owned())]);
        self.wait_for_leaders(name, partitions);
    }

    /// Grows a topic to a number of partitions.
    pub(crate) fn add_partitions(&self, topic: &str, partitions: usize) {
        let wanted = NewPartitions::new(topic, partitions);
        let results = block_on(self.admin().create_partitions([&wanted], &options())).expect("create partitions");
        assert_eq!(results, [Ok(topic.to_owned())]);
        self.wait_for_leaders(topic, i32::try_from(partitions).expect("a number of partitions"));
    }

    /// Deletes a topic.
    pub(crate) fn delete_topic(&self, topic: &str) {
        let results = block_on(self.admin().delete_topics(&[topic], &options())).expect("delete topics");
        assert_eq!(results, [Ok(topic.to_owned())]);
    }

    /// Every setting in force for a topic, as the broker describes it.
    pub(crate) fn topic_settings(&self, topic: &str) -> BTreeMap<String, String> {
        let specifier = ResourceSpecifier::Topic(topic);
        let mut results = block_on(self.admin().describe_configs([&specifier], &options())).expect("describe settings");
        let resource = results.pop().expect("one answer a resource").expect("the topic exists");
        resource.entries.into_iter().filter_map(|entry| Some((entry.name, entry.value?))).collect()
    }

    /// The partitions of a topic with the first offset that can be read and the next one to be written.
    pub(crate) fn offsets(&self, topic: &str) -> BTreeMap<i32, (i64, i64)> {
        self.offsets_seen_by(&self.reader("offsets"), topic)
    }

    /// What a group has committed for a topic; nothing for partitions where it has committed nothing.
    pub(crate) fn committed(&self, group: &str, topic: &str) -> BTreeMap<i32, i64> {
        let consumer: BaseConsumer = self.client().set("group.id", group).create().expect("a consumer");
        let mut asked = TopicPartitionList::new();
        for partition in self.offsets_seen_by(&consumer, topic).into_keys() {
            asked.add_partition(topic, partition);
        }
        let committed = consumer.committed_offsets(asked, LIMIT).expect("committed offsets");
        let elements = committed.elements();
        elements
            .iter()
            .filter_map(|element| Some((element.partition(), element.offset().to_raw()?)))
            .filter(|(_, offset)| *offset >= 0)
            .collect()
    }

    fn offsets_seen_by(&self, consumer: &BaseConsumer, topic: &str) -> BTreeMap<i32, (i64, i64)> {
        let metadata = consumer.fetch_metadata(Some(topic), LIMIT).expect("metadata");
        let described = metadata.topics().first().expect("the topic asked for");
        assert_eq!(described.error(), None, "topic {topic}");
        let marks = |partition| consumer.fetch_watermarks(topic, partition, LIMIT).expect("watermarks");
        described.partitions().iter().map(|partition| (partition.id(), marks(partition.id()))).collect()
    }

    fn wait_for_leaders(&self, topic: &str, partitions: i32) {
        let consumer = self.reader("leaders");
        super::poll_until("the leaders of a new topic", LIMIT, || {
            let metadata = consumer.fetch_metadata(Some(topic), LIMIT).ok()?;
            let led =
                metadata.topics().first()?.partitions().iter().filter(|partition| partition.leader() >= 0).count();
            (i32::try_from(led) == Ok(partitions)).then_some(())
        });
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.client().create().expect("an admin client")
    }

    // --- records ---

    /// Sends records in their order and waits until all are acknowledged.
    pub(crate) fn produce(&self, topic: &str, records: impl IntoIterator<Item = Record>) {
        self.produce_with(topic, &[], records);
    }

    /// The same with settings of the producer, such as `compression.codec`.
    pub(crate) fn produce_with(
        &self,
        topic: &str,
        settings: &[(&str, &str)],
        records: impl IntoIterator<Item = Record>,
    ) {
        let mut config = self.client();
        config.set("enable.idempotence", "true").set("linger.ms", "5").set("partitioner", "murmur2_random");
        for (setting, value) in settings {
            config.set(*setting, *value);
        }
        let producer: BaseProducer<AllDelivered> = config.create_with_context(AllDelivered).expect("a producer");
        for record in records {
            send(&producer, topic, &record);
        }
        producer.flush(LIMIT).expect("every record is delivered");
    }

    /// Sends records in one transaction and aborts it: they lie on the topic, and who reads committed records must not see them.
    pub(crate) fn produce_aborted(&self, topic: &str, records: impl IntoIterator<Item = Record>) {
        let mut config = self.client();
        config.set("transactional.id", Self::name("aborted"));
        let producer: BaseProducer<AllDelivered> = config.create_with_context(AllDelivered).expect("a producer");
        producer.init_transactions(LIMIT).expect("transactions");
        producer.begin_transaction().expect("a transaction begins");
        for record in records {
            send(&producer, topic, &record);
        }
        producer.flush(LIMIT).expect("every record is delivered");
        producer.abort_transaction(LIMIT).expect("a transaction is aborted");
    }

    /// Reads a topic from its beginning to the end that it has now; by partition, then offset.
    pub(crate) fn read_all(&self, topic: &str) -> Vec<Record> {
        let consumer = self.reader("read-all");
        let offsets = self.offsets_seen_by(&consumer, topic);
        let mut assignment = TopicPartitionList::new();
        let mut unfinished: BTreeMap<i32, i64> = BTreeMap::new();
        for (partition, (first, next)) in offsets.into_iter().filter(|(_, (first, next))| first < next) {
            assignment.add_partition_offset(topic, partition, Offset::Offset(first)).expect("an offset");
            unfinished.insert(partition, next);
        }
        consumer.assign(&assignment).expect("an assignment");
        let deadline = now() + LIMIT;
        let mut records = Vec::new();
        while !unfinished.is_empty() {
            assert!(
                now() < deadline,
                "read {} records of {topic} in {LIMIT:?} and not the end of {unfinished:?}",
                records.len()
            );
            match consumer.poll(Duration::from_millis(100)) {
                Some(Ok(message)) => records.push(received(&message)),
                // The last offsets may hold no record that can be read: compaction and transactions leave such gaps.
                Some(Err(KafkaError::PartitionEOF(partition))) => drop(unfinished.remove(&partition)),
                Some(Err(error)) => panic!("reading {topic}: {error}"),
                None => {}
            }
        }
        records.sort_by_key(|record| (record.partition, record.offset));
        records
    }

    /// The same, read by kcat: a second opinion on what lies on a topic.
    pub(crate) fn kcat_all(&self, topic: &str) -> Vec<Record> {
        kcat::read_all(&self.bootstrap, topic)
    }

    fn reader(&self, purpose: &str) -> BaseConsumer {
        let mut config = self.client();
        config
            .set("group.id", Self::name(purpose))
            .set("enable.auto.commit", "false")
            .set("auto.offset.reset", "error");
        config.set("enable.partition.eof", "true").set("check.crcs", "true").create().expect("a consumer")
    }
}

fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(LIMIT)).operation_timeout(Some(LIMIT))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

/// Fails the test at the first record that the broker did not take.
struct AllDelivered;

impl ClientContext for AllDelivered {}

impl ProducerContext for AllDelivered {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            panic!("a record was not delivered: {error}");
        }
    }
}

fn send(producer: &BaseProducer<AllDelivered>, topic: &str, record: &Record) {
    let mut headers = OwnedHeaders::new_with_capacity(record.headers.len());
    for (key, value) in &record.headers {
        headers = headers.insert(Header { key, value: value.as_ref() });
    }
    let mut message: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic).headers(headers);
    message.partition = record.partition;
    message.timestamp = record.time_ms;
    message.key = record.key.as_deref();
    message.payload = record.value.as_deref();
    let deadline = now() + LIMIT;
    while let Err((error, refused)) = producer.send(message) {
        assert_eq!(error.rdkafka_error_code(), Some(RDKafkaErrorCode::QueueFull), "sending to {topic}");
        assert!(now() < deadline, "the producer's queue was full for {LIMIT:?}");
        producer.poll(Duration::from_millis(10));
        message = refused;
    }
    producer.poll(Duration::ZERO);
}

fn received(message: &BorrowedMessage<'_>) -> Record {
    let headers = message.headers().map(|headers| {
        headers.iter().map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec))).collect()
    });
    Record {
        partition: Some(message.partition()),
        offset: Some(message.offset()),
        time_ms: message.timestamp().to_millis(),
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        headers: headers.unwrap_or_default(),
    }
}
