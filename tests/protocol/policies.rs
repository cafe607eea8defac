//! Policies under the fold: the fence holds for them, they are no plans, and one that cannot be read changes nothing.

use keyheat::protocol::{
    Applied, Digest, KeyField, LogRecord, MAX_OTHERS, Pin, PlanKey, PlanTable, PlanTopicKey, Policy, RefusedRecord,
    SCHEMA, Version,
};
use keyheat::units::Offset;
use proptest::prelude::*;

use super::log::{DECIDED_AT, Log, customer, headers, time, version};

fn pinned(key: &str, buckets: u32) -> Policy {
    Policy {
        schema: SCHEMA,
        keyspace: "customer".into(),
        key: KeyField(key.as_bytes().to_vec()),
        block: false,
        pin: Some(Pin { buckets, from: None, until: None }),
        decided_at: DECIDED_AT.into(),
        reason: None,
    }
}

fn record(at: Version, nonce: u64, key: &str, value: Option<Vec<u8>>) -> LogRecord {
    let key = PlanTopicKey::Policy(customer(key));
    let headers = headers(&key, at, nonce, value.is_some());
    LogRecord::new(Offset(i64::try_from(at.seq).unwrap()), key.to_bytes(), value, &headers)
}

fn led() -> PlanTable {
    let mut log = Log::default();
    log.claim(1, 7);
    log.fold()
}

#[test]
fn a_policy_comes_changes_and_goes_and_is_in_no_digest() {
    let mut table = led();
    for (seq, buckets) in [(1, 8), (2, 16)] {
        let applied = table.apply(&record(version(1, seq), 7, "a", Some(pinned("a", buckets).encode())));
        let Applied::Policy { key, entry } = applied else { panic!("{applied:?}") };
        assert_eq!((key, entry.version, &entry.policy), (customer("a"), version(1, seq), &pinned("a", buckets)));
    }
    assert_eq!((table.policies().len(), table.plans().len(), table.digest()), (1, 0, Digest::default()));
    let gone = table.apply(&record(version(1, 3), 7, "a", None));
    assert_eq!(gone, Applied::PolicyRemoved { key: customer("a"), version: version(1, 3) });
    assert_eq!((table.policies().len(), table.last_version()), (0, version(1, 3)));
}

/// What an operator says reaches the table through the leader alone; a stale word that is the last of its key is answered.
#[test]
fn a_superseded_leader_sets_nothing_and_its_record_is_answered() {
    let mut table = led();
    let kept = pinned("a", 8).encode();
    table.apply(&record(version(1, 1), 7, "a", Some(kept.clone())));
    let stale = table.apply(&record(version(1, 2), 8, "a", None));
    assert!(matches!(stale, Applied::Refused { reason: RefusedRecord::NotLeader(_), .. }));
    let key = PlanTopicKey::Policy(customer("a"));
    assert_eq!(table.shadowed().map(|(shadowed, _)| shadowed).collect::<Vec<_>>(), [&key]);
    assert_eq!(table.answer(&key), Some(kept.clone()));
    table.apply(&record(version(1, 2), 7, "a", Some(kept)));
    assert_eq!((table.shadowed().len(), table.policies().len()), (0, 1));
    let late = table.apply(&record(version(1, 1), 7, "b", None));
    assert!(matches!(late, Applied::Refused { reason: RefusedRecord::OldVersion { .. }, .. }));
    assert_eq!(table.shadowed().len(), 0, "a tombstone of what is not there leaves the log as the table has it");
}

#[test]
fn one_that_cannot_be_read_leaves_the_one_that_is_there() {
    let good = pinned("a", 8);
    let of = |change: fn(&mut Policy)| {
        let mut policy = good.clone();
        change(&mut policy);
        policy.encode()
    };
    let spans = |from: &str, until: &str| {
        let pin = Pin { buckets: 8, from: Some(from.into()), until: Some(until.into()) };
        Policy { pin: Some(pin), ..good.clone() }.encode()
    };
    for (value, label) in [
        (b"{".to_vec(), "json"),
        (vec![b' '; 4097], "too_long"),
        (of(|policy| policy.schema = 2), "schema"),
        (of(|policy| policy.keyspace = "object".into()), "key_mismatch"),
        (of(|policy| policy.block = true), "shape"),
        (of(|policy| policy.pin = None), "shape"),
        (of(|policy| policy.reason = Some("é".repeat(257))), "shape"),
        (of(|policy| policy.pin = Some(Pin { buckets: 1, from: None, until: None })), "shape"),
        (of(|policy| policy.pin = Some(Pin { buckets: 12, from: None, until: None })), "shape"),
        (of(|policy| policy.pin = Some(Pin { buckets: 512, from: None, until: None })), "shape"),
        (spans("2026-11-27T00:00:00Z", "tomorrow"), "shape"),
        (spans("2026-11-27T00:00:00Z", "2026-11-27T00:00:00Z"), "shape"),
        (spans("2026-11-27T00:00:00Z", "2026-11-27T00:30:00+01:00"), "shape"),
    ] {
        let mut table = led();
        table.apply(&record(version(1, 1), 7, "a", Some(good.encode())));
        let applied = table.apply(&record(version(1, 2), 7, "a", Some(value.clone())));
        let Applied::Refused { reason, .. } = applied else { panic!("accepted: {}", String::from_utf8_lossy(&value)) };
        assert_eq!(reason.label(), label, "{}", String::from_utf8_lossy(&value));
        assert_eq!(table.policy(&customer("a")).unwrap().policy, good);
        assert_eq!((table.last_version(), table.shadowed().len()), (version(1, 2), 0));
        assert_eq!(table.unreadable().len(), 0, "no plan of a key is in doubt: routers refuse nothing");
    }
}

#[test]
fn a_table_holds_so_many_and_no_more() {
    let mut table = led();
    for number in 0..=MAX_OTHERS {
        let key = format!("k{number}");
        let seq = u64::try_from(number).unwrap() + 1;
        let applied = table.apply(&record(version(1, seq), 7, &key, Some(pinned(&key, 2).encode())));
        let full = matches!(applied, Applied::Refused { reason: RefusedRecord::TooMany(MAX_OTHERS), .. });
        assert_eq!(full, number == MAX_OTHERS, "{number}");
    }
    let last = u64::try_from(MAX_OTHERS).unwrap() + 2;
    let changed = table.apply(&record(version(1, last), 7, "k0", Some(pinned("k0", 4).encode())));
    assert!(matches!(changed, Applied::Policy { .. }), "one that is there may change");
}

#[test]
fn a_pin_lasts_from_its_first_moment_to_before_its_last() {
    let at = |after| Some(time(after).to_rfc3339());
    let span = Pin { buckets: 8, from: at(0), until: at(1000) };
    let lasts = |pin: &Pin| [-1, 0, 999, 1000].map(|after| pin.lasts_at(time(after)));
    assert_eq!(lasts(&span), [false, true, true, false]);
    assert_eq!(lasts(&Pin { from: None, ..span.clone() }), [true, true, true, false]);
    assert_eq!(lasts(&Pin { until: None, ..span.clone() }), [false, true, true, true]);
    assert_eq!([999, 1000].map(|after| span.is_over_at(time(after))), [false, true]);
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic_and_what_reads_is_written_the_same(
        text in "[{}\\[\\]\",:a-z0-9 ]{0,60}",
        buckets in prop::sample::select(vec![0_u32, 1, 2, 3, 8, 256, 257]),
        times in prop::array::uniform2(prop::option::of(prop::sample::select(vec!["2026-11-27T00:00:00Z", "9999-12-31T23:59:59Z", "-009999-01-02T00:00:00Z", "x"]))),
    ) {
        prop_assert!(Policy::decode(&customer("a"), text.as_bytes()).is_err(), "{}", text);
        let [from, until] = times.map(|time| time.map(str::to_owned));
        let policy = Policy { pin: Some(Pin { buckets, from, until }), ..pinned("a", 2) };
        match Policy::decode(&PlanKey::new("customer", b"a"), &policy.encode()) {
            Ok(read) => prop_assert_eq!((read.check(), &read), (Ok(()), &policy)),
            Err(reason) => prop_assert_eq!(reason.label(), "shape"),
        }
    }
}
