//! Properties of the fold against the fence's definition, read literally.

use std::collections::BTreeMap;

use keyheat::protocol::{Applied, LogRecord, PlanRecord, PlanTable, PlanTopicKey, RefusedRecord, State, Version};
use keyheat::units::Offset;
use proptest::prelude::*;

use super::log::{Log, contents, customer, digest_anew, plan, time, version};

/// One record of a random log.
#[derive(Debug, Clone)]
enum Entry {
    Claim(u64, u64),
    Plan(u64, u64, u64, &'static str, u32),
    Tombstone(u64, u64, u64, &'static str),
}

fn entry() -> impl Strategy<Value = Entry> {
    let key = || prop::sample::select(vec!["a", "b"]);
    prop_oneof![
        2 => (1_u64..5, 0_u64..3).prop_map(|(epoch, nonce)| Entry::Claim(epoch, nonce)),
        6 => (1_u64..5, 0_u64..3, 1_u64..9, key(), prop::sample::select(vec![2_u32, 4, 8]))
            .prop_map(|(epoch, nonce, seq, key, buckets)| Entry::Plan(epoch, nonce, seq, key, buckets)),
        2 => (1_u64..5, 0_u64..3, 1_u64..9, key()).prop_map(|(epoch, nonce, seq, key)| Entry::Tombstone(epoch, nonce, seq, key)),
    ]
}

fn build(entries: &[Entry]) -> Log {
    let mut log = Log::default();
    for entry in entries {
        match *entry {
            Entry::Claim(epoch, nonce) => log.claim(epoch, nonce),
            Entry::Plan(epoch, nonce, seq, key, buckets) => log.plan(epoch, nonce, seq, key, buckets),
            Entry::Tombstone(epoch, nonce, seq, key) => log.tombstone(epoch, nonce, seq, key),
        };
    }
    log
}

/// The definition: a record counts only if its epoch is the highest claimed before it, its nonce that of the first claim of the
/// epoch, and its version above that of every record that counted before.
fn by_definition(entries: &[Entry]) -> (Vec<bool>, BTreeMap<&'static str, (u32, Version)>) {
    let (mut counts, mut table) = (Vec::new(), BTreeMap::new());
    let mut accepted: Vec<Version> = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let claims = || {
            entries[..at]
                .iter()
                .filter_map(|e| if let Entry::Claim(epoch, nonce) = e { Some((*epoch, *nonce)) } else { None })
        };
        let (Entry::Plan(epoch, nonce, seq, ..) | Entry::Tombstone(epoch, nonce, seq, _)) = *entry else {
            counts.push(false);
            continue;
        };
        let highest = claims().map(|(epoch, _)| epoch).max();
        let winner = claims().find(|(claimed, _)| *claimed == epoch).map(|(_, nonce)| nonce);
        let this = version(epoch, seq);
        let counted = highest == Some(epoch) && winner == Some(nonce) && accepted.iter().all(|before| *before < this);
        counts.push(counted);
        if counted {
            accepted.push(this);
            match *entry {
                Entry::Plan(.., key, buckets) => table.insert(key, (buckets, this)),
                Entry::Tombstone(.., key) => table.remove(key),
                Entry::Claim(..) => None,
            };
        }
    }
    (counts, table)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_fold_is_the_fence_s_definition(entries in prop::collection::vec(entry(), 0..24)) {
        let log = build(&entries);
        let (counts, expected) = by_definition(&entries);
        let outcomes = log.outcomes();
        for ((entry, counted), outcome) in entries.iter().zip(counts).zip(outcomes) {
            match entry {
                Entry::Claim(..) => prop_assert!(matches!(outcome, Applied::Claim { .. }), "a claim"),
                Entry::Plan(..) => prop_assert_eq!(counted, matches!(outcome, Applied::Plan { .. })),
                Entry::Tombstone(..) => prop_assert_eq!(counted, matches!(outcome, Applied::Removed { .. })),
            }
        }
        let table = log.fold();
        let expected: Vec<_> = expected.into_iter().map(|(key, (buckets, version))| (key.to_owned(), buckets, version)).collect();
        prop_assert_eq!(contents(&table), expected);
        prop_assert_eq!(table.digest(), digest_anew(&table));
    }

    /// I2: accepted versions of a key only grow. I3: a superseded publisher changes nothing.
    #[test]
    fn versions_grow_and_a_superseded_publisher_changes_nothing(entries in prop::collection::vec(entry(), 0..24)) {
        let log = build(&entries);
        let mut table = PlanTable::new();
        let mut highest = Version::default();
        for record in &log.0 {
            let before = table.clone();
            match table.apply(record) {
                Applied::Plan { entry, previous, .. } => {
                    prop_assert!(entry.version > highest);
                    prop_assert!(previous.is_none_or(|previous| previous.version < entry.version));
                    highest = entry.version;
                }
                Applied::Removed { version, .. } => {
                    prop_assert!(version > highest);
                    highest = version;
                }
                Applied::Refused { .. } => {
                    prop_assert_eq!(contents(&table), contents(&before));
                    prop_assert_eq!(table.digest(), before.digest());
                    prop_assert_eq!(table.last_version(), before.last_version());
                }
                Applied::Claim { epoch, won, .. } => prop_assert_eq!(table.highest_epoch(), if won { epoch } else { before.highest_epoch() }),
                other => prop_assert!(false, "unexpected {:?}", other),
            }
            prop_assert!(table.last_version() >= before.last_version());
        }
    }

    /// A shadowed key is one whose last record in the log is not the one that the table holds: neither more nor less.
    #[test]
    fn shadowed_keys_are_those_that_the_log_ends_otherwise_for(entries in prop::collection::vec(entry(), 0..24)) {
        let log = build(&entries);
        let table = log.fold();
        for key in ["a", "b"] {
            let topic_key = PlanTopicKey::Plan(customer(key));
            let last = log.0.iter().rfind(|record| record.key == topic_key.to_bytes());
            let held = table.plan(&customer(key));
            let same = match (last, held) {
                (None, None) => true,
                (Some(record), None) => record.value.is_none(),
                (Some(record), Some(entry)) => record.offset == entry.offset,
                (None, Some(_)) => false,
            };
            prop_assert_eq!(table.shadowed().any(|(shadowed, _)| *shadowed == topic_key), !same, "{}", key);
        }
    }

    /// Whatever compaction has taken, a reader from the start holds the same plans, while no key is shadowed and no claim is there twice.
    #[test]
    fn a_compacted_log_gives_the_same_plans(entries in prop::collection::vec(entry(), 0..24)) {
        let log = build(&entries);
        let mut rightful = Log::default();
        let mut tail = PlanTable::new();
        for record in &log.0 {
            let twice = rightful.0.iter().any(|earlier| earlier.key == record.key && earlier.key.starts_with(b"claim"));
            if !twice && !matches!(tail.apply(record), Applied::Refused { .. }) { rightful.0.push(record.clone()); }
        }
        prop_assert_eq!(contents(&rightful.compacted().fold()), contents(&tail));
        prop_assert_eq!(rightful.compacted().fold().digest(), tail.digest());
    }

    #[test]
    fn garbage_never_panics_and_never_counts(
        records in prop::collection::vec((
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..20),
                Just(b"plan/customer/a".to_vec()), Just(b"heartbeat".to_vec()), Just(b"advice/customer/a".to_vec()),
                Just(b"policy/customer/a".to_vec()), Just(b"advice/shard/customer/a".to_vec()),
            ],
            prop::option::of(prop_oneof![
                prop::collection::vec(any::<u8>(), 0..40),
                Just(b"{}".to_vec()), Just(br#"{"schema":1}"#.to_vec()), Just(br#"{"schema":2}"#.to_vec()),
                Just(br#"{"schema":1,"state":"settled","bucket":{"hash":"xxh64-low-bits"}}"#.to_vec()),
            ]),
            prop::collection::vec((prop::sample::select(vec!["kh_epoch", "kh_nonce", "kh_seq", "ce_type"]), prop_oneof![
                Just(b"1".to_vec()), Just(b"0000000000000000".to_vec()), prop::collection::vec(any::<u8>(), 0..18),
            ]), 0..5),
        ), 0..20)
    ) {
        let mut table = PlanTable::new();
        table.apply(&Log::default().claim(1, 0).0[0]);
        for (key, value, headers) in records {
            let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            table.apply(&LogRecord { offset: Offset(0), key, value, headers, log_time: None });
        }
        prop_assert_eq!(table.plans().len(), 0);
    }

    /// A real value with one byte changed is refused, or is a record that passes every check.
    #[test]
    fn a_damaged_value_is_refused_or_whole(at: prop::sample::Index, byte: u8, state in prop::sample::select(State::ALL.to_vec())) {
        let mut value = plan(b"a", 4, state).encode();
        let at = at.index(value.len());
        value[at] = byte;
        if let Ok(record) = PlanRecord::decode(&customer("a"), &value) {
            prop_assert_eq!(record.check(), Ok(()));
            prop_assert_eq!(PlanRecord::decode(&customer("a"), &record.encode()), Ok(record));
        }
    }
}

/// The reason for which the second record of the log is refused; the table is as after the first.
fn refusal_of(value: Vec<u8>) -> (RefusedRecord, PlanTable) {
    let mut log = Log::default();
    log.claim(1, 0).plan(1, 0, 1, "a", 4).value(1, 0, 2, "a", Some(value));
    let Some(Applied::Refused { reason, version: Some(refused), .. }) = log.outcomes().pop() else {
        panic!("accepted");
    };
    assert_eq!(refused, version(1, 2));
    (reason, log.fold())
}

#[test]
fn what_a_reader_does_not_know_is_refused_by_name_and_the_key_keeps_its_record() {
    let text = String::from_utf8(plan(b"a", 8, State::Settled).encode()).unwrap();
    let with = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to).into_bytes()
    };
    for (value, label) in [
        (with(r#""schema":1"#, r#""schema":2"#), "schema"),
        (with(r#""state":"settled""#, r#""state":"frozen""#), "state"),
        (with("xxh64-low-bits", "xxh3-low-bits"), "hash"),
        (with(r#""writes":"update""#, r#""writes":"append""#), "json"),
        (with(r#""key":"a""#, r#""key":"b""#), "key_mismatch"),
        (with("{key}:{label}", "{key}"), "shape"),
        (with(r#""buckets":8"#, r#""buckets":7"#), "json"),
        (with(r#""state":"settled""#, r#""state":"prepare""#), "shape"),
        (b"{".to_vec(), "json"),
        (vec![b' '; 5000], "too_long"),
    ] {
        let (reason, table) = refusal_of(value);
        assert_eq!(reason.label(), label, "{reason}");
        assert!(RefusedRecord::LABELS.contains(&label));
        assert_eq!(contents(&table), [("a".to_owned(), 4, version(1, 1))]);
        let unreadable: Vec<_> =
            table.unreadable().map(|(key, unreadable)| (key.clone(), unreadable.version)).collect();
        assert_eq!(unreadable, [(customer("a"), version(1, 2))]);
        assert_eq!(table.shadowed().len(), 0, "the leader's own record is not to be answered");
    }
}

#[test]
fn the_next_readable_record_ends_the_refusal() {
    let mut log = Log::default();
    log.claim(1, 0).plan(1, 0, 1, "a", 4).value(1, 0, 2, "a", Some(b"{}".to_vec())).plan(1, 0, 3, "a", 8);
    assert_eq!(log.fold().unreadable().len(), 0);
    assert_eq!(contents(&log.fold()), [("a".to_owned(), 8, version(1, 3))]);
}

#[test]
fn unknown_fields_are_ignored() {
    let text = String::from_utf8(plan(b"a", 8, State::Settled).encode()).unwrap();
    let later = text.replace(r#"{"schema":1,"#, r#"{"schema":1,"shadow":{"a":[1]},"#);
    assert_eq!(PlanRecord::decode(&customer("a"), later.as_bytes()), Ok(plan(b"a", 8, State::Settled)));
}

#[test]
fn a_proposal_or_prepare_that_came_too_late_is_void_and_is_to_be_answered() {
    for (state, late, void) in
        [(State::Proposed, 1, true), (State::Prepare, 1, true), (State::Prepare, 0, false), (State::Dual, 1, false)]
    {
        let record = PlanRecord { not_after: Some(time(10_000).to_rfc3339()), ..plan(b"a", 4, state) };
        let mut log = Log::default();
        log.claim(1, 0).record(1, 0, 1, &record);
        log.0[1].log_time = Some(time(10_000 + late));
        let table = log.fold();
        assert_eq!(table.plans().len(), usize::from(!void), "{state:?} {late}");
        assert_eq!(table.shadowed().len(), usize::from(void));
        assert_eq!(table.unreadable().len(), 0);
        assert_eq!(table.last_version(), version(1, 1), "the version is used up for every reader");
    }
}

/// The answer to a shadowed prepare has arrived in time already: it is never void, else it would be answered for ever.
#[test]
fn the_answer_to_a_shadowed_prepare_carries_no_limit() {
    let record = PlanRecord { not_after: Some(time(10_000).to_rfc3339()), ..plan(b"a", 4, State::Prepare) };
    let mut log = Log::default();
    log.claim(1, 0).record(1, 0, 1, &record).claim(2, 1).plan(1, 0, 2, "a", 8);
    let (key, _) = log.fold().shadowed().next().map(|(key, shadow)| (key.clone(), *shadow)).unwrap();
    let answer = log.fold().answer(&key);
    log.value(2, 1, 1, "a", answer);
    log.0.last_mut().unwrap().log_time = Some(time(3_600_000));
    let table = log.fold();
    assert_eq!(table.shadowed().len(), 0);
    assert_eq!(table.plan(&customer("a")).unwrap().record, PlanRecord { not_after: None, ..record });
}
