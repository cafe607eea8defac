//! A recording, and its replay in this process.

#![allow(clippy::print_stderr, reason = "what is skipped is said")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use keyheat::analyze::{Decision, Replay, ReplaySettings, Summary};
use keyheat::config;
use keyheat::source::{Line, Lines};

/// The most bytes of a line.
const MAX_BYTES: usize = 1 << 20;

/// The path of a recording; none, with a notice, where recordings are missing.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let folder = std::env::var_os("KEYHEAT_DATA").map_or_else(beside, PathBuf::from);
    let path = folder.join(format!("{name}.ndjson.zst"));
    if path.is_file() {
        return Some(path);
    }
    eprintln!("notice: skipped, no recording {}; set KEYHEAT_DATA to the folder with recordings", path.display());
    None
}

fn each_line(path: &Path, mut take: impl FnMut(Line<'_>)) {
    let mut lines = Lines::open(path, MAX_BYTES).expect("a readable recording");
    while let Some(line) = lines.next_line().expect("a whole recording") {
        take(line);
    }
}

/// The records of a recording, one a line.
pub(crate) fn text(path: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    each_line(path, |line| {
        let Line::Record(line) = line else { panic!("a line longer than {MAX_BYTES} bytes") };
        text.extend_from_slice(line);
        text.push(b'\n');
    });
    text
}

/// What a replay said.
pub(crate) struct Said {
    pub(crate) decisions: Vec<Decision>,
    pub(crate) summary: Summary,
    pub(crate) replay: Replay,
}

impl Said {
    /// Keys that a decision of one of these kinds names.
    pub(crate) fn keys(&self, events: &[&str]) -> BTreeSet<&str> {
        let named = self.decisions.iter().filter(|decision| events.contains(&decision.event));
        named.filter_map(|decision| decision.key.as_deref()).collect()
    }

    /// The events of one key in their order, with their times.
    pub(crate) fn story(&self, key: &str) -> Vec<(&'static str, i64)> {
        let of_key = self.decisions.iter().filter(|decision| decision.key.as_deref() == Some(key));
        of_key.map(|decision| (decision.event, decision.at)).collect()
    }
}

/// Replays a recording keyed by `/key` with these lines of the keyspace's and of the time's configuration.
pub(crate) fn replay(path: &Path, keyspace: &str, time: &str) -> Said {
    let toml = format!(
        "seed = \"0000000000000000\"\n[kafka]\nbrokers = \"none:1\"\n[input]\ntopic = \"none\"\noperation = \"/op\"\nmax_key_bytes = 1024\n\
         [time]\n{time}\n[[keyspace]]\nname = \"default\"\nkey = \"/key\"\nmode = \"observe\"\n{keyspace}\n"
    );
    let settings = config::load(&toml).expect("a sound configuration").settings;
    let mut replay = Replay::new(ReplaySettings {
        input: settings.input,
        engine: settings.engine,
        plans: settings.plans,
        budget: settings.budget,
        protocol: settings.protocol,
        config_hash: settings.hash.to_string(),
    });
    let mut decisions = Vec::new();
    each_line(path, |line| {
        match line {
            Line::Record(record) => replay.handle_record(record),
            Line::TooLong => replay.handle_too_long(),
        }
        decisions.extend(std::iter::from_fn(|| replay.poll_decision()));
    });
    replay.handle_end();
    decisions.extend(std::iter::from_fn(|| replay.poll_decision()));
    Said { decisions, summary: replay.summary(), replay }
}

/// The events of a recording, read by `serde_json`.
pub(crate) fn events(path: &Path) -> Vec<(i64, String)> {
    let mut events = Vec::new();
    each_line(path, |line| {
        let Line::Record(line) = line else { panic!("a line longer than {MAX_BYTES} bytes") };
        let event: serde_json::Value = serde_json::from_slice(line).expect("JSON");
        events.push((event["ts"].as_i64().expect("a time"), event["key"].as_str().expect("a key").to_owned()));
    });
    events
}

/// What tumbling windows flag: count >= 20 and count >= 10 times the median over the keys of the window.
pub(crate) struct Golden {
    /// (window, key) pairs.
    pub(crate) pairs: usize,
    /// Distinct keys.
    pub(crate) keys: BTreeSet<String>,
}

/// Brute force over windows of 60 s aligned to the epoch.
pub(crate) fn golden(path: &Path) -> Golden {
    let mut windows: BTreeMap<i64, HashMap<String, u64>> = BTreeMap::new();
    for (ts, key) in events(path) {
        *windows.entry(ts.div_euclid(60_000)).or_default().entry(key).or_default() += 1;
    }
    let mut golden = Golden { pairs: 0, keys: BTreeSet::new() };
    for counts in windows.into_values() {
        let mut sorted: Vec<u64> = counts.values().copied().collect();
        sorted.sort_unstable();
        // Twice the median, so that the mean of the middle two stays whole.
        let twice_median = sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2];
        for (key, count) in counts {
            if count >= 20 && 2 * count >= 10 * twice_median {
                golden.pairs += 1;
                golden.keys.insert(key);
            }
        }
    }
    golden
}
