//! The whole file: syntax, then every section, then what they have to do with each other.

use std::collections::BTreeMap;

use toml::de::DeTable;
use xxhash_rust::xxh64::xxh64;

use super::fault::{Fault, Faults, Place};
use super::section::{Outcome, Report, Section};
use super::settings::{ConfigHash, Settings};
use super::{connection, events, keyspace, outside, planning, seed};
use crate::engine::EngineSettings;

/// A longer file is refused.
pub const MAX_CONFIG_BYTES: usize = 1 << 20;

/// A configuration without faults.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// What the service is told.
    pub settings: Settings,
    /// What works and may not be what was meant.
    pub warnings: Vec<Fault>,
    /// Path and canonical value of every key in use, defaults too; nothing secret.
    pub as_used: BTreeMap<String, String>,
}

/// Reads a configuration.
///
/// # Errors
/// Every fault of the file at once, in its order. A file that is no TOML gives its faults of syntax alone, since what follows
/// them cannot be told.
pub fn load(text: &str) -> Result<Loaded, Faults> {
    let (settings, outcome) = walk(text)?;
    match settings {
        Some(mut settings) if outcome.faults.is_empty() => {
            settings.hash = hash(&outcome.used);
            Ok(Loaded { settings, warnings: outcome.warnings, as_used: outcome.used })
        }
        _ => Err(Faults { list: outcome.faults, cut: outcome.cut }),
    }
}

/// More faults of syntax than these are mostly the first one's doing.
const MAX_SYNTAX_FAULTS: usize = 3;

/// Walks over a text that is TOML.
pub(super) fn walk(text: &str) -> Result<(Option<Settings>, Outcome), Faults> {
    let document = parse(text)?;
    let report = Report::new(text);
    let root = Section::root(&report, &document);
    let settings = settings(&root);
    root.finish();
    Ok((settings, report.finish()))
}

fn parse(text: &str) -> Result<DeTable<'_>, Faults> {
    if text.len() > MAX_CONFIG_BYTES {
        let what = format!("got a file of {} bytes", text.len());
        let rule = format!("should be at most {MAX_CONFIG_BYTES} bytes");
        let fault = Fault { place: Place::START, key: String::new(), what, rule, remedy: None };
        return Err(Faults { list: vec![fault], cut: 0 });
    }
    let (document, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(document.into_inner());
    }
    let mut list: Vec<Fault> = errors
        .iter()
        .map(|error| Fault {
            place: Place::of_byte(text, error.span().map_or(0, |span| span.start)),
            key: String::new(),
            what: format!("not TOML: {}", error.message().replace('\n', ", ")),
            rule: String::new(),
            remedy: None,
        })
        .collect();
    list.sort();
    // One slip, e.g. a bracket that is not closed, makes faults of all that follows it.
    list.dedup_by_key(|fault| fault.place.line);
    let cut = list.len().saturating_sub(MAX_SYNTAX_FAULTS);
    list.truncate(MAX_SYNTAX_FAULTS);
    Err(Faults { list, cut })
}

/// None only after a fault was noted.
fn settings(root: &Section<'_, '_>) -> Option<Settings> {
    let kafka = connection::kafka(root);
    let (source, fields, input) = events::input(root);
    let time = events::time(root);
    let seed = seed::read(root, &source.topic);
    let keyspaces = keyspace::all(root, seed, time, fields);
    let (budget, protocol) = (planning::budget(root), planning::protocol(root));
    let control = outside::control(root, &source.topic);
    let observe = outside::observe(root);
    let service = outside::service(root);

    let mut input = input?;
    input.keys = keyspaces.iter().map(|keyspace| keyspace.key.clone()).collect::<Option<Vec<_>>>()?;
    let (keyspaces, plans) = keyspaces.into_iter().map(|keyspace| (keyspace.counting, keyspace.plan)).unzip();
    let engine = EngineSettings { keyspaces, time };
    let hash = ConfigHash(0);
    Some(Settings { kafka, source, input, engine, plans, budget, protocol, control, observe, service, hash })
}

/// Sections on which decisions depend.
const HASHED_SECTIONS: [&str; 5] = ["input.", "keyspace[", "plan.", "protocol.", "time."];

fn hash(used: &BTreeMap<String, String>) -> ConfigHash {
    let mut canonical = String::new();
    for (path, value) in used.iter().filter(|(path, _)| HASHED_SECTIONS.iter().any(|section| path.starts_with(section)))
    {
        canonical.push_str(path);
        canonical.push_str(" = ");
        canonical.push_str(value);
        canonical.push('\n');
    }
    ConfigHash(xxh64(canonical.as_bytes(), 0))
}
