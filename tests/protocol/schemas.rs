//! The schemas: made from the types, checked in, and as strict as the decoders where a schema can say it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use jsonschema::Validator;
use keyheat::config::ControlSettings;
use keyheat::control::asyncapi;
use keyheat::protocol::schema::{component, documents};
use keyheat::protocol::{
    AckTopicKey, Advice, BackfillReport, Heartbeat, PlanRecord, PlanTopicKey, Policy, RefusedRecord, RetiredReport,
    RouterAck,
};
use proptest::prelude::*;
use serde_json::Value;

use super::golden_log;
use super::mutate::mutation;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/schemas/v1")
}

fn files() -> Vec<(String, Value)> {
    let schemas = documents().into_iter().map(|document| (format!("{}.schema.json", document.name), document.schema));
    let all = [("asyncapi.json".to_owned(), asyncapi(&ControlSettings::default()))];
    all.into_iter().chain(schemas).collect()
}

/// `KEYHEAT_BLESS=1` writes them anew.
#[test]
fn the_files_are_what_the_types_say() {
    for (name, document) in files() {
        let path = folder().join(&name);
        let made = format!("{document:#}\n");
        if std::env::var_os("KEYHEAT_BLESS").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(written, made, "{name} is not what the types say; KEYHEAT_BLESS=1 writes it anew");
    }
    let mut there: Vec<_> =
        std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    there.sort();
    let mut names: Vec<_> = files().into_iter().map(|(name, _)| name).collect();
    names.sort();
    assert_eq!(there, names);
}

/// The validator of a kind of value, by the file that is checked in.
fn validator(name: &str) -> Validator {
    let text = std::fs::read_to_string(folder().join(format!("{name}.schema.json"))).unwrap();
    jsonschema::draft202012::new(&serde_json::from_str(&text).unwrap()).unwrap()
}

#[test]
fn schemas_are_schemas_and_refer_to_parts_that_exist() {
    for (name, document) in files() {
        if name != "asyncapi.json" {
            assert!(jsonschema::draft202012::meta::validate(&document).is_ok(), "{name}");
            continue;
        }
        let mut references = Vec::new();
        collect_references(&document, &mut references);
        assert!(references.len() > 30);
        for reference in references {
            assert!(
                reference.strip_prefix('#').and_then(|path| document.pointer(path)).is_some(),
                "{reference} leads nowhere"
            );
        }
        for schema in document["components"]["schemas"].as_object().unwrap().values() {
            assert!(jsonschema::draft7::meta::validate(schema).is_ok(), "{schema}");
        }
        assert_eq!(component("plan").as_deref(), Some("PlanRecord"));
        assert_eq!(component("none"), None);
    }
}

fn collect_references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(target) if name == "$ref" => found.push(target.clone()),
                    other => collect_references(other, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        _ => {}
    }
}

/// A released value with the bytes of its record's key.
struct Released {
    kind: &'static str,
    key: Vec<u8>,
    value: Value,
}

fn kind_of(key: &[u8]) -> Option<&'static str> {
    let kinds = ["plan", "advice", "policy", "claim", "heartbeat", "router", "backfill", "retired"];
    let form = key.split(|byte| *byte == b'/').next()?;
    kinds.into_iter().find(|kind| kind.as_bytes() == form && !key.starts_with(b"advice/shard/"))
}

/// Every value of the single records and of the log, those that a reader refuses too.
fn released() -> Vec<Released> {
    use base64::Engine as _;
    let decode = |text: &Value| base64::engine::general_purpose::STANDARD.decode(text.as_str().unwrap()).unwrap();
    let mut all = Vec::new();
    for path in std::fs::read_dir(folder().join("../../../fixtures/protocol/v1")).unwrap() {
        let file: Value = serde_json::from_str(&std::fs::read_to_string(path.unwrap().path()).unwrap()).unwrap();
        let key = decode(&file["key_b64"]);
        if let (Some(kind), Some(value)) = (kind_of(&key), file["value"].as_str()) {
            all.push(Released { kind, key, value: serde_json::from_str(value).unwrap() });
        }
    }
    let log = golden_log::released();
    for record in log["records"].as_array().unwrap().iter().filter(|record| !record["value_b64"].is_null()) {
        let (key, value) = (decode(&record["key_b64"]), serde_json::from_slice(&decode(&record["value_b64"])));
        if let (Some(kind), Ok(value)) = (kind_of(&key), value) {
            all.push(Released { kind, key, value });
        }
    }
    all
}

/// What the decoder of this kind of value says; none for one that no reader decodes.
fn decoded(kind: &str, key: &[u8], value: &Value) -> Option<Result<(), RefusedRecord>> {
    let bytes = value.to_string().into_bytes();
    let on_plan_topic = PlanTopicKey::parse(key).ok();
    match (kind, on_plan_topic, AckTopicKey::parse(key).ok()) {
        ("plan", Some(PlanTopicKey::Plan(key)), _) => Some(PlanRecord::decode(&key, &bytes).map(|_| ())),
        ("advice", Some(PlanTopicKey::Advice(key)), _) => Some(Advice::decode(&key, &bytes).map(|_| ())),
        ("policy", Some(PlanTopicKey::Policy(key)), _) => Some(Policy::decode(&key, &bytes).map(|_| ())),
        ("heartbeat", ..) => Some(Heartbeat::decode(&bytes).map(|_| ())),
        (_, _, Some(AckTopicKey::Router { id, nonce })) => Some(RouterAck::decode(&id, nonce, &bytes).map(|_| ())),
        (_, _, Some(AckTopicKey::Backfill { key, layout })) => {
            Some(BackfillReport::decode(&key, layout, &bytes).map(|_| ()))
        }
        (_, _, Some(AckTopicKey::Retired { key, layout })) => {
            Some(RetiredReport::decode(&key, layout, &bytes).map(|_| ()))
        }
        _ => None,
    }
}

/// Holds schema and decoder against each other: what the decoder takes the schema takes, and what it refuses for its shape the schema
/// refuses. Not what a schema cannot see: the record's key, and two places of a value that are at odds.
fn compare(validator: &Validator, kind: &str, key: &[u8], value: &Value) -> Result<(), String> {
    let valid = validator.is_valid(value);
    let fault = match decoded(kind, key, value) {
        Some(Ok(())) if !valid => "the decoder takes it",
        Some(Err(
            RefusedRecord::Json(_) | RefusedRecord::Schema(_) | RefusedRecord::State(_) | RefusedRecord::Hash(_),
        )) if valid => "the decoder refuses it",
        _ => return Ok(()),
    };
    let why = validator.iter_errors(value).next().map(|error| error.to_string());
    Err(format!("{fault}, the schema says {why:?}: {value}"))
}

#[test]
fn released_values_are_judged_alike() {
    let mut judged = std::collections::BTreeMap::new();
    for Released { kind, key, value } in released() {
        let validator = validator(kind);
        compare(&validator, kind, &key, &value).unwrap();
        *judged.entry((kind, validator.is_valid(&value))).or_insert(0) += 1;
    }
    for kind in ["plan", "advice", "policy", "claim", "heartbeat", "router", "backfill", "retired"] {
        assert!(judged.contains_key(&(kind, true)), "no valid {kind} was judged");
    }
    assert!(judged[&("plan", false)] >= 6, "{judged:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_changed_value_is_refused_by_schema_and_decoder_alike(
        at: prop::sample::Index,
        mutations in prop::collection::vec(mutation(), 1..3),
    ) {
        CASES.with(|cases| {
            let (released, validators) = cases;
            let Released { kind, key, value } = &released[at.index(released.len())];
            let mut value = value.clone();
            mutations.iter().for_each(|mutation| mutation.apply(&mut value));
            let validator = &validators.iter().find(|(name, _)| name == kind).unwrap().1;
            compare(validator, kind, key, &value).map_err(TestCaseError::fail)
        })?;
    }
}

thread_local! {
    /// Read once: four thousand cases need the same.
    static CASES: (Vec<Released>, Vec<(&'static str, Validator)>) = {
        let kinds = ["plan", "advice", "policy", "claim", "heartbeat", "router", "backfill", "retired"];
        let whole = released().into_iter().filter(|one| one.value.as_object().is_some_and(|fields| fields.len() > 1));
        (whole.collect(), kinds.map(|kind| (kind, validator(kind))).into())
    };
}

/// Every field of every kind of value is in a released record, so that its bytes are kept.
#[test]
fn every_field_is_in_a_released_value() {
    let mut missing = BTreeSet::new();
    for document in documents() {
        let values: Vec<Value> =
            released().into_iter().filter(|one| one.kind == document.name).map(|one| one.value).collect();
        let mut fields = vec![(String::new(), document.schema.clone())];
        while let Some((at, schema)) = fields.pop() {
            let properties = resolved(&document.schema, &schema)["properties"].clone();
            for (name, schema) in properties.as_object().into_iter().flatten() {
                let list = resolved(&document.schema, schema)["items"].clone();
                let at = if list.is_object() { format!("{at}/{name}/0") } else { format!("{at}/{name}") };
                if !values.iter().any(|value| value.pointer(&at).is_some_and(|value| !value.is_null())) {
                    missing.insert(format!("{}{at}", document.name));
                }
                fields.push((at, if list.is_object() { list } else { schema.clone() }));
            }
        }
    }
    // The key in base64 and the evidence are the same in all kinds of values that have them.
    missing.retain(|field| !field.ends_with("/key_b64") && !field.starts_with("advice/evidence/"));
    assert_eq!(missing, BTreeSet::new());
}

/// A schema, or the one that it refers to; of `anyOf` with null the other one.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(Value::String(target)) = schema.get("$ref") {
        return document.pointer(target.strip_prefix('#').unwrap()).unwrap();
    }
    match schema.get("anyOf") {
        Some(Value::Array(either)) => resolved(document, &either[0]),
        _ => schema,
    }
}

/// Rules that lie between fields, each broken once.
#[test]
fn what_is_at_odds_with_itself_is_refused() {
    let plan =
        released().into_iter().find(|one| one.value["state"] == "moving" && one.value["key"] == "c42").unwrap().value;
    let validator = validator("plan");
    assert!(validator.is_valid(&plan));
    let broken = |change: fn(&mut Value)| {
        let mut value = plan.clone();
        change(&mut value);
        validator.is_valid(&value)
    };
    assert!(!broken(|value| value["write"] = Value::Null), "no write outside hold");
    assert!(!broken(|value| value["state"] = "hold".into()), "a write in hold");
    assert!(
        !broken(|value| value["read"].as_array_mut().unwrap().truncate(1)),
        "reads that look in the new layout only"
    );
    assert!(!broken(|value| value["read"][1] = value["read"][0].clone()), "a layout that is read twice");
    assert!(!broken(|value| value["key_b64"] = "YQ==".into()), "two keys");
    assert!(!broken(|value| value["bucket"]["key"] = "{key}".into()), "one key for all buckets");
    assert!(broken(|value| value["later"] = 1.into()), "fields of later versions are allowed");
}
