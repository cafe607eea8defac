//! Probes and the API.

use keyheat::engine::ShardLoad;
use keyheat::protocol::{Layout, State, Version};
use keyheat::telemetry::{Latch, PlanView, RouterView};
use keyheat::units::{Estimate, EventTime, Span};

use crate::client::{Site, hot_key, site};

fn filled() -> Site {
    let site = site(|_, _| {});
    let mut view = site.view();
    view.at = EventTime::from_millis(1_796_033_492_120).ok();
    let customer = &mut view.keyspaces[0];
    customer.keys = vec![hot_key(b"c42", 100), hot_key(b"\xFF", 90)];
    customer.hot_keys = 2;
    let load = |name: &str, count| ShardLoad {
        shard: name.as_bytes().into(),
        count: Estimate::exact(count),
        hot_since: None,
        profile: None,
    };
    customer.set_shards(Span::from_secs(10), &[load("s1", 10), load("s2", 90), load("s3", 20)]);
    let split = Layout::split(1, 8, 0).unwrap();
    customer.add_plan(PlanView {
        key: b"c42".to_vec(),
        version: Version { epoch: 3, seq: 7 },
        state: State::Moving,
        write: Some(split),
        read: vec![split, Layout::BARE],
        decided_at: "2026-11-30T10:11:32.120Z".to_owned(),
        hottest_shard: Some((0.46, 0.09)),
        waiting_for: 1,
    });
    view.control.leader = true;
    view.control.version = Version { epoch: 3, seq: 9 };
    let applied = Version { epoch: 3, seq: 8 };
    view.set_routers(vec![RouterView { id: "r\n1".to_owned(), applied, ack_age: Span::from_secs(2), waiting: true }]);
    site.telemetry.publish(view);
    site
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
    assert_eq!(status["at"], "2026-11-30T10:11:32.120Z");
    assert_eq!((status["control"]["epoch"].as_u64(), status["control"]["leader"].as_bool()), (Some(3), Some(true)));
    assert_eq!(status["keyspaces"][0]["plans"]["moving"], 1);
    assert_eq!(status["keyspaces"][0]["windows"][1]["window_ms"], 60_000);
    assert_eq!(status["input"]["records_refused"]["not_json"], 0);
    assert_eq!(status["routers"]["listed"][0]["id"], "r\n1");
    assert_eq!(status["ready"], false);
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
