//! A backlog whose partitions are minutes apart: the one that is ahead waits, and every event is counted.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use super::stage::{Stage, wait_metric};
use super::support::process::{PATIENCE, Process, get, scrape, sum};
use super::support::{Kafka, Record, poll_until};

/// Everything that one key has in the last minute is more than 1/s. Nothing is idle while the test looks.
const BACKLOG: &str = r#"
[time]
idle_timeout = "10m"
[[keyspace]]
name = "customer"
key = "{/client}"
windows = ["60s/5s"]
rate = "1/s"
mode = "observe"
"#;

const PARTITIONS: i32 = 4;
/// Partition 0 begins twelve minutes before the end, the next one three minutes later, and so on; all end together.
const APART_MS: i64 = 180_000;
const STEP_MS: i64 = 20;
const KEYS: i64 = 7;

fn now_ms() -> i64 {
    keyheat::service::Clock::system().now().as_millis()
}

fn client_of(partition: i32, at_ms: i64) -> String {
    format!("c{}", (at_ms / STEP_MS + i64::from(partition)) % KEYS)
}

fn times(partition: i32, end_ms: i64) -> impl Iterator<Item = i64> {
    let steps = (i64::from(PARTITIONS - partition) * APART_MS) / STEP_MS;
    (0..steps).map(move |step| end_ms - step * STEP_MS).rev()
}

fn value(client: &str, at_ms: i64) -> String {
    format!(r#"{{"ts":{at_ms},"client":"{client}","op":"write"}}"#)
}

fn gauge(addr: &str, name: &str, labels: &[(&str, &str)]) -> f64 {
    scrape(addr).and_then(|all| all.value(name, labels)).unwrap_or(-1.0)
}

/// Hot and suspect keys with both bounds of their count.
fn hot_keys(addr: &str) -> BTreeMap<String, (u64, u64)> {
    let (_, body) = get(addr, "/v1/hot-keys").unwrap();
    let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
    let keys = answer["keyspaces"][0]["keys"].as_array().unwrap().iter();
    let bounds =
        |key: &serde_json::Value| (key["count"]["lower"].as_u64().unwrap(), key["count"]["upper"].as_u64().unwrap());
    keys.map(|key| (key["key"].as_str().unwrap().to_owned(), bounds(key))).collect()
}

/// The slack of the windows is 7 s, the longer window a minute, and the partitions are read side by side: without waiting the first
/// one would lose all but its last minute.
#[test]
fn a_backlog_with_skew_is_counted_to_the_last_event() {
    let kafka = Kafka::shared();
    let stage = Stage::new(kafka, "skew", BACKLOG);
    stage.create_topics();
    let end_ms = now_ms() / 5_000 * 5_000 - 600_001;
    let mut total = 0.0;
    let mut last_minute = BTreeMap::<String, u64>::new();
    for partition in 0..PARTITIONS {
        let record = |at_ms| Record::event(value(&client_of(partition, at_ms), at_ms)).to(partition);
        kafka.produce(&stage.input, times(partition, end_ms).map(record));
        total += times(partition, end_ms).count() as f64;
        for at_ms in times(partition, end_ms).filter(|at_ms| *at_ms > end_ms - 60_000) {
            *last_minute.entry(client_of(partition, at_ms)).or_default() += 1;
        }
    }

    let mut service = stage.run("service");
    let addr = service.http();
    poll_until("three partitions to wait for the first", PATIENCE, || {
        (gauge(&addr, "keyheat_partitions_paused", &[]) >= 3.0).then_some(())
    });
    // They wait before the first record of the slowest one is counted: from that one on it is known how far behind all is.
    poll_until("the backlog to be told", PATIENCE, || {
        let (status, body) = get(&addr, "/v1/status")?;
        (status == 200 && body.contains(r#""catching_up":true"#)).then_some(())
    });
    wait_metric(&addr, "keyheat_records_read_total", total);
    poll_until("nobody to wait any more", PATIENCE, || {
        let all = scrape(&addr)?;
        let still = all.value("keyheat_partitions_paused", &[])? + all.value("keyheat_lag_records", &[])?;
        (still == 0.0).then_some(())
    });
    let all = scrape(&addr).unwrap();
    assert_eq!(sum(&all, "keyheat_events_counted_total"), total, "{}", service.log());
    for metric in ["keyheat_records_refused_total", "keyheat_partitions_given_up_total", "keyheat_offsets_lost_total"] {
        assert_eq!(sum(&all, metric), 0.0, "{metric}");
    }
    assert_eq!(sum(&all, "keyheat_records_repeated_total"), 0.0);
    assert_eq!(gauge(&addr, "keyheat_condition", &[("condition", "incomplete")]), 0.0);
    let events = last_minute.values().sum::<u64>() as f64;
    assert_eq!(sum(&scrape(&addr).unwrap(), "keyheat_window_events"), events);
    let expected: BTreeMap<_, _> = last_minute.into_iter().map(|(key, count)| (key, (count, count))).collect();
    poll_until("the exact count of each key", PATIENCE, || (hot_keys(&addr) == expected).then_some(()));

    service.signal("TERM");
    assert_eq!(service.end(Duration::from_secs(15)).code(), Some(0), "{}", service.log());
    assert_eq!(kafka.committed(&stage.group, &stage.input).values().sum::<i64>() as f64, total);
}

/// One of two partitions has no leader. It is waited for as long as a partition may be silent, then told, and the other is counted.
#[test]
fn a_partition_without_a_leader_stops_the_others_for_a_while_only() {
    let cluster = Leaderless::new(2, 1_000, "2s");
    let service = cluster.run("service");
    let addr = service.http();
    poll_until("the partition with records to wait", PATIENCE, || {
        (gauge(&addr, "keyheat_partitions_paused", &[]) == 1.0).then_some(())
    });
    wait_metric(&addr, "keyheat_partitions_given_up_total", 1.0);
    wait_metric(&addr, "keyheat_events_counted_total", 1_000.0);
    assert_eq!(gauge(&addr, "keyheat_partitions_given_up_total", &[]), 1.0, "told once: {}", service.log());
    poll_until("the counts to be incomplete", PATIENCE, || {
        (gauge(&addr, "keyheat_condition", &[("condition", "incomplete")]) == 1.0).then_some(())
    });
    let (_, ready) = get(&addr, "/readyz").unwrap();
    assert!(ready.contains("1 of 2 partitions"), "{ready}");
}

/// Partitions that wait, and are paused in the client, are taken away and come back: a pause outlives an assignment, and would stop
/// them for ever. They go on at the held record: nothing is counted twice, and nothing is left out.
#[test]
fn a_partition_that_is_taken_away_while_it_waits_goes_on_at_the_held_record() {
    let cluster = Leaderless::new(3, 10_000, "10m");
    let mut first = cluster.run("first");
    let addr = first.http();
    poll_until("both partitions with records to wait", PATIENCE, || {
        (gauge(&addr, "keyheat_partitions_paused", &[]) == 2.0).then_some(())
    });
    let mut second = cluster.run("second");
    let other = second.http();
    wait_metric(&other, "keyheat_partitions_assigned", 1.0);
    poll_until("the first to have given partitions up", PATIENCE, || {
        (gauge(&addr, "keyheat_partitions_assigned", &[]) < 3.0).then_some(())
    });
    assert_eq!(gauge(&addr, "keyheat_records_read_total", &[]), 0.0, "{}", first.log());
    second.signal("TERM");
    assert!(second.end(PATIENCE).code().is_some());
    cluster.cluster.partition_leader("input", 2, Some(1)).unwrap();
    wait_metric(&addr, "keyheat_events_counted_total", 20_000.0);
    poll_until("nobody to wait any more", PATIENCE, || {
        let all = scrape(&addr)?;
        let still = all.value("keyheat_partitions_paused", &[])? + all.value("keyheat_lag_records", &[])?;
        (still == 0.0).then_some(())
    });
    let all = scrape(&addr).unwrap();
    for (metric, value) in [
        ("keyheat_events_counted_total", 20_000.0),
        ("keyheat_records_read_total", 20_000.0),
        ("keyheat_records_refused_total", 0.0),
        ("keyheat_offsets_lost_total", 0.0),
    ] {
        assert_eq!(sum(&all, metric), value, "{metric}: {}", first.log());
    }
    first.signal("TERM");
    assert!(first.end(PATIENCE).code().is_some());
}

/// A mock cluster whose last input partition has no leader, and no records; each other one has as many.
struct Leaderless {
    cluster: MockCluster<'static, rdkafka::producer::DefaultProducerContext>,
    dir: std::path::PathBuf,
    config: std::path::PathBuf,
}

impl Leaderless {
    fn new(partitions: i32, records: i64, idle_timeout: &str) -> Self {
        let cluster = MockCluster::new(1).unwrap();
        let brokers = cluster.bootstrap_servers();
        for topic in ["input", "plan", "acks"] {
            cluster.create_topic(topic, if topic == "input" { partitions } else { 1 }, 1).unwrap();
        }
        let producer: BaseProducer = rdkafka::ClientConfig::new().set("bootstrap.servers", &brokers).create().unwrap();
        let at_ms = now_ms();
        for (partition, number) in (0..partitions - 1).flat_map(|partition| (0..records).map(move |n| (partition, n))) {
            let value = value("c", at_ms + number / 10);
            producer.send(BaseRecord::<(), _>::to("input").partition(partition).payload(&value)).unwrap();
        }
        producer.flush(PATIENCE).unwrap();
        cluster.partition_leader("input", partitions - 1, None).unwrap();
        let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("stages").join(Kafka::name("leaderless"));
        std::fs::create_dir_all(&dir).unwrap();
        let config = dir.join("keyheat.toml");
        std::fs::write(&config, configuration(&brokers, idle_timeout)).unwrap();
        Self { cluster, dir, config }
    }

    fn run(&self, name: &str) -> Process {
        Process::start(&self.dir, name, &["run", "--config", &self.config.to_string_lossy()])
    }
}

fn configuration(brokers: &str, idle_timeout: &str) -> String {
    format!(
        r#"
[kafka]
brokers = ["{brokers}"]
[input]
topic = "input"
time = "/ts"
start = "earliest"
[time]
idle_timeout = "{idle_timeout}"
[control]
plan_topic = "plan"
acks_topic = "acks"
[observe]
listen = "127.0.0.1:0"
[[keyspace]]
name = "customer"
key = "{{/client}}"
mode = "observe"
"#
    )
}
