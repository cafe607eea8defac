//! The owner of the records: follows the plans, moves and deletes, and reports. It also sees how far the control topics are.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use keyheat::protocol::{AckTable, AckTopicKey, Applied, Digest, LogRecord, PlanKey, PlanTable, State, Version};
use keyheat::router::TopicFollower;
use keyheat::service::Stop;
use keyheat::simulate::{EventProducer, Move, Retirement};

use super::calls::Shop;

/// The longest wait for a record of the plan topic; between two of them some rows of each work.
const POLL: Duration = Duration::from_millis(5);
const ROWS: usize = 40;
const TAKE: usize = 200;

/// What stands on the control topics.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Standing {
    /// Keys between hold and settled.
    pub(crate) halfway: Vec<(PlanKey, State)>,
    /// Moves and deletions that are not over.
    pub(crate) working: usize,
    pub(crate) last: Version,
    pub(crate) digest: Digest,
    /// Of each router: what it has applied, and its digest.
    pub(crate) routers: BTreeMap<String, (Version, Digest)>,
}

/// What the owner works with.
pub(crate) struct Owner<'a> {
    pub(crate) shop: &'a Shop,
    pub(crate) plan_topic: TopicFollower,
    pub(crate) acks_topic: TopicFollower,
    /// Reports.
    pub(crate) producer: EventProducer,
    pub(crate) standing: &'a Mutex<Standing>,
}

struct Work<T> {
    migration: Version,
    work: T,
    done: bool,
}

#[derive(Default)]
struct Works {
    plans: PlanTable,
    acks: AckTable,
    moves: BTreeMap<PlanKey, Work<Move>>,
    retirements: BTreeMap<PlanKey, Work<Retirement>>,
}

impl Owner<'_> {
    /// Works until it is told to stop.
    pub(crate) fn run(mut self, stop: &Stop) {
        let mut works = Works::default();
        while !stop.is_set() {
            self.read(&mut works);
            self.work(&mut works);
            self.producer.poll();
            *self.standing.lock().unwrap() = works.standing();
        }
    }

    fn read(&mut self, works: &mut Works) {
        let mut wait = POLL;
        // An error of the client is one of the connection: it goes on by itself.
        for _ in 0..TAKE {
            match self.plan_topic.poll(wait) {
                Some(Ok(record)) => works.planned(&record, self.shop),
                Some(Err(_)) => {}
                None => break,
            }
            wait = Duration::ZERO;
        }
        for _ in 0..TAKE {
            match self.acks_topic.poll(Duration::ZERO) {
                Some(Ok(record)) => drop(works.acks.apply(&record)),
                Some(Err(_)) => {}
                None => break,
            }
        }
    }

    fn work(&self, works: &mut Works) {
        let (shards, now) = (&self.shop.shards, self.shop.clock.now());
        let mut reports = Vec::new();
        for (key, work) in works.moves.iter_mut().filter(|(_, work)| !work.done) {
            work.done = work.work.step(shards, ROWS);
            if work.done {
                let report = work.work.report(now);
                reports.push((AckTopicKey::Backfill { key: key.clone(), layout: report.layout }, report.encode()));
            }
        }
        for (key, work) in works.retirements.iter_mut().filter(|(_, work)| !work.done) {
            work.done = work.work.step(shards, ROWS);
            if work.done {
                for report in work.work.reports(shards, now) {
                    reports.push((AckTopicKey::Retired { key: key.clone(), layout: report.layout }, report.encode()));
                }
            }
        }
        for (key, value) in reports {
            self.producer.send(&key.to_bytes(), &value, || true).unwrap();
        }
    }
}

impl Works {
    fn planned(&mut self, record: &LogRecord, shop: &Shop) {
        let Applied::Plan { key, entry, .. } = self.plans.apply(record) else { return };
        let migration = entry.record.migration.version;
        let is_new = |known: Option<Version>| known != Some(migration);
        if entry.record.state == State::Moving && is_new(self.moves.get(&key).map(|work| work.migration)) {
            let work = Move::new(&entry.record, &shop.shards).unwrap();
            self.moves.insert(key.clone(), Work { migration, work, done: false });
        }
        if let Some(work) = Retirement::new(&entry.record).unwrap()
            && is_new(self.retirements.get(&key).map(|work| work.migration))
        {
            self.retirements.insert(key, Work { migration, work, done: false });
        }
    }

    fn standing(&self) -> Standing {
        let states = self.plans.plans().map(|(key, entry)| (key.clone(), entry.record.state));
        let halfway = states.filter(|(_, state)| matches!(state, State::Hold | State::Dual | State::Moving));
        let moves = self.moves.values().filter(|work| !work.done).count();
        Standing {
            halfway: halfway.collect(),
            working: moves + self.retirements.values().filter(|work| !work.done).count(),
            last: self.plans.last_version(),
            digest: self.plans.digest(),
            routers: self
                .acks
                .routers()
                .map(|router| (router.ack.id.clone(), (router.ack.applied, router.ack.digest)))
                .collect(),
        }
    }
}
