//! `keyheat run`, with what waits in its client's queues, and what `keyheat check` says of it.

use std::time::Duration;

use crate::events::{BASE_MS, events_with, write};
use crate::resident::{LIMIT, computed, is_told, mebibytes, peak};
use crate::stage::{Stage, wait_ready};
use crate::support::process::{scrape, sum};
use crate::support::{Kafka, Record, poll_until};

/// One keyspace as by default, read from the start of the topic, all of it being history.
const DEFAULTS: &str = r#"
[[keyspace]]
name = "customer"
key = "{/client}"
mode = "observe"
"#;

fn keys() -> u64 {
    std::env::var("KEYHEAT_MEMORY_KEYS").map_or(3_000_000, |keys| keys.parse().unwrap())
}

#[test]
fn the_service_stays_under_its_limit_and_under_what_check_says() {
    if !is_told() {
        return;
    }
    let kafka = Kafka::shared();
    let stage = Stage::with_input(kafka, "memory", "start = \"earliest\"", DEFAULTS);
    stage.create_topics();
    let total = events_with(keys());
    let mut text = String::new();
    let records = (0..total).map(|number| {
        write(&mut text, number);
        let time_ms = BASE_MS + i64::try_from(number / 50).unwrap();
        Record { time_ms: Some(time_ms), ..Record::event(text.clone()) }
    });
    kafka.produce_with(&stage.input, &[("compression.type", "lz4"), ("linger.ms", "50")], records);
    let computed = computed(&stage.config());

    let mut service = stage.run("service");
    let addr = wait_ready(&service);
    let done = poll_until("all records to be read", Duration::from_secs(600), || {
        let all = scrape(&addr)?;
        (sum(&all, "keyheat_records_read_total") >= total as f64).then_some(all)
    });
    let peak = peak(service.id()).unwrap();
    service.signal("TERM");
    assert_eq!(service.end(Duration::from_secs(15)).code(), Some(0), "{}", service.log());
    println!("notice: run took {} at most for {} keys; check says {computed}", mebibytes(peak), keys());
    assert!(sum(&done, "keyheat_events_counted_total") > 0.0);
    assert!(computed["counting"].as_u64().unwrap() < LIMIT / 2, "a default keyspace: {computed}");
    assert!(computed["total"].as_u64().unwrap() < LIMIT, "{computed}");
    assert!(peak < LIMIT, "{} of {}", mebibytes(peak), mebibytes(LIMIT));
}
