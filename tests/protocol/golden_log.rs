//! One log with every trap in it, and what is to be said of it: for readers in other languages, kept for ever as released.

use keyheat::plan::migration::{self, Facts, Order, Standing, Step};
use keyheat::protocol::{History, LogRecord, PlanKey, PlanRecord, PlanTopicKey, RecordHeaders, State, Version, Writes};
use keyheat::units::Offset;
use serde_json::{Value, json};

use super::judge::{Ask, judge, read, written};
use super::log::{DECIDED_AT, Log, customer, headers, plan, time, version};

/// The first record of a migration of `key`, by the planner's own rules.
pub(crate) fn begin(
    key: &[u8],
    buckets: u32,
    writes: Writes,
    history: History,
    named: Version,
    before: Option<&PlanRecord>,
) -> PlanRecord {
    let like = plan(key, 2, State::Settled);
    let order = Order {
        key: PlanKey::new("customer", key),
        version: named,
        buckets,
        first: 40,
        seed: 0x9f86_d081_884c_7d65,
        writes,
        history,
        evidence: like.evidence,
        prediction: like.prediction,
        undone: None,
        decided_at: DECIDED_AT.to_owned(),
        not_after: time(10_000).to_rfc3339(),
    };
    migration::begin(order, &Standing::of(before).unwrap()).unwrap()
}

/// What follows, with every gate open.
pub(crate) fn after(record: &PlanRecord) -> PlanRecord {
    let open =
        Facts { acknowledged: true, may_hold: true, moved: true, expired: true, retired: true, ..Facts::default() };
    match migration::next(record, &open) {
        Step::Next(next) => *next,
        step => panic!("{step:?}"),
    }
}

fn text(log: &mut Log, epoch: u64, nonce: u64, seq: u64, key: &PlanTopicKey, value: Option<&[u8]>) {
    let headers = headers(key, version(epoch, seq), nonce, value.is_some());
    append(log, key.to_bytes(), value.map(<[u8]>::to_vec), &headers);
}

fn append(log: &mut Log, key: Vec<u8>, value: Option<Vec<u8>>, headers: &RecordHeaders) {
    let offset = Offset(i64::try_from(log.0.len()).unwrap());
    log.0.push(LogRecord::new(offset, key, value, headers).at(time(offset.0)));
}

/// A settled plan of `key` with one piece of its text changed.
fn changed(key: &str, from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(plan(key.as_bytes(), 8, State::Settled).encode()).unwrap();
    assert!(text.contains(from), "{from}");
    text.replace(from, to).into_bytes()
}

fn records() -> Vec<LogRecord> {
    let mut log = Log::default();
    the_first_term(&mut log);
    the_second_term(&mut log);
    what_cannot_be_read(&mut log);
    other_histories(&mut log);
    policies(&mut log);
    log.0
}

/// Pins and blocks that can be read and that cannot, and one that is taken back.
fn policies(log: &mut Log) {
    let pin = r#"{"schema":1,"keyspace":"customer","key":"c42","block":false,"pin":{"buckets":8,"from":"2026-11-27T00:00:00Z","until":null},"decided_at":"2026-11-20T08:00:00.000Z","reason":"sale"}"#;
    let changes = [
        ("", ""),
        (r#""schema":1"#, r#""schema":2"#),
        (r#""key":"c42""#, r#""key":"c43""#),
        (r#""buckets":8"#, r#""buckets":3"#),
        (r#""buckets":8"#, r#""buckets":512"#),
        (r#""block":false"#, r#""block":true"#),
        (r#""block":false,"#, ""),
        ("27T00:00:00Z", "27"),
        (r#""until":null"#, r#""until":"2026-11-27T00:00:00.000Z""#),
        (r#""until":null"#, r#""until":"2026-11-27T00:00:00.001Z""#),
        (r#","reason":"sale""#, ""),
    ];
    let long = format!(r#""reason":"{}""#, "é".repeat(257));
    let values = changes.into_iter().map(|(from, to)| pin.replacen(from, to, 1));
    let values = values.chain([pin.replace(r#""reason":"sale""#, &long)]);
    let mut seq = 100;
    for value in values {
        text(log, 2, 9, seq, &PlanTopicKey::Policy(customer("c42")), Some(value.as_bytes()));
        seq += 1;
    }
    let block =
        r#"{"schema":1,"keyspace":"customer","key_b64":"/w==","block":true,"decided_at":"2026-11-20T08:00:00.000Z"}"#;
    let binary = PlanTopicKey::Policy(PlanKey::new("customer", b"\xff"));
    text(log, 2, 9, seq, &binary, Some(block.as_bytes()));
    text(log, 2, 9, seq + 1, &binary, None);
}

/// Two claims of one epoch; a whole migration with a hold that is turned back; a record that is there twice.
fn the_first_term(log: &mut Log) {
    log.claim(1, 7).claim(1, 8);
    let prepare = begin(b"c42", 8, Writes::Update, History::Move, version(1, 1), None);
    log.record(1, 8, 1, &prepare).record(1, 7, 1, &prepare);
    let hold = after(&prepare);
    let back = migration::turn_back(&hold).unwrap();
    log.record(1, 7, 2, &hold).record(1, 7, 3, &back).record(1, 7, 4, &hold);
    let dual = after(&hold);
    log.record(1, 7, 5, &dual).record(1, 7, 5, &dual);
    let moving = after(&dual);
    log.record(1, 7, 6, &moving);
    let table = log.fold();
    log.heartbeat(1, 7, 7, &table);
}

/// A new leader, the paused old one, the answer to it; the end of the migration, and growth after it.
fn the_second_term(log: &mut Log) {
    log.claim(2, 9).claim(1, 3);
    let moving = log.fold().plan(&customer("c42")).unwrap().record.clone();
    let settled = after(&moving);
    log.record(1, 7, 8, &settled).tombstone(1, 7, 9, "c42");
    let answer = log.fold().answer(&PlanTopicKey::Plan(customer("c42")));
    log.value(2, 9, 1, "c42", answer);
    let retire = after(&settled);
    log.record(2, 9, 2, &settled).record(2, 9, 3, &retire);
    let growth = begin(b"c42", 16, Writes::Update, History::Move, version(2, 4), Some(&retire));
    log.record(2, 9, 4, &growth);
    let dual = after(&after(&growth));
    log.record(2, 9, 5, &dual).record(2, 9, 6, &after(&dual));
    // The first claim again: it is not above the highest epoch.
    log.claim(1, 7);
    let key = PlanTopicKey::Claim { epoch: 2, nonce: keyheat::protocol::Nonce(9) };
    text(log, 2, 9, 0, &key, None);
    for epoch in [0, 1 << 53] {
        log.claim(epoch, 5);
    }
}

/// A key that never had a readable record, one that keeps its last one, one that came too late.
fn what_cannot_be_read(log: &mut Log) {
    let mut seq = 6;
    let mut next = || {
        seq += 1;
        seq
    };
    for (from, to) in [
        (r#""schema":1"#, r#""schema":2"#),
        (r#""state":"settled""#, r#""state":"frozen""#),
        ("xxh64-low-bits", "xxh3-low-bits"),
        (r#""writes":"update""#, r#""writes":"append""#),
        (r#""buckets":8"#, r#""buckets":7"#),
        (r#""key":"new""#, r#""key":"old""#),
        (r#""delete":"tombstone""#, r#""delete":"tombstone","delete":"tombstone""#),
        (r#""seed":"#, r#""seed":"0123456789abcdef","seed":"#),
        (r#""rate_per_s":687.25"#, r#""rate_per_s":1e999"#),
        (r#""epoch":3,"seq":17"#, r#""epoch":3,"seq":9007199254740992"#),
        ("{key}:{label}", "{key}{key}:{label}"),
        (r#""state":"settled""#, r#""state":"prepare""#),
    ] {
        log.value(2, 9, next(), "new", Some(changed("new", from, to)));
    }
    log.value(2, 9, next(), "c42", Some(b"{".to_vec())).value(2, 9, next(), "c42", Some(vec![b' '; 4097]));
    let late = begin(b"late", 2, Writes::Insert, History::Move, version(2, 21), None);
    log.record(2, 9, next(), &late);
    log.0.last_mut().unwrap().log_time = Some(time(10_001));
    log.record(2, 9, next(), &late);
    log.0.last_mut().unwrap().log_time = Some(time(10_000));
    log.record(2, 9, next(), &after(&late));
    log.0.last_mut().unwrap().log_time = Some(time(3_600_000));
    let with_more = changed("more", r#"{"schema":1,"#, r#"{"schema":1,"later":{"a":[1]},"#);
    log.value(2, 9, next(), "more", Some(with_more));
    text(log, 2, 9, next(), &PlanTopicKey::ShardAdvice(customer("s2")), Some(b"not looked at"));
    text(log, 2, 9, next(), &PlanTopicKey::ShardAdvice(customer("s3")), None);
    text(log, 2, 9, next(), &PlanTopicKey::Advice(customer("c42")), Some(br#"{"schema":1}"#));
    text(log, 2, 9, next(), &PlanTopicKey::Advice(customer("c42")), None);
    let head = headers(&PlanTopicKey::Heartbeat, version(2, 29), 9, true);
    for key in [b"lease/1".as_slice(), b"plan/Customer/c42", b"claim/07/0000000000000007", b"plan/customer"] {
        append(log, key.to_vec(), Some(b"{}".to_vec()), &head);
    }
    damage_headers(log);
}

/// Headers as they are on a record.
type Headers = Vec<(String, Vec<u8>)>;

/// Records that would count but for a header.
fn damage_headers(log: &mut Log) {
    let damages: [fn(&mut Headers); 4] = [
        |headers| headers.retain(|(name, _)| name != "kh_seq"),
        |headers| headers.push(("kh_epoch".to_owned(), b"2".to_vec())),
        |headers| {
            headers.iter_mut().for_each(|(name, value)| {
                if name == "kh_seq" {
                    *value = b"025".to_vec()
                }
            })
        },
        |headers| {
            headers.iter_mut().for_each(|(name, value)| {
                if name == "kh_nonce" {
                    *value = b"9".to_vec()
                }
            })
        },
    ];
    for damage in damages {
        log.tombstone(2, 9, 30, "c42");
        damage(&mut log.0.last_mut().unwrap().headers);
    }
}

/// `keep` with a key that is not UTF-8, twice; `expire`; a proposal and its tombstone; a migration that was turned round; back to the
/// bare key.
fn other_histories(log: &mut Log) {
    let mut seq = 40;
    let mut put = |log: &mut Log, record: &PlanRecord| {
        seq += 1;
        log.record(2, 9, seq, record);
    };
    let binary = b"\xff/\x00{label}";
    let first = begin(binary, 2, Writes::Versioned, History::Keep, version(2, 41), None);
    let kept = after(&after(&first));
    let second = begin(binary, 4, Writes::Versioned, History::Keep, version(2, 44), Some(&kept));
    for record in [&first, &after(&first), &kept, &second, &after(&second), &after(&after(&second))] {
        put(log, record);
    }
    let expiring = begin(b"gone", 4, Writes::Insert, History::Expire, version(2, 47), None);
    for record in [&expiring, &after(&expiring), &after(&after(&expiring)), &after(&after(&after(&expiring)))] {
        put(log, record);
    }
    put(log, &PlanRecord { not_after: None, ..plan(b"maybe", 4, State::Proposed) });
    let round = begin(b"round", 4, Writes::Update, History::Move, version(2, 52), None);
    put(log, &round);
    put(log, &migration::turn_round(&round).unwrap());
    let split = plan(b"back", 4, State::Settled);
    let back = begin(b"back", 1, Writes::Update, History::None, version(2, 55), Some(&split));
    for record in [&split, &back, &after(&back), &after(&after(&back)), &after(&after(&after(&back)))] {
        put(log, record);
    }
    put(log, &after(&after(&after(&after(&back)))));
    log.tombstone(2, 9, 60, "back").tombstone(2, 9, 61, "maybe").tombstone(2, 9, 62, "never");
    let table = log.fold();
    log.heartbeat(2, 9, 63, &table).heartbeat(2, 9, 64, &Log::default().fold());
}

/// Where requests go after each record of a plan, for ids in several buckets.
fn asks(records: &[LogRecord]) -> Vec<Ask> {
    let key_of = |(at, record)| super::judge::plan_key(record).map(|key| (at, key.key));
    let planned = records.iter().enumerate().filter_map(key_of);
    let ids = [b"order-1".as_slice(), b"\xff\xfe\x00/"];
    planned
        .flat_map(|(at, key)| ids.map(|id| Ask { after: at, keyspace: "customer", key: key.clone(), id: id.to_vec() }))
        .collect()
}

/// The file: what was released, for readers in other languages.
pub(crate) fn file() -> Value {
    let records = records();
    let asks = asks(&records);
    let said = judge(&records, &asks);
    let records: Vec<_> = records.iter().map(written).collect();
    json!({"version": 1, "records": records, "asks": asks.iter().map(Ask::written).collect::<Vec<_>>(), "said": said})
}

/// One line a record, a question, an answer: a difference can be read.
fn by_lines(file: &Value) -> String {
    let lines = |name: &str, values: &Value| {
        let lines: Vec<_> = values.as_array().unwrap().iter().map(Value::to_string).collect();
        format!("\"{name}\": [\n{}\n]", lines.join(",\n"))
    };
    let said = format!(
        "\"said\": {{\n{},\n{}\n}}",
        lines("then", &file["said"]["then"]),
        lines("places", &file["said"]["places"])
    );
    let parts = [lines("records", &file["records"]), lines("asks", &file["asks"]), said];
    format!("{{\n\"version\": {},\n{}\n}}\n", file["version"], parts.join(",\n"))
}

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/protocol/log-v1.json");

/// The file as it was released.
pub(crate) fn released() -> Value {
    serde_json::from_str(&std::fs::read_to_string(PATH).unwrap()).unwrap()
}

/// The values of its plans that were accepted: records of real migrations.
pub(crate) fn plan_values() -> Vec<Value> {
    let records = records();
    let said = judge(&records, &[]);
    let accepted = said["then"].as_array().unwrap().iter().map(|said| said["outcome"] == "plan");
    let values = records.iter().zip(accepted).filter(|(_, accepted)| *accepted).map(|(record, _)| record);
    let values = values.map(|record| serde_json::from_slice::<Value>(record.value.as_deref().unwrap()).unwrap());
    // A key of another form of JSON would be two keys.
    values.filter(|value| value["key"].is_string()).collect()
}

/// `KEYHEAT_BLESS=1` writes the file where it is missing and never changes it.
#[test]
fn the_log_and_what_is_said_of_it_are_as_released() {
    let text = by_lines(&file());
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), file());
    if std::env::var_os("KEYHEAT_BLESS").is_some() && !std::path::Path::new(PATH).exists() {
        std::fs::write(PATH, &text).unwrap();
    }
    let released = std::fs::read_to_string(PATH).unwrap();
    for (now, then) in text.lines().zip(released.lines()) {
        assert_eq!(now, then);
    }
    assert_eq!(text.len(), released.len());
}

#[test]
fn every_outcome_is_in_the_log() {
    let file = file();
    let outcomes: std::collections::BTreeSet<&str> =
        file["said"]["then"].as_array().unwrap().iter().map(|said| said["outcome"].as_str().unwrap()).collect();
    let seen = |label: &str| outcomes.contains(format!("refused:{label}").as_str());
    let missing: Vec<_> = keyheat::protocol::RefusedRecord::LABELS.into_iter().filter(|label| !seen(label)).collect();
    assert_eq!(missing, ["too_many"], "a log of ten thousand keys is no fixture");
    for other in [
        "plan",
        "plan_removed",
        "advice_removed",
        "policy",
        "policy_removed",
        "other",
        "other_removed",
        "claim_won",
        "claim_lost",
        "ignored",
    ] {
        assert!(outcomes.contains(other), "{other}");
    }
    assert!(outcomes.contains("heartbeat_agrees") && outcomes.contains("heartbeat_differs"));
    let record = &file["records"][3];
    assert_eq!(written(&read(record)), *record);
}
