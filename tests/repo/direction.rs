//! A folder of src/ uses only those above it in the one list below, which is also the order of `lib.rs`.

use std::fs;

use super::scan::{Look, Named, scan};
use super::tree::{assert_none, root, sources};

/// From what knows nothing to what knows everything. The engine predicts loads of buckets by the bucket hash of the protocol.
const ORDER: [&str; 17] = [
    "units",
    "input",
    "protocol",
    "engine",
    "plan",
    "router",
    "analyze",
    "telemetry",
    "config",
    "source",
    "control",
    "cluster",
    "observe",
    "service",
    "simulate",
    "cli",
    "main",
];

fn place(name: &str) -> Option<usize> {
    ORDER.iter().position(|listed| *listed == name)
}

/// The modules that lead to a file: `src/plan/policy.rs` is plan, policy.
fn modules_of(path: &str) -> Vec<String> {
    let inner = path.strip_prefix("src/").and_then(|path| path.strip_suffix(".rs")).expect("a file of src/");
    inner.split('/').filter(|name| *name != "mod").map(str::to_owned).collect()
}

/// The folder that a path reaches into, where it is of this crate.
fn reached(named: &Named, modules: &[String]) -> Option<String> {
    let mut here: Vec<&String> = modules.iter().chain(&named.within).collect();
    let mut names = named.path.iter().peekable();
    match names.next()?.as_str() {
        "crate" | "keyheat" => here.clear(),
        "self" => {}
        "super" => {
            here.pop();
            while names.next_if(|name| *name == "super").is_some() {
                here.pop();
            }
        }
        _ => return None,
    }
    here.into_iter().chain(names).next().cloned()
}

fn faults(path: &str, text: &str) -> Vec<String> {
    let modules = modules_of(path);
    let Some(own) = modules.first().and_then(|name| place(name)) else {
        return vec![format!("{path}: its folder is not on the list of tests/repo/direction.rs and of the design")];
    };
    let fault = |named: &Named| {
        let reached = reached(named, &modules)?;
        let below = reached == "*" || place(&reached).is_some_and(|place| place > own);
        below.then(|| format!("{path}:{}: {} is below this folder", named.line, named.path.join("::")))
    };
    scan(text, Look::All).paths.iter().filter_map(fault).collect()
}

#[test]
fn folders_use_only_those_above() {
    let files = sources("src").into_iter().filter(|file| file.path != "src/lib.rs");
    assert_none(&files.flat_map(|file| faults(&file.path, &file.text)).collect::<Vec<_>>());
}

#[test]
fn the_library_lists_its_modules_in_that_order() {
    let text = fs::read_to_string(root().join("src/lib.rs")).expect("the library");
    let listed: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod "))
        .filter_map(|rest| rest.strip_suffix(';'))
        .collect();
    let ordered: Vec<&str> = ORDER.into_iter().filter(|name| listed.contains(name)).collect();
    assert_eq!(listed, ordered);
}

#[test]
fn planted_violations_are_found() {
    for (path, text) in [
        ("src/engine/rules.rs", "use crate::plan::Operation;"),
        ("src/engine/rules.rs", "use crate::{input::AccessEvent, router};"),
        ("src/engine/rules.rs", "use super::super::cli;"),
        ("src/engine/mod.rs", "use super::service::clock;"),
        ("src/engine/sketch/hash.rs", "mod tests { use super::super::super::super::control::X; }"),
        ("src/units.rs", "fn f() { crate::input::decode(x) }"),
        ("src/plan/a.rs", "use crate as k; fn f() { k::router::Table::new() }"),
        ("src/plan/a.rs", "use crate::*;"),
        ("src/other/a.rs", ""),
    ] {
        assert!(!faults(path, text).is_empty(), "not found: {text} in {path}");
    }
    for (path, text) in [
        ("src/plan/a.rs", "use crate::engine::Verdict; use super::b; use self::c::D; use super::super::units::Span;"),
        ("src/engine/sketch/hash.rs", "mod tests { use super::*; use super::super::X; use super::super::super::Y; }"),
        ("src/engine/a.rs", "pub(super) fn f() { plan::x(); Self::y() }"),
        ("src/main.rs", "use keyheat::cli;"),
    ] {
        assert_eq!(faults(path, text), Vec::<String>::new(), "{text} in {path}");
    }
}
