//! What lies behind a decision of a replay: requests of a key, keys of a shard, the rules of a pattern.

use keyheat::analyze::{Decision, Replay, ReplaySettings};
use keyheat::config;
use serde_json::Value;

const CONFIG: &str = r#"
seed = "0000000000000000"
[kafka]
brokers = "none:1"
[input]
topic = "none"
shard = "/shard"
operation = "/op"
caller = "/caller"
[[keyspace]]
name = "default"
key = "/key"
mode = "observe"
windows = "5s/1s"
rate = "50/s"
[[keyspace.rules]]
keys = "acme:*"
rate = "4/s"
"#;

/// 40 s of 40 keys on 4 shards, each with 2 requests a second; `whale` has 60 more, on s1, a third of them writes, all by alice; and
/// `acme:1` as well as `other:1` have 5.
fn records() -> Vec<String> {
    let mut records = Vec::new();
    let mut add = |ms: u64, key: &str, shard: u64, operation: &str, caller: &str| {
        let ts = 1_700_000_000_000 + ms;
        records
            .push(format!(r#"{{"ts":{ts},"key":"{key}","shard":"s{shard}","op":"{operation}","caller":"{caller}"}}"#));
    };
    for step in 0..800 {
        let ms = step * 50;
        for lane in 0..4 {
            let key = step % 10 * 4 + lane;
            add(ms, &format!("k{key}"), lane, "read", "bob");
        }
        for extra in 0..3 {
            add(ms, "whale", 1, if extra == 0 { "write" } else { "read" }, "alice");
        }
        if step % 4 == 0 {
            add(ms, "acme:1", 2, "read", "bob");
            add(ms, "other:1", 3, "read", "bob");
        }
    }
    records
}

fn decisions(config: &str) -> Vec<Value> {
    let settings = config::load(config).expect("a sound configuration").settings;
    let mut replay = Replay::new(ReplaySettings {
        input: settings.input,
        engine: settings.engine,
        plans: settings.plans,
        budget: settings.budget,
        protocol: settings.protocol,
        config_hash: settings.hash.to_string(),
    });
    records().iter().for_each(|record| replay.handle_record(record.as_bytes()));
    replay.handle_end();
    let json = |decision: Decision| serde_json::to_value(decision).expect("JSON");
    std::iter::from_fn(|| replay.poll_decision()).map(json).collect()
}

#[test]
fn decisions_say_what_lies_behind_them() {
    let said = decisions(CONFIG);
    let hot: Vec<&Value> = said.iter().filter(|decision| decision["event"] == "hot").collect();
    assert_eq!(hot.iter().map(|key| key["key"].as_str().unwrap()).collect::<Vec<_>>(), ["acme:1", "whale"]);
    // By its own rule: 4/s over 5 s.
    assert_eq!((hot[0]["threshold"].as_u64(), hot[0]["lower"].as_u64()), (Some(20), Some(20)));

    let whale = hot[1];
    let number = |name: &str| whale[name].as_u64().unwrap();
    assert_eq!(number("threshold"), 250);
    assert!(number("reads") + number("writes") <= number("lower") && number("reads") >= 2 * number("writes") - 2);
    assert_eq!(whale["among"], serde_json::json!({ "lower": 43, "upper": 43 }));
    let all = serde_json::json!({ "lower": 1.0, "upper": 1.0 });
    assert_eq!(whale["shards"], serde_json::json!([{ "name": "s1", "share": all }]));
    assert_eq!(whale["callers"], serde_json::json!([{ "name": "alice", "share": all }]));
    assert!(whale["since"].as_i64() < whale["at"].as_i64());

    let shards: Vec<&Value> = said.iter().filter(|decision| decision["event"] == "shard_hot").collect();
    assert_eq!(shards.iter().map(|shard| shard["shard"].as_str().unwrap()).collect::<Vec<_>>(), ["s1"]);
    assert_eq!(shards[0]["cause"], "one_key");
    let first = &shards[0]["keys"][0];
    assert_eq!(first["name"], "whale");
    assert!(first["share"]["lower"].as_f64().unwrap() > 0.6, "{first}");
    assert_eq!(shards[0]["among"], serde_json::json!({ "lower": 4, "upper": 4 }));
}
