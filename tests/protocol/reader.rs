//! A reader in another language, written from the document alone, says of every log what this project says.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use keyheat::protocol::{Heartbeat, LogRecord, PlanTable, PlanTopicKey};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use super::golden_log;
use super::judge::{Ask, judge, read, written};
use super::log::{Log, customer, headers, plan, time, version};
use super::mutate::{Mutation, mutation};

/// What the reader says of each log.
fn said_of(logs: &[Value]) -> Vec<Value> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/protocol/reader.py");
    let mut child = Command::new("python3")
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut input = child.stdin.take().unwrap();
    let lines: String = logs.iter().map(|log| format!("{log}\n")).collect();
    let feeding = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let done = child.wait_with_output().unwrap();
    feeding.join().unwrap().unwrap();
    assert!(done.status.success(), "reader.py: {}", done.status);
    let said: Vec<Value> =
        String::from_utf8(done.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(said.len(), logs.len());
    said
}

#[test]
fn the_reader_agrees_on_the_released_log() {
    let file = golden_log::released();
    let said = said_of(&[json!({"records": file["records"], "asks": file["asks"]})]);
    for part in ["then", "places"] {
        let (theirs, ours) = (said[0][part].as_array().unwrap(), file["said"][part].as_array().unwrap());
        for (at, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
            assert_eq!(theirs, ours, "{part} {at}");
        }
        assert_eq!(theirs.len(), ours.len());
    }
    // The file is what this project says of its records, read back from it.
    let records: Vec<LogRecord> = file["records"].as_array().unwrap().iter().map(read).collect();
    assert_eq!(judge(&records, &[])["then"], file["said"]["then"]);
}

/// One record of a random log.
#[derive(Debug, Clone)]
enum Entry {
    Claim(u64, u64),
    Plan { epoch: u64, nonce: u64, seq: u64, key: &'static str, record: usize, mutation: Option<Mutation>, late: bool },
    Tombstone(u64, u64, u64, &'static str),
    Heartbeat(u64, u64, u64, Option<Mutation>),
}

fn entry(records: usize) -> impl Strategy<Value = Entry> {
    let key = || prop::sample::select(vec!["a", "b"]);
    let seq = || 1_u64..40;
    let changed = || prop::option::weighted(0.3, mutation());
    prop_oneof![
        2 => (1_u64..4, 0_u64..2).prop_map(|(epoch, nonce)| Entry::Claim(epoch, nonce)),
        12 => (1_u64..4, 0_u64..2, seq(), key(), 0..records, changed(), prop::bool::weighted(0.1))
            .prop_map(|(epoch, nonce, seq, key, record, mutation, late)| Entry::Plan { epoch, nonce, seq, key, record, mutation, late }),
        1 => (1_u64..4, 0_u64..2, seq(), key()).prop_map(|(epoch, nonce, seq, key)| Entry::Tombstone(epoch, nonce, seq, key)),
        2 => (1_u64..4, 0_u64..2, seq(), changed()).prop_map(|(epoch, nonce, seq, changed)| Entry::Heartbeat(epoch, nonce, seq, changed)),
    ]
}

fn build(entries: &[Entry], records: &[Value]) -> Vec<LogRecord> {
    let mut log = Log::default();
    for entry in entries {
        match entry {
            Entry::Claim(epoch, nonce) => {
                log.claim(*epoch, *nonce);
            }
            Entry::Plan { epoch, nonce, seq, key, record, mutation, late } => {
                let mut value = records[*record].clone();
                value["key"] = json!(key);
                mutation.iter().for_each(|mutation| mutation.apply(&mut value));
                log.value(*epoch, *nonce, *seq, key, Some(value.to_string().into_bytes()));
                if *late {
                    log.0.last_mut().unwrap().log_time = Some(time(10_001));
                }
            }
            Entry::Tombstone(epoch, nonce, seq, key) => {
                log.tombstone(*epoch, *nonce, *seq, key);
            }
            Entry::Heartbeat(epoch, nonce, seq, changed) => {
                let table = log.fold();
                log.heartbeat(*epoch, *nonce, *seq, &table);
                let record = log.0.last_mut().unwrap();
                let mut value: Value = serde_json::from_slice(record.value.as_deref().unwrap()).unwrap();
                changed.iter().for_each(|mutation| mutation.apply(&mut value));
                record.value = Some(value.to_string().into_bytes());
            }
        }
    }
    log.0
}

/// Random logs of records of real migrations, some of them with a field gone or changed; the same ones in every run.
#[test]
fn the_reader_agrees_on_random_logs() {
    let values = golden_log::plan_values();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = prop::collection::vec(entry(values.len()), 1..30);
    let (mut logs, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..400 {
        // A leader at the start, so that most records count; the versions of a log grow more often than not.
        let mut entries = strategy.new_tree(&mut runner).unwrap().current();
        entries.insert(0, Entry::Claim(1, 0));
        order(&mut entries);
        let records = build(&entries, &values);
        let asks: Vec<Ask> = (0..records.len())
            .step_by(3)
            .flat_map(|after| {
                ["a", "b"].map(|key| Ask { after, keyspace: "customer", key: key.into(), id: b"order-1".to_vec() })
            })
            .collect();
        ours.push(judge(&records, &asks));
        let records: Vec<_> = records.iter().map(written).collect();
        logs.push(json!({"records": records, "asks": asks.iter().map(Ask::written).collect::<Vec<_>>()}));
    }
    let mut plans = 0;
    for ((log, ours), theirs) in logs.iter().zip(&ours).zip(said_of(&logs)) {
        for (at, (ours, theirs)) in array(ours, "then").iter().zip(array(&theirs, "then")).enumerate() {
            assert_eq!(ours, theirs, "left this project, right the reader, of {}", log["records"][at]);
            plans += usize::from(ours["outcome"] == "plan");
        }
        assert_eq!(ours["places"], theirs["places"]);
    }
    assert!(plans > 1000, "only {plans} plans were accepted: the logs test little");
}

/// Two of three records get a version that grows.
fn order(entries: &mut [Entry]) {
    for (at, entry) in entries.iter_mut().enumerate() {
        let grown = u64::try_from(at).unwrap();
        if let Entry::Plan { epoch, nonce, seq, .. }
        | Entry::Heartbeat(epoch, nonce, seq, _)
        | Entry::Tombstone(epoch, nonce, seq, _) = entry
            && *seq % 3 > 0
        {
            (*epoch, *nonce, *seq) = (1, 0, grown);
        }
    }
}

fn array<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap()
}

/// The reader's own faults would be seen: a table with one plan less is told.
#[test]
fn a_difference_is_seen() {
    let mut log = Log::default();
    log.claim(1, 7).plan(1, 7, 1, "a", 4);
    let heartbeat = Heartbeat::decode(&{
        let table = PlanTable::new();
        let mut other = Log::default();
        other.heartbeat(1, 7, 2, &table);
        other.0[0].value.clone().unwrap()
    })
    .unwrap();
    let head = headers(&PlanTopicKey::Heartbeat, version(1, 2), 7, true);
    log.0.push(LogRecord::new(keyheat::units::Offset(2), b"heartbeat".to_vec(), Some(heartbeat.encode()), &head));
    let records: Vec<_> = log.0.iter().map(written).collect();
    let ours = judge(&log.0, &[]);
    let theirs = &said_of(&[json!({"records": records, "asks": []})])[0];
    assert_eq!(ours["then"], theirs["then"]);
    assert_eq!(theirs["then"][2]["outcome"], "heartbeat_differs");
    assert_ne!(theirs["then"][1]["digest"], theirs["then"][0]["digest"]);
    let split = plan(b"a", 4, keyheat::protocol::State::Settled);
    assert_eq!(log.fold().plan(&customer("a")).unwrap().record, split);
}
