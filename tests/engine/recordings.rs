//! Recordings of real systems, where they are at hand: `KEYHEAT_DATA`, or `../shared/data` beside the package.

#![allow(clippy::print_stderr, reason = "what is skipped is said")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use keyheat::engine::{Change, Engine, EngineSettings, Subject};
use keyheat::input::AccessEvent;
use keyheat::units::{EventTime, Partition, Span};
use serde::Deserialize;

use crate::oracle::{relative, settings, share, window};

#[derive(Deserialize)]
struct Line {
    ts: i64,
    key: String,
}

/// The events of a recording in its order; none, with a notice, where the recordings are not at hand.
fn recording(name: &str) -> Option<Vec<(EventTime, String)>> {
    let folder = std::env::var_os("KEYHEAT_DATA").map(PathBuf::from);
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let path = folder.unwrap_or_else(beside).join(format!("{name}.ndjson.zst"));
    let Ok(bytes) = std::fs::read(&path) else {
        eprintln!("notice: skipped, no recording {name}: set KEYHEAT_DATA to the folder of the recordings");
        return None;
    };
    let text = String::from_utf8(zstd::decode_all(bytes.as_slice()).unwrap()).unwrap();
    let line = |line: &str| {
        let Line { ts, key } = serde_json::from_str(line).unwrap();
        (EventTime::from_millis(ts).unwrap(), key)
    };
    Some(text.lines().map(line).collect())
}

/// What a replay found.
struct Found {
    hot: BTreeSet<Vec<u8>>,
    changes: Vec<(Vec<u8>, Change)>,
    counted: u64,
    future: u64,
    too_late: u64,
}

/// Replays a recording; the clock is the median of the next 4,096 times and the disorder, as in `keyheat replay`: towards the end the
/// look-ahead grows short, and an event within the disorder is not ahead of the clock.
fn replay(events: &[(EventTime, String)], settings: EngineSettings) -> Found {
    const AHEAD: usize = 4_096;
    let disorder = settings.time.disorder;
    let mut engine = Engine::new(settings);
    let mut ahead: Vec<EventTime> = events.iter().take(AHEAD).map(|event| event.0).collect();
    ahead.sort_unstable();
    let mut found = Found { hot: BTreeSet::new(), changes: Vec::new(), counted: 0, future: 0, too_late: 0 };
    for (at, (time, key)) in events.iter().enumerate() {
        let now = ahead[ahead.len() / 2].saturating_add(disorder);
        match engine.handle_event(Partition(0), &AccessEvent::new(*time, key.as_bytes()), now) {
            Ok(()) => found.counted += 1,
            Err(keyheat::input::Refusal::Future) => found.future += 1,
            Err(_) => found.too_late += 1,
        }
        ahead.remove(ahead.binary_search(time).unwrap());
        if let Some((next, _)) = events.get(at + AHEAD) {
            ahead.insert(ahead.binary_search(next).unwrap_or_else(|place| place), *next);
        }
        while let Some(verdict) = engine.poll_verdict() {
            let Subject::Key(key) = verdict.subject else { continue };
            if verdict.change == Change::Hot {
                found.hot.insert(key.to_vec());
            }
            found.changes.push((key.to_vec(), verdict.change));
        }
    }
    found
}

/// Ten times the median and at least 20 in a minute.
fn by_the_minute(disorder_s: u64) -> EngineSettings {
    let mut settings = settings(&[window(60_000, 5_000)], &[relative(10.0, 20)]);
    settings.time.disorder = Span::from_secs(disorder_s);
    // The golden numbers know no least number of keys.
    settings.keyspaces.iter_mut().for_each(|keyspace| keyspace.min_keys = 1);
    settings
}

/// H1 (RevenueCat/meta-memcache-py#40): at low traffic the median is 1 and a ratio alone flags 27 and 92 keys.
#[test]
fn h1_a_floor_keeps_quiet_sites_quiet() {
    for (name, disorder_s) in [("nasa_url", 2), ("apache_url", 60)] {
        let Some(events) = recording(name) else { return };
        let found = replay(&events, by_the_minute(disorder_s));
        assert!(found.hot.is_empty(), "{name}: {:?}", found.hot);
        assert_eq!(found.counted, events.len() as u64, "{name}: {} too late", found.too_late);
    }
}

/// H10 and H25: 45 wrong clocks at the begin of a recording, then nothing hot.
#[test]
fn h10_wrong_clocks_at_the_start_do_no_harm() {
    let Some(events) = recording("wiki_page") else { return };
    let found = replay(&events, by_the_minute(2));
    // Of 45 wrong ones the first is behind and cannot be known; three are further behind, 41 are ahead.
    assert_eq!((found.counted, found.too_late, found.future), (39_200, 3, 41));
    assert!(found.hot.is_empty(), "{:?}", found.hot);
}

/// H25: ids that are seen once or twice.
#[test]
fn h25_a_vault_of_ids_stays_silent() {
    let Some(events) = recording("corda_vault") else { return };
    let found = replay(&events, by_the_minute(2));
    assert!(found.changes.is_empty(), "{:?}", found.changes);
}

/// H4: the busiest key falls from 6 % to 0.4 % and rises again; a share of 2 % sees it hot, cool and hot.
#[test]
fn h4_a_share_rule_sees_a_key_cool_that_its_ratio_does_not() {
    let Some(events) = recording("w106_cooldown") else { return };
    let mut settings = settings(&[window(10_000, 1_000)], &[share(0.02, 20)]);
    settings.keyspaces[0].clear_after = Span::from_secs(10);
    let found = replay(&events, settings);
    let changes: Vec<Change> =
        found.changes.iter().filter(|(key, _)| key == b"49283584").map(|(_, change)| *change).collect();
    let hot: Vec<Change> = changes.into_iter().filter(|change| *change != Change::Suspect).collect();
    assert_eq!(hot, [Change::Hot, Change::Cleared, Change::Hot]);
}

/// Every key that a tumbling minute flags is hot in the sliding one.
#[test]
fn golden_keys_are_found() {
    for (name, disorder_s, flagged) in [("web07", 2, 358), ("scarab_300k", 2, 592), ("apache_client", 60, 50)] {
        let Some(events) = recording(name) else { return };
        let golden = tumbling(&events);
        assert_eq!(golden.len(), flagged, "{name}");
        let found = replay(&events, by_the_minute(disorder_s));
        let raised: BTreeSet<Vec<u8>> = found.changes.iter().map(|(key, _)| key.clone()).collect();
        let missed: Vec<_> = golden.difference(&raised).map(|key| String::from_utf8_lossy(key).into_owned()).collect();
        assert!(missed.is_empty(), "{name}: {missed:?}");
    }
}

/// Keys with at least 20 and ten times the median in a minute of the clock.
fn tumbling(events: &[(EventTime, String)]) -> BTreeSet<Vec<u8>> {
    let mut minutes = std::collections::BTreeMap::<i64, std::collections::BTreeMap<&str, u64>>::new();
    for (time, key) in events {
        *minutes.entry(time.as_millis() / 60_000).or_default().entry(key).or_default() += 1;
    }
    let mut flagged = BTreeSet::new();
    for counts in minutes.values() {
        let mut sorted: Vec<u64> = counts.values().copied().collect();
        sorted.sort_unstable();
        let doubled = sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2];
        let hot = counts.iter().filter(|(_, count)| **count >= 20 && 2 * **count >= 10 * doubled);
        flagged.extend(hot.map(|(key, _)| key.as_bytes().to_vec()));
    }
    flagged
}
