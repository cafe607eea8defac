//! One JSON object a record becomes one event.
//!
//! A text field is a JSON string after its escapes, or a number or truth value as written: an integer never passes through
//! a double, so two ids never merge. An object, an array and null are the same as an absent field. Of members with one
//! name the last counts. A byte-order mark in front and white space around the object are not part of it; anything else
//! around it, a second object too, makes the record "not JSON", and so do bytes that are not UTF-8.

use super::event::{AccessEvent, Keys, MAX_KEYSPACES, Operation};
use super::extract::{Extract, Members, Piece, Recipe};
use super::refusal::Refusal;
use super::scan::Node;
use super::settings::{InputSettings, OperationWords};
use super::time::parse_time;
use crate::units::EventTime;

/// A larger weight counts as this one: 2^32 events of it, the most that a window may hold, still fit in 64 bits.
pub const MAX_WEIGHT: u64 = u32::MAX as u64;
/// A longer text is no time.
const MAX_TIME_BYTES: usize = 512;

/// Turns records into events. Owns the buffer in which values with escapes and composed values are put together.
#[derive(Debug, Clone)]
pub struct Decoder {
    members: Members,
    keys: Vec<Recipe>,
    time: Recipe,
    shard: Option<Recipe>,
    request_id: Option<Recipe>,
    operation: Option<Recipe>,
    caller: Option<Recipe>,
    weight: Option<Recipe>,
    operation_words: Vec<(Vec<u8>, Operation)>,
    max_record_bytes: usize,
    max_key_bytes: usize,
    nodes: Vec<Node>,
    buffer: Vec<u8>,
    counts: DecodeCounts,
}

/// What was left out of accepted records, since [`Decoder::take_counts`] was last called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DecodeCounts {
    /// Events without a usable key in a keyspace, while another keyspace has one; in the order of the configuration.
    pub keys: [KeyCounts; MAX_KEYSPACES],
    /// Weights that are no whole number from 0 to 2^63 - 1; the event counts with weight 1.
    pub weights_ignored: u64,
    /// Weights above [`MAX_WEIGHT`]; the event counts with that.
    pub weights_cut: u64,
    /// Shards, request ids and callers longer than the limit for keys; the event counts without them.
    pub fields_too_long: u64,
}

impl DecodeCounts {
    fn less(mut self, other: &Self) -> Self {
        for (counts, own) in self.keys.iter_mut().zip(&other.keys) {
            counts.missing = counts.missing.saturating_sub(own.missing);
            counts.empty = counts.empty.saturating_sub(own.empty);
            counts.too_long = counts.too_long.saturating_sub(own.too_long);
        }
        self.weights_ignored = self.weights_ignored.saturating_sub(other.weights_ignored);
        self.weights_cut = self.weights_cut.saturating_sub(other.weights_cut);
        self.fields_too_long = self.fields_too_long.saturating_sub(other.fields_too_long);
        self
    }
}

/// Why events have no key in one keyspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyCounts {
    /// No field that the template names.
    pub missing: u64,
    /// The empty text.
    pub empty: u64,
    /// Longer than the limit.
    pub too_long: u64,
}

impl KeyCounts {
    fn add(&mut self, refusal: Refusal) {
        match refusal {
            Refusal::KeyEmpty => self.empty += 1,
            Refusal::KeyTooLong => self.too_long += 1,
            _ => self.missing += 1,
        }
    }
}

/// The key of an event in one keyspace, or why there is none.
type KeyPlace = Result<Piece, Refusal>;

impl Decoder {
    /// A decoder for records as `settings` describes them. Templates beyond [`MAX_KEYSPACES`] are not used.
    #[must_use]
    pub fn new(settings: &InputSettings) -> Self {
        let mut members = Members::default();
        let keys = settings.keys.iter().take(MAX_KEYSPACES).map(|key| Recipe::new(key, &mut members)).collect();
        let time = Recipe::new(&settings.time, &mut members);
        let mut optional = |template: &Option<_>| template.as_ref().map(|template| Recipe::new(template, &mut members));
        Self {
            keys,
            time,
            shard: optional(&settings.shard),
            request_id: optional(&settings.request_id),
            operation: optional(&settings.operation),
            caller: optional(&settings.caller),
            weight: optional(&settings.weight),
            operation_words: words_of(&settings.operation_words),
            max_record_bytes: settings.max_record_bytes,
            max_key_bytes: settings.max_key_bytes,
            members,
            nodes: Vec::new(),
            buffer: Vec::new(),
            counts: DecodeCounts::default(),
        }
    }

    /// The event of `record`. In a keyspace without a key the event's slot is empty, and counted in
    /// [`DecodeCounts::keys`].
    ///
    /// # Errors
    /// A [`Refusal`]: empty, too long, not JSON; no keyspace has a key (the reason is that of the first keyspace);
    /// time missing or invalid. A refused record changes no other count.
    pub fn decode<'a>(&'a mut self, record: &'a [u8]) -> Result<AccessEvent<'a>, Refusal> {
        if record.is_empty() {
            return Err(Refusal::Empty);
        }
        if record.len() > self.max_record_bytes {
            return Err(Refusal::TooLong);
        }
        let record = record.strip_prefix(b"\xef\xbb\xbf").unwrap_or(record);
        self.members.read(record, &mut self.nodes).map_err(|_| Refusal::NotJson)?;
        self.buffer.clear();
        let keys = self.read_keys(record)?;
        let time = self.read_time(record)?;
        let [shard, request_id, caller] = self.read_texts(record);
        let operation = self.read_operation(record);
        let weight = self.read_weight(record);
        for (counts, key) in self.counts.keys.iter_mut().zip(&keys).take(self.keys.len()) {
            if let Err(refusal) = key {
                counts.add(*refusal);
            }
        }
        let resolve = |piece: Piece| piece.resolve(record, &self.buffer);
        Ok(AccessEvent {
            time,
            operation,
            weight,
            shard: resolve(shard),
            request_id: resolve(request_id),
            caller: resolve(caller),
            keys: Keys(keys.map(|key| key.map_or(&[] as &[u8], resolve))),
        })
    }

    /// The counts since the last call, which begin anew.
    pub fn take_counts(&mut self) -> DecodeCounts {
        std::mem::take(&mut self.counts)
    }

    /// Takes back what decoding `record` has counted since [`Decoder::take_counts`]: it will be decoded again.
    pub fn undo(&mut self, record: &[u8]) {
        let counted = self.take_counts();
        let again = self.decode(record).is_ok();
        let own = self.take_counts();
        self.counts = if again { counted.less(&own) } else { counted };
    }

    /// The key in each keyspace; those beyond the configured ones are not looked at.
    fn read_keys(&mut self, record: &[u8]) -> Result<[KeyPlace; MAX_KEYSPACES], Refusal> {
        let mut keys = [Err(Refusal::KeyMissing); MAX_KEYSPACES];
        for (recipe, key) in self.keys.iter().zip(&mut keys) {
            *key = match recipe.extract(record, &self.nodes, &mut self.buffer, self.max_key_bytes) {
                Extract::Found(piece) if piece.is_empty() => Err(Refusal::KeyEmpty),
                Extract::Found(piece) => Ok(piece),
                Extract::Missing => Err(Refusal::KeyMissing),
                Extract::TooLong => Err(Refusal::KeyTooLong),
            };
        }
        match keys[0] {
            Err(refusal) if keys.iter().all(Result::is_err) => Err(refusal),
            _ => Ok(keys),
        }
    }

    fn read_time(&mut self, record: &[u8]) -> Result<EventTime, Refusal> {
        match self.time.extract(record, &self.nodes, &mut self.buffer, MAX_TIME_BYTES) {
            Extract::Found(piece) if piece.is_empty() => Err(Refusal::TimeMissing),
            Extract::Found(piece) => parse_time(piece.resolve(record, &self.buffer)).ok_or(Refusal::TimeInvalid),
            Extract::Missing => Err(Refusal::TimeMissing),
            Extract::TooLong => Err(Refusal::TimeInvalid),
        }
    }

    /// Shard, request id and caller: empty when missing, too long, or `-`, as access logs write "nothing".
    fn read_texts(&mut self, record: &[u8]) -> [Piece; 3] {
        let counts = &mut self.counts;
        [&self.shard, &self.request_id, &self.caller].map(|recipe| {
            let Some(recipe) = recipe else { return Piece::EMPTY };
            match recipe.extract(record, &self.nodes, &mut self.buffer, self.max_key_bytes) {
                Extract::Found(piece) if piece.resolve(record, &self.buffer) != b"-" => piece,
                Extract::TooLong => {
                    counts.fields_too_long += 1;
                    Piece::EMPTY
                }
                Extract::Found(_) | Extract::Missing => Piece::EMPTY,
            }
        })
    }

    fn read_operation(&mut self, record: &[u8]) -> Operation {
        let Some(recipe) = &self.operation else { return Operation::Unknown };
        match recipe.extract(record, &self.nodes, &mut self.buffer, self.max_key_bytes) {
            Extract::Found(piece) => {
                let word = piece.resolve(record, &self.buffer);
                let known = self.operation_words.iter().find(|(known, _)| known.eq_ignore_ascii_case(word));
                known.map_or(Operation::Unknown, |&(_, operation)| operation)
            }
            Extract::Missing | Extract::TooLong => Operation::Unknown,
        }
    }

    fn read_weight(&mut self, record: &[u8]) -> u64 {
        let Some(recipe) = &self.weight else { return 1 };
        let text = match recipe.extract(record, &self.nodes, &mut self.buffer, self.max_key_bytes) {
            Extract::Found(piece) => piece.resolve(record, &self.buffer),
            Extract::Missing => return 1,
            Extract::TooLong => b"too long",
        };
        match parse_weight(text) {
            Weight::Absent => 1,
            Weight::Exact(weight) => weight,
            Weight::Cut => {
                self.counts.weights_cut += 1;
                MAX_WEIGHT
            }
            Weight::Invalid => {
                self.counts.weights_ignored += 1;
                1
            }
        }
    }
}

enum Weight {
    Absent,
    Exact(u64),
    Cut,
    Invalid,
}

/// A whole number. Those from 2^63 on are what a negative difference looks like without its sign, so they are invalid.
fn parse_weight(text: &[u8]) -> Weight {
    if text.is_empty() || text == b"-" {
        return Weight::Absent;
    }
    if !text.iter().all(u8::is_ascii_digit) {
        return Weight::Invalid;
    }
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<u64>().ok());
    match number {
        Some(number) if number <= MAX_WEIGHT => Weight::Exact(number),
        Some(number) if number <= i64::MAX.unsigned_abs() => Weight::Cut,
        _ => Weight::Invalid,
    }
}

fn words_of(words: &OperationWords) -> Vec<(Vec<u8>, Operation)> {
    let lists = [
        (&words.read, Operation::Read),
        (&words.write, Operation::Write),
        (&words.scan, Operation::Scan),
        (&words.delete, Operation::Delete),
    ];
    let each = lists.into_iter().flat_map(|(list, operation)| list.iter().map(move |word| (word, operation)));
    each.map(|(word, operation)| (word.as_bytes().to_vec(), operation)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::settings::{DEFAULT_MAX_KEY_BYTES, DEFAULT_MAX_RECORD_BYTES};
    use super::*;

    fn settings(keys: &[&str]) -> InputSettings {
        InputSettings {
            keys: keys.iter().map(|key| key.parse().unwrap()).collect(),
            time: "/ts".parse().unwrap(),
            shard: Some("/shard".parse().unwrap()),
            request_id: Some("/id".parse().unwrap()),
            operation: Some("/op".parse().unwrap()),
            operation_words: OperationWords::default(),
            caller: Some("/caller".parse().unwrap()),
            weight: Some("/bytes".parse().unwrap()),
            max_record_bytes: DEFAULT_MAX_RECORD_BYTES,
            max_key_bytes: DEFAULT_MAX_KEY_BYTES,
        }
    }

    fn decoder(keys: &[&str]) -> Decoder {
        Decoder::new(&settings(keys))
    }

    fn key_of(record: &[u8]) -> Result<Vec<u8>, Refusal> {
        decoder(&["/key"]).decode(record).map(|event| event.keys.0[0].to_vec())
    }

    fn key_of_value(json: &str) -> Result<Vec<u8>, Refusal> {
        key_of(format!("{{\"ts\":1700000000123,\"key\":{json}}}").as_bytes())
    }

    #[test]
    fn every_field_is_read() {
        let record =
            br#"{"ts":1700000000123,"key":"c\u0034\n2","op":"PUT","shard":"s3","id":77,"caller":"a.b","bytes":512}"#;
        let mut decoder = decoder(&["{/key}", "{/shard}:{/key}/{/id}"]);
        let event = decoder.decode(record).unwrap();
        assert_eq!(event.time.as_millis(), 1_700_000_000_123);
        assert_eq!(event.keys.get(0), Some(&b"c4\n2"[..]));
        assert_eq!(event.keys.get(1), Some(&b"s3:c4\n2/77"[..]));
        assert_eq!(event.keys.get(2), None);
        assert_eq!((event.operation, event.weight), (Operation::Write, 512));
        assert_eq!((event.shard, event.request_id, event.caller), (&b"s3"[..], &b"77"[..], &b"a.b"[..]));
        assert_eq!(decoder.take_counts(), DecodeCounts::default());
    }

    #[test]
    fn nested_values_are_reached_by_names_and_indexes() {
        let record = br#"{"ts":1,"a":{"b/c":[10,{"d":"x","d":"y"}],"0":"zero","\u0065":true},"a b":1.50}"#;
        let find = |pointer: &str| decoder(&[pointer]).decode(record).map(|event| event.keys.0[0].to_vec());
        for (pointer, key) in
            [("/a/b~1c/0", "10"), ("/a/b~1c/1/d", "y"), ("/a/0", "zero"), ("/a/e", "true"), ("/a b", "1.50")]
        {
            assert_eq!(find(pointer).unwrap(), key.as_bytes(), "{pointer}");
        }
        for pointer in
            ["/a", "/a/b~1c", "/a/b~1c/00", "/a/b~1c/2", "/a/b~1c/-", "/a/b~1c/+0", "/a/0/0", "/b", "/a/b~1c/0/x"]
        {
            assert_eq!(find(pointer), Err(Refusal::KeyMissing), "{pointer}");
        }
    }

    #[test]
    fn a_record_is_refused_only_when_no_keyspace_has_a_key() {
        let mut decoder = decoder(&["/a", "/b", "/c"]);
        let event = decoder.decode(br#"{"ts":1,"b":"x","c":""}"#).unwrap();
        assert_eq!((event.keys.get(0), event.keys.get(1), event.keys.get(2)), (None, Some(&b"x"[..]), None));
        assert_eq!(decoder.decode(br#"{"ts":1,"a":"","b":null}"#).unwrap_err(), Refusal::KeyEmpty);
        assert_eq!(decoder.decode(br#"{"ts":1,"b":""}"#).unwrap_err(), Refusal::KeyMissing);
        assert_eq!(decoder.decode(br#"{"b":"x"}"#).unwrap_err(), Refusal::TimeMissing);
        let counts = decoder.take_counts();
        assert_eq!(counts.keys[0], KeyCounts { missing: 1, ..KeyCounts::default() });
        assert_eq!(counts.keys[1], KeyCounts::default());
        assert_eq!(counts.keys[2], KeyCounts { empty: 1, ..KeyCounts::default() });
        assert_eq!(decoder.take_counts(), DecodeCounts::default());
        // A record that is decoded again counts once.
        let records: [&[u8]; 2] = [br#"{"ts":1,"b":"x"}"#, br#"{"ts":1,"a":"x","b":"x","c":""}"#];
        records.iter().for_each(|record| assert!(decoder.decode(record).is_ok()));
        let twice = decoder.clone().take_counts();
        decoder.undo(records[1]);
        assert!(decoder.decode(records[1]).is_ok());
        assert_eq!(decoder.take_counts(), twice);
    }

    // Case A1: vectordotdev/vrl#226, globalmac/KnuckleLog#4.
    #[test]
    fn a1_scanner_noise_is_an_ordinary_key_and_an_empty_key_is_refused() {
        assert_eq!(key_of_value(r#""\\x16\\x03\\x01\\x00u""#).unwrap(), br"\x16\x03\x01\x00u");
        assert_eq!(key_of_value(r#""MGLNDD_192.0.2.1_443""#).unwrap(), b"MGLNDD_192.0.2.1_443");
        assert_eq!(key_of_value(r#""""#), Err(Refusal::KeyEmpty));
    }

    // Case A3: kassner/log-parser#47, amandasaurus/apache-log-parser#12, vectordotdev/vector#13325.
    #[test]
    fn a3_an_optional_field_without_a_value_is_unknown() {
        for value in ["\"-\"", "\"\"", "null", "{}", "[1]"] {
            let record = format!(
                "{{\"ts\":1,\"key\":\"k\",\"op\":{value},\"shard\":{value},\"caller\":{value},\"id\":{value},\"bytes\":{value}}}"
            );
            let mut decoder = decoder(&["/key"]);
            let event = decoder.decode(record.as_bytes()).unwrap();
            assert_eq!((event.operation, event.weight), (Operation::Unknown, 1), "{value}");
            assert!(event.shard.is_empty() && event.caller.is_empty() && event.request_id.is_empty(), "{value}");
            assert_eq!(decoder.take_counts(), DecodeCounts::default(), "{value}");
        }
        let mut decoder = decoder(&["/key"]);
        let event = decoder.decode(br#"{"ts":1,"key":"k"}"#).unwrap();
        assert!(event.shard.is_empty() && event.caller.is_empty() && event.request_id.is_empty());
        let event = decoder.decode(br#"{"ts":1,"key":"k","op":"a.b","shard":"a.b","caller":"a.b"}"#).unwrap();
        assert_eq!((event.operation, event.shard, event.caller), (Operation::Unknown, &b"a.b"[..], &b"a.b"[..]));
    }

    // Case A5: elastic/examples#135, elastic/logstash#7779, logstash-plugins/logstash-codec-json#2.
    #[test]
    fn a5_an_escape_that_json_does_not_know_is_refused() {
        assert_eq!(key_of(br#"{"key":"/a\x22b","ts":1700000000123}"#), Err(Refusal::NotJson));
        assert_eq!(key_of(br#"{"key":"/a","other":"\x22","ts":1700000000123}"#), Err(Refusal::NotJson));
    }

    // Case A6: matomo-org/matomo-log-analytics, tests/logs/common_encoding_big5.log.
    #[test]
    fn a6_keys_that_are_not_utf8_are_refused_and_never_merge() {
        for tail in [&b"\xa4\xa4"[..], b"\xa4\xe5", b"\xe9"] {
            let record = [b"{\"ts\":1700000000123,\"key\":\"/", tail, b"\"}"].concat();
            assert_eq!(key_of(&record), Err(Refusal::NotJson));
        }
        assert_eq!(key_of_value("\"/é\"").unwrap(), "/é".as_bytes());
    }

    // Case A11: allinurl/goaccess#303, haproxy/haproxy#2464, GSA/api.data.gov#344.
    #[test]
    fn a11_long_keys_and_cut_records_are_refused_by_one_rule() {
        for length in [1_000, 64_000, 900_000] {
            assert_eq!(key_of_value(&format!("\"{}\"", "x".repeat(length))), Err(Refusal::KeyTooLong));
            assert_eq!(key_of_value(&format!("\"\\n{}\"", "x".repeat(length))), Err(Refusal::KeyTooLong));
        }
        assert_eq!(key_of_value(&format!("\"{}\"", "x".repeat(512))).unwrap().len(), 512);
        assert_eq!(key_of_value(&format!("\"{}\"", "\\n".repeat(512))).unwrap().len(), 512);
        assert_eq!(key_of(&vec![b' '; DEFAULT_MAX_RECORD_BYTES + 1]), Err(Refusal::TooLong));
        let whole = br#"{"ts":1700000000123,"key":"/path/to/it"}"#;
        for end in 1..whole.len() {
            assert_eq!(key_of(&whole[..end]), Err(Refusal::NotJson), "{end}");
        }
        assert_eq!(key_of(b""), Err(Refusal::Empty));
        let mut decoder = decoder(&["/key"]);
        let record = format!("{{\"ts\":1,\"key\":\"k\",\"shard\":\"{}\"}}", "s".repeat(513));
        assert!(decoder.decode(record.as_bytes()).unwrap().shard.is_empty());
        assert_eq!(decoder.take_counts().fields_too_long, 1);
    }

    // Cases A14, A15, A16 (elastic/beats#12772, elastic/rally#79, open-telemetry/opentelemetry-rust#3328); the table of
    // forms is tested beside its parser.
    #[test]
    fn a16_the_time_may_be_a_number_or_a_text() {
        let time = |json: &str| {
            let record = format!("{{\"key\":\"k\",\"ts\":{json}}}");
            decoder(&["/key"]).decode(record.as_bytes()).map(|event| event.time.as_millis())
        };
        for json in [
            "1700000000123",
            "\"1700000000123\"",
            "1700000000123.0",
            "1.700000000123e12",
            "\"2023-11-14T22:13:20.123Z\"",
        ] {
            assert_eq!(time(json), Ok(1_700_000_000_123), "{json}");
        }
        for json in ["true", "\"NaN\"", "0", "-1", "\"2023-11-14T22:13:20\"", "\"-\"", "18446744073709551615000"] {
            assert_eq!(time(json), Err(Refusal::TimeInvalid), "{json}");
        }
        for json in ["\"\"", "null", "{}", "[1700000000123]"] {
            assert_eq!(time(json), Err(Refusal::TimeMissing), "{json}");
        }
        assert_eq!(time("NaN"), Err(Refusal::NotJson));
    }

    // Case A17: logos-messaging/logos-delivery#3205, and a catalogue of signed 64-bit ids.
    #[test]
    fn a17_ids_beyond_2_to_the_53_never_merge() {
        let digits =
            ["-9153905493322907410", "-9153905493322907411", "123456789012345678901234567890", "-0", "1.0", "1.00"];
        for digits in digits {
            assert_eq!(key_of_value(digits).unwrap(), digits.as_bytes());
            assert_eq!(key_of_value(&format!("\"{digits}\"")).unwrap(), digits.as_bytes());
        }
    }

    // Case A19: karlheyes/icecast-kh#146, prometheus/blackbox_exporter#38, newrelic/node-newrelic#166.
    #[test]
    fn a19_a_weight_that_cannot_be_true_poisons_no_sum() {
        let mut decoder = decoder(&["/key"]);
        let mut weight = |json: &str| {
            let record = format!("{{\"key\":\"k\",\"ts\":1,\"bytes\":{json}}}");
            let weight = decoder.decode(record.as_bytes()).unwrap().weight;
            let counts = decoder.take_counts();
            (weight, counts.weights_ignored, counts.weights_cut)
        };
        for (json, exact) in [("0", 0), ("512", 512), ("\"512\"", 512), ("4294967295", MAX_WEIGHT)] {
            assert_eq!(weight(json), (exact, 0, 0), "{json}");
        }
        for json in [
            "-1",
            "18446744073709551615",
            "18446744073709551616",
            "1e308",
            "1.5",
            "\"x\"",
            "true",
            "9223372036854775808",
        ] {
            assert_eq!(weight(json), (1, 1, 0), "{json}");
        }
        for json in ["4294967296", "9223372036854775807"] {
            assert_eq!(weight(json), (MAX_WEIGHT, 0, 1), "{json}");
        }
    }

    // Case A21: vectordotdev/vector#9556, apache/druid#10259, snowflakedb/snowflake-kafka-connector#719.
    #[test]
    fn a21_one_record_is_one_object() {
        assert_eq!(key_of(b"{\n  \"ts\": 1700000000123,\n  \"key\": \"k\"\n}\n").unwrap(), b"k");
        let one = "{\"ts\":1700000000123,\"key\":\"k\"}";
        assert_eq!(key_of(format!("{one}\n{one}\n{one}").as_bytes()), Err(Refusal::NotJson));
        assert_eq!(key_of(format!("[{one},{one},{one}]").as_bytes()), Err(Refusal::NotJson));
    }

    // Case A22: pipelinedb/pipeline_kafka#6.
    #[test]
    fn a22_framing_does_not_stick_to_the_key() {
        assert_eq!(key_of(b"{\"ts\":1700000000123,\"key\":\"/x\"}\r\n").unwrap(), b"/x");
        assert_eq!(key_of(b"\xef\xbb\xbf{\"ts\":1700000000123,\"key\":\"/x\"}").unwrap(), b"/x");
        assert_eq!(key_of_value("\"/x\\r\"").unwrap(), b"/x\r");
        for record in [&b"\xef\xbb\xbf"[..], b"\r\n", b"\xef\xbb\xbf\xef\xbb\xbf{}"] {
            assert_eq!(key_of(record), Err(Refusal::NotJson));
        }
    }
}
