//! How bytes that came from outside are shown: escaped, cut, and by choice hashed or not at all.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;
use xxhash_rust::xxh3::xxh3_64;

/// The longest label value, in characters, without the mark of a cut.
pub const MAX_LABEL_CHARS: usize = 80;
/// The longest text from outside in a log line, in characters, without the mark of a cut.
pub const MAX_LOG_CHARS: usize = 200;

/// Text that any terminal, log, label and page can show: at most `max_chars` characters, and a mark when cut.
///
/// Printable characters stay. Control, bidirectional, invisible and combining characters, spaces other than U+0020 and
/// the backslash become escapes, bytes that are not UTF-8 become `\xFF`. So texts of different bytes look different. A
/// cut text ends in `…` and 8 hexadecimal digits of the hash of all bytes, so that two long texts with the same
/// beginning stay apart.
#[must_use]
pub fn escape(bytes: &[u8], max_chars: usize) -> String {
    let mut text = String::with_capacity(bytes.len().min(max_chars));
    let mut chars = 0;
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            let escaped = char.escape_debug();
            // Quotes are no danger, and every consumer quotes by its own rules.
            let (plain, width) = if matches!(char, '"' | '\'') { (true, 1) } else { (false, escaped.len()) };
            if chars + width > max_chars {
                return cut(text, bytes);
            }
            chars += width;
            if plain { text.push(char) } else { text.extend(escaped) }
        }
        for byte in chunk.invalid() {
            if chars + 4 > max_chars {
                return cut(text, bytes);
            }
            chars += 4;
            text.push_str(&format!("\\x{byte:02X}"));
        }
    }
    text
}

fn cut(mut text: String, bytes: &[u8]) -> String {
    text.push_str(&format!("…{:08x}", xxh3_64(bytes) >> 32));
    text
}

/// How keys are shown in metrics, logs and the API.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyDisplay {
    /// As they are, escaped.
    #[default]
    Plain,
    /// As 16 hexadecimal digits of `SipHash` 1-3 under a secret: who does not know it cannot try keys out.
    Hash {
        /// The same for all instances whose output is compared.
        secret: [u8; 16],
    },
    /// Not at all.
    Off,
}

/// The secret does not reach a log by way of `{:?}`.
impl std::fmt::Debug for KeyDisplay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain => "Plain",
            Self::Hash { .. } => "Hash",
            Self::Off => "Off",
        })
    }
}

/// A key, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(untagged)]
pub enum KeyText {
    /// The key's own bytes, which are UTF-8.
    Plain {
        /// The key.
        key: String,
    },
    /// The key's own bytes, which are not.
    Base64 {
        /// The key in base64 (RFC 4648, with padding).
        key_b64: String,
    },
    /// Its keyed hash.
    Hash {
        /// 16 hexadecimal digits.
        key_hash: String,
    },
    /// Nothing.
    Off {},
}

impl KeyDisplay {
    /// The key for JSON: exact, since JSON has escapes of its own.
    #[must_use]
    pub fn json(&self, key: &[u8]) -> KeyText {
        match self {
            Self::Plain => match std::str::from_utf8(key) {
                Ok(text) => KeyText::Plain { key: text.to_owned() },
                Err(_) => KeyText::Base64 { key_b64: base64::Engine::encode(&base64::prelude::BASE64_STANDARD, key) },
            },
            Self::Hash { secret } => KeyText::Hash { key_hash: keyed_hash(key, secret) },
            Self::Off => KeyText::Off {},
        }
    }

    /// The key for a label or a log line: escaped and cut to `max_chars`; empty when keys are not shown.
    #[must_use]
    pub fn text(&self, key: &[u8], max_chars: usize) -> String {
        match self {
            Self::Plain => escape(key, max_chars),
            Self::Hash { secret } => keyed_hash(key, secret),
            Self::Off => String::new(),
        }
    }
}

fn keyed_hash(key: &[u8], secret: &[u8; 16]) -> String {
    let mut hasher = SipHasher13::new_with_key(secret);
    hasher.write(key);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn odd_keys_o3() {
        for (bytes, shown) in [
            (&b"plain key"[..], "plain key"),
            (b"a\"b", "a\"b"),
            (b"a\\b", r"a\\b"),
            (b"a\nb", r"a\nb"),
            (b"\0", r"\0"),
            ("é".as_bytes(), "é"),
            ("e\u{301}".as_bytes(), r"e\u{301}"),
            (b"\xFF", r"\xFF"),
            (br"\xFF", r"\\xFF"),
            ("\u{202e}gpj".as_bytes(), r"\u{202e}gpj"),
            ("a\u{200b}b".as_bytes(), r"a\u{200b}b"),
            (b"\x1b[31m", r"\u{1b}[31m"),
        ] {
            assert_eq!(escape(bytes, MAX_LABEL_CHARS), shown);
        }
        let long = escape(&[b'x'; 4096], MAX_LABEL_CHARS);
        assert_eq!(long.chars().count(), MAX_LABEL_CHARS + 9);
        let other = escape(&[&[b'x'; 4095][..], b"y"].concat(), MAX_LABEL_CHARS);
        assert_ne!(long, other);
    }

    #[test]
    fn every_single_byte_is_shown_harmlessly_t7() {
        let shown: HashSet<String> = (0..=255_u8).map(|byte| escape(&[byte], 80)).collect();
        assert_eq!(shown.len(), 256, "different bytes look different");
        assert!(shown.iter().all(|text| text.chars().all(|char| !char.is_control())));
    }

    proptest! {
        #[test]
        fn different_bytes_look_different(a: Vec<u8>, b: Vec<u8>) {
            prop_assert_eq!(escape(&a, 10_000) == escape(&b, 10_000), a == b);
        }

        #[test]
        fn nothing_harmful_passes_and_the_length_is_bounded(text in "\\PC{0,40}|[\\x00-\\x{2fff}]{0,200}", max in 0_usize..60) {
            let shown = escape(text.as_bytes(), max);
            prop_assert!(shown.chars().count() <= max + 9);
            let harmful = |c: char| c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
            prop_assert!(!shown.contains(harmful));
        }
    }

    #[test]
    fn keys_are_shown_plain_hashed_or_not_at_all_t17() {
        let json = |display: KeyDisplay, key: &[u8]| serde_json::to_string(&display.json(key)).unwrap();
        assert_eq!(json(KeyDisplay::Plain, b"a\"\n"), r#"{"key":"a\"\n"}"#);
        assert_eq!(json(KeyDisplay::Plain, b"\xFF"), r#"{"key_b64":"/w=="}"#);
        assert_eq!(json(KeyDisplay::Off, b"mail@example.org"), "{}");
        let hashed = KeyDisplay::Hash { secret: [7; 16] };
        assert_ne!(json(hashed, b"a"), json(hashed, b"b"));
        assert_ne!(json(hashed, b"a"), json(KeyDisplay::Hash { secret: [8; 16] }, b"a"));
        assert!(!json(hashed, b"mail@example.org").contains("mail"));
        assert_eq!(hashed.text(b"a", 80).len(), 16);
        assert_eq!(format!("{hashed:?}"), "Hash");
    }
}
