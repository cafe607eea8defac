//! The broker of the tests does what the other tests take for granted.

use std::time::Duration;

use super::support::{Kafka, Record, poll_until};

/// Every hundredth is a tombstone, every seventh has no header, one key is empty, one header comes twice and one has no value.
fn thousand_records() -> Vec<Record> {
    (0..1_000)
        .map(|number| {
            let key = if number == 3 { String::new() } else { format!("key-{number}") };
            let record = match number % 100 {
                0 => Record::tombstone(key),
                1 => Record::new(key, [0, 255, b'\n', 10]),
                _ => Record::new(key, format!("value {number}")),
            };
            let mut record = record.to(number % 3).at(1_700_000_000_000 + i64::from(number));
            if number % 7 != 0 {
                record = record.header("kh_seq", number.to_string()).header("kh_epoch", "1").header("kh_seq", "again");
                record.headers.push(("empty".to_owned(), None));
            }
            record
        })
        .collect()
}

#[test]
fn a_thousand_records_read_back_the_same_by_two_clients() {
    let kafka = Kafka::shared();
    let topic = Kafka::name("thousand");
    kafka.create_topic(&topic, 3, &[("retention.ms", "-1")]);
    let mut sent = thousand_records();
    kafka.produce(&topic, sent.clone());

    let read = kafka.read_all(&topic);
    assert_eq!(kafka.offsets(&topic), [(0, (0, 334)), (1, (0, 333)), (2, (0, 333))].into());
    assert_eq!(kafka.kcat_all(&topic), read);
    sent.sort_by_key(|record| (record.partition, record.time_ms));
    for record in &mut sent {
        record.offset = record.time_ms.map(|time_ms| (time_ms - 1_700_000_000_000) / 3);
    }
    assert_eq!(read, sent);
}

#[test]
fn compaction_keeps_the_last_record_of_a_key() {
    let kafka = Kafka::shared();
    let topic = Kafka::name("compacted");
    let settings = [
        ("cleanup.policy", "compact"),
        ("min.cleanable.dirty.ratio", "0.001"),
        ("min.compaction.lag.ms", "0"),
        ("delete.retention.ms", "86400000"),
        ("segment.ms", "100"),
        ("message.timestamp.type", "LogAppendTime"),
    ];
    kafka.create_topic(&topic, 1, &settings);
    let described = kafka.topic_settings(&topic);
    for (setting, value) in settings {
        assert_eq!(described.get(setting).map(String::as_str), Some(value), "{setting}");
    }

    for round in 0..20 {
        kafka.produce(&topic, (0..5).map(|key| Record::new(format!("k{key}"), format!("round {round}"))));
    }
    kafka.produce(&topic, [Record::tombstone("k0")]);
    // A segment is closed, and may then be compacted, only when a record comes after its time.
    let left = poll_until("the last record of each key alone", Duration::from_secs(60), || {
        kafka.produce(&topic, [Record::new("tick", "")]);
        let left: Vec<Record> = kafka.read_all(&topic).iter().map(Record::content).collect();
        let keys = left.iter().filter(|record| record.key.as_deref() != Some(b"tick".as_slice()));
        let keys: Vec<Record> = keys.cloned().collect();
        (keys.len() == 5).then_some(keys)
    });
    let mut expected: Vec<Record> = (1..5).map(|key| Record::new(format!("k{key}"), "round 19")).collect();
    expected.push(Record::tombstone("k0"));
    assert_eq!(left, expected);
}

#[test]
fn a_broker_of_ones_own_stops_freezes_crashes_and_keeps_its_records() {
    let kafka = Kafka::start();
    let topic = Kafka::name("kept");
    kafka.create_topic(&topic, 1, &[("retention.ms", "-1")]);
    kafka.produce(&topic, [Record::event("before the restart")]);

    kafka.restart();
    kafka.produce(&topic, [Record::event("before the freeze")]);

    kafka.pause();
    let consumer: rdkafka::consumer::BaseConsumer = kafka.client().create().expect("a consumer");
    let asked = rdkafka::consumer::Consumer::fetch_metadata(&consumer, Some(&topic), Duration::from_millis(500));
    assert!(asked.is_err(), "a frozen broker answers nobody");
    kafka.resume();
    kafka.produce(&topic, [Record::event("before the crash")]);

    kafka.kill();
    kafka.start_again();
    let values: Vec<Vec<u8>> = kafka.read_all(&topic).into_iter().filter_map(|record| record.value).collect();
    assert_eq!(values, [&b"before the restart"[..], b"before the freeze", b"before the crash"]);
}
