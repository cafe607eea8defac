//! Commands over HTTP: who may give them, and what they are answered.

use std::thread;

use keyheat::observe::{Answer, Command, Desk, Orders, Token, commands};
use keyheat::plan::{Disobeyed, Effect, Wish, Word};
use keyheat::protocol::{PlanKey, State};
use keyheat::telemetry::Metric;
use keyheat::units::EventTime;

use crate::client::{Site, site};

const TOKEN: &str = "0123456789abcdef";

fn desk() -> (Site, Orders) {
    let (give, orders) = commands();
    (site(|_, http| http.desk = Some(Desk { token: Token::new(TOKEN).unwrap(), commands: give })), orders)
}

fn post(site: &Site, path: &str, head: &str, body: &str) -> (u16, String) {
    let length = body.len();
    let answer = site.send(&format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\n{head}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    ));
    assert!(!answer.head.contains("access-control-allow"), "{}", answer.head);
    (answer.status, answer.body)
}

/// Carries out so many commands, all with this answer.
fn carry_out(mut orders: Orders, number: usize, answer: Answer) -> thread::JoinHandle<Vec<Command>> {
    thread::spawn(move || {
        let mut done = Vec::new();
        while done.len() < number {
            match orders.poll() {
                Some(order) => {
                    done.push(order.command.clone());
                    order.answer(answer.clone());
                }
                None => thread::yield_now(),
            }
        }
        done
    })
}

fn allowed() -> String {
    format!("authorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\n")
}

#[test]
fn commands_reach_the_leader_and_are_answered() {
    let (site, orders) = desk();
    let leader = carry_out(orders, 4, Answer::Done);
    let bodies = [
        ("/v1/plans/approve", r#"{"keyspace":"customer","key":"c42"}"#),
        ("/v1/plans/approve", r#"{"keyspace":"customer","key_b64":"/w=="}"#),
        ("/v1/freeze", r#"{"frozen":true}"#),
        ("/v1/freeze", r#"{"frozen":false}"#),
    ];
    for (path, body) in bodies {
        assert_eq!(post(&site, path, &allowed(), body), (200, r#"{"done":true}"#.to_owned()), "{body}");
    }
    let keys = [PlanKey::new("customer", b"c42"), PlanKey::new("customer", &[0xff])];
    let [text, bytes] = keys.map(Command::Approve);
    assert_eq!(leader.join().unwrap(), [text, bytes, Command::Freeze(true), Command::Freeze(false)]);
}

#[test]
fn without_the_token_nothing_is_carried_out() {
    let (site, mut orders) = desk();
    let body = r#"{"frozen":true}"#;
    let json = "content-type: application/json\r\n";
    for head in [
        json.to_owned(),
        format!("{json}authorization: Bearer {TOKEN}0\r\n"),
        format!("{json}authorization: {TOKEN}\r\n"),
    ] {
        let (status, text) = post(&site, "/v1/freeze", &head, body);
        assert_eq!(status, 401, "{text}");
        assert!(text.contains("observe.token_file"), "{text}");
    }
    assert_eq!(site.telemetry.total(Metric::HttpRefused), 3);
    // A form that a page of another origin could send is not JSON.
    let (status, _) = post(&site, "/v1/freeze", &allowed().replace("application/json", "text/plain"), body);
    assert_eq!(status, 400);
    for wrong in ["", "{}", r#"{"frozen":1}"#, r#"{"frozen":true,"more":1}"#] {
        assert_eq!(post(&site, "/v1/freeze", &allowed(), wrong).0, 400, "{wrong}");
    }
    for wrong in [r#"{"keyspace":"customer"}"#, r#"{"keyspace":"customer","key":"a","key_b64":"/w=="}"#] {
        assert_eq!(post(&site, "/v1/plans/approve", &allowed(), wrong).0, 400, "{wrong}");
    }
    assert!(orders.poll().is_none());
    let (status, text) = post(&crate::client::site(|_, _| {}), "/v1/freeze", &allowed(), body);
    assert_eq!(status, 403, "{text}");
}

#[test]
fn a_command_that_cannot_be_carried_out_says_why() {
    let body = r#"{"keyspace":"customer","key":"c42"}"#;
    for (answer, status, word) in [(Answer::NotLeading, 409, "leader"), (Answer::NothingProposed, 404, "no proposal")] {
        let (site, orders) = desk();
        let leader = carry_out(orders, 1, answer);
        let (told, text) = post(&site, "/v1/plans/approve", &allowed(), body);
        assert_eq!(told, status);
        assert!(text.contains(word), "{text}");
        leader.join().unwrap();
    }
    let (site, orders) = desk();
    drop(orders);
    assert_eq!(post(&site, "/v1/plans/approve", &allowed(), body).0, 503);
}

#[test]
fn words_on_keys_reach_the_leader_and_say_what_they_did() {
    let (site, orders) = desk();
    let bodies = [
        ("pin", r#"{"keyspace":"customer","key":"c42","buckets":8,"from":"2026-11-27T01:00:00+01:00","until":null}"#),
        ("unpin", r#"{"keyspace":"customer","key_b64":"/w=="}"#),
        ("block", r#"{"keyspace":"customer","key":"c42","reason":"one tenant, one shard"}"#),
        ("unblock", r#"{"keyspace":"customer","key":"c42"}"#),
        ("withdraw", r#"{"keyspace":"customer","key":"c42"}"#),
        ("withdraw", r#"{"keyspace":"customer","key":"c42","block":true}"#),
    ];
    let leader = carry_out(orders, bodies.len(), Answer::Told(Effect::TurnedRound));
    for (action, body) in bodies {
        let done = post(&site, &format!("/v1/plans/{action}"), &allowed(), body);
        assert_eq!(done, (200, r#"{"done":true,"effect":"turned_round"}"#.to_owned()), "{action}");
    }
    let from = EventTime::from_millis(1_795_737_600_000).unwrap();
    assert_eq!(from.to_rfc3339(), "2026-11-27T00:00:00.000Z");
    let word = |key: &[u8], wish, reason: Option<&str>| {
        Command::Tell(Word { key: PlanKey::new("customer", key), wish, reason: reason.map(str::to_owned) })
    };
    let expected = [
        word(b"c42", Wish::Pin { buckets: 8, from: Some(from), until: None }, None),
        word(&[0xff], Wish::Unpin, None),
        word(b"c42", Wish::Block, Some("one tenant, one shard")),
        word(b"c42", Wish::Unblock, None),
        word(b"c42", Wish::Withdraw { block: false }, None),
        word(b"c42", Wish::Withdraw { block: true }, None),
    ];
    assert_eq!(leader.join().unwrap(), expected);
}

/// A slip in a name must not make a pin without an end.
#[test]
fn a_word_with_a_slip_in_it_is_not_heard() {
    let (site, mut orders) = desk();
    let key = r#""keyspace":"customer","key":"c42""#;
    for (action, rest, word) in [
        ("pin", r#","buckets":8,"untill":"2026-11-27T00:00:00Z""#, "untill"),
        ("pin", r#","buckets":8,"until":"2026-11-27""#, "RFC 3339"),
        ("pin", r#","buckets":8,"until":"2026-11-27T00:00:00""#, "RFC 3339"),
        ("pin", r#","buckets":-8"#, "u32"),
        ("pin", "", "buckets"),
        ("unpin", r#","buckets":8"#, "buckets"),
        ("withdraw", r#","blok":true"#, "blok"),
        ("withdraw", r#","block":"yes""#, "boolean"),
        ("approve", r#","all":true"#, "all"),
    ] {
        let (status, text) = post(&site, &format!("/v1/plans/{action}"), &allowed(), &format!("{{{key}{rest}}}"));
        assert_eq!(status, 400, "{action} {rest}: {text}");
        assert!(text.contains(word), "{action} {rest}: {text}");
    }
    assert!(orders.poll().is_none());
    let no_token = "content-type: application/json\r\n";
    assert_eq!(post(&site, "/v1/plans/block", no_token, &format!("{{{key}}}")).0, 401);
}

#[test]
fn a_word_that_is_not_obeyed_says_why() {
    let body = r#"{"keyspace":"customer","key":"c42"}"#;
    for (disobeyed, status, word) in [
        (Disobeyed::Buckets(3), 400, "power of two"),
        (Disobeyed::NotPinned, 404, "not pinned"),
        (Disobeyed::GoesForward(State::Dual), 409, "goes forward"),
        (Disobeyed::Frozen, 409, "unfreeze"),
        (Disobeyed::TooMany, 503, "try again"),
    ] {
        let (site, orders) = desk();
        let leader = carry_out(orders, 1, Answer::Disobeyed(disobeyed));
        let (told, text) = post(&site, "/v1/plans/unpin", &allowed(), body);
        assert_eq!(told, status, "{text}");
        assert!(text.contains(word), "{text}");
        leader.join().unwrap();
    }
}
