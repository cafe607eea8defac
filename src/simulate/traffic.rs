//! Clients' requests through routers to shards: every request asks a router's table for its place, takes time at the shard, and
//! becomes one access event; every answer to a read is checked against what the client has written.
//!
//! One thread drives any number of calls in flight: a call is issued at one moment, is done at another, and holds its placement in
//! between as a real router would. So requests overlap each other, the mover and the changes of the plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::clients::{Clients, Record, id_of};
use super::flight::{Flight, ReadFlight, ScanFlight, WriteFlight, WriteKind};
use super::imbalance::LoadMeter;
use super::load::Load;
use super::random::Random;
use super::shards::Shards;
use super::store::{Overloaded, Queue, Row};
use super::truth::Wrong;
use crate::input::Operation;
use crate::protocol::Version;
use crate::router::{Held, Table, Write};
use crate::units::{EventTime, Span};

/// What the clients do, and what the shards can take.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficSettings {
    /// The keyspace whose keys the clients are.
    pub keyspace: String,
    /// The most records of one client.
    pub max_records: usize,
    /// Of reads: scans of all records of the client.
    pub scans: f64,
    /// Of writes: deletes.
    pub deletes: f64,
    /// Of writes: updates that need the old value.
    pub updates_in_place: f64,
    /// Of other writes: calls whose outcome the client does not learn in time.
    pub unknown_outcomes: f64,
    /// The longest that such a call can be in flight: the store drops it earlier.
    pub call_limit: Span,
    /// A write that has waited for its key for so long is given up.
    pub patience: Span,
    /// Calls a second that one shard can serve.
    pub capacity_per_s: u32,
    /// A call that would wait at its shard for longer is refused.
    pub longest_queue: Span,
    /// Length of one slot of the load meter.
    pub meter_slot: Span,
    /// Slots of its window.
    pub meter_slots: usize,
    /// Seed of all that is random, the load aside.
    pub seed: u64,
}

/// A request that was served or refused by a shard: one access event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// When.
    pub at: EventTime,
    /// Number of the client.
    pub client: usize,
    /// Id of the record; empty for a scan.
    pub id: Vec<u8>,
    /// What was asked for.
    pub operation: Operation,
    /// Number of the shard that answered.
    pub shard: usize,
}

/// What became of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Requests that clients have sent.
    pub sent: u64,
    /// Refused by a shard that had too many waiting.
    pub refused: u64,
    /// Refused by a router, or given up after waiting too long.
    pub failed: u64,
    /// Writes that wait for their key now.
    pub waiting: usize,
    /// The longest that a write has waited.
    pub longest_wait: Span,
    /// Writes whose outcome their client did not learn.
    pub unknown: u64,
    /// Answers that were checked: point reads, scans, and old values of updates in place.
    pub checked: u64,
    /// Of these, those that missed a record.
    pub missed: u64,
    /// Of these, those that found an older one, or a deleted one.
    pub stale: u64,
    /// Of these, those that found what nobody has written.
    pub unwritten: u64,
}

impl Tally {
    /// Answers that were wrong.
    #[must_use]
    pub const fn wrong(&self) -> u64 {
        self.missed + self.stale + self.unwritten
    }

    fn count(&mut self, answer: Result<(), Wrong>) {
        self.checked += 1;
        match answer {
            Ok(()) => {}
            Err(Wrong::Missed) => self.missed += 1,
            Err(Wrong::Stale) => self.stale += 1,
            Err(Wrong::Unwritten) => self.unwritten += 1,
        }
    }
}

/// A wrong answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongAnswer {
    /// What is wrong with it.
    pub wrong: Wrong,
    /// What was asked for.
    pub operation: Operation,
    /// Number of the client.
    pub client: usize,
    /// Id of the record.
    pub id: Vec<u8>,
    /// What was found.
    pub found: Option<Row>,
    /// Version of the plan by which the request was placed; none without a plan.
    pub placed_by: Option<Version>,
}

/// The most wrong answers that are kept; all are counted.
pub const MAX_WRONG_ANSWERS: usize = 100;

/// A write that waits for its key.
struct Waiting {
    held: Held,
    write: Wanted,
}

/// A write that a client wants.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    client: usize,
    record: usize,
    kind: WriteKind,
    router: usize,
    since_ns: u64,
}

/// Requests behind the load are made up for while they are late by less than this; then they are left out.
const MOST_LATE: Span = Span::from_millis(250);
/// Tries to find a record that no write is in flight for.
const TRIES: usize = 4;

/// All clients and their calls in flight.
pub struct Traffic<'a> {
    pub(super) settings: TrafficSettings,
    pub(super) shards: &'a Shards,
    pub(super) random: Random,
    pub(super) records: Vec<Vec<Record>>,
    pub(super) tally: Tally,
    tables: &'a [Arc<Table>],
    clients: &'a Clients,
    load: Load,
    /// When the next request is sent, by the load.
    next_ns: u64,
    next: Option<(usize, Operation)>,
    /// By how much the load is behind since it was too late.
    shift_ns: u64,
    start: EventTime,
    now_ns: u64,
    queues: Vec<Queue>,
    meter: LoadMeter,
    flights: BTreeMap<(u64, u64), Flight<'a>>,
    tickets: u64,
    waiting: Vec<Waiting>,
    served: Vec<Served>,
    wrong: Vec<WrongAnswer>,
}

impl<'a> Traffic<'a> {
    /// Clients that send what `load` draws, each request to one of the routers with these tables; at least one.
    #[must_use]
    pub fn new(
        settings: TrafficSettings,
        load: Load,
        clients: &'a Clients,
        tables: &'a [Arc<Table>],
        shards: &'a Shards,
    ) -> Self {
        let queue = Queue::new(settings.capacity_per_s, settings.longest_queue);
        let mut traffic = Self {
            shards,
            random: Random::new(settings.seed),
            records: vec![Vec::new(); clients.count()],
            tally: Tally::default(),
            tables,
            clients,
            start: load.settings().start,
            load,
            next_ns: 0,
            next: None,
            shift_ns: 0,
            now_ns: 0,
            queues: vec![queue; shards.count()],
            meter: LoadMeter::new(shards.count(), settings.meter_slot, settings.meter_slots),
            flights: BTreeMap::new(),
            tickets: 0,
            waiting: Vec::new(),
            served: Vec::new(),
            wrong: Vec::new(),
            settings,
        };
        traffic.draw();
        traffic
    }

    /// Writes `count` records of a client through a router, without taking time or leaving events: what is there from before.
    pub fn preload(&mut self, client: usize, count: usize) {
        for number in self.records[client].len()..count.min(self.settings.max_records) {
            let (id, key) = (id_of(number), self.clients.key(client));
            let placed = self.tables[0].write(&self.settings.keyspace, key, &id);
            let Ok(Write::Placed(placement)) = placed else { return };
            let mut record = Record::default();
            let row = record.truth.issue(true);
            let place = &placement.place().key;
            self.shards.store_of(place).upsert(place, &id, row);
            record.truth.complete();
            self.records[client].push(record);
        }
    }

    /// Does everything that is due until `now_ns` since the start, in its order.
    pub fn step(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        self.retry(self.now_ns);
        loop {
            let flight_ns = self.flights.first_key_value().map_or(u64::MAX, |(&(at_ns, _), _)| at_ns);
            let request_ns = if self.next.is_some() { self.next_ns.saturating_add(self.shift_ns) } else { u64::MAX };
            if flight_ns.min(request_ns) > self.now_ns {
                break;
            }
            if flight_ns <= request_ns {
                if let Some(((at_ns, _), flight)) = self.flights.pop_first() {
                    self.land(at_ns, flight);
                }
            } else {
                self.send(request_ns);
            }
        }
        self.meter.advance(span_of(self.now_ns));
        self.tally.waiting = self.waiting.len();
    }

    /// Sends no more requests; those in flight go on.
    pub fn stop_sending(&mut self) {
        self.next = None;
    }

    /// True when no call is in flight and no write waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.flights.is_empty() && self.waiting.is_empty()
    }

    /// Requests that were answered since the last time.
    pub fn take_served(&mut self) -> Vec<Served> {
        std::mem::take(&mut self.served)
    }

    /// Wrong answers, the first [`MAX_WRONG_ANSWERS`].
    #[must_use]
    pub fn wrong_answers(&self) -> &[WrongAnswer] {
        &self.wrong
    }

    /// What became of the requests so far.
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Calls by shard.
    #[must_use]
    pub const fn meter(&self) -> &LoadMeter {
        &self.meter
    }

    fn draw(&mut self) {
        let request = self.load.next();
        self.next = request.and_then(|request| {
            self.next_ns = request.sent_at.since(self.start).as_millis().saturating_mul(1_000_000);
            Some((self.clients.number_of(&request.client)?, request.operation))
        });
    }

    /// One request of a client.
    fn send(&mut self, due_ns: u64) {
        let Some((client, operation)) = self.next else { return };
        let late_ns = self.now_ns.saturating_sub(due_ns);
        if late_ns > MOST_LATE.as_millis() * 1_000_000 {
            self.shift_ns = self.shift_ns.saturating_add(late_ns);
        }
        self.draw();
        self.tally.sent += 1;
        let router = self.below(self.tables.len());
        // It is sent now, also when it was due earlier: a call holds its placement from then on.
        let at_ns = self.now_ns;
        if operation == Operation::Read && !self.records[client].is_empty() {
            if self.random.unit() < self.settings.scans {
                self.scan(at_ns, client, router);
            } else {
                let record = self.below(self.records[client].len());
                self.read(at_ns, client, record, router);
            }
        } else if let Some((record, kind)) = self.choose_write(client) {
            self.records[client][record].busy = true;
            self.write(at_ns, Wanted { client, record, kind, router, since_ns: at_ns });
        } else {
            // Every record that was tried is being written: the client waits for those.
            self.tally.sent -= 1;
        }
    }

    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.below(bound as u64)).unwrap_or(0)
    }

    /// A record to write and how; a new one while there is room, in half of the cases.
    fn choose_write(&mut self, client: usize) -> Option<(usize, WriteKind)> {
        let (count, room) = (self.records[client].len(), self.records[client].len() < self.settings.max_records);
        let chosen = (0..TRIES).find_map(|_| {
            let record = self.below(count.max(1));
            self.records[client].get(record).is_some_and(|record| !record.busy).then_some(record)
        });
        if room && (chosen.is_none() || self.random.unit() < 0.5) {
            self.records[client].push(Record::default());
            return Some((count, WriteKind::Put));
        }
        let record = chosen?;
        let draw = self.random.unit();
        let (deletes, in_place) = (self.settings.deletes, self.settings.updates_in_place);
        let kind = match self.records[client][record].truth.is_live() {
            true if draw < deletes => WriteKind::Delete,
            true if draw < deletes + in_place => WriteKind::InPlace,
            _ => WriteKind::Put,
        };
        Some((record, kind))
    }

    fn read(&mut self, at_ns: u64, client: usize, record: usize, router: usize) {
        let id = id_of(record);
        let tables = self.tables;
        match tables[router].point_read(&self.settings.keyspace, self.clients.key(client), &id) {
            Ok(placement) => {
                let since = self.records[client][record].truth.since();
                self.look(at_ns, ReadFlight { placement, client, record, id, since, looked: 0, best: None });
            }
            Err(_) => self.tally.failed += 1,
        }
    }

    fn scan(&mut self, at_ns: u64, client: usize, router: usize) {
        let tables = self.tables;
        match tables[router].scan(&self.settings.keyspace, self.clients.key(client)) {
            Ok(placement) => {
                let since = self.records[client].iter().map(|record| record.truth.since()).collect();
                let found = vec![None; self.records[client].len()];
                let flight = ScanFlight { placement, client, since, found, cursor: None, shard: 0 };
                self.flights.insert((at_ns, self.tickets), Flight::Scan(Box::new(flight)));
                self.tickets += 1;
            }
            Err(_) => self.tally.failed += 1,
        }
    }

    /// Asks for a place and sends the write there, or lets it wait.
    fn write(&mut self, at_ns: u64, wanted: Wanted) {
        let Wanted { client, record, kind, router, since_ns } = wanted;
        let (id, tables) = (id_of(record), self.tables);
        let (table, keyspace, key) = (&tables[router], &self.settings.keyspace, self.clients.key(client));
        let placed = match kind {
            WriteKind::Put => table.write(keyspace, key, &id).map(WriteFlight::put),
            WriteKind::InPlace => table.update_in_place(keyspace, key, &id).map(WriteFlight::in_place),
            WriteKind::Delete => table.delete(keyspace, key, &id).map(WriteFlight::delete),
        };
        match placed {
            Ok(Write::Placed(placement)) => {
                self.tally.longest_wait = self.tally.longest_wait.max(span_of(at_ns.saturating_sub(since_ns)));
                self.carry_out(at_ns, placement.of(client, record, id));
            }
            Ok(Write::Held(held)) => self.waiting.push(Waiting { held, write: wanted }),
            Err(_) => {
                self.tally.failed += 1;
                self.records[client][record].busy = false;
            }
        }
    }

    fn carry_out(&mut self, at_ns: u64, mut flight: WriteFlight<'a>) {
        let shard = self.shards.number_of(&flight.place);
        let record = &mut self.records[flight.client][flight.record];
        let Ok(done_ns) = call(&mut self.meter, &mut self.queues, at_ns, shard) else {
            record.busy = false;
            self.refuse(at_ns, flight.client, flight.id, Operation::Write, shard);
            return;
        };
        flight.since = record.truth.since();
        flight.row = record.truth.issue(flight.kind != WriteKind::Delete);
        let mut land_ns = done_ns;
        if flight.kind != WriteKind::InPlace && self.random.unit() < self.settings.unknown_outcomes {
            // The client gives up at once, and the call lands in the first half of the time that it may take.
            let limit_ns = self.settings.call_limit.as_millis().saturating_mul(1_000_000);
            flight.lose_sight(self.wall(at_ns).saturating_add(self.settings.call_limit));
            flight.dropped_after_ns = at_ns.saturating_add(limit_ns / 2);
            land_ns = done_ns.saturating_add(self.random.below((limit_ns / 2).max(1)));
            self.tally.unknown += 1;
        }
        self.fly(land_ns, Flight::Write(Box::new(flight)));
    }

    /// Writes whose key is free again are sent, those that have waited too long given up.
    fn retry(&mut self, now_ns: u64) {
        let patience_ns = self.settings.patience.as_millis().saturating_mul(1_000_000);
        for waiting in std::mem::take(&mut self.waiting) {
            let Wanted { client, record, since_ns, .. } = waiting.write;
            if waiting.held.is_over() {
                self.write(now_ns, waiting.write);
            } else if now_ns.saturating_sub(since_ns) > patience_ns {
                self.tally.failed += 1;
                self.records[client][record].busy = false;
            } else {
                self.waiting.push(waiting);
            }
        }
    }

    /// One call on a shard: counted, and done at the moment that is returned.
    pub(super) fn call(&mut self, at_ns: u64, shard: usize) -> Result<u64, Overloaded> {
        call(&mut self.meter, &mut self.queues, at_ns, shard)
    }

    pub(super) fn fly(&mut self, land_ns: u64, flight: Flight<'a>) {
        self.flights.insert((land_ns, self.tickets), flight);
        self.tickets += 1;
    }

    /// The moment that the simulation has come to: calls land when they are due, or later when the simulation is late.
    pub(super) const fn now_ns(&self) -> u64 {
        self.now_ns
    }

    pub(super) fn refuse(&mut self, at_ns: u64, client: usize, id: Vec<u8>, operation: Operation, shard: usize) {
        self.tally.refused += 1;
        self.serve(at_ns, client, id, operation, shard);
    }

    pub(super) fn serve(&mut self, at_ns: u64, client: usize, id: Vec<u8>, operation: Operation, shard: usize) {
        self.served.push(Served { at: self.wall(at_ns), client, id, operation, shard });
    }

    /// Counts an answer that was checked; a wrong one is kept.
    pub(super) fn judge(&mut self, checked: Result<(), Wrong>, answer: impl FnOnce(Wrong) -> WrongAnswer) {
        self.tally.count(checked);
        if let Err(wrong) = checked
            && self.wrong.len() < MAX_WRONG_ANSWERS
        {
            self.wrong.push(answer(wrong));
        }
    }

    fn wall(&self, at_ns: u64) -> EventTime {
        self.start.saturating_add(span_of(at_ns))
    }
}

fn call(meter: &mut LoadMeter, queues: &mut [Queue], at_ns: u64, shard: usize) -> Result<u64, Overloaded> {
    meter.add(span_of(at_ns), shard);
    queues[shard].admit(at_ns)
}

const fn span_of(ns: u64) -> Span {
    Span::from_millis(ns / 1_000_000)
}
