//! YAML files as values that are asked by JSON pointer.

use std::fs;

use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::{Map, Value};

use super::tree::root;

/// The only document of a file of the repository, merge keys (`<<`) carried out.
pub(crate) fn read(path: &str) -> Value {
    let text = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    parse(&text).unwrap_or_else(|fault| panic!("{path}: {fault}"))
}

fn parse(text: &str) -> Result<Value, String> {
    let documents = Yaml::load_from_str(text).map_err(|error| error.to_string())?;
    match documents.as_slice() {
        [document] => value(document),
        other => Err(format!("{} documents, where one belongs", other.len())),
    }
}

fn value(node: &Yaml<'_>) -> Result<Value, String> {
    match node {
        Yaml::Value(Scalar::Null) => Ok(Value::Null),
        Yaml::Value(Scalar::Boolean(boolean)) => Ok(Value::Bool(*boolean)),
        Yaml::Value(Scalar::Integer(integer)) => Ok(Value::from(*integer)),
        Yaml::Value(Scalar::FloatingPoint(float)) => Ok(Value::from(float.into_inner())),
        Yaml::Value(Scalar::String(text)) => Ok(Value::from(text.as_ref())),
        Yaml::Sequence(nodes) => nodes.iter().map(value).collect::<Result<Vec<_>, _>>().map(Value::from),
        Yaml::Mapping(pairs) => {
            let mut own = Map::new();
            let mut merged = Map::new();
            for (key, node) in pairs {
                let key = key.as_str().ok_or_else(|| format!("a key is no text: {key:?}"))?;
                match (key, value(node)?) {
                    ("<<", Value::Object(map)) => merged.extend(map),
                    (key, value) => drop(own.insert(key.to_owned(), value)),
                }
            }
            merged.extend(own);
            Ok(Value::Object(merged))
        }
        other => Err(format!("not expected here: {other:?}")),
    }
}

#[test]
fn merge_keys_are_carried_out() {
    let read = parse("x: &x {a: 1, b: [yes, '2']}\ny:\n  <<: *x\n  a: 3\n");
    assert_eq!(read, Ok(serde_json::json!({"x": {"a": 1, "b": ["yes", "2"]}, "y": {"a": 3, "b": ["yes", "2"]}})));
    assert!(parse("a: [").is_err());
    assert!(parse("a: 1\n---\nb: 1\n").is_err());
}
