//! Bounds, recall, shards and limits after every operation. Input: 4 bytes of settings, 4 bytes an operation.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../engine/laws.rs"]
#[allow(dead_code, reason = "other targets have the rest")]
mod laws;
#[path = "../../engine/operations.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod operations;
#[path = "../../engine/oracle.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod oracle;

fuzz_target!(|input: &[u8]| {
    let Some((shape, bytes)) = input.split_first_chunk() else { return };
    laws::all_holds(operations::small(*shape), &operations::operations(bytes));
});
