//! Every decision of `keyheat replay` beside those of `exact.py`, a program that counts exactly and shares nothing with the engine.
//!
//! Compared is, for each key: the sequence of suspect, hot and cleared with its event times, rules and windows; of suspect and hot
//! the thresholds and the counts too, the engine's bounds being the exact count. All must be equal: in these recordings every pane's key
//! sample is complete or nothing is hot, so that nothing is left to bounds.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::recording::{find, text};

/// A decision on a key, or the summary, as either program prints it.
#[derive(Debug, Clone, Deserialize)]
struct Line {
    event: String,
    at: Option<i64>,
    key: Option<String>,
    rule: Option<String>,
    window_ms: Option<u64>,
    threshold: Option<u64>,
    count: Option<u64>,
    lower: Option<u64>,
    upper: Option<u64>,
}

/// What was said of a key, in its order.
type Stories = BTreeMap<String, Vec<Said>>;

/// What is compared of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Said {
    event: String,
    at: i64,
    rule: String,
    window_ms: u64,
    /// Threshold and count, of what was raised.
    raised: Option<(u64, u64)>,
}

/// The decisions of one program, and its summary.
struct Told {
    stories: Stories,
    summary: serde_json::Value,
}

impl Told {
    fn of(program: &str, output: &[u8]) -> Self {
        let lines: Vec<&str> =
            std::str::from_utf8(output).unwrap_or_else(|error| panic!("{program}: {error}")).lines().collect();
        let (summary, lines) = lines.split_last().unwrap_or_else(|| panic!("{program} printed nothing"));
        let mut stories = Stories::new();
        for text in lines {
            let line: Line = serde_json::from_str(text).unwrap_or_else(|error| panic!("{program}: {error}: {text}"));
            let (key, said) = said(&line).unwrap_or_else(|| panic!("{program}: {text}"));
            stories.entry(key).or_default().push(said);
        }
        Self { stories, summary: serde_json::from_str(summary).expect("a summary") }
    }

    fn number(&self, name: &str) -> u64 {
        self.summary[name].as_u64().unwrap_or_else(|| panic!("no {name} in {}", self.summary))
    }

    /// Keys that were hot at least once.
    fn hot(&self) -> BTreeSet<&str> {
        let hot = self.stories.iter().filter(|(_, story)| story.iter().any(|said| said.event == "hot"));
        hot.map(|(key, _)| key.as_str()).collect()
    }
}

/// None for what is no decision on a key, and for a count that the engine does not know exactly.
fn said(line: &Line) -> Option<(String, Said)> {
    let count = line.count.or_else(|| line.lower.filter(|lower| line.upper == Some(*lower)));
    let raised = if line.event == "cleared" { None } else { Some((line.threshold?, count?)) };
    let said =
        Said { event: line.event.clone(), at: line.at?, rule: line.rule.clone()?, window_ms: line.window_ms?, raised };
    Some((line.key.clone()?, said))
}

/// `keyheat replay` of a file.
fn replayed(path: &Path, flags: &[&str]) -> Told {
    let done = Command::new(env!("CARGO_BIN_EXE_keyheat"))
        .args(["replay", "--key", "/key", "--output", "json", "--quiet"])
        .args(flags)
        .arg(path)
        .output()
        .expect("keyheat runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Told::of("keyheat replay", &done.stdout)
}

/// The same by the exact program.
fn computed(records: Vec<u8>, flags: &[&str]) -> (Told, Vec<u8>) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/exact.py");
    let mut child = Command::new("python3")
        .arg(program)
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut input = child.stdin.take().expect("its input");
    let feeding = std::thread::spawn(move || input.write_all(&records));
    let done = child.wait_with_output().expect("its output");
    feeding.join().expect("a thread").expect("it reads all");
    assert!(done.status.success(), "exact.py: {}", done.status);
    (Told::of("exact.py", &done.stdout), done.stdout)
}

/// Both over a recording with the same flags; the engine's story, once all is equal.
fn agree(name: &str, flags: &str) -> Option<Told> {
    let path = find(name)?;
    let flags: Vec<&str> = flags.split(' ').collect();
    let engine = replayed(&path, &flags);
    let (exact, _) = computed(text(&path), &flags);
    same_summary(&engine, &exact);
    same_stories(&engine, &exact);
    Some(engine)
}

fn same_summary(engine: &Told, exact: &Told) {
    for name in ["read", "counted", "too_late", "future", "flagged"] {
        assert_eq!(engine.number(name), exact.number(name), "{name}: {} {}", engine.summary, exact.summary);
    }
    assert_eq!(engine.summary["keyspaces"][0]["suspected"], exact.summary["suspected"]);
    assert_eq!(engine.summary["refused"]["key_too_long"], exact.summary["key_too_long"]);
    let bound = |side: &str| engine.summary["keys"][side].as_u64().expect("a bound");
    let keys = exact.number("keys");
    assert!(bound("lower") <= keys && keys <= bound("upper"), "{keys} keys: {}", engine.summary);
}

fn same_stories(engine: &Told, exact: &Told) {
    let keys: BTreeSet<&String> = engine.stories.keys().chain(exact.stories.keys()).collect();
    for key in keys {
        assert_eq!(engine.stories.get(key), exact.stories.get(key), "{key}: left the engine, right the exact program");
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden").join(name)
}

/// The lesson's example: counts of 10, 2, 2, 2, 1 and 1 have a median of 2; at four times the median only `article:42` is hot.
#[test]
fn of_six_articles_the_one_at_four_times_the_median_is_hot() {
    let flags = ["--window", "10s/1s", "--median", "4", "--floor", "1", "--min-keys", "6", "--clear-after", "5s"];
    let path = fixture("lesson.ndjson");
    let (exact, printed) = computed(std::fs::read(&path).expect("the fixture"), &flags);
    let kept = std::fs::read_to_string(fixture("lesson.decisions.ndjson")).expect("the fixture");
    assert_eq!(String::from_utf8_lossy(&printed), kept, "exact.py decides as it did");
    let engine = replayed(&path, &flags);
    same_summary(&engine, &exact);
    same_stories(&engine, &exact);
    assert_eq!(engine.stories.keys().collect::<Vec<_>>(), ["article:42"]);
    let story = &engine.stories["article:42"];
    let events: Vec<_> = story.iter().map(|said| said.event.as_str()).collect();
    assert_eq!(events, ["suspect", "hot", "cleared"], "suspect until a whole window was seen: {story:?}");
    assert_eq!(story[1].raised.map(|(threshold, _)| threshold), Some(8), "4 times a median of 2");
}

/// Case H4: hot, cool and hot again by its share; the same at the same milliseconds.
#[test]
fn h4_a_share_of_two_per_cent() {
    let Some(engine) = agree("w106_cooldown", "--window 10s/1s --share 2% --clear-after 5s") else { return };
    let story = &engine.stories["49283584"];
    let events: Vec<_> = story.iter().map(|said| said.event.as_str()).filter(|event| *event != "suspect").collect();
    assert_eq!(events, ["hot", "cleared", "hot"], "{story:?}");
    assert_eq!(engine.hot(), BTreeSet::from(["32506368", "49283584"]));
}

/// Cases H10 and H25: 45 wrong clocks at the start; by page nothing is hot, by channel two are.
#[test]
fn h10_wrong_clocks() {
    for flags in ["--window 60s/5s --median 10 --min-keys 1", "--window 10s/1s --window 60s/5s --median 10"] {
        let Some(engine) = agree("wiki_page", flags) else { return };
        assert_eq!((engine.number("future"), engine.number("too_late"), engine.number("counted")), (41, 3, 39_200));
        assert!(engine.stories.is_empty());
    }
    let Some(engine) = agree("wiki_channel", "--window 60s/5s --median 10 --min-keys 1") else { return };
    assert_eq!(engine.hot().len(), 2, "as many as by tumbling windows");
    agree("wiki_channel", "--window 10s/1s --window 60s/5s --median 5 --share 30%");
}

/// Cases H1 and H25: counts too small for the floor, and ids that are seen once or twice.
#[test]
fn h1_h25_silent_recordings() {
    for name in ["nasa_url", "corda_vault"] {
        let Some(engine) = agree(name, "--window 60s/5s --median 10 --min-keys 1") else { return };
        assert!(engine.stories.is_empty() && engine.number("counted") == engine.number("read"), "{name}");
    }
}

/// Case H12: shuffled by up to 59 s, nothing is lost and every decision is taken at its time, by rates and by the median of the very
/// window that the watermark passes, a whole window behind the head.
#[test]
fn h12_shuffled_by_up_to_a_minute() {
    for name in ["apache_url", "apache_client"] {
        for rule in ["--rate 0.25/s", "--rate 0.5/s", "--median 10 --min-keys 1"] {
            let flags = format!("--window 60s/5s {rule} --disorder 60s");
            let Some(engine) = agree(name, &flags) else { return };
            assert_eq!((engine.number("read"), engine.number("too_late"), engine.number("future")), (9_999, 0, 0));
        }
    }
}

/// Key churn: keys hot for less than a window each, in both windows.
#[test]
fn key_churn() {
    agree("web07", "--window 60s/5s --median 10 --min-keys 1");
    let Some(engine) = agree("web07", "--window 10s/1s --window 60s/5s --median 10") else { return };
    assert!(engine.hot().len() >= 100, "{}", engine.summary);
}

/// Hundreds of hot keys at once, by three kinds of rules.
#[test]
fn a_catalogue() {
    let by_median = "--window 60s/5s --median 10 --min-keys 1";
    let by_rate = "--window 10s/1s --rate 5/s --clear-after 10s";
    let by_all = "--window 10s/1s --window 60s/5s --median 20 --share 0.5% --rate 8.3/s";
    for (flags, least) in [(by_median, 592), (by_rate, 20), (by_all, 500)] {
        let Some(engine) = agree("scarab_300k", flags) else { return };
        assert!(engine.hot().len() >= least, "{flags}: {}", engine.summary);
    }
}
