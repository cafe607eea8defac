//! A value with one field gone or changed.

use proptest::prelude::*;
use serde_json::{Value, json};

/// What is done to one place of a value.
#[derive(Debug, Clone)]
pub(crate) struct Mutation {
    at: prop::sample::Index,
    /// None: the field is taken out.
    to: Option<Value>,
}

/// Values that some field has and another must not have, and edges of numbers.
fn pool() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(false),
        json!(-1),
        json!(0),
        json!(1),
        json!(2),
        json!(3),
        json!(8),
        json!(257),
        json!((1_u64 << 32) - 1),
        json!(1_u64 << 32),
        json!((1_u64 << 53) - 1),
        json!(1_u64 << 53),
        json!(u64::MAX),
        json!(1.5),
        json!(""),
        json!("x"),
        json!("hold"),
        json!("settled"),
        json!("versioned"),
        json!("expire"),
        json!("remove"),
        json!("{label}{key}"),
        json!("{key}{label}{key}"),
        json!("0123456789abcdef"),
        json!("0123456789ABCDEF"),
        json!("2026-11-30T10:11:32.120Z"),
        json!([]),
        json!([1]),
        json!({}),
        json!({"layout": 0}),
        json!({"layout": 1}),
        json!({"layout": 1, "buckets": 8}),
        json!({"layout": 0, "first": 7}),
        json!({"epoch": 1, "seq": 1}),
    ]
}

pub(crate) fn mutation() -> impl Strategy<Value = Mutation> {
    let to = prop::option::weighted(0.8, prop::sample::select(pool()));
    (any::<prop::sample::Index>(), to).prop_map(|(at, to)| Mutation { at, to })
}

impl Mutation {
    /// Changes one place, chosen among all that the value has.
    pub(crate) fn apply(&self, value: &mut Value) {
        let mut places = Vec::new();
        collect(value, &mut String::new(), &mut places);
        let place = &places[self.at.index(places.len())];
        let (parent, name) = place.rsplit_once('/').unwrap();
        match (value.pointer_mut(parent), &self.to) {
            (Some(Value::Object(fields)), None) => {
                fields.remove(name);
            }
            (Some(Value::Array(items)), None) => {
                items.remove(name.parse().unwrap());
            }
            (Some(parent), Some(to)) => match parent {
                Value::Array(items) => items[name.parse::<usize>().unwrap()] = to.clone(),
                other => other[name] = to.clone(),
            },
            (None, _) | (Some(_), None) => panic!("no such place: {place}"),
        }
    }
}

/// The pointers of all places below the root. No name of a field has a character that pointers escape.
fn collect(value: &Value, here: &mut String, places: &mut Vec<String>) {
    let names: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        _ => return,
    };
    for (name, value) in names {
        let length = here.len();
        here.push('/');
        here.push_str(&name);
        places.push(here.clone());
        collect(value, here, places);
        here.truncate(length);
    }
}
