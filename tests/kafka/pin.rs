//! What a person says of a key that nobody asks for: pinned, withdrawn, blocked; over a change of leader.

use std::fs;

use super::approve::{TOKEN, plan, tokens_folder, wait_listed};
use super::control_log::ControlLog;
use super::stage::{KEYSPACE, Stage, wait_ready};
use super::support::process::PATIENCE;
use super::support::{Kafka, poll_until};

#[test]
fn a_quiet_key_is_split_by_a_pin_and_goes_back_by_withdrawal() {
    let kafka = Kafka::shared();
    let token = tokens_folder().join("pin-token");
    fs::write(&token, TOKEN).unwrap();
    let keyspace = KEYSPACE.replace("MODE", "propose").replace(r#""none""#, "\"expire\"\nexpire_after = \"1s\"");
    let stage = Stage::new(kafka, "pin", &format!("token_file = {token:?}\n{keyspace}"));
    stage.create_topics();
    let router = stage.route("router-a");
    let service = stage.run("service");
    let addr = wait_ready(&service);
    let tell = |addr: &str, action: &str, more: &[&str]| {
        plan(addr, action, &[&["--token-file", token.to_str().unwrap(), "customer"], more].concat())
    };
    let shown = |addr: &str, key: &str| -> serde_json::Value {
        let (done, text) = plan(addr, "show", &["customer", key]);
        assert!(done, "{text}");
        serde_json::from_str(&text).unwrap()
    };
    poll_until("the service to lead", PATIENCE, || (shown(&addr, "whale")["leader"] == true).then_some(()));

    for (action, more, word) in [
        ("pin", &["whale", "3"][..], "power of two"),
        ("pin", &["whale", "4", "--until", "2020-01-01T00:00:00Z"], "which is past"),
        ("unpin", &["whale"], "not pinned"),
        ("withdraw", &["whale"], "not split"),
    ] {
        let (done, text) = tell(&addr, action, more);
        assert!(!done && text.contains(word), "{action} {more:?}: {text}");
    }
    let (done, text) = tell(&addr, "pin", &["whale", "4", "--until", "2090-01-01T00:00:00Z", "--reason", "a sale"]);
    assert!(done && text.contains("pinned to 4 buckets until 2090-01-01T00:00:00Z"), "{text}");
    wait_listed(&addr, r#""state":"settled""#);
    wait_listed(&addr, r#""reason":"a sale""#);
    let settled = |addr: &str| {
        let known = shown(addr, "whale");
        (known["plan"]["record"]["retire"].is_array() && known["routers"][0]["acknowledged"] == true).then_some(known)
    };
    let known = poll_until("the router to have acknowledged", PATIENCE, || settled(&addr));
    assert_eq!(known["plan"]["record"]["evidence"]["rule"], "pinned");
    assert_eq!((&known["routers"][0]["id"], &known["policy"]["stands"]), (&"router-a".into(), &"in_force".into()));

    // The next leader has it from the topic.
    drop(service);
    let service = stage.run("service-2");
    let addr = wait_ready(&service);
    let known = poll_until("the next leader to know it", PATIENCE, || {
        let known = shown(&addr, "whale");
        (known["leader"] == true && known["policy"].is_object()).then_some(known)
    });
    assert_eq!(known["policy"]["record"]["pin"]["buckets"], 4);
    let (done, text) = tell(&addr, "withdraw", &["whale"]);
    assert!(!done && text.contains("unpin it first"), "{text}");
    let (done, text) = tell(&addr, "withdraw", &["whale", "--block"]);
    assert!(done && text.contains("on its way back to the bare key"), "{text}");
    let log = || ControlLog::of(&stage.plan_records());
    poll_until("the bare key", PATIENCE, || (log().buckets("customer", "whale") == [4, 1]).then_some(()));
    assert_eq!(shown(&addr, "whale")["policy"]["record"]["block"], true);
    let states = log().states("customer", "whale");
    assert_eq!(states[..4], ["prepare", "dual", "moving", "settled"], "nobody had to approve it");
    assert!(router.lines().iter().any(|line| line.contains("whale")), "{:?}", router.lines());
    assert!(service.log().contains("by command"), "{}", service.log());
    let (done, text) = tell(&addr, "unblock", &["whale"]);
    assert!(done && text.contains("no longer blocked"), "{text}");
    assert!(shown(&addr, "whale")["policy"].is_null());
}
