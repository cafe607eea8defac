//! What it costs to read one event of 229 bytes and 11 fields: the decoder beside `serde_json` in the same run.
//!
//! `cargo bench --no-default-features --bench decode`; a record costs the reciprocal of the items a second.

use std::borrow::Cow;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use keyheat::input::{
    DEFAULT_MAX_KEY_BYTES, DEFAULT_MAX_RECORD_BYTES, Decoder, InputSettings, OperationWords, Template,
};
use serde::Deserialize;

fn main() {
    divan::main();
}

/// Records an iteration: about as many as a poll of a batch brings.
const RECORDS: usize = 2048;

fn records() -> Vec<Vec<u8>> {
    let record = |index: usize| {
        let mixed = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!(
            "{{\"ts\":{},\"client\":\"c{}\",\"request_id\":\"{mixed:016x}\",\"op\":\"{}\",\"shard\":\"s{}\",\
             \"method\":\"GET\",\"path\":\"/v1/accounts/{}/entries\",\"status\":{},\"bytes\":{},\
             \"duration_ms\":{}.{},\"agent\":\"client-library/2.{}\"}}",
            1_796_033_492_000_u64 + index as u64,
            mixed >> 44,
            if mixed.is_multiple_of(3) { "write" } else { "read" },
            mixed >> 61,
            mixed >> 40,
            200 + mixed % 5,
            mixed >> 50,
            mixed >> 57,
            mixed % 1000,
            mixed % 20,
        )
        .into_bytes()
    };
    (0..RECORDS).map(record).collect()
}

fn settings() -> InputSettings {
    let template = |text: &str| text.parse::<Template>().expect("a template");
    InputSettings {
        keys: vec![template("/client")],
        time: template("/ts"),
        shard: Some(template("/shard")),
        request_id: Some(template("/request_id")),
        operation: Some(template("/op")),
        operation_words: OperationWords::default(),
        caller: None,
        weight: None,
        max_record_bytes: DEFAULT_MAX_RECORD_BYTES,
        max_key_bytes: DEFAULT_MAX_KEY_BYTES,
    }
}

/// Runs `decode` on all records; items are records.
fn each_record(bencher: Bencher<'_, '_>, mut decode: impl FnMut(&[u8]) -> u64) {
    let records = records();
    let bytes = records.iter().map(Vec::len).sum::<usize>();
    bencher
        .counter(ItemsCount::new(RECORDS))
        .counter(BytesCount::new(bytes))
        .bench_local(|| records.iter().map(|record| decode(black_box(record))).fold(0_u64, u64::wrapping_add));
}

#[divan::bench]
fn decoder(bencher: Bencher<'_, '_>) {
    let mut decoder = Decoder::new(&settings());
    each_record(bencher, |record| {
        let event = black_box(decoder.decode(record)).expect("an event");
        event.time.as_millis().unsigned_abs() + event.keys.0[0].len() as u64
    });
}

#[divan::bench]
fn decoder_with_a_composed_key(bencher: Bencher<'_, '_>) {
    let mut decoder =
        Decoder::new(&InputSettings { keys: vec!["{/shard}:{/client}".parse().expect("a template")], ..settings() });
    each_record(bencher, |record| {
        let event = black_box(decoder.decode(record)).expect("an event");
        event.time.as_millis().unsigned_abs() + event.keys.0[0].len() as u64
    });
}

#[derive(Deserialize)]
struct Event<'a> {
    ts: u64,
    #[serde(borrow)]
    client: Cow<'a, str>,
    #[serde(borrow)]
    shard: Cow<'a, str>,
    #[serde(borrow)]
    request_id: Cow<'a, str>,
    #[serde(borrow)]
    op: Cow<'a, str>,
}

#[divan::bench]
fn serde_json_struct(bencher: Bencher<'_, '_>) {
    each_record(bencher, |record| {
        let event: Event<'_> = black_box(serde_json::from_slice(record)).expect("an event");
        event.ts + (event.client.len() + event.shard.len() + event.request_id.len() + event.op.len()) as u64
    });
}

#[divan::bench]
fn serde_json_value(bencher: Bencher<'_, '_>) {
    each_record(bencher, |record| {
        let event: serde_json::Value = black_box(serde_json::from_slice(record)).expect("an event");
        event["ts"].as_u64().unwrap_or(0) + event["client"].as_str().unwrap_or("").len() as u64
    });
}
