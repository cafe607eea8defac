//! Case O1: keys without end leave the number of series as it is.

use std::time::Duration;

use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

use super::support::process::scrape;
use super::support::{Kafka, poll_until};
use crate::service;

/// Distinct keys of the flood.
const KEYS: u32 = 1_000_000;
const LIMIT: Duration = Duration::from_secs(240);

#[expect(clippy::disallowed_methods, reason = "events have to be of now")]
fn now_ms_since_epoch() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).expect("after 1970").as_millis()
}

fn flood(kafka: &Kafka, topic: &str) {
    let mut client = kafka.client();
    client.set("linger.ms", "20").set("queue.buffering.max.messages", "200000").set("compression.type", "lz4");
    let producer: BaseProducer = client.create().expect("a producer");
    let mut now_ms = now_ms_since_epoch();
    for number in 0..KEYS {
        // Odd keys and shards too: each is another label if one ever leaked.
        let event =
            format!(r#"{{"ts":{now_ms},"client":"user\"{number}\n\\","shard":"s{number}","path":"/p/{number}"}}"#);
        let mut record = BaseRecord::<(), str>::to(topic).payload(&event);
        while let Err((_, back)) = producer.send(record) {
            record = back;
            producer.poll(Duration::from_millis(10));
        }
        if number % 1000 == 0 {
            now_ms = now_ms_since_epoch();
            producer.poll(Duration::ZERO);
        }
    }
    producer.flush(Duration::from_secs(60)).expect("the flood is out");
}

#[test]
fn a_million_keys_make_no_series_o1() {
    let kafka = Kafka::shared();
    let topic = Kafka::name("flood");
    kafka.create_topic(&topic, 4, &[]);
    let (plan, acks) = (Kafka::name("plan"), Kafka::name("acks"));
    let config = format!(
        "[kafka]\nbrokers = [{:?}]\n\n[input]\ntopic = {topic:?}\ngroup = {topic:?}\nstart = \"earliest\"\ntime = \"/ts\"\nshard = \"/shard\"\n\n\
         [[keyspace]]\nname = \"client\"\nkey = \"/client\"\nmedian = 10\nmode = \"observe\"\n\n[[keyspace]]\nname = \"path\"\nkey = \"/path\"\nmedian = 10\n\
         mode = \"observe\"\n\n[control]\nplan_topic = {plan:?}\nacks_topic = {acks:?}\n",
        kafka.bootstrap
    );
    let (service, address) = service("flood", &config);
    let before = scrape(&address).expect("a page").series.len();
    flood(kafka, &topic);
    let after = poll_until("the flood to be read", LIMIT, || {
        // A scrape as often as a real one at most: rendering and reading a page is work too.
        std::thread::sleep(Duration::from_secs(1));
        let scrape = scrape(&address)?;
        let read = scrape.value("keyheat_records_read_total", &[]).unwrap_or_default();
        (read >= f64::from(KEYS)).then_some(scrape)
    });
    let counted = after.value("keyheat_events_counted_total", &[("keyspace", "client")]);
    assert_eq!(counted, Some(f64::from(KEYS)), "{}", service.log());
    let series = after.series.len();
    assert!(series < 2000, "{series} series, {before} before the flood");
    assert!(after.series.iter().all(|series| series.labels.values().all(|value| value.chars().count() < 100)));
}
