//! The decoder against a slow one that stands on `serde_json` alone, on generated and mutated records.

use proptest::prelude::*;

use super::Decoder;
use super::reference::{decoded, reference, settings};

/// Names of the templates, names that differ from them by little, and one with an escape.
fn name() -> impl Strategy<Value = String> {
    let known = ["key", "ts", "a", "b", "l", "0", "", "ke", "keyy", "é", "k\\u0065y", "\\u0061", "a\\nb"];
    prop_oneof![
        8 => proptest::sample::select(known.to_vec()).prop_map(|name| format!("\"{name}\"")),
        1 => ".{0,70}".prop_map(|text| serde_json::to_string(&text).unwrap_or_default()),
    ]
}

fn scalar_json() -> impl Strategy<Value = String> {
    let fixed = [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1.50",
        "1e2",
        "1e400",
        "-9153905493322907410",
        "1700000000123",
        "\"\"",
        "\"-\"",
        "\"GET\"",
        "\"put\"",
        "\"2023-11-14T22:13:20.123Z\"",
        "\"\\ud83d\\ude00\"",
        "\"\\ud83d\"",
        "\"a\\\"b\"",
        "\"0123456789012345678901234\"",
        "\"\\u0041123456789012345678901234\"",
        "123456789012345678901234567890",
    ];
    prop_oneof![
        4 => proptest::sample::select(fixed.to_vec()).prop_map(str::to_owned),
        1 => ".{0,40}".prop_map(|text| serde_json::to_string(&text).unwrap_or_default()),
        1 => any::<f64>().prop_map(|number| format!("{number:e}")),
        1 => any::<i64>().prop_map(|number| number.to_string()),
    ]
}

fn space() -> impl Strategy<Value = String> {
    prop_oneof![6 => Just(String::new()), 1 => "[ \\t\\r\\n]{1,3}"]
}

fn json() -> impl Strategy<Value = String> {
    scalar_json().prop_recursive(4, 24, 4, |inner| {
        let member =
            (name(), space(), inner.clone()).prop_map(|(name, space, value)| format!("{name}{space}:{space}{value}"));
        prop_oneof![
            proptest::collection::vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(","))),
            proptest::collection::vec(inner, 0..4).prop_map(|elements| format!("[{}]", elements.join(" ,"))),
        ]
    })
}

fn record() -> impl Strategy<Value = String> {
    let member =
        (name(), space(), json()).prop_map(|(name, space, value)| format!("{space}{name}:{space}{value}{space}"));
    let tail = prop_oneof![6 => Just(""), 1 => Just("\r\n"), 1 => Just("{}"), 1 => Just(",")];
    let head = prop_oneof![6 => Just(""), 1 => Just("\u{feff}"), 1 => Just(" ")];
    let usual = prop_oneof![3 => Just("\"ts\":1700000000123,\"key\":\"k\""), 1 => Just("\"a\":1")];
    (head, usual, proptest::collection::vec(member, 0..7), tail).prop_map(|(head, usual, mut members, tail)| {
        let place = members.len() / 2;
        members.insert(place, usual.to_owned());
        format!("{head}{{{}}}{tail}", members.join(","))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_decoder_agrees_with_serde_json(records in proptest::collection::vec(record(), 1..4)) {
        let settings = settings();
        let mut decoder = Decoder::new(&settings);
        for record in records {
            let record = record.as_bytes();
            prop_assert_eq!(decoded(&mut decoder, record), reference(record, &settings), "{}", record.escape_ascii());
        }
    }

    #[test]
    fn it_agrees_on_records_with_a_changed_byte(
        record in record(),
        place in any::<prop::sample::Index>(),
        byte in prop_oneof![any::<u8>(), proptest::sample::select(b"{}[]\":,\\u0-.eE \x00\x1f\x7f\x80\xff".to_vec())],
        kind in 0..3_u8,
    ) {
        let mut bytes = record.into_bytes();
        let place = place.index(bytes.len());
        match kind {
            0 => bytes[place] = byte,
            1 => bytes.insert(place, byte),
            _ => { bytes.remove(place); }
        }
        let settings = settings();
        prop_assert_eq!(decoded(&mut Decoder::new(&settings), &bytes), reference(&bytes, &settings), "{}", bytes.escape_ascii());
    }

    #[test]
    fn any_bytes_are_refused_or_decoded(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let settings = settings();
        prop_assert_eq!(decoded(&mut Decoder::new(&settings), &bytes), reference(&bytes, &settings));
    }
}
