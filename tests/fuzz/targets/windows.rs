//! Bytes of windows, and windows that are split, merged and gone on from. Input: what is asked, 4 bytes of settings, then any
//! bytes, a body behind a true beginning, changes of true bytes, or where to cut, how to split and 4 bytes an operation.

#![no_main]

use keyheat::engine::{Engine, EngineSettings, Window};
use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh3::xxh3_64;

#[path = "../../engine/laws.rs"]
#[allow(dead_code, reason = "other targets have the rest")]
mod laws;
#[path = "../../engine/operations.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod operations;
#[path = "../../engine/oracle.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod oracle;

use operations::{World, operations, small};
use oracle::at;

/// At the end of a window's bytes.
const CHECKSUM_BYTES: usize = 8;
/// Bytes of an empty window after its identity, without the checksum: that nothing was counted, and three counts of what was left
/// out.
const EMPTY_BYTES: usize = 4;

fuzz_target!(|input: &[u8]| {
    let [what, rest @ ..] = input else { return };
    let Some((shape, bytes)) = rest.split_first_chunk::<4>() else { return };
    let settings = small(*shape);
    match what % 4 {
        0 => bytes_are_refused_or_a_window(&settings, rest),
        1 => {
            let empty = Window::new(&settings.keyspaces[0], &settings.time).to_bytes();
            let identity = &empty[..empty.len() - CHECKSUM_BYTES - EMPTY_BYTES];
            bytes_are_refused_or_a_window(&settings, &with_checksum([identity, bytes].concat()));
        }
        2 => {
            let (changes, bytes) = bytes.split_at((usize::from(what / 4 % 4) * 3).min(bytes.len()));
            let world = World::run(settings.clone(), &operations(bytes));
            let mut written = world.engine.window(0).map(|window| window.to_bytes()).unwrap_or_default();
            written.truncate(written.len().saturating_sub(CHECKSUM_BYTES));
            for change in changes.chunks_exact(3) {
                let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % written.len();
                written[place] = change[2];
            }
            bytes_are_refused_or_a_window(&settings, &with_checksum(written));
        }
        _ => {
            let [cut, split, bytes @ ..] = bytes else { return };
            laws::split_and_merged_is_whole(settings, &operations(bytes), usize::from(*cut), u64::from(*split));
        }
    }
});

/// Bytes are refused, or are a window that is written as the same bytes and can be merged and gone on from.
fn bytes_are_refused_or_a_window(settings: &EngineSettings, bytes: &[u8]) {
    let Ok(window) = Window::from_bytes(bytes, &settings.keyspaces[0], &settings.time) else { return };
    assert_eq!(window.to_bytes(), bytes);
    let mut engine = Engine::new(settings.clone());
    engine.restore(0, &window).unwrap();
    assert_eq!(engine.digest(0), Some(window.digest()));
    for number in 0..window.windows() {
        for (key, bounds) in window.top_keys(number, 8) {
            assert!(bounds.lower <= bounds.upper, "{} in {bounds}", key.escape_ascii());
        }
    }
    while engine.poll_verdict().is_some() {}
    let newest = engine.newest().unwrap_or(at(0));
    engine.handle_tick(newest);
    let mut double = window.clone();
    // Too many events are an error, nothing worse.
    if double.merge(&window).is_ok() {
        assert_eq!(double.events(0), 2 * window.events(0));
    }
}

fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = xxh3_64(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}
