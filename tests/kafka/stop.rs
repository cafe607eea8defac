//! Stopping, with and without a broker; and who decides how much.

use std::time::Duration;

use super::control_log::ControlLog;
use super::stage::{KEYSPACE, Stage, wait_metric, wait_ready};
use super::support::process::{PATIENCE, Process, scrape};
use super::support::{Kafka, poll_until};

const LOAD: [&str; 10] = ["--rate", "1000/s", "--keys", "500", "--zipf", "0", "--hot", "whale:30%", "--for", "120s"];

fn stage<'a>(kafka: &'a Kafka, name: &str, mode: &str) -> Stage<'a> {
    let stage = Stage::new(kafka, name, &KEYSPACE.replace("MODE", mode));
    stage.create_topics();
    stage
}

fn wait_hot(addr: &str) {
    wait_metric(addr, "keyheat_hot_keys", 1.0);
    poll_until("the warm-up to end", PATIENCE, || {
        let all = scrape(addr)?;
        (all.value("keyheat_condition", &[("condition", "warming_up")])? == 0.0).then_some(())
    });
}

/// Fault F4 and case K19 (scality/backbeat#211): under load, with a migration under way.
#[test]
fn a_stop_under_load_ends_well_within_the_grace_time() {
    let kafka = Kafka::shared();
    let stage = stage(kafka, "stop", "auto");
    let _router = stage.route("router-a");
    let mut service = stage.run("service");
    let addr = wait_ready(&service);
    let _generator = stage.generate("generator", &LOAD);
    wait_hot(&addr);
    service.signal("TERM");
    assert_eq!(service.end(Duration::from_secs(12)).code(), Some(0), "{}", service.log());
    let committed: i64 = kafka.committed(&stage.group, &stage.input).values().sum();
    assert!(committed > 0, "positions were committed");
    ControlLog::of(&stage.plan_records());
}

/// Fault F5: what is wanted cannot be sent; it is listed, and the exit code says so. Not a hang, not a crash.
#[test]
fn a_stop_without_a_broker_lists_what_is_unsent() {
    let kafka = Kafka::start();
    let many = KEYSPACE.replace("MODE", "propose").replace("100/s", "10/s").replace("60/s", "15/s");
    let budget = "[plan]\nmax_changes_per_minute = 600\nmax_splits = 1000\n";
    let stage = Stage::new(&kafka, "dead", &format!("{budget}{many}"));
    stage.create_topics();
    let mut service = stage.run("service");
    let addr = wait_ready(&service);
    let hot: Vec<String> = (0..100).map(|number| format!("--hot=whale-{number}:0.8%")).collect();
    let mut load = vec!["--rate", "2500/s", "--keys", "2000", "--zipf", "0", "--for", "120s"];
    load.extend(hot.iter().map(String::as_str));
    let generator = stage.generate("generator", &load);
    // A hundred proposals are wanted at the end of the warm-up, and sent one after the other.
    wait_metric(&addr, "keyheat_plans", 1.0);
    kafka.kill();
    service.signal("TERM");
    drop(generator);
    let status = service.end(Duration::from_secs(15));
    assert_eq!(status.code(), Some(3), "{}", service.log());
    assert!(service.log().contains("plan/customer/whale-"), "{}", service.log());
}

/// A service without anything to say ends well, broker or not.
#[test]
fn a_quiet_service_ends_well_without_a_broker() {
    let kafka = Kafka::start();
    let stage = stage(&kafka, "quiet", "auto");
    let mut service = stage.run("service");
    wait_ready(&service);
    kafka.kill();
    service.signal("TERM");
    assert_eq!(service.end(Duration::from_secs(15)).code(), Some(0), "{}", service.log());
}

fn records_after_hot(mode: &str) -> (ControlLog, Process) {
    let kafka = Kafka::shared();
    let stage = stage(kafka, mode, mode);
    let _router = stage.route("router-a");
    let service = stage.run("service");
    let addr = wait_ready(&service);
    let generator = stage.generate("generator", &LOAD);
    wait_hot(&addr);
    let counted = wait_metric(&addr, "keyheat_events_counted_total", 1.0);
    wait_metric(&addr, "keyheat_events_counted_total", counted + 5000.0);
    drop(generator);
    (ControlLog::of(&stage.plan_records()), service)
}

/// Case H26 (twitter/pelikan#148): seen in metrics and log, and nothing on the topic.
#[test]
fn observe_publishes_no_plan() {
    let (log, service) = records_after_hot("observe");
    assert_eq!(log.planned().len(), 0, "{:?}", log.counted);
    assert!(service.log().contains("whale"), "the verdict is in the log");
}

#[test]
fn propose_publishes_a_proposal_that_waits() {
    let (log, _service) = records_after_hot("propose");
    assert_eq!(log.states("customer", "whale"), ["proposed"]);
    assert_eq!(log.layouts("customer", "whale"), [0].into(), "a proposal places nothing");
}
