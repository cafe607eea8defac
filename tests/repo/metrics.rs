//! Dashboards, rules and texts name only metrics that exist.

use std::collections::BTreeSet;

use keyheat::telemetry::{CATALOGUE, Kind};

use super::tree::{assert_none, texts};

const PREFIX: &str = "keyheat_";
/// Where metrics are spoken of.
const PLACES: [&str; 4] = ["dashboards", "compose", "docs", "README.md"];

/// Every series name that the program can expose.
fn series() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for definition in CATALOGUE {
        names.insert(definition.name.to_owned());
        if matches!(definition.kind, Kind::Histogram { .. }) {
            names.extend(["_bucket", "_sum", "_count"].map(|suffix| format!("{}{suffix}", definition.name)));
        }
    }
    names
}

/// Words that begin with the prefix and go on.
fn named(text: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let of_a_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
        let line_words = line.split(|letter: char| !of_a_name(letter));
        let metrics = line_words.filter(|word| word.strip_prefix(PREFIX).is_some_and(|rest| !rest.is_empty()));
        words.extend(metrics.map(|word| (number + 1, word.to_owned())));
    }
    words
}

#[test]
fn only_metrics_that_exist_are_named() {
    let series = series();
    let mut faults = Vec::new();
    for file in PLACES.iter().flat_map(|place| texts(place)) {
        for (line, name) in named(&file.text) {
            if !series.contains(&name) {
                faults.push(format!("{}:{line}: there is no metric {name}", file.path));
            }
        }
    }
    assert_none(&faults);
}

#[test]
fn planted_names_are_found() {
    let text = "rate(keyheat_no_such_total[1m]) / on() keyheat_other{a=\"b\"} and `keyheat_` and keyheat\n";
    let names: Vec<String> = named(text).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["keyheat_no_such_total", "keyheat_other"]);
    assert!(series().iter().all(|name| !names.contains(name)));
    assert!(series().iter().any(|name| name.starts_with(PREFIX)));
}
