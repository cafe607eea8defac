//! The thread of the owner: follows both topics, moves and deletes records as the plans say, and reports.
//!
//! It reads the topics on its own, so it is also the witness of what routers and leader have said there.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::clients::Timeline;
use super::settings::{MOVED_PER_S, ROUTERS};
use super::view::RouterStand;
use crate::protocol::{
    AckApplied, AckTable, AckTopicKey, Applied, BackfillReport, LogRecord, PlanKey, PlanRecord, PlanTable, State,
    Version,
};
use crate::router::{FollowError, TopicFollower};
use crate::service::Stop;
use crate::simulate::{EventProducer, Move, Retirement, Shards};
use crate::units::Span;

/// The longest wait for a record of the plan topic.
const POLL_LIMIT: Duration = Duration::from_millis(5);
/// Records of one topic that are taken before the work goes on.
const TAKE: usize = 100;
/// How often a move that runs is reported.
const REPORT_EVERY: Span = Span::from_millis(250);
/// Records that are moved before the topics are looked at again, at the most.
const MOST_ROWS: u64 = 200;

/// What was read on the topics.
#[derive(Debug, Clone)]
pub(super) enum Told {
    /// An accepted plan record.
    Planned(Version, Box<PlanRecord>),
    /// Every router has acknowledged the newest plan record.
    Acknowledged(Version, usize),
    /// The owner has reported on a move.
    Moved(Box<BackfillReport>),
    /// Something is not as it should be.
    Trouble(String),
}

/// What the thread works with.
pub(super) struct OwnerThread {
    pub(super) timeline: Timeline,
    pub(super) plan_topic: TopicFollower,
    pub(super) acks_topic: TopicFollower,
    pub(super) producer: EventProducer,
    pub(super) shards: Arc<Shards>,
    pub(super) stop: Stop,
    pub(super) told: Sender<(Span, Told)>,
    pub(super) routers: Arc<Mutex<Vec<RouterStand>>>,
}

/// The owner at work.
struct Owner {
    parts: OwnerThread,
    plans: PlanTable,
    acks: AckTable,
    moves: BTreeMap<PlanKey, Work<Move>>,
    retirements: BTreeMap<PlanKey, Work<Retirement>>,
    /// The newest plan record, and whether it was told that all have acknowledged it.
    newest: Option<(PlanKey, Version, bool)>,
    worked_at: Span,
}

/// A work and the migration that it is for.
struct Work<T> {
    migration: Version,
    work: T,
    done: bool,
    reported_at: Span,
}

impl<T> Work<T> {
    const fn new(migration: Version, work: T) -> Self {
        Self { migration, work, done: false, reported_at: Span::ZERO }
    }
}

impl OwnerThread {
    /// Works until it is told to stop.
    pub(super) fn run(self) {
        let worked_at = self.timeline.elapsed();
        let mut owner = Owner {
            parts: self,
            plans: PlanTable::new(),
            acks: AckTable::new(),
            moves: BTreeMap::new(),
            retirements: BTreeMap::new(),
            newest: None,
            worked_at,
        };
        while !owner.parts.stop.is_set() {
            owner.read();
            owner.work();
            owner.parts.producer.poll();
        }
    }
}

impl Owner {
    fn tell(&self, told: Told) {
        // The viewer is gone: the demo is about to end.
        drop(self.parts.told.send((self.parts.timeline.elapsed(), told)));
    }

    fn read(&mut self) {
        let mut wait = POLL_LIMIT;
        for _ in 0..TAKE {
            match self.parts.plan_topic.poll(wait) {
                Some(Ok(record)) => self.planned(&record),
                Some(Err(error)) => self.trouble(&error),
                None => break,
            }
            wait = Duration::ZERO;
        }
        for _ in 0..TAKE {
            match self.parts.acks_topic.poll(Duration::ZERO) {
                Some(Ok(record)) => self.acked(&record),
                Some(Err(error)) => self.trouble(&error),
                None => break,
            }
        }
        self.look_at_routers();
    }

    fn trouble(&self, error: &FollowError) {
        self.tell(Told::Trouble(error.to_string()));
    }

    fn planned(&mut self, record: &LogRecord) {
        let Applied::Plan { key, entry, .. } = self.plans.apply(record) else { return };
        self.newest = Some((key.clone(), entry.version, false));
        self.tell(Told::Planned(entry.version, Box::new(entry.record.clone())));
        let migration = entry.record.migration.version;
        if entry.record.state == State::Moving && self.moves.get(&key).is_none_or(|work| work.migration != migration) {
            match Move::new(&entry.record, &self.parts.shards) {
                Ok(work) => drop(self.moves.insert(key.clone(), Work::new(migration, work))),
                Err(error) => self.tell(Told::Trouble(error.to_string())),
            }
        }
        let begun = self.retirements.get(&key).is_some_and(|work| work.migration == migration);
        match Retirement::new(&entry.record) {
            Ok(Some(work)) if !begun => drop(self.retirements.insert(key, Work::new(migration, work))),
            Ok(_) => {}
            Err(error) => self.tell(Told::Trouble(error.to_string())),
        }
    }

    fn acked(&mut self, record: &LogRecord) {
        match self.acks.apply(record) {
            AckApplied::Backfill { key, layout } => {
                if let Some(report) = self.acks.backfill(&key, layout) {
                    self.tell(Told::Moved(Box::new(report.clone())));
                }
            }
            AckApplied::Refused { key, reason } => self.tell(Told::Trouble(format!("acks topic, {key:?}: {reason}"))),
            _ => {}
        }
    }

    fn look_at_routers(&mut self) {
        let acknowledges = |ack: &crate::protocol::RouterAck| {
            self.newest.as_ref().is_some_and(|(key, version, _)| ack.acknowledges(key, *version))
        };
        let stands: Vec<RouterStand> = self
            .acks
            .routers()
            .map(|router| RouterStand {
                id: router.ack.id.clone(),
                applied: Some(router.ack.applied),
                acknowledged: acknowledges(&router.ack),
            })
            .collect();
        let count = stands.len();
        let all = count >= ROUTERS && stands.iter().all(|router| router.acknowledged);
        *self.parts.routers.lock().unwrap_or_else(PoisonError::into_inner) = stands;
        if let Some((_, version, told @ false)) = &mut self.newest
            && all
        {
            *told = true;
            let version = *version;
            self.tell(Told::Acknowledged(version, count));
        }
    }

    /// Some rows of each work, as many as the time since the last turn allows.
    fn work(&mut self) {
        let now = self.parts.timeline.elapsed();
        let rows = now.saturating_sub(self.worked_at).as_millis() * MOVED_PER_S / 1000;
        if rows == 0 {
            return;
        }
        self.worked_at = now;
        let rows = usize::try_from(rows.min(MOST_ROWS)).unwrap_or(1);
        let time = self.parts.timeline.now();
        let mut reports = Vec::new();
        for (key, work) in self.moves.iter_mut().filter(|(_, work)| !work.done) {
            work.done = work.work.step(&self.parts.shards, rows);
            if work.done || now.saturating_sub(work.reported_at) >= REPORT_EVERY {
                work.reported_at = now;
                let report = work.work.report(time);
                let key = AckTopicKey::Backfill { key: key.clone(), layout: report.layout };
                reports.push((key, report.encode()));
            }
        }
        for (key, work) in self.retirements.iter_mut().filter(|(_, work)| !work.done) {
            work.done = work.work.step(&self.parts.shards, rows);
            if work.done {
                for report in work.work.reports(&self.parts.shards, time) {
                    let key = AckTopicKey::Retired { key: key.clone(), layout: report.layout };
                    reports.push((key, report.encode()));
                }
            }
        }
        for (key, value) in reports {
            if let Err(error) = self.parts.producer.send(&key.to_bytes(), &value, || !self.parts.stop.is_set()) {
                self.tell(Told::Trouble(format!("a report could not be sent: {error}")));
            }
        }
    }
}
