//! Commands over HTTP: who may give them, and what they are answered.

use std::thread;

use keyheat::observe::{Answer, Command, Desk, Orders, Token, commands};
use keyheat::protocol::PlanKey;
use keyheat::telemetry::Metric;

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
                    order.answer(answer);
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
