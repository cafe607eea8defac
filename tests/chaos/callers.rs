//! Callers: threads that ask a router, call the store, and check what they are told.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use keyheat::service::Stop;
use keyheat::simulate::Random;

use super::calls::{Call, Shop, Tally};
use super::link::Link;
use super::load::{KEYS, Kind, PER_S, below};
use super::records::Wrong;
use super::wire::{Answer, Ending, Operation, Placed, Question};

/// Callers at once: most of the time each waits for its call.
pub(crate) const CALLERS: u64 = 96;
/// Records of a key that are rewritten, and those that are incremented.
const REGISTERS: usize = 40;
const COUNTERS: usize = 15;
/// So many of a thousand writes are lost sight of by their caller.
const LOST_OF_1000: u64 = 3;
/// A router that was silent is left alone for so long.
const AVOID_NS: u64 = 1_000_000_000;
/// The slowest calls: in a keyspace whose writes are held, short enough for most holds to end in time.
const SLOWEST_US: u64 = 2_400_000;
const SLOWEST_HELD_US: u64 = 700_000;
/// Requests that are so late are left out.
const TOO_LATE: Duration = Duration::from_secs(2);

/// One caller.
pub(crate) struct Caller<'a> {
    shop: &'a Shop,
    random: Random,
    links: Vec<Link>,
    avoided_until_ns: Vec<u64>,
}

/// A request on its way.
struct Sent {
    placed: Placed,
    router: usize,
    deadline_ns: u64,
    slowest_us: u64,
}

impl<'a> Caller<'a> {
    pub(crate) fn new(shop: &'a Shop, seed: u64) -> Self {
        let routers = shop.desks.len();
        let links = (0..routers).map(|_| Link::default()).collect();
        Self { shop, random: Random::new(seed), links, avoided_until_ns: vec![0; routers] }
    }

    /// Makes requests, one after the other, at the pace that all callers keep together.
    pub(crate) fn run(mut self, tickets: &AtomicU64, stop: &Stop) {
        let began_ns = self.shop.clock.elapsed_ns();
        while !stop.is_set() {
            let number = tickets.fetch_add(1, SeqCst);
            let due = Duration::from_nanos(number * (1_000_000_000 / PER_S));
            let now = Duration::from_nanos(self.shop.clock.elapsed_ns() - began_ns);
            if now > due + TOO_LATE {
                continue;
            }
            thread::sleep(due.saturating_sub(now));
            let kind = Kind::ALL[below(&mut self.random, Kind::ALL.len())];
            let at_ms = u64::try_from(due.as_millis()).unwrap();
            let key = self.shop.hot[&kind].draw(at_ms, &mut self.random);
            self.request(kind, key);
        }
    }

    fn request(&mut self, kind: Kind, key: usize) {
        let chance = self.random.below(100);
        match kind {
            Kind::Insert if chance < 55 => {
                let id = format!("n{:016x}", self.random.next_u64());
                self.put(kind, key, &id, true);
            }
            Kind::Insert => {
                let records = self.shop.records[&(kind, key)].lock().unwrap();
                let from = format!("n{:016x}", self.random.next_u64());
                let id = records.registers.range(from..).next().or(records.registers.iter().next());
                let id = id.map(|(id, _)| id.clone());
                drop(records);
                if let Some(id) = id {
                    self.read(kind, key, &id);
                }
            }
            Kind::Update if chance < 20 => {
                let id = format!("c{}", below(&mut self.random, COUNTERS));
                self.increment(key, &id);
            }
            Kind::Update if chance < 26 => {
                let id = format!("c{}", below(&mut self.random, COUNTERS));
                self.read(kind, key, &id);
            }
            Kind::Versioned | Kind::Update => {
                let id = format!("r{}", below(&mut self.random, REGISTERS));
                match self.random.below(100) {
                    0..50 => self.put(kind, key, &id, true),
                    50..60 => self.put(kind, key, &id, false),
                    _ => self.read(kind, key, &id),
                }
            }
        }
    }

    /// Asks a router; none when the request fails here. `failed` is told why.
    fn ask(&mut self, operation: Operation, kind: Kind, key: usize, id: &str) -> Option<Sent> {
        let began_ns = self.shop.clock.elapsed_ns();
        let router = below(&mut self.random, self.links.len());
        if began_ns < self.avoided_until_ns[router] {
            return self.fail("router_down");
        }
        let question = Question { operation, keyspace: kind.name().to_owned(), key: kind.key(key), id: id.to_owned() };
        match self.links[router].ask(&self.shop.desks[router], &question) {
            None => {
                self.avoided_until_ns[router] = self.shop.clock.elapsed_ns() + AVOID_NS;
                self.fail("router_silent")
            }
            Some(Answer::Refused(_)) => self.fail("refused"),
            Some(Answer::Held { waited_us }) => {
                self.shop.tally.lock().unwrap().held_us.push(waited_us);
                self.fail("held")
            }
            Some(Answer::Placed(placed)) => {
                if let Some(waited_us) = placed.waited_us {
                    self.shop.tally.lock().unwrap().held_us.push(waited_us);
                }
                let limit_ns = u64::try_from(self.shop.call_limit.as_nanos()).unwrap();
                let slowest_us = if kind == Kind::Update { SLOWEST_HELD_US } else { SLOWEST_US };
                Some(Sent { placed, router, deadline_ns: began_ns + limit_ns, slowest_us })
            }
        }
    }

    fn fail(&self, why: &'static str) -> Option<Sent> {
        Tally::count(&mut self.shop.tally.lock().unwrap().failed, why);
        None
    }

    /// Carries a placed request out and says to the router how it has ended.
    fn call<T>(&mut self, sent: Sent, id: &str, loses: bool, carry_out: impl FnOnce(&mut Call<'_>) -> T) -> T {
        let Sent { placed, router, deadline_ns, slowest_us } = sent;
        let link = &mut self.links[router];
        let mut call = Call {
            shop: self.shop,
            random: &mut self.random,
            placed,
            id: id.to_owned(),
            router,
            life: link.life,
            deadline_ns,
            slowest_us,
            lost: false,
        };
        if loses {
            link.end(Ending::Unknown);
            call.lose();
        }
        let outcome = carry_out(&mut call);
        if !loses {
            link.end(Ending::Over);
        }
        outcome
    }

    fn put(&mut self, kind: Kind, key: usize, id: &str, live: bool) {
        let shop = self.shop;
        let records = &shop.records[&(kind, key)];
        let Some(row) = records.lock().unwrap().registers.entry(id.to_owned()).or_default().issue(live) else {
            return;
        };
        let operation = if live { Operation::Write } else { Operation::Delete };
        let landed = self.ask(operation, kind, key, id).is_some_and(|sent| {
            let place = sent.placed.places[0].clone();
            let loses = self.random.below(1000) < LOST_OF_1000;
            let landed = self.call(sent, id, loses, |call| call.put(kind, row));
            if landed {
                self.tell(kind, key, id, if live { "write" } else { "delete" }, &place);
            }
            landed
        });
        let mut records = records.lock().unwrap();
        let register = records.registers.entry(id.to_owned()).or_default();
        if landed { register.landed() } else { register.abandoned() }
    }

    fn increment(&mut self, key: usize, id: &str) {
        let (shop, kind) = (self.shop, Kind::Update);
        let records = &shop.records[&(kind, key)];
        let since = records.lock().unwrap().counters.entry(id.to_owned()).or_default().begin();
        let Some(sent) = self.ask(Operation::InPlace, kind, key, id) else {
            records.lock().unwrap().counters.entry(id.to_owned()).or_default().abandoned();
            return;
        };
        let (place, version) = (sent.placed.places[0].clone(), sent.placed.version);
        let loses = self.random.below(1000) < LOST_OF_1000;
        let result = self.call(sent, id, loses, |call| call.increment());
        let mut records = records.lock().unwrap();
        let counter = records.counters.entry(id.to_owned()).or_default();
        let Some(result) = result else { return counter.abandoned() };
        let checked = counter.landed(since, result);
        drop(records);
        self.judge(checked, || {
            format!("increment of {id} of {} to {result}, above {since}, plan {version:?}", kind.key(key))
        });
        self.tell(kind, key, id, "update", &place);
    }

    /// Reads one record and checks what was found.
    pub(crate) fn read(&mut self, kind: Kind, key: usize, id: &str) {
        let shop = self.shop;
        let records = &shop.records[&(kind, key)];
        let is_counter = kind == Kind::Update && id.starts_with('c');
        let mut held = records.lock().unwrap();
        let since = if is_counter {
            held.counters.entry(id.to_owned()).or_default().since()
        } else {
            held.registers.entry(id.to_owned()).or_default().since()
        };
        drop(held);
        let Some(sent) = self.ask(Operation::Read, kind, key, id) else { return };
        let (places, version) = (sent.placed.places.clone(), sent.placed.version);
        let Some(found) = self.call(sent, id, false, |call| call.read()) else {
            self.fail("router_died");
            return;
        };
        let mut held = records.lock().unwrap();
        let checked = if is_counter {
            held.counters.entry(id.to_owned()).or_default().check(since, found)
        } else {
            held.registers.entry(id.to_owned()).or_default().check(since, found)
        };
        drop(held);
        self.judge(checked, || {
            format!("read of {id} of {} in {places:?}: {found:?}, at least {since}, plan {version:?}", kind.key(key))
        });
        self.tell(kind, key, id, "read", &places[0]);
    }

    fn judge(&self, checked: Result<(), Wrong>, words: impl FnOnce() -> String) {
        if let Err(wrong) = checked {
            let at = self.shop.clock.elapsed();
            self.shop.tally.lock().unwrap().wrong(format!("{at} {wrong:?}: {}", words()));
        }
    }

    /// The access event of a request that was answered.
    fn tell(&self, kind: Kind, key: usize, id: &str, operation: &'static str, place: &str) {
        Tally::count(&mut self.shop.tally.lock().unwrap().done, operation);
        let shards = &self.shop.shards;
        let shard = &shards.names()[shards.number_of(place.as_bytes())];
        let (ts, name, key) = (self.shop.clock.now().as_millis(), kind.name(), kind.key(key));
        let event = format!(r#"{{"ts":{ts},"{name}":"{key}","id":"{id}","op":"{operation}","shard":"{shard}"}}"#);
        self.shop.producer.send(id.as_bytes(), event.as_bytes(), || true).unwrap();
        self.shop.producer.poll();
    }

    /// Reads every record of every `parts`-th key from `part` on; a read that no router takes is made again.
    pub(crate) fn read_everything(&mut self, part: usize, parts: usize) {
        let kinds = Kind::ALL.into_iter().flat_map(|kind| (0..KEYS).map(move |key| (kind, key)));
        for (kind, key) in kinds.skip(part).step_by(parts) {
            let records = self.shop.records[&(kind, key)].lock().unwrap();
            let ids: Vec<String> = records.registers.keys().chain(records.counters.keys()).cloned().collect();
            drop(records);
            for id in ids {
                self.read(kind, key, &id);
            }
        }
    }
}
