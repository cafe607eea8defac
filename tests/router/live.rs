//! A running router over librdkafka's mock cluster: joining, acknowledging, restarting, leaving.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;

use keyheat::protocol::{
    AckTable, Heartbeat, LogRecord, Nonce, PlanTable, PlanTopicKey, RecordHeaders, RecordKind, RouterAck, SCHEMA,
    Version,
};
use keyheat::router::{Departure, Refused, Router, RouterSettings, SnapshotError, Stage, TopicFollower, Write};
use keyheat::units::{EventTime, Offset, Span};
use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};

use super::records::{KEYSPACE, Walk, version};

const LIMIT: Span = Span::from_secs(30);

/// A mock cluster with the two topics, a leader, and a clock that stands still unless told.
struct Rig {
    cluster: MockCluster<'static, DefaultProducerContext>,
    client: ClientConfig,
    producer: BaseProducer,
    plan: PlanTable,
    clock: Arc<AtomicI64>,
    seq: u64,
}

const START_MS: i64 = 1_796_033_492_120;

impl Rig {
    fn without_topics() -> Self {
        let cluster = MockCluster::new(1).unwrap();
        let mut client = ClientConfig::new();
        client.set("bootstrap.servers", cluster.bootstrap_servers());
        let producer = client.create().unwrap();
        Self { cluster, client, producer, plan: PlanTable::new(), clock: Arc::new(AtomicI64::new(START_MS)), seq: 0 }
    }

    fn new() -> Self {
        let mut rig = Self::without_topics();
        rig.create_topics();
        rig
    }

    fn create_topics(&mut self) {
        for topic in [keyheat::router::PLAN_TOPIC, keyheat::router::ACKS_TOPIC] {
            // The mock cluster makes a topic by itself when a producer asks for it, as a broker does that is told to.
            let made = self.cluster.create_topic(topic, 1, 1);
            let there = made.as_ref().is_err_and(|error| error.to_string().contains("already exists"));
            assert!(made.is_ok() || there, "{topic}: {made:?}");
        }
        self.send(&PlanTopicKey::Claim { epoch: 1, nonce: Nonce(1) }, RecordKind::Claim, Some(b"{}".to_vec()));
    }

    fn settings(&self, id: &str) -> RouterSettings {
        let clock = Arc::clone(&self.clock);
        RouterSettings::new(self.client.clone(), id, move || EventTime::from_millis(clock.load(SeqCst)).unwrap())
    }

    fn advance(&self, span: Span) {
        self.clock.fetch_add(i64::try_from(span.as_millis()).unwrap(), SeqCst);
    }

    fn send(&mut self, key: &PlanTopicKey, kind: RecordKind, value: Option<Vec<u8>>) -> Version {
        if !matches!(key, PlanTopicKey::Claim { .. }) {
            self.seq += 1;
        }
        let version = version(self.seq);
        let time = EventTime::from_millis(self.clock.load(SeqCst)).unwrap().to_rfc3339();
        let headers = RecordHeaders {
            version,
            nonce: Nonce(1),
            kind,
            source: "/test".to_owned(),
            time,
            subject: key.to_bytes(),
            has_value: value.is_some(),
        };
        let mut list = OwnedHeaders::new();
        for (name, bytes) in headers.to_pairs() {
            list = list.insert(Header { key: name, value: Some(&bytes) });
        }
        let bytes = key.to_bytes();
        let mut record = BaseRecord::to(keyheat::router::PLAN_TOPIC).partition(0).key(&bytes).headers(list);
        if let Some(value) = &value {
            record = record.payload(value);
        }
        self.producer.send(record).map_err(|(error, _)| error).unwrap();
        self.producer.flush(Duration::from_secs(10)).unwrap();
        self.plan.apply(&LogRecord::new(Offset(0), key.to_bytes(), value, &headers));
        version
    }

    fn plan(&mut self, walk: &Walk, state: &str) -> Version {
        let value = walk.record(state).encode();
        self.send(&PlanTopicKey::Plan(walk.plan_key()), RecordKind::Plan, Some(value))
    }

    fn heartbeat(&mut self) -> Version {
        let digest = self.plan.digest();
        self.heartbeat_with(digest)
    }

    fn heartbeat_with(&mut self, digest: keyheat::protocol::Digest) -> Version {
        let time = EventTime::from_millis(self.clock.load(SeqCst)).unwrap().to_rfc3339();
        let plans = self.plan.plans().len() as u64;
        let heartbeat =
            Heartbeat { schema: SCHEMA, newest: self.plan.last_version(), time, plans, digest, acks_seen: None };
        self.send(&PlanTopicKey::Heartbeat, RecordKind::Heartbeat, Some(heartbeat.encode()))
    }

    fn acks(&self) -> Acks {
        let follower = TopicFollower::start(&self.client, keyheat::router::ACKS_TOPIC).unwrap();
        Acks { follower, table: AckTable::new(), seen: Vec::new() }
    }
}

/// The acks topic as a leader reads it.
struct Acks {
    follower: TopicFollower,
    table: AckTable,
    seen: Vec<LogRecord>,
}

impl Acks {
    fn read(&mut self) {
        while let Some(Ok(record)) = self.follower.poll(Duration::from_millis(20)) {
            self.table.apply(&record);
            self.seen.push(record);
        }
    }

    fn wait_for(&mut self, what: &str, mut condition: impl FnMut(&AckTable) -> bool) {
        eventually(what, || {
            self.read();
            condition(&self.table)
        });
    }

    fn newest(&self) -> Vec<&RouterAck> {
        self.table.routers().map(|router| &router.ack).collect()
    }
}

/// Asks again and again, for half a minute at the most.
fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("waited in vain until {what}");
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("keyheat-router-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn layout_written(router: &Router, key: &[u8]) -> Option<u32> {
    router.table().write(KEYSPACE, key, b"id").unwrap().placed().map(|placement| placement.place().layout)
}

#[test]
fn a_migration_from_joining_to_leaving() {
    let mut rig = Rig::new();
    let walk = Walk::split(b"c42", 8, "update");
    rig.plan(&walk, "prepare");
    rig.heartbeat();
    let router = Router::start(rig.settings("r1")).unwrap();
    assert!(router.wait_ready(LIMIT), "{:?}", router.status());
    assert_eq!(layout_written(&router, b"c42"), Some(0));
    let mut acks = rig.acks();
    let last = rig.plan.last_version();
    acks.wait_for("prepare is acknowledged", |acks| {
        acks.routers().len() == 1 && acks.acknowledged(&walk.plan_key(), last)
    });
    let first = RouterAck::decode("r1", acks.newest()[0].nonce, acks.seen[0].value.as_deref().unwrap()).unwrap();
    assert_eq!(first.applied, Version::default(), "the first record joins and acknowledges nothing");
    for state in ["hold", "dual", "moving", "settled"] {
        let version = rig.plan(&walk, state);
        acks.wait_for(state, |acks| acks.acknowledged(&walk.plan_key(), version));
        assert_eq!(acks.table.contradiction(&rig.plan), None);
        let wanted = if state == "hold" { None } else { Some(1) };
        assert_eq!(layout_written(&router, b"c42"), wanted, "{state}");
    }
    assert!(router.status().digest_agrees);
    assert_eq!(router.shutdown(LIMIT), Departure::Left);
    acks.wait_for("the router is gone", |acks| acks.routers().len() == 0);
}

#[test]
fn a_request_in_flight_holds_up_the_acknowledgement_of_its_key() {
    let mut rig = Rig::new();
    let (walk, other) = (Walk::split(b"c42", 8, "insert"), Walk::split(b"c43", 8, "insert"));
    rig.plan(&walk, "prepare");
    rig.plan(&other, "prepare");
    let router = Router::start(rig.settings("r1")).unwrap();
    assert!(router.wait_ready(LIMIT));
    let table = Arc::clone(router.table());
    let in_flight = table.write(KEYSPACE, b"c42", b"id").unwrap().placed().unwrap();
    let dual = rig.plan(&walk, "dual");
    let other_dual = rig.plan(&other, "dual");
    let mut acks = rig.acks();
    acks.wait_for("the other key is acknowledged", |acks| {
        acks.routers().len() == 1 && acks.acknowledged(&other.plan_key(), other_dual)
    });
    assert!(!acks.table.acknowledged(&walk.plan_key(), dual));
    assert_eq!(acks.newest()[0].waiting[0].version, dual);
    // Its outcome stays unknown: the router says until when it may land, and acknowledges then.
    let until = EventTime::from_millis(START_MS + 30_000).unwrap();
    in_flight.outcome_unknown(until);
    rig.advance(Span::from_secs(29));
    let said = |acks: &AckTable| acks.routers().next().and_then(|router| router.ack.unknown_until.clone());
    acks.wait_for("the router says so", |acks| said(acks) == Some(until.to_rfc3339()));
    assert!(!acks.table.acknowledged(&walk.plan_key(), dual));
    rig.advance(Span::from_secs(1));
    acks.wait_for("the key is acknowledged", |acks| acks.acknowledged(&walk.plan_key(), dual));
    assert_eq!(said(&acks.table), None);
}

#[test]
fn a_write_in_hold_waits_and_goes_to_the_new_layout() {
    let mut rig = Rig::new();
    let walk = Walk::split(b"c42", 8, "update");
    rig.plan(&walk, "hold");
    let router = Router::start(rig.settings("r1")).unwrap();
    assert!(router.wait_ready(LIMIT));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| match router.table().write(KEYSPACE, b"c42", b"id").unwrap() {
            Write::Held(held) => held.wait(LIMIT),
            Write::Placed(placement) => panic!("not held: {placement:?}"),
        });
        eventually("a write waits", || router.table().held() == 1);
        rig.plan(&walk, "dual");
        assert!(writer.join().unwrap());
    });
    assert_eq!(layout_written(&router, b"c42"), Some(1));
    rig.plan(&walk, "hold");
    eventually("hold is applied", || layout_written(&router, b"c42").is_none());
    let Write::Held(held) = router.table().write(KEYSPACE, b"c42", b"id").unwrap() else { panic!("not held") };
    assert!(!held.wait(Span::from_millis(10)), "the limit of the wait");
}

#[test]
fn nothing_is_placed_before_the_topics_exist() {
    let mut rig = Rig::without_topics();
    let router = Router::start(rig.settings("r1")).unwrap();
    eventually("it has met that there is no topic", || router.status().last_error.is_some());
    assert!(!router.is_ready());
    assert_eq!(router.table().write(KEYSPACE, b"c42", b"id").unwrap_err(), Refused::NotReady);
    assert_eq!(router.table().scan(KEYSPACE, b"c42").unwrap_err(), Refused::NotReady);
    rig.create_topics();
    assert!(router.wait_ready(LIMIT), "{:?}", router.status());
    assert_eq!(layout_written(&router, b"c42"), Some(0));
}

#[test]
fn a_wrong_digest_keeps_a_joining_router_from_placing() {
    let mut rig = Rig::new();
    let walk = Walk::split(b"c42", 8, "insert");
    rig.plan(&walk, "dual");
    rig.heartbeat_with(keyheat::protocol::Digest(12345));
    let router = Router::start(rig.settings("r1")).unwrap();
    eventually("it waits for a heartbeat that agrees", || router.status().stage == Stage::Vouching);
    assert!(!router.is_ready() && !router.status().digest_agrees);
    assert_eq!(router.table().write(KEYSPACE, b"c42", b"id").unwrap_err(), Refused::NotReady);
    rig.heartbeat();
    assert!(router.wait_ready(LIMIT), "{:?}", router.status());
    assert_eq!(layout_written(&router, b"c42"), Some(1));
}

#[test]
fn a_restart_from_the_snapshot_needs_no_kafka() {
    let mut rig = Rig::new();
    let folder = folder("restart");
    let path = folder.join("r1.snapshot");
    let walk = Walk { key: b"\xff/c42".to_vec(), ..Walk::split(b"", 8, "insert") };
    rig.plan(&walk, "prepare");
    rig.plan(&walk, "dual");
    rig.heartbeat();
    let settings = RouterSettings { snapshot: Some(path.clone()), ..rig.settings("r1") };
    let router = Router::start(settings.clone()).unwrap();
    assert!(router.wait_ready(LIMIT));
    assert!(matches!(
        Router::start(settings.clone()),
        Err(keyheat::router::RouterError::Snapshot(SnapshotError::InUse(_)))
    ));
    let mut acks = rig.acks();
    let dual = version(2);
    acks.wait_for("dual is acknowledged", |acks| {
        acks.routers().len() == 1 && acks.acknowledged(&walk.plan_key(), dual)
    });
    assert!(matches!(router.pause(), Departure::Registered(_)));

    // Nobody listens there.
    let mut nowhere = ClientConfig::new();
    nowhere.set("bootstrap.servers", "127.0.0.1:1");
    let router = Router::start(RouterSettings { client: nowhere, ..settings.clone() }).unwrap();
    assert!(router.is_ready());
    assert_eq!(layout_written(&router, &walk.key), Some(1));
    assert_eq!(
        router.status().staleness,
        Some(Span::ZERO),
        "the heartbeat is in the snapshot, and the clock stands still"
    );
    drop(router);

    let (router, moving) = (Router::start(settings).unwrap(), rig.plan(&walk, "moving"));
    assert!(router.is_ready());
    eventually("moving is applied", || router.status().applied == moving);
    acks.read();
    assert!(!acks.table.acknowledged(&walk.plan_key(), moving), "calls of the former life may be in flight");
    rig.advance(Span::from_secs(30));
    acks.wait_for("moving is acknowledged", |acks| acks.acknowledged(&walk.plan_key(), moving));
    assert_eq!(acks.table.routers().len(), 1, "it is the same member");
    assert_eq!(router.shutdown(LIMIT), Departure::Left);
    acks.wait_for("it is gone", |acks| acks.routers().len() == 0);

    let router = Router::start(RouterSettings { snapshot: Some(path), ..rig.settings("r1") }).unwrap();
    assert!(router.wait_ready(LIMIT), "one that left joins again");
    acks.wait_for("it is back", |acks| acks.routers().len() == 1);
    drop(router);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_the_router_missed_while_away_is_read_before_it_is_acknowledged() {
    let mut rig = Rig::new();
    let folder = folder("away");
    let (walk, gone) = (Walk::split(b"c42", 8, "update"), Walk::split(b"c43", 8, "update"));
    let settings = RouterSettings { snapshot: Some(folder.join("r1.snapshot")), ..rig.settings("r1") };
    rig.plan(&walk, "prepare");
    rig.plan(&gone, "settled");
    let router = Router::start(settings.clone()).unwrap();
    assert!(router.wait_ready(LIMIT));
    eventually("both are applied", || router.status().plans == 2);
    router.pause();
    let back = rig.plan(&walk, "hold");
    rig.send(&PlanTopicKey::Plan(gone.plan_key()), RecordKind::PlanRemoved, None);
    rig.heartbeat();
    let router = Router::start(settings).unwrap();
    eventually("hold is applied", || layout_written(&router, b"c42").is_none());
    rig.advance(Span::from_secs(31));
    let mut acks = rig.acks();
    acks.wait_for("hold is acknowledged", |acks| {
        acks.routers().len() == 1 && acks.acknowledged(&walk.plan_key(), back)
    });
    assert_eq!(acks.table.contradiction(&rig.plan), None);
    assert_eq!(router.status().contradiction, None);
    drop(router);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_topic_that_lost_records_changes_nothing_and_is_not_acknowledged() {
    let folder = folder("lost");
    let path = folder.join("r1.snapshot");
    let walk = Walk::split(b"c42", 8, "insert");
    let mut rig = Rig::new();
    for state in ["prepare", "dual", "moving"] {
        rig.plan(&walk, state);
    }
    let router = Router::start(RouterSettings { snapshot: Some(path.clone()), ..rig.settings("r1") }).unwrap();
    assert!(router.wait_ready(LIMIT));
    router.pause();

    let mut other = Rig::new();
    other.plan(&walk, "prepare");
    other.heartbeat();
    let router = Router::start(RouterSettings { snapshot: Some(path), ..other.settings("r1") }).unwrap();
    assert!(router.is_ready());
    eventually("it finds that records are lost", || router.status().contradiction.is_some());
    assert_eq!(layout_written(&router, b"c42"), Some(1), "no key goes back to an older record");
    other.advance(Span::from_secs(60));
    // An acknowledgement would be made with the look that comes after a record, and sent by the second one's.
    for _ in 0..2 {
        let read = router.status().records_read;
        other.heartbeat();
        eventually("a heartbeat is read", || router.status().records_read > read);
    }
    let mut acks = other.acks();
    acks.read();
    assert!(acks.seen.is_empty());
    drop(router);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_broker_may_go_and_come_back() {
    let mut rig = Rig::new();
    let walk = Walk::split(b"c42", 8, "insert");
    rig.plan(&walk, "prepare");
    let router = Router::start(rig.settings("r1")).unwrap();
    assert!(router.wait_ready(LIMIT));
    rig.cluster.broker_down(1).unwrap();
    // The acknowledgement is due while nobody takes it.
    rig.advance(Span::from_secs(4));
    assert_eq!(layout_written(&router, b"c42"), Some(0));
    eventually("a send failed", || router.status().acks_failed > 0);
    rig.cluster.broker_up(1).unwrap();
    let dual = rig.plan(&walk, "dual");
    let mut acks = rig.acks();
    acks.wait_for("dual is acknowledged", |acks| {
        acks.routers().len() == 1 && acks.acknowledged(&walk.plan_key(), dual)
    });
    assert_eq!(router.shutdown(LIMIT), Departure::Left);
}

#[test]
fn two_routers_with_one_id_are_two_members() {
    let mut rig = Rig::new();
    let walk = Walk::split(b"c42", 8, "insert");
    rig.plan(&walk, "prepare");
    let routers = [Router::start(rig.settings("r1")).unwrap(), Router::start(rig.settings("r1")).unwrap()];
    for router in &routers {
        assert!(router.wait_ready(LIMIT));
    }
    let in_flight = routers[0].table().write(KEYSPACE, b"c42", b"id").unwrap().placed().unwrap();
    let dual = rig.plan(&walk, "dual");
    let mut acks = rig.acks();
    acks.wait_for("one of the two has acknowledged", |acks| {
        acks.routers().filter(|router| router.ack.acknowledges(&walk.plan_key(), dual)).count() == 1
    });
    assert_eq!(acks.table.routers().len(), 2);
    assert!(!acks.table.acknowledged(&walk.plan_key(), dual));
    drop(in_flight);
    acks.wait_for("both have acknowledged", |acks| acks.acknowledged(&walk.plan_key(), dual));
}

#[test]
fn one_with_requests_in_flight_stays_registered() {
    let rig = Rig::new();
    let router = Router::start(rig.settings("r1")).unwrap();
    assert!(router.wait_ready(LIMIT));
    let table = Arc::clone(router.table());
    let in_flight = table.write(KEYSPACE, b"c42", b"id").unwrap().placed().unwrap();
    let clock = Arc::clone(&rig.clock);
    std::thread::scope(|scope| {
        let leaving = scope.spawn(move || router.shutdown(Span::from_secs(10)));
        eventually("the table is closed", || !table.is_open());
        assert_eq!(table.write(KEYSPACE, b"c42", b"id").unwrap_err(), Refused::Closed);
        clock.fetch_add(10_000, SeqCst);
        assert!(matches!(leaving.join().unwrap(), Departure::Registered(_)));
    });
    drop(in_flight);
    let mut acks = rig.acks();
    acks.wait_for("it is still there", |acks| acks.routers().len() == 1);
}

#[test]
fn a_superseded_publisher_changes_no_table() {
    let mut rig = Rig::new();
    let walk = Walk::split(b"c42", 8, "insert");
    rig.plan(&walk, "prepare");
    let router = Router::start(rig.settings("r1")).unwrap();
    assert!(router.wait_ready(LIMIT));
    eventually("the topic is read", || router.status().records_read == 2);
    // I3: another claims epoch 2; what epoch 1 sends from then on counts for nothing.
    let key = PlanTopicKey::Claim { epoch: 2, nonce: Nonce(2) }.to_bytes();
    let claim = BaseRecord::to(keyheat::router::PLAN_TOPIC).partition(0).key(&key).payload("{}");
    rig.producer.send(claim).map_err(|(error, _)| error).unwrap();
    rig.producer.flush(Duration::from_secs(10)).unwrap();
    rig.plan(&walk, "dual");
    eventually("both records are read", || router.status().records_read == 4);
    assert_eq!(layout_written(&router, b"c42"), Some(0));
}
