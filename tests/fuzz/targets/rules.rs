//! Patterns against their definition, rules of one tenant, rules that change. Input: what is asked, 4 bytes of settings, then a
//! pattern and a key or 4 bytes an operation.

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

use laws::plain;
use operations::{operations, roomy, small};

fuzz_target!(|input: &[u8]| {
    let [what, rest @ ..] = input else { return };
    let Some((shape, bytes)) = rest.split_first_chunk::<4>() else { return };
    match what % 4 {
        0 => {
            let (text, key) = rest.split_at(rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len()));
            if let Ok(text) = str::from_utf8(text) {
                laws::a_pattern_is_its_definition(text, key.get(1..).unwrap_or_default());
            }
        }
        1 => laws::a_pattern_s_keys_have_its_rules(&roomy(*shape), &plain(&operations(bytes))),
        2 => laws::the_same_rules_change_nothing(&small(*shape), &plain(&operations(bytes)), what / 4 % 4),
        _ => laws::rules_change_no_pane(&small(*shape), &operations(bytes)),
    }
});
