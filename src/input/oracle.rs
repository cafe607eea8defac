//! The decoder against a slow one that stands on `serde_json` alone, on generated and mutated records.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::decoder::Decoder;
use super::event::Operation;
use super::refusal::Refusal;
use super::settings::{InputSettings, OperationWords};
use super::template::{Part, Template};
use super::time::parse_time;

const MAX_RECORD_BYTES: usize = 4096;
const MAX_KEY_BYTES: usize = 24;

fn settings() -> InputSettings {
    let template = |text: &str| text.parse::<Template>().unwrap();
    InputSettings {
        keys: ["/key", "{/a/b}|{/key}", "/a/0/b", "{/l}{/}{{"].map(template).to_vec(),
        time: template("/ts"),
        shard: Some(template("/a")),
        request_id: Some(template("{/key}")),
        operation: Some(template("/b")),
        operation_words: OperationWords::default(),
        caller: Some(template("/l/1")),
        weight: None,
        max_record_bytes: MAX_RECORD_BYTES,
        max_key_bytes: MAX_KEY_BYTES,
    }
}

/// An event with everything in it owned.
#[derive(Debug, PartialEq)]
struct Owned {
    time_ms: i64,
    keys: Vec<Vec<u8>>,
    shard: Vec<u8>,
    request_id: Vec<u8>,
    caller: Vec<u8>,
    operation: Operation,
}

fn reference(record: &[u8], settings: &InputSettings) -> Result<Owned, Refusal> {
    if record.is_empty() {
        return Err(Refusal::Empty);
    }
    if record.len() > settings.max_record_bytes {
        return Err(Refusal::TooLong);
    }
    let record = record.strip_prefix(b"\xef\xbb\xbf").unwrap_or(record);
    let accepted = serde_json::from_slice::<serde_json::Value>(record).is_ok_and(|value| value.is_object());
    let text = std::str::from_utf8(record).map_err(|_| Refusal::NotJson)?;
    if !accepted {
        return Err(Refusal::NotJson);
    }
    let keys: Vec<_> = settings.keys.iter().map(|key| key_of(text, key)).collect();
    if keys.iter().all(Result::is_err) {
        return Err(*keys[0].as_ref().unwrap_err());
    }
    let time = value_of(text, &settings.time).filter(|time| !time.is_empty()).ok_or(Refusal::TimeMissing)?;
    let time_ms = parse_time(&time).ok_or(Refusal::TimeInvalid)?.as_millis();
    let optional = |template: &Option<Template>| {
        let value = template.as_ref().and_then(|template| value_of(text, template)).unwrap_or_default();
        if value == b"-" || value.len() > settings.max_key_bytes { Vec::new() } else { value }
    };
    let operation = match optional(&settings.operation).to_ascii_lowercase().as_slice() {
        b"get" => Operation::Read,
        b"put" => Operation::Write,
        _ => Operation::Unknown,
    };
    Ok(Owned {
        time_ms,
        keys: keys.into_iter().map(Result::unwrap_or_default).collect(),
        shard: optional(&settings.shard),
        request_id: optional(&settings.request_id),
        caller: optional(&settings.caller),
        operation,
    })
}

fn key_of(record: &str, template: &Template) -> Result<Vec<u8>, Refusal> {
    let key = value_of(record, template).ok_or(Refusal::KeyMissing)?;
    match key.len() {
        0 => Err(Refusal::KeyEmpty),
        length if length > MAX_KEY_BYTES => Err(Refusal::KeyTooLong),
        _ => Ok(key),
    }
}

fn value_of(record: &str, template: &Template) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    for part in template.parts() {
        match part {
            Part::Literal(text) => value.extend_from_slice(text),
            Part::Pointer(steps) => value.extend_from_slice(&text_at(record, steps)?),
        }
    }
    Some(value)
}

fn text_at(json: &str, steps: &[String]) -> Option<Vec<u8>> {
    let Some((step, rest)) = steps.split_first() else { return scalar(json) };
    if json.starts_with('{') || json.trim_start().starts_with('{') {
        let members: HashMap<String, Box<RawValue>> = serde_json::from_str(json).ok()?;
        return text_at(members.get(step)?.get(), rest);
    }
    let elements: Vec<Box<RawValue>> = serde_json::from_str(json).ok()?;
    let index: usize = step.parse().ok().filter(|index: &usize| index.to_string() == *step)?;
    text_at(elements.get(index)?.get(), rest)
}

fn scalar(json: &str) -> Option<Vec<u8>> {
    match serde_json::from_str::<serde_json::Value>(json).ok()? {
        serde_json::Value::String(text) => Some(text.into_bytes()),
        serde_json::Value::Number(_) | serde_json::Value::Bool(_) => Some(json.as_bytes().to_vec()),
        _ => None,
    }
}

fn decoded(decoder: &mut Decoder, record: &[u8]) -> Result<Owned, Refusal> {
    decoder.decode(record).map(|event| Owned {
        time_ms: event.time.as_millis(),
        keys: event.keys.0[..4].iter().map(|key| key.to_vec()).collect(),
        shard: event.shard.to_vec(),
        request_id: event.request_id.to_vec(),
        caller: event.caller.to_vec(),
        operation: event.operation,
    })
}

/// Names of the templates, names that differ from them by little, and one with an escape.
fn name() -> impl Strategy<Value = String> {
    let known = ["key", "ts", "a", "b", "l", "0", "", "ke", "keyy", "é", "k\\u0065y", "\\u0061", "a\\nb"];
    prop_oneof![
        8 => proptest::sample::select(known.to_vec()).prop_map(|name| format!("\"{name}\"")),
        1 => ".{0,70}".prop_map(|text| serde_json::to_string(&text).unwrap_or_default()),
    ]
}

fn scalar_json() -> impl Strategy<Value = String> {
    let fixed = [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1.50",
        "1e2",
        "1e400",
        "-9153905493322907410",
        "1700000000123",
        "\"\"",
        "\"-\"",
        "\"GET\"",
        "\"put\"",
        "\"2023-11-14T22:13:20.123Z\"",
        "\"\\ud83d\\ude00\"",
        "\"\\ud83d\"",
        "\"a\\\"b\"",
        "\"0123456789012345678901234\"",
        "\"\\u0041123456789012345678901234\"",
        "123456789012345678901234567890",
    ];
    prop_oneof![
        4 => proptest::sample::select(fixed.to_vec()).prop_map(str::to_owned),
        1 => ".{0,40}".prop_map(|text| serde_json::to_string(&text).unwrap_or_default()),
        1 => any::<f64>().prop_map(|number| format!("{number:e}")),
        1 => any::<i64>().prop_map(|number| number.to_string()),
    ]
}

fn space() -> impl Strategy<Value = String> {
    prop_oneof![6 => Just(String::new()), 1 => "[ \\t\\r\\n]{1,3}"]
}

fn json() -> impl Strategy<Value = String> {
    scalar_json().prop_recursive(4, 24, 4, |inner| {
        let member =
            (name(), space(), inner.clone()).prop_map(|(name, space, value)| format!("{name}{space}:{space}{value}"));
        prop_oneof![
            proptest::collection::vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(","))),
            proptest::collection::vec(inner, 0..4).prop_map(|elements| format!("[{}]", elements.join(" ,"))),
        ]
    })
}

fn record() -> impl Strategy<Value = String> {
    let member =
        (name(), space(), json()).prop_map(|(name, space, value)| format!("{space}{name}:{space}{value}{space}"));
    let tail = prop_oneof![6 => Just(""), 1 => Just("\r\n"), 1 => Just("{}"), 1 => Just(",")];
    let head = prop_oneof![6 => Just(""), 1 => Just("\u{feff}"), 1 => Just(" ")];
    let usual = prop_oneof![3 => Just("\"ts\":1700000000123,\"key\":\"k\""), 1 => Just("\"a\":1")];
    (head, usual, proptest::collection::vec(member, 0..7), tail).prop_map(|(head, usual, mut members, tail)| {
        let place = members.len() / 2;
        members.insert(place, usual.to_owned());
        format!("{head}{{{}}}{tail}", members.join(","))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_decoder_agrees_with_serde_json(records in proptest::collection::vec(record(), 1..4)) {
        let settings = settings();
        let mut decoder = Decoder::new(&settings);
        for record in records {
            let record = record.as_bytes();
            prop_assert_eq!(decoded(&mut decoder, record), reference(record, &settings), "{}", record.escape_ascii());
        }
    }

    #[test]
    fn it_agrees_on_records_with_a_changed_byte(
        record in record(),
        place in any::<prop::sample::Index>(),
        byte in prop_oneof![any::<u8>(), proptest::sample::select(b"{}[]\":,\\u0-.eE \x00\x1f\x7f\x80\xff".to_vec())],
        kind in 0..3_u8,
    ) {
        let mut bytes = record.into_bytes();
        let place = place.index(bytes.len());
        match kind {
            0 => bytes[place] = byte,
            1 => bytes.insert(place, byte),
            _ => { bytes.remove(place); }
        }
        let settings = settings();
        prop_assert_eq!(decoded(&mut Decoder::new(&settings), &bytes), reference(&bytes, &settings), "{}", bytes.escape_ascii());
    }

    #[test]
    fn any_bytes_are_refused_or_decoded(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let settings = settings();
        prop_assert_eq!(decoded(&mut Decoder::new(&settings), &bytes), reference(&bytes, &settings));
    }
}
