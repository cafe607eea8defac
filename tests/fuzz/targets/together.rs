//! Events that are handed over together, beside the same one by one. Input: whether there is room, 4 bytes of settings, 4 bytes an
//! operation.

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

use operations::{operations, roomy, small};

fuzz_target!(|input: &[u8]| {
    let [room, rest @ ..] = input else { return };
    let Some((shape, bytes)) = rest.split_first_chunk() else { return };
    let has_room = room % 2 == 0;
    let settings = if has_room { roomy(*shape) } else { small(*shape) };
    laws::together_is_as_one_by_one(settings, &laws::plain(&operations(bytes)), has_room);
});
