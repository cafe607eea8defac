//! Events with their exact keys: made ones, and recordings.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use keyheat::engine::WindowSettings;
use keyheat::source::{Line, Lines};
use keyheat::units::{EventTime, Span};

const BASE_MS: i64 = 1_700_000_000_000;
const KEYS: u32 = 1_000_000;
/// Panes of a made stream, each of a second, and events in each: ten panes make a window of 1,000,000.
const PANES: u32 = 30;
const PANE_EVENTS: u32 = 100_000;
/// A drifting stream passes the load of each rank on to another key: by so many, every two panes.
const DRIFT: u32 = 37;
/// The clock of a recording: the median of so many events to come.
const LOOK_AHEAD: usize = 4096;

/// One event; the key by its place in the names.
pub(crate) struct Event {
    pub(crate) time: EventTime,
    pub(crate) now: EventTime,
    pub(crate) key: u32,
}

/// A stream, how it is windowed, and from which counts on keys are looked for.
pub(crate) struct Stream {
    pub(crate) name: String,
    pub(crate) events: Vec<Event>,
    pub(crate) names: Vec<String>,
    pub(crate) window: WindowSettings,
    pub(crate) disorder: Span,
    pub(crate) thresholds: Vec<u64>,
}

const fn seconds(length: u64, pane: u64) -> WindowSettings {
    WindowSettings { length: Span::from_secs(length), pane: Span::from_secs(pane) }
}

/// Zipf over a million keys, still and drifting.
pub(crate) fn zipf() -> impl Iterator<Item = Option<Stream>> {
    [0.6, 0.8, 1.0, 1.2].into_iter().flat_map(|exponent| [0, DRIFT].map(|drift| Some(made(exponent, drift))))
}

fn made(exponent: f64, drift: u32) -> Stream {
    let mut sum = 0.0;
    let mut add = |rank: u32| {
        sum += f64::from(rank).powf(-exponent);
        sum
    };
    let below: Vec<f64> = (1..=KEYS).map(&mut add).collect();
    let mut state = 88_172_645_463_325_252u64;
    let mut uniform = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        f64::from(u32::try_from(state >> 32).unwrap()) / 2.0f64.powi(32)
    };
    let event = |number: u32| {
        let time = BASE_MS + i64::from(number) * 1000 / i64::from(PANE_EVENTS);
        let time = EventTime::from_millis(time).unwrap();
        let wanted = uniform() * below[below.len() - 1];
        let rank = u32::try_from(below.partition_point(|part| *part <= wanted)).unwrap();
        Event { time, now: time, key: (rank + number / (2 * PANE_EVENTS) * drift) % KEYS }
    };
    let kind = if drift == 0 { "still" } else { "drifting" };
    Stream {
        name: format!("Zipf {exponent:.1} {kind}"),
        events: (0..PANES * PANE_EVENTS).map(event).collect(),
        names: (0..KEYS).map(|key| format!("user:{key}")).collect(),
        window: seconds(10, 1),
        disorder: Span::from_secs(2),
        // 0.1 % and 0.01 % of a window.
        thresholds: vec![1000, 100],
    }
}

/// Every recording with its window: where events are rare, that of 60 s and the floor of 20; else 0.1 % of the window and less.
pub(crate) fn recordings() -> impl Iterator<Item = Option<Stream>> {
    let (rare, dense) = (seconds(60, 5), seconds(10, 1));
    let all: [(&str, WindowSettings, u64, &[u64]); 9] = [
        ("apache_client", rare, 60, &[20]),
        ("apache_url", rare, 60, &[20]),
        ("nasa_url", rare, 2, &[20]),
        ("wiki_page", rare, 2, &[3]),
        ("wiki_channel", rare, 2, &[20]),
        ("web07", dense, 2, &[20]),
        ("scarab_300k", dense, 2, &[20]),
        ("corda_vault", dense, 2, &[20]),
        ("w106_cooldown", dense, 2, &[100, 10]),
    ];
    all.into_iter().map(|(name, window, disorder, thresholds)| {
        recording(name, window, Span::from_secs(disorder), thresholds.to_vec())
    })
}

fn recording(name: &str, window: WindowSettings, disorder: Span, thresholds: Vec<u64>) -> Option<Stream> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let folder = std::env::var_os("KEYHEAT_DATA").map_or_else(beside, PathBuf::from);
    let path = folder.join(format!("{name}.ndjson.zst"));
    if !path.is_file() {
        eprintln!("skipped, no recording {}; set KEYHEAT_DATA to the folder with recordings", path.display());
        return None;
    }
    let mut lines = Lines::open(&path, 1 << 20).unwrap();
    let mut places: HashMap<String, u32> = HashMap::new();
    let mut read = Vec::new();
    while let Some(Line::Record(line)) = lines.next_line().unwrap() {
        let value: serde_json::Value = serde_json::from_slice(line).unwrap();
        let next = u32::try_from(places.len()).unwrap();
        let key = *places.entry(value["key"].as_str().unwrap().to_owned()).or_insert(next);
        read.push((EventTime::from_millis(value["ts"].as_i64().unwrap()).unwrap(), key));
    }
    let mut names = vec![String::new(); places.len()];
    places.into_iter().for_each(|(name, place)| names[place as usize] = name);
    let events = with_clock(&read, disorder);
    Some(Stream { name: name.to_owned(), events, names, window, disorder, thresholds })
}

fn with_clock(read: &[(EventTime, u32)], disorder: Span) -> Vec<Event> {
    let mut ahead: Vec<EventTime> = read.iter().take(LOOK_AHEAD).map(|event| event.0).collect();
    ahead.sort_unstable();
    let event = |(at, &(time, key)): (usize, &(EventTime, u32))| {
        let now = ahead[ahead.len() / 2].saturating_add(disorder);
        ahead.remove(ahead.binary_search(&time).unwrap());
        if let Some((next, _)) = read.get(at + LOOK_AHEAD) {
            ahead.insert(ahead.partition_point(|other| other < next), *next);
        }
        Event { time, now, key }
    };
    read.iter().enumerate().map(event).collect()
}
