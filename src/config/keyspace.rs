//! `[[keyspace]]`: how the keys of one kind are taken, counted, judged and split.

use super::events::Fields;
use super::kind::{Choice, EventRate, KeyBytes, Length, Number, Part, PowerOfTwo, Text, Where, Whole, WindowAndPane};
use super::placement::{SHARD, mapper};
use super::rules;
use super::section::Section;
use super::seed::Seed;
use super::windows::{DEFAULT_WINDOWS, MAX_PANES, check_pair};
use crate::engine::{CountingMode, CountingSettings, HotOn, KeyspaceSettings, TimeSettings, WindowSettings};
use crate::input::{MAX_KEYSPACES, Template};
use crate::plan::{MAX_SHARDS, Mapper, Merge, Mode, PlanSettings, first_twice};
use crate::protocol::{History, MAX_BUCKETS, Writes};
use crate::units::Span;

/// One keyspace as three stages see it.
pub(super) struct Keyspace {
    /// None only after a fault was noted.
    pub(super) key: Option<Template>,
    pub(super) counting: KeyspaceSettings,
    pub(super) plan: PlanSettings,
}

const NAME: Text = Text {
    rule: "a name of 1 to 64 of a-z, 0-9, '_' and '-'",
    max_bytes: 64,
    allowed: |text| {
        text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte))
    },
};
const HOT_ON: Choice<HotOn> = Choice(&[("all", HotOn::All), ("reads", HotOn::Reads), ("writes", HotOn::Writes)]);
/// Names of the counting modes.
const COUNTING: Choice<bool> = Choice(&[("sketch", false), ("exact", true)]);
const MODE: Choice<Mode> = Choice(&[("observe", Mode::Observe), ("propose", Mode::Propose), ("auto", Mode::Auto)]);
const MERGE: Choice<Merge> = Choice(&[("union", Merge::Union), ("none", Merge::None)]);
const WRITES: Choice<Writes> =
    Choice(&[("insert", Writes::Insert), ("versioned", Writes::Versioned), ("update", Writes::Update)]);
const HISTORY: Choice<History> =
    Choice(&[("move", History::Move), ("none", History::None), ("expire", History::Expire), ("keep", History::Keep)]);
const HEADROOM: Number = Number {
    rule: "a number from 0 to 10: room above the peak as a share of it",
    allowed: |x| (0.0..=10.0).contains(&x),
};
const MIN_GAIN: Number = Number {
    rule: "a number from 1 to 256: by how much a split has to cut the hottest part",
    allowed: |x| (1.0..=256.0).contains(&x),
};
const UP_TO_A_DAY: Length = Length { min: Span::from_secs(1), max: Span::from_secs(86_400) };

/// The most keys of an allow or block list.
const MAX_LISTED_KEYS: usize = 10_000;

/// Every keyspace of the file.
pub(super) fn all(root: &Section<'_, '_>, seed: Seed, time: TimeSettings, fields: Fields) -> Vec<Keyspace> {
    let sections = root.sections("keyspace", MAX_KEYSPACES);
    if !root.has("keyspace") {
        let rule = format!("1 to {MAX_KEYSPACES} sections [[keyspace]], each with a name and a key");
        root.missing("keyspace", rule, None);
    }
    let mut keyspaces: Vec<Keyspace> = Vec::new();
    for section in sections {
        let keyspace = one(&section, seed, time, fields);
        let name = &keyspace.counting.name;
        if keyspaces.iter().any(|earlier| earlier.counting.name == *name) && section.has("name") && !name.is_empty() {
            section.fault(
                "name",
                "should differ from the other keyspaces' names",
                "records and metrics go by the name",
            );
        }
        section.finish();
        keyspaces.push(keyspace);
    }
    keyspaces
}

fn one(section: &Section<'_, '_>, seed: Seed, time: TimeSettings, fields: Fields) -> Keyspace {
    let name = section.required("name", &NAME).unwrap_or_default();
    let key = section.required("key", &Where).map(|read| read.template);
    let mapper = mapper(section);
    let plan = plan(section, &name, seed, mapper);
    let counting = counting(section, &name, seed, time, &plan);
    check_fields(section, fields, &plan, counting.hot_on);
    let window = counting.windows.iter().map(|window| window.length).max().unwrap_or_default();
    let plan = PlanSettings { window, ..plan };
    Keyspace { key, counting, plan }
}

fn counting(
    section: &Section<'_, '_>,
    name: &str,
    seed: Seed,
    time: TimeSettings,
    plan: &PlanSettings,
) -> KeyspaceSettings {
    let default = KeyspaceSettings::default();
    KeyspaceSettings {
        name: name.to_owned(),
        windows: windows(section, time),
        key_rules: rules::of_keys(section, section.has("bucket_rate").then_some(plan.bucket_rate)),
        overrides: rules::of_patterns(section),
        shard_rules: rules::of_shards(section),
        min_keys: section.or("min_keys", &Whole { min: 1, max: 1_000_000 }, default.min_keys),
        clear: section.or("clear", &Part { open: true, example: "0.7" }, default.clear),
        clear_after: section.or("clear_after", &UP_TO_A_DAY, default.clear_after),
        hot_on: section.or("hot_on", &HOT_ON, default.hot_on),
        declared_shards: declared_shards(section, plan.mapper.as_ref()),
        shard_memory: section.or("shard_memory", &UP_TO_A_DAY, default.shard_memory),
        plan_seed: plan.seed,
        counting: shape(section, seed.for_use("count", name)),
    }
}

fn windows(section: &Section<'_, '_>, time: TimeSettings) -> Vec<WindowSettings> {
    let windows = section.list("windows", &WindowAndPane, 1..3, DEFAULT_WINDOWS.to_vec());
    if !section.are_sound(&["windows"]) {
        return windows;
    }
    if let [short, long] = windows[..]
        && let Some(broken) = check_pair(short, long)
    {
        section.fault("windows", broken, "one window is enough as well");
    }
    let slack = time.disorder.saturating_add(time.max_ahead);
    if let Some(short) = windows.first().filter(|short| slack.as_millis().div_ceil(short.pane.as_millis()) > MAX_PANES)
    {
        let rule = format!(
            "time.disorder and time.max_ahead, together {slack}, should be at most {MAX_PANES} panes of the shortest window, {}",
            short.pane.saturating_mul(MAX_PANES)
        );
        section.fault("windows", rule, "choose a longer pane or less slack");
    }
    windows
}

fn declared_shards(section: &Section<'_, '_>, mapper: Option<&Mapper>) -> Vec<Vec<u8>> {
    let mut names = section.list("shards", &SHARD, 0..MAX_SHARDS + 1, Vec::new());
    if let Some(twice) = first_twice(&names) {
        section.fault("shards", format!("should have no name twice, and has '{twice}'"), "leave one out");
    }
    names.extend(mapper.iter().flat_map(|mapper| mapper.shards().iter().cloned()));
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(String::into_bytes).collect()
}

fn shape(section: &Section<'_, '_>, seed: u64) -> CountingSettings {
    let default = CountingSettings::default();
    let whole = |name, min, max, default: usize| {
        let value = section.or(name, &Whole { min, max }, default as u64);
        usize::try_from(value).unwrap_or(default)
    };
    let width = section.or("sketch_width", &PowerOfTwo { min: 1 << 8, max: 1 << 24 }, 1 << default.width_log2);
    let counting = CountingSettings {
        depth: whole("sketch_depth", 1, 8, default.depth),
        width_log2: width.trailing_zeros(),
        seed,
        max_candidates: whole("candidates", 16, 1 << 20, default.max_candidates),
        max_protected: whole("protected", 1, 100_000, default.max_protected),
        sample_k: whole("sample", 64, 1 << 20, default.sample_k),
        mode: counting_mode(section),
    };
    if section.are_sound(&["protected", "candidates"]) && counting.max_protected > counting.max_candidates {
        let name = if section.has("protected") { "protected" } else { "candidates" };
        let rule = format!(
            "protected ({}) should be at most candidates ({})",
            counting.max_protected, counting.max_candidates
        );
        section.fault(name, rule, "keys that are never evicted are candidates too");
    }
    counting
}

fn counting_mode(section: &Section<'_, '_>) -> CountingMode {
    let kind = Whole { min: 64, max: 1 << 20 };
    if section.or("counting", &COUNTING, false) {
        let max_keys = section.or("max_keys", &kind, 100_000);
        return CountingMode::Exact { max_keys: usize::try_from(max_keys).unwrap_or(usize::MAX) };
    }
    if section.optional("max_keys", &kind).is_some() && section.are_sound(&["counting"]) {
        section.fault("max_keys", "has no use without counting = \"exact\"", "set that, or leave this out");
    }
    CountingMode::Sketch
}

fn plan(section: &Section<'_, '_>, name: &str, seed: Seed, mapper: Option<Mapper>) -> PlanSettings {
    let mode = section.or("mode", &MODE, Mode::default());
    let bucket_rate = section.optional("bucket_rate", &EventRate);
    if section.are_sound(&["mode"]) && mode != Mode::Observe && !section.has("bucket_rate") {
        let rule = "the load that one bucket may carry, e.g. \"500/s\"".to_owned();
        section.missing("bucket_rate", rule, Some("or set mode = \"observe\", which plans nothing".to_owned()));
    }
    let key = KeyBytes { max_bytes: 1024 };
    let keys = |name| section.list(name, &key, 0..MAX_LISTED_KEYS + 1, Vec::new());
    let history = section.or("history", &HISTORY, History::default());
    let max_buckets = section.or("max_buckets", &PowerOfTwo { min: 2, max: u64::from(MAX_BUCKETS) }, 16);
    let plan = PlanSettings {
        keyspace: name.to_owned(),
        seed: seed.for_use("plan", name),
        mode,
        writes: section.or("writes", &WRITES, Writes::default()),
        merge: section.or("merge", &MERGE, Merge::default()),
        history,
        expire_after: expire_after(section, history),
        bucket_rate: bucket_rate.unwrap_or_default(),
        headroom: section.or("headroom", &HEADROOM, 0.3),
        max_buckets: u32::try_from(max_buckets).unwrap_or(MAX_BUCKETS),
        min_gain: section.or("min_gain", &MIN_GAIN, 1.5),
        // Known once the windows are.
        window: Span::ZERO,
        cooldown: section.or("cooldown", &UP_TO_A_DAY, Span::from_secs(1800)),
        mapper,
        quiet: section.or("quiet", &UP_TO_A_DAY, Span::from_secs(600)),
        allow: keys("allow"),
        block: keys("block"),
    };
    if let Some(both) = plan.allow.iter().find(|key| plan.block.contains(key)) {
        section.fault(
            "block",
            format!("should not have '{}', which allow has too", both.escape_ascii()),
            "leave it in one list",
        );
    }
    plan
}

fn expire_after(section: &Section<'_, '_>, history: History) -> Span {
    let kind = Length { min: Span::from_secs(1), max: Span::from_secs(366 * 86_400) };
    let span = section.optional("expire_after", &kind);
    if !section.are_sound(&["history"]) {
        return span.unwrap_or_default();
    }
    match (history, section.has("expire_after")) {
        (History::Expire, false) => {
            let rule = "set with history = \"expire\": how long until the store has deleted the old records".to_owned();
            section.missing("expire_after", rule, None);
        }
        (History::Move | History::None | History::Keep, true) => {
            section.fault("expire_after", "has no use without history = \"expire\"", "set that, or leave this out");
        }
        _ => {}
    }
    span.unwrap_or_default()
}

fn check_fields(section: &Section<'_, '_>, fields: Fields, plan: &PlanSettings, hot_on: HotOn) {
    if hot_on != HotOn::All && !fields.operation {
        section.fault(
            "hot_on",
            "should be \"all\" while input.operation is not set",
            "say where events have their operation",
        );
    }
    if plan.mode != Mode::Observe && !fields.request_id {
        let what =
            "plans, but input.request_id is not set: a bucket is chosen by the request id, so no key can be split";
        section.warn("mode", what, "set input.request_id, or mode = \"observe\"");
    }
    if plan.mode != Mode::Observe && !fields.operation {
        let what =
            "plans, but input.operation is not set: reads cannot be told from writes, and a split does not help reads";
        section.warn("mode", what, "set input.operation");
    }
    if section.has("shard_rules") && !fields.shard {
        section.fault("shard_rules", "has no use while input.shard is not set", "say where events have their shard");
    }
}
