//! The decoder's definition, slow, on `serde_json` alone: for properties, and by its path for a fuzz target.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::{Decoder, InputSettings, Operation, OperationWords, Part, Refusal, Template, parse_time};

const MAX_RECORD_BYTES: usize = 4096;
const MAX_KEY_BYTES: usize = 24;

pub(crate) fn settings() -> InputSettings {
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
pub(crate) struct Owned {
    time_ms: i64,
    keys: Vec<Vec<u8>>,
    shard: Vec<u8>,
    request_id: Vec<u8>,
    caller: Vec<u8>,
    operation: Operation,
}

pub(crate) fn reference(record: &[u8], settings: &InputSettings) -> Result<Owned, Refusal> {
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

pub(crate) fn decoded(decoder: &mut Decoder, record: &[u8]) -> Result<Owned, Refusal> {
    decoder.decode(record).map(|event| Owned {
        time_ms: event.time.as_millis(),
        keys: event.keys.0[..4].iter().map(|key| key.to_vec()).collect(),
        shard: event.shard.to_vec(),
        request_id: event.request_id.to_vec(),
        caller: event.caller.to_vec(),
        operation: event.operation,
    })
}
