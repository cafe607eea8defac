//! Which keys of a keyspace a set of rules is for.

/// The longest pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 256;
/// The most stars of a pattern.
pub const MAX_PATTERN_STARS: usize = 8;

/// Text with stars: `*` stands for any bytes, `\*` and `\\` for themselves, all else for itself. The whole key has to match.
///
/// ```
/// use keyheat::engine::KeyPattern;
///
/// let tenant: KeyPattern = "acme:*".parse()?;
/// assert!(tenant.matches(b"acme:42") && !tenant.matches(b"other:acme:42"));
/// # Ok::<(), keyheat::engine::InvalidPattern>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPattern {
    text: String,
    /// What stands between stars; one part is a whole key.
    parts: Vec<Vec<u8>>,
}

/// A text that is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid key pattern '{text}': {rule}")]
pub struct InvalidPattern {
    /// The text, cut.
    pub text: String,
    /// What it breaks, and the remedy.
    pub rule: &'static str,
}

impl std::str::FromStr for KeyPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = |rule| InvalidPattern { text: text.chars().take(64).collect(), rule };
        if text.is_empty() {
            return Err(invalid("it should not be empty; '*' matches every key"));
        }
        if text.len() > MAX_PATTERN_BYTES {
            return Err(invalid("it should have at most 256 bytes; shorten it with '*'"));
        }
        let mut parts = vec![Vec::new()];
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            let literal = match byte {
                b'*' => {
                    parts.push(Vec::new());
                    continue;
                }
                b'\\' => bytes
                    .next()
                    .filter(|next| b"*\\".contains(next))
                    .ok_or_else(|| invalid("'\\' should stand before '*' or '\\'; write '\\\\' for one backslash"))?,
                other => other,
            };
            parts.last_mut().into_iter().for_each(|part| part.push(literal));
        }
        if parts.len() > MAX_PATTERN_STARS + 1 {
            return Err(invalid("it should have at most 8 stars; leave some out"));
        }
        Ok(Self { text: text.to_owned(), parts })
    }
}

impl std::fmt::Display for KeyPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl KeyPattern {
    /// True when the whole key matches.
    #[must_use]
    pub fn matches(&self, key: &[u8]) -> bool {
        let [first, middle @ .., last] = &self.parts[..] else {
            return self.parts.first().is_some_and(|whole| whole == key);
        };
        let Some(mut rest) = key.strip_prefix(&first[..]).and_then(|rest| rest.strip_suffix(&last[..])) else {
            return false;
        };
        // The leftmost place of each part leaves the most room for the next.
        for part in middle.iter().filter(|part| !part.is_empty()) {
            let Some(at) = rest.windows(part.len()).position(|window| window == &part[..]) else { return false };
            rest = rest.get(at + part.len()..).unwrap_or_default();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> KeyPattern {
        text.parse().unwrap()
    }

    #[test]
    fn stars_stand_for_any_bytes() {
        for (text, yes, no) in [
            ("a", &["a"][..], &["", "aa", "b"][..]),
            ("*", &["", "x"], &[]),
            ("acme:*", &["acme:", "acme:1"], &["acme", "xacme:1"]),
            ("*.png", &["a.png", ".png"], &["a.png?", "png"]),
            ("a*b*c", &["abc", "axbxc", "abbc"], &["acb", "ab", "abcx"]),
            ("ab*ba", &["abba", "abxba"], &["aba"]),
            ("\\*a\\\\", &["*a\\"], &["xa\\"]),
            ("a**b", &["ab", "axb"], &["a"]),
        ] {
            yes.iter().for_each(|key| assert!(pattern(text).matches(key.as_bytes()), "{text} {key}"));
            no.iter().for_each(|key| assert!(!pattern(text).matches(key.as_bytes()), "{text} {key}"));
            assert_eq!(pattern(text).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_a_remedy() {
        for text in ["", "a\\b", "a\\", &"*".repeat(9), &"x".repeat(257)] {
            assert!(text.parse::<KeyPattern>().is_err(), "{text}");
        }
        let error = "a\\b".parse::<KeyPattern>().unwrap_err().to_string();
        assert_eq!(
            error,
            "invalid key pattern 'a\\b': '\\' should stand before '*' or '\\'; write '\\\\' for one backslash"
        );
    }

    /// The definition, word for word: a star is every number of bytes, tried one after the other.
    fn slow(parts: &[Vec<u8>], key: &[u8]) -> bool {
        match parts {
            [] => false,
            [last] => last == key,
            [first, rest @ ..] => {
                key.strip_prefix(&first[..]).is_some_and(|tail| (0..=tail.len()).any(|from| slow(rest, &tail[from..])))
            }
        }
    }

    proptest! {
        #[test]
        fn matching_is_what_the_definition_says(text in "[ab*]{1,8}", key in "[ab]{0,10}") {
            let pattern = pattern(&text);
            prop_assert_eq!(pattern.matches(key.as_bytes()), slow(&pattern.parts, key.as_bytes()));
        }
    }
}
