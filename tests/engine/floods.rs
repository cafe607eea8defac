//! Problems reported about other systems, by their fixed ids: keys without end, and keys that look like something else.

use std::collections::BTreeSet;

use keyheat::analyze::{Replay, ReplaySettings, Summary};
use keyheat::config;
use keyheat::engine::{Change, Engine, Subject};
use keyheat::input::AccessEvent;
use keyheat::units::{Estimate, Partition, Span};

use crate::oracle::{Pair, absolute, at, relative, settings, share, window};

/// A8 (allinurl/goaccess#2735): a gateway appends the source port, so that each request looks like a new client.
#[test]
fn a8_a_port_in_the_client_fills_no_memory() {
    let windows = [window(10_000, 1_000), window(60_000, 5_000)];
    let client = |n: i64| format!("192.0.2.10:{},+10.0.0.1:49770", n % 60_000 + 1_024);
    // As by default: one request is far from the floor of 20, so nobody is followed.
    let default = settings(&windows, &[relative(10.0, 20)]);
    let bytes = Engine::memory_bytes(&default);
    let mut pair = Pair::new(default);
    (0..50_000).for_each(|n| pair.event(n, &client(n)));
    let status = pair.engine.status(0);
    assert!(status.keys_ever.lower <= 50_000 && 50_000 <= status.keys_ever.upper, "{status:?}");
    assert!(status.candidates < 100 && status.memory_bytes <= bytes && bytes < 64 << 20, "{status:?}");
    assert!(pair.verdicts.is_empty());
    // A threshold that every client reaches: the table is full, and that is told.
    let mut pair = Pair::new(settings(&windows, &[absolute(0.1)]));
    (0..50_000).for_each(|n| pair.event(n, &client(n)));
    let status = pair.engine.status(0);
    assert!(status.candidates <= 4_096, "{status:?}");
    assert!(status.level > 0.125 && status.recall_above.is_some_and(|above| above > 1), "{status:?}");
}

/// S13 (rapina-rs/rapina#518, tdeekens/promster#286): an id in each URL makes it unique; the true hot key is still found.
#[test]
fn s13_unique_urls_do_not_hide_the_hot_one() {
    let windows = [window(10_000, 1_000), window(60_000, 5_000)];
    let settings = settings(&windows, &[share(0.02, 20), absolute(100.0)]);
    let mut engine = Engine::new(settings);
    let (mut most, mut confirmed) = (0, Vec::new());
    let time_of = |n: i64| at(n / 12);
    for n in 0..1_000_000i64 {
        let url = if n % 33 == 0 { "/home".to_owned() } else { format!("/item?id={n}") };
        engine.handle_event(Partition(0), &AccessEvent::new(time_of(n), url.as_bytes()), time_of(n)).unwrap();
        let verdicts = std::iter::from_fn(|| engine.poll_verdict());
        confirmed.extend(verdicts.filter(|verdict| verdict.change == Change::Hot).map(|verdict| verdict.subject));
        if n % 50_000 == 0 {
            most = most.max(engine.status(0).candidates);
        }
    }
    assert!(most <= 4_096, "{most}");
    assert_eq!(confirmed, [Subject::Key((*b"/home").into())], "no URL that came once is ever said to be hot");
    assert!(engine.hot_keys(0).iter().all(|hot| hot.hot_since.is_none() || *hot.key == *b"/home"));
    for (number, window) in windows.iter().enumerate() {
        let millis = |span: Span| i64::try_from(span.as_millis()).unwrap();
        let until = (time_of(999_999).as_millis() / millis(window.pane) + 1) * millis(window.pane);
        let within = |n: &i64| time_of(*n).as_millis() >= until - millis(window.length);
        let truth = (0..1_000_000i64).step_by(33).filter(within).count() as u64;
        assert_eq!(engine.estimate(0, number, b"/home"), Estimate::exact(truth), "window {number}");
    }
    assert_eq!(engine.estimate(0, 0, b"/item?id=1").lower, 0);
}

/// H21 (spotify/scio#394): counts out of a sample that are compared with thresholds as if they were counts of all.
///
/// Keys are sampled, events are not: a key's count is whole, whether or not the sample holds it.
#[test]
fn h21_counts_are_of_all_events_though_keys_are_sampled() {
    let mut settings = settings(&[window(10_000, 1_000)], &[absolute(50.0)]);
    settings.keyspaces[0].counting.sample_k = 64;
    let mut pair = Pair::new(settings);
    for n in 0..30_000i64 {
        pair.event(n / 3, &format!("other-{}", n % 5_000));
        // Twenty keys with 1,000 events each: one in some hundred keys is in the sample.
        if n % 30 < 20 {
            pair.event(n / 3, &format!("key-{}", n % 30));
        }
    }
    let keys = pair.engine.status(0).windows[0].keys;
    assert!(keys.lower != keys.upper, "the sample does not hold all keys: {keys}");
    for key in (0..20).map(|n| format!("key-{n}")) {
        assert_eq!(pair.changes(&key).last(), Some(&Change::Hot), "{key}");
        let truth = pair.count(0, key.as_bytes());
        let bounds = pair.engine.estimate(0, 0, key.as_bytes());
        assert!((995..=1_000).contains(&truth));
        // What came before a key was followed, an eighth of the threshold, is known up to what shares its cells.
        assert!(bounds.lower <= truth && truth <= bounds.upper && bounds.upper - bounds.lower <= 63, "{key}: {bounds}");
    }
    assert!(pair.changes("other-7").is_empty());
}

/// A19 (karlheyes/icecast-kh#146, prometheus/blackbox_exporter#38, newrelic/node-newrelic#166): a weight of 2^64 - 1 poisons sums.
/// Heat is a number of events; no weight changes it.
#[test]
fn a19_no_weight_changes_a_count() {
    let mut pair = Pair::new(settings(&[window(10_000, 1_000)], &[absolute(10.0)]));
    for n in 0..50i64 {
        for weight in [0, 1, u64::MAX] {
            pair.send(0, &AccessEvent { weight, ..AccessEvent::new(at(n), b"weighty") }, at(n));
        }
    }
    assert_eq!(pair.engine.estimate(0, 0, b"weighty"), Estimate::exact(150));
    assert_eq!(pair.changes("weighty"), [Change::Hot], "at the 100th event, not at the first");
    assert_eq!(pair.verdicts[0].reason.count, Estimate::exact(100));
}

/// Records through decoder, look-ahead and engine: what was hot, what was counted.
fn replayed(records: impl Iterator<Item = String>) -> (BTreeSet<String>, Summary, Replay) {
    let toml = "seed = \"0000000000000000\"\n[kafka]\nbrokers = \"none:1\"\n[input]\ntopic = \"none\"\nweight = \"/bytes\"\n\
        [[keyspace]]\nname = \"default\"\nkey = \"/key\"\nmode = \"observe\"\nwindows = [\"60s/5s\"]\nrate = \"10/s\"\n";
    let settings = config::load(toml).unwrap().settings;
    let mut replay = Replay::new(ReplaySettings {
        input: settings.input,
        engine: settings.engine,
        plans: settings.plans,
        budget: settings.budget,
        protocol: settings.protocol,
        config_hash: settings.hash.to_string(),
    });
    records.for_each(|record| replay.handle_record(record.as_bytes()));
    replay.handle_end();
    let hot = std::iter::from_fn(|| replay.poll_decision()).filter(|decision| decision.event == "hot");
    let hot = hot.filter_map(|decision| decision.key).collect();
    let summary = replay.summary();
    (hot, summary, replay)
}

const TIME_MS: i64 = 1_700_000_000_000;

/// A1 (vectordotdev/vrl#226, globalmac/KnuckleLog#4): what scanners send to a plain port, 10,000 of each in a minute.
#[test]
fn a1_what_scanners_send_is_a_key_like_any_other_but_for_the_empty_one() {
    let records = (0..40_000i64).map(|n| {
        let ms = TIME_MS + n * 59_000 / 40_000;
        let key = match n % 4 {
            0 => r"\u0016\u0003\u0001\u0000u",
            1 => "",
            2 => "MGLNDD_192.0.2.1_443",
            _ => return format!(r#"{{"ts":{ms},"key":"/page-{}"}}"#, n % 977),
        };
        format!(r#"{{"ts":{ms},"key":"{key}"}}"#)
    });
    let (hot, summary, replay) = replayed(records);
    assert_eq!(hot, BTreeSet::from(["\u{16}\u{3}\u{1}\0u".to_owned(), "MGLNDD_192.0.2.1_443".to_owned()]));
    assert_eq!((summary.counted, summary.refused["key_empty"]), (30_000, 10_000));
    for key in [&b"\x16\x03\x01\x00u"[..], b"MGLNDD_192.0.2.1_443"] {
        assert_eq!(replay.engine().estimate(0, 0, key), Estimate::exact(10_000));
    }
}

/// A17 (logos-messaging/logos-delivery#3205): ids of 64 bits that differ in their last digit, as numbers and as texts.
#[test]
fn a17_ids_that_differ_in_the_last_digit_are_two_keys() {
    let records = (0..3_000i64).map(|n| {
        let ms = TIME_MS + n * 10;
        match n % 6 {
            0..=2 => format!(r#"{{"ts":{ms},"key":-9153905493322907410}}"#),
            3..=4 => format!(r#"{{"ts":{ms},"key":"-9153905493322907411"}}"#),
            _ => format!(r#"{{"ts":{ms},"key":-9153905493322907411}}"#),
        }
    });
    let (hot, summary, replay) = replayed(records);
    assert_eq!(hot.len(), 2, "{hot:?}");
    assert_eq!(summary.counted, 3_000);
    for key in [&b"-9153905493322907410"[..], b"-9153905493322907411"] {
        assert_eq!(replay.engine().estimate(0, 0, key), Estimate::exact(1_500));
    }
}
