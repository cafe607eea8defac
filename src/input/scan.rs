//! One validating pass over a record that should be one JSON object.
//!
//! Accepts exactly what `serde_json` accepts as a value, nesting limit and range of numbers included, but builds nothing:
//! a value is a place in the record. Strings are searched eight bytes at a time.

/// The record is not one JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotJson;

/// A value of the record, or the name of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// Where it begins; a text behind its opening quote.
    pub(super) start: usize,
    /// Where it ends; a text before its closing quote.
    pub(super) end: usize,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing.
    Null,
    /// A string whose bytes are its value.
    Text,
    /// A string with escapes.
    EscapedText,
    /// A number or a truth value, as written.
    Plain,
    Object,
    Array,
}

impl Node {
    pub(super) const NULL: Self = Self { kind: Kind::Null, start: 0, end: 0 };

    /// Its bytes in the record.
    pub(super) fn slice(self, record: &[u8]) -> &[u8] {
        record.get(self.start..self.end).unwrap_or_default()
    }
}

/// Containers may be nested this deep: `serde_json`'s limit.
const MAX_DEPTH: u8 = 127;
/// A number without exponent and no longer than this is in the range of a double.
const MAX_PLAIN_DIGITS: usize = 300;

/// Checks the whole record and shows `visit` each member of its object: the name and the value, in their order.
#[inline]
pub(super) fn scan_record(record: &[u8], mut visit: impl FnMut(Node, Node)) -> Result<(), NotJson> {
    let mut seen = 0;
    let at = skip_space(record, 0);
    let at = members(record, at, 1, &mut seen, &mut visit)?;
    if skip_space(record, at) != record.len() {
        return Err(NotJson);
    }
    // Outside strings only ASCII is syntax, so one check of the whole is the same as one of each string.
    if seen & HIGH_BITS != 0 && std::str::from_utf8(record).is_err() {
        return Err(NotJson);
    }
    Ok(())
}

/// The members of the object at `start` of a record that [`scan_record`] accepted.
pub(super) fn visit_members(record: &[u8], start: usize, visit: &mut impl FnMut(Node, Node)) -> Result<(), NotJson> {
    members(record, start, 1, &mut 0, visit).map(|_| ())
}

/// The elements of the array at `start` of a record that [`scan_record`] accepted.
pub(super) fn visit_elements(record: &[u8], start: usize, visit: &mut impl FnMut(Node)) -> Result<(), NotJson> {
    elements(record, start, 1, &mut 0, visit).map(|_| ())
}

// What follows takes a place in the record and returns the one behind what it read, so that places stay in registers. Bytes
// of strings are or-ed into `seen`: without a high bit in it all of them were ASCII.

#[inline(always)]
fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

#[inline(always)]
fn expect(bytes: &[u8], at: usize, byte: u8) -> Result<usize, NotJson> {
    if bytes.get(at) == Some(&byte) { Ok(at + 1) } else { Err(NotJson) }
}

/// An object of nesting `depth`, from its opening brace to behind its closing one.
#[inline(always)]
fn members(
    bytes: &[u8],
    at: usize,
    depth: u8,
    seen: &mut u64,
    visit: &mut impl FnMut(Node, Node),
) -> Result<usize, NotJson> {
    let mut at = skip_space(bytes, expect(bytes, at, b'{')?);
    if depth > MAX_DEPTH {
        return Err(NotJson);
    }
    if bytes.get(at) == Some(&b'}') {
        return Ok(at + 1);
    }
    loop {
        let (name, behind) = string(bytes, at, seen)?;
        at = skip_space(bytes, behind);
        at = skip_space(bytes, expect(bytes, at, b':')?);
        let (node, behind) = value(bytes, at, depth, seen)?;
        visit(name, node);
        at = skip_space(bytes, behind);
        match bytes.get(at) {
            Some(b',') => at = skip_space(bytes, at + 1),
            Some(b'}') => return Ok(at + 1),
            _ => return Err(NotJson),
        }
    }
}

/// An array of nesting `depth`, from its opening bracket to behind its closing one.
#[inline(always)]
fn elements(
    bytes: &[u8],
    at: usize,
    depth: u8,
    seen: &mut u64,
    visit: &mut impl FnMut(Node),
) -> Result<usize, NotJson> {
    let mut at = skip_space(bytes, expect(bytes, at, b'[')?);
    if depth > MAX_DEPTH {
        return Err(NotJson);
    }
    if bytes.get(at) == Some(&b']') {
        return Ok(at + 1);
    }
    loop {
        let (node, behind) = value(bytes, at, depth, seen)?;
        visit(node);
        at = skip_space(bytes, behind);
        match bytes.get(at) {
            Some(b',') => at = skip_space(bytes, at + 1),
            Some(b']') => return Ok(at + 1),
            _ => return Err(NotJson),
        }
    }
}

/// An object or array that is looked at only to check it.
#[inline(never)]
fn container(bytes: &[u8], at: usize, depth: u8, seen: &mut u64) -> Result<usize, NotJson> {
    if bytes.get(at) == Some(&b'{') {
        members(bytes, at, depth, seen, &mut |_, _| {})
    } else {
        elements(bytes, at, depth, seen, &mut |_| {})
    }
}

/// Any value inside a container of nesting `depth`.
#[inline(always)]
fn value(bytes: &[u8], at: usize, depth: u8, seen: &mut u64) -> Result<(Node, usize), NotJson> {
    let (kind, end) = match bytes.get(at) {
        Some(b'"') => return string(bytes, at, seen),
        Some(b'-' | b'0'..=b'9') => (Kind::Plain, number(bytes, at)?),
        Some(b't') => (Kind::Plain, word(bytes, at, b"true")?),
        Some(b'f') => (Kind::Plain, word(bytes, at, b"false")?),
        Some(b'n') => (Kind::Null, word(bytes, at, b"null")?),
        Some(b'{') => (Kind::Object, container(bytes, at, depth + 1, seen)?),
        Some(b'[') => (Kind::Array, container(bytes, at, depth + 1, seen)?),
        _ => return Err(NotJson),
    };
    Ok((Node { kind, start: at, end }, end))
}

fn word(bytes: &[u8], at: usize, word: &[u8]) -> Result<usize, NotJson> {
    let end = at + word.len();
    if bytes.get(at..end) == Some(word) { Ok(end) } else { Err(NotJson) }
}

/// At least one digit.
#[inline(always)]
fn digits(bytes: &[u8], start: usize) -> Result<usize, NotJson> {
    let mut at = start;
    while matches!(bytes.get(at), Some(b'0'..=b'9')) {
        at += 1;
    }
    if at > start { Ok(at) } else { Err(NotJson) }
}

#[inline(always)]
fn number(bytes: &[u8], start: usize) -> Result<usize, NotJson> {
    let mut at = start + usize::from(bytes.get(start) == Some(&b'-'));
    at = if bytes.get(at) == Some(&b'0') { at + 1 } else { digits(bytes, at)? };
    if bytes.get(at) == Some(&b'.') {
        at = digits(bytes, at + 1)?;
    }
    let has_exponent = matches!(bytes.get(at), Some(b'e' | b'E'));
    if has_exponent || at - start > MAX_PLAIN_DIGITS { unusual_number(bytes, start, at) } else { Ok(at) }
}

/// A number that may be beyond a double, read up to its exponent: judged by `serde_json` itself.
#[cold]
fn unusual_number(bytes: &[u8], start: usize, mut at: usize) -> Result<usize, NotJson> {
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let has_sign = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
        at = digits(bytes, at + 1 + usize::from(has_sign))?;
    }
    let number = bytes.get(start..at).unwrap_or_default();
    serde_json::from_slice::<serde_json::Value>(number).map(|_| at).map_err(|_| NotJson)
}

/// A string, from its opening quote to behind its closing one.
#[inline(always)]
fn string(bytes: &[u8], at: usize, seen: &mut u64) -> Result<(Node, usize), NotJson> {
    let start = expect(bytes, at, b'"')?;
    let end = find_special(bytes, start, seen).ok_or(NotJson)?;
    if bytes.get(end) == Some(&b'"') {
        return Ok((Node { kind: Kind::Text, start, end }, end + 1));
    }
    let end = escaped_end(bytes, start, end, seen)?;
    Ok((Node { kind: Kind::EscapedText, start, end }, end + 1))
}

/// The closing quote of a string whose first special byte is at `at`.
#[cold]
fn escaped_end(bytes: &[u8], start: usize, mut at: usize, seen: &mut u64) -> Result<usize, NotJson> {
    loop {
        match bytes.get(at) {
            Some(b'\\') => at = find_special(bytes, at + 2, seen).ok_or(NotJson)?,
            Some(b'"') => break,
            _ => return Err(NotJson), // a control character
        }
    }
    // What an escape skips may lie outside ASCII; it is then no escape.
    unescape(bytes.get(start..at).unwrap_or_default(), |_| {})?;
    Ok(at)
}

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// The place of the first quote, backslash or control character from `from` on.
#[inline(always)]
fn find_special(bytes: &[u8], from: usize, seen: &mut u64) -> Option<usize> {
    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        *seen |= word;
        let found = special_bytes(word);
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    find_special_at_end(bytes, at, seen)
}

/// The same in the last few bytes of the record.
fn find_special_at_end(bytes: &[u8], from: usize, seen: &mut u64) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let length = rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20)?;
    rest.iter().take(length).for_each(|&byte| *seen |= u64::from(byte));
    Some(from + length)
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
                    assert_eq!(find_special(&bytes, 0, &mut 0), None);
                    bytes.push(special);
                    bytes.extend([b'"', filler, b'\\']);
                    assert_eq!(find_special(&bytes, 0, &mut 0), Some(length));
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
