//! Records: the decoder says what a slow one on `serde_json` says. Input: one record a line.

#![no_main]

use keyheat::input::{Decoder, InputSettings, Operation, OperationWords, Part, Refusal, Template, parse_time};
use libfuzzer_sys::fuzz_target;

#[path = "../../../src/input/reference.rs"]
mod reference;

fuzz_target!(|input: &[u8]| {
    let settings = reference::settings();
    let mut decoder = Decoder::new(&settings);
    for record in input.split(|byte| *byte == b'\n') {
        let (got, wanted) = (reference::decoded(&mut decoder, record), reference::reference(record, &settings));
        assert_eq!(got, wanted, "{}", record.escape_ascii());
    }
});
