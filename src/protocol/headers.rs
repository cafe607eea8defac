//! Headers of every record on the plan topic, tombstones too: CloudEvents in binary mode, and the fence's three.
//!
//! | Header | Value |
//! |---|---|
//! | `ce_specversion` | `1.0` |
//! | `ce_id` | `<epoch>-<nonce>-<seq>`: the same for the same record, sent again or not (I1) |
//! | `ce_source` | who publishes: a URI reference, e.g. `/keyheat/prod/detector-1` |
//! | `ce_type` | what the record is, e.g. `keyheat.plan.v1` |
//! | `ce_time` | when it was decided, RFC 3339 |
//! | `ce_subject` | the record's key |
//! | `ce_dataschema` | a URI of the value's schema; absent from a tombstone |
//! | `content-type` | `application/json`; absent from a tombstone |
//! | `kh_epoch`, `kh_seq` | the record's version: decimal, no leading zeros |
//! | `kh_nonce` | whose claim of the epoch it is: 16 hexadecimal digits |
//!
//! `ce_subject` and `ce_source` are percent-encoded as `CloudEvents` does in HTTP headers: every byte outside `!`..=`~`, and `"` and
//! `%`, becomes `%XX` with upper-case digits. Readers need `kh_epoch`, `kh_nonce` and `kh_seq`; the rest may be missing.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode, percent_encode};

use super::version::{Nonce, Version};

/// What stands for itself in no header: beside bytes that are not ASCII.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');

/// The longest `ce_source`, in bytes.
pub const MAX_SOURCE_BYTES: usize = 256;
/// Epochs and sequence numbers stay below this, 2^53, so that JSON readers in every language hold them exactly.
pub const MAX_VERSION_NUMBER: u64 = (1 << 53) - 1;

/// What a record says about itself beside key and value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordHeaders {
    /// Its version; a claim has its epoch and seq 0.
    pub version: Version,
    /// Whose claim of the epoch it is.
    pub nonce: Nonce,
    /// What it is.
    pub kind: RecordKind,
    /// Who publishes; at most [`MAX_SOURCE_BYTES`].
    pub source: String,
    /// When it was decided, RFC 3339.
    pub time: String,
    /// The record's key.
    pub subject: Vec<u8>,
    /// True when the record has a value: then it has a content type and a schema.
    pub has_value: bool,
}

/// What a record is: the `ce_type` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// A plan's record.
    Plan,
    /// A plan's tombstone.
    PlanRemoved,
    /// Advice.
    Advice,
    /// Advice's tombstone.
    AdviceRemoved,
    /// A pin or block.
    Policy,
    /// A pin's or block's tombstone.
    PolicyRemoved,
    /// A claim.
    Claim,
    /// A heartbeat.
    Heartbeat,
    /// A type that this version does not know.
    Other,
}

impl RecordKind {
    const NAMED: [(Self, &str); 8] = [
        (Self::Plan, "keyheat.plan.v1"),
        (Self::PlanRemoved, "keyheat.plan.removed.v1"),
        (Self::Advice, "keyheat.advice.v1"),
        (Self::AdviceRemoved, "keyheat.advice.removed.v1"),
        (Self::Policy, "keyheat.policy.v1"),
        (Self::PolicyRemoved, "keyheat.policy.removed.v1"),
        (Self::Claim, "keyheat.claim.v1"),
        (Self::Heartbeat, "keyheat.heartbeat.v1"),
    ];

    /// The value of `ce_type`.
    #[must_use]
    pub fn label(self) -> &'static str {
        Self::NAMED.iter().find(|(kind, _)| *kind == self).map_or("keyheat.other.v1", |(_, name)| name)
    }

    fn of(name: &[u8]) -> Self {
        Self::NAMED.iter().find(|(_, known)| known.as_bytes() == name).map_or(Self::Other, |(kind, _)| *kind)
    }

    /// `ce_dataschema`, the value's schema.
    #[must_use]
    pub const fn schema(self) -> Option<&'static str> {
        match self {
            Self::Plan => Some("urn:keyheat:schema:plan:1"),
            Self::Advice => Some("urn:keyheat:schema:advice:1"),
            Self::Policy => Some("urn:keyheat:schema:policy:1"),
            Self::Claim => Some("urn:keyheat:schema:claim:1"),
            Self::Heartbeat => Some("urn:keyheat:schema:heartbeat:1"),
            Self::PlanRemoved | Self::AdviceRemoved | Self::PolicyRemoved | Self::Other => None,
        }
    }
}

/// Headers that do not say which version a record has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHeaders {
    /// One of the fence's three is missing.
    #[error("header '{0}' is missing; every record has it, tombstones too")]
    Missing(&'static str),
    /// One of the fence's three is there twice.
    #[error("header '{0}' is there twice, which should be there once")]
    Twice(&'static str),
    /// Not a number in its one spelling and range.
    #[error("invalid header '{0}', which should be decimal without leading zeros and below 2^53")]
    Number(&'static str),
    /// Not a nonce.
    #[error("invalid header 'kh_nonce', which should be 16 hexadecimal digits in lower case")]
    Nonce,
}

impl RecordHeaders {
    /// `ce_id`: the same for the same record.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}-{}-{}", self.version.epoch, self.nonce, self.version.seq)
    }

    /// Names and values, in a fixed order.
    #[must_use]
    pub fn to_pairs(&self) -> Vec<(&'static str, Vec<u8>)> {
        let source = self.source.as_bytes();
        let mut pairs = vec![
            ("ce_specversion", b"1.0".to_vec()),
            ("ce_id", self.id().into_bytes()),
            ("ce_source", encoded(source.get(..MAX_SOURCE_BYTES).unwrap_or(source))),
            ("ce_type", self.kind.label().as_bytes().to_vec()),
            ("ce_time", self.time.clone().into_bytes()),
            ("ce_subject", encoded(&self.subject)),
        ];
        if self.has_value {
            pairs.extend(self.kind.schema().map(|schema| ("ce_dataschema", schema.as_bytes().to_vec())));
            pairs.push(("content-type", b"application/json".to_vec()));
        }
        pairs.push(("kh_epoch", self.version.epoch.to_string().into_bytes()));
        pairs.push(("kh_nonce", self.nonce.to_string().into_bytes()));
        pairs.push(("kh_seq", self.version.seq.to_string().into_bytes()));
        pairs
    }

    /// Reads headers. Unknown ones are ignored; of the `CloudEvents` ones, what is missing reads as empty.
    ///
    /// # Errors
    /// [`InvalidHeaders`] when `kh_epoch`, `kh_nonce` or `kh_seq` is missing, double or has a wrong form.
    pub fn parse<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<Self, InvalidHeaders> {
        let (mut epoch, mut nonce, mut seq) = (None, None, None);
        let mut headers = Self {
            version: Version::default(),
            nonce: Nonce(0),
            kind: RecordKind::Other,
            source: String::new(),
            time: String::new(),
            subject: Vec::new(),
            has_value: false,
        };
        let once = |slot: &mut Option<&'a [u8]>, name, value| match slot.replace(value) {
            None => Ok(()),
            Some(_) => Err(InvalidHeaders::Twice(name)),
        };
        for (name, value) in pairs {
            match name {
                "kh_epoch" => once(&mut epoch, "kh_epoch", value)?,
                "kh_nonce" => once(&mut nonce, "kh_nonce", value)?,
                "kh_seq" => once(&mut seq, "kh_seq", value)?,
                "ce_type" => headers.kind = RecordKind::of(value),
                "ce_source" => headers.source = text(&decoded(value), MAX_SOURCE_BYTES),
                "ce_time" => headers.time = text(value, 64),
                "ce_subject" => headers.subject = decoded(value),
                "content-type" => headers.has_value = true,
                _ => {}
            }
        }
        headers.version.epoch = number("kh_epoch", epoch)?;
        headers.version.seq = number("kh_seq", seq)?;
        let nonce = nonce.ok_or(InvalidHeaders::Missing("kh_nonce"))?;
        let nonce = std::str::from_utf8(nonce).ok().and_then(|text| text.parse().ok());
        headers.nonce = nonce.ok_or(InvalidHeaders::Nonce)?;
        Ok(headers)
    }
}

fn number(name: &'static str, value: Option<&[u8]>) -> Result<u64, InvalidHeaders> {
    let digits = value.ok_or(InvalidHeaders::Missing(name))?;
    let canonical = digits.iter().all(u8::is_ascii_digit) && (digits.len() == 1 || digits.first() != Some(&b'0'));
    let number = std::str::from_utf8(digits).ok().filter(|_| canonical).and_then(|text| text.parse().ok());
    number.filter(|number| *number <= MAX_VERSION_NUMBER).ok_or(InvalidHeaders::Number(name))
}

/// Informative text: what is not UTF-8 is replaced, what is too long is cut.
fn text(bytes: &[u8], limit: usize) -> String {
    String::from_utf8_lossy(bytes.get(..limit).unwrap_or(bytes)).into_owned()
}

fn encoded(bytes: &[u8]) -> Vec<u8> {
    percent_encode(bytes, ENCODED).collect::<String>().into_bytes()
}

/// Undoes [`encoded`]; a `%` without two digits stands for itself.
fn decoded(bytes: &[u8]) -> Vec<u8> {
    percent_decode(bytes).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample(subject: &[u8]) -> RecordHeaders {
        RecordHeaders {
            version: Version { epoch: 3, seq: 17 },
            nonce: Nonce(0xab),
            kind: RecordKind::Plan,
            source: "/keyheat/prod".into(),
            time: "2026-11-30T10:11:32.120Z".into(),
            subject: subject.to_vec(),
            has_value: true,
        }
    }

    fn read(pairs: &[(&'static str, Vec<u8>)]) -> Result<RecordHeaders, InvalidHeaders> {
        RecordHeaders::parse(pairs.iter().map(|(name, value)| (*name, value.as_slice())))
    }

    #[test]
    fn a_tombstone_has_every_header_but_those_of_a_value() {
        let tombstone =
            RecordHeaders { kind: RecordKind::PlanRemoved, has_value: false, ..sample(b"plan/customer/c42") };
        let names: Vec<_> = tombstone.to_pairs().into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            [
                "ce_specversion",
                "ce_id",
                "ce_source",
                "ce_type",
                "ce_time",
                "ce_subject",
                "kh_epoch",
                "kh_nonce",
                "kh_seq"
            ]
        );
        assert_eq!(read(&tombstone.to_pairs()), Ok(tombstone));
    }

    #[test]
    fn the_id_is_the_same_for_the_same_version() {
        assert_eq!(sample(b"a").id(), "3-00000000000000ab-17");
    }

    #[test]
    fn headers_that_name_no_version_are_refused_with_the_reason() {
        let without =
            |gone: &str| -> Vec<_> { sample(b"x").to_pairs().into_iter().filter(|(name, _)| *name != gone).collect() };
        for name in ["kh_epoch", "kh_nonce", "kh_seq"] {
            assert_eq!(read(&without(name)), Err(InvalidHeaders::Missing(name)));
        }
        let with = |name: &'static str, value: &[u8]| {
            let mut pairs = without(name);
            pairs.push((name, value.to_vec()));
            read(&pairs)
        };
        for bad in [b"".as_slice(), b"+1", b"01", b"1 ", b"9007199254740992", b"\xff"] {
            assert_eq!(with("kh_seq", bad), Err(InvalidHeaders::Number("kh_seq")));
        }
        assert_eq!(with("kh_nonce", b"AB"), Err(InvalidHeaders::Nonce));
        let mut twice = sample(b"x").to_pairs();
        twice.push(("kh_seq", b"18".to_vec()));
        assert_eq!(read(&twice), Err(InvalidHeaders::Twice("kh_seq")));
    }

    #[test]
    fn a_type_of_a_later_version_is_other() {
        let mut pairs = sample(b"x").to_pairs();
        pairs.retain(|(name, _)| *name != "ce_type");
        pairs.push(("ce_type", b"keyheat.plan.v2".to_vec()));
        assert_eq!(read(&pairs).unwrap().kind, RecordKind::Other);
    }

    proptest! {
        #[test]
        fn any_subject_round_trips_as_visible_ascii(subject in prop::collection::vec(any::<u8>(), 0..60)) {
            let headers = sample(&subject);
            for (_, value) in headers.to_pairs() {
                prop_assert!(value.iter().all(|b| matches!(b, b'!'..=b'~')));
            }
            prop_assert_eq!(read(&headers.to_pairs()), Ok(headers));
        }

        #[test]
        fn garbage_never_panics(pairs in prop::collection::vec((prop::sample::select(vec!["kh_epoch", "kh_nonce", "kh_seq", "ce_subject", "ce_source", "ce_time", "x"]), prop::collection::vec(any::<u8>(), 0..20)), 0..8)) {
            let _read = read(&pairs);
        }
    }
}
