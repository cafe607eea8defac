//! What is wrong with a configuration, and where.

use std::fmt;

/// One thing that is wrong: the value got, the rule, the remedy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// Where in the file.
    pub place: Place,
    /// Path of the key, e.g. `keyspace[0].windows[1]`; empty for a fault of the file as a whole.
    pub key: String,
    /// What was found, e.g. `got "10"` or `missing`.
    pub what: String,
    /// What it should be.
    pub rule: String,
    /// What to do, where the rule does not say it.
    pub remedy: Option<String>,
}

/// A place in a text: both from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Place {
    /// The begin of the text.
    pub const START: Self = Self { line: 1, column: 1 };

    /// The place of the byte with this index.
    pub(super) fn of_byte(text: &str, index: usize) -> Self {
        let before = text.as_bytes().get(..index).unwrap_or(text.as_bytes());
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        // A byte that continues a character is not a column of its own.
        let column =
            before.get(line_start..).unwrap_or_default().iter().filter(|byte| **byte & 0xC0 != 0x80).count() + 1;
        Self { line, column }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl fmt::Display for Fault {
    /// `line:column: key: what; rule; remedy`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.what)?;
        if !self.rule.is_empty() {
            write!(f, "; {}", self.rule)?;
        }
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

/// All that is wrong with one configuration, in the order of the file; at least one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Faults {
    /// The first [`MAX_FAULTS`].
    pub list: Vec<Fault>,
    /// How many more there are.
    pub cut: usize,
}

/// More faults than these are counted, not listed.
pub const MAX_FAULTS: usize = 200;

impl fmt::Display for Faults {
    /// One line a fault.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.list.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(f, "{line_break}{fault}")?;
        }
        if self.cut > 0 {
            write!(f, "\n{} more not listed; mend these first", self.cut)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters() {
        let text = "a\nbß = 1\n\nx";
        for (index, line, column) in [(0, 1, 1), (2, 2, 1), (5, 2, 3), (10, 3, 1), (11, 4, 1), (99, 4, 2)] {
            assert_eq!(Place::of_byte(text, index), Place { line, column }, "{index}");
        }
    }

    #[test]
    fn a_fault_is_one_line() {
        let fault = Fault {
            place: Place { line: 3, column: 9 },
            key: "keyspace[0].floor".to_owned(),
            what: "got 0".to_owned(),
            rule: "should be a whole number from 1 to 9".to_owned(),
            remedy: None,
        };
        assert_eq!(fault.to_string(), "3:9: keyspace[0].floor: got 0; should be a whole number from 1 to 9");
    }
}
