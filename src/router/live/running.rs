//! A running router: its thread, and the handle on it.

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use rdkafka::error::KafkaError;

use super::settings::RouterSettings;
use super::snapshot::SnapshotError;
use super::worker::{Command, Worker};
use crate::protocol::{Version, is_router_id};
use crate::router::Table;
use crate::units::Span;

/// Why a router does not start.
#[derive(Debug, thiserror::Error)]
pub enum RouterError {
    /// Not a name.
    #[error("invalid router id '{0}', which should be 1 to 128 bytes of UTF-8 without '/'")]
    Id(String),
    /// The snapshot cannot be used.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A setting of the client is wrong.
    #[error("kafka client: {0}")]
    Client(#[from] KafkaError),
    /// The operating system gave no thread.
    #[error("no thread for the router: {0}")]
    Thread(#[source] std::io::Error),
}

/// What a router does at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// It waits until its record is on the acks topic.
    #[default]
    Announcing,
    /// It reads the plan topic to its end.
    Reading,
    /// It has read the plan topic and waits for a heartbeat whose digest is that of its table.
    Vouching,
    /// It follows the plan topic.
    Following,
    /// It follows no more and waits for requests in flight.
    Leaving,
}

/// A router as it sees itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RouterStatus {
    /// What it does.
    pub stage: Stage,
    /// True when it places requests.
    pub ready: bool,
    /// The version up to which it has applied the plan topic.
    pub applied: Version,
    /// Keys with a plan.
    pub plans: usize,
    /// Keys that wait for requests in flight before they are acknowledged.
    pub waiting: usize,
    /// Keys whose newest record it could not obey.
    pub refused: usize,
    /// False when the leader's last heartbeat has another digest.
    pub digest_agrees: bool,
    /// How long ago the last heartbeat was made; none when there was none.
    pub staleness: Option<Span>,
    /// Records of its own that reached the acks topic, tombstone and repetitions too: the number of the last one.
    pub acks_delivered: u64,
    /// Sends to the acks topic that failed; each was made again.
    pub acks_failed: u64,
    /// Records of the plan topic that were read.
    pub records_read: u64,
    /// What keeps it from acknowledging: the topic lost records, or the table is full.
    pub contradiction: Option<String>,
    /// The last error of Kafka or of the snapshot; none once a record was read or written since.
    pub last_error: Option<String>,
}

/// How a router ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Departure {
    /// Its record is off the acks topic: no plan waits for it, and it has to join again.
    Left,
    /// It is still registered: it starts again with its snapshot, or an operator drops it once nothing of it runs.
    Registered(String),
}

/// The status and who waits for it to change.
#[derive(Default)]
pub(super) struct Shared {
    status: Mutex<RouterStatus>,
    changed: Condvar,
}

impl Shared {
    pub(super) fn update(&self, change: impl FnOnce(&mut RouterStatus)) {
        change(&mut self.status.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    fn get(&self) -> RouterStatus {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A router that runs: its table is kept up to date and acknowledged by a thread of its own.
pub struct Router {
    table: Arc<Table>,
    shared: Arc<Shared>,
    commands: Sender<Command>,
    thread: Option<JoinHandle<()>>,
}

impl Router {
    /// Starts a router. With a snapshot of an earlier life it places requests at once, else when it has joined.
    ///
    /// # Errors
    /// [`RouterError`]; a broker or a topic that is not there is none: the router waits for it.
    pub fn start(settings: RouterSettings) -> Result<Self, RouterError> {
        if !is_router_id(&settings.id) {
            return Err(RouterError::Id(settings.id.chars().take(64).collect()));
        }
        let table = Arc::new(Table::not_ready(settings.table));
        let shared = Arc::new(Shared::default());
        let (commands, inbox) = mpsc::channel();
        let worker = Worker::new(settings, Arc::clone(&table), Arc::clone(&shared), inbox)?;
        let thread = std::thread::Builder::new()
            .name("keyheat-router".to_owned())
            .spawn(move || worker.run())
            .map_err(RouterError::Thread)?;
        Ok(Self { table, shared, commands, thread: Some(thread) })
    }

    /// The table to ask.
    #[must_use]
    pub const fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// True when requests are placed.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.table.is_open()
    }

    /// Blocks until requests are placed, at most for `limit`.
    #[must_use]
    pub fn wait_ready(&self, limit: Span) -> bool {
        let status = self.shared.status.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.shared.changed.wait_timeout_while(status, limit.to_duration(), |status| !status.ready);
        waited.unwrap_or_else(PoisonError::into_inner).0.ready
    }

    /// What it does and knows.
    #[must_use]
    pub fn status(&self) -> RouterStatus {
        self.shared.get()
    }

    /// Leaves for good: places nothing more, waits at most until `limit` has passed for the requests in flight, and takes the record
    /// off the acks topic. Where that cannot be done in time the router stays registered.
    pub fn shutdown(self, limit: Span) -> Departure {
        self.end(|answer| Command::Leave(limit, answer))
    }

    /// Ends to come back soon with its snapshot: places nothing more and stays registered, so that plans wait for it meanwhile.
    pub fn pause(self) -> Departure {
        self.end(Command::Stop)
    }

    fn end(mut self, command: impl FnOnce(Sender<Departure>) -> Command) -> Departure {
        let (answer, departure) = mpsc::channel();
        let gone = || Departure::Registered("the router's thread has ended".to_owned());
        if self.commands.send(command(answer)).is_err() {
            return gone();
        }
        let departure = departure.recv().unwrap_or_else(|_| gone());
        self.join();
        departure
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported by its own message; there is nothing to add.
            drop(thread.join());
        }
    }
}

impl Drop for Router {
    /// As [`Router::pause`]: a table that nobody keeps up to date places nothing.
    fn drop(&mut self) {
        // Nobody waits for the answer: the thread has ended when it is joined.
        let (answer, _) = mpsc::channel();
        if self.thread.is_some() && self.commands.send(Command::Stop(answer)).is_ok() {
            self.join();
        }
        self.table.close();
    }
}
