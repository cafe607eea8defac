//! Rules that change while the engine counts.

use keyheat::engine::{Change, Engine, FixedSetting, KeyspaceSettings, RuleOverride, Subject, Verdict};
use keyheat::input::AccessEvent;
use keyheat::units::Partition;

use crate::oracle::{absolute, at, settings, window};

/// 5/s of `acme:1` and 30/s of 30 other keys for `seconds`, from the second on.
fn feed(engine: &mut Engine, seconds: std::ops::Range<i64>) {
    let mut send = |ms: i64, key: &str| {
        let mut event = AccessEvent::new(at(ms), key.as_bytes());
        event.keys.0[1] = key.as_bytes();
        engine.handle_event(Partition(0), &event, at(ms)).unwrap();
    };
    for ms in (seconds.start * 1_000..seconds.end * 1_000).step_by(200) {
        send(ms, "acme:1");
        (0..6).for_each(|lane| send(ms, &format!("other:{}", ms / 200 % 5 * 6 + lane)));
    }
}

fn said(engine: &mut Engine) -> Vec<Verdict> {
    std::iter::from_fn(|| engine.poll_verdict()).collect()
}

/// Two keyspaces of one key, with a threshold of 10/s.
fn two() -> (Engine, Vec<KeyspaceSettings>) {
    let mut both = settings(&[window(10_000, 1_000)], &[absolute(10.0)]);
    let mut second = both.keyspaces[0].clone();
    second.name = "second".to_owned();
    both.keyspaces.push(second);
    let keyspaces = both.keyspaces.clone();
    (Engine::new(both), keyspaces)
}

fn own(keys: &str, per_s: f64) -> RuleOverride {
    RuleOverride { keys: keys.parse().unwrap(), rules: vec![absolute(per_s)] }
}

#[test]
fn a_lower_threshold_of_a_pattern_is_in_force_at_once_and_nothing_is_counted_anew() {
    let (mut engine, mut keyspaces) = two();
    feed(&mut engine, 0..20);
    assert_eq!(said(&mut engine), []);
    let digest = engine.digest(0);

    keyspaces[0].overrides = vec![own("acme:*", 4.0)];
    engine.set_all_rules(&keyspaces).unwrap();
    let [hot] = &said(&mut engine)[..] else { panic!("one verdict") };
    assert_eq!((hot.keyspace, hot.change, &hot.subject), (0, Change::Hot, &Subject::Key((*b"acme:1").into())));
    assert_eq!((hot.reason.threshold, hot.reason.count.lower), (40, 50), "the window as it was counted");
    assert_eq!((hot.at, engine.digest(0)), (at(19_000), digest));
    // At 5/s it was above an eighth of the threshold before: every key that the new rules find had counters of its own.
    assert_eq!(engine.status(0).windows[0].complete_from, None);

    // The other keys' threshold falls far below what made a key a candidate: 1/s by the new rules, 1.25/s by the old ones.
    keyspaces[0].key_rules = vec![absolute(1.0)];
    engine.set_all_rules(&keyspaces).unwrap();
    let status = engine.status(0);
    let from = status.windows[0].complete_from.expect("one window has to pass");
    assert!(status.recall_above.is_some() && from > at(19_800) && from <= at(31_000), "{from}");
    feed(&mut engine, 20..32);
    let hot = engine.hot_keys(0).iter().filter(|key| key.hot_since.is_some()).count();
    assert_eq!((hot, engine.status(0).recall_above), (31, None));
    assert_eq!(engine.status(0).windows[0].complete_from, None);
    assert_eq!(engine.hot_keys(1), []);
}

#[test]
fn all_keyspaces_change_or_none() {
    let (mut engine, keyspaces) = two();
    feed(&mut engine, 0..20);
    let mut new = keyspaces.clone();
    new[0].key_rules = vec![absolute(1.0)];
    new[1].windows = vec![window(20_000, 1_000)];
    let refused = engine.set_all_rules(&new).unwrap_err();
    assert_eq!(refused, FixedSetting { keyspace: "second".to_owned(), setting: "windows" });
    assert_eq!(engine.set_all_rules(&new[..1]).unwrap_err().setting, "number of keyspaces");
    assert_eq!((said(&mut engine), engine.hot_keys(0)), (Vec::new(), Vec::new()));

    new[1].windows.clone_from(&keyspaces[1].windows);
    new[1].key_rules = vec![absolute(4.0)];
    engine.set_all_rules(&new).unwrap();
    assert_eq!(engine.hot_keys(1).len(), 1);
    // And back: heat ends only by the clear level of the rules in force, after its time.
    engine.set_all_rules(&keyspaces).unwrap();
    feed(&mut engine, 20..80);
    assert_eq!(engine.hot_keys(1), []);
    assert_eq!(
        said(&mut engine).iter().filter(|verdict| verdict.change == Change::Cleared && verdict.keyspace == 1).count(),
        1
    );
}
