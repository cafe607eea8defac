//! Rules that change while the service runs: SIGHUP.

use super::control_log::ControlLog;
use super::stage::{Stage, wait_metric, wait_ready};
use super::support::exposition::Scrape;
use super::support::process::{PATIENCE, Process, get, scrape};
use super::support::{Kafka, poll_until};

/// 500 events in the shorter window.
const KEYSPACE: &str = r#"
[[keyspace]]
name = "customer"
key = "{/client}"
windows = ["5s/500ms", "10s/1s"]
rate = "100/s"
mode = "propose"
writes = "insert"
history = "none"
bucket_rate = "15/s"
"#;

/// 100 events in the shorter window.
const TENANT: &str = "[[keyspace.rules]]\nkeys = \"acme/*\"\nrate = \"20/s\"\n";

/// `acme/1` has 50 a second, 250 in the shorter window: half of the threshold for all keys. 30 s of it at the least.
const EVENTS: u64 = 60_000;
const LOAD: [&str; 8] = ["--rate", "1000/s", "--keys", "500", "--zipf", "0", "--hot", "acme/1:5%"];

fn reloads(all: &Scrape, result: &str) -> f64 {
    let mut series = all.series.iter().filter(|series| series.name == "keyheat_config_reloads_total");
    series.find(|series| series.labels.get("result").is_some_and(|value| value == result)).expect("it is there").value
}

/// Sends SIGHUP and waits until it has come to that once more; gives what the log has since.
fn reload(service: &Process, addr: &str, result: &str) -> String {
    let (before, from) = (reloads(&scrape(addr).unwrap(), result), service.log().len());
    service.signal("HUP");
    poll_until(&format!("a reload that is {result}"), PATIENCE, || {
        (reloads(&scrape(addr)?, result) > before).then_some(())
    });
    service.log().get(from..).unwrap().to_owned()
}

fn status(addr: &str) -> serde_json::Value {
    let (_, body) = get(addr, "/v1/status").unwrap();
    serde_json::from_str(&body).unwrap()
}

fn hot_key(addr: &str) -> Option<serde_json::Value> {
    let (_, body) = get(addr, "/v1/hot-keys")?;
    let keys: serde_json::Value = serde_json::from_str(&body).ok()?;
    keys["keyspaces"][0]["keys"].as_array()?.iter().find(|key| key["state"] == "hot").cloned()
}

/// The lines of the log with this message, as JSON.
fn lines(log: &str, message: &str) -> Vec<serde_json::Value> {
    let lines = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    lines.filter(|line| line["message"].as_str().is_some_and(|said| said.starts_with(message))).collect()
}

#[test]
fn sighup_brings_other_rules_into_force_without_a_restart_and_nothing_else() {
    let kafka = Kafka::shared();
    let stage = Stage::new(kafka, "reload", KEYSPACE);
    stage.create_topics();
    let _router = stage.route("router");
    let mut service = stage.run("service");
    let addr = wait_ready(&service);
    let count = EVENTS.to_string();
    let mut arguments = LOAD.to_vec();
    arguments.extend(["--count", count.as_str()]);
    let mut generator = stage.generate("generator", &arguments);
    // Longer than the longest window and what waits in it.
    wait_metric(&addr, "keyheat_events_counted_total", 20_000.0);
    let before = status(&addr);
    assert_eq!(before["keyspaces"][0]["hot_keys"], 0, "{before}");

    // Faults: all of them are named, and nothing changes, not even the rule that is good.
    stage.configure("", &format!("{KEYSPACE}min_keys = 0\nclears = 1\n{TENANT}"));
    let told = reload(&service, &addr, "refused");
    for fault in ["keyspace[0].min_keys: got 0; should be", "keyspace[0].clears: unknown key"] {
        assert!(told.contains(fault), "{told}");
    }
    // Another setting: that is named.
    stage.configure("", &format!("{}{TENANT}", KEYSPACE.replace("10s/1s", "20s/1s")));
    let told = reload(&service, &addr, "refused");
    assert!(told.contains("keyspace[0].windows differs: only rules change while it runs"), "{told}");
    // What is in force.
    stage.configure("", KEYSPACE);
    reload(&service, &addr, "unchanged");
    let after = status(&addr);
    assert_eq!((&after["config"], &after["keyspaces"][0]["hot_keys"]), (&before["config"], &0.into()));
    assert_eq!(lines(&service.log(), "key hot").len() + lines(&service.log(), "rules changed").len(), 0);

    // A tenant's threshold: in force at once, over all that was counted before.
    stage.configure("", &format!("{KEYSPACE}{TENANT}"));
    let told = reload(&service, &addr, "applied");
    let changed = lines(&told, "rules changed");
    assert_eq!(changed.len(), 1, "{told}");
    assert!(changed[0]["message"].as_str().unwrap().starts_with("rules changed: fully in force "), "{told}");
    let key = poll_until("acme/1 to be hot", PATIENCE, || hot_key(&addr));
    assert_eq!((key["key"].as_str(), key["threshold"].as_u64()), (Some("acme/1"), Some(100)), "{key}");
    let verdicts = lines(&service.log(), "key hot");
    assert_eq!(verdicts.len(), 1, "{verdicts:?}");
    let lower: u64 = verdicts[0]["count"].as_str().unwrap().split("..").next().unwrap().parse().unwrap();
    // Counted anew it would be 100, the threshold.
    assert!(lower >= 150, "counted from the change on: {}", verdicts[0]);
    assert_eq!((verdicts[0]["name"].as_str(), verdicts[0]["threshold"].as_u64()), (Some("acme/1"), Some(100)));
    assert_eq!(changed[0]["config"], status(&addr)["config"]);
    assert_ne!(changed[0]["config"], before["config"]);

    // Evidence names the configuration by which it was judged.
    let record = poll_until("the proposal", PATIENCE, || {
        let log = ControlLog::of(&stage.plan_records());
        log.plan("customer", "acme/1").last().and_then(|record| record.value.clone())
    });
    assert_eq!(record["evidence"]["config"], changed[0]["config"], "{record}");
    assert_eq!(record["evidence"]["threshold"], 100, "{record}");

    assert!(generator.end(PATIENCE * 2).success(), "{}", generator.log());
    wait_metric(&addr, "keyheat_events_counted_total", EVENTS as f64);
    let all = scrape(&addr).unwrap();
    let total = |name: &str| super::support::process::sum(&all, name);
    assert_eq!(total("keyheat_records_read_total"), EVENTS as f64, "nothing is read twice or left out");
    assert_eq!(total("keyheat_records_refused_total"), 0.0);
    assert_eq!((reloads(&all, "applied"), reloads(&all, "refused"), reloads(&all, "unchanged")), (1.0, 2.0, 1.0));
    assert!(service.is_running());
}
