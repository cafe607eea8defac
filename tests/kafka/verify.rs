//! `keyheat verify` over a real topic: sound as the service leaves it, and not after somebody else has written there.

use std::process::Command;

use serde_json::Value;

use super::stage::{KEYSPACE, Stage, wait_ready};
use super::support::process::{PATIENCE, program};
use super::support::{Kafka, Record, poll_until};

const LOAD: [&str; 10] = ["--rate", "1000/s", "--keys", "500", "--zipf", "0", "--hot", "whale:30%", "--for", "120s"];
const WHALE: &[u8] = b"plan/customer/whale";

/// Exit code, findings, and the summary.
fn verify(stage: &Stage<'_>, more: &[&str]) -> (Option<i32>, Vec<Value>, Value) {
    let mut command = Command::new(program());
    command.args(["verify", "--config", &stage.config(), "--output", "json"]).args(more);
    let done = command.output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = lines.pop().unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&done.stderr)));
    (done.status.code(), lines, summary)
}

fn faults(findings: &[Value]) -> Vec<&str> {
    let faults = findings.iter().filter(|finding| finding["level"] == "fault");
    faults.map(|finding| finding["check"].as_str().unwrap()).collect()
}

/// The record again under another number: of the same leader, or as one that has lost the lead would send it.
fn forged(record: &Record, seq: u64, nonce: Option<&str>, value: &[u8]) -> Record {
    let mut forged = record.content();
    forged.value = Some(value.to_vec());
    for (name, content) in &mut forged.headers {
        match name.as_str() {
            "kh_seq" => *content = Some(seq.to_string().into_bytes()),
            "kh_nonce" if let Some(nonce) = nonce => *content = Some(nonce.as_bytes().to_vec()),
            _ => {}
        }
    }
    forged
}

#[test]
fn a_sound_topic_is_told_from_one_that_was_tampered_with() {
    let kafka = Kafka::shared();
    let stage = Stage::new(kafka, "verify", &KEYSPACE.replace("MODE", "auto"));
    stage.create_topics();
    let _router = stage.route("router-a");
    let mut service = stage.run("service");
    wait_ready(&service);
    let generator = stage.generate("generator", &LOAD);
    let plan = || stage.plan_records().into_iter().rfind(|record| record.key.as_deref() == Some(WHALE));
    let settled = poll_until("the plan to settle", PATIENCE, || {
        plan().filter(|record| String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).contains("settled"))
    });
    drop(generator);
    poll_until("a topic without findings", PATIENCE, || {
        let (code, findings, summary) = verify(&stage, &[]);
        assert_eq!((code, faults(&findings)), (Some(0), vec![]), "{findings:?}");
        assert_eq!((&summary["routers"], &summary["plans"]), (&1.into(), &1.into()), "{summary}");
        findings.is_empty().then_some(())
    });

    // A late record of somebody who does not lead: the leader answers it, and all is well again.
    let value = settled.value.clone().unwrap();
    kafka.produce(&stage.plan_topic, [forged(&settled, 1, Some("00000000000000aa"), &value).to(0)]);
    let answered = || plan().filter(|record| record.header_text("kh_nonce") == settled.header_text("kh_nonce"));
    poll_until("the leader to answer", PATIENCE, || {
        answered().filter(|record| record.offset > settled.offset).map(|_| ())
    });
    let (code, findings, _) = verify(&stage, &[]);
    assert_eq!(code, Some(0), "{findings:?}");
    assert!(findings.iter().any(|finding| finding["check"] == "refused"), "{findings:?}");

    // Without a leader, a record under its name that nobody can obey.
    service.signal("TERM");
    assert_eq!(service.end(PATIENCE).code(), Some(0), "{}", service.log());
    kafka.produce(&stage.plan_topic, [forged(&settled, 1 << 40, None, b"{}").to(0)]);
    let (code, findings, summary) = verify(&stage, &["--silent-after", "1h"]);
    assert_eq!(code, Some(1), "{findings:?}");
    assert!(faults(&findings).contains(&"refused"), "{findings:?}");
    assert!(summary["faults"].as_u64() >= Some(1), "{summary}");
}
