//! How long a write waits while its key is in hold: 3 and 30 live routers on a real broker, one after the other. Prints a table; the
//! method is told in `docs/benchmarks.md`.
//!
//! `cargo bench --features broker-tests --bench holds`; `KEYS` changes how many keys are split.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a benchmark prints, and measures time")]
#![allow(clippy::unwrap_used, reason = "one that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use keyheat::protocol::{PlanKey, PlanRecord, State};
use keyheat::router::{Router, RouterSettings, Write};
use keyheat::service::Clock;
use keyheat::simulate::{EventProducer, Random};
use keyheat::units::Span;

#[allow(dead_code, unused_imports, reason = "each user takes its part of what is shared")]
#[path = "../support/mod.rs"]
mod support;

#[allow(dead_code, reason = "each user takes its part of what is shared")]
#[path = "../kafka/stage.rs"]
mod stage;

use stage::{Stage, wait_ready};
use support::process::PATIENCE;
use support::{Kafka, poll_until};

/// Writes a second of each key: hot from 30/s on, split in two.
const PER_S: u64 = 45;
/// Writers at once: more than can wait for one key.
const WRITERS: u64 = 64;
/// How long a call to the store takes.
const CALL: Duration = Duration::from_millis(1);
/// A write that has waited for so long fails.
const HELD_LIMIT: Span = Span::from_secs(5);

const SETTINGS: &str = r#"
[time]
disorder = "500ms"
[plan]
max_changes_per_minute = 600
max_splits = 1000
[[keyspace]]
name = "customer"
key = "{/client}"
windows = ["5s/500ms", "15s/1s"]
rate = "30/s"
mode = "auto"
writes = "update"
history = "none"
bucket_rate = "40/s"
"#;

fn main() {
    // `cargo test --all-targets` starts benchmarks as tests: nothing to measure there.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let keys: u64 = std::env::var("KEYS").map_or(40, |text| text.parse().expect("a whole number"));
    let kafka = Kafka::start();
    println!("{keys} keys, {PER_S} writes a second each; milliseconds");
    println!(
        "| routers | writes that waited | p50 | p99 | longest | holds | hold p50 | hold p99 | turned back | failed |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for routers in [3, 30] {
        measure(&kafka, routers, keys);
    }
}

fn measure(kafka: &Kafka, count: usize, keys: u64) {
    let stage =
        Stage::new(kafka, &format!("holds-{count}"), &format!("[protocol]\nexpect_routers = {count}\n{SETTINGS}"));
    stage.create_topics();
    let routers: Vec<Router> = (0..count).map(|number| router(&stage, number)).collect();
    for router in &routers {
        assert!(router.wait_ready(Span::from_secs(60)), "{:?}", router.status());
    }
    let service = stage.run("service");
    wait_ready(&service);
    let writers = Writers {
        routers: &routers,
        keys,
        producer: EventProducer::new(&kafka.client(), &stage.input).unwrap(),
        clock: Clock::system(),
        tickets: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        waited: Mutex::default(),
        failed: AtomicU64::new(0),
    };
    let records = thread::scope(|scope| {
        for number in 0..WRITERS {
            let writers = &writers;
            scope.spawn(move || writers.run(number));
        }
        let ended = Ends(&writers.stop);
        let records = poll_until("every key to be split", PATIENCE * 4, || {
            let records = plans(&stage);
            let settled = records.iter().filter(|(.., record)| record.state == State::Settled);
            let settled: BTreeSet<_> = settled.map(|(key, ..)| key.clone()).collect();
            (settled.len() as u64 >= keys).then_some(records)
        });
        drop(ended);
        records
    });
    let mut waited = writers.waited.into_inner().unwrap();
    let (mut holds, turned_back) = lengths(&records);
    println!(
        "| {count} | {} | {} | {} | {} | {} | {} | {} | {turned_back} | {} |",
        waited.len(),
        part(&mut waited, 50),
        part(&mut waited, 99),
        part(&mut waited, 100),
        holds.len(),
        part(&mut holds, 50),
        part(&mut holds, 99),
        writers.failed.into_inner()
    );
}

/// Ends the writers, however the wait ends.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

fn router(stage: &Stage<'_>, number: usize) -> Router {
    let clock = Clock::system();
    let mut settings = RouterSettings::new(stage.kafka.client(), &format!("router-{number}"), move || clock.now());
    settings.plan_topic.clone_from(&stage.plan_topic);
    settings.acks_topic.clone_from(&stage.acks_topic);
    settings.snapshot = Some(stage.dir.join(format!("router-{number}.snapshot")));
    Router::start(settings).unwrap()
}

/// What the writers share.
struct Writers<'a> {
    routers: &'a [Router],
    keys: u64,
    producer: EventProducer,
    clock: Clock,
    tickets: AtomicU64,
    stop: AtomicBool,
    waited: Mutex<Vec<u64>>,
    failed: AtomicU64,
}

impl Writers<'_> {
    fn run(&self, number: u64) {
        let mut random = Random::new(number);
        let (began, gap) = (Instant::now(), Duration::from_secs(1).div_f64((self.keys * PER_S) as f64));
        while !self.stop.load(SeqCst) {
            let ticket = self.tickets.fetch_add(1, SeqCst);
            let due = gap.mul_f64(ticket as f64);
            thread::sleep(due.saturating_sub(began.elapsed()));
            let client = format!("client-{}", random.below(self.keys));
            let id = format!("{:016x}", random.next_u64());
            let router = usize::try_from(random.below(self.routers.len() as u64)).unwrap();
            if self.write(&self.routers[router], &client, &id) {
                let ts = self.clock.now().as_millis();
                let event = format!(r#"{{"ts":{ts},"client":"{client}","id":"{id}","op":"write","shard":"s0"}}"#);
                self.producer.send(id.as_bytes(), event.as_bytes(), || true).unwrap();
                self.producer.poll();
            } else {
                self.failed.fetch_add(1, SeqCst);
            }
        }
    }

    /// True when the write found its place.
    fn write(&self, router: &Router, client: &str, id: &str) -> bool {
        let (asked, mut waits) = (Instant::now(), false);
        loop {
            match router.table().write("customer", client.as_bytes(), id.as_bytes()).unwrap() {
                Write::Placed(placement) => {
                    if waits {
                        let waited = u64::try_from(asked.elapsed().as_millis()).unwrap();
                        self.waited.lock().unwrap().push(waited);
                    }
                    // The store call: the placement lives as long.
                    thread::sleep(CALL);
                    drop(placement);
                    return true;
                }
                Write::Held(held) => {
                    waits = true;
                    if !held.wait(HELD_LIMIT) {
                        return false;
                    }
                }
            }
        }
    }
}

/// Plan records as they lie on the topic, with the broker's time in milliseconds.
fn plans(stage: &Stage<'_>) -> Vec<(PlanKey, i64, PlanRecord)> {
    let records = stage.kafka.read_all(&stage.plan_topic).into_iter();
    let plan = |record: support::Record| {
        let key = record.key.filter(|key| key.starts_with(b"plan/"))?;
        let keyheat::protocol::PlanTopicKey::Plan(key) = keyheat::protocol::PlanTopicKey::parse(&key).ok()? else {
            return None;
        };
        let plan = PlanRecord::decode(&key, &record.value?).ok()?;
        Some((key, record.time_ms?, plan))
    };
    records.filter_map(plan).collect()
}

/// How long each hold that ended in dual lasted, by the log, and how many were turned back.
fn lengths(records: &[(PlanKey, i64, PlanRecord)]) -> (Vec<u64>, usize) {
    let mut held: BTreeMap<&PlanKey, i64> = BTreeMap::new();
    let (mut lengths, mut turned_back) = (Vec::new(), 0);
    for (key, at_ms, record) in records {
        if record.state == State::Hold {
            held.insert(key, *at_ms);
        } else if let Some(since_ms) = held.remove(key) {
            if record.state == State::Dual {
                lengths.push(u64::try_from(at_ms - since_ms).unwrap_or(0));
            } else {
                turned_back += 1;
            }
        }
    }
    (lengths, turned_back)
}

fn part(numbers: &mut [u64], percent: usize) -> u64 {
    numbers.sort_unstable();
    let at = (numbers.len() * percent / 100).min(numbers.len().saturating_sub(1));
    numbers.get(at).copied().unwrap_or(0)
}
