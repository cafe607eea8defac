//! Events a second and processor time an event of `keyheat run` and `keyheat replay`, beside a bare poll loop of the same client
//! on the same topic in the same run. Prints a table; the method is told in `docs/benchmarks.md`.
//!
//! `cargo bench --features broker-tests --bench pipeline`; `EVENTS` and `ROUNDS` change the size.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a benchmark prints, and measures time")]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "one that cannot go on fails; counts are small"
)]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

#[allow(dead_code, unused_imports, reason = "each user takes its part of what is shared")]
#[path = "../support/mod.rs"]
mod support;

use support::{Kafka, poll_until};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const PARTITIONS: i32 = 4;
/// A run that takes longer than this has hung.
const LIMIT: Duration = Duration::from_secs(300);

/// What one run took.
#[derive(Debug, Clone, Copy)]
struct Cost {
    wall: Duration,
    cpu: Duration,
}

fn main() {
    // `cargo test --all-targets` starts benchmarks as tests: nothing to measure there.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let events: u64 = from_env("EVENTS", 2_000_000);
    let rounds: usize = usize::try_from(from_env("ROUNDS", 3)).unwrap();
    let kafka = Kafka::start();
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench-pipeline");
    fs::create_dir_all(&dir).unwrap();
    let topic = Kafka::name("bench");
    let log = prepare(&kafka, &dir, &topic, events);

    let mut bare = Vec::new();
    let mut run = Vec::new();
    let mut replay = Vec::new();
    for round in 0..rounds {
        bare.push(bare_poll(&kafka, &topic, events));
        run.push(service(&kafka, &dir, &topic, events, round));
        replay.push(replay_file(&log));
    }
    println!(
        "{events} events of {} bytes on average, {rounds} rounds in turn; medians",
        fs::metadata(&log).unwrap().len() / events
    );
    println!("| case | wall s | events/s | CPU us/event | CPU of bare poll |");
    println!("|---|---|---|---|---|");
    let base = median(&bare, |cost| cost.cpu);
    for (name, costs) in [("bare poll loop", &bare), ("keyheat run", &run), ("keyheat replay (file)", &replay)] {
        let (wall, cpu) = (median(costs, |cost| cost.wall), median(costs, |cost| cost.cpu));
        let per_second = events as f64 / wall.as_secs_f64();
        let per_event = cpu.as_secs_f64() * 1e6 / events as f64;
        let ratio = cpu.as_secs_f64() / base.as_secs_f64();
        println!("| {name} | {:.2} | {:.0} k | {per_event:.2} | {ratio:.2} |", wall.as_secs_f64(), per_second / 1e3);
    }
}

fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a whole number"))
}

fn median(costs: &[Cost], part: impl Fn(&Cost) -> Duration) -> Duration {
    let mut parts: Vec<Duration> = costs.iter().map(part).collect();
    parts.sort();
    parts[parts.len() / 2]
}

fn keyheat() -> Command {
    Command::new(env!("CARGO_BIN_EXE_keyheat"))
}

/// The same events in a file and on a topic.
fn prepare(kafka: &Kafka, dir: &Path, topic: &str, events: u64) -> PathBuf {
    let log = dir.join("events.ndjson");
    let load = ["generate", "--fast", "--rate", "50000/s", "--keys", "1000000", "--seed", "7", "--hot", "whale:2%"];
    let count = events.to_string();
    let done = keyheat().args(load).args(["--count", &count, "--output-file"]).arg(&log).status().unwrap();
    assert!(done.success());
    kafka.create_topic(topic, PARTITIONS, &[("retention.ms", "-1")]);
    let sent = keyheat()
        .args(load)
        .args(["--count", &count, "--start", "2026-01-01T00:00:00Z", "--brokers", &kafka.bootstrap, "--topic", topic])
        .args(["-X", "compression.type=lz4", "-X", "batch.size=65536", "-X", "linger.ms=50"])
        .status()
        .unwrap();
    assert!(sent.success());
    log
}

/// The rival: the client and nothing else.
fn bare_poll(kafka: &Kafka, topic: &str, events: u64) -> Cost {
    let mut client = ClientConfig::new();
    for (name, value) in
        keyheat::protocol::client::CLIENT_PROPERTIES.iter().chain(keyheat::protocol::client::CONSUMER_PROPERTIES)
    {
        client.set(*name, *value);
    }
    client.set("bootstrap.servers", &kafka.bootstrap).set("group.id", "bare").set("enable.auto.commit", "false");
    let (begin, cpu) = (Instant::now(), cpu_of("self"));
    let consumer: BaseConsumer = client.create().unwrap();
    let mut list = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        list.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&list).unwrap();
    let mut read = 0;
    while read < events {
        assert!(begin.elapsed() < LIMIT, "{read} of {events} read");
        if let Some(message) = consumer.poll(Duration::from_millis(100)) {
            read += u64::from(message.is_ok());
        }
    }
    Cost { wall: begin.elapsed(), cpu: cpu_of("self") - cpu }
}

/// The service, from the first record to the last, with a group, HTTP and all.
fn service(kafka: &Kafka, dir: &Path, topic: &str, events: u64, round: usize) -> Cost {
    let config = dir.join("keyheat.toml");
    fs::write(&config, configuration(&kafka.bootstrap, topic, &format!("bench-{topic}-{round}"))).unwrap();
    let mut child = Killed(
        keyheat()
            .args(["run", "--config"])
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(fs::File::create(dir.join("run.log")).unwrap())
            .spawn()
            .unwrap(),
    );
    let pid = child.0.id().to_string();
    let read = || records_read(LISTEN).filter(|read| *read > 0);
    poll_until("the first record", LIMIT, read);
    let (begin, cpu, before) = (Instant::now(), cpu_of(&pid), read().unwrap_or(0));
    poll_until("the last record", LIMIT, || read().filter(|read| *read >= events));
    // What was read before the first look is not in the time, so the rate is of the rest.
    let part = (events - before) as f64 / events as f64;
    let cost = Cost { wall: begin.elapsed().div_f64(part), cpu: (cpu_of(&pid) - cpu).div_f64(part) };
    child.end();
    cost
}

const LISTEN: &str = "127.0.0.1:19464";

fn configuration(brokers: &str, topic: &str, group: &str) -> String {
    format!(
        r#"
[kafka]
brokers = ["{brokers}"]
[input]
topic = "{topic}"
group = "{group}"
start = "earliest"
time = "/ts"
shard = "/shard"
request_id = "/id"
operation = "/op"
[observe]
listen = "{LISTEN}"
[[keyspace]]
name = "client"
key = "{{/client}}"
mode = "observe"
"#
    )
}

fn records_read(addr: &str) -> Option<u64> {
    let mut stream = TcpStream::connect(addr).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let line = text.lines().find(|line| line.starts_with("keyheat_records_read_total"))?;
    line.rsplit(' ').next()?.parse::<f64>().ok().map(|read| read as u64)
}

fn replay_file(log: &Path) -> Cost {
    let (begin, before) = (Instant::now(), children_cpu());
    let done = keyheat()
        .args([
            "replay",
            "--key",
            "/client",
            "--time",
            "/ts",
            "--shard",
            "/shard",
            "--request-id",
            "/id",
            "--operation",
            "/op",
        ])
        .args(["--output", "json", "--quiet"])
        .arg(log)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(done.success());
    Cost { wall: begin.elapsed(), cpu: children_cpu() - before }
}

/// Processor time, user and system, of a running process.
fn cpu_of(pid: &str) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    ticks(&fields[11..13])
}

/// Processor time of all children that have ended.
fn children_cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    ticks(&fields[13..15])
}

/// Linux counts in hundredths of a second.
fn ticks(fields: &[&str]) -> Duration {
    Duration::from_millis(fields.iter().map(|field| field.parse::<u64>().unwrap() * 10).sum())
}

/// A child that does not outlive the benchmark.
struct Killed(Child);

impl Killed {
    fn end(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        self.end();
    }
}
