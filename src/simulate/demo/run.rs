//! The demo itself: a mock cluster, the real service, routers, clients and owner, started, watched and ended.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rdkafka::error::KafkaError;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;

use super::clients::{ClientsThread, Seen, Timeline};
use super::owner::{OwnerThread, Told};
use super::settings::{DemoSettings, INPUT_PARTITIONS, INPUT_TOPIC, InvalidNumber, ROUTERS};
use super::story::{Reads, Story, Tone};
use super::summary::Summary;
use super::view::{DemoView, KeyView, RequestsView, RouterStand, ShardLoadView};
use crate::config::{ControlSettings, Faults};
use crate::engine::Change;
use crate::plan::Mapper;
use crate::router::{Router, RouterError, RouterSettings, TopicFollower};
use crate::service::{Service, ServiceEnd, StartError, Stop};
use crate::simulate::{EventProducer, Shards};
use crate::source::ClientError;
use crate::telemetry::{MAX_LABEL_CHARS, View, escape};
use crate::units::Span;

/// The longest wait for routers to join.
const JOIN_LIMIT: Span = Span::from_secs(20);
/// The longest wait for a router to leave.
const LEAVE_LIMIT: Span = Span::from_secs(2);
/// How often a router acknowledges at the least.
const ACK_INTERVAL: Span = Span::from_secs(1);
/// What is left out, since it cannot be done here.
const STARTED: &str = "topic settings are not checked: a mock cluster cannot describe topics";
/// The most keys that are shown.
const MOST_KEYS: usize = 3;

/// Why the demo cannot be.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The mock cluster or one of its clients.
    #[error("the mock cluster or one of its clients failed")]
    Kafka(#[from] KafkaError),
    /// A client of the service.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The service.
    #[error(transparent)]
    Service(#[from] StartError),
    /// A router.
    #[error(transparent)]
    Router(#[from] RouterError),
    /// The configuration that the demo writes for itself.
    #[error("the demo's own configuration has faults")]
    Configuration(#[from] Faults),
    /// A number of the demo's own.
    #[error(transparent)]
    Number(#[from] InvalidNumber),
    /// The operating system.
    #[error("no thread for the demo")]
    Thread(#[source] std::io::Error),
    /// Routers did not join.
    #[error("routers did not join within {JOIN_LIMIT}; the machine may be too busy")]
    NotJoined,
    /// A part ended early.
    #[error("{0}")]
    Ended(String),
}

/// How a demo ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// What it came to.
    pub summary: Summary,
    /// Why the loop is not closed, when it is not.
    pub missing: Option<&'static str>,
}

/// A demo that runs.
pub struct Demo {
    settings: DemoSettings,
    timeline: Timeline,
    story: Story,
    shards: Arc<Shards>,
    seen: Arc<Mutex<Seen>>,
    stands: Arc<Mutex<Vec<RouterStand>>>,
    told: Receiver<(Span, Told)>,
    scale_per_s: f64,
    found: Vec<Vec<u8>>,
    wrong_told: usize,
    stop_clients: Stop,
    stop_owner: Stop,
    clients: JoinHandle<()>,
    owner: JoinHandle<()>,
    routers: Vec<Router>,
    service: Service,
    // Last: everything else talks to it.
    _cluster: MockCluster<'static, DefaultProducerContext>,
}

impl Demo {
    /// Starts everything; requests flow when every router has joined. Waits for those.
    ///
    /// # Errors
    /// [`DemoError`]
    pub fn start(settings: DemoSettings) -> Result<Self, DemoError> {
        let timeline = Timeline::begin();
        let cluster = MockCluster::new(1)?;
        let ControlSettings { plan_topic, acks_topic, .. } = ControlSettings::default();
        for (topic, partitions) in [(INPUT_TOPIC, INPUT_PARTITIONS), (&plan_topic, 1), (&acks_topic, 1)] {
            cluster.create_topic(topic, partitions, 1)?;
        }
        let used = settings.service(&cluster.bootstrap_servers())?;
        let service = Service::start(&used, settings.http)?;
        let client = used.kafka.client_config()?;
        let routers = (1..=ROUTERS)
            .map(|number| {
                let mut router =
                    RouterSettings::new(client.clone(), &format!("router-{number}"), move || timeline.now());
                router.call_limit = used.protocol.call_limit;
                router.ack_interval = ACK_INTERVAL;
                Router::start(router)
            })
            .collect::<Result<Vec<_>, _>>()?;

        // The demo's configuration declares a mapper; without one there would be one shard.
        let mapper = used.plans.first().and_then(|plan| plan.mapper.clone());
        let shards = Arc::new(Shards::new(mapper.unwrap_or_else(|| Mapper::single("s0".to_owned()))));
        let (stop_owner, stop_clients) = (Stop::default(), Stop::default());
        let (seen, stands) = (Arc::default(), Arc::default());
        let (tell, told) = channel();
        let consumer = used.kafka.consumer_config()?;
        let owner = OwnerThread {
            timeline,
            plan_topic: TopicFollower::start(&consumer, &plan_topic)?,
            acks_topic: TopicFollower::start(&consumer, &acks_topic)?,
            producer: EventProducer::new(&client, &acks_topic)?,
            shards: Arc::clone(&shards),
            stop: stop_owner.clone(),
            told: tell,
            routers: Arc::clone(&stands),
        };
        let owner = spawn("demo-owner", stop_owner.clone(), move || owner.run())?;
        if !routers.iter().all(|router| router.wait_ready(JOIN_LIMIT)) {
            return Err(DemoError::NotJoined);
        }
        let clients = ClientsThread {
            settings: settings.clone(),
            load: settings.load(timeline.now())?,
            timeline,
            tables: routers.iter().map(|router| Arc::clone(router.table())).collect(),
            shards: Arc::clone(&shards),
            producer: EventProducer::new(&client, INPUT_TOPIC)?,
            stop: stop_clients.clone(),
            seen: Arc::clone(&seen),
        };
        let clients = spawn("demo-clients", stop_clients.clone(), move || clients.run())?;
        let mut story = Story::new(settings.story()?);
        story.note(timeline.elapsed(), Tone::Step, STARTED);
        Ok(Self {
            story,
            settings,
            timeline,
            shards,
            seen,
            stands,
            told,
            scale_per_s: 0.0,
            found: Vec::new(),
            wrong_told: 0,
            stop_clients,
            stop_owner,
            clients,
            owner,
            routers,
            service,
            _cluster: cluster,
        })
    }

    /// True when the time is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.timeline.elapsed() >= self.settings.length
    }

    /// Looks at everything: the story goes on, and the view of this moment is returned. To be called often.
    ///
    /// # Errors
    /// [`DemoError::Ended`] when a part has ended by itself.
    pub fn look(&mut self) -> Result<DemoView, DemoError> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(failure) = &seen.failure {
            return Err(DemoError::Ended(failure.clone()));
        }
        for (ended, what) in [
            (self.clients.is_finished(), "the clients' thread"),
            (self.owner.is_finished(), "the owner's thread"),
            (self.service.stop_flag().is_set(), "the service"),
        ] {
            if ended {
                return Err(DemoError::Ended(format!("{what} has ended by itself")));
            }
        }
        let now = self.timeline.elapsed();
        let service = self.service.view();
        self.tell(now, &seen, &service);
        Ok(self.view(now, &seen, &service))
    }

    fn tell(&mut self, now: Span, seen: &Seen, service: &View) {
        while let Ok((at, told)) = self.told.try_recv() {
            match told {
                Told::Planned(version, record) => self.story.planned(at, version, &record),
                Told::Acknowledged(version, routers) => self.story.acknowledged(at, version, routers),
                Told::Moved(report) => self.story.moved(at, &report),
                Told::Trouble(what) => self.story.note(at, Tone::Bad, what),
            }
        }
        if let Some(at) = seen.hot_at {
            self.story.turned_hot(at);
        }
        for key in service.keyspaces.first().map_or(&[][..], |keyspace| &keyspace.keys) {
            if key.state == Change::Hot && !self.found.iter().any(|found| **found == *key.key) {
                self.found.push(key.key.to_vec());
                self.story.detected(now, &key.key, key.count, key.window, key.threshold);
            }
        }
        let mapper = service.keyspaces.first().and_then(|keyspace| keyspace.mapper.as_ref());
        self.story.served_elsewhere(now, mapper.map_or(0, |mapper| mapper.elsewhere));
        if let Some(imbalance) = seen.imbalance {
            self.story.measured(now, imbalance);
        }
        for wrong in seen.wrong.iter().skip(self.wrong_told) {
            self.story.note(now, Tone::Bad, wrong.as_str());
        }
        self.wrong_told = seen.wrong.len();
        self.story.read(now, Reads { checked: seen.tally.checked, missed: seen.tally.wrong() });
    }

    fn view(&mut self, now: Span, seen: &Seen, service: &View) -> DemoView {
        let loads = self.shards.names().iter().zip(0..).map(|(name, number): (_, usize)| ShardLoadView {
            name: name.clone(),
            calls_per_s: seen.calls_per_s.get(number).copied().unwrap_or(0.0),
        });
        let shards: Vec<ShardLoadView> = loads.collect();
        self.scale_per_s = shards.iter().map(|shard| shard.calls_per_s).fold(self.scale_per_s, f64::max);
        let keys = service.keyspaces.first().map_or(&[][..], |keyspace| &keyspace.keys);
        DemoView {
            elapsed: now,
            length: self.settings.length,
            shards,
            scale_per_s: self.scale_per_s,
            capacity_per_s: self.settings.traffic().capacity_per_s,
            imbalance: seen.imbalance,
            before_and_after: self.story.imbalance(),
            keys: keys.iter().take(MOST_KEYS).map(key_view).collect(),
            waiting_for: match service.condition {
                _ if seen.begun.is_none() => Some("starting"),
                condition if condition.warming_up => Some("warming up"),
                condition if condition.catching_up => Some("catching up"),
                condition if condition.incomplete => Some("all partitions"),
                _ => None,
            },
            migration: self.story.migration().cloned(),
            routers: self.stands(),
            reads: Reads { checked: seen.tally.checked, missed: seen.tally.wrong() },
            requests: RequestsView {
                sent: seen.tally.sent,
                refused: seen.tally.refused,
                waiting: seen.tally.waiting,
                longest_wait: seen.tally.longest_wait,
                failed: seen.tally.failed,
                events: seen.delivered.confirmed,
                events_lost: seen.delivered.lost,
            },
            lines: self.story.lines().to_vec(),
            lines_cut: self.story.lines_cut(),
            missing: self.story.missing(),
            http: self.service.http_addr(),
        }
    }

    /// Every router, those without a word on the acks topic too.
    fn stands(&self) -> Vec<RouterStand> {
        let said = self.stands.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let stand = |number| {
            let id = format!("router-{number}");
            let said = said.iter().find(|stand| stand.id == id).cloned();
            said.unwrap_or(RouterStand { id, applied: None, acknowledged: false })
        };
        (1..=self.routers.len()).map(stand).collect()
    }

    /// Ends everything in its order, and says what it came to.
    ///
    /// # Errors
    /// [`DemoError::Ended`] when a part did not end as it should.
    pub fn finish(mut self) -> Result<Finished, DemoError> {
        // The last moment counts before the load goes away.
        self.look()?;
        let length = self.timeline.elapsed();
        self.stop_clients.set();
        let ended = |joined: thread::Result<()>, what| {
            joined.map_err(|_| DemoError::Ended(format!("{what} has panicked; its message is above")))
        };
        ended(self.clients.join(), "the clients' thread")?;
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let now = self.timeline.elapsed();
        self.story.read(now, Reads { checked: seen.tally.checked, missed: seen.tally.wrong() });
        thread::scope(|scope| {
            for router in self.routers {
                // Who stays registered does no harm: the topics end with the process.
                scope.spawn(move || drop(router.shutdown(LEAVE_LIMIT)));
            }
        });
        self.stop_owner.set();
        ended(self.owner.join(), "the owner's thread")?;
        match self.service.stop() {
            // What was wanted at the very end need not reach a topic that ends as well.
            ServiceEnd::Clean | ServiceEnd::Unsent(_) => {}
            ServiceEnd::Stalled => return Err(DemoError::Ended("the service has stalled".to_owned())),
            ServiceEnd::Failed(what) => return Err(DemoError::Ended(what)),
        }
        let summary = self.story.summary(length, seen.delivered.confirmed);
        Ok(Finished { summary, missing: self.story.missing() })
    }
}

fn key_view(key: &crate::telemetry::HotKeyView) -> KeyView {
    KeyView {
        key: escape(&key.key, MAX_LABEL_CHARS),
        confirmed: key.state == Change::Hot,
        count: key.count,
        window: key.window,
        threshold: key.threshold,
        rate: key.rate,
    }
}

fn spawn(name: &str, stop: Stop, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, DemoError> {
    let body = move || {
        run();
        stop.set();
    };
    thread::Builder::new().name(name.to_owned()).spawn(body).map_err(DemoError::Thread)
}
