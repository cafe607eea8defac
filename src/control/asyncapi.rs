//! The two topics as an `AsyncAPI` 3 document, from the side of the service: it sends plans and receives acknowledgements.

use serde_json::{Map, Value, json};

use super::topics::TopicSpec;
use crate::config::ControlSettings;
use crate::protocol::{RecordKind, schema};

/// Version of the Kafka bindings that are written.
const BINDING: &str = "0.5.0";
/// A decimal number in its one spelling.
const DECIMAL: &str = "^(?:0|[1-9][0-9]{0,15})$";
/// A number of 64 bits in its one spelling.
const HEX16: &str = "^[0-9a-f]{16}$";

/// One kind of record on one topic.
struct Message {
    name: &'static str,
    summary: &'static str,
    /// Pattern of the record's key.
    key: &'static str,
    /// Its `ce_type`; none on the acks topic, whose records need no headers.
    kind: Option<RecordKind>,
    /// The schema of its value; none for a tombstone.
    value: Option<&'static str>,
}

const ON_PLAN_TOPIC: [Message; 8] = [
    Message {
        name: "plan",
        summary: "The plan of a key: where its requests go.",
        key: "^plan/[a-z0-9_-]{1,64}/",
        kind: Some(RecordKind::Plan),
        value: Some("plan"),
    },
    Message {
        name: "planRemoved",
        summary: "The key is in the bare layout and has no plan any more.",
        key: "^plan/[a-z0-9_-]{1,64}/",
        kind: Some(RecordKind::PlanRemoved),
        value: None,
    },
    Message {
        name: "advice",
        summary: "What to do for a key other than split it.",
        key: "^advice/[a-z0-9_-]{1,64}/",
        kind: Some(RecordKind::Advice),
        value: Some("advice"),
    },
    Message {
        name: "adviceRemoved",
        summary: "The advice holds no more.",
        key: "^advice/[a-z0-9_-]{1,64}/",
        kind: Some(RecordKind::AdviceRemoved),
        value: None,
    },
    Message {
        name: "policy",
        summary: "What an operator has set for a key: a pin or a block.",
        key: "^policy/[a-z0-9_-]{1,64}/",
        kind: Some(RecordKind::Policy),
        value: Some("policy"),
    },
    Message {
        name: "policyRemoved",
        summary: "The operator has taken it back.",
        key: "^policy/[a-z0-9_-]{1,64}/",
        kind: Some(RecordKind::PolicyRemoved),
        value: None,
    },
    Message {
        name: "claim",
        summary: "A publisher takes the lead; the first claim of an epoch wins.",
        key: "^claim/[1-9][0-9]*/[0-9a-f]{16}$",
        kind: Some(RecordKind::Claim),
        value: Some("claim"),
    },
    Message {
        name: "heartbeat",
        summary: "The leader is alive and its table is this.",
        key: "^heartbeat$",
        kind: Some(RecordKind::Heartbeat),
        value: Some("heartbeat"),
    },
];

const ON_ACKS_TOPIC: [Message; 6] = [
    Message {
        name: "router",
        summary: "A router registers, and says what it has applied and which keys still wait.",
        key: "^router/[^/]{1,128}/[0-9a-f]{16}$",
        kind: None,
        value: Some("router"),
    },
    Message {
        name: "routerLeft",
        summary: "A router has left: nothing waits for it any more.",
        key: "^router/[^/]{1,128}/[0-9a-f]{16}$",
        kind: None,
        value: None,
    },
    Message {
        name: "backfill",
        summary: "The owner says how far a key's records are in its new layout.",
        key: "^backfill/[a-z0-9_-]{1,64}/[\\s\\S]*/(?:0|[1-9][0-9]*)$",
        kind: None,
        value: Some("backfill"),
    },
    Message {
        name: "backfillRemoved",
        summary: "The report is taken back.",
        key: "^backfill/[a-z0-9_-]{1,64}/[\\s\\S]*/(?:0|[1-9][0-9]*)$",
        kind: None,
        value: None,
    },
    Message {
        name: "retired",
        summary: "The owner says how much is left in the layout that a key has left.",
        key: "^retired/[a-z0-9_-]{1,64}/[\\s\\S]*/(?:0|[1-9][0-9]*)$",
        kind: None,
        value: Some("retired"),
    },
    Message {
        name: "retiredRemoved",
        summary: "The report is taken back.",
        key: "^retired/[a-z0-9_-]{1,64}/[\\s\\S]*/(?:0|[1-9][0-9]*)$",
        kind: None,
        value: None,
    },
];

/// The document for topics with these names.
#[must_use]
pub fn asyncapi(settings: &ControlSettings) -> Value {
    let specs = TopicSpec::control(settings);
    let channels = [("plan", ON_PLAN_TOPIC.as_slice()), ("acks", ON_ACKS_TOPIC.as_slice())];
    let channel =
        |((name, messages), spec): ((&str, &[Message]), &TopicSpec)| (name.to_owned(), channel(spec, messages));
    let messages = ON_PLAN_TOPIC.iter().chain(&ON_ACKS_TOPIC);
    json!({
        "asyncapi": "3.0.0",
        "id": "urn:keyheat:protocol:1",
        "info": {
            "title": "keyheat: plans and acknowledgements",
            "version": "1.0.0",
            "description": "Which keys are split, and how routers and owners follow. The rules are in docs/protocol.md.",
            "license": {"name": env!("CARGO_PKG_LICENSE")},
        },
        "defaultContentType": "application/json",
        "channels": channels.into_iter().zip(&specs).map(channel).collect::<Map<_, _>>(),
        "operations": {
            "publishPlans": operation("send", "plan", &ON_PLAN_TOPIC, "The leader decides; routers and owners read."),
            "readAcks": operation("receive", "acks", &ON_ACKS_TOPIC, "Routers and owners say how far they are; the leader reads."),
        },
        "components": {
            "messages": messages.map(|one| (one.name.to_owned(), message(one))).collect::<Map<_, _>>(),
            "schemas": schema::components(),
        },
    })
}

fn channel(spec: &TopicSpec, messages: &[Message]) -> Value {
    let reference = |message: &Message| (message.name.to_owned(), reference("components/messages", message.name));
    let settings =
        spec.settings.iter().map(|setting| (setting.name.to_owned(), value_of(setting.name, &setting.value)));
    json!({
        "address": spec.name,
        "messages": messages.iter().map(reference).collect::<Map<_, _>>(),
        "bindings": {"kafka": {
            "topic": spec.name,
            "partitions": spec.partitions,
            "topicConfiguration": settings.collect::<Map<_, _>>(),
            "bindingVersion": BINDING,
        }},
    })
}

/// A setting as the bindings write it: a list, a number or a word.
fn value_of(name: &str, value: &str) -> Value {
    match value.parse::<i64>() {
        _ if name == "cleanup.policy" => json!([value]),
        Ok(number) => json!(number),
        Err(_) => json!(value),
    }
}

fn operation(action: &str, channel: &str, messages: &[Message], summary: &str) -> Value {
    let messages: Vec<_> =
        messages.iter().map(|message| reference(&format!("channels/{channel}/messages"), message.name)).collect();
    json!({"action": action, "channel": reference("channels", channel), "messages": messages, "summary": summary})
}

fn message(message: &Message) -> Value {
    let payload = match message.value.and_then(schema::component) {
        Some(component) => reference("components/schemas", &component),
        None => json!({"description": "A tombstone: a record without a value.", "type": "null"}),
    };
    let mut written = json!({
        "name": message.name,
        "title": message.name,
        "summary": message.summary,
        "payload": payload,
        "bindings": {"kafka": {"key": {"type": "string", "pattern": message.key}, "bindingVersion": BINDING}},
    });
    if let (Some(kind), Value::Object(fields)) = (message.kind, &mut written) {
        fields.insert("headers".to_owned(), headers(kind));
    }
    written
}

/// The headers of a kind of record. A reader needs the last three; the service writes all.
fn headers(kind: RecordKind) -> Value {
    let text = |description: &str| json!({"description": description, "type": "string"});
    let mut properties = json!({
        "ce_specversion": {"type": "string", "const": "1.0"},
        "ce_id": text("<epoch>-<nonce>-<seq>: the same for the same record, sent again or not."),
        "ce_source": text("Who publishes: a URI reference."),
        "ce_type": {"type": "string", "const": kind.label()},
        "ce_time": text("When it was decided, RFC 3339."),
        "ce_subject": text("The record's key, percent-encoded."),
        "kh_epoch": {"description": "Epoch of the record's version.", "type": "string", "pattern": DECIMAL},
        "kh_nonce": {"description": "Whose claim of the epoch it is.", "type": "string", "pattern": HEX16},
        "kh_seq": {"description": "Number of the record inside its epoch.", "type": "string", "pattern": DECIMAL},
    });
    if let (Some(schema), Value::Object(fields)) = (kind.schema(), &mut properties) {
        fields.insert("ce_dataschema".to_owned(), json!({"type": "string", "const": schema}));
        fields.insert("content-type".to_owned(), json!({"type": "string", "const": "application/json"}));
    }
    json!({"type": "object", "properties": properties, "required": ["kh_epoch", "kh_nonce", "kh_seq"]})
}

fn reference(to: &str, name: &str) -> Value {
    json!({"$ref": format!("#/{to}/{name}")})
}
