//! What is known of one key: for who has its name.

use std::thread;

use keyheat::observe::{Asked, Desk, KeyKnown, RouterKnown, Token, commands, questions};
use keyheat::plan::{Hindrance, migration::Wait};
use keyheat::protocol::{KeyField, Pin, PlanKey, Policy, PolicyEntry, SCHEMA, Version};
use keyheat::telemetry::{KeyDisplay, View};
use keyheat::units::EventTime;

use crate::client::{Site, site};

const NOW_MS: i64 = 1_795_737_600_000;

fn desk() -> (Site, Asked) {
    let (ask, asked) = questions();
    let site = site(|_, http| http.questions = Some(ask));
    let view = View { at: EventTime::from_millis(NOW_MS).ok(), ..site.view() };
    site.telemetry.publish(view);
    (site, asked)
}

fn pinned(from: &str) -> KeyKnown {
    let pin = Pin { buckets: 8, from: Some(from.to_owned()), until: None };
    let policy = Policy {
        schema: SCHEMA,
        keyspace: "customer".into(),
        key: KeyField(b"c42".to_vec()),
        block: false,
        pin: Some(pin),
        decided_at: "2026-11-20T08:00:00.000Z".into(),
        reason: None,
    };
    let version = Version { epoch: 3, seq: 22 };
    let router = |id: &str, acknowledged, refusal: Option<&str>| RouterKnown {
        id: id.to_owned(),
        applied: version,
        acknowledged,
        refusal: refusal.map(str::to_owned),
    };
    KeyKnown {
        leads: true,
        routers: vec![router("r1", true, None), router("r2", false, Some("hash"))],
        policy: Some(PolicyEntry { version, policy, value: Vec::new() }),
        hindrance: Some(Hindrance::Waits(Wait::Routers)),
        ..KeyKnown::default()
    }
}

/// Answers so many questions, all with this; gives the keys that were asked about.
fn answer(mut asked: Asked, number: usize, known: KeyKnown) -> thread::JoinHandle<Vec<PlanKey>> {
    thread::spawn(move || {
        let mut keys = Vec::new();
        while keys.len() < number {
            match asked.poll() {
                Some(question) => {
                    keys.push(question.key.clone());
                    question.answer(known.clone());
                }
                None => thread::yield_now(),
            }
        }
        keys
    })
}

#[test]
fn everything_known_of_a_key_is_shown() {
    for (from, stands) in [("2026-11-27T00:00:00Z", "in_force"), ("2026-11-27T00:00:01Z", "ahead")] {
        let (site, asked) = desk();
        let leader = answer(asked, 2, pinned(from));
        let shown = site.get("/v1/plans/show?keyspace=customer&key=c%2F4%2B2").json();
        assert_eq!((&shown["key"], &shown["plan"]), (&"c/4+2".into(), &serde_json::Value::Null));
        assert_eq!(shown["policy"]["stands"], stands);
        assert_eq!(shown["policy"]["record"]["pin"]["buckets"], 8);
        assert_eq!(shown["routers"][0]["acknowledged"], true);
        assert_eq!((&shown["routers"][1]["id"], &shown["routers"][1]["refusal"]), (&"r2".into(), &"hash".into()));
        assert_eq!(shown["hindrance"]["reason"], "waits");
        assert_eq!(shown["hindrance"]["text"], "its migration waits for routers");
        let binary = site.get("/v1/plans/show?keyspace=customer&key_b64=%2Fw%3D%3D").json();
        assert_eq!(binary["key_b64"], "/w==");
        let keys = [PlanKey::new("customer", b"c/4+2"), PlanKey::new("customer", &[0xff])];
        assert_eq!(leader.join().unwrap(), keys);
    }
}

/// Where keys are hashed nobody may try out which there are.
#[test]
fn where_keys_are_hidden_it_needs_the_token() {
    let (ask, asked) = questions();
    let (give, _orders) = commands();
    let token = "0123456789abcdef";
    let site = site(|telemetry, http| {
        telemetry.key_display = KeyDisplay::Hash { secret: [7; 16] };
        http.questions = Some(ask);
        http.desk = Some(Desk { token: Token::new(token).unwrap(), commands: give });
    });
    site.telemetry.publish(site.view());
    let path = "/v1/plans/show?keyspace=customer&key=c42";
    let refused = site.get(path);
    assert_eq!(refused.status, 401, "{}", refused.body);
    let leader = answer(asked, 1, pinned("2026-11-27T00:00:00Z"));
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n");
    assert_eq!(site.send(&request).json()["policy"]["record"]["key"], "c42");
    leader.join().unwrap();
}

#[test]
fn what_cannot_be_asked_is_refused_with_the_rule() {
    let (site, mut asked) = desk();
    for (query, status, word) in [
        ("keyspace=orders&key=c42", 404, "customer, object"),
        ("keyspace=customer", 400, "key_b64"),
        ("keyspace=customer&key=a&key_b64=YQ==", 400, "key_b64"),
        ("keyspace=customer&key_b64=!", 400, "base64"),
        ("key=c42", 400, "keyspace"),
        ("keyspace=customer&key=c42&more=1", 400, "more"),
    ] {
        let answer = site.get(&format!("/v1/plans/show?{query}"));
        assert_eq!(answer.status, status, "{query}: {}", answer.body);
        assert!(answer.body.contains(word), "{query}: {}", answer.body);
    }
    assert!(asked.poll().is_none());
    drop(asked);
    assert_eq!(site.get("/v1/plans/show?keyspace=customer&key=c42").status, 503);
}
