//! Every dependency says why it is there.

use std::fs;

use super::tree::{assert_none, root};

/// Lines of a manifest that name a dependency without a word why.
fn unexplained(manifest: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut in_dependencies = false;
    let mut count = 0;
    for (number, line) in manifest.lines().enumerate() {
        if let Some(section) = line.strip_prefix('[') {
            in_dependencies = section.contains("dependencies");
            if section.contains("dependencies.") {
                faults.push(format!("line {}: write {line} as one line of its section, with a word why", number + 1));
            }
        } else if in_dependencies && line.starts_with(|first: char| first.is_ascii_alphabetic()) {
            count += 1;
            // No value of a dependency has a `#` in it.
            let why = line.split_once('#').map(|(_, why)| why.trim()).unwrap_or_default();
            if why.split_whitespace().count() < 2 {
                faults.push(format!("line {}: no word why: {line}", number + 1));
            }
        }
    }
    if count == 0 {
        faults.push("found no dependencies".to_owned());
    }
    faults
}

#[test]
fn every_dependency_says_why() {
    for manifest in ["Cargo.toml", "tests/fuzz/Cargo.toml"] {
        assert_none(&unexplained(&fs::read_to_string(root().join(manifest)).expect("the manifest")));
    }
}

#[test]
fn planted_dependencies_are_found() {
    assert_eq!(
        unexplained(
            "[dependencies]\na = \"1\" # reads times\n[features]\nx = []\n[dev-dependencies]\nb = \"1\" # for tests\n"
        ),
        Vec::<String>::new()
    );
    assert_eq!(unexplained("[dependencies]\na = \"1\"\nb = { version = \"1\" } # why\n").len(), 2);
    assert_eq!(unexplained("[package]\n").len(), 1);
}
