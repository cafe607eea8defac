//! The store as callers reach it: calls take their time, are lost sight of, and outlive the router that placed them; a call that is
//! older than the call limit is dropped by the store.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use keyheat::service::Clock;
use keyheat::simulate::{EventProducer, Random, Row, Shards};

use super::link::Desk;
use super::load::{HotKeys, Kind};
use super::records::Records;
use super::wire::Placed;

/// What callers share.
pub(crate) struct Shop {
    pub(crate) shards: Shards,
    /// One a router.
    pub(crate) desks: Vec<Desk>,
    pub(crate) records: BTreeMap<(Kind, usize), Mutex<Records>>,
    pub(crate) hot: BTreeMap<Kind, HotKeys>,
    pub(crate) clock: Clock,
    pub(crate) call_limit: Duration,
    /// Access events.
    pub(crate) producer: EventProducer,
    pub(crate) tally: Mutex<Tally>,
}

/// What happened to requests.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Answered, by kind of operation.
    pub(crate) done: BTreeMap<&'static str, u64>,
    /// Given up before they reached the store, by reason.
    pub(crate) failed: BTreeMap<&'static str, u64>,
    /// Calls of unknown outcome: the caller lost sight of them, or their router was killed.
    pub(crate) unknown: u64,
    /// Calls that the store dropped.
    pub(crate) dropped: u64,
    /// How long writes waited in hold.
    pub(crate) held_us: Vec<u64>,
    /// Answers that were wrong, in words; the first ones.
    pub(crate) wrong: Vec<String>,
    pub(crate) wrong_count: u64,
}

impl Tally {
    pub(crate) fn count(counts: &mut BTreeMap<&'static str, u64>, what: &'static str) {
        *counts.entry(what).or_default() += 1;
    }

    pub(crate) fn wrong(&mut self, words: String) {
        self.wrong_count += 1;
        if self.wrong.len() < 20 {
            self.wrong.push(words);
        }
    }
}

/// One call, or the several of one request, on their way from a router to the store.
pub(crate) struct Call<'a> {
    pub(crate) shop: &'a Shop,
    pub(crate) random: &'a mut Random,
    pub(crate) placed: Placed,
    pub(crate) id: String,
    /// The router that sent it, and the life of it in which it did.
    pub(crate) router: usize,
    pub(crate) life: u64,
    /// The store drops what comes later: before the router was asked, and so before it could die, plus the call limit.
    pub(crate) deadline_ns: u64,
    /// How long a call may be on the way that is not lost.
    pub(crate) slowest_us: u64,
    /// Its caller does not know any more what becomes of it.
    pub(crate) lost: bool,
}

impl Call<'_> {
    fn left(&self) -> Duration {
        Duration::from_nanos(self.deadline_ns.saturating_sub(self.shop.clock.elapsed_ns()))
    }

    /// The time on the way.
    fn travel(&mut self) {
        let us = match self.random.below(100) {
            0..90 => 100 + self.random.below(2_000),
            90..98 => 2_000 + self.random.below(40_000),
            // Longer than a plan takes from one phase to the next: by then everything is elsewhere, were it not waited for.
            _ => 40_000 + self.random.below(self.slowest_us),
        };
        thread::sleep(Duration::from_micros(us));
        if !self.lost && self.shop.desks[self.router].life.load(std::sync::atomic::Ordering::SeqCst) != self.life {
            self.lose();
        }
    }

    /// Nobody waits for it: it may come as late as the store takes it, or never.
    pub(crate) fn lose(&mut self) {
        self.lost = true;
        self.shop.tally.lock().unwrap().unknown += 1;
        match self.random.below(4) {
            0 => self.deadline_ns = 0,
            1 => {}
            _ => thread::sleep(self.left().mul_f64(self.random.unit())),
        }
    }

    /// A call to the store that writes: false when it came too late.
    fn write(&mut self, place: &str, call: impl FnOnce(&mut keyheat::simulate::Store)) -> bool {
        self.travel();
        let mut store = self.shop.shards.store_of(place.as_bytes());
        // Asked while the store does nothing else: this is its own limit, not the caller's.
        let taken = self.shop.clock.elapsed_ns() < self.deadline_ns;
        if taken {
            call(&mut store);
        } else {
            self.shop.tally.lock().unwrap().dropped += 1;
        }
        taken
    }

    fn get(&mut self, place: &str) -> Option<Row> {
        self.travel();
        self.shop.shards.store_of(place.as_bytes()).get(place.as_bytes(), self.id.as_bytes())
    }

    /// Writes a record or a tombstone. True when it landed.
    pub(crate) fn put(&mut self, kind: Kind, row: Row) -> bool {
        let (place, id) = (self.placed.places[0].clone(), self.id.clone());
        let removes = !row.live && self.placed.removes;
        let (key, id) = (place.as_bytes(), id.as_bytes());
        self.write(&place, |store| match kind {
            _ if removes => _ = store.remove(key, id),
            Kind::Insert => _ = store.insert_if_absent(key, id, row),
            Kind::Versioned => _ = store.upsert_if_newer(key, id, row),
            Kind::Update => store.upsert(key, id, row),
        })
    }

    /// Promotes the record from an older place where it must, then adds one in the store. The result, when it landed.
    pub(crate) fn increment(&mut self) -> Option<u64> {
        let (place, id) = (self.placed.places[0].clone(), self.id.clone());
        let (key, id) = (place.as_bytes(), id.as_bytes());
        let older = self.placed.older.clone();
        if !older.is_empty() && self.get(&place).is_none() {
            for from in older {
                if let Some(row) = self.get(&from) {
                    if !self.write(&place, |store| _ = store.insert_if_absent(key, id, row)) {
                        return None;
                    }
                    break;
                }
            }
        }
        let mut result = 0;
        let landed = self.write(&place, |store| {
            result = store.get(key, id).map_or(0, |row| row.revision) + 1;
            store.upsert(key, id, Row { revision: result, live: true });
        });
        landed.then_some(result)
    }

    /// Looks for the record as the placement says; no answer when nobody waits for it any more.
    pub(crate) fn read(&mut self) -> Option<Option<Row>> {
        let mut best: Option<Row> = None;
        for place in self.placed.places.clone() {
            let found = self.get(&place);
            best = match (best, found) {
                (Some(best), Some(found)) if found.revision <= best.revision => Some(best),
                (best, found) => found.or(best),
            };
            if best.is_some() && !self.placed.highest {
                break;
            }
        }
        (!self.lost).then_some(best)
    }
}
