//! Where a value of the event is: literal text and JSON pointers, e.g. `{/client}` or `{/tenant}:{/path}`.

use std::fmt;
use std::str::FromStr;

/// The longest text of a template, in bytes.
pub const MAX_TEMPLATE_BYTES: usize = 1024;
/// The most parts of a template.
pub const MAX_TEMPLATE_PARTS: usize = 16;
/// The most steps of one pointer.
pub const MAX_POINTER_STEPS: usize = 16;

/// A template: parts in the order in which they are put together, at least one of them a pointer.
///
/// `{/pointer}` stands for a value of the event; `{{` and `}}` stand for braces; everything else stands for itself.
/// A text that begins with `/` and has no `{` is one bare pointer.
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
        parse(text).map_err(|rule| InvalidTemplate { text: text.chars().take(64).collect(), rule })
    }
}

fn parse(text: &str) -> Result<Template, &'static str> {
    if text.is_empty() {
        return Err("it is empty; name a field by its JSON pointer, e.g. {/client}");
    }
    if text.len() > MAX_TEMPLATE_BYTES {
        return Err("it is longer than 1024 bytes; use fewer or shorter parts");
    }
    if text.starts_with('/') && !text.contains('{') {
        return Ok(Template { parts: vec![pointer(text)?] });
    }
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        literal.push_str(before);
        if let Some(after) = from.strip_prefix("{{") {
            literal.push('{');
            rest = after;
        } else if let Some(after) = from.strip_prefix("}}") {
            literal.push('}');
            rest = after;
        } else if let Some(after) = from.strip_prefix('{') {
            let (inside, after) = after.split_once('}').ok_or("a '{' is not closed; write {{ for a plain '{'")?;
            take_literal(&mut literal, &mut parts);
            parts.push(pointer(inside)?);
            rest = after;
        } else {
            return Err("a '}' closes nothing; write }} for a plain '}'");
        }
    }
    literal.push_str(rest);
    take_literal(&mut literal, &mut parts);
    if !parts.iter().any(|part| matches!(part, Part::Pointer(_))) {
        return Err("it names no field; write a JSON pointer in braces, e.g. {/client}");
    }
    if parts.len() > MAX_TEMPLATE_PARTS {
        return Err("it has more than 16 parts; use fewer");
    }
    Ok(Template { parts })
}

fn take_literal(literal: &mut String, parts: &mut Vec<Part>) {
    if !literal.is_empty() {
        parts.push(Part::Literal(std::mem::take(literal).into_bytes()));
    }
}

fn pointer(text: &str) -> Result<Part, &'static str> {
    let steps = text.strip_prefix('/').ok_or("a JSON pointer begins with '/', e.g. {/client}")?;
    if text.contains('{') {
        return Err("a '{' inside a pointer; close the pointer with '}' first");
    }
    let steps = steps.split('/').map(unescape_step).collect::<Result<Vec<_>, _>>()?;
    if steps.len() > MAX_POINTER_STEPS {
        return Err("a pointer has more than 16 steps; name a field nearer to the top");
    }
    Ok(Part::Pointer(steps))
}

fn unescape_step(step: &str) -> Result<String, &'static str> {
    let mut pieces = step.split('~');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (sign, after) = if let Some(after) = piece.strip_prefix('0') {
            ('~', after)
        } else if let Some(after) = piece.strip_prefix('1') {
            ('/', after)
        } else {
            return Err("a '~' in a pointer is followed by 0 or 1: write ~0 for '~' and ~1 for '/'");
        };
        plain.push(sign);
        plain.push_str(after);
    }
    Ok(plain)
}

impl fmt::Display for Template {
    /// The text that reads back as this template.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = |step: &String| step.replace('~', "~0").replace('/', "~1");
        for part in &self.parts {
            match part {
                Part::Literal(text) => {
                    f.write_str(&String::from_utf8_lossy(text).replace('{', "{{").replace('}', "}}"))?;
                }
                // A name with a closing brace can be written as a bare pointer only.
                Part::Pointer(steps) if self.parts.len() == 1 && steps.iter().any(|step| step.contains('}')) => {
                    steps.iter().try_for_each(|name| write!(f, "/{}", step(name)))?;
                }
                Part::Pointer(steps) => {
                    f.write_str("{")?;
                    steps.iter().try_for_each(|name| write!(f, "/{}", step(name)))?;
                    f.write_str("}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn literal(text: &str) -> Part {
        Part::Literal(text.as_bytes().to_vec())
    }

    fn field(steps: &[&str]) -> Part {
        Part::Pointer(steps.iter().map(|step| (*step).to_owned()).collect())
    }

    fn parts(text: &str) -> Vec<Part> {
        text.parse::<Template>().unwrap().parts().to_vec()
    }

    #[test]
    fn pointers_and_literals_are_told_apart() {
        assert_eq!(parts("{/client}"), [field(&["client"])]);
        assert_eq!(parts("/client"), [field(&["client"])]);
        assert_eq!(parts("/a/0/b"), [field(&["a", "0", "b"])]);
        assert_eq!(parts("{/t}:{/p}!"), [field(&["t"]), literal(":"), field(&["p"]), literal("!")]);
        assert_eq!(parts("/x{/p}"), [literal("/x"), field(&["p"])]);
        assert_eq!(parts("{{{/p}}}"), [literal("{"), field(&["p"]), literal("}")]);
        assert_eq!(parts("{/a~1b/~0c~01}"), [field(&["a/b", "~c~1"])]);
        assert_eq!(parts("{/}"), [field(&[""])]);
        assert_eq!(parts("/a}b"), [field(&["a}b"])]);
    }

    #[test]
    fn each_fault_names_its_rule() {
        let long = "x".repeat(MAX_TEMPLATE_BYTES + 1);
        let many = "{/a}".repeat(MAX_TEMPLATE_PARTS + 1);
        let deep = "/a".repeat(MAX_POINTER_STEPS + 1);
        let faults = [
            ("", "is empty"),
            ("client", "names no field"),
            ("{{client}}", "names no field"),
            ("{client}", "begins with '/'"),
            ("{}", "begins with '/'"),
            ("{/a", "not closed"),
            ("{/a}}", "closes nothing"),
            ("a}b{/c}", "closes nothing"),
            ("{/a{/b}", "inside a pointer"),
            ("{/a~}", "~0"),
            ("/a~2", "~0"),
            (&long, "1024"),
            (&many, "16 parts"),
            (&deep, "16 steps"),
        ];
        for (text, rule) in faults {
            let error = text.parse::<Template>().unwrap_err();
            assert!(error.to_string().contains(rule), "{error}");
            assert!(error.text.len() <= 64);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_and_reads_back(text in "[{}/~a01:é]{0,12}") {
            if let Ok(template) = text.parse::<Template>() {
                prop_assert_eq!(template.to_string().parse::<Template>(), Ok(template));
            }
        }
    }
}
