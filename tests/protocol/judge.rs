//! What this project says of a log, as JSON that a reader in any language can give as well: verdicts, the table, where requests go.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use keyheat::protocol::{Applied, Delete, LogRecord, PlanKey, PlanRecord, PlanTable, PlanTopicKey, Version};
use keyheat::router::{Place, ReadRule, Refused, Table, TableSettings, Write};
use keyheat::units::{EventTime, Offset};
use serde_json::{Value, json};

use super::log::time;

/// A record as the files of fixtures have it; header values are base64, since a damaged one may be any bytes.
pub(crate) fn written(record: &LogRecord) -> Value {
    let headers: Vec<_> =
        record.headers.iter().map(|(name, value)| json!({"name": name, "value_b64": STANDARD.encode(value)})).collect();
    json!({
        "offset": record.offset.0,
        "log_time_ms": record.log_time.map(EventTime::as_millis),
        "key_b64": STANDARD.encode(&record.key),
        "headers": headers,
        "value_b64": record.value.as_ref().map(|value| STANDARD.encode(value)),
    })
}

fn bytes(text: &Value) -> Vec<u8> {
    STANDARD.decode(text.as_str().unwrap()).unwrap()
}

/// The same read back.
pub(crate) fn read(record: &Value) -> LogRecord {
    let header = |header: &Value| (header["name"].as_str().unwrap().to_owned(), bytes(&header["value_b64"]));
    LogRecord {
        offset: Offset(record["offset"].as_i64().unwrap()),
        key: bytes(&record["key_b64"]),
        value: record["value_b64"].as_str().map(|_| bytes(&record["value_b64"])),
        headers: record["headers"].as_array().unwrap().iter().map(header).collect(),
        log_time: record["log_time_ms"].as_i64().map(|ms| EventTime::from_millis(ms).unwrap()),
    }
}

/// A question: where do requests for one id go after the record at one place of the log?
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) after: usize,
    pub(crate) keyspace: &'static str,
    pub(crate) key: Vec<u8>,
    pub(crate) id: Vec<u8>,
}

impl Ask {
    pub(crate) fn written(&self) -> Value {
        let Self { after, keyspace, key, id } = self;
        json!({"after": after, "keyspace": keyspace, "key_b64": STANDARD.encode(key), "id_b64": STANDARD.encode(id)})
    }
}

/// What is said after each record, and to each question.
pub(crate) fn judge(records: &[LogRecord], asks: &[Ask]) -> Value {
    let mut fold = PlanTable::new();
    let table = Table::new(TableSettings::default());
    let mut plans: BTreeMap<PlanKey, PlanRecord> = BTreeMap::new();
    let (mut then, mut answers) = (Vec::new(), Vec::new());
    for (at, record) in records.iter().enumerate() {
        let applied = fold.apply(record);
        table.apply(&applied).unwrap();
        let mut said = json!({
            "outcome": outcome(&applied),
            "leader": fold.leader().map(|(epoch, nonce)| json!([epoch, nonce.to_string()])),
            "last": fold.last_version().to_string(),
            "digest": fold.digest().to_string(),
        });
        match applied {
            Applied::Plan { key, entry, .. } => {
                said["waits_for"] = json!(waits_for(&key, plans.get(&key), Some(&entry.record)));
                plans.insert(key, entry.record.clone());
            }
            Applied::Removed { key, .. } => {
                said["waits_for"] = json!(waits_for(&key, plans.get(&key), None));
                plans.remove(&key);
            }
            _ => {}
        }
        then.push(said);
        answers.extend(asks.iter().filter(|ask| ask.after == at).map(|ask| places(&table, ask)));
    }
    json!({"then": then, "places": answers})
}

fn outcome(applied: &Applied) -> String {
    match applied {
        Applied::Plan { .. } => "plan".to_owned(),
        Applied::Removed { .. } => "plan_removed".to_owned(),
        Applied::Advice { .. } => "advice".to_owned(),
        Applied::AdviceRemoved { .. } => "advice_removed".to_owned(),
        Applied::Policy { .. } => "policy".to_owned(),
        Applied::PolicyRemoved { .. } => "policy_removed".to_owned(),
        Applied::Other { removed, .. } => if *removed { "other_removed" } else { "other" }.to_owned(),
        Applied::Claim { won, .. } => if *won { "claim_won" } else { "claim_lost" }.to_owned(),
        Applied::Heartbeat { agrees, .. } => if *agrees { "heartbeat_agrees" } else { "heartbeat_differs" }.to_owned(),
        Applied::Refused { reason, .. } => format!("refused:{}", reason.label()),
        Applied::Ignored(_) => "ignored".to_owned(),
    }
}

/// What holds up the acknowledgement of a record if it was begun under the record before: found out with a table and real guards.
pub(crate) fn waits_for(key: &PlanKey, before: Option<&PlanRecord>, next: Option<&PlanRecord>) -> Vec<&'static str> {
    let kinds = ["read", "write", "in_place", "write_unknown", "in_place_unknown"];
    kinds.into_iter().filter(|kind| waits(kind, key, before, next)).collect()
}

fn waits(kind: &str, key: &PlanKey, before: Option<&PlanRecord>, next: Option<&PlanRecord>) -> bool {
    let table = Table::new(TableSettings::default());
    table.release_unknown(time(0));
    let version = |seq| Version { epoch: 1, seq };
    if let Some(before) = before {
        table.put(key, version(1), before).unwrap();
    }
    let (keyspace, bytes) = (key.keyspace.as_str(), key.key.as_slice());
    let read = (kind == "read").then(|| table.point_read(keyspace, bytes, b"id").unwrap());
    let write = match kind.split_once('_') {
        _ if kind.starts_with("write") => table.write(keyspace, bytes, b"id").ok(),
        Some(("in", _)) => table.update_in_place(keyspace, bytes, b"id").ok(),
        _ => None,
    };
    let mut write = write.and_then(Write::placed);
    if read.is_none() && write.is_none() {
        return false;
    }
    if kind.ends_with("unknown") {
        write.take().unwrap().outcome_unknown(time(30_000));
    }
    match next {
        Some(next) => table.put(key, version(2), next).unwrap(),
        None => table.remove(key, version(2)).unwrap(),
    }
    !table.ack_state().waiting.is_empty()
}

fn place(place: &Place<'_>) -> Value {
    json!({"layout": place.layout, "label": place.label, "store_key_b64": STANDARD.encode(&place.key)})
}

/// Every operation on one id of one key.
fn places(table: &Table, ask: &Ask) -> Value {
    let Ask { keyspace, key, id, .. } = ask;
    let read = match table.point_read(keyspace, key, id) {
        Ok(read) => read,
        Err(Refused::NoPlan(plan)) => return json!({"refused": plan.reason.label()}),
        Err(other) => panic!("{other}"),
    };
    let scan = table.scan(keyspace, key).unwrap();
    let scanned: Vec<_> = scan
        .places()
        .iter()
        .map(|place| json!({"label": place.label, "store_key_b64": STANDARD.encode(&place.key), "own": scan.is_home(id, place)}))
        .collect();
    let write = match table.write(keyspace, key, id).unwrap() {
        Write::Placed(placement) => place(placement.place()),
        Write::Held(_) => json!("wait"),
    };
    let delete = match table.delete(keyspace, key, id).unwrap() {
        Write::Placed(delete) => {
            let how = if delete.how() == Delete::Tombstone { "tombstone" } else { "remove" };
            json!({"place": place(delete.place()), "how": how})
        }
        Write::Held(_) => json!("wait"),
    };
    let in_place = match table.update_in_place(keyspace, key, id) {
        Ok(Write::Placed(update)) => {
            let older: Vec<_> = update.promote_from().iter().map(place).collect();
            json!({"place": place(update.place()), "promote_from": older})
        }
        Ok(Write::Held(_)) => json!("wait"),
        Err(Refused::InPlace(_)) => json!("refused"),
        Err(other) => panic!("{other}"),
    };
    json!({
        "write": write,
        "delete": delete,
        "in_place": in_place,
        "read": read.places().iter().map(place).collect::<Vec<_>>(),
        "rule": if read.rule() == ReadRule::FirstFound { "first_found" } else { "highest_version" },
        "scan": scanned,
    })
}

/// Keyspace and key of a record of a plan; none for others.
pub(crate) fn plan_key(record: &LogRecord) -> Option<PlanKey> {
    match PlanTopicKey::parse(&record.key) {
        Ok(PlanTopicKey::Plan(key)) => Some(key),
        _ => None,
    }
}
