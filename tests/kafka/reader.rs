//! Topics as others see them: the reader that was written from the document folds them, and every value is what its schema says.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::stage::Stage;
use super::support::Record;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Checks both topics and gives the keys of the plans in force. The last heartbeat agrees with what the reader holds by then.
pub(crate) fn check(stage: &Stage<'_>) -> BTreeSet<String> {
    let records = stage.plan_records();
    for record in records.iter().chain(&stage.kafka.kcat_all(&stage.acks_topic)) {
        check_value(record);
    }
    let outcomes = outcomes(&records);
    let (mut plans, mut heartbeat) = (BTreeSet::new(), None);
    for (record, outcome) in records.iter().zip(&outcomes) {
        let key = String::from_utf8(record.key.clone().unwrap()).unwrap();
        match outcome.as_str() {
            "plan" => drop(plans.insert(key)),
            "plan_removed" => drop(plans.remove(&key)),
            "heartbeat_agrees" | "heartbeat_differs" => heartbeat = Some(outcome),
            // Of an earlier leader, sent twice or too late: never one that cannot be read.
            "refused:not_leader"
            | "refused:old_version"
            | "refused:void"
            | "claim_won"
            | "claim_lost"
            | "advice"
            | "advice_removed" => {}
            other => panic!("{key} at {:?}: {other}", record.offset),
        }
    }
    assert_eq!(heartbeat.map(String::as_str), Some("heartbeat_agrees"));
    plans
}

/// What the reader says of each record.
fn outcomes(records: &[Record]) -> Vec<String> {
    let coded = |bytes: &Vec<u8>| STANDARD.encode(bytes);
    let written = |record: &Record| {
        let headers = record.headers.iter();
        let headers: Vec<_> =
            headers.map(|(name, value)| json!({"name": name, "value_b64": value.as_ref().map(coded)})).collect();
        json!({
            "offset": record.offset, "log_time_ms": record.time_ms, "headers": headers,
            "key_b64": record.key.as_ref().map(coded), "value_b64": record.value.as_ref().map(coded),
        })
    };
    let log = json!({"records": records.iter().map(written).collect::<Vec<_>>(), "asks": []});
    let program = root().join("tests/protocol/reader.py");
    let mut child = Command::new("python3").arg(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // It reads its line to the end before it answers.
    writeln!(input, "{log}").unwrap();
    drop(input);
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "reader.py: {}", done.status);
    let said: Value = serde_json::from_slice(&done.stdout).unwrap();
    said["then"].as_array().unwrap().iter().map(|said| said["outcome"].as_str().unwrap().to_owned()).collect()
}

/// A value is what the schema of its kind says, as it is checked in.
fn check_value(record: &Record) {
    let Some(value) = &record.value else { return };
    let key = String::from_utf8(record.key.clone().unwrap()).unwrap();
    let kind = key.split('/').next().unwrap();
    let value: Value = serde_json::from_slice(value).unwrap();
    let schema = Path::new("docs/schemas/v1").join(format!("{kind}.schema.json"));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(root().join(schema)).unwrap()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let faults: Vec<_> = validator.iter_errors(&value).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{key}: {faults:?}: {value}");
}
