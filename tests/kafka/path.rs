//! The whole path on a real broker: events, a hot key, a plan, two router processes that obey, and the way back.

use std::collections::BTreeSet;
use std::time::Duration;

use super::control_log::{ControlLog, Counted};
use super::reader;
use super::stage::{Stage, wait_metric, wait_ready};
use super::support::process::{PATIENCE, Process, scrape, sum};
use super::support::{Kafka, Record, now, poll_until};

/// Absolute threshold 100/s; every hot key of these tests has more than twice that, every other key less than a tenth.
const KEYSPACE: &str = r#"
[plan]
min_dwell = "1s"
[[keyspace]]
name = "customer"
key = "{/client}"
windows = ["5s/500ms", "40s/2s"]
rate = "100/s"
mode = "auto"
writes = "insert"
history = "none"
bucket_rate = "60/s"
"#;

const HOT: [&str; 3] = ["whale", "viral/object", "ünïcode"];
const EVENTS: u64 = 200_000;

fn hot_load() -> Vec<String> {
    // The generator does not obey plans: shards that it named would say that no split helps.
    let arguments = ["--rate", "3000/s", "--keys", "1000", "--zipf", "0", "--seed", "11", "--shards", "0"];
    let mut arguments: Vec<String> = arguments.map(str::to_owned).into();
    for key in HOT {
        arguments.extend(["--hot".to_owned(), format!("{key}:8%")]);
    }
    arguments
}

fn load<'a>(stage: &Stage<'_>, name: &str, common: &'a [String], more: &[&'a str]) -> Process {
    let mut arguments: Vec<&str> = common.iter().map(String::as_str).collect();
    arguments.extend(more);
    stage.generate(name, &arguments)
}

fn log_of(stage: &Stage<'_>) -> ControlLog {
    ControlLog::of(&stage.plan_records())
}

fn all_settled(log: &ControlLog) -> bool {
    HOT.iter().all(|key| log.states("customer", key).last().is_some_and(|state| state == "settled"))
}

/// 200,000 events with three hot keys; the broker is gone for 30 s just when the first migration has begun; then the service is
/// killed and started again under load.
#[test]
fn one_winning_plan_a_hot_key_whatever_happens_to_broker_and_service() {
    let kafka = Kafka::start();
    let stage = Stage::new(&kafka, "path", KEYSPACE);
    stage.create_topics();
    let mut routers = [stage.route("router-a"), stage.route("router-b")];
    let mut service = stage.run("service");
    let addr = wait_ready(&service);

    let common = hot_load();
    let mut generator = load(&stage, "generator", &common, &["--count", &EVENTS.to_string()]);
    poll_until("the first prepare", PATIENCE, || {
        routers[0].lines().iter().any(|line| line.contains(r#""state":"prepare""#)).then_some(())
    });
    kafka.stop();
    let outage_ends = now() + Duration::from_secs(30);
    poll_until("the end of the outage", PATIENCE, || {
        assert!(service.is_running(), "the service ended without a broker: {}", service.log());
        (now() >= outage_ends).then_some(())
    });
    kafka.start_again();

    assert!(generator.end(PATIENCE * 2).success(), "{}", generator.log());
    wait_metric(&addr, "keyheat_events_counted_total", EVENTS as f64);
    let all = scrape(&addr).unwrap();
    assert_eq!(sum(&all, "keyheat_records_read_total"), EVENTS as f64, "exact, over the outage");
    assert_eq!(sum(&all, "keyheat_records_refused_total"), 0.0);
    poll_until("all three plans to settle", PATIENCE, || all_settled(&log_of(&stage)).then_some(()));
    check_one_plan_each(&log_of(&stage));

    let again = load(&stage, "generator-2", &common, &["--for", "75s"]);
    let before = wait_metric(&addr, "keyheat_events_counted_total", EVENTS as f64 + 20_000.0);
    service.signal("KILL");
    service.end(PATIENCE);
    let service_2 = stage.run("service-2");
    let addr = wait_ready(&service_2);
    // Longer than its longest window under load: what it would change, it has changed.
    wait_metric(&addr, "keyheat_events_counted_total", 3000.0 * 50.0);
    assert!(before > EVENTS as f64);
    let log = log_of(&stage);
    assert!(log.epochs.len() >= 2 && log.epochs.is_sorted(), "a restart claims a higher epoch: {:?}", log.epochs);
    check_one_plan_each(&log);
    let claimed = log.epochs.last().unwrap();
    // What a split was measured to do is told when it can be: that changes nothing.
    let tells = |record: &Counted| record.value.as_ref().is_some_and(|value| value["outcome"]["helped"] == true);
    let plans = log.counted.iter().filter(|record| record.epoch == *claimed && record.key.starts_with("plan/"));
    let flapped: Vec<_> = plans.filter(|record| !tells(record)).collect();
    assert!(flapped.is_empty(), "the restarted service changed plans: {flapped:?}");
    drop(again);

    let mut service = service_2;
    service.signal("TERM");
    assert_eq!(service.end(Duration::from_secs(15)).code(), Some(0), "{}", service.log());
    for router in &mut routers {
        assert!(router.is_running(), "{}", router.log());
        let applied = router.lines().iter().filter(|line| line.contains(r#""state":"settled""#)).count();
        assert!(applied >= HOT.len(), "every router saw every plan settle: {:?}", router.lines());
        router.signal("TERM");
        assert_eq!(router.end(Duration::from_secs(15)).code(), Some(0), "{}", router.log());
    }
    let plans = reader::check(&stage);
    assert!(HOT.iter().all(|key| plans.contains(&format!("plan/customer/{key}"))), "{plans:?}");
    let members = stage.kafka.kcat_all(&stage.acks_topic);
    let left: BTreeSet<_> = members.iter().filter(|r| r.value.is_none()).filter_map(|r| r.key.clone()).collect();
    assert_eq!(left.len(), 2, "both routers left by tombstone");
}

/// Exactly one split layout a hot key, walked through its phases in order, and nothing for any other key.
fn check_one_plan_each(log: &ControlLog) {
    assert_eq!(log.planned(), HOT.iter().map(|key| (*key).to_owned()).collect(), "hot keys and no others");
    for key in HOT {
        assert_eq!(log.layouts("customer", key), [0, 1].into(), "{key}: the bare layout and one split");
        let mut states = log.states("customer", key);
        states.dedup();
        assert_eq!(states, ["prepare", "dual", "moving", "settled"], "{key}");
        let last = log.plan("customer", key).last().unwrap().value.clone().unwrap();
        // Peaks of 240/s and a quarter more over buckets of 60/s.
        assert_eq!(last["write"]["buckets"], 8, "{key}: {last}");
        assert_eq!(last["read"].as_array().unwrap().len(), 1, "{key}: {last}");
        assert_eq!(last["key"], key);
        assert!(last["evidence"]["count"]["lower"].as_u64() >= last["evidence"]["threshold"].as_u64(), "{key}: {last}");
    }
}

/// A key that cools goes back to the bare layout, and its record ends in a tombstone once the owner has reported the old place
/// empty.
#[test]
fn a_cool_key_goes_back_and_its_record_ends_in_a_tombstone() {
    let kafka = Kafka::shared();
    let keyspace = KEYSPACE
        .replace("[[keyspace]]", "tombstone_after = \"1s\"\n[[keyspace]]")
        .replace("history = \"none\"", "history = \"none\"\nquiet = \"3s\"\nclear_after = \"2s\"");
    // Half as much again over two buckets, half as little over four: a machine that stutters changes nothing.
    let keyspace = keyspace.replace("bucket_rate = \"60/s\"", "bucket_rate = \"150/s\"");
    let keyspace = keyspace.replace("tombstone_after", "[protocol]\ntombstone_after");
    let stage = Stage::new(kafka, "back", &keyspace);
    stage.create_topics();
    let router = stage.route("router-a");
    let mut service = stage.run("service");
    wait_ready(&service);
    let load = ["--rate", "2000/s", "--keys", "1000", "--zipf", "0", "--hot", "whale:15%:0s..55s", "--for", "200s"];
    let load = [&load[..], &["--shards", "0"]].concat();
    let _generator = stage.generate("generator", &load);

    let mut reported = BTreeSet::new();
    let log = poll_until("the tombstone", PATIENCE * 3, || {
        let log = log_of(&stage);
        report_retired(&stage, &log, &mut reported);
        let ended = log.states("customer", "whale").last().is_some_and(|state| state == "-");
        ended.then_some(log)
    });
    assert_eq!(log.planned(), ["whale".to_owned()].into());
    let mut states = log.states("customer", "whale");
    states.dedup();
    let walk = ["prepare", "dual", "moving", "settled"];
    let (ended, walks) = states.split_last().unwrap();
    assert_eq!(ended, "-");
    assert!(walks.chunks(walk.len()).all(|states| states == walk), "whole migrations only: {states:?}");
    let buckets: Vec<u64> = log.buckets("customer", "whale");
    assert_eq!((buckets.first(), buckets.last()), (Some(&4), Some(&1)), "split, and back: {buckets:?}");
    let why: Vec<_> = log
        .plan("customer", "whale")
        .iter()
        .filter_map(|record| record.value.as_ref())
        .filter(|value| value["state"] == "prepare")
        .map(|value| {
            format!(
                "{} buckets at {} {}",
                value["read"][0]["buckets"], value["evidence"]["rate_per_s"], value["prediction"]
            )
        })
        .collect();
    assert!(buckets.is_sorted_by(|earlier, later| earlier > later), "no growth on the way: {buckets:?} {why:#?}");
    poll_until("the router to forget the key", PATIENCE, || {
        router.lines().iter().any(|line| line.contains(r#""event":"removed""#)).then_some(())
    });
    service.signal("TERM");
    assert_eq!(service.end(Duration::from_secs(15)).code(), Some(0), "{}", service.log());
    assert!(reader::check(&stage).is_empty(), "the key has no plan any more");
}

/// The owner's part with `history = none`: each layout that a record lists under `retire` is reported empty, once.
fn report_retired(stage: &Stage<'_>, log: &ControlLog, reported: &mut BTreeSet<String>) {
    for value in log.plan("customer", "whale").into_iter().filter_map(|record| record.value.as_ref()) {
        for layout in value["retire"].as_array().into_iter().flatten() {
            let (number, migration) = (layout["layout"].as_u64().unwrap(), &value["migration"]["version"]);
            if !reported.insert(format!("{number} {migration}")) {
                continue;
            }
            let report = serde_json::json!({
                "schema": 1, "keyspace": "customer", "key": "whale", "layout": number, "migration": migration,
                "remaining": 0, "time": "2026-11-30T10:11:32.120Z",
            });
            let record = Record::new(format!("retired/customer/whale/{number}"), report.to_string());
            stage.kafka.produce(&stage.acks_topic, [record.to(0)]);
        }
    }
}
