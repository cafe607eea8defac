//! What lies on an input topic, and what is counted of it.

use std::time::Duration;

use super::stage::{Stage, wait_metric, wait_ready};
use super::support::process::{PATIENCE, get, scrape, sum};
use super::support::{Kafka, Record, poll_until};

const OBSERVE: &str = r#"
[[keyspace]]
name = "customer"
key = "{/client}"
windows = ["10s/1s"]
mode = "observe"
"#;

fn event(client: &str, at_ms: i64) -> Record {
    Record::event(format!(r#"{{"ts":{at_ms},"client":"{client}","id":"i{at_ms}","op":"write","shard":"s1"}}"#))
}

fn now_ms() -> i64 {
    keyheat::service::Clock::system().now().as_millis()
}

fn refused(addr: &str, reason: &str) -> f64 {
    scrape(addr).and_then(|all| all.value("keyheat_records_refused_total", &[("reason", reason)])).unwrap_or(-1.0)
}

/// Case K8 (restatedev/restate#4599, fede1024/rust-rdkafka#201): a client that was built without a codec stops at such a batch.
#[test]
fn every_codec_is_read() {
    let kafka = Kafka::shared();
    let stage = Stage::new(kafka, "codecs", OBSERVE);
    stage.create_topics();
    let mut service = stage.run("service");
    let addr = wait_ready(&service);
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let at = now_ms();
        let events = (0..1000).map(|number| event(&format!("c{number}"), at));
        kafka.produce_with(&stage.input, &[("compression.type", codec), ("linger.ms", "20")], events);
    }
    wait_metric(&addr, "keyheat_records_read_total", 5000.0);
    let all = scrape(&addr).unwrap();
    assert_eq!(sum(&all, "keyheat_events_counted_total"), 5000.0, "{}", service.log());
    service.signal("TERM");
    assert_eq!(service.end(Duration::from_secs(15)).code(), Some(0));
}

/// Cases K10 (feldera/feldera#6707) and K11 (spring-projects/spring-kafka#316), and A1, A5, A21: whatever cannot be counted is
/// counted by its reason, once, and the position moves on.
#[test]
fn bad_records_are_counted_by_reason_and_passed() {
    let kafka = Kafka::shared();
    let stage = Stage::new(kafka, "bad", OBSERVE);
    stage.create_topics();
    let at = now_ms();
    let text = |value: String| Record::event(value).to(0);
    let bad = [
        Record::tombstone("k").to(0),
        Record { partition: Some(0), ..Record::default() },
        text(String::new()),
        text("GET / HTTP/1.1".to_owned()),
        text(format!(r#"{{"client":"/a\x22b","ts":{at}}}"#)),
        text(format!("{{\"client\":\"a\",\"ts\":{at}}}\n{{\"client\":\"b\",\"ts\":{at}}}")),
        text(format!(r#"{{"client":"","ts":{at}}}"#)),
        text(format!(r#"{{"other":"a","ts":{at}}}"#)),
        text(r#"{"client":"a"}"#.to_owned()),
        text(r#"{"client":"a","ts":"noon"}"#.to_owned()),
        text(format!(r#"{{"client":"a","ts":{}}}"#, at + 86_400_000)),
        text(format!(r#"{{"client":"{}","ts":{at}}}"#, "x".repeat(2000))),
    ];
    let count = bad.len();
    let good = |number: i64| event("good", at + number).to(0);
    kafka.produce(&stage.input, (0..10).map(good).chain(bad).chain((10..20).map(good)));
    // The newest event moved the window on: this one is behind everything that it holds.
    kafka.produce(&stage.input, [event("old", at - 3_600_000).to(0)]);
    let all_records = 20 + count as i64 + 1;

    let mut service = stage.run("service");
    let addr = wait_ready(&service);
    wait_metric(&addr, "keyheat_records_read_total", all_records as f64);
    for (reason, records) in [
        ("tombstone", 2.0),
        ("empty", 1.0),
        ("not_json", 3.0),
        ("key_empty", 1.0),
        ("key_missing", 1.0),
        ("key_too_long", 1.0),
        ("time_missing", 1.0),
        ("time_invalid", 1.0),
        ("future", 1.0),
        ("too_late", 1.0),
    ] {
        assert_eq!(refused(&addr, reason), records, "{reason}");
    }
    assert_eq!(sum(&scrape(&addr).unwrap(), "keyheat_events_counted_total"), 20.0);
    service.signal("TERM");
    assert_eq!(service.end(Duration::from_secs(15)).code(), Some(0), "{}", service.log());
    assert_eq!(
        kafka.committed(&stage.group, &stage.input).get(&0),
        Some(&all_records),
        "the position is behind all of them"
    );
    assert!(!service.log().contains("noon"), "the log names the place, never the record");
}

/// Case K5 (confluentinc/librdkafka#644): topics that are missing at the start are named, and used when they appear.
#[test]
fn missing_topics_are_named_and_used_when_they_appear() {
    let kafka = Kafka::shared();
    let stage = Stage::new(kafka, "missing", OBSERVE);
    let mut service = stage.run("service");
    let addr = service.http();
    for topic in [&stage.input, &stage.plan_topic, &stage.acks_topic] {
        poll_until(&format!("/readyz to name {topic}"), PATIENCE, || {
            get(&addr, "/readyz").filter(|(status, body)| *status == 503 && body.contains(topic.as_str())).map(|_| ())
        });
    }
    assert_eq!(get(&addr, "/livez").map(|(status, _)| status), Some(200));
    stage.create_topics();
    let at = now_ms();
    kafka.produce(&stage.input, (0..100).map(|number| event("early", at + number)));
    wait_ready(&service);
    wait_metric(&addr, "keyheat_events_counted_total", 100.0);
    assert!(service.is_running());
}

/// Topics whose settings break the contract are named with the remedy; the service stays up, not ready, until they are mended.
#[test]
fn wrong_topic_settings_keep_the_service_from_being_ready() {
    let kafka = Kafka::shared();
    let stage = Stage::new(kafka, "wrong", OBSERVE);
    stage.create_input();
    kafka.create_topic(&stage.plan_topic, 1, &[("cleanup.policy", "delete")]);
    kafka.create_topic(&stage.acks_topic, 1, &[("cleanup.policy", "compact")]);
    let mut service = stage.run("service");
    let addr = service.http();
    poll_until("/readyz to name the setting", PATIENCE, || {
        let named = |body: &str| body.contains("cleanup.policy") && body.contains("kafka-configs.sh");
        get(&addr, "/readyz").filter(|(status, body)| *status == 503 && named(body)).map(|_| ())
    });
    assert!(service.is_running());
}

/// A restart reads back so far that the windows are whole again, whatever was committed.
#[test]
fn a_restart_fills_its_windows_again() {
    let kafka = Kafka::shared();
    let stage = Stage::new(kafka, "refill", &OBSERVE.replace("10s/1s", "60s/1s"));
    stage.create_topics();
    let at = now_ms();
    kafka.produce(&stage.input, (0..500).map(|number| event("again", at + number % 100)));
    for name in ["service-1", "service-2"] {
        let mut service = stage.run(name);
        let addr = wait_ready(&service);
        wait_metric(&addr, "keyheat_events_counted_total", 500.0);
        service.signal("TERM");
        assert_eq!(service.end(Duration::from_secs(15)).code(), Some(0), "{}", service.log());
    }
    assert_eq!(kafka.committed(&stage.group, &stage.input).values().sum::<i64>(), 500);
}
