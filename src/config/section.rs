//! A walk over the file that notes every fault, every key that was asked for and every value in use.
//!
//! A key is known because a stage asked for it: there is no second list of names that could differ. What nobody asked for is
//! unknown, and the nearest name that was asked for is the remedy.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::{Fault, MAX_FAULTS, Place};
use super::kind::{Kind, Wrong};

/// What a walk has found so far.
pub(super) struct Report<'t> {
    text: &'t str,
    found: RefCell<Found>,
}

#[derive(Default)]
struct Found {
    faults: Vec<Fault>,
    warnings: Vec<Fault>,
    cut: usize,
    asked: BTreeSet<String>,
    used: BTreeMap<String, String>,
    unknown: Vec<Unknown>,
}

struct Unknown {
    place: Place,
    section: String,
    name: String,
    siblings: Vec<&'static str>,
}

/// What a walk found.
pub(super) struct Outcome {
    pub(super) faults: Vec<Fault>,
    pub(super) cut: usize,
    pub(super) warnings: Vec<Fault>,
    /// Path of each key that was asked for, with `[]` for the numbers of lists.
    #[cfg(test)]
    pub(super) asked: BTreeSet<String>,
    /// Path and canonical value of each key in use, defaults too.
    pub(super) used: BTreeMap<String, String>,
}

/// The longest part of a value that a fault shows, in characters.
const MAX_SHOWN_CHARS: usize = 64;

impl<'t> Report<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, found: RefCell::default() }
    }

    fn fault(&self, fault: Fault) {
        let mut found = self.found.borrow_mut();
        if found.faults.len() < MAX_FAULTS {
            found.faults.push(fault);
        } else {
            found.cut += 1;
        }
    }

    fn shown(&self, span: Range<usize>) -> String {
        let source = self.text.get(span).unwrap_or_default();
        let mut shown: String =
            source.chars().take(MAX_SHOWN_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
        if source.chars().nth(MAX_SHOWN_CHARS).is_some() {
            shown.push_str("...");
        }
        shown
    }

    /// Ends the walk: names what nobody asked for.
    pub(super) fn finish(self) -> Outcome {
        let unknown = std::mem::take(&mut self.found.borrow_mut().unknown);
        for key in unknown {
            let fault = self.unknown_fault(key);
            self.fault(fault);
        }
        let mut found = self.found.into_inner();
        found.faults.sort();
        Outcome {
            faults: found.faults,
            cut: found.cut,
            warnings: found.warnings,
            #[cfg(test)]
            asked: found.asked,
            used: found.used,
        }
    }

    fn unknown_fault(&self, unknown: Unknown) -> Fault {
        let Unknown { place, section, name, siblings } = unknown;
        let name: String = name.chars().take(MAX_SHOWN_CHARS).collect();
        let elsewhere = || {
            let found = self.found.borrow();
            let mut homes = found.asked.iter().map(|path| path.rsplit_once('.').unwrap_or(("", path)));
            homes.find(|(_, last)| *last == name).map(|(home, _)| format!("'{name}' is a key of {}", header(home)))
        };
        let remedy =
            nearest(&name, &siblings).map(|near| format!("the nearest known name is '{near}'")).or_else(elsewhere);
        Fault {
            place,
            key: join(&section, &name),
            what: "unknown key".to_owned(),
            rule: if remedy.is_none() && siblings.len() <= MAX_LISTED_NAMES {
                format!("should be one of {}", siblings.join(", "))
            } else {
                "should be a name that docs/configuration.md lists".to_owned()
            },
            remedy,
        }
    }
}

/// A list of known names longer than this is left to the documentation.
const MAX_LISTED_NAMES: usize = 12;

/// The known name that is so near that a slip of the finger explains it.
fn nearest<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    let distance = |candidate: &str| strsim::osa_distance(name, candidate);
    let near = known.iter().copied().min_by_key(|candidate| distance(candidate))?;
    let allowed = (name.chars().count().max(near.chars().count()) / 3).max(1);
    (distance(near) <= allowed || near.starts_with(name) && name.len() > 2).then_some(near)
}

fn header(home: &str) -> String {
    match home.strip_suffix("[]") {
        None if home.is_empty() => "the file itself, above all sections".to_owned(),
        // A section inside a list is written without the number of the element that it belongs to.
        Some(list) => format!("[[{}]]", list.replace("[]", "")),
        None => format!("[{}]", home.replace("[]", "")),
    }
}

fn join(section: &str, name: &str) -> String {
    if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") }
}

/// One table of the file, or its absence.
pub(super) struct Section<'r, 't> {
    report: &'r Report<'t>,
    table: Option<&'r DeTable<'t>>,
    /// Something else stands where the section should: a fault was noted, and what is missing in it is no fault of its own.
    is_broken: bool,
    place: Place,
    path: String,
    /// The path with `[]` for numbers.
    general: String,
    known: RefCell<Vec<&'static str>>,
    faulty: RefCell<BTreeSet<String>>,
}

impl<'r, 't> Section<'r, 't> {
    /// The whole file.
    pub(super) fn root(report: &'r Report<'t>, table: &'r DeTable<'t>) -> Self {
        Self::new(report, Some(table), Place::START, String::new(), String::new())
    }

    fn new(
        report: &'r Report<'t>,
        table: Option<&'r DeTable<'t>>,
        place: Place,
        path: String,
        general: String,
    ) -> Self {
        Self {
            report,
            table,
            is_broken: false,
            place,
            path,
            general,
            known: RefCell::default(),
            faulty: RefCell::default(),
        }
    }

    fn ask(&self, name: &'static str) -> Option<&'r Spanned<DeValue<'t>>> {
        self.know(name);
        self.report.found.borrow_mut().asked.insert(join(&self.general, name));
        self.table?.get(name)
    }

    /// Notes names that are known here and whose values nobody needs now.
    pub(super) fn note_known(&self, names: &[&'static str]) {
        for name in names {
            self.ask(name);
        }
    }

    fn know(&self, name: &'static str) {
        let mut known = self.known.borrow_mut();
        if !known.contains(&name) {
            known.push(name);
        }
    }

    /// Notes a value in use under its path.
    pub(super) fn note_used(&self, name: &str, canonical: String) {
        self.report.found.borrow_mut().used.insert(join(&self.path, name), canonical);
    }

    /// True when the file has this key.
    pub(super) fn has(&self, name: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(name))
    }

    /// True when the values of all these keys are good or absent: a rule over several keys is not checked against a stand-in.
    pub(super) fn are_sound(&self, names: &[&str]) -> bool {
        let faulty = self.faulty.borrow();
        names.iter().all(|name| !faulty.contains(*name))
    }

    /// True when the file has this section.
    pub(super) fn is_present(&self) -> bool {
        self.table.is_some()
    }

    /// The value of a key that may be absent.
    pub(super) fn optional<K: Kind>(&self, name: &'static str, kind: &K) -> Option<K::Value> {
        let spanned = self.ask(name)?;
        let value = self.read(name, "", kind, spanned)?;
        self.note_used(name, kind.show(&value));
        Some(value)
    }

    /// The value of a key, `default` when it is absent. A faulty value is noted and replaced by the default, so that the walk goes on.
    pub(super) fn or<K: Kind>(&self, name: &'static str, kind: &K, default: K::Value) -> K::Value {
        self.optional(name, kind).unwrap_or_else(|| {
            self.note_used(name, kind.show(&default));
            default
        })
    }

    /// The value of a key that must be there. None: a fault was noted.
    pub(super) fn required<K: Kind>(&self, name: &'static str, kind: &K) -> Option<K::Value> {
        if !self.has(name) {
            self.ask(name);
            self.faulty.borrow_mut().insert(name.to_owned());
            self.missing(name, kind.rule(), None);
            return None;
        }
        self.optional(name, kind)
    }

    /// The values of a list with a length in `lengths`; `default` when it is absent. A single value stands for a list of one.
    pub(super) fn list<K: Kind>(
        &self,
        name: &'static str,
        kind: &K,
        lengths: Range<usize>,
        default: Vec<K::Value>,
    ) -> Vec<K::Value> {
        let values = match self.ask(name) {
            None => default,
            Some(spanned) => self.read_list(name, kind, lengths, spanned),
        };
        let shown: Vec<String> = values.iter().map(|value| kind.show(value)).collect();
        self.note_used(name, format!("[{}]", shown.join(", ")));
        values
    }

    fn read_list<K: Kind>(
        &self,
        name: &str,
        kind: &K,
        lengths: Range<usize>,
        spanned: &Spanned<DeValue<'t>>,
    ) -> Vec<K::Value> {
        let path = join(&self.path, name);
        let Some(array) = spanned.get_ref().as_array() else {
            return self.read(name, "", kind, spanned).into_iter().collect();
        };
        if !lengths.contains(&array.len()) {
            self.faulty.borrow_mut().insert(name.to_owned());
            let last = lengths.end.saturating_sub(1);
            self.report.fault(Fault {
                place: self.place_of(spanned),
                key: path.clone(),
                what: format!("got a list of {}", array.len()),
                rule: format!("should be a list of {} to {last}, each {}", lengths.start, kind.rule()),
                remedy: None,
            });
        }
        let read = |(index, value)| self.read(name, &format!("[{index}]"), kind, value);
        array.iter().take(lengths.end).enumerate().filter_map(read).collect()
    }

    fn read<K: Kind>(&self, name: &str, index: &str, kind: &K, spanned: &Spanned<DeValue<'t>>) -> Option<K::Value> {
        let wrong = match kind.read(spanned.get_ref()) {
            Ok(value) => return Some(value),
            Err(wrong) => wrong,
        };
        let rule = format!("should be {}", kind.rule());
        let (rule, remedy) = match wrong {
            Wrong::Rule => (rule, None),
            Wrong::Because(broken) => (rule, Some(broken.to_owned())),
        };
        self.faulty.borrow_mut().insert(name.to_owned());
        let what = format!("got {}", self.report.shown(spanned.span()));
        let key = format!("{}{index}", join(&self.path, name));
        self.report.fault(Fault { place: self.place_of(spanned), key, what, rule, remedy });
        None
    }

    /// A section inside this one; absent, it has every default.
    pub(super) fn section(&self, name: &'static str) -> Self {
        self.know(name);
        let (path, general) = (join(&self.path, name), join(&self.general, name));
        let spanned = self.table.and_then(|table| table.get(name));
        let table = spanned.and_then(|spanned| spanned.get_ref().as_table());
        let is_broken = spanned.is_some() && table.is_none();
        if let (Some(spanned), None) = (spanned, table) {
            self.not_a_section(spanned, &path, format!("should be a section [{general}]"));
        }
        let place = spanned.map_or(self.place, |spanned| self.place_of(spanned));
        Self { is_broken, ..Self::new(self.report, table, place, path, general) }
    }

    /// The sections of a list `[[name]]`, at most `max`.
    pub(super) fn sections(&self, name: &'static str, max: usize) -> Vec<Self> {
        self.know(name);
        let (path, general) = (join(&self.path, name), format!("{}[]", join(&self.general, name)));
        let Some(spanned) = self.table.and_then(|table| table.get(name)) else { return Vec::new() };
        let rule = || format!("should be sections {}, with two brackets, at most {max}", header(&general));
        let Some(array) = spanned.get_ref().as_array() else {
            self.not_a_section(spanned, &path, rule());
            return Vec::new();
        };
        if array.len() > max {
            let what = format!("got {} sections", array.len());
            self.report.fault(Fault {
                place: self.place_of(spanned),
                key: path.clone(),
                what,
                rule: rule(),
                remedy: None,
            });
        }
        let mut sections = Vec::new();
        for (index, element) in array.iter().take(max).enumerate() {
            let path = format!("{path}[{index}]");
            match element.get_ref().as_table() {
                Some(table) => {
                    let place = self.place_of(element);
                    sections.push(Self::new(self.report, Some(table), place, path, general.clone()));
                }
                None => self.not_a_section(element, &path, rule()),
            }
        }
        sections
    }

    fn not_a_section(&self, spanned: &Spanned<DeValue<'t>>, path: &str, rule: String) {
        let what = format!("got {}", self.report.shown(spanned.span()));
        self.report.fault(Fault { place: self.place_of(spanned), key: path.to_owned(), what, rule, remedy: None });
    }

    /// Names and values of a section whose names are not ours; tables inside it are joined by dots.
    pub(super) fn free_values(&self, max: usize) -> Vec<FreeValue> {
        let mut values = Vec::new();
        if let Some(table) = self.table {
            self.flatten(table, "", 0, &mut values);
        }
        self.report.found.borrow_mut().asked.insert(format!("{}.*", self.general));
        if values.len() > max {
            self.fault_here(format!("got {} names", values.len()), format!("should be at most {max}"), None);
            values.truncate(max);
        }
        values
    }

    fn flatten(&self, table: &DeTable<'t>, prefix: &str, depth: usize, values: &mut Vec<FreeValue>) {
        for (name, spanned) in table {
            let name = join(prefix, name.get_ref());
            let place = self.place_of(spanned);
            let value = match spanned.get_ref() {
                DeValue::Table(inner) if depth < MAX_FREE_DEPTH => {
                    self.flatten(inner, &name, depth + 1, values);
                    continue;
                }
                DeValue::String(text) => Some(text.to_string()),
                DeValue::Integer(integer) if integer.radix() == 10 => Some(integer.as_str().to_owned()),
                DeValue::Boolean(flag) => Some(flag.to_string()),
                _ => None,
            };
            match value.filter(|value| value.len() <= MAX_FREE_BYTES && !value.contains('\0')) {
                Some(value) => values.push(FreeValue { name, value, place }),
                None => self.report.fault(Fault {
                    place,
                    key: join(&self.path, &name),
                    what: format!("got {}", self.report.shown(spanned.span())),
                    rule: format!("should be text, a whole number, true or false, of at most {MAX_FREE_BYTES} bytes"),
                    remedy: None,
                }),
            }
        }
    }

    /// Ends the reading of this section: what was not asked for is unknown.
    pub(super) fn finish(self) {
        let Some(table) = self.table else { return };
        let siblings = self.known.into_inner();
        for (name, _) in table {
            if !siblings.contains(&name.get_ref().as_ref()) {
                let place = Place::of_byte(self.report.text, name.span().start);
                let (section, name) = (self.path.clone(), name.get_ref().to_string());
                let unknown = Unknown { place, section, name, siblings: siblings.clone() };
                self.report.found.borrow_mut().unknown.push(unknown);
            }
        }
    }

    /// A fault of one key by a rule over several.
    pub(super) fn fault(&self, name: &str, rule: impl Into<String>, remedy: impl Into<String>) {
        let spanned = self.table.and_then(|table| table.get(name));
        let what = spanned.map_or_else(
            || match self.report.found.borrow().used.get(&join(&self.path, name)) {
                Some(default) => format!("is {default} by default"),
                None => "missing".to_owned(),
            },
            |spanned| match spanned.get_ref() {
                DeValue::Table(_) => "does not fit".to_owned(),
                _ => format!("got {}", self.report.shown(spanned.span())),
            },
        );
        let place = spanned.map_or(self.place, |spanned| self.place_of(spanned));
        let (key, rule, remedy) = (join(&self.path, name), rule.into(), Some(remedy.into()));
        self.report.fault(Fault { place, key, what, rule, remedy });
    }

    /// A fault of a key that is not there.
    pub(super) fn missing(&self, name: &str, rule: String, remedy: Option<String>) {
        if !self.is_broken {
            let (place, key, rule) = (self.place, join(&self.path, name), format!("should be {rule}"));
            self.report.fault(Fault { place, key, what: "missing".to_owned(), rule, remedy });
        }
    }

    /// A fault of the section as a whole.
    pub(super) fn fault_here(&self, what: String, rule: String, remedy: Option<String>) {
        self.report.fault(Fault { place: self.place, key: self.path.clone(), what, rule, remedy });
    }

    /// A fault of a value with a name of its own.
    pub(super) fn fault_of(&self, value: &FreeValue, rule: String) {
        let key = join(&self.path, &value.name);
        let what = "is not yours to set".to_owned();
        self.report.fault(Fault { place: value.place, key, what, rule, remedy: None });
    }

    /// Something that works and may not be what was meant.
    pub(super) fn warn(&self, name: &str, what: impl Into<String>, remedy: impl Into<String>) {
        let spanned = self.table.and_then(|table| table.get(name));
        let place = spanned.map_or(self.place, |spanned| self.place_of(spanned));
        let warning = Fault {
            place,
            key: join(&self.path, name),
            what: what.into(),
            rule: String::new(),
            remedy: Some(remedy.into()),
        };
        self.report.found.borrow_mut().warnings.push(warning);
    }

    fn place_of(&self, spanned: &Spanned<DeValue<'t>>) -> Place {
        Place::of_byte(self.report.text, spanned.span().start)
    }
}

/// A value whose name is not ours.
pub(super) struct FreeValue {
    pub(super) name: String,
    pub(super) value: String,
    place: Place,
}

/// Dots in a free name, each a table in the file.
const MAX_FREE_DEPTH: usize = 8;

/// The longest value under a free name.
const MAX_FREE_BYTES: usize = 4096;
