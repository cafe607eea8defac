//! The test.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use keyheat::plan::{Mapper, MapperKind, ShardHash};
use keyheat::router::TopicFollower;
use keyheat::service::{Clock, Stop};
use keyheat::simulate::{EventProducer, Random, Shards};

use super::callers::{CALLERS, Caller};
use super::calls::{Shop, Tally};
use super::control::{self, Budget, Figures};
use super::faults::Fleet;
use super::link::Desk;
use super::load::{HotKeys, KEYS, Kind};
use super::owner::{Owner, Standing};
use super::stage::Stage;
use super::support::process::PATIENCE;
use super::support::{Kafka, now, poll_until};
use super::wire::RouterOrder;

const ROUTERS: usize = 3;
const SHARDS: usize = 8;
const CALL_LIMIT: Duration = Duration::from_secs(3);
const BUDGET: Budget = Budget { max_splits: 250, max_changes_per_minute: 90 };
/// In three minutes so many migrations begin in each keyspace, or the test has shown too little.
const LEAST_BEGUN: u64 = 20;
/// So many of them settle: holds are turned back while a router is struck, so that those of `update` are fewer.
const LEAST_SETTLED: u64 = 8;

fn settings() -> String {
    let Budget { max_splits, max_changes_per_minute } = BUDGET;
    let mut text = format!(
        r#"
[time]
disorder = "500ms"
idle_timeout = "1s"
[plan]
max_splits = {max_splits}
max_changes_per_minute = {max_changes_per_minute}
min_dwell = "1s"
[protocol]
hold_limit = "1500ms"
call_limit = "{}s"
expect_routers = {ROUTERS}
"#,
        CALL_LIMIT.as_secs()
    );
    for kind in Kind::ALL {
        let name = kind.name();
        text += &format!(
            r#"
[[keyspace]]
name = "{name}"
key = "{{/{name}}}"
windows = ["5s/500ms", "15s/1s"]
rate = "12/s"
mode = "auto"
writes = "{name}"
history = "move"
bucket_rate = "30/s"
quiet = "5s"
clear_after = "2s"
"#
        );
    }
    text
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text}, which should be a number")))
}

#[test]
fn every_read_sees_the_last_completed_write_whoever_is_killed_or_paused() {
    let seed = number("KEYHEAT_CHAOS_SEED").unwrap_or_else(rand::random);
    let secs = number("KEYHEAT_CHAOS_SECS").unwrap_or(180);
    println!("KEYHEAT_CHAOS_SEED={seed} KEYHEAT_CHAOS_SECS={secs}");
    let kafka = Kafka::shared();
    let stage = Stage::new(kafka, "chaos", &settings());
    stage.create_topics();
    let mut random = Random::new(seed);
    let shop = shop(&stage, secs, &mut random);
    let (stop_load, stop_owner) = (Stop::default(), Stop::default());
    let (tickets, standing) = (AtomicU64::new(0), Mutex::new(Standing::default()));
    let mut fleet = Fleet::new(&stage, &shop);
    for desk in 0..ROUTERS {
        fleet.add_router(desk, order(&stage, desk));
    }
    for (name, config) in ["detector-a", "detector-b"].into_iter().zip(configs(&stage)) {
        fleet.add_detector(name, config);
    }
    let (settled, agreed, figures) = thread::scope(|scope| {
        // A panic in here must not leave the threads waiting for a word that never comes.
        let ends = EndsAll(&[&stop_load, &stop_owner]);
        let owner = owner(&stage, &shop, &standing);
        scope.spawn(|| owner.run(&stop_owner));
        poll_until("every router to join", PATIENCE, || {
            (standing.lock().unwrap().routers.len() == ROUTERS).then_some(())
        });
        let callers: Vec<_> = (0..CALLERS)
            .map(|number| {
                let caller = Caller::new(&shop, seed ^ number << 32);
                let (tickets, stop_load) = (&tickets, &stop_load);
                scope.spawn(move || caller.run(tickets, stop_load))
            })
            .collect();
        let until_ms = shop.clock.elapsed().as_millis() + secs * 1000;
        fleet.trouble(&mut random, until_ms);
        stop_load.set();
        for caller in callers {
            caller.join().unwrap();
        }
        let settled = settle(&standing);
        fleet.check();
        read_everything(&shop);
        fleet.end_detectors();
        // The log is whole now: nobody writes to it any more.
        let log = control::log(&stage.kafka.read_all(&stage.plan_topic));
        let (table, figures) = control::check(&log, BUDGET);
        report(&shop.tally.lock().unwrap(), &figures, &fleet, tickets.load(SeqCst));
        let same = |standing: &Standing| {
            let routers = standing.routers.values().all(|(_, digest)| *digest == table.digest());
            routers && (standing.last, standing.digest) == (table.last_version(), table.digest())
        };
        let agreed = wait_for(&standing, same);
        let registered = control::check_acks(&control::log(&stage.kafka.read_all(&stage.acks_topic)));
        assert_eq!(registered, ROUTERS, "a router that comes back with its snapshot is the one it was");
        drop(ends);
        (settled, agreed, figures)
    });
    let tally = shop.tally.lock().unwrap();
    assert_eq!(tally.wrong_count, 0, "wrong answers, the first ones: {:#?}", tally.wrong);
    assert_eq!(settled, Ok(()), "a migration does not go on");
    assert_eq!(agreed, Ok(()), "I3: a router or the owner has another table than the log gives");
    assert!(figures.epochs.len() > 1, "no leader was deposed: {figures:?}");
    assert!(fleet.done.contains_key("router killed"), "no router was killed: {:?}", fleet.done);
    for kind in Kind::ALL {
        let of = |figures: &BTreeMap<String, u64>| figures.get(kind.name()).copied().unwrap_or(0);
        let (begun, settled) = (of(&figures.begun), of(&figures.settled));
        let enough = begun * 180 >= LEAST_BEGUN * secs && settled * 180 >= LEAST_SETTLED * secs;
        assert!(enough, "keyspace {}: {begun} migrations begun, {settled} settled", kind.name());
    }
}

/// Tells all threads to end, however the test does.
struct EndsAll<'a>(&'a [&'a Stop]);

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|stop| stop.set());
    }
}

fn shop(stage: &Stage<'_>, secs: u64, random: &mut Random) -> Shop {
    let names = (0..SHARDS).map(|number| format!("s{number}")).collect();
    let keys = Kind::ALL.into_iter().flat_map(|kind| (0..KEYS).map(move |key| (kind, key)));
    Shop {
        shards: Shards::new(Mapper::new(MapperKind::Modulo(ShardHash::Murmur2), names).unwrap()),
        desks: (0..ROUTERS).map(|_| Desk::default()).collect(),
        records: keys.map(|key| (key, Mutex::default())).collect(),
        hot: Kind::ALL.into_iter().map(|kind| (kind, HotKeys::new(secs * 1000, random))).collect::<BTreeMap<_, _>>(),
        clock: Clock::system(),
        call_limit: CALL_LIMIT,
        producer: EventProducer::new(&stage.kafka.client(), &stage.input).unwrap(),
        tally: Mutex::new(Tally::default()),
    }
}

/// Each detector has a group of its own, so that each counts all events; both want to lead.
fn configs(stage: &Stage<'_>) -> [PathBuf; 2] {
    let text = fs::read_to_string(stage.config()).unwrap();
    ["a", "b"].map(|name| {
        let path = stage.dir.join(format!("detector-{name}.toml"));
        let own = format!("group = \"{}-{name}\"", stage.group);
        fs::write(&path, text.replace(&format!("group = \"{}\"", stage.group), &own)).unwrap();
        path
    })
}

fn order(stage: &Stage<'_>, desk: usize) -> RouterOrder {
    RouterOrder {
        id: format!("router-{desk}"),
        brokers: stage.kafka.bootstrap.clone(),
        plan_topic: stage.plan_topic.clone(),
        acks_topic: stage.acks_topic.clone(),
        snapshot: stage.dir.join(format!("router-{desk}.snapshot")).to_string_lossy().into_owned(),
        call_limit_ms: u64::try_from(CALL_LIMIT.as_millis()).unwrap(),
        breaks: std::env::var("KEYHEAT_CHAOS_BREAK").ok(),
    }
}

fn owner<'a>(stage: &Stage<'_>, shop: &'a Shop, standing: &'a Mutex<Standing>) -> Owner<'a> {
    let client = stage.kafka.client();
    Owner {
        shop,
        plan_topic: TopicFollower::start(&client, &stage.plan_topic).unwrap(),
        acks_topic: TopicFollower::start(&client, &stage.acks_topic).unwrap(),
        producer: EventProducer::new(&client, &stage.acks_topic).unwrap(),
        standing,
    }
}

/// Waits until what was begun is over.
fn settle(standing: &Mutex<Standing>) -> Result<(), Standing> {
    let over = |standing: &Standing| standing.halfway.is_empty() && standing.working == 0;
    wait_for(standing, over)
}

/// Waits until the topics stand as wanted. How they stand, when they do not in time.
fn wait_for(standing: &Mutex<Standing>, wanted: impl Fn(&Standing) -> bool) -> Result<(), Standing> {
    let deadline = now() + PATIENCE;
    loop {
        let standing = standing.lock().unwrap().clone();
        if wanted(&standing) {
            return Ok(());
        }
        if now() > deadline {
            return Err(standing);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Each record once more: none was lost.
fn read_everything(shop: &Shop) {
    let parts = usize::try_from(CALLERS).unwrap();
    thread::scope(|scope| {
        for part in 0..parts {
            scope.spawn(move || Caller::new(shop, part as u64).read_everything(part, parts));
        }
    });
    let reads = |records: &Mutex<super::records::Records>| {
        let records = records.lock().unwrap();
        records.registers.len() + records.counters.len()
    };
    println!("records read at the end: {}", shop.records.values().map(reads).sum::<usize>());
}

fn report(tally: &Tally, figures: &Figures, fleet: &Fleet<'_>, tickets: u64) {
    println!("requests due {tickets}, done {:?}, failed {:?}", tally.done, tally.failed);
    println!("calls of unknown outcome {}, dropped by the store {}", tally.unknown, tally.dropped);
    println!("wrong answers {}", tally.wrong_count);
    println!("faults {:?}", fleet.done);
    println!("plan topic: {} records, epochs {:?}, refused {:?}", figures.records, figures.epochs, figures.refused);
    println!("migrations begun {:?}, settled {:?}", figures.begun, figures.settled);
    let mut held = tally.held_us.clone();
    held.sort_unstable();
    let at =
        |part: usize| held.get((held.len() * part / 100).min(held.len().saturating_sub(1))).map_or(0, |us| us / 1000);
    println!(
        "holds {}, turned back {}; writes that waited {}: p50 {} ms, p99 {} ms",
        figures.holds,
        figures.holds_turned_back,
        held.len(),
        at(50),
        at(99)
    );
}
