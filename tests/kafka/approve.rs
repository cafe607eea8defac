//! What a person does with `keyheat plan`: approve and freeze at the running service, and drop a router that is dead.

use std::fs;
use std::process::Command;

use super::control_log::ControlLog;
use super::stage::{KEYSPACE, Stage, wait_ready};
use super::support::process::{PATIENCE, program};
use super::support::{Kafka, poll_until};

const LOAD: [&str; 10] = ["--rate", "1000/s", "--keys", "500", "--zipf", "0", "--hot", "whale:30%", "--for", "300s"];
pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Whether `keyheat plan` did what it was asked, and what it said.
pub(crate) fn plan(addr: &str, action: &str, arguments: &[&str]) -> (bool, String) {
    let url = format!("http://{addr}");
    let mut command = Command::new(program());
    command.args(["plan", action, "--url", &url, "--output", "json"]).args(arguments);
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    (output.status.success(), text)
}

/// Waits until the plans listed say this.
pub(crate) fn wait_listed(addr: &str, what: &str) {
    poll_until(what, PATIENCE, || plan(addr, "list", &["--keyspace", "customer"]).1.contains(what).then_some(()));
}

#[test]
fn a_proposal_goes_on_when_it_is_approved_and_not_while_frozen() {
    let kafka = Kafka::shared();
    let folder = tokens_folder();
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    };
    let token = file("token", &format!("{TOKEN}\n"));
    let stage =
        Stage::new(kafka, "approve", &format!("token_file = {token:?}\n{}", KEYSPACE.replace("MODE", "propose")));
    stage.create_topics();
    let _router = stage.route("router-a");
    let service = stage.run("service");
    let addr = wait_ready(&service);
    let _generator = stage.generate("generator", &LOAD);
    wait_listed(&addr, r#""state":"proposed""#);

    let refused = |token: &str, key: &str| {
        let (done, text) = plan(&addr, "approve", &["--token-file", token, "customer", key]);
        assert!(!done, "{text}");
        text
    };
    assert!(refused(&file("short", "short"), "whale").contains("should be 16 to 256 visible"));
    assert!(refused(&file("other", "another-token-of-enough-length"), "whale").contains("refuses with 401"));
    assert!(refused(&token, "minnow").contains("no proposal that waits"));

    let told = |action: &str, more: &[&str]| {
        let (done, text) = plan(&addr, action, &[&["--token-file", token.as_str()], more].concat());
        assert!(done, "{action}: {text}");
    };
    told("freeze", &[]);
    told("approve", &["customer", "whale"]);
    let status = || super::support::process::get(&addr, "/v1/status").unwrap().1;
    poll_until("the freeze to be shown", PATIENCE, || status().contains(r#""frozen":true"#).then_some(()));
    assert_eq!(ControlLog::of(&stage.plan_records()).states("customer", "whale"), ["proposed"]);
    told("unfreeze", &[]);
    wait_listed(&addr, r#""state":"settled""#);

    let states = ControlLog::of(&stage.plan_records()).states("customer", "whale");
    assert_eq!(states[..5], ["proposed", "prepare", "dual", "moving", "settled"]);
    assert!(service.log().contains("approved by command"), "{}", service.log());
    assert!(!service.log().contains(TOKEN), "the token is nowhere in the log");
}

/// A router that was killed is waited for, until somebody who has made sure of its end drops it.
#[test]
fn a_dead_router_holds_a_plan_up_until_it_is_forgotten() {
    let kafka = Kafka::shared();
    let stage = Stage::new(kafka, "forget", &KEYSPACE.replace("MODE", "auto"));
    stage.create_topics();
    let _living = stage.route("router-a");
    let mut dead = stage.route("router-b");
    dead.signal("KILL");
    dead.end(PATIENCE);
    let service = stage.run("service");
    let addr = wait_ready(&service);
    let _generator = stage.generate("generator", &LOAD);
    wait_listed(&addr, r#""state":"prepare""#);
    let forget = |id: &str, more: &[&str]| {
        let config = stage.config();
        let mut command = Command::new(program());
        command.args(["plan", "forget-router", "--config", &config, id]).args(more);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let sure = ["--down-and-snapshot-gone"];
    assert_eq!(forget("router-b", &[]).0, Some(2), "who has not made sure of it is not heard");
    let (code, text) = forget("router-c", &sure);
    assert_eq!(code, Some(1));
    assert!(text.contains("there are: router-a, router-b"), "{text}");
    assert_eq!(ControlLog::of(&stage.plan_records()).states("customer", "whale"), ["prepare"], "it is waited for");
    let (code, text) = forget("router-b", &sure);
    assert_eq!((code, text.contains("forgotten: router-b (1 registrations")), (Some(0), true), "{text}");
    wait_listed(&addr, r#""state":"settled""#);
}

pub(crate) fn tokens_folder() -> std::path::PathBuf {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("approve-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}
