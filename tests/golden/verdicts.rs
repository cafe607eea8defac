//! What must be found, what must not, and how event time moves.

#![allow(clippy::print_stdout, reason = "figures are told")]

use keyheat::units::Estimate;

use crate::recording::{Said, events, find, golden, replay};

/// The rules under which the golden numbers hold: the window of 60 s, count >= 20 and >= 10 times the median, however few the keys.
const RULES: &str = "windows = [\"60s/5s\"]\nmedian = 10\nfloor = 20\nmin_keys = 1";

/// Every golden key is hot, or suspect where that is not proved yet, and at least `least_hot` are hot. A sliding window flags these
/// and perhaps a few more.
fn finds_every_golden_key(name: &str, (pairs, keys, least_hot): (usize, usize, usize), time: &str) {
    let Some(path) = find(name) else { return };
    let golden = golden(&path);
    assert_eq!((golden.pairs, golden.keys.len()), (pairs, keys), "{name}: the recording itself");
    let said = replay(&path, RULES, time);
    let found = said.keys(&["hot", "suspect"]);
    let missed: Vec<_> = golden.keys.iter().filter(|key| !found.contains(key.as_str())).collect();
    let hot = said.keys(&["hot"]).len();
    let proved = golden.keys.iter().filter(|key| said.keys(&["hot"]).contains(key.as_str())).count();
    println!("{name}: {keys} golden keys, {proved} of them proved; {hot} hot, {} hot or suspect in all", found.len());
    assert!(missed.is_empty(), "{name}: {} of {keys} missed, e.g. {:?}", missed.len(), missed.first());
    assert!(proved >= least_hot, "{name}: only {proved} of {keys} proved hot");
    assert_eq!(said.summary.counted, said.summary.read, "{name}: {:?}", said.summary);
}

#[test]
fn web07_key_churn_is_found() {
    // All of it is shorter than a window, and before a full window has been seen a relative rule proves nothing.
    finds_every_golden_key("web07", (358, 358, 0), "");
}

#[test]
fn scarab_ids_beyond_2_to_the_53_are_found() {
    finds_every_golden_key("scarab_300k", (1335, 592, 592), "");
}

/// A burst an hour, shuffled by up to a minute: each follows a silence longer than anything is kept, so that no full window had been
/// seen before it and half of the keys are only suspect.
#[test]
fn bursts_of_clients_are_found() {
    finds_every_golden_key("apache_client", (60, 50, 25), "disorder = \"60s\"");
}

/// Nothing is said of any key.
fn is_silent(name: &str, time: &str) -> Option<Said> {
    let path = find(name)?;
    let golden = golden(&path);
    assert_eq!((golden.pairs, golden.keys.len()), (0, 0), "{name}: the recording itself");
    let said = replay(&path, RULES, time);
    assert_eq!(said.keys(&["hot", "suspect", "cleared"]).len(), 0, "{name}: {:?}", said.decisions.first());
    let summary = &said.summary;
    assert_eq!(
        (summary.flagged, summary.counted + summary.future + summary.too_late),
        (0, summary.read),
        "{summary:?}"
    );
    Some(said)
}

// Case H1: RevenueCat/meta-memcache-py#40. With a ratio alone 92 and 27 pairs would be flagged.
#[test]
fn h1_small_counts_are_not_hot() {
    is_silent("apache_url", "disorder = \"60s\"");
    is_silent("nasa_url", "");
}

// Case H25.
#[test]
fn h25_nothing_is_hot_in_a_flat_stream() {
    if let Some(said) = is_silent("corda_vault", "") {
        assert_eq!((said.summary.read, said.summary.counted), (135_702, 135_702));
    }
}

// Cases H10 and H25: laminardb/laminardb#388, turbolytics/sql-flow#358, apache/metron#1197, lf-edge/ekuiper#530. The first 45 lines have
// clocks from 4 days behind to 50 days ahead.
#[test]
fn h10_wrong_clocks_at_the_start_do_no_harm() {
    let Some(said) = is_silent("wiki_page", "") else { return };
    let summary = said.summary;
    assert_eq!(summary.read, 39_244);
    // Ahead: never counted. Behind: the first is an event of its time like any other; the days before it are too late.
    assert_eq!((summary.future, summary.too_late), (41, 3), "{summary:?}");
    assert_eq!(summary.counted, 39_200, "the 39,199 with right clocks are all counted");
    assert!(summary.refused.values().all(|count| *count == 0));
}

// Case H4: the hot key falls from 6 % to 0.4 %, while its ratio to the median stays above 130.
#[test]
fn h4_a_share_cools_where_a_ratio_never_does() {
    let Some(path) = find("w106_cooldown") else { return };
    let (key, start) = ("49283584", 1_700_000_000_000);
    let windows = "windows = [\"10s/1s\"]\nclear_after = \"5s\"\n";
    let said = replay(&path, &format!("{windows}share = \"2%\""), "");
    let story = said.story(key);
    println!("{key}: {story:?}");
    let turns: Vec<_> = story.iter().filter(|(event, _)| *event != "suspect").collect();
    let [(first, hot_at), (second, cooled_at), (third, again_at), ..] = turns[..] else { panic!("{story:?}") };
    assert_eq!([*first, *second, *third], ["hot", "cleared", "hot"]);
    let after = |at: &i64, from_s: i64, to_s: i64| (start + from_s * 1000..start + to_s * 1000).contains(at);
    assert!(after(hot_at, 0, 12), "{story:?}");
    assert!(after(cooled_at, 20, 40), "{story:?}");
    assert!(after(again_at, 79, 90), "{story:?}");

    let said = replay(&path, &format!("{windows}median = 10\nfloor = 20"), "");
    let story = said.story(key);
    assert_eq!(story.iter().filter(|(event, _)| *event == "hot").count(), 1, "{story:?}");
    assert!(story.iter().all(|(event, _)| *event != "cleared"), "{story:?}");
}

// Case H12: access-watch/access-watch#3, apache/metron#1197. 9,447 of 9,999 events step back, by up to 59 s.
#[test]
fn h12_a_shuffled_log_is_counted_whole() {
    let Some(path) = find("apache_url") else { return };
    let favicon = events(&path).iter().filter(|(_, key)| key == "/favicon.ico").count();
    assert_eq!(favicon, 807, "the recording itself");
    let said = replay(&path, RULES, "disorder = \"60s\"");
    assert_eq!((said.summary.read, said.summary.counted), (9_999, 9_999));
    assert_eq!((said.summary.too_late, said.summary.future), (0, 0));
    let keys = said.summary.keys;
    assert!(keys.lower <= 1_498 && 1_498 <= keys.upper, "{keys}");
    // The newest window of a day holds exactly what the recording has from its first pane on.
    let said = replay(&path, "windows = [\"24h/10m\"]\nmedian = 10\nfloor = 20", "disorder = \"60s\"");
    let events = events(&path);
    let newest = events.iter().map(|(ts, _)| *ts).max().unwrap();
    let from = (newest.div_euclid(600_000) - 143) * 600_000;
    for wanted in ["/favicon.ico", "/style2.css", "/reset.css"] {
        let count = events.iter().filter(|(ts, key)| key == wanted && *ts >= from).count() as u64;
        assert!(count > 20, "{wanted}: {count}");
        assert_eq!(said.replay.engine().estimate(0, 0, wanted.as_bytes()), Estimate::exact(count), "{wanted}");
    }
}

// The same records and settings give the same decisions, byte for byte.
#[test]
fn a_replay_repeats_itself() {
    let Some(path) = find("web07") else { return };
    let bytes = || {
        let said = replay(&path, RULES, "");
        (serde_json::to_string(&said.decisions).expect("JSON"), serde_json::to_string(&said.summary).expect("JSON"))
    };
    assert_eq!(bytes(), bytes());
}
