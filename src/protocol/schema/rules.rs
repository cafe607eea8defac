//! What the types alone do not say of their values.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::protocol::{Digest, KeyField, Layout, MAX_BUCKETS, Nonce};

/// A number of 64 bits as text: the one spelling that it has.
pub(in crate::protocol) const HEX16: &str = "^[0-9a-f]{16}$";
/// The most that `first` may be: the labels of the smallest layout end below 2^32.
const MAX_FIRST: u32 = u32::MAX - 2;

/// The rule of `write`: null in hold and nowhere else. Where reads look in two layouts, they are there.
pub(in crate::protocol) fn plan_record(schema: &mut Schema) {
    let state = |names: &[&str]| json!({"properties": {"state": {"enum": names}}, "required": ["state"]});
    let rules = json!([
        {
            "if": state(&["hold"]),
            "then": {"properties": {"write": {"type": "null"}}},
            "else": {"properties": {"write": {"type": "object"}}, "required": ["write"]},
        },
        {
            "if": state(&["prepare", "hold", "dual", "moving"]),
            "then": {"properties": {"read": {"minItems": 2}}},
        },
    ]);
    match schema.ensure_object().get_mut("allOf") {
        Some(Value::Array(all)) => all.extend(rules.as_array().cloned().unwrap_or_default()),
        _ => {
            schema.insert("allOf".to_owned(), rules);
        }
    }
}

/// `{key}` and `{label}` once each.
pub(in crate::protocol) fn bucket_key(schema: &mut Schema) {
    let once = |name: &str| {
        json!([
            {"pattern": format!(r"\{{{name}\}}")},
            {"not": {"pattern": format!(r"\{{{name}\}}[\s\S]*\{{{name}\}}")}},
        ])
    };
    let rules = ["key", "label"].into_iter().flat_map(|name| once(name).as_array().cloned().unwrap_or_default());
    schema.insert("allOf".to_owned(), rules.collect::<Vec<_>>().into());
    schema.insert("maxLength".to_owned(), crate::protocol::MAX_BUCKET_KEY_BYTES.into());
}

/// Ranges in place of the names of Rust's number types, which no validator knows.
pub(super) fn plain_numbers(schema: &mut Schema) {
    let (least, most) = match schema.get("format").and_then(Value::as_str) {
        Some("uint32") => (json!(0), json!(u32::MAX)),
        Some("uint64") => (json!(0), json!(u64::MAX)),
        Some("int64") => (json!(i64::MIN), json!(i64::MAX)),
        Some("double") => {
            schema.remove("format");
            return;
        }
        _ => return,
    };
    schema.remove("format");
    for (name, limit) in [("minimum", least), ("maximum", most)] {
        if schema.get(name).is_none() {
            schema.insert(name.to_owned(), limit);
        }
    }
}

/// A description is running text, wherever the lines of its source ended.
pub(super) fn whole_text(schema: &mut Schema) {
    if let Some(text) = schema.get("description").and_then(Value::as_str) {
        let text = text.split('\n').map(str::trim).collect::<Vec<_>>().join(" ");
        schema.insert("description".to_owned(), text.into());
    }
}

macro_rules! hex_schema {
    ($type:ty, $name:literal, $what:literal) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
                json_schema!({"description": $what, "type": "string", "pattern": HEX16})
            }
        }
    };
}

hex_schema!(
    Nonce,
    "Nonce",
    "A random number that names one claimant or one router's snapshot: 16 hexadecimal digits in lower case."
);
hex_schema!(Digest, "Digest", "The digest of a table of plans, version 1: 16 hexadecimal digits in lower case.");

impl JsonSchema for Layout {
    fn schema_name() -> Cow<'static, str> {
        "Layout".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        let powers: Vec<u32> = (1..=MAX_BUCKETS.ilog2()).map(|power| 1 << power).collect();
        json_schema!({
            "description": "Where one key's records live. Number 0 is the bare key; every other has buckets with the labels \
                first .. first + buckets.",
            "type": "object",
            "properties": {
                "layout": {"description": "Number of the layout, unique for its key.", "type": "integer"},
                "buckets": {"description": "Number of buckets; not in layout 0."},
                "first": {
                    "description": "Label of the first bucket; 0 when absent; not in layout 0. The last label is below 2^32.",
                    "type": ["integer", "null"], "minimum": 0, "maximum": u32::MAX,
                },
            },
            "required": ["layout"],
            "if": {"properties": {"layout": {"const": 0}}},
            "then": {"properties": {"buckets": {"type": "null"}}},
            "else": {
                "properties": {
                    "layout": {"minimum": 1, "maximum": u32::MAX},
                    "buckets": {"enum": powers},
                    "first": {"maximum": MAX_FIRST},
                },
                "required": ["buckets"],
            },
        })
    }
}

impl JsonSchema for KeyField {
    fn schema_name() -> Cow<'static, str> {
        "KeyField".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": {
                "key": {"description": "The key, when it is UTF-8.", "type": "string"},
                "key_b64": {
                    "description": "The key in standard base64 with padding, when it is not UTF-8.",
                    "type": "string",
                    "contentEncoding": "base64",
                    "pattern": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
                },
            },
            "oneOf": [{"required": ["key"]}, {"required": ["key_b64"]}],
        })
    }
}
