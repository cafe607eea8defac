//! What a good configuration does, in words and for scripts.

use std::path::Path;

use serde_json::{Value, json};

use super::check::fault_json;
use crate::config::{KafkaSettings, KeyLabel, Loaded, Settings, Start};
use crate::control::TopicSpec;
use crate::engine::{CountingMode, Engine, EngineSettings, HotOn, KeyspaceSettings, Rule, WindowSettings};
use crate::plan::{Mapper, Merge, Mode, PlanSettings};
use crate::protocol::client::{CONSUMER_PROPERTIES, CONTROL_CONSUMER_PROPERTIES, PRODUCER_PROPERTIES};
use crate::protocol::{History, Writes};
use crate::units::Rate;

/// Readers of control topics: the leader's group, the plan topic, the acks topic.
const CONTROL_READERS: u64 = 3;

/// The most memory that each part can take, in bytes.
pub(super) struct Report {
    counting: Vec<(String, u64)>,
    counting_total: u64,
    to_be_read: u64,
    to_be_sent: u64,
}

impl Report {
    pub(super) fn of(loaded: &Loaded) -> Self {
        let Settings { engine, kafka, .. } = &loaded.settings;
        let alone =
            |keyspace: &KeyspaceSettings| EngineSettings { keyspaces: vec![keyspace.clone()], time: engine.time };
        let counting = engine
            .keyspaces
            .iter()
            .map(|keyspace| (keyspace.name.clone(), Engine::memory_bytes(&alone(keyspace))))
            .collect();
        let queue = |properties| property_bytes(kafka, properties, "queued.max.messages.kbytes");
        Self {
            counting,
            counting_total: Engine::memory_bytes(engine),
            to_be_read: queue(CONSUMER_PROPERTIES) + CONTROL_READERS * queue(CONTROL_CONSUMER_PROPERTIES),
            to_be_sent: property_bytes(kafka, PRODUCER_PROPERTIES, "queue.buffering.max.kbytes"),
        }
    }

    const fn total(&self) -> u64 {
        self.counting_total + self.to_be_read + self.to_be_sent
    }

    pub(super) fn to_json(&self, file: &Path, loaded: &Loaded) -> Value {
        let settings = &loaded.settings;
        let keyspaces = settings.engine.keyspaces.iter().zip(&self.counting).map(|(keyspace, (_, bytes))| {
            json!({
                "name": keyspace.name,
                "memory_bytes": bytes,
                "key_thresholds": thresholds_json(keyspace, &keyspace.key_rules),
                "pattern_thresholds": keyspace.overrides.iter().map(|own| json!({
                    "keys": own.keys.to_string(),
                    "key_thresholds": thresholds_json(keyspace, &own.rules),
                })).collect::<Vec<_>>(),
                "shard_thresholds": thresholds_json(keyspace, &keyspace.shard_rules),
            })
        });
        json!({
            "file": file.display().to_string(),
            "ok": true,
            "config": settings.hash.to_string(),
            "warnings": loaded.warnings.iter().map(fault_json).collect::<Vec<_>>(),
            "keyspaces": keyspaces.collect::<Vec<_>>(),
            "memory_bytes": {
                "counting": self.counting_total,
                "records_waiting_to_be_read": self.to_be_read,
                "records_waiting_to_be_sent": self.to_be_sent,
                "total": self.total(),
            },
            "topics": {
                "read": settings.source.topic,
                "made_by_topics_create": TopicSpec::control(&settings.control).iter().map(|spec| spec.name.clone()).collect::<Vec<_>>(),
            },
            "as_used": loaded.as_used,
        })
    }

    /// Several lines without the last line break.
    pub(super) fn words(&self, file: &Path, loaded: &Loaded) -> String {
        let settings = &loaded.settings;
        let mut lines =
            vec![format!("{} is good; its decisions carry config {}", file.display(), settings.hash), String::new()];
        let mut line = |name: &str, what: String| lines.push(format!("{name:<9} {what}"));
        line("reads", source_words(settings));
        line("events", events_words(loaded));
        for (index, (keyspace, plan)) in settings.engine.keyspaces.iter().zip(&settings.plans).enumerate() {
            let key = used(loaded, &format!("keyspace[{index}].key"));
            let (name, hot_on) = (&keyspace.name, hot_on_words(keyspace.hot_on));
            line("keyspace", format!("{name}: key {key}, compared by {hot_on}{}", counting_words(keyspace)));
            for words in heat_words(keyspace) {
                line("", format!("  {words}"));
            }
            line(
                "",
                format!("  it cools below {} of that for {}", percent(keyspace.clear.as_f64()), keyspace.clear_after),
            );
            line("", format!("  {}", plan_words(plan)));
        }
        line("budget", budget_words(settings));
        line("memory", self.memory_words());
        line("topics", topics_words(settings));
        line(
            "http",
            format!("{}, keys shown {}", settings.observe.listen, key_label_words(settings.observe.key_label)),
        );
        lines.join("\n")
    }

    fn memory_words(&self) -> String {
        let each: Vec<String> =
            self.counting.iter().map(|(name, bytes)| format!("{name} {}", mebibytes(*bytes))).collect();
        format!(
            "at most {}: {} to count ({}), {} for records read ahead, {} for records to be sent",
            mebibytes(self.total()),
            mebibytes(self.counting_total),
            each.join(", "),
            mebibytes(self.to_be_read),
            mebibytes(self.to_be_sent),
        )
    }
}

/// A property in KiB as bytes: what the user wrote, or what the table says.
fn property_bytes(kafka: &KafkaSettings, table: &[(&str, &str)], name: &str) -> u64 {
    let ours = table.iter().rev().find(|(ours, _)| *ours == name).map(|(_, value)| *value);
    let kib = kafka.librdkafka.get(name).map(String::as_str).or(ours);
    kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0).saturating_mul(1024)
}

fn used<'l>(loaded: &'l Loaded, path: &str) -> &'l str {
    loaded.as_used.get(path).map_or("none", String::as_str)
}

fn source_words(settings: &Settings) -> String {
    let start = match settings.source.start {
        Start::Window => format!("from {} back, so that windows are whole", settings.reach()),
        Start::Earliest => "from the oldest record".to_owned(),
        Start::Latest => "from the newest record".to_owned(),
    };
    let (topic, group) = (&settings.source.topic, &settings.source.group);
    format!("topic '{topic}' as group '{group}' from {}, {start}", settings.kafka.brokers.join(", "))
}

fn events_words(loaded: &Loaded) -> String {
    let fields = [
        ("time", "time"),
        ("shard", "shard"),
        ("request_id", "request id"),
        ("operation", "operation"),
        ("caller", "caller"),
        ("weight", "weight"),
    ];
    let fields: Vec<String> =
        fields.iter().map(|(key, name)| format!("{name} {}", used(loaded, &format!("input.{key}")))).collect();
    fields.join(", ")
}

const fn hot_on_words(hot_on: HotOn) -> &'static str {
    match hot_on {
        HotOn::All => "all events",
        HotOn::Reads => "reads and scans",
        HotOn::Writes => "writes and deletes",
    }
}

fn counting_words(keyspace: &KeyspaceSettings) -> String {
    match keyspace.counting.mode {
        CountingMode::Sketch => String::new(),
        CountingMode::Exact { max_keys } => format!(", counted exactly up to {max_keys} keys a pane"),
    }
}

const fn key_label_words(label: KeyLabel) -> &'static str {
    match label {
        KeyLabel::Plain => "plain",
        KeyLabel::Hash => "as hashes",
        KeyLabel::Off => "not at all",
    }
}

/// A line for each window and each set of rules.
fn heat_words(keyspace: &KeyspaceSettings) -> Vec<String> {
    let own = keyspace.overrides.iter();
    let own = own.map(|own| (format!("a key that matches {:?}", own.keys.to_string()), &own.rules, "key"));
    let sets = std::iter::once(("a key".to_owned(), &keyspace.key_rules, "key")).chain(own).chain(std::iter::once((
        "a shard".to_owned(),
        &keyspace.shard_rules,
        "shard",
    )));
    let words = sets.flat_map(|(who, rules, subject)| {
        keyspace.windows.iter().map(move |window| {
            let thresholds = thresholds_words(*window, rules, subject);
            format!("{who} is hot in {}: {thresholds}", window_words(*window))
        })
    });
    words.collect()
}

fn window_words(WindowSettings { length, pane }: WindowSettings) -> String {
    format!("{length} (sliding by {pane})")
}

fn thresholds_words(window: WindowSettings, rules: &[Rule], subject: &str) -> String {
    let words: Vec<String> = rules.iter().map(|rule| threshold_words(window, *rule, subject)).collect();
    words.join(", or ")
}

fn threshold_words(window: WindowSettings, rule: Rule, subject: &str) -> String {
    match rule {
        Rule::Absolute { rate } => format!("at {} events ({}/s)", rate.count_in(window.length), rate.as_per_second()),
        Rule::Relative { multiple, floor } => {
            let per_s = Rate::of(floor, window.length).as_per_second();
            format!("at {multiple} times the median {subject} and {floor} events ({per_s:.1}/s)")
        }
        Rule::Share { share, floor } => format!("at {} of all events and {floor} events", percent(share.as_f64())),
    }
}

fn thresholds_json(keyspace: &KeyspaceSettings, rules: &[Rule]) -> Vec<Value> {
    let windows = keyspace.windows.iter();
    windows.flat_map(|window| rules.iter().map(move |rule| threshold_json(*window, *rule))).collect()
}

fn threshold_json(window: WindowSettings, rule: Rule) -> Value {
    let mut threshold = json!({
        "rule": rule.kind().label(),
        "window_ms": window.length.as_millis(),
        "pane_ms": window.pane.as_millis(),
    });
    let (at_least, of) = match rule {
        Rule::Absolute { rate } => (rate.count_in(window.length), None),
        Rule::Relative { multiple, floor } => (floor, Some(("times_median", multiple))),
        Rule::Share { share, floor } => (floor, Some(("share", share.as_f64()))),
    };
    threshold["at_least"] = at_least.into();
    if let Some((name, value)) = of {
        threshold[name] = value.into();
    }
    threshold
}

fn plan_words(plan: &PlanSettings) -> String {
    let does = match plan.mode {
        Mode::Observe => return "it plans nothing".to_owned(),
        Mode::Propose => "it proposes splits",
        Mode::Auto => "it carries out splits",
    };
    if plan.merge == Merge::None {
        return "each key is one object that every write replaces: it advises and splits nothing".to_owned();
    }
    let writes = match plan.writes {
        Writes::Insert => "written once",
        Writes::Versioned => "rewritten with versions",
        Writes::Update => "rewritten in place",
    };
    let history = match plan.history {
        History::Move => "old ones are moved by their owner".to_owned(),
        History::None => "old ones do not matter".to_owned(),
        History::Expire => format!("old ones expire within {}", plan.expire_after),
        History::Keep => "old ones stay where they are".to_owned(),
    };
    let mapper = plan
        .mapper
        .as_ref()
        .map_or_else(|| "shards not declared, so buckets are placed by luck".to_owned(), mapper_words);
    format!(
        "{does} into 2 to {} buckets of at most {}/s with {} to spare; records are {writes}, {history}; {mapper}",
        plan.max_buckets,
        plan.bucket_rate.as_per_second(),
        percent(plan.headroom),
    )
}

fn mapper_words(mapper: &Mapper) -> String {
    let hash = mapper.hash_label().map_or_else(String::new, |hash| format!("{hash}, "));
    format!("placed on {} shards by {hash}{}", mapper.shards().len(), mapper.label())
}

fn budget_words(settings: &Settings) -> String {
    let budget = settings.budget;
    let frozen = if budget.freeze { ", frozen: nothing new begins" } else { "" };
    format!(
        "at most {} split keys, {} changes a minute, {} between changes of one key{frozen}; routers expected: {}",
        budget.max_splits, budget.max_changes_per_minute, budget.min_dwell, settings.protocol.expect_routers
    )
}

fn topics_words(settings: &Settings) -> String {
    let control: Vec<String> =
        TopicSpec::control(&settings.control).into_iter().map(|spec| format!("'{}'", spec.name)).collect();
    format!("'{}' must be there; {} are made by keyheat topics create", settings.source.topic, control.join(" and "))
}

fn percent(share: f64) -> String {
    // Six digits, so that 0.07 is 7 % and not 7.000000000000001 %.
    let rounded = (share * 1e8).round() / 1e6;
    format!("{rounded} %")
}

#[expect(clippy::cast_precision_loss, reason = "for people: one decimal is shown")]
fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1_048_576.0)
}
