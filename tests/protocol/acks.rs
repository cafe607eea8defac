//! The fold of the acks topic: who is registered, what counts as acknowledged, and reports of the right migration only.

use keyheat::protocol::{
    AckApplied, AckTable, AckTopicKey, BackfillReport, Contradiction, Digest, KeyField, LogRecord, MAX_ACK_BYTES,
    Nonce, RefusedKey, RetiredReport, RouterAck, SCHEMA, Version, WaitingKey,
};
use keyheat::units::Offset;
use proptest::prelude::*;

use super::log::{DECIDED_AT, Log, customer, version};

pub(crate) fn ack(id: &str, nonce: u64, applied: Version) -> RouterAck {
    RouterAck {
        schema: SCHEMA,
        id: id.into(),
        nonce: Nonce(nonce),
        applied,
        digest: Digest::default(),
        waiting: Vec::new(),
        more_waiting: false,
        refusals: Vec::new(),
        more_refused: false,
        time: DECIDED_AT.into(),
        unknown_until: None,
    }
}

pub(crate) fn waiting(key: &str, version: Version) -> WaitingKey {
    WaitingKey { keyspace: "customer".into(), key: KeyField(key.as_bytes().to_vec()), version }
}

fn record(key: &AckTopicKey, value: Option<Vec<u8>>) -> LogRecord {
    LogRecord { offset: Offset(0), key: key.to_bytes(), value, headers: Vec::new(), log_time: None }
}

fn say(table: &mut AckTable, ack: &RouterAck) -> AckApplied {
    table.apply(&record(&AckTopicKey::Router { id: ack.id.clone(), nonce: ack.nonce }, Some(ack.encode())))
}

#[test]
fn a_version_is_acknowledged_when_every_router_has_it_and_the_key_does_not_wait() {
    let mut table = AckTable::new();
    let (key, wanted) = (customer("a"), version(2, 5));
    say(&mut table, &ack("r1", 1, version(2, 5)));
    say(&mut table, &ack("r2", 2, version(2, 4)));
    assert!(!table.acknowledged(&key, wanted));
    assert_eq!(table.stragglers(&key, wanted).map(|router| router.ack.id.as_str()).collect::<Vec<_>>(), ["r2"]);
    say(&mut table, &RouterAck { waiting: vec![waiting("a", wanted)], ..ack("r2", 2, version(2, 6)) });
    assert!(!table.acknowledged(&key, wanted));
    assert!(table.acknowledged(&customer("b"), wanted), "a gate looks at its key alone");
    say(&mut table, &ack("r2", 2, version(2, 6)));
    assert!(table.acknowledged(&key, wanted));
}

#[test]
fn routers_with_one_id_are_two_members_and_a_tombstone_ends_one() {
    let mut table = AckTable::new();
    let wanted = version(1, 1);
    assert!(matches!(say(&mut table, &ack("r1", 1, wanted)), AckApplied::Router { joined: true, .. }));
    assert!(matches!(say(&mut table, &ack("r1", 2, version(0, 0))), AckApplied::Router { joined: true, .. }));
    assert!(matches!(say(&mut table, &ack("r1", 1, wanted)), AckApplied::Router { joined: false, .. }));
    assert_eq!(table.routers().len(), 2);
    assert!(!table.acknowledged(&customer("a"), wanted));
    let left = table.apply(&record(&AckTopicKey::Router { id: "r1".into(), nonce: Nonce(2) }, None));
    assert_eq!(left, AckApplied::Left { id: "r1".into(), nonce: Nonce(2) });
    assert!(table.acknowledged(&customer("a"), wanted));
}

#[test]
fn a_refusal_is_no_acknowledgement_and_gives_its_reason() {
    let mut table = AckTable::new();
    let refused = RefusedKey {
        keyspace: "customer".into(),
        key: KeyField(b"a".to_vec()),
        version: version(1, 3),
        reason: "hash".into(),
    };
    say(&mut table, &RouterAck { refusals: vec![refused], ..ack("r1", 1, version(1, 9)) });
    assert!(!table.acknowledged(&customer("a"), version(1, 3)));
    assert_eq!(table.refusal(&customer("a"), version(1, 3)), Some("hash"));
    assert_eq!(table.refusal(&customer("a"), version(1, 4)), None);
    assert!(table.acknowledged(&customer("b"), version(1, 3)));
}

#[test]
fn a_list_that_is_cut_acknowledges_nothing() {
    let long = "k".repeat(400);
    let many: Vec<_> = (0..400).map(|number| waiting(&format!("{long}{number}"), version(1, 1))).collect();
    let mut table = AckTable::new();
    let ack = RouterAck { waiting: many, ..ack("r1", 1, version(1, 1)) };
    assert!(ack.encode().len() <= MAX_ACK_BYTES);
    say(&mut table, &ack);
    let said = &table.routers().next().unwrap().ack;
    assert!(said.more_waiting && said.waiting.len() < 400);
    assert!(!table.acknowledged(&customer("other"), version(1, 1)));
}

#[test]
fn reports_count_for_their_own_migration_only() {
    let report = BackfillReport {
        schema: SCHEMA,
        keyspace: "customer".into(),
        key: KeyField(b"a".to_vec()),
        layout: 1,
        migration: version(1, 3),
        moved: 10,
        expected: 10,
        checksum_from: "ab".into(),
        checksum_to: "ab".into(),
        done: true,
        time: DECIDED_AT.into(),
    };
    assert!(report.proves(version(1, 3)));
    assert!(!report.proves(version(1, 9)), "an earlier migration into the same layout");
    for wrong in [
        BackfillReport { moved: 9, ..report.clone() },
        BackfillReport { checksum_to: "cd".into(), ..report.clone() },
        BackfillReport { checksum_from: String::new(), checksum_to: String::new(), ..report.clone() },
        BackfillReport { done: false, ..report.clone() },
    ] {
        assert!(!wrong.proves(version(1, 3)), "{wrong:?}");
    }
    let key = AckTopicKey::Backfill { key: customer("a"), layout: 1 };
    let mut table = AckTable::new();
    table.apply(&record(&key, Some(report.encode())));
    assert_eq!(table.backfill(&customer("a"), 1), Some(&report));
    assert_eq!(table.backfill(&customer("a"), 2), None);
    let other = AckTopicKey::Backfill { key: customer("a"), layout: 2 };
    assert!(matches!(table.apply(&record(&other, Some(report.encode()))), AckApplied::Refused { .. }));
    table.apply(&record(&key, None));
    assert_eq!(table.backfill(&customer("a"), 1), None);

    let retired = RetiredReport {
        schema: SCHEMA,
        keyspace: "customer".into(),
        key: KeyField(b"a".to_vec()),
        layout: 0,
        migration: version(1, 3),
        remaining: 0,
        time: DECIDED_AT.into(),
    };
    assert!(retired.proves(version(1, 3)) && !retired.proves(version(1, 4)));
    assert!(!RetiredReport { remaining: 1, ..retired.clone() }.proves(version(1, 3)));
    table.apply(&record(&AckTopicKey::Retired { key: customer("a"), layout: 0 }, Some(retired.encode())));
    assert_eq!(table.retired(&customer("a"), 0), Some(&retired));
}

/// The topic has lost records when a router knows more than it holds: the leader stops.
#[test]
fn a_router_that_knows_more_than_the_log_is_a_contradiction() {
    let mut log = Log::default();
    log.claim(1, 7).plan(1, 7, 1, "a", 4);
    let plans = log.fold();
    let mut table = AckTable::new();
    say(&mut table, &RouterAck { digest: plans.digest(), ..ack("r1", 1, version(1, 1)) });
    assert_eq!(table.contradiction(&plans), None);
    say(&mut table, &ack("r1", 1, version(1, 1)));
    assert_eq!(
        table.contradiction(&plans),
        Some(Contradiction::OtherTable { id: "r1".into(), version: version(1, 1) })
    );
    say(&mut table, &ack("r1", 1, version(1, 2)));
    assert!(matches!(table.contradiction(&plans), Some(Contradiction::Ahead { .. })));
    say(&mut table, &ack("r1", 1, version(0, 0)));
    assert_eq!(table.contradiction(&plans), None, "a router that has just joined");
}

proptest! {
    #[test]
    fn garbage_never_panics_and_registers_nobody(
        key in prop_oneof![prop::collection::vec(any::<u8>(), 0..30), Just(b"router/r1/0000000000000001".to_vec()), Just(b"backfill/customer/a/1".to_vec())],
        value in prop::option::of(prop::collection::vec(any::<u8>(), 0..60)),
    ) {
        let mut table = AckTable::new();
        table.apply(&LogRecord { offset: Offset(0), key, value, headers: Vec::new(), log_time: None });
        prop_assert_eq!(table.routers().len(), 0);
    }
}
