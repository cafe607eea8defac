//! The thread of a router: reads the plan topic, writes the snapshot, acknowledges.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use super::ack::{AckPublisher, router_ack};
use super::feed::Feed;
use super::running::{Departure, RouterError, RouterStatus, Shared, Stage};
use super::settings::RouterSettings;
use super::snapshot::{Content, Snapshot, SnapshotError};
use crate::protocol::Nonce;
use crate::router::topic::{FollowError, TopicFollower};
use crate::router::{AckState, Table};
use crate::units::{EventTime, Span};

/// How long one poll waits for a record when nothing else is to be done.
const IDLE_POLL: Duration = Duration::from_millis(50);
/// The same while a key waits for guards to end: a hold is as long as this takes.
const BUSY_POLL: Duration = Duration::from_millis(2);
/// The most records between two looks at everything else.
const MAX_BATCH: usize = 1000;
/// How long the broker may take to say where the plan topic ends.
const ASK_END: Duration = Duration::from_millis(500);
/// After a heartbeat with another digest the topic is read again, at most so often.
const READ_AGAIN_AFTER: Span = Span::from_secs(60);

/// What the handle asks for.
pub(super) enum Command {
    /// End and stay registered.
    Stop(Sender<Departure>),
    /// Take the record off the acks topic, within this time.
    Leave(Span, Sender<Departure>),
}

/// How far joining, or reading the topic again, has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The record with this number is on its way to the acks topic.
    Announce(u64),
    /// The end of the plan topic is to be asked for.
    AskEnd,
    /// Reading up to there.
    Read,
    /// There; the digest is to agree.
    Vouch,
    /// Everything is read: following.
    Follow,
}

/// The state of the thread.
pub(super) struct Worker {
    settings: RouterSettings,
    table: Arc<Table>,
    shared: Arc<Shared>,
    inbox: Receiver<Command>,
    snapshot: Option<Snapshot>,
    nonce: Nonce,
    joined: bool,
    feed: Feed,
    follower: TopicFollower,
    acks: AckPublisher,
    step: Step,
    /// Nothing is acknowledged before: calls of a former life may be in flight.
    quiet_until: Option<EventTime>,
    last_ack: Option<(AckState, EventTime)>,
    last_read_again: Option<EventTime>,
    records_read: u64,
    last_error: Option<String>,
}

impl Worker {
    pub(super) fn new(
        settings: RouterSettings,
        table: Arc<Table>,
        shared: Arc<Shared>,
        inbox: Receiver<Command>,
    ) -> Result<Self, RouterError> {
        let (snapshot, content) = match &settings.snapshot {
            Some(path) => {
                let (snapshot, content) = Snapshot::open(path, &settings.id)?;
                (Some(snapshot), content)
            }
            None => (None, None),
        };
        let nonce = content.as_ref().map_or_else(random_nonce, |content| content.nonce);
        let follower = TopicFollower::start(&settings.client, &settings.plan_topic)?;
        let acks = AckPublisher::new(&settings.client, &settings.acks_topic, &settings.id, nonce)?;
        let mut worker = Self {
            feed: Feed::new(Arc::clone(&table)),
            table,
            shared,
            inbox,
            snapshot,
            nonce,
            joined: false,
            follower,
            acks,
            step: Step::AskEnd,
            quiet_until: None,
            last_ack: None,
            last_read_again: None,
            records_read: 0,
            last_error: None,
            settings,
        };
        worker.begin(content)?;
        Ok(worker)
    }

    fn begin(&mut self, content: Option<Content>) -> Result<(), SnapshotError> {
        let now = self.now();
        self.table.release_unknown(now);
        match content {
            Some(content) if content.joined => {
                self.joined = true;
                self.feed.restore(&content.records, content.applied);
                self.feed.begin_again();
                self.quiet_until = Some(now.saturating_add(self.settings.call_limit));
                self.table.open();
            }
            _ => {
                // The name is on disk before it is on the topic: a start after a crash joins under the same one.
                self.save(false)?;
                let value = router_ack(&self.settings.id, self.nonce, &AckState::default(), None, now).encode();
                self.step = Step::Announce(self.acks.want(Some(value)));
            }
        }
        self.report(0);
        Ok(())
    }

    pub(super) fn run(mut self) {
        let (departure, answer) = loop {
            match self.inbox.try_recv() {
                Ok(Command::Leave(limit, answer)) => break (self.leave(limit), Some(answer)),
                Ok(Command::Stop(answer)) => break (self.stop(), Some(answer)),
                Err(TryRecvError::Disconnected) => break (self.stop(), None),
                Err(TryRecvError::Empty) => self.turn(),
            }
        };
        self.shared.update(|status| status.ready = false);
        // The one who asked may have gone: then nobody wants to know.
        drop(answer.map(|answer| answer.send(departure)));
    }

    fn stop(&self) -> Departure {
        self.table.close();
        Departure::Registered("it ends to come back with its snapshot".to_owned())
    }

    fn turn(&mut self) {
        let waiting = self.last_ack.as_ref().map_or(0, |(state, _)| state.waiting.len());
        self.read(if waiting > 0 { BUSY_POLL } else { IDLE_POLL });
        self.advance();
        self.save_changes();
        let state = self.acknowledge();
        self.acks.drive(Duration::ZERO);
        self.report(state.map_or(waiting, |state| state.waiting.len()));
    }

    fn read(&mut self, timeout: Duration) {
        let mut timeout = timeout;
        for _ in 0..MAX_BATCH {
            match self.follower.poll(timeout) {
                None => break,
                Some(Ok(record)) => {
                    self.records_read += 1;
                    self.last_error = None;
                    self.feed.take(&record);
                }
                Some(Err(FollowError::OutOfRange(topic))) => {
                    self.last_error = Some(FollowError::OutOfRange(topic).to_string());
                    self.read_again();
                }
                Some(Err(error)) => self.last_error = Some(error.to_string()),
            }
            timeout = Duration::ZERO;
        }
    }

    fn read_again(&mut self) {
        self.last_read_again = Some(self.now());
        match self.follower.restart() {
            Ok(()) => {
                self.feed.begin_again();
                if !matches!(self.step, Step::Announce(_)) {
                    self.step = Step::AskEnd;
                }
            }
            Err(error) => self.last_error = Some(error.to_string()),
        }
    }

    /// One step further in joining or reading again, where what it waits for has come.
    fn advance(&mut self) {
        match self.step {
            Step::Announce(number) if self.acks.delivered() >= number => self.step = Step::AskEnd,
            Step::AskEnd => match self.follower.ask_end(ASK_END) {
                Ok(_) => self.step = Step::Read,
                Err(error) => self.last_error = Some(error.to_string()),
            },
            Step::Read if self.follower.reached_asked_end() => self.step = Step::Vouch,
            Step::Vouch if self.feed.is_vouched_for() => self.arrive(),
            Step::Follow if !self.feed.is_vouched_for() => {
                let now = self.now();
                let due = self.last_read_again.is_none_or(|last| now.since(last) >= READ_AGAIN_AFTER);
                if due {
                    self.read_again();
                }
            }
            _ => {}
        }
    }

    /// The plan topic is read to its end and nothing speaks against the fold.
    fn arrive(&mut self) {
        if self.feed.reads_again() {
            self.feed.finish_again();
        }
        if !self.joined {
            if let Err(error) = self.save(true) {
                self.last_error = Some(error.to_string());
                return;
            }
            self.joined = true;
            self.feed.saved();
            self.table.open();
        }
        self.step = Step::Follow;
    }

    fn save(&self, joined: bool) -> Result<(), SnapshotError> {
        match &self.snapshot {
            Some(snapshot) => snapshot.write(self.nonce, joined, self.table.version(), self.feed.records()),
            None => Ok(()),
        }
    }

    fn save_changes(&mut self) {
        if !self.joined || !self.feed.has_changed() {
            return;
        }
        match self.save(true) {
            Ok(()) => self.feed.saved(),
            Err(error) => self.last_error = Some(error.to_string()),
        }
    }

    /// Sends the acknowledgement when it has changed or is due. What the snapshot does not hold is not acknowledged.
    fn acknowledge(&mut self) -> Option<AckState> {
        let now = self.now();
        self.table.release_unknown(now);
        let quiet = self.quiet_until.is_some_and(|until| now < until);
        if self.step != Step::Follow || self.feed.has_changed() || self.feed.contradiction().is_some() || quiet {
            return None;
        }
        let state = self.table.ack_state();
        let due = self
            .last_ack
            .as_ref()
            .is_none_or(|(last, sent_at)| *last != state || now.since(*sent_at) >= self.settings.ack_interval);
        if due {
            let unknown_until = self.table.unknown_until();
            let value = router_ack(&self.settings.id, self.nonce, &state, unknown_until, now).encode();
            self.acks.want(Some(value));
            self.last_ack = Some((state.clone(), now));
        }
        Some(state)
    }

    /// Places nothing more, waits for what is in flight, and takes the record off the topic.
    fn leave(&mut self, limit: Span) -> Departure {
        let deadline = self.now().saturating_add(limit);
        self.table.close();
        self.shared.update(|status| (status.stage, status.ready) = (Stage::Leaving, false));
        while !self.table.is_idle() {
            if self.now() >= deadline {
                return Departure::Registered("requests are still in flight, or their outcome is unknown".to_owned());
            }
            self.read(BUSY_POLL);
            self.save_changes();
            self.table.release_unknown(self.now());
            self.acks.drive(Duration::ZERO);
        }
        // From here on its snapshot must not place requests: nobody waits for it any more. A new name, since this one's tombstone
        // may arrive late.
        if let Some(snapshot) = &self.snapshot
            && let Err(error) = snapshot.write(random_nonce(), false, self.table.version(), [])
        {
            return Departure::Registered(error.to_string());
        }
        let tombstone = self.acks.want(None);
        while self.acks.delivered() < tombstone {
            if self.now() >= deadline {
                let (_, error) = self.acks.failures();
                let error = error.unwrap_or("the broker has not answered");
                return Departure::Registered(format!("its record may still be on the acks topic: {error}"));
            }
            self.acks.drive(Duration::from_millis(20));
        }
        Departure::Left
    }

    fn report(&self, waiting: usize) {
        let (acks_failed, ack_error) = self.acks.failures();
        let status = RouterStatus {
            stage: match self.step {
                Step::Announce(_) => Stage::Announcing,
                Step::AskEnd | Step::Read => Stage::Reading,
                Step::Vouch => Stage::Vouching,
                Step::Follow => Stage::Following,
            },
            ready: self.table.is_open(),
            applied: self.table.version(),
            plans: self.table.plans(),
            waiting,
            refused: self.last_ack.as_ref().map_or(0, |(state, _)| state.refused.len()),
            digest_agrees: self.feed.is_vouched_for(),
            staleness: self.table.staleness(self.now()),
            acks_delivered: self.acks.delivered(),
            acks_failed,
            records_read: self.records_read,
            contradiction: self.feed.contradiction().map(ToString::to_string),
            last_error: self.last_error.clone().or_else(|| ack_error.map(str::to_owned)),
        };
        self.shared.update(|shown| *shown = status);
    }

    fn now(&self) -> EventTime {
        (self.settings.now)()
    }
}

/// A random number: the standard library seeds its hashers from the operating system.
fn random_nonce() -> Nonce {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    Nonce(hasher.finish())
}
