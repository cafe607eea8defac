//! `[input]` and `[time]`: what is read, how a record becomes an event, how event time moves.

use super::kind::{Choice, Length, Text, Where, Whole};
use super::section::Section;
use super::settings::{SourceSettings, Start};
use crate::engine::TimeSettings;
use crate::input::{DEFAULT_MAX_KEY_BYTES, DEFAULT_MAX_RECORD_BYTES, InputSettings, OperationWords, Template};
use crate::units::Span;

/// A Kafka topic's name.
pub(super) const TOPIC: Text = Text {
    rule: "the name of a topic: 1 to 249 letters, digits, '.', '_' or '-'",
    max_bytes: 249,
    allowed: |text| {
        text != "." && text != ".." && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    },
};

const START: Choice<Start> =
    Choice(&[("window", Start::Window), ("earliest", Start::Earliest), ("latest", Start::Latest)]);

/// The most words that name one operation.
const MAX_WORDS: usize = 32;

/// Where the time is, unless the file says otherwise.
const DEFAULT_TIME: &str = "/ts";

/// Which optional fields events have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    pub(super) shard: bool,
    pub(super) request_id: bool,
    pub(super) operation: bool,
}

/// The input has no keys yet: they are those of the keyspaces.
pub(super) fn input(root: &Section<'_, '_>) -> (SourceSettings, Fields, Option<InputSettings>) {
    let section = root.section("input");
    let topic = section.required("topic", &TOPIC).unwrap_or_default();
    let group =
        section.or("group", &Text::any(249, "the name of a consumer group: 1 to 249 bytes"), "keyheat".to_owned());
    let start = section.or("start", &START, Start::default());
    let pointer = |name| section.optional(name, &Where).map(|read| read.template);
    let time = pointer("time").or_else(|| if section.has("time") { None } else { default_time(&section) });
    let (shard, request_id, operation) = (pointer("shard"), pointer("request_id"), pointer("operation"));
    let (caller, weight) = (pointer("caller"), pointer("weight"));
    let operation_words = operation_words(&section);
    let max_record_bytes = bytes(&section, "max_record_bytes", 64, 16 << 20, DEFAULT_MAX_RECORD_BYTES);
    let max_key_bytes = bytes(&section, "max_key_bytes", 1, MAX_MAX_KEY_BYTES, DEFAULT_MAX_KEY_BYTES);
    let fields = Fields {
        shard: section.has("shard"),
        request_id: section.has("request_id"),
        operation: section.has("operation"),
    };
    section.finish();
    let input = time.map(|time| InputSettings {
        keys: Vec::new(),
        time,
        shard,
        request_id,
        operation,
        operation_words,
        caller,
        weight,
        max_record_bytes,
        max_key_bytes,
    });
    (SourceSettings { topic, group, start }, fields, input)
}

fn default_time(section: &Section<'_, '_>) -> Option<Template> {
    section.note_used("time", format!("{DEFAULT_TIME:?}"));
    DEFAULT_TIME.parse().ok()
}

/// A plan record holds its key, in base64 when it is no text, and has 4 KiB.
const MAX_MAX_KEY_BYTES: u64 = 1024;

fn bytes(section: &Section<'_, '_>, name: &'static str, min: u64, max: u64, default: usize) -> usize {
    let value = section.or(name, &Whole { min, max }, default as u64);
    usize::try_from(value).unwrap_or(default)
}

fn operation_words(input: &Section<'_, '_>) -> OperationWords {
    let section = input.section("operation_words");
    let word = Text::any(64, "a word of 1 to 64 bytes");
    let default = OperationWords::default();
    let read = |name, words| section.list(name, &word, 0..MAX_WORDS + 1, words);
    let words = OperationWords {
        read: read("read", default.read),
        write: read("write", default.write),
        scan: read("scan", default.scan),
        delete: read("delete", default.delete),
    };
    let named = [("read", &words.read), ("write", &words.write), ("scan", &words.scan), ("delete", &words.delete)];
    for (index, (name, list)) in named.iter().enumerate() {
        let earlier = || named.iter().take(index).flat_map(|(_, earlier)| earlier.iter());
        let twice = list.iter().find(|word| earlier().any(|other| other.eq_ignore_ascii_case(word)));
        if let Some(twice) = twice {
            section.fault(
                name,
                format!("should not have '{twice}', which means another operation too"),
                "leave it in one list",
            );
        }
    }
    section.finish();
    words
}

pub(super) fn time(root: &Section<'_, '_>) -> TimeSettings {
    let section = root.section("time");
    let default = TimeSettings::default();
    let up_to_ten_minutes = Length { min: Span::ZERO, max: Span::from_secs(600) };
    let time = TimeSettings {
        disorder: section.or("disorder", &up_to_ten_minutes, default.disorder),
        max_ahead: section.or("max_ahead", &up_to_ten_minutes, default.max_ahead),
        idle_timeout: section.or(
            "idle_timeout",
            &Length { min: Span::from_millis(100), max: Span::from_secs(3600) },
            default.idle_timeout,
        ),
    };
    section.finish();
    time
}
