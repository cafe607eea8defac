//! Pure folders reach nothing outside. The compiler refuses crates that do I/O there (they are not there without features); the parts
//! of `std` that do are refused here.

use std::collections::BTreeSet;

use super::scan::{Look, Scanned, scan};
use super::tree::{TextFile, assert_none, sources};

/// Folders and files of src/ in which time is an argument and decisions are values.
const PURE: [&str; 9] = ["units", "input", "engine", "protocol", "plan", "router", "analyze", "telemetry", "config"];

const MODULES_OF_STD: [&str; 7] = ["fs", "net", "env", "thread", "process", "os", "backtrace"];
const NAMES_OF_TIME: [&str; 4] = ["Instant", "SystemTime", "UNIX_EPOCH", "*"];
const NAMES_OF_IO: [&str; 7] = ["stdin", "stdout", "stderr", "Stdin", "Stdout", "Stderr", "*"];
const CRATES: [&str; 6] = ["tokio", "tracing", "log", "rdkafka", "axum", "rand"];
const MACROS: [&str; 5] = ["print", "println", "eprint", "eprintln", "dbg"];

/// Why a path is refused in a pure folder.
fn refusal(path: &[String]) -> Option<&'static str> {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    match names.as_slice() {
        ["std" | "core" | "alloc", "*"] => Some("names everything of std, so that nobody sees what is used"),
        ["std", module, ..] if MODULES_OF_STD.contains(module) => Some("reaches outside"),
        ["std", "time", name, ..] if NAMES_OF_TIME.contains(name) => {
            Some("asks for the time, which is an argument here")
        }
        ["std", "io", name, ..] if NAMES_OF_IO.contains(name) => Some("reads or writes the terminal"),
        [name, ..] if CRATES.contains(name) => Some("is a crate that does I/O"),
        _ => None,
    }
}

fn faults(path: &str, scanned: &Scanned) -> Vec<String> {
    let mut faults = BTreeSet::new();
    for named in &scanned.paths {
        if let Some(why) = refusal(&named.path) {
            faults.insert(format!("{path}:{}: {} {why}", named.line, named.path.join("::")));
        }
    }
    for (name, line) in &scanned.macros {
        if MACROS.contains(&name.as_str()) {
            faults.insert(format!("{path}:{line}: {name}! prints; give back a value"));
        }
    }
    faults.into_iter().collect()
}

/// Paths without `.rs` and `/mod.rs` of the modules that a file has only in tests or with a feature.
fn gated_by(file: &TextFile, scanned: &Scanned) -> Vec<String> {
    let module = module_of(&file.path);
    scanned.gated.iter().map(|name| format!("{module}/{name}")).collect()
}

fn module_of(path: &str) -> &str {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    path.strip_suffix("/mod").unwrap_or(path)
}

fn is_below(module: &str, above: &str) -> bool {
    module.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[test]
fn pure_folders_reach_nothing_outside() {
    let files: Vec<TextFile> = PURE
        .iter()
        .flat_map(|name| [sources(&format!("src/{name}.rs")), sources(&format!("src/{name}"))])
        .flatten()
        .collect();
    assert!(files.len() > 20, "found {} files of the pure folders", files.len());
    let scans: Vec<(TextFile, Scanned)> = files
        .into_iter()
        .map(|file| {
            let scanned = scan(&file.text, Look::Bare);
            (file, scanned)
        })
        .collect();
    let gated: Vec<String> = scans.iter().flat_map(|(file, scanned)| gated_by(file, scanned)).collect();
    let bare = scans.iter().filter(|(file, _)| !gated.iter().any(|gated| is_below(module_of(&file.path), gated)));
    assert_none(&bare.flat_map(|(file, scanned)| faults(&file.path, scanned)).collect::<Vec<_>>());
}

#[test]
fn planted_violations_are_found() {
    for planted in [
        "use std::fs;",
        "use std::{collections::BTreeMap, net::{IpAddr, TcpStream}};",
        "use std::time::{Duration, Instant};",
        "use std::time; fn f() { time::Instant::now(); }",
        "use std::time as t; fn f(at: t::SystemTime) {}",
        "use std as s; use s::env; ",
        "extern crate std as s;",
        "use std::*;",
        "use ::std::process::Command;",
        "fn f() { ::std::thread::sleep(d) }",
        "fn f() { assert!(std::env::args().count() > 1) }",
        "fn f() { println!(\"{}\", 1) }",
        "fn f() { std::eprintln!() }",
        "fn f() { vec![dbg!(1)] }",
        "use std::io; fn f() { io::stdout(); }",
        "struct S { at: std::time::SystemTime }",
        "#[cfg(not(test))] use std::fs;",
        "mod inner { pub(super) use std::fs::File; }",
        "use tracing::info;",
        "fn f() { tokio::spawn(x) }",
    ] {
        assert!(!faults("planted.rs", &scan(planted, Look::Bare)).is_empty(), "not found: {planted}");
    }
}

#[test]
fn what_is_allowed_is_not_found() {
    for allowed in [
        "use std::time::Duration;",
        "use std::io::{self, Read}; fn f(r: impl Read) -> io::Result<()> { r.read() }",
        "//! std::fs is not used here\n",
        "/// See [`std::env::args`].\nfn f() { let text = \"std::process::exit\"; }",
        "fn f(env: Env) { env::of(x); }",
        "const V: &str = env!(\"CARGO_PKG_VERSION\");",
        "#[cfg(test)] mod tests { use std::fs; fn f() { println!() } }",
        "#[cfg(feature = \"service\")] mod events;",
        "fn f(w: &mut impl std::fmt::Write) { writeln!(w, \"x\") }",
    ] {
        assert_eq!(faults("allowed.rs", &scan(allowed, Look::Bare)), Vec::<String>::new(), "{allowed}");
    }
}
