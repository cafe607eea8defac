//! Start and stop: settings become two loops and an HTTP side, and these one exit status.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;

use rdkafka::error::KafkaError;

use super::clerk::Clerk;
use super::clock::Clock;
use super::driver::{Driver, DriverEnd, DriverParts};
use super::exchange::{Exchange, NewRules};
use super::leader::{Leader, LeaderEnd, LeaderParts};
use super::stop::Stop;
use super::topic_check::watch_topics;
use crate::config::{KeyLabel, Settings, Start};
use crate::control::{LeaderGroup, Publisher};
use crate::engine::Engine;
use crate::input::Decoder;
use crate::observe::{
    Asked, Desk, HttpServer, HttpSettings, InvalidToken, Orders, Readiness, ServeError, Token, commands, questions,
};
use crate::plan::Planner;
use crate::protocol::{MAX_SOURCE_BYTES, Nonce};
use crate::router::TopicFollower;
use crate::source::{ClientError, KafkaSource, KafkaSourceSettings, StartAt};
use crate::telemetry::{Events, KeyDisplay, KeyspaceLabels, Telemetry, TelemetrySettings, View};
use crate::units::Span;

/// Of the grace time, what is kept for leaving groups and closing clients.
const CLOSING: Span = Span::from_secs(2);

/// Why the service could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A Kafka client refuses its settings.
    #[error("kafka client: {0}; check kafka.librdkafka")]
    Client(#[from] KafkaError),
    /// A Kafka client cannot be set up.
    #[error(transparent)]
    Setup(#[from] ClientError),
    /// The HTTP side cannot start.
    #[error(transparent)]
    Http(#[from] ServeError),
    /// The file with the token of who may give commands cannot be read.
    #[error("observe.token_file: cannot read {file}: {cause}; make it, e.g. with: openssl rand -hex 16 > {file}")]
    TokenFile {
        /// Its path.
        file: String,
        /// The system's reason.
        cause: std::io::Error,
    },
    /// It holds no token.
    #[error("observe.token_file: {file}: {cause}")]
    Token {
        /// Its path.
        file: String,
        /// What is wrong.
        cause: InvalidToken,
    },
    /// No thread.
    #[error("cannot start the thread '{name}': {cause}")]
    Thread {
        /// Which one.
        name: &'static str,
        /// The system's reason.
        cause: std::io::Error,
    },
}

/// How the service ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceEnd {
    /// It was stopped and nothing that was wanted is unsent.
    Clean,
    /// It was stopped, and these records were wanted and are not known to be on the topic.
    Unsent(Vec<String>),
    /// A partition did not move for too long though a broker answers: a restart is the cure (I10).
    Stalled,
    /// A part of it failed.
    Failed(String),
}

/// The running service.
#[derive(Debug)]
pub struct Service {
    clock: Clock,
    stop: Stop,
    driver: Receiver<DriverEnd>,
    leader: Receiver<LeaderEnd>,
    http: Option<HttpServer>,
    telemetry: Arc<Telemetry>,
    events: Arc<Events>,
    readiness: Arc<Readiness>,
    exchange: Arc<Exchange>,
    grace: Span,
}

impl Service {
    /// Starts all parts; `listen` is where HTTP is served, if at all. Nothing is waited for: missing topics and brokers show in
    /// [`Service::readiness`] and are used when they appear.
    ///
    /// # Errors
    /// [`StartError`] when a client, a port or a thread cannot be had.
    pub fn start(settings: &Settings, listen: Option<SocketAddr>) -> Result<Self, StartError> {
        let clock = Clock::system();
        let stop = Stop::default();
        let telemetry = Arc::new(Telemetry::new(telemetry_settings(settings)));
        let readiness = Arc::new(Readiness::new());
        let (give, orders) = commands();
        let (ask, asked) = questions();
        let http = match listen {
            Some(addr) => {
                let mut http = HttpSettings::new(addr);
                http.desk = token(settings)?.map(|token| Desk { token, commands: give });
                http.questions = Some(ask);
                http.allowed_hosts.clone_from(&settings.observe.allowed_hosts);
                Some(HttpServer::start(http, Arc::clone(&telemetry), Arc::clone(&readiness))?)
            }
            None => None,
        };
        let shared = Shared {
            clock,
            stop: stop.clone(),
            events: Arc::new(Events::new(Arc::clone(&telemetry))),
            readiness: Arc::clone(&readiness),
            exchange: Arc::new(Exchange::new(settings.engine.keyspaces.len(), hash_of(settings))),
        };
        let driver = Driver::new(driver_parts(settings, &shared)?);
        let leader = Leader::new(leader_parts(settings, &shared, orders, asked)?);
        let driver = spawn("driver", stop.clone(), move || driver.run())?;
        let leader = spawn("leader", stop.clone(), move || leader.run())?;
        let Shared { events, exchange, .. } = shared;
        let grace = settings.service.shutdown_grace;
        Ok(Self { clock, stop, driver, leader, http, telemetry, events, readiness, exchange, grace })
    }

    /// Counters and the last view.
    #[must_use]
    pub const fn telemetry(&self) -> &Arc<Telemetry> {
        &self.telemetry
    }

    /// What is hot, how the shards are, and where plans and routers stand.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        self.telemetry.view()
    }

    /// What the service waits for.
    #[must_use]
    pub const fn readiness(&self) -> &Arc<Readiness> {
        &self.readiness
    }

    /// Where HTTP is served.
    #[must_use]
    pub fn http_addr(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(HttpServer::addr)
    }

    /// The flag that ends it, for signal handlers.
    #[must_use]
    pub const fn stop_flag(&self) -> &Stop {
        &self.stop
    }

    /// What leaves a log line and a counter.
    #[must_use]
    pub const fn events(&self) -> &Arc<Events> {
        &self.events
    }

    /// Other rules: they are in force within moments, and the log says so. In `settings` nothing but rules may differ from those that
    /// are in force ([`crate::config::Loaded::has_other_rules`]): otherwise nothing changes, and the log says that.
    pub fn change_rules(&self, settings: &Settings) {
        let keyspaces = settings.engine.keyspaces.clone();
        self.exchange.put_rules(NewRules { keyspaces, config_hash: hash_of(settings) });
    }

    /// True while rules that were given are not in force yet.
    #[must_use]
    pub fn is_changing_rules(&self) -> bool {
        self.exchange.rules().is_some()
    }

    /// Waits until it is stopped or ends by itself, and then for its parts, no longer than the grace time.
    #[must_use]
    pub fn wait(self) -> ServiceEnd {
        self.wait_with(|_| {})
    }

    /// Waits as [`Service::wait`] and looks at something else many times a second.
    #[must_use]
    pub fn wait_with(self, mut look: impl FnMut(&Self)) -> ServiceEnd {
        let driver = loop {
            match self.driver.recv_timeout(Span::from_millis(100).to_duration()) {
                Ok(end) => break Some(end),
                Err(RecvTimeoutError::Timeout) if !self.stop.is_set() => look(&self),
                Err(RecvTimeoutError::Timeout) => break None,
                // The thread is gone without a word: it panicked, and the guard has set the flag.
                Err(RecvTimeoutError::Disconnected) => return self.failed("the driver's thread ended without a word"),
            }
        };
        self.stop.set();
        let deadline = self.clock.elapsed().saturating_add(self.grace);
        let Some(leader) = self.until(&self.leader, deadline) else {
            return self.failed("the leader's loop did not end in time");
        };
        // A client that cannot leave its group in time is left behind: the process ends, and the session with it.
        let driver = driver.or_else(|| self.until(&self.driver, deadline)).unwrap_or(DriverEnd::Stopped);
        match driver {
            DriverEnd::Stalled => ServiceEnd::Stalled,
            DriverEnd::Fatal => ServiceEnd::Failed("the kafka client of the input met a fatal error".to_owned()),
            DriverEnd::Stopped if leader.unsent.is_empty() => ServiceEnd::Clean,
            DriverEnd::Stopped => ServiceEnd::Unsent(leader.unsent),
        }
    }

    /// Asks it to stop and waits as [`Service::wait`].
    #[must_use]
    pub fn stop(self) -> ServiceEnd {
        self.stop.set();
        self.wait()
    }

    fn until<T>(&self, end: &Receiver<T>, deadline: Span) -> Option<T> {
        let left = deadline.as_millis().saturating_sub(self.clock.elapsed().as_millis());
        end.recv_timeout(Span::from_millis(left).to_duration()).ok()
    }

    fn failed(&self, what: &str) -> ServiceEnd {
        self.stop.set();
        ServiceEnd::Failed(what.to_owned())
    }
}

/// What both loops share.
struct Shared {
    clock: Clock,
    stop: Stop,
    events: Arc<Events>,
    readiness: Arc<Readiness>,
    exchange: Arc<Exchange>,
}

fn telemetry_settings(settings: &Settings) -> TelemetrySettings {
    let keyspaces = settings.engine.keyspaces.iter().map(|keyspace| KeyspaceLabels {
        name: keyspace.name.clone(),
        windows: keyspace.windows.iter().map(|window| window.length).collect(),
    });
    let mut telemetry = TelemetrySettings::new(keyspaces.collect());
    telemetry.config = settings.hash.to_string();
    telemetry.key_display = match settings.observe.key_label {
        KeyLabel::Plain => KeyDisplay::Plain,
        KeyLabel::Hash => KeyDisplay::Hash { secret: secret_of(settings) },
        KeyLabel::Off => KeyDisplay::Off,
    };
    telemetry
}

/// The token of who may give commands, from its file.
fn token(settings: &Settings) -> Result<Option<Token>, StartError> {
    let Some(file) = &settings.observe.token_file else { return Ok(None) };
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|cause| StartError::TokenFile { file: name.clone(), cause })?;
    Token::new(&text).map(Some).map_err(|cause| StartError::Token { file: name, cause })
}

fn hash_of(settings: &Settings) -> Arc<str> {
    Arc::from(settings.hash.to_string())
}

/// Keys are hashed under the seeds that all instances share and nobody else knows.
fn secret_of(settings: &Settings) -> [u8; 16] {
    let mut secret = [0; 16];
    if let Some(keyspace) = settings.engine.keyspaces.first() {
        secret[..8].copy_from_slice(&keyspace.counting.seed.to_le_bytes());
        secret[8..].copy_from_slice(&keyspace.plan_seed.to_le_bytes());
    }
    secret
}

/// Name and number of windows of each keyspace.
fn keyspaces(settings: &Settings) -> Vec<(String, usize)> {
    settings.engine.keyspaces.iter().map(|keyspace| (keyspace.name.clone(), keyspace.windows.len())).collect()
}

fn driver_parts(settings: &Settings, shared: &Shared) -> Result<DriverParts, StartError> {
    let mut client = settings.kafka.consumer_config()?;
    client.set("session.timeout.ms", settings.service.session_timeout.as_millis().to_string());
    let source = KafkaSource::start(&KafkaSourceSettings {
        client,
        topic: settings.source.topic.clone(),
        group: settings.source.group.clone(),
        start: match settings.source.start {
            Start::Window => StartAt::Back(settings.reach()),
            Start::Earliest => StartAt::Earliest,
            Start::Latest => StartAt::Latest,
        },
    })?;
    Ok(DriverParts {
        clock: shared.clock,
        stop: shared.stop.clone(),
        source,
        topic: settings.source.topic.clone(),
        decoder: Decoder::new(&settings.input),
        engine: Engine::new(settings.engine.clone()),
        config_hash: hash_of(settings),
        keyspaces: keyspaces(settings),
        mappers: settings.plans.iter().map(|plan| plan.mapper.clone()).collect(),
        stall_timeout: settings.service.stall_timeout,
        events: Arc::clone(&shared.events),
        readiness: Arc::clone(&shared.readiness),
        exchange: Arc::clone(&shared.exchange),
    })
}

fn leader_parts(settings: &Settings, shared: &Shared, orders: Orders, asked: Asked) -> Result<LeaderParts, StartError> {
    let consumer = settings.kafka.control_consumer_config()?;
    let mut member = consumer.clone();
    member.set("session.timeout.ms", settings.service.session_timeout.as_millis().to_string());
    let plan_topic = &settings.control.plan_topic;
    let mut source = format!("/keyheat/{}/{}", settings.source.group, settings.kafka.client_id);
    source.truncate(source.floor_char_boundary(MAX_SOURCE_BYTES));
    let nonce = Nonce(rand::random());
    let grace = settings.service.shutdown_grace;
    Ok(LeaderParts {
        clock: shared.clock,
        stop: shared.stop.clone(),
        group: LeaderGroup::join(&member, plan_topic, &format!("{}.leader", settings.source.group))?,
        plan_topic: TopicFollower::start(&consumer, plan_topic)?,
        acks_topic: TopicFollower::start(&consumer, &settings.control.acks_topic)?,
        publisher: Publisher::new(settings.kafka.producer_config()?, plan_topic, source, nonce)?,
        topic_faults: watch_topics(settings, shared.clock, shared.stop.clone())?,
        planner: Planner::new(settings.plans.clone(), settings.budget, settings.protocol),
        keyspaces: settings.engine.keyspaces.iter().map(|keyspace| keyspace.name.clone()).collect(),
        heartbeat_every: settings.control.heartbeat,
        grace: Span::from_millis(grace.as_millis().saturating_sub(CLOSING.as_millis())),
        events: Arc::clone(&shared.events),
        readiness: Arc::clone(&shared.readiness),
        exchange: Arc::clone(&shared.exchange),
        clerk: Clerk::new(orders, asked),
    })
}

/// Sets the flag when its thread ends in whatever way: one part never goes on alone.
struct EndsAll(Stop);

impl Drop for EndsAll {
    fn drop(&mut self) {
        self.0.set();
    }
}

fn spawn<T: Send + 'static>(
    name: &'static str,
    stop: Stop,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<Receiver<T>, StartError> {
    let (done, end) = channel();
    let body = move || {
        let guard = EndsAll(stop);
        let result = run();
        // Nobody listens any more when the grace time has passed.
        drop(done.send(result));
        drop(guard);
    };
    thread::Builder::new().name(name.to_owned()).spawn(body).map_err(|cause| StartError::Thread { name, cause })?;
    Ok(end)
}
