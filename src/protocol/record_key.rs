//! Keys of records on the plan topic and the acks topic.
//!
//! A key of an event may hold any bytes, `/` too; every other part has none, so each form reads in one way only.
//! Numbers are decimal without leading zeros, nonces 16 hexadecimal digits in lower case: one key has one spelling.

use super::version::Nonce;

/// The longest name of a keyspace, in bytes.
pub const MAX_KEYSPACE_NAME_BYTES: usize = 64;
/// The longest name of a router, in bytes.
pub const MAX_ROUTER_ID_BYTES: usize = 128;

/// Key of a record on the plan topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PlanTopicKey {
    /// `plan/<keyspace>/<key bytes>`
    Plan(PlanKey),
    /// `advice/<keyspace>/<key bytes>`
    Advice(PlanKey),
    /// `advice/shard/<keyspace>/<shard bytes>`; `shard` is therefore no name of a keyspace.
    ShardAdvice(PlanKey),
    /// `policy/<keyspace>/<key bytes>`
    Policy(PlanKey),
    /// `claim/<epoch>/<nonce>`
    Claim {
        /// The epoch that is claimed.
        epoch: u64,
        /// Whose claim it is.
        nonce: Nonce,
    },
    /// `heartbeat`
    Heartbeat,
}

/// A key of a keyspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlanKey {
    /// Name of the keyspace; has no `/`.
    pub keyspace: String,
    /// The key's bytes.
    pub key: Vec<u8>,
}

impl PlanKey {
    /// The key `key` of `keyspace`.
    #[must_use]
    pub fn new(keyspace: &str, key: &[u8]) -> Self {
        Self { keyspace: keyspace.to_owned(), key: key.to_vec() }
    }
}

/// Key of a record on the acks topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AckTopicKey {
    /// `router/<id>/<nonce>`: two routers with one id are two members.
    Router {
        /// The router's name; has no `/`.
        id: String,
        /// Made with its snapshot.
        nonce: Nonce,
    },
    /// `backfill/<keyspace>/<key bytes>/<layout>`
    Backfill {
        /// The key whose records are moved.
        key: PlanKey,
        /// Number of the layout that is entered.
        layout: u32,
    },
    /// `retired/<keyspace>/<key bytes>/<layout>`
    Retired {
        /// The key whose old place is empty.
        key: PlanKey,
        /// Number of the layout that was left.
        layout: u32,
    },
}

/// Bytes that are no key of a record. A reader ignores such a record: a later version of the protocol may know the form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRecordKey {
    /// The first part is none of the known words.
    #[error("unknown record key '{0}': this version does not know the form; the record is ignored")]
    UnknownForm(String),
    /// The form is known and a part is missing.
    #[error("record key '{0}' lacks a part, which should be {1}")]
    Incomplete(String, &'static str),
    /// Not a name of a keyspace.
    #[error("invalid keyspace in record key '{0}', which should be 1 to 64 of a-z, 0-9, _ and -, and not 'shard'")]
    Keyspace(String),
    /// Not a name of a router.
    #[error("invalid router id in record key '{0}', which should be 1 to 128 bytes of UTF-8 without '/'")]
    RouterId(String),
    /// Not a number in its one spelling.
    #[error("invalid number in record key '{0}', which should be decimal without leading zeros")]
    Number(String),
    /// Not a nonce.
    #[error("invalid nonce in record key '{0}', which should be 16 hexadecimal digits in lower case")]
    Nonce(String),
}

/// True for a name that a keyspace may have: 1 to 64 of `a-z`, `0-9`, `_`, `-`; `shard` is taken by `advice/shard/…`.
#[must_use]
pub fn is_keyspace_name(name: &str) -> bool {
    let plain = name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'));
    plain && (1..=MAX_KEYSPACE_NAME_BYTES).contains(&name.len()) && name != "shard"
}

/// True for a name that a router may have: 1 to 128 bytes of UTF-8 without `/`.
#[must_use]
pub fn is_router_id(id: &str) -> bool {
    (1..=MAX_ROUTER_ID_BYTES).contains(&id.len()) && !id.contains('/')
}

impl PlanTopicKey {
    /// The key's bytes on the topic.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Plan(key) => with_key("plan", key),
            Self::Advice(key) => with_key("advice", key),
            Self::ShardAdvice(key) => with_key("advice/shard", key),
            Self::Policy(key) => with_key("policy", key),
            Self::Claim { epoch, nonce } => format!("claim/{epoch}/{nonce}").into_bytes(),
            Self::Heartbeat => b"heartbeat".to_vec(),
        }
    }

    /// Reads a record's key.
    ///
    /// # Errors
    /// [`InvalidRecordKey`]; a reader ignores the record.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidRecordKey> {
        if bytes == b"heartbeat" {
            return Ok(Self::Heartbeat);
        }
        let (form, rest) = split_first(bytes).ok_or_else(|| InvalidRecordKey::UnknownForm(shown(bytes)))?;
        match form {
            b"plan" => plan_key(bytes, rest).map(Self::Plan),
            b"policy" => plan_key(bytes, rest).map(Self::Policy),
            b"advice" => match rest.strip_prefix(b"shard/") {
                Some(rest) => plan_key(bytes, rest).map(Self::ShardAdvice),
                None => plan_key(bytes, rest).map(Self::Advice),
            },
            b"claim" => {
                let (epoch, nonce) = split_first(rest)
                    .ok_or_else(|| InvalidRecordKey::Incomplete(shown(bytes), "claim/<epoch>/<nonce>"))?;
                Ok(Self::Claim { epoch: number(bytes, epoch)?, nonce: nonce_of(bytes, nonce)? })
            }
            _ => Err(InvalidRecordKey::UnknownForm(shown(bytes))),
        }
    }
}

impl AckTopicKey {
    /// The key's bytes on the topic.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Router { id, nonce } => format!("router/{id}/{nonce}").into_bytes(),
            Self::Backfill { key, layout } => with_layout("backfill", key, *layout),
            Self::Retired { key, layout } => with_layout("retired", key, *layout),
        }
    }

    /// Reads a record's key.
    ///
    /// # Errors
    /// [`InvalidRecordKey`]; a reader ignores the record.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidRecordKey> {
        let (form, rest) = split_first(bytes).ok_or_else(|| InvalidRecordKey::UnknownForm(shown(bytes)))?;
        match form {
            b"router" => {
                let (id, nonce) = split_first(rest)
                    .ok_or_else(|| InvalidRecordKey::Incomplete(shown(bytes), "router/<id>/<nonce>"))?;
                let id = std::str::from_utf8(id).ok().filter(|id| is_router_id(id));
                let id = id.ok_or_else(|| InvalidRecordKey::RouterId(shown(bytes)))?.to_owned();
                Ok(Self::Router { id, nonce: nonce_of(bytes, nonce)? })
            }
            b"backfill" => key_and_layout(bytes, rest).map(|(key, layout)| Self::Backfill { key, layout }),
            b"retired" => key_and_layout(bytes, rest).map(|(key, layout)| Self::Retired { key, layout }),
            _ => Err(InvalidRecordKey::UnknownForm(shown(bytes))),
        }
    }
}

fn with_key(form: &str, key: &PlanKey) -> Vec<u8> {
    [form.as_bytes(), b"/", key.keyspace.as_bytes(), b"/", &key.key].concat()
}

fn with_layout(form: &str, key: &PlanKey, layout: u32) -> Vec<u8> {
    let mut bytes = with_key(form, key);
    bytes.extend_from_slice(format!("/{layout}").as_bytes());
    bytes
}

/// What lies before and after the first `/`.
fn split_first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|b| *b == b'/')?;
    Some((bytes.get(..at)?, bytes.get(at + 1..)?))
}

/// What lies before and after the last `/`.
fn split_last(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().rposition(|b| *b == b'/')?;
    Some((bytes.get(..at)?, bytes.get(at + 1..)?))
}

fn plan_key(whole: &[u8], rest: &[u8]) -> Result<PlanKey, InvalidRecordKey> {
    let (keyspace, key) =
        split_first(rest).ok_or_else(|| InvalidRecordKey::Incomplete(shown(whole), "…/<keyspace>/<key bytes>"))?;
    let keyspace = std::str::from_utf8(keyspace).ok().filter(|name| is_keyspace_name(name));
    let keyspace = keyspace.ok_or_else(|| InvalidRecordKey::Keyspace(shown(whole)))?;
    Ok(PlanKey::new(keyspace, key))
}

fn key_and_layout(whole: &[u8], rest: &[u8]) -> Result<(PlanKey, u32), InvalidRecordKey> {
    let incomplete = || InvalidRecordKey::Incomplete(shown(whole), "…/<keyspace>/<key bytes>/<layout>");
    let (key, layout) = split_last(rest).ok_or_else(incomplete)?;
    // `a/1` has one `/` only: it separates either the key or the layout, so one of both is missing.
    let key = if key.contains(&b'/') { plan_key(whole, key)? } else { return Err(incomplete()) };
    let layout = u32::try_from(number(whole, layout)?).map_err(|_| InvalidRecordKey::Number(shown(whole)))?;
    Ok((key, layout))
}

fn number(whole: &[u8], digits: &[u8]) -> Result<u64, InvalidRecordKey> {
    let canonical = digits.iter().all(u8::is_ascii_digit) && (digits.len() == 1 || digits.first() != Some(&b'0'));
    let number = std::str::from_utf8(digits).ok().filter(|_| canonical).and_then(|text| text.parse().ok());
    number.ok_or_else(|| InvalidRecordKey::Number(shown(whole)))
}

fn nonce_of(whole: &[u8], text: &[u8]) -> Result<Nonce, InvalidRecordKey> {
    let nonce = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    nonce.ok_or_else(|| InvalidRecordKey::Nonce(shown(whole)))
}

/// The bytes escaped for a message, cut at 64 of them.
fn shown(bytes: &[u8]) -> String {
    bytes.iter().take(64).copied().flat_map(std::ascii::escape_default).map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_form_has_its_bytes() {
        let key = PlanKey::new("customer", b"c/4\xff");
        for (form, bytes) in [
            (PlanTopicKey::Plan(key.clone()), b"plan/customer/c/4\xff".as_slice()),
            (PlanTopicKey::Advice(key.clone()), b"advice/customer/c/4\xff"),
            (PlanTopicKey::ShardAdvice(key.clone()), b"advice/shard/customer/c/4\xff"),
            (PlanTopicKey::Policy(key.clone()), b"policy/customer/c/4\xff"),
            (PlanTopicKey::Claim { epoch: 7, nonce: Nonce(0xab) }, b"claim/7/00000000000000ab"),
            (PlanTopicKey::Heartbeat, b"heartbeat"),
        ] {
            assert_eq!(form.to_bytes(), bytes);
            assert_eq!(PlanTopicKey::parse(bytes), Ok(form));
        }
        for (form, bytes) in [
            (AckTopicKey::Router { id: "r 1".into(), nonce: Nonce(1) }, b"router/r 1/0000000000000001".as_slice()),
            (AckTopicKey::Backfill { key: key.clone(), layout: 3 }, b"backfill/customer/c/4\xff/3"),
            (AckTopicKey::Retired { key, layout: 0 }, b"retired/customer/c/4\xff/0"),
        ] {
            assert_eq!(form.to_bytes(), bytes);
            assert_eq!(AckTopicKey::parse(bytes), Ok(form));
        }
    }

    #[test]
    fn what_is_no_key_is_named() {
        use InvalidRecordKey as E;
        let plan = |bytes: &[u8]| PlanTopicKey::parse(bytes).unwrap_err();
        assert!(matches!(plan(b""), E::UnknownForm(_)));
        assert!(matches!(plan(b"heartbeat/1"), E::UnknownForm(_)));
        assert!(matches!(plan(b"lease/1"), E::UnknownForm(_)));
        assert!(matches!(plan(b"plan/customer"), E::Incomplete(..)));
        assert!(matches!(plan(b"plan//c42"), E::Keyspace(_)));
        assert!(matches!(plan(b"plan/Customer/c42"), E::Keyspace(_)));
        assert!(matches!(plan(b"plan/shard/c42"), E::Keyspace(_)));
        assert!(matches!(plan(b"advice/shard/c42"), E::Incomplete(..)));
        assert!(matches!(plan(b"claim/7"), E::Incomplete(..)));
        assert!(matches!(plan(b"claim/07/00000000000000ab"), E::Number(_)));
        assert!(matches!(plan(b"claim//00000000000000ab"), E::Number(_)));
        assert!(matches!(plan(b"claim/18446744073709551616/00000000000000ab"), E::Number(_)));
        assert!(matches!(plan(b"claim/7/AB"), E::Nonce(_)));
        let ack = |bytes: &[u8]| AckTopicKey::parse(bytes).unwrap_err();
        assert!(matches!(ack(b"router//0000000000000001"), E::RouterId(_)));
        assert!(matches!(ack(b"router/\xff/0000000000000001"), E::RouterId(_)));
        assert!(matches!(ack(b"backfill/customer/1"), E::Incomplete(..)));
        assert!(matches!(ack(b"backfill/customer/c42/4294967296"), E::Number(_)));
        assert!(matches!(ack(b"backfill/customer/c42/"), E::Number(_)));
        assert_eq!(
            plan(b"\xff\n").to_string(),
            r"unknown record key '\xff\n': this version does not know the form; the record is ignored"
        );
    }

    proptest! {
        #[test]
        fn any_key_bytes_round_trip(key in prop::collection::vec(any::<u8>(), 0..40), layout: u32, epoch: u64, nonce: u64) {
            let key = PlanKey::new("k-1_x", &key);
            for form in [
                PlanTopicKey::Plan(key.clone()), PlanTopicKey::Advice(key.clone()), PlanTopicKey::ShardAdvice(key.clone()),
                PlanTopicKey::Policy(key.clone()), PlanTopicKey::Claim { epoch, nonce: Nonce(nonce) },
            ] {
                prop_assert_eq!(PlanTopicKey::parse(&form.to_bytes()), Ok(form));
            }
            for form in [AckTopicKey::Backfill { key: key.clone(), layout }, AckTopicKey::Retired { key, layout }] {
                prop_assert_eq!(AckTopicKey::parse(&form.to_bytes()), Ok(form));
            }
        }

        #[test]
        fn a_key_that_reads_is_written_back_the_same(bytes in prop::collection::vec(prop::sample::select(b"planbckfiretdhsouv/019af\xff".to_vec()), 0..40)) {
            for prefix in [b"".as_slice(), b"plan/", b"advice/", b"advice/shard/", b"claim/", b"policy/"] {
                let bytes = [prefix, &bytes].concat();
                if let Ok(key) = PlanTopicKey::parse(&bytes) { prop_assert_eq!(key.to_bytes(), bytes); }
            }
            for prefix in [b"".as_slice(), b"router/", b"backfill/", b"retired/"] {
                let bytes = [prefix, &bytes].concat();
                if let Ok(key) = AckTopicKey::parse(&bytes) { prop_assert_eq!(key.to_bytes(), bytes); }
            }
        }
    }
}
