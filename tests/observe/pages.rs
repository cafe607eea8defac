//! Probes and the API.

use std::sync::Arc;

use keyheat::engine::{NotApplicable, RuleKind, RuleStatus, ShardCause, ShardLoad, ShardProfile};
use keyheat::observe::HttpSettings;
use keyheat::protocol::{KeyField, Layout, Outcome, Pin, Policy, PolicyEntry, Prediction, SCHEMA, State, Version};
use keyheat::telemetry::{KeyDisplay, Latch, PlanView, RouterView, TelemetrySettings};
use keyheat::units::{Estimate, EventTime, Share, Span};

use crate::client::{Site, hot_key, site};

const fn rule(rule: RuleKind, from: Option<u64>, not_applicable: Option<NotApplicable>) -> RuleStatus {
    RuleStatus {
        rule,
        hot_from: if not_applicable.is_none() { from } else { None },
        suspect_from: from,
        not_applicable,
    }
}

fn filled() -> Site {
    filled_for(|_, _| {})
}

fn filled_for(change: impl FnOnce(&mut TelemetrySettings, &mut HttpSettings)) -> Site {
    let site = site(change);
    let mut view = site.view();
    view.config = "00000000000000a7".to_owned();
    view.at = EventTime::from_millis(1_796_033_492_120).ok();
    let customer = &mut view.keyspaces[0];
    customer.keys = vec![hot_key(b"c42", 100), hot_key(b"\xFF", 90)];
    customer.hot_keys = 2;
    customer.windows[0].recall_above = Some(40);
    customer.windows[0].complete_from = EventTime::from_millis(1_796_033_500_000).ok();
    let few = NotApplicable::FewSubjects { known: Estimate::exact(3), needed: 8 };
    customer.windows[0].rules = vec![
        rule(RuleKind::Absolute, Some(500), None),
        rule(RuleKind::Relative, None, Some(few)),
        rule(RuleKind::Share, Some(60), Some(NotApplicable::WindowNotFull)),
    ];
    let load = |name: &str, count| ShardLoad {
        shard: name.as_bytes().into(),
        count: Estimate::exact(count),
        hot_since: None,
        profile: None,
    };
    let mut hot = load("s2", 90);
    hot.profile = Some(Box::new(ShardProfile {
        cause: Some(ShardCause::FewKeys),
        sampled: 80,
        keys: vec![(b"c42"[..].into(), Estimate { lower: 40, upper: 50 }), (b"\xFF"[..].into(), Estimate::exact(20))],
        fresh: Share::new(0.25).ok(),
    }));
    customer.set_shards(Span::from_secs(10), &[load("s1", 10), hot, load("s3", 20)]);
    let split = Layout::split(1, 8, 0).unwrap();
    customer.add_plan(PlanView {
        key: b"c42".to_vec(),
        version: Version { epoch: 3, seq: 7 },
        state: State::Moving,
        write: Some(split),
        read: vec![split, Layout::BARE],
        decided_at: "2026-11-30T10:11:32.120Z".to_owned(),
        prediction: Prediction {
            hottest_bucket_share: 0.131,
            hottest_shard_before: Some(0.46),
            hottest_shard_after: Some(0.09),
            added_load: 0.0,
        },
        outcome: Some(Outcome {
            hottest_shard: Some(0.12),
            measured_at: "2026-11-30T10:21:32.120Z".to_owned(),
            helped: true,
            hottest_bucket_share: Some(0.14),
            key_shard_share: None,
            window_ms: Some(60_000),
            settled_at: None,
        }),
        waiting_for: 1,
    });
    let pin = Pin { buckets: 8, from: None, until: Some("2026-11-30T09:00:00.000Z".to_owned()) };
    customer.add_policy(Arc::new(policy(b"sale", Some(pin))));
    customer.add_policy(Arc::new(policy(b"c9", None)));
    customer.add_policy(Arc::new(policy(b"c8", None)));
    view.control.leader = true;
    view.control.version = Version { epoch: 3, seq: 9 };
    let applied = Version { epoch: 3, seq: 8 };
    view.set_routers(vec![RouterView { id: "r\n1".to_owned(), applied, ack_age: Span::from_secs(2), waiting: true }]);
    site.telemetry.publish(view);
    site
}

/// A pin, or a block.
fn policy(key: &[u8], pin: Option<Pin>) -> PolicyEntry {
    let policy = Policy {
        schema: SCHEMA,
        keyspace: "customer".into(),
        key: KeyField(key.to_vec()),
        block: pin.is_none(),
        pin,
        decided_at: "2026-11-29T08:00:00.000Z".into(),
        reason: None,
    };
    PolicyEntry { version: Version { epoch: 3, seq: 5 }, policy, value: Vec::new() }
}

/// What a split was measured to do, and what operators have set, by command: listed, and counted.
#[test]
fn outcomes_and_policies_are_counted() {
    let site = filled();
    let metrics = site.get("/metrics").body;
    for line in [
        "keyheat_plan_outcomes{keyspace=\"customer\",helped=\"true\"} 1",
        "keyheat_plan_outcomes{keyspace=\"customer\",helped=\"false\"} 0",
        "keyheat_policies{keyspace=\"customer\",kind=\"pin\"} 1",
        "keyheat_policies{keyspace=\"customer\",kind=\"block\"} 2",
    ] {
        assert!(metrics.lines().any(|own| own == line), "{line}");
    }
    let plans = &site.get("/v1/plans").json()["keyspaces"][0];
    assert_eq!((&plans["ruled"], plans["policies"].as_array().unwrap().len()), (&3.into(), 3));
    assert_eq!((&plans["policies"][0]["stands"], &plans["policies"][1]["block"]), (&"past".into(), &true.into()));
}

#[test]
fn ready_only_when_every_latch_is_closed() {
    let site = site(|_, _| {});
    assert_eq!(site.get("/livez").status, 200);
    let answer = site.get("/readyz");
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["waiting_for"].as_array().unwrap().len(), Latch::ALL.len());
    for latch in Latch::ALL {
        assert_eq!(site.get("/readyz").status, 503);
        site.readiness.set(*latch, true, "");
    }
    let answer = site.get("/readyz");
    assert_eq!((answer.status, answer.json()["ready"].as_bool()), (200, Some(true)));
    site.readiness.set(Latch::PlanTopic, false, "topic keyheat.plan.v1 is missing; run 'keyheat topics create'");
    let body = site.get("/readyz").json();
    assert_eq!(body["waiting_for"][0]["latch"], "plan_topic");
    assert!(body["waiting_for"][0]["detail"].as_str().unwrap().contains("topics create"));
}

#[test]
fn status_tells_the_whole_state() {
    let status = filled().get("/v1/status").json();
    assert_eq!(
        (status["at"].as_str(), status["config"].as_str()),
        (Some("2026-11-30T10:11:32.120Z"), Some("00000000000000a7"))
    );
    assert_eq!((status["control"]["epoch"].as_u64(), status["control"]["leader"].as_bool()), (Some(3), Some(true)));
    assert_eq!(status["keyspaces"][0]["plans"]["moving"], 1);
    assert_eq!(status["keyspaces"][0]["windows"][1]["window_ms"], 60_000);
    assert_eq!(status["input"]["records_refused"]["not_json"], 0);
    assert_eq!(status["routers"]["listed"][0]["id"], "r\n1");
    assert_eq!(status["ready"], false);
}

#[test]
fn a_window_says_by_which_rules_it_is_judged_and_from_when_on_all_is_found() {
    let status = filled().get("/v1/status").json();
    let window = &status["keyspaces"][0]["windows"][0];
    assert_eq!(
        (window["recall_above"].as_u64(), window["complete_from"].as_str()),
        (Some(40), Some("2026-11-30T10:11:40.000Z"))
    );
    let rules = window["rules"].as_array().unwrap();
    let told = |field: &str| rules.iter().map(|rule| rule[field].clone()).collect::<Vec<_>>();
    assert_eq!(told("rule"), ["absolute", "relative", "share"]);
    assert_eq!(serde_json::json!(told("hot_from")), serde_json::json!([500, null, null]));
    assert_eq!(serde_json::json!(told("suspect_from")), serde_json::json!([500, null, 60]));
    assert_eq!(serde_json::json!(told("not_applicable")), serde_json::json!([null, "few_keys", "window_not_full"]));
    assert_eq!(serde_json::json!(told("keys_needed")), serde_json::json!([null, 8, null]));
}

#[test]
fn a_hot_shard_names_its_cause_and_the_keys_behind_it() {
    let shards = filled().get("/v1/shards?keyspace=customer").json();
    let [hot, cold] = [0, 1].map(|row: usize| shards["keyspaces"][0]["shards"][row].clone());
    assert_eq!(
        (hot["cause"].as_str(), hot["sampled"].as_u64(), hot["fresh"].as_f64()),
        (Some("few_keys"), Some(80), Some(0.25))
    );
    assert_eq!(
        hot["keys"],
        serde_json::json!([
            { "key": "c42", "share": { "lower": 0.5, "upper": 0.625 } },
            { "key_b64": "/w==", "share": { "lower": 0.25, "upper": 0.25 } },
        ])
    );
    assert!(cold["cause"].is_null() && cold["keys"].as_array().unwrap().is_empty(), "{cold}");
    for display in [KeyDisplay::Off, KeyDisplay::Hash { secret: [7; 16] }] {
        let body = filled_for(|telemetry, _| telemetry.key_display = display).get("/v1/shards").body;
        assert!(body.contains("few_keys") && !body.contains("c42") && !body.contains("/w=="), "{body}");
    }
}

#[test]
fn lists_are_filtered_by_keyspace_and_cut() {
    let site = filled();
    let all = site.get("/v1/hot-keys").json();
    assert_eq!(all["keyspaces"].as_array().unwrap().len(), 2);
    let keys = &all["keyspaces"][0]["keys"];
    assert_eq!((keys[0]["key"].as_str(), keys[1]["key_b64"].as_str()), (Some("c42"), Some("/w==")));
    assert_eq!((keys[0]["count"]["lower"].as_u64(), keys[0]["count"]["upper"].as_u64()), (Some(100), Some(110)));
    let one = site.get("/v1/hot-keys?keyspace=customer&limit=1").json();
    assert_eq!(one["keyspaces"][0]["keys"].as_array().unwrap().len(), 1);
    assert_eq!(one["keyspaces"][0]["hot"], 2);
    let shards = site.get("/v1/shards?keyspace=customer").json();
    assert_eq!((shards["keyspaces"][0]["shards"][0]["shard"].as_str()), Some("s2"));
    assert_eq!(shards["keyspaces"][0]["median_count"], 20);
    let plan = &site.get("/v1/plans").json()["keyspaces"][0]["plans"][0];
    assert_eq!((plan["state"].as_str(), plan["write"]["buckets"].as_u64()), (Some("moving"), Some(8)));
    assert_eq!(plan["read"][1]["layout"], 0);
    let (predicted, measured) = (&plan["hottest_bucket_share"], &plan["outcome"]["hottest_bucket_share"]);
    assert_eq!((predicted.as_f64(), measured.as_f64()), (Some(0.131), Some(0.14)));
    assert_eq!((&plan["hottest_shard_before"], &plan["outcome"]["helped"]), (&0.46.into(), &true.into()));
}

#[test]
fn wrong_questions_get_words() {
    let site = filled();
    for (path, status, word) in [
        ("/v1/hot-keys?keyspace=nobody", 404, "customer, object"),
        ("/v1/hot-keys?limit=many", 400, "limit"),
        ("/v1/hot-keys?limits=1", 400, "limits"),
        ("/v2", 404, "no such path"),
    ] {
        let answer = site.get(path);
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.json()["error"].as_str().unwrap().contains(word), "{path}: {}", answer.body);
    }
    assert!(site.get("/").body.contains("/v1/plans"));
}
