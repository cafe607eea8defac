//! The document says what the code does: its bytes, numbers and tables are made anew and compared; its tables of fields name every
//! field that the schemas have.
//!
//! A place is marked by a line `<!-- checked: NAME -->`; what follows up to the next empty line outside a code block is made by
//! [`super::passages`]. `KEYHEAT_BLESS=1` writes it into the document.

use std::collections::BTreeSet;
use std::path::PathBuf;

use keyheat::protocol::RefusedRecord;
use keyheat::protocol::schema::documents;
use serde_json::Value;

use super::passages::passage;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/protocol.md")
}

fn text() -> String {
    std::fs::read_to_string(path()).unwrap()
}

fn marked<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    line.strip_prefix("<!-- ")?.strip_prefix(word)?.strip_prefix(": ")?.strip_suffix(" -->")
}

/// The lines of the passage that begins at `at`: a table or a code block.
fn length_of(lines: &[&str]) -> usize {
    let ends = |(at, line): (usize, &&str)| match lines[0].starts_with("```") {
        true => (at > 0 && line.starts_with("```")).then_some(at + 1),
        false => (!line.starts_with('|')).then_some(at),
    };
    lines.iter().enumerate().find_map(ends).unwrap_or(lines.len())
}

#[test]
fn what_is_marked_is_what_the_code_makes() {
    let text = text();
    let lines: Vec<&str> = text.lines().collect();
    let (mut made, mut at, mut names) = (Vec::new(), 0, BTreeSet::new());
    while at < lines.len() {
        made.push(lines[at].to_owned());
        if let Some(name) = marked(lines[at], "checked") {
            made.extend(passage(name).lines().map(str::to_owned));
            at += length_of(&lines[at + 1..]);
            assert!(names.insert(name), "{name} is there twice");
        }
        at += 1;
    }
    assert!(names.len() >= 15, "{names:?}");
    let made = made.join("\n") + "\n";
    if std::env::var_os("KEYHEAT_BLESS").is_some() {
        std::fs::write(path(), &made).unwrap();
        return;
    }
    for (number, (is, should)) in text.lines().zip(made.lines()).enumerate() {
        assert_eq!(is, should, "docs/protocol.md:{}: KEYHEAT_BLESS=1 writes it anew", number + 1);
    }
    assert_eq!(text.len(), made.len());
}

/// The names in the first column of each table of fields.
fn tables() -> Vec<(String, Vec<String>)> {
    let text = text();
    let lines: Vec<&str> = text.lines().collect();
    let table = |(at, line): (usize, &&str)| {
        let name = marked(line, "fields")?;
        let rows = lines[at + 3..].iter().take_while(|line| line.starts_with("| "));
        let first = |row: &&str| row.trim_start_matches("| `").split('`').next().unwrap().to_owned();
        Some((name.to_owned(), rows.map(first).collect()))
    };
    lines.iter().enumerate().filter_map(table).collect()
}

/// The fields that a schema has.
fn fields_of(name: &str) -> Vec<String> {
    let document = |name: &str| documents().into_iter().find(|document| document.name == name).unwrap().schema;
    let part = |name: &str, part: &str| document(name)["$defs"][part].clone();
    let schema: Value = match name {
        "labels" => return RefusedRecord::LABELS.map(str::to_owned).into(),
        "layout" => part("plan", "Layout"),
        "migration" => part("plan", "MigrationField"),
        "bucket" => part("plan", "BucketField"),
        "evidence" => part("plan", "Evidence"),
        "prediction" => part("plan", "Prediction"),
        "outcome" => part("plan", "Outcome"),
        "pin" => part("policy", "Pin"),
        "waiting" => part("router", "WaitingKey"),
        "refusals" => part("router", "RefusedKey"),
        kind => document(kind),
    };
    schema["properties"].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn every_field_has_its_row_and_no_other() {
    let tables = tables();
    for (name, rows) in &tables {
        let (mut rows, mut fields) = (rows.clone(), fields_of(name));
        rows.sort();
        fields.sort();
        assert_eq!(rows, fields, "{name}");
    }
    let described: BTreeSet<&str> = tables.iter().map(|(name, _)| name.as_str()).collect();
    for document in documents() {
        assert!(described.contains(document.name), "{} has no table", document.name);
    }
    assert_eq!(tables.len(), 18);
}

#[test]
fn every_word_of_the_protocol_is_explained() {
    let text = text();
    for document in documents() {
        let mut words = Vec::new();
        collect_words(&document.schema, &mut words);
        for word in words {
            assert!(text.contains(&format!("`{word}`")), "{}: the word '{word}' is not in the document", document.name);
        }
    }
}

fn collect_words(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            words.extend(fields.get("const").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| collect_words(value, words));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_words(item, words)),
        _ => {}
    }
}
