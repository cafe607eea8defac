//! When a key or a shard is hot: `rate`, `median` with `floor`, `share` with `floor`; for all keys, and for those of a pattern.

use super::kind::{EventRate, Number, Part, Pattern, Whole};
use super::section::Section;
use crate::engine::{KeyPattern, MAX_OVERRIDES, Rule, RuleOverride};
use crate::units::Rate;

/// Least count in the window by which the relative and the share rule hold.
pub const DEFAULT_FLOOR: u64 = 20;
/// Of the relative rule for keys that holds when neither rules nor `bucket_rate` are given.
pub const DEFAULT_MEDIAN: f64 = 10.0;
/// Of the relative rule for shards that holds when no rules are given: twice the load of the middle one.
pub const DEFAULT_SHARD_MEDIAN: f64 = 2.0;
/// With [`DEFAULT_SHARD_MEDIAN`]: fewer events say nothing of a shard.
pub const DEFAULT_SHARD_FLOOR: u64 = 100;

const MEDIAN: Number =
    Number { rule: "a number above 1: how many times the median, e.g. 10", allowed: |times| times > 1.0 };
const FLOOR: Whole = Whole { min: 1, max: u32::MAX as u64 };

/// Rules for keys. Without any: what a bucket may carry, or else a multiple of the median.
pub(super) fn of_keys(keyspace: &Section<'_, '_>, bucket_rate: Option<Rate>) -> Vec<Rule> {
    let default = match bucket_rate {
        Some(rate) if rate.as_per_second() > 0.0 => Rule::Absolute { rate },
        _ => Rule::Relative { multiple: DEFAULT_MEDIAN, floor: DEFAULT_FLOOR },
    };
    or_default(keyspace, read(keyspace, DEFAULT_FLOOR), default)
}

/// Rules for the keys of some patterns, in the order in which patterns are tried.
pub(super) fn of_patterns(keyspace: &Section<'_, '_>) -> Vec<RuleOverride> {
    let mut overrides = Vec::new();
    let mut patterns: Vec<KeyPattern> = Vec::new();
    for section in keyspace.sections("rules", MAX_OVERRIDES) {
        let keys = section.required("keys", &Pattern);
        let rules = read(&section, DEFAULT_FLOOR);
        // A rule that is there and faulty, or a floor that bounds none, has been told already.
        if rules.is_empty() && section.are_sound(&["rate", "median", "share"]) && !section.has("floor") {
            let rule = "one of rate, median and share at least".to_owned();
            section.missing(
                "rate",
                rule,
                Some("or leave the section out: its keys then have the keyspace's".to_owned()),
            );
        }
        if let Some(keys) = keys {
            if patterns.contains(&keys) {
                section.fault(
                    "keys",
                    "should differ from the patterns before it",
                    "the first that a key matches counts",
                );
            }
            patterns.push(keys.clone());
            overrides.push(RuleOverride { keys, rules });
        }
        section.finish();
    }
    overrides
}

/// Rules for shards, in a section of their own.
pub(super) fn of_shards(keyspace: &Section<'_, '_>) -> Vec<Rule> {
    let section = keyspace.section("shard_rules");
    let default = Rule::Relative { multiple: DEFAULT_SHARD_MEDIAN, floor: DEFAULT_SHARD_FLOOR };
    let rules = or_default(&section, read(&section, DEFAULT_SHARD_FLOOR), default);
    section.finish();
    rules
}

/// The rules that are written; a faulty one is left out.
fn read(section: &Section<'_, '_>, default_floor: u64) -> Vec<Rule> {
    let rate = section.optional("rate", &EventRate);
    let median = section.optional("median", &MEDIAN);
    let share = section.optional("share", &Part { open: false, example: "\"2%\"" });
    let has_floored = section.has("median") || section.has("share");
    let floor = if has_floored || section.has("floor") {
        section.or("floor", &FLOOR, default_floor)
    } else {
        section.optional("floor", &FLOOR).unwrap_or(default_floor)
    };
    if section.has("floor") && !has_floored {
        section.fault(
            "floor",
            "should stand beside median or share, whose counts it bounds from below",
            "add e.g. median = 10",
        );
    }
    let rules = [
        rate.map(|rate| Rule::Absolute { rate }),
        median.map(|multiple| Rule::Relative { multiple, floor }),
        share.map(|share| Rule::Share { share, floor }),
    ];
    rules.into_iter().flatten().collect()
}

/// Giving any rule switches the default off.
fn or_default(section: &Section<'_, '_>, rules: Vec<Rule>, default: Rule) -> Vec<Rule> {
    if section.has("rate") || section.has("median") || section.has("share") {
        return rules;
    }
    note_default(section, default);
    vec![default]
}

/// The rule in force is part of the canonical form, written or not.
fn note_default(section: &Section<'_, '_>, rule: Rule) {
    match rule {
        Rule::Absolute { rate } => section.note_used("rate", format!("\"{}/s\"", rate.as_per_second())),
        Rule::Relative { multiple, floor } => {
            section.note_used("median", multiple.to_string());
            section.note_used("floor", floor.to_string());
        }
        Rule::Share { share, floor } => {
            section.note_used("share", share.as_f64().to_string());
            section.note_used("floor", floor.to_string());
        }
    }
}
