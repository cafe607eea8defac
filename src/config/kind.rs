//! Kinds of values: each knows its rule in words, reads a value of the file, and writes it in its canonical form.

use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;

use toml::de::DeValue;

use crate::engine::{InvalidPattern, KeyPattern, MAX_PATTERN_BYTES, MAX_PATTERN_STARS, WindowSettings};
use crate::input::{InvalidTemplate, Template};
use crate::units::{Rate, Share, Span};

/// A kind of scalar value.
pub(super) trait Kind {
    /// What it is read into.
    type Value;

    /// After "should be": what the value has to be, with an example where it helps.
    fn rule(&self) -> String;

    /// Reads a value; `Wrong` says why it is none of this kind.
    fn read(&self, value: &DeValue<'_>) -> Result<Self::Value, Wrong>;

    /// The canonical form, by which two equal values are equal texts.
    fn show(&self, value: &Self::Value) -> String;
}

/// Why a value was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It breaks the rule of its kind.
    Rule,
    /// It breaks this rule.
    Because(&'static str),
}

/// Text of a length in bytes, with a rule for its characters.
pub(super) struct Text {
    pub(super) rule: &'static str,
    pub(super) max_bytes: usize,
    pub(super) allowed: fn(&str) -> bool,
}

impl Text {
    /// Any text that is not empty.
    pub(super) const fn any(max_bytes: usize, rule: &'static str) -> Self {
        Self { rule, max_bytes, allowed: |_| true }
    }
}

impl Kind for Text {
    type Value = String;

    fn rule(&self) -> String {
        self.rule.to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<String, Wrong> {
        let text = value.as_str().ok_or(Wrong::Rule)?;
        let fits = !text.is_empty() && text.len() <= self.max_bytes && (self.allowed)(text);
        fits.then(|| text.to_owned()).ok_or(Wrong::Rule)
    }

    fn show(&self, value: &String) -> String {
        format!("{value:?}")
    }
}

/// A whole number in a range, both ends included.
pub(super) struct Whole {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Kind for Whole {
    type Value = u64;

    fn rule(&self) -> String {
        format!("a whole number from {} to {}", self.min, self.max)
    }

    fn read(&self, value: &DeValue<'_>) -> Result<u64, Wrong> {
        let number = whole(value).ok_or(Wrong::Rule)?;
        (self.min..=self.max).contains(&number).then_some(number).ok_or(Wrong::Rule)
    }

    fn show(&self, value: &u64) -> String {
        value.to_string()
    }
}

fn whole(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// A whole number that is a power of two in a range.
pub(super) struct PowerOfTwo {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Kind for PowerOfTwo {
    type Value = u64;

    fn rule(&self) -> String {
        format!("a power of two from {} to {}", self.min, self.max)
    }

    fn read(&self, value: &DeValue<'_>) -> Result<u64, Wrong> {
        let number = whole(value).ok_or(Wrong::Rule)?;
        let fits = number.is_power_of_two() && (self.min..=self.max).contains(&number);
        fits.then_some(number).ok_or(Wrong::Rule)
    }

    fn show(&self, value: &u64) -> String {
        value.to_string()
    }
}

/// A number in a range; `above` excludes the lower end.
pub(super) struct Number {
    pub(super) rule: &'static str,
    pub(super) allowed: fn(f64) -> bool,
}

impl Kind for Number {
    type Value = f64;

    fn rule(&self) -> String {
        self.rule.to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<f64, Wrong> {
        let number = number(value).ok_or(Wrong::Rule)?;
        (number.is_finite() && (self.allowed)(number)).then_some(number).ok_or(Wrong::Rule)
    }

    fn show(&self, value: &f64) -> String {
        value.to_string()
    }
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(float) => float.as_str().parse().ok(),
        // Through text: the nearest double of a whole number of any size.
        DeValue::Integer(_) => whole(value)?.to_string().parse().ok(),
        _ => None,
    }
}

/// True or false.
pub(super) struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn rule(&self) -> String {
        "true or false".to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<bool, Wrong> {
        value.as_bool().ok_or(Wrong::Rule)
    }

    fn show(&self, value: &bool) -> String {
        value.to_string()
    }
}

/// A length of time in a range.
pub(super) struct Length {
    pub(super) min: Span,
    pub(super) max: Span,
}

impl Kind for Length {
    type Value = Span;

    fn rule(&self) -> String {
        format!("a length of time from {:?} to {:?}, e.g. \"10s\"", self.min.to_string(), self.max.to_string())
    }

    fn read(&self, value: &DeValue<'_>) -> Result<Span, Wrong> {
        let span: Span = value.as_str().and_then(|text| text.parse().ok()).ok_or(Wrong::Rule)?;
        (self.min..=self.max).contains(&span).then_some(span).ok_or(Wrong::Rule)
    }

    fn show(&self, value: &Span) -> String {
        format!("{:?}", value.to_string())
    }
}

/// Events per second, as text or as a number.
pub(super) struct EventRate;

impl Kind for EventRate {
    type Value = Rate;

    fn rule(&self) -> String {
        "a rate above 0, events per second, e.g. \"1000/s\"".to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<Rate, Wrong> {
        let rate = match value.as_str() {
            Some(text) => text.parse().ok(),
            None => number(value).filter(|per_s| *per_s > 0.0).and_then(|per_s| Rate::per_second(per_s).ok()),
        };
        rate.ok_or(Wrong::Rule)
    }

    fn show(&self, value: &Rate) -> String {
        format!("\"{}/s\"", value.as_per_second())
    }
}

/// A part of a whole above 0, as text or as a number; `open` excludes the whole.
pub(super) struct Part {
    pub(super) open: bool,
    pub(super) example: &'static str,
}

impl Kind for Part {
    type Value = Share;

    fn rule(&self) -> String {
        let end = if self.open { "below 1" } else { "at most 1" };
        format!("a share above 0 and {end}, e.g. {}", self.example)
    }

    fn read(&self, value: &DeValue<'_>) -> Result<Share, Wrong> {
        let share: Option<Share> = match value.as_str() {
            Some(text) => text.parse().ok(),
            None => number(value).and_then(|share| Share::new(share).ok()),
        };
        let fits = |share: &Share| share.as_f64() > 0.0 && !(self.open && share.as_f64() >= 1.0);
        share.filter(fits).ok_or(Wrong::Rule)
    }

    fn show(&self, value: &Share) -> String {
        value.as_f64().to_string()
    }
}

/// One of a few words, each with what it stands for.
pub(super) struct Choice<T: 'static>(pub(super) &'static [(&'static str, T)]);

impl<T: Clone + PartialEq> Kind for Choice<T> {
    type Value = T;

    fn rule(&self) -> String {
        let words: Vec<String> = self.0.iter().map(|(word, _)| format!("{word:?}")).collect();
        format!("one of {}", words.join(", "))
    }

    fn read(&self, value: &DeValue<'_>) -> Result<T, Wrong> {
        let text = value.as_str().ok_or(Wrong::Rule)?;
        self.0.iter().find(|(word, _)| *word == text).map(|(_, meaning)| meaning.clone()).ok_or(Wrong::Rule)
    }

    fn show(&self, value: &T) -> String {
        let word = self.0.iter().find(|(_, meaning)| meaning == value).map_or("", |(word, _)| word);
        format!("{word:?}")
    }
}

/// Text that a type of its own reads and writes.
pub(super) struct Parsed<T> {
    pub(super) rule: &'static str,
    value: PhantomData<T>,
}

impl<T> Parsed<T> {
    pub(super) const fn new(rule: &'static str) -> Self {
        Self { rule, value: PhantomData }
    }
}

impl<T: FromStr + Display> Kind for Parsed<T> {
    type Value = T;

    fn rule(&self) -> String {
        self.rule.to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<T, Wrong> {
        value.as_str().and_then(|text| text.parse().ok()).ok_or(Wrong::Rule)
    }

    fn show(&self, value: &T) -> String {
        format!("{:?}", value.to_string())
    }
}

/// Where a value of the event is.
pub(super) struct Where;

/// A template with the text that it was read from.
#[derive(Debug, Clone)]
pub(super) struct TemplateText {
    pub(super) template: Template,
    pub(super) text: String,
}

impl Kind for Where {
    type Value = TemplateText;

    fn rule(&self) -> String {
        "a JSON pointer such as \"/client\", or a template such as \"{/tenant}:{/client}\"".to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<TemplateText, Wrong> {
        let text = value.as_str().ok_or(Wrong::Rule)?;
        let template = text.parse().map_err(|InvalidTemplate { rule, .. }| Wrong::Because(rule))?;
        Ok(TemplateText { template, text: text.to_owned() })
    }

    fn show(&self, value: &TemplateText) -> String {
        format!("{:?}", value.text)
    }
}

/// Which keys rules are for.
pub(super) struct Pattern;

impl Kind for Pattern {
    type Value = KeyPattern;

    fn rule(&self) -> String {
        format!(
            "a pattern of keys, e.g. \"acme:*\", of at most {MAX_PATTERN_BYTES} bytes and {MAX_PATTERN_STARS} stars"
        )
    }

    fn read(&self, value: &DeValue<'_>) -> Result<KeyPattern, Wrong> {
        let text = value.as_str().ok_or(Wrong::Rule)?;
        text.parse().map_err(|InvalidPattern { rule, .. }| Wrong::Because(rule))
    }

    fn show(&self, value: &KeyPattern) -> String {
        format!("{:?}", value.to_string())
    }
}

/// A window and its pane, `"60s/5s"`.
pub(super) struct WindowAndPane;

impl Kind for WindowAndPane {
    type Value = WindowSettings;

    fn rule(&self) -> String {
        "a window and its pane, e.g. \"60s/5s\"".to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<WindowSettings, Wrong> {
        let (length, pane) = value.as_str().and_then(|text| text.split_once('/')).ok_or(Wrong::Rule)?;
        let window = WindowSettings {
            length: length.parse().map_err(|_| Wrong::Rule)?,
            pane: pane.parse().map_err(|_| Wrong::Rule)?,
        };
        super::windows::check(window).map_or(Ok(window), |broken| Err(Wrong::Because(broken)))
    }

    fn show(&self, value: &WindowSettings) -> String {
        format!("\"{}/{}\"", value.length, value.pane)
    }
}

/// A key: text, or `{ b64 = "..." }` for bytes that are no text.
pub(super) struct KeyBytes {
    pub(super) max_bytes: usize,
}

impl Kind for KeyBytes {
    type Value = Vec<u8>;

    fn rule(&self) -> String {
        format!("text of 1 to {} bytes, or {{ b64 = \"...\" }} with its bytes in base64", self.max_bytes)
    }

    fn read(&self, value: &DeValue<'_>) -> Result<Vec<u8>, Wrong> {
        use base64::Engine;
        let bytes = match value {
            DeValue::String(text) => Some(text.as_bytes().to_vec()),
            DeValue::Table(table) if table.len() == 1 => table
                .get("b64")
                .and_then(|text| text.get_ref().as_str())
                .and_then(|text| base64::engine::general_purpose::STANDARD.decode(text).ok()),
            _ => None,
        };
        bytes.filter(|bytes| !bytes.is_empty() && bytes.len() <= self.max_bytes).ok_or(Wrong::Rule)
    }

    fn show(&self, value: &Vec<u8>) -> String {
        format!("\"{}\"", value.escape_ascii())
    }
}
