//! Golden bytes of version 1: what was released stays readable, and is written the same for ever.
//!
//! Each file of `fixtures/protocol/v1` is one record: key, headers in their order, value. They serve readers in other languages as
//! vectors. `KEYHEAT_BLESS=1` writes those that are missing and never changes one.

use std::path::PathBuf;

use keyheat::protocol::{
    AckTopicKey, Action, Advice, BackfillReport, Claim, Delete, Digest, Heartbeat, History, KeyField, Layout,
    LogRecord, Nonce, Outcome, Pin, PlanKey, PlanRecord, PlanTopicKey, Policy, RefusedKey, RetiredReport, RouterAck,
    SCHEMA, State, Version, Writes,
};
use keyheat::units::Offset;
use serde_json::{Value, json};

use super::acks::{ack, waiting};
use super::log::{DECIDED_AT, customer, headers, plan, time, version};

/// One record with the name of its file.
struct Golden {
    name: &'static str,
    topic: &'static str,
    key: Vec<u8>,
    headers: Vec<(&'static str, Vec<u8>)>,
    value: Option<Vec<u8>>,
}

fn on_plan_topic(name: &'static str, key: &PlanTopicKey, version: Version, value: Option<Vec<u8>>) -> Golden {
    let headers = headers(key, version, 0xab, value.is_some()).to_pairs();
    Golden { name, topic: "keyheat.plan.v1", key: key.to_bytes(), headers, value }
}

fn on_acks_topic(name: &'static str, key: &AckTopicKey, value: Option<Vec<u8>>) -> Golden {
    Golden { name, topic: "keyheat.acks.v1", key: key.to_bytes(), headers: Vec::new(), value }
}

fn plans() -> Vec<(&'static str, PlanRecord)> {
    let retired = plan(b"c42", 8, State::Settled);
    let grown = Layout::split(2, 16, 0).unwrap();
    let mut growing = plan(b"c42", 8, State::Prepare);
    growing.migration.from = growing.migration.to;
    growing.migration.to = grown;
    growing.migration.version = version(3, 40);
    growing.write = Some(growing.migration.from);
    growing.read = vec![grown, growing.migration.from];
    let mut keeping = plan(b"\xff/\x00", 2, State::Moving);
    keeping.migration.history = History::Keep;
    keeping.migration.writes = Writes::Versioned;
    vec![
        (
            "plan-proposed",
            PlanRecord { not_after: Some(time(10_000).to_rfc3339()), ..plan(b"c42", 8, State::Proposed) },
        ),
        ("plan-prepare", PlanRecord { not_after: Some(time(10_000).to_rfc3339()), ..plan(b"c42", 8, State::Prepare) }),
        ("plan-hold", plan(b"c42", 8, State::Hold)),
        ("plan-dual", plan(b"c42", 8, State::Dual)),
        ("plan-moving", plan(b"c42", 8, State::Moving)),
        ("plan-settled", retired.clone()),
        ("plan-settled-retire", PlanRecord { delete: Delete::Remove, retire: vec![Layout::BARE], ..retired }),
        ("plan-turned-round", turned_round()),
        ("plan-settled-outcome", measured()),
        ("plan-undoes-outcome", undoes()),
        ("plan-prepare-growth", growing.clone()),
        ("plan-settled-retire-growth", grown_up(growing)),
        ("plan-moving-keep-binary-key", keeping),
    ]
}

fn turned_round() -> PlanRecord {
    let record = plan(b"c42", 8, State::Settled);
    let from = record.migration.from;
    PlanRecord { write: Some(from), read: vec![from], delete: Delete::Remove, ..record }
}

/// A growth that has ended: buckets are to be retired.
fn grown_up(growing: PlanRecord) -> PlanRecord {
    let (from, to) = (growing.migration.from, growing.migration.to);
    let settled = PlanRecord { state: State::Settled, write: Some(to), read: vec![to], ..growing };
    PlanRecord { retire: vec![from], delete: Delete::Remove, ..settled }
}

/// What is there only now and then: an outcome, nulls in place of numbers, more input partitions than are listed.
fn measured() -> PlanRecord {
    let mut record = plan(b"c42", 8, State::Settled);
    let outcome = Outcome {
        hottest_shard: Some(0.11),
        measured_at: time(600_000).to_rfc3339(),
        helped: true,
        hottest_bucket_share: None,
        key_shard_share: None,
        window_ms: None,
        settled_at: None,
    };
    (record.evidence.median, record.evidence.shard, record.evidence.end_offsets_cut) = (None, None, 36);
    (record.prediction.hottest_shard_before, record.prediction.hottest_shard_after) = (None, None);
    PlanRecord { outcome: Some(outcome), ..record }
}

/// The way back from a split that did not help.
fn undoes() -> PlanRecord {
    let mut record = plan(b"c42", 8, State::Prepare);
    (record.migration.from, record.migration.to) = (record.migration.to, Layout::BARE);
    record.migration.version = version(3, 40);
    (record.write, record.read) = (Some(record.migration.from), vec![Layout::BARE, record.migration.from]);
    let outcome = Outcome {
        hottest_shard: None,
        measured_at: time(600_000).to_rfc3339(),
        helped: false,
        hottest_bucket_share: Some(0.131),
        key_shard_share: Some(0.998),
        window_ms: Some(60_000),
        settled_at: Some(time(480_000).to_rfc3339()),
    };
    PlanRecord { outcome: Some(outcome), not_after: Some(time(910_000).to_rfc3339()), ..record }
}

fn advice() -> Advice {
    Advice {
        schema: SCHEMA,
        keyspace: "customer".into(),
        key: KeyField(b"c42".to_vec()),
        action: Action::CacheOrReplicate,
        reason: "96% of 687 requests/s are reads".into(),
        evidence: plan(b"c42", 8, State::Settled).evidence,
        decided_at: DECIDED_AT.into(),
    }
}

fn pin() -> Policy {
    let pin = Pin {
        buckets: 8,
        from: Some("2026-11-27T00:00:00.000Z".into()),
        until: Some("2026-11-29T00:00:00.000Z".into()),
    };
    Policy {
        schema: SCHEMA,
        keyspace: "customer".into(),
        key: KeyField(b"c42".to_vec()),
        block: false,
        pin: Some(pin),
        decided_at: DECIDED_AT.into(),
        reason: Some("the sale of November".into()),
    }
}

/// A block of a key that is not UTF-8, without a word why.
fn block() -> Policy {
    Policy { key: KeyField(b"\xff".to_vec()), block: true, pin: None, reason: None, ..pin() }
}

fn heartbeat() -> Heartbeat {
    Heartbeat {
        schema: SCHEMA,
        newest: version(3, 41),
        time: DECIDED_AT.into(),
        plans: 2,
        digest: Digest(0x0123_4567_89ab_cdef),
        acks_seen: Some(7),
    }
}

fn router_ack() -> RouterAck {
    RouterAck {
        digest: Digest(0x0123_4567_89ab_cdef),
        waiting: vec![waiting("c42", version(3, 17))],
        refusals: vec![RefusedKey {
            keyspace: "customer".into(),
            key: KeyField(b"\xff".to_vec()),
            version: version(3, 16),
            reason: "hash".into(),
        }],
        unknown_until: Some(time(30_000).to_rfc3339()),
        ..ack("r1", 0xcd, version(3, 17))
    }
}

/// One that waits for more keys than it can list, and whose key is not UTF-8.
fn cut_ack() -> RouterAck {
    let mut waiting = waiting("", version(3, 17));
    waiting.key = KeyField(vec![0xff]);
    let refused = RefusedKey {
        keyspace: "customer".into(),
        key: KeyField(b"c43".to_vec()),
        version: version(3, 15),
        reason: "state".into(),
    };
    let (waiting, refusals) = (vec![waiting], vec![refused]);
    RouterAck { waiting, more_waiting: true, refusals, more_refused: true, ..ack("r1", 0xcd, version(3, 17)) }
}

fn backfill() -> BackfillReport {
    BackfillReport {
        schema: SCHEMA,
        keyspace: "customer".into(),
        key: KeyField(b"c42".to_vec()),
        layout: 1,
        migration: version(3, 17),
        moved: 1204,
        expected: 1204,
        checksum_from: "6f1d3a".into(),
        checksum_to: "6f1d3a".into(),
        done: true,
        time: DECIDED_AT.into(),
    }
}

fn retired() -> RetiredReport {
    RetiredReport {
        schema: SCHEMA,
        keyspace: "customer".into(),
        key: KeyField(b"c42".to_vec()),
        layout: 0,
        migration: version(3, 17),
        remaining: 0,
        time: DECIDED_AT.into(),
    }
}

fn records() -> Vec<Golden> {
    let nonce = Nonce(0xab);
    let mut records: Vec<_> = plans()
        .into_iter()
        .map(|(name, record)| {
            on_plan_topic(name, &PlanTopicKey::Plan(record.plan_key()), version(3, 18), Some(record.encode()))
        })
        .collect();
    let claim = PlanTopicKey::Claim { epoch: 3, nonce };
    records.extend([
        on_plan_topic("plan-tombstone", &PlanTopicKey::Plan(customer("c42")), version(3, 19), None),
        on_plan_topic("advice", &PlanTopicKey::Advice(customer("c42")), version(3, 20), Some(advice().encode())),
        on_plan_topic("advice-tombstone", &PlanTopicKey::Advice(customer("c42")), version(3, 21), None),
        on_plan_topic("policy-pin", &PlanTopicKey::Policy(customer("c42")), version(3, 22), Some(pin().encode())),
        on_plan_topic(
            "policy-block",
            &PlanTopicKey::Policy(PlanKey::new("customer", b"\xff")),
            version(3, 23),
            Some(block().encode()),
        ),
        on_plan_topic("policy-tombstone", &PlanTopicKey::Policy(customer("c42")), version(3, 24), None),
        on_plan_topic("claim", &claim, version(3, 0), Some(Claim::new("detector-1", DECIDED_AT).encode())),
        on_plan_topic("heartbeat", &PlanTopicKey::Heartbeat, version(3, 42), Some(heartbeat().encode())),
        on_acks_topic(
            "router",
            &AckTopicKey::Router { id: "r1".into(), nonce: Nonce(0xcd) },
            Some(router_ack().encode()),
        ),
        on_acks_topic(
            "router-cut",
            &AckTopicKey::Router { id: "r1".into(), nonce: Nonce(0xcd) },
            Some(cut_ack().encode()),
        ),
        on_acks_topic("router-left", &AckTopicKey::Router { id: "r1".into(), nonce: Nonce(0xcd) }, None),
        on_acks_topic(
            "backfill",
            &AckTopicKey::Backfill { key: customer("c42"), layout: 1 },
            Some(backfill().encode()),
        ),
        on_acks_topic("retired", &AckTopicKey::Retired { key: customer("c42"), layout: 0 }, Some(retired().encode())),
    ]);
    records
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/protocol/v1")
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn as_json(golden: &Golden) -> Value {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let headers: Vec<_> = golden.headers.iter().map(|(name, value)| json!([name, text(value)])).collect();
    json!({
        "topic": golden.topic,
        "key_b64": base64(&golden.key),
        "headers": headers,
        "value": golden.value.as_deref().map(text),
    })
}

#[test]
fn records_are_written_as_released() {
    let bless = std::env::var_os("KEYHEAT_BLESS").is_some();
    for golden in records() {
        let path = folder().join(format!("{}.json", golden.name));
        let written = serde_json::to_string_pretty(&as_json(&golden)).unwrap() + "\n";
        if bless && !path.exists() {
            std::fs::write(&path, &written).unwrap();
        }
        let released = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(written, released, "{}: bytes of version 1 have changed", golden.name);
    }
}

#[test]
fn every_released_record_is_tested() {
    let mut names: Vec<_> = records().iter().map(|golden| format!("{}.json", golden.name)).collect();
    names.sort();
    let mut files: Vec<_> =
        std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    assert_eq!(files, names);
}

/// Reads a released record: its key and value.
fn released(name: &str) -> (Vec<u8>, Vec<u8>, LogRecord) {
    use base64::Engine as _;
    let file = std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    let key = base64::engine::general_purpose::STANDARD.decode(file["key_b64"].as_str().unwrap()).unwrap();
    let value = file["value"].as_str().map(|value| value.as_bytes().to_vec());
    let headers = file["headers"].as_array().unwrap().iter();
    let headers =
        headers.map(|pair| (pair[0].as_str().unwrap().to_owned(), pair[1].as_str().unwrap().as_bytes().to_vec()));
    let record = LogRecord {
        offset: Offset(0),
        key: key.clone(),
        value: value.clone(),
        headers: headers.collect(),
        log_time: None,
    };
    (key, value.unwrap_or_default(), record)
}

#[test]
fn released_records_read_as_they_were_meant() {
    for (name, record) in plans() {
        let (key, value, raw) = released(name);
        let Ok(PlanTopicKey::Plan(key)) = PlanTopicKey::parse(&key) else { panic!("{name}") };
        assert_eq!(PlanRecord::decode(&key, &value), Ok(record.clone()), "{name}");
        assert_eq!(raw.parsed_headers(), Ok(headers(&PlanTopicKey::Plan(key), version(3, 18), 0xab, true)), "{name}");
    }
    assert_eq!(Advice::decode(&customer("c42"), &released("advice").1), Ok(advice()));
    assert_eq!(Policy::decode(&customer("c42"), &released("policy-pin").1), Ok(pin()));
    assert_eq!(Policy::decode(&PlanKey::new("customer", b"\xff"), &released("policy-block").1), Ok(block()));
    assert_eq!(Heartbeat::decode(&released("heartbeat").1), Ok(heartbeat()));
    assert_eq!(RouterAck::decode("r1", Nonce(0xcd), &released("router").1), Ok(router_ack()));
    assert_eq!(RouterAck::decode("r1", Nonce(0xcd), &released("router-cut").1), Ok(cut_ack()));
    assert_eq!(BackfillReport::decode(&customer("c42"), 1, &released("backfill").1), Ok(backfill()));
    assert_eq!(RetiredReport::decode(&customer("c42"), 0, &released("retired").1), Ok(retired()));
    let binary = PlanKey::new("customer", b"\xff/\x00");
    assert_eq!(PlanTopicKey::parse(&released("plan-moving-keep-binary-key").0), Ok(PlanTopicKey::Plan(binary)));
}
