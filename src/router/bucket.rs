//! The form of a bucket's key in the store.

use crate::protocol::MAX_BUCKET_KEY_BYTES;

/// The form of a bucket's key in the store, e.g. `{key}:{label}`.
///
/// A form is joined text: where keys of the store may look like a joined one (`c42:1` beside bucket 1 of `c42`), use the fields
/// of a place instead and store the label apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketKey {
    pieces: Box<[Piece]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(Box<str>),
    Key,
    Label,
}

/// A form that would not give each bucket a key of its own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBucketKey {
    /// Too long.
    #[error("the bucket key form has {0} bytes, at most {MAX_BUCKET_KEY_BYTES} are allowed")]
    TooLong(usize),
    /// `{key}` or `{label}` is missing or given twice.
    #[error("the bucket key form '{form}' has {{{name}}} {times} times, which should be once")]
    Times {
        /// The form.
        form: String,
        /// What is missing or given twice.
        name: &'static str,
        /// How often.
        times: usize,
    },
}

impl InvalidBucketKey {
    /// The rule that is broken.
    pub(super) const fn rule(&self) -> &'static str {
        match self {
            Self::TooLong(_) => "the key of a bucket has a form of at most 256 bytes",
            Self::Times { .. } => "the key of a bucket holds {key} and {label} once each",
        }
    }
}

impl BucketKey {
    /// Reads a form in which `{key}` and `{label}` stand once each; all else is text.
    ///
    /// # Errors
    /// [`InvalidBucketKey`]: without the label all buckets would be one place, without the key all keys.
    pub fn parse(form: &str) -> Result<Self, InvalidBucketKey> {
        if form.len() > MAX_BUCKET_KEY_BYTES {
            return Err(InvalidBucketKey::TooLong(form.len()));
        }
        for name in ["key", "label"] {
            let times = form.matches(&format!("{{{name}}}")).count();
            if times != 1 {
                return Err(InvalidBucketKey::Times { form: form.to_owned(), name, times });
            }
        }
        let mut pieces = Vec::new();
        let mut rest = form;
        while !rest.is_empty() {
            let next = [("{key}", Piece::Key), ("{label}", Piece::Label)]
                .into_iter()
                .filter_map(|(name, piece)| rest.split_once(name).map(|(before, after)| (before, piece, after)))
                .min_by_key(|(before, _, _)| before.len());
            let Some((before, piece, after)) = next else {
                pieces.push(Piece::Text(rest.into()));
                break;
            };
            if !before.is_empty() {
                pieces.push(Piece::Text(before.into()));
            }
            pieces.push(piece);
            rest = after;
        }
        Ok(Self { pieces: pieces.into_boxed_slice() })
    }

    /// The key of the bucket with this label.
    #[must_use]
    pub fn render(&self, key: &[u8], label: u32) -> Vec<u8> {
        let mut digits = [0_u8; 10];
        let label = decimal(label, &mut digits);
        let length = |piece: &Piece| match piece {
            Piece::Text(text) => text.len(),
            Piece::Key => key.len(),
            Piece::Label => label.len(),
        };
        let mut out = Vec::with_capacity(self.pieces.iter().map(length).sum());
        for piece in &self.pieces {
            out.extend_from_slice(match piece {
                Piece::Text(text) => text.as_bytes(),
                Piece::Key => key,
                Piece::Label => label,
            });
        }
        out
    }
}

/// The decimal digits of `number`, without an allocation.
fn decimal(mut number: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_gives_each_bucket_its_key() {
        let form = BucketKey::parse("{key}:{label}").unwrap();
        assert_eq!(form.render(b"c42", 0), b"c42:0");
        assert_eq!(form.render(&[0xff, b'/'], u32::MAX), b"\xff/:4294967295");
        assert_eq!(BucketKey::parse("b{label}/{key}!").unwrap().render(b"{label}", 7), b"b7/{label}!");
    }

    #[test]
    fn a_form_that_joins_buckets_or_keys_is_refused() {
        for (form, name, times) in [("{key}", "label", 0), ("{label}", "key", 0), ("{key}{key}{label}", "key", 2)] {
            assert_eq!(
                BucketKey::parse(form),
                Err(InvalidBucketKey::Times { form: form.to_owned(), name, times }),
                "{form}"
            );
        }
        assert_eq!(BucketKey::parse(&"x".repeat(257)), Err(InvalidBucketKey::TooLong(257)));
    }
}
