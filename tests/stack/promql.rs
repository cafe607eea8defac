//! As much of PromQL as it takes to see which metrics and labels an expression uses.

use std::collections::BTreeSet;

use keyheat::telemetry::{CATALOGUE, Definition, Kind};

/// A metric in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selector {
    pub(crate) name: String,
    /// What stands between the braces.
    pub(crate) matchers: String,
    /// What stands between the brackets, if any.
    pub(crate) range: Option<String>,
    /// The function around it.
    pub(crate) function: String,
}

impl Selector {
    /// Names of the labels that it compares.
    pub(crate) fn labels(&self) -> Vec<String> {
        let name = |matcher: &str| matcher.trim().split(['=', '!']).next().unwrap_or_default().trim().to_owned();
        outside_quotes(&self.matchers, ',')
            .iter()
            .map(|matcher| name(matcher))
            .filter(|name| !name.is_empty())
            .collect()
    }

    /// The row of the catalogue, and whether the name is that of a histogram's part.
    pub(crate) fn definition(&self) -> Option<&'static Definition> {
        CATALOGUE.iter().find(|row| {
            let part = matches!(row.kind, Kind::Histogram { .. })
                && ["_bucket", "_sum", "_count"].iter().any(|end| self.name.strip_suffix(end) == Some(row.name));
            row.name == self.name || part
        })
    }
}

fn outside_quotes(text: &str, separator: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for char in text.chars() {
        quoted ^= char == '"';
        if char == separator && !quoted {
            parts.push(String::new());
        } else {
            parts.last_mut().unwrap().push(char);
        }
    }
    parts
}

/// Every metric of an expression: a name with a `_`, outside of quotes and of lists of labels.
pub(crate) fn selectors(expr: &str) -> Vec<Selector> {
    let bytes = expr.as_bytes();
    let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':');
    let mut selectors = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'"' {
            at += 1 + expr[at + 1..].find('"').unwrap_or(0) + 1;
            continue;
        }
        if !is_name(bytes[at]) {
            at += 1;
            continue;
        }
        let end = at + bytes[at..].iter().take_while(|b| is_name(**b)).count();
        let name = &expr[at..end];
        let mut rest = &expr[end..];
        if ["by", "without", "on", "ignoring", "group_left"].contains(&name) {
            at = end + rest.find(')').unwrap_or(0);
            continue;
        }
        let is_metric = name == "up" || (name.contains('_') && !rest.trim_start().starts_with('('));
        if is_metric {
            let before = expr[..at].trim_end().trim_end_matches('(');
            let function = before.rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or_default();
            let function = if expr[..at].trim_end().ends_with('(') { function.to_owned() } else { String::new() };
            let mut matchers = String::new();
            if let Some(inside) = rest.strip_prefix('{') {
                matchers = outside_quotes(inside, '}').remove(0);
                rest = &inside[matchers.len() + 1..];
            }
            let mut range = None;
            if let Some((inside, after)) = rest.strip_prefix('[').and_then(|inside| inside.split_once(']')) {
                range = Some(inside.to_owned());
                rest = after;
            }
            selectors.push(Selector { name: name.to_owned(), matchers, range, function });
            at = expr.len() - rest.len();
        } else {
            at = end;
        }
    }
    selectors
}

/// Labels that aggregations `by (…)` keep; none when the expression aggregates in no such way.
pub(crate) fn kept_labels(expr: &str) -> Option<BTreeSet<String>> {
    let (_, rest) = expr.split_once("by (")?;
    let (inside, _) = rest.split_once(')')?;
    Some(inside.split(',').map(|label| label.trim().to_owned()).collect())
}

#[test]
fn selectors_are_found() {
    let found =
        selectors("sum by (le, a_b) (rate(keyheat_x_bucket{job=~\"$job\", a=\"b_c,}\"}[5m])) / keyheat_y_total > 1");
    let names: Vec<&str> = found.iter().map(|selector| selector.name.as_str()).collect();
    assert_eq!(names, ["keyheat_x_bucket", "keyheat_y_total"]);
    assert_eq!((found[0].function.as_str(), found[0].range.as_deref()), ("rate", Some("5m")));
    assert_eq!(found[0].labels(), ["job", "a"]);
    assert_eq!(kept_labels("sum by (le, a_b) (x)"), Some(["le".to_owned(), "a_b".to_owned()].into()));
}
