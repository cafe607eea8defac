//! The byte form of a window: the same for ever, compact, and nothing but a window is read as one.
//!
//! `fixtures/window/v1` has windows of version 1 in hexadecimal digits. `KEYHEAT_BLESS=1` writes those that are missing and never
//! changes one.

use std::collections::BTreeSet;
use std::path::PathBuf;

use keyheat::engine::{CountingSettings, Engine, EngineSettings, ReadError, Window};
use keyheat::input::AccessEvent;
use keyheat::units::{Estimate, Partition};
use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use crate::oracle::{absolute, at, settings, window};
use crate::random::{Step, feed, steps, tiny};

const HEADER_BYTES: usize = 10;

fn read(bytes: &[u8], settings: &EngineSettings) -> Result<Window, ReadError> {
    Window::from_bytes(bytes, &settings.keyspaces[0], &settings.time)
}

/// The bytes with the checksum that belongs to them.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - 8;
    let checksum = xxh3_64(&bytes[..end]).to_le_bytes();
    bytes[end..].copy_from_slice(&checksum);
    bytes
}

/// Rows of 16 cells and four listed names, so that lists, tables and both in one window are short.
fn small(windows: usize) -> EngineSettings {
    let mut settings = settings(&[window(3_000, 1_000), window(6_000, 3_000)][..windows], &[absolute(2.0)]);
    settings.keyspaces[0].counting = CountingSettings {
        depth: 2,
        width_log2: 4,
        seed: 7,
        max_candidates: 8,
        sample_k: 2,
        ..CountingSettings::default()
    };
    settings
}

/// Panes with lists and with tables, a candidate with a past, late events, shards.
fn stream(settings: &EngineSettings) -> Window {
    let mut engine = Engine::new(settings.clone());
    for n in 0..160i64 {
        let key = if n % 2 == 0 { "busy".to_owned() } else { format!("k{}", n % if n < 90 { 23 } else { 4 }) };
        let ms = n * 50 - if n % 11 == 0 { 1_500.min(n * 50) } else { 0 };
        let shard = format!("shard-{}", n % 3);
        let event = AccessEvent { shard: shard.as_bytes(), ..AccessEvent::new(at(ms), key.as_bytes()) };
        engine.handle_event(Partition(0), &event, at(n * 50)).unwrap();
    }
    engine.window(0).unwrap()
}

fn golden() -> [(&'static str, EngineSettings, Window); 3] {
    let (one, two) = (small(1), small(2));
    let empty = Window::new(&two.keyspaces[0], &two.time);
    let (first, second) = (stream(&one), stream(&two));
    [("empty", two.clone(), empty), ("one-window", one, first), ("two-windows", two, second)]
}

fn hex(bytes: &[u8]) -> String {
    let lines = bytes.chunks(48).map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    lines.map(|line| line + "\n").collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn windows_of_version_1_stay_readable_and_are_written_the_same() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/window/v1");
    for (name, settings, window) in golden() {
        let file = folder.join(format!("{name}.hex"));
        if !file.exists() && std::env::var_os("KEYHEAT_BLESS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&file, hex(&window.to_bytes())).unwrap();
        }
        let kept = unhex(&std::fs::read_to_string(&file).unwrap());
        assert_eq!(hex(&kept), hex(&window.to_bytes()), "{name}");
        let again = read(&kept, &settings).unwrap();
        assert_eq!((again.digest(), again.to_bytes()), (window.digest(), kept), "{name}");
    }
    // What the bytes say is said here once more, so that reading and writing cannot go wrong together.
    let kept = unhex(&std::fs::read_to_string(folder.join("two-windows.hex")).unwrap());
    let window = read(&kept, &small(2)).unwrap();
    assert_eq!((window.events(0), window.events(1)), (58, 97));
    let late = window.estimate(1, b"k3");
    assert_eq!(window.estimate(0, b"busy"), Estimate::exact(29));
    assert!(late.lower <= 18 && late.upper >= 18 && late.upper < 97, "{late}");
    assert_eq!(window.top_keys(0, 1).first().map(|(key, _)| key.to_vec()), Some(b"busy".to_vec()));
}

#[test]
fn a_window_that_was_cut_or_changed_by_one_bit_is_refused() {
    for (name, settings, window) in golden() {
        let bytes = window.to_bytes();
        for cut in 0..bytes.len() {
            let error = read(&bytes[..cut], &settings).unwrap_err();
            assert!(
                matches!(error, ReadError::Truncated(_) | ReadError::Checksum { .. }),
                "{name} cut at {cut}: {error}"
            );
        }
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let error = read(&changed, &settings).unwrap_err();
            let named = match bit / 8 {
                0..8 => matches!(error, ReadError::NotAWindow(_)),
                8..HEADER_BYTES => matches!(error, ReadError::Version(_)),
                _ => matches!(error, ReadError::Checksum { .. }),
            };
            assert!(named, "{name} bit {bit}: {error}");
        }
        let mut longer = bytes[..bytes.len() - 8].to_vec();
        longer.extend_from_slice(&[0; 9]);
        let error = read(&sealed(longer), &settings).unwrap_err();
        assert!(error.to_string().contains("bytes after its end"), "{error}");
    }
}

#[test]
fn h19_another_version_is_refused_by_its_number() {
    let settings = small(1);
    let mut bytes = stream(&settings).to_bytes();
    bytes[8] = 2;
    let error = read(&sealed(bytes), &settings).unwrap_err();
    assert_eq!(error, ReadError::Version(2));
    assert_eq!(
        error.to_string(),
        "a window of version 2, which should be 1; let instances of one version exchange windows"
    );
    assert!(matches!(read(b"not a window at all", &settings), Err(ReadError::NotAWindow(_))));
}

/// Numbers that promise more than there is take no memory and no time.
#[test]
fn a_number_that_promises_too_much_is_refused() {
    let settings = small(2);
    let bytes = stream(&settings).to_bytes();
    let body = HEADER_BYTES + 2 + 2 * 16 + 2 + 4 + 8;
    let mut refused = 0;
    for place in body..bytes.len() - 8 {
        let mut changed = bytes[..place].to_vec();
        changed.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
        changed.extend_from_slice(&bytes[place + 1..]);
        refused += usize::from(read(&sealed(changed), &settings).is_err());
    }
    // Only what was left out earlier (three numbers) and a bar (two) may be any number.
    assert!(refused >= bytes.len() - 8 - body - 5, "{refused} of {}", bytes.len() - 8 - body);
}

/// Behind a right checksum every number is held against the others.
#[test]
fn numbers_that_contradict_each_other_are_refused() {
    let settings = small(2);
    let bytes = stream(&settings).to_bytes();
    let mut seen = BTreeSet::new();
    for place in HEADER_BYTES..bytes.len() - 8 {
        for by in [1, 0xff] {
            let mut changed = bytes.clone();
            changed[place] = changed[place].wrapping_add(by);
            match read(&sealed(changed), &settings) {
                Err(ReadError::Impossible { what, .. }) => {
                    seen.insert(what);
                }
                Err(ReadError::Differs(mismatch)) => {
                    seen.insert(mismatch.what);
                }
                _ => {}
            }
        }
    }
    for what in [
        "counts that do not add up to the pane's events",
        "a row that does not add up to its pane's events",
        "a name with more events than its cells",
        "a key whose counters and cells disagree",
        "a key with more events than its pane",
        "a shard with more events than its pane",
        "names out of order",
        "zeros that are not one run",
        "the sketch's depth",
        "the seed's fingerprint",
    ] {
        assert!(seen.contains(what), "{what} was not among {seen:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Bytes with a right checksum and wrong contents: a named error, or a window that is written as it was read and whose answers
    /// do not break.
    #[test]
    fn wrong_contents_never_break_anything(settings in tiny(), steps in steps(120), seed in any::<u64>()) {
        let steps: Vec<Step> = steps;
        let mut pair = crate::oracle::Pair::new(settings.clone());
        feed(&mut pair, &steps, |_| Ok(()))?;
        let window = pair.engine.window(0).unwrap();
        let bytes = window.to_bytes();
        let mut state = seed | 1;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below
        };
        for _ in 0..120 {
            let mut changed = bytes.clone();
            for _ in 0..1 + random(3) {
                let place = HEADER_BYTES + random(changed.len() - HEADER_BYTES - 8);
                match random(4) {
                    0 => changed[place] ^= 1 << random(8),
                    1 => changed[place] = [0, 1, 0x7f, 0x80, 0xff][random(5)],
                    2 => { changed.remove(place); }
                    _ => changed.insert(place, u8::try_from(random(256)).unwrap()),
                }
                if changed.len() < HEADER_BYTES + 16 {
                    break;
                }
            }
            let changed = sealed(changed);
            let Ok(mut read) = read(&changed, &settings) else { continue };
            prop_assert_eq!(read.to_bytes(), changed);
            for number in 0..read.windows() {
                let bounds = read.estimate(number, b"k0");
                prop_assert!(bounds.lower <= bounds.upper && read.keys(number).lower <= read.keys(number).upper);
            }
            let mut engine = Engine::new(settings.clone());
            engine.restore(0, &read).unwrap();
            let event = AccessEvent::new(at(1_000_000), b"k0");
            engine.handle_event(Partition(0), &event, at(1_000_000)).ok();
            read.merge(&window).ok();
        }
    }
}

/// The table of a busy pane takes about a byte a cell, an idle pane one byte.
#[test]
fn bytes_are_few() {
    let settings = settings(&[window(10_000, 1_000)], &[absolute(1_000.0)]);
    let mut engine = Engine::new(settings.clone());
    let empty = Window::new(&settings.keyspaces[0], &settings.time).to_bytes().len();
    assert!(empty < 64, "{empty}");
    for n in 0..30_000i64 {
        let key = n.to_le_bytes();
        let event = AccessEvent::new(at(n / 30), &key);
        engine.handle_event(Partition(0), &event, at(n / 30)).unwrap();
    }
    let bytes = engine.window(0).unwrap().to_bytes().len();
    // One pane: at most 8,192 names of at most 9 bytes, 262,144 cells of which one in nine is not 0.
    assert!((100_000..300_000).contains(&bytes), "{bytes}");
    let event = AccessEvent::new(at(9_000), b"one");
    engine.handle_event(Partition(0), &event, at(9_000)).unwrap();
    let later = engine.window(0).unwrap().to_bytes().len();
    assert!(later < bytes + 64, "{later} after {bytes}");
}
