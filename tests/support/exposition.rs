//! A strict parser of the Prometheus text format 0.0.4: it refuses what a lenient scraper might swallow.

use std::collections::{BTreeMap, HashSet};

/// One series with its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
}

/// A whole scrape.
#[derive(Debug, Default)]
pub(crate) struct Scrape {
    pub(crate) series: Vec<Series>,
    pub(crate) types: BTreeMap<String, String>,
    pub(crate) helps: BTreeMap<String, String>,
}

impl Scrape {
    /// The value of the one series with this name and these labels, others allowed.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let fits = |series: &&Series| {
            series.name == name && labels.iter().all(|(k, v)| series.labels.get(*k).is_some_and(|value| value == v))
        };
        let mut found = self.series.iter().filter(fits);
        let value = found.next()?.value;
        assert!(found.next().is_none(), "{name} {labels:?} fits several series");
        Some(value)
    }
}

/// Reads a scrape, or says what is wrong with which line.
pub(crate) fn parse(text: &str) -> Result<Scrape, String> {
    let mut scrape = Scrape::default();
    let mut seen = HashSet::new();
    let mut current = String::new();
    let mut closed = HashSet::new();
    if !text.ends_with('\n') {
        return Err("the last line does not end".to_owned());
    }
    for line in text.lines() {
        let wrong = |what: &str| format!("{what}: {line}");
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').ok_or_else(|| wrong("HELP without text"))?;
            if scrape.helps.insert(name.to_owned(), help.to_owned()).is_some() {
                return Err(wrong("second HELP"));
            }
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').ok_or_else(|| wrong("TYPE without kind"))?;
            if !matches!(kind, "counter" | "gauge" | "histogram" | "summary" | "untyped") {
                return Err(wrong("unknown TYPE"));
            }
            if scrape.types.insert(name.to_owned(), kind.to_owned()).is_some() {
                return Err(wrong("second TYPE"));
            }
            closed.insert(std::mem::replace(&mut current, name.to_owned()));
        } else if line.starts_with('#') || line.is_empty() {
            return Err(wrong("neither HELP, TYPE nor a sample"));
        } else {
            let series = sample(line).map_err(|what| wrong(&what))?;
            let family = family_of(&series.name, &scrape.types).ok_or_else(|| wrong("no TYPE before it"))?;
            if family != current || closed.contains(&family) {
                return Err(wrong("outside its family"));
            }
            if !seen.insert((series.name.clone(), series.labels.clone())) {
                return Err(wrong("the same series twice"));
            }
            scrape.series.push(series);
        }
    }
    Ok(scrape)
}

fn family_of(name: &str, types: &BTreeMap<String, String>) -> Option<String> {
    if types.contains_key(name) {
        return Some(name.to_owned());
    }
    let base = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix))?;
    types.get(base).filter(|kind| *kind == "histogram").map(|_| base.to_owned())
}

fn sample(line: &str) -> Result<Series, String> {
    let name_len = line.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':')).count();
    let (name, mut rest) = line.split_at(name_len);
    if name.is_empty() || name.as_bytes()[0].is_ascii_digit() {
        return Err("invalid metric name".to_owned());
    }
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").ok_or("label without =\"")?;
            let valid = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
            if label.is_empty() || !label.bytes().all(valid) || label.as_bytes()[0].is_ascii_digit() {
                return Err(format!("invalid label name '{label}'"));
            }
            let (value, after) = label_value(after)?;
            if labels.insert(label.to_owned(), value).is_some() {
                return Err(format!("label '{label}' twice"));
            }
            if let Some(after) = after.strip_prefix("} ") {
                rest = after;
                break;
            }
            rest = after.strip_prefix(',').ok_or("neither , nor } after a label")?;
        }
    } else {
        rest = rest.strip_prefix(' ').ok_or("no space before the value")?;
    }
    let value: f64 = rest.parse().map_err(|_| format!("invalid value '{rest}'"))?;
    Ok(Series { name: name.to_owned(), labels, value })
}

/// The value up to the closing quote, escapes undone, and what follows.
fn label_value(text: &str) -> Result<(String, &str), String> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Ok((value, text.get(at + 1..).unwrap_or_default())),
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, '\\')) => value.push('\\'),
                Some((_, '"')) => value.push('"'),
                other => return Err(format!("invalid escape {other:?}")),
            },
            char if char.is_control() => return Err(format!("raw control character {char:?}")),
            char => value.push(char),
        }
    }
    Err("label value without end".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_refused() {
        let good = "# HELP a A.\n# TYPE a gauge\na{b=\"x\\\"\\\\\\n\"} 1\na 2\n";
        let scrape = parse(good).unwrap();
        assert_eq!(scrape.value("a", &[("b", "x\"\\\n")]), Some(1.0));
        for bad in [
            "a 1\n",
            "# TYPE a gauge\na 1",
            "# TYPE a gauge\na 1\na 2\n",
            "# TYPE a gauge\na{b=\"1\n\"} 1\n",
            "# TYPE a gauge\na{b=\"\\x\"} 1\n",
            "# TYPE a gauge\na{b=\"1\",b=\"2\"} 1\n",
            "# TYPE a gauge\na{b=\"1\"}1\n",
            "# TYPE a gauge\n# TYPE b gauge\na 1\n",
            "# TYPE a gauge\n# TYPE a gauge\na 1\n",
            "# TYPE a gauge\na 1e\n",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
