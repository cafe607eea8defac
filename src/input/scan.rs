//! One validating pass over a record that should be one JSON object.
//!
//! Accepts exactly what `serde_json` accepts as a value, nesting limit and range of numbers included, but builds nothing:
//! a value is a place in the record. Strings are searched eight bytes at a time.

/// The record is not one JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotJson;

/// A string of the record: the bytes between its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) start: usize,
    pub(super) end: usize,
    /// It has at least one escape, so its bytes are not its value.
    pub(super) escaped: bool,
}

/// A value of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    /// A string.
    Text(Text),
    /// A number or a truth value, as written.
    Plain { start: usize, end: usize },
    /// Nothing.
    Null,
    /// An object, at its opening brace.
    Object { start: usize },
    /// An array, at its opening bracket.
    Array { start: usize },
}

/// Containers may be nested this deep: `serde_json`'s limit.
const MAX_DEPTH: u8 = 127;
/// A number without exponent and no longer than this is in the range of a double.
const MAX_PLAIN_DIGITS: usize = 300;

/// Checks the whole record and shows `visit` each member of its object: the name and the value, in their order.
pub(super) fn scan_record(record: &[u8], mut visit: impl FnMut(Text, Node)) -> Result<(), NotJson> {
    // Outside strings only ASCII is syntax, so one check of the whole is the same as one of each string.
    std::str::from_utf8(record).map_err(|_| NotJson)?;
    let mut scanner = Scanner::at(record, 0);
    scanner.skip_space();
    scanner.members(1, &mut visit)?;
    scanner.skip_space();
    if scanner.at == record.len() { Ok(()) } else { Err(NotJson) }
}

/// The members of the object at `start` of a record that [`scan_record`] accepted.
pub(super) fn visit_members(record: &[u8], start: usize, visit: &mut impl FnMut(Text, Node)) -> Result<(), NotJson> {
    Scanner::at(record, start).members(1, visit)
}

/// The elements of the array at `start` of a record that [`scan_record`] accepted.
pub(super) fn visit_elements(record: &[u8], start: usize, visit: &mut impl FnMut(Node)) -> Result<(), NotJson> {
    Scanner::at(record, start).elements(1, visit)
}

struct Scanner<'r> {
    bytes: &'r [u8],
    at: usize,
}

impl<'r> Scanner<'r> {
    fn at(bytes: &'r [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), NotJson> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(NotJson)
        }
    }

    /// An object of nesting `depth`, from its opening brace to behind its closing one.
    #[inline]
    fn members(&mut self, depth: u8, visit: &mut impl FnMut(Text, Node)) -> Result<(), NotJson> {
        self.expect(b'{')?;
        if depth > MAX_DEPTH {
            return Err(NotJson);
        }
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let name = self.string()?;
            self.skip_space();
            self.expect(b':')?;
            self.skip_space();
            let value = self.value(depth)?;
            visit(name, value);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(NotJson),
            }
            self.skip_space();
        }
        self.at += 1;
        Ok(())
    }

    /// An array of nesting `depth`, from its opening bracket to behind its closing one.
    fn elements(&mut self, depth: u8, visit: &mut impl FnMut(Node)) -> Result<(), NotJson> {
        self.expect(b'[')?;
        if depth > MAX_DEPTH {
            return Err(NotJson);
        }
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let value = self.value(depth)?;
            visit(value);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(NotJson),
            }
            self.skip_space();
        }
        self.at += 1;
        Ok(())
    }

    /// Any value inside a container of nesting `depth`.
    #[inline]
    fn value(&mut self, depth: u8) -> Result<Node, NotJson> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => Ok(Node::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => {
                self.number()?;
                Ok(Node::Plain { start, end: self.at })
            }
            Some(b't') => self.word(b"true").map(|()| Node::Plain { start, end: self.at }),
            Some(b'f') => self.word(b"false").map(|()| Node::Plain { start, end: self.at }),
            Some(b'n') => self.word(b"null").map(|()| Node::Null),
            Some(b'{') => self.members(depth + 1, &mut |_, _| {}).map(|()| Node::Object { start }),
            Some(b'[') => self.elements(depth + 1, &mut |_| {}).map(|()| Node::Array { start }),
            _ => Err(NotJson),
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), NotJson> {
        let end = self.at + word.len();
        if self.bytes.get(self.at..end) == Some(word) {
            self.at = end;
            Ok(())
        } else {
            Err(NotJson)
        }
    }

    fn digits(&mut self) -> Result<(), NotJson> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(NotJson) }
    }

    #[inline]
    fn number(&mut self) -> Result<(), NotJson> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        let mut in_range = self.at - start <= MAX_PLAIN_DIGITS;
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
            in_range = false;
        }
        if in_range { Ok(()) } else { self.check_range(start) }
    }

    /// Rare forms of numbers are judged by `serde_json` itself: it refuses those beyond a double.
    #[cold]
    fn check_range(&self, start: usize) -> Result<(), NotJson> {
        let number = self.bytes.get(start..self.at).unwrap_or_default();
        serde_json::from_slice::<serde_json::Value>(number).map(|_| ()).map_err(|_| NotJson)
    }

    #[inline]
    fn string(&mut self) -> Result<Text, NotJson> {
        self.expect(b'"')?;
        let start = self.at;
        let mut escaped = false;
        loop {
            let at = find_special(self.bytes, self.at).ok_or(NotJson)?;
            match self.bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    if escaped {
                        unescape(self.bytes.get(start..at).unwrap_or_default(), |_| {})?;
                    }
                    return Ok(Text { start, end: at, escaped });
                }
                Some(b'\\') => {
                    escaped = true;
                    self.at = at + 2;
                }
                _ => return Err(NotJson), // a control character
            }
        }
    }
}

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// The place of the first quote, backslash or control character from `from` on.
#[inline]
fn find_special(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let found = special_bytes(u64::from_le_bytes(*chunk));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let rest = bytes.get(at..)?;
    rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20).map(|index| at + index)
}

/// The high bit of each byte of `word` that ends a plain run. A borrow may mark a byte above a marked one wrongly, so
/// only the lowest mark counts.
#[inline]
fn special_bytes(word: u64) -> u64 {
    let zero_bytes = |word: u64| word.wrapping_sub(LOW_BITS) & !word;
    let quote = zero_bytes(word ^ (LOW_BITS * u64::from(b'"')));
    let backslash = zero_bytes(word ^ (LOW_BITS * u64::from(b'\\')));
    let control = word.wrapping_sub(LOW_BITS * 0x20) & !word;
    (quote | backslash | control) & HIGH_BITS
}

/// Hands the value of a string, given without its quotes, to `emit` piece by piece.
pub(super) fn unescape(text: &[u8], mut emit: impl FnMut(&[u8])) -> Result<(), NotJson> {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        let (plain, escape) = rest.split_at(at);
        emit(plain);
        let (&kind, after) = escape.get(1..).and_then(<[u8]>::split_first).ok_or(NotJson)?;
        rest = after;
        match kind {
            b'"' | b'\\' | b'/' => emit(&[kind]),
            b'b' => emit(b"\x08"),
            b'f' => emit(b"\x0c"),
            b'n' => emit(b"\n"),
            b'r' => emit(b"\r"),
            b't' => emit(b"\t"),
            b'u' => {
                let (character, after) = unicode_escape(after)?;
                emit(character.encode_utf8(&mut [0; 4]).as_bytes());
                rest = after;
            }
            _ => return Err(NotJson),
        }
    }
    emit(rest);
    Ok(())
}

/// Reads what follows `\u`: four hexadecimal digits, and the second half of a surrogate pair.
fn unicode_escape(text: &[u8]) -> Result<(char, &[u8]), NotJson> {
    let (first, rest) = hex4(text)?;
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first).map(|character| (character, rest)).ok_or(NotJson);
    }
    let (second, rest) = hex4(rest.strip_prefix(b"\\u").ok_or(NotJson)?)?;
    if !(0xdc00..0xe000).contains(&second) {
        return Err(NotJson);
    }
    let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    char::from_u32(code).map(|character| (character, rest)).ok_or(NotJson)
}

fn hex4(text: &[u8]) -> Result<(u32, &[u8]), NotJson> {
    let (digits, rest) = text.split_at_checked(4).ok_or(NotJson)?;
    let mut code = 0;
    for &digit in digits {
        code = code * 16 + char::from(digit).to_digit(16).ok_or(NotJson)?;
    }
    Ok((code, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(record: &str) -> bool {
        let ours = scan_record(record.as_bytes(), |_, _| {}).is_ok();
        let reference = serde_json::from_str::<serde_json::Value>(record).is_ok_and(|value| value.is_object());
        assert_eq!(ours, reference, "{record}");
        ours
    }

    #[test]
    fn the_lowest_special_byte_is_found_at_every_place() {
        for special in [b'"', b'\\', 0, 0x1f, b'\n'] {
            for length in 0..24 {
                for filler in [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xff] {
                    let mut bytes = vec![filler; length];
                    assert_eq!(find_special(&bytes, 0), None);
                    bytes.push(special);
                    bytes.extend([b'"', filler, b'\\']);
                    assert_eq!(find_special(&bytes, 0), Some(length));
                }
            }
        }
    }

    #[test]
    fn nesting_ends_where_serde_json_ends_it() {
        for depth in [1, 2, 125, 126, 127, 128, 200] {
            accepts(&format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth)));
            accepts(&format!("{{\"a\":{}1{}}}", "{\"b\":".repeat(depth), "}".repeat(depth)));
        }
        assert!(accepts(&format!("{{\"a\":{}{}}}", "[".repeat(126), "]".repeat(126))));
        assert!(!accepts(&format!("{{\"a\":{}{}}}", "[".repeat(127), "]".repeat(127))));
    }

    #[test]
    fn numbers_follow_the_grammar_and_the_range() {
        let long = format!("1{}", "0".repeat(400));
        let long_fraction = format!("0.{}1", "0".repeat(400));
        let good = ["0", "-0", "1", "-1.5", "1e5", "1E+5", "1e-5", "1e308", "1e-999", "0e999", &long_fraction];
        let bad = ["", "-", "01", "1.", ".5", "+1", "1e", "1e+", "0x1", "NaN", "Infinity", "1e309", "-1e999", &long];
        for number in good {
            assert!(accepts(&format!("{{\"n\":{number}}}")), "{number}");
        }
        for number in bad {
            assert!(!accepts(&format!("{{\"n\":{number}}}")), "{number}");
        }
    }

    #[test]
    fn escapes_follow_the_grammar() {
        for text in ["\\\"\\\\\\/\\b\\f\\n\\r\\t", "\\u0041\\u0000", "\\ud83d\\ude00", "\\uFFFF"] {
            assert!(accepts(&format!("{{\"s\":\"{text}\",\"{text}\":1}}")), "{text}");
        }
        for text in
            ["\\x22", "\\", "\\u12", "\\u12g4", "\\ud83d", "\\ud83d\\u0041", "\\ude00", "\\ud83d\\n", "\t", "\u{1}"]
        {
            assert!(!accepts(&format!("{{\"s\":\"{text}\"}}")), "{text}");
            assert!(!accepts(&format!("{{\"{text}\":1}}")), "{text}");
        }
    }

    #[test]
    fn one_object_and_nothing_else() {
        for record in ["{}", " { } \r\n", "{\"a\":{}}", "{\"a\":[],\"b\":[1,{}]}", "\t{\"a\" : null , \"b\":true}"] {
            assert!(accepts(record), "{record}");
        }
        for record in [
            "",
            " ",
            "1",
            "[]",
            "null",
            "{}{}",
            "{}\n{}",
            "{} x",
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,}",
            "{,}",
            "{\"a\":[1,]}",
            "{\"a\":[,]}",
            "{a:1}",
            "{'a':1}",
            "{\"a\":tru}",
            "{\"a\":nulls}",
            "{\"a\" 1}",
            "\u{feff}{}",
            "{\"a\":1 \"b\":2}",
            "{\"a\":\u{a0}1}",
        ] {
            assert!(!accepts(record), "{record}");
        }
        assert_eq!(scan_record(b"{\"a\":\"\xff\"}", |_, _| {}), Err(NotJson));
    }
}
