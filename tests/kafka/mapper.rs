//! A declared mapper against what the events say: believed where it is right, and nothing is placed by it where it is wrong.

use std::collections::BTreeSet;

use keyheat::plan::{Mapper, MapperKind, ShardHash};
use serde_json::Value;

use super::control_log::ControlLog;
use super::stage::{Stage, wait_metric, wait_ready};
use super::support::exposition::Scrape;
use super::support::process::{PATIENCE, get, scrape, sum};
use super::support::{Kafka, poll_until};

const KEYSPACE: &str = r#"
[[keyspace]]
name = "customer"
key = "{/client}"
windows = ["5s/500ms"]
rate = "100/s"
mode = "propose"
writes = "insert"
history = "none"
bucket_rate = "50/s"
mapper = { kind = "modulo", hash = "murmur2", count = 8, prefix = "s" }
"#;

/// What was seen of one stream.
struct Seen {
    all: Scrape,
    mapper: Value,
    log: String,
    /// The proposal for the hot key.
    proposal: Value,
}

/// Events whose shards are by `function`, first without and then with a key that takes 300 of 1,000 events a second beside them.
fn seen(name: &str, function: &str) -> Seen {
    let stage = Stage::new(Kafka::shared(), name, KEYSPACE);
    stage.create_topics();
    let service = stage.run("service");
    let addr = wait_ready(&service);
    let even = ["--rate", "1000/s", "--keys", "1000", "--zipf", "0", "--shards", "8", "--mapper", function];
    let _even = stage.generate("even", &even);
    wait_metric(&addr, "keyheat_mapper_checked_total", 1000.0);
    let status = || {
        let (_, body) = get(&addr, "/v1/status")?;
        serde_json::from_str::<Value>(&body).ok().map(|status| status["keyspaces"][0]["mapper"].clone())
    };
    poll_until("a word on the mapper", PATIENCE, || status().filter(|mapper| mapper["trust"] != "unchecked"));
    let _hot = stage.generate("hot", &[&even[..], &["--hot", "whale:30%"]].concat());
    wait_metric(&addr, "keyheat_plans", 1.0);
    let records = ControlLog::of(&stage.plan_records());
    let proposal = records.plan("customer", "whale").last().and_then(|record| record.value.clone()).unwrap();
    let all = scrape(&addr).unwrap();
    Seen { all, mapper: status().unwrap(), log: service.log(), proposal }
}

/// The first label and the number of buckets that are proposed.
fn proposed(proposal: &Value) -> (u64, u64) {
    let to = &proposal["migration"]["to"];
    let number = |name: &str| to[name].as_u64().unwrap_or_else(|| panic!("{name} of {proposal}"));
    (number("first"), number("buckets"))
}

#[test]
fn a_mapper_that_describes_the_store_is_placed_by() {
    let seen = seen("mapper-right", "modulo-murmur2");
    assert_eq!(seen.mapper["trust"], "confirmed", "{}", seen.mapper);
    assert_eq!((seen.mapper["elsewhere"].as_u64(), seen.mapper["mismatch"].as_f64()), (Some(0), Some(0.0)));
    assert_eq!(sum(&seen.all, "keyheat_mapper_mismatch_ratio"), 0.0);
    assert_eq!(sum(&seen.all, "keyheat_placement_refused"), 0.0);
    let shards = (0..8).map(|shard| format!("s{shard}")).collect();
    let mapper = Mapper::new(MapperKind::Modulo(ShardHash::Murmur2), shards).unwrap();
    let (first, buckets) = proposed(&seen.proposal);
    let places: BTreeSet<&str> =
        (first..first + buckets).map(|label| mapper.shard_name(format!("whale:{label}").as_bytes())).collect();
    // What counts is the load of the hottest shard, not how many there are: two small buckets may share a cool one.
    assert!(places.len() as u64 * 2 >= buckets.min(8), "{}", seen.proposal);
    let share = |name: &str| seen.proposal["prediction"][name].as_f64().unwrap_or_else(|| panic!("{}", seen.proposal));
    assert!(share("hottest_shard_after") < share("hottest_shard_before"), "{}", seen.proposal);
}

#[test]
fn nothing_is_placed_by_a_mapper_that_events_contradict() {
    let seen = seen("mapper-wrong", "maglev");
    assert_eq!(seen.mapper["trust"], "refuted", "{}", seen.mapper);
    // One event in eight is on the right one of eight shards by luck.
    let mismatch = sum(&seen.all, "keyheat_mapper_mismatch_ratio");
    assert!((0.8..0.95).contains(&mismatch), "{mismatch}");
    assert_eq!(sum(&seen.all, "keyheat_placement_refused"), 1.0);
    assert!(seen.log.contains("buckets are placed by luck; correct keyspace.mapper"), "{}", seen.log);
    let (first, buckets) = proposed(&seen.proposal);
    assert!(first == 0 && buckets >= 2, "by luck: {}", seen.proposal);
    for name in ["hottest_shard_before", "hottest_shard_after"] {
        assert!(seen.proposal["prediction"][name].is_null(), "{}", seen.proposal);
    }
}
