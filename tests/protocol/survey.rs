//! What `keyheat verify` finds, fact by fact.

use keyheat::control::{Finding, Level, Survey};
use keyheat::protocol::{
    AckTopicKey, Digest, KeyField, LogRecord, RefusedKey, RetiredReport, RouterAck, SCHEMA, State, Version,
};
use keyheat::units::{EventTime, Offset, Span};

use super::acks::ack;
use super::log::{DECIDED_AT, Log, customer, plan, time, version};

const SILENT_AFTER: Span = Span::from_secs(30);

/// Two plans, settled, and a heartbeat after them.
fn sound() -> Log {
    let mut log = Log::default();
    log.claim(3, 7).plan(3, 7, 1, "a", 4).plan(3, 7, 2, "b", 8);
    beat(&mut log, 3, 7, 3);
    log
}

fn beat(log: &mut Log, epoch: u64, nonce: u64, seq: u64) {
    let table = log.fold();
    log.heartbeat(epoch, nonce, seq, &table);
}

/// A router that has the whole of a log.
fn has(log: &Log, id: &str, nonce: u64) -> RouterAck {
    let table = log.fold();
    RouterAck { digest: table.digest(), ..ack(id, nonce, table.last_version()) }
}

fn said(acks: &[RouterAck]) -> Vec<LogRecord> {
    let key = |ack: &RouterAck| AckTopicKey::Router { id: ack.id.clone(), nonce: ack.nonce };
    acks.iter().map(|ack| ack_record(&key(ack), ack.encode())).collect()
}

fn ack_record(key: &AckTopicKey, value: Vec<u8>) -> LogRecord {
    let (key, value) = (key.to_bytes(), Some(value));
    LogRecord { offset: Offset(0), key, value, headers: Vec::new(), log_time: Some(time(0)) }
}

fn findings_at(now: EventTime, log: &Log, acks: &[LogRecord]) -> Vec<Finding> {
    let mut survey = Survey::new();
    acks.iter().for_each(|record| survey.ack_record(record));
    log.0.iter().for_each(|record| survey.plan_record(record));
    survey.findings(now, SILENT_AFTER)
}

/// Level and check of each finding.
fn found(log: &Log, acks: &[RouterAck]) -> Vec<(Level, &'static str)> {
    let findings = findings_at(time(1000), log, &said(acks));
    findings.iter().map(|finding| (finding.level, finding.check)).collect()
}

#[test]
fn a_sound_topic_has_no_findings() {
    let log = sound();
    assert_eq!(found(&log, &[has(&log, "r1", 1), has(&log, "r2", 2)]), []);
    let compacted = log.compacted();
    assert_eq!(found(&compacted, &[has(&log, "r1", 1)]), [], "compaction takes nothing that is missed");
    assert_eq!(found(&Log::default(), &[]), [(Level::Note, "heartbeat")], "before the first leader");
}

#[test]
fn silence_is_a_fault() {
    let log = sound();
    let late = findings_at(time(60_000), &log, &said(&[has(&log, "r1", 1)]));
    let checks: Vec<_> = late.iter().map(|finding| (finding.level, finding.check)).collect();
    assert_eq!(checks, [(Level::Fault, "heartbeat"), (Level::Fault, "silent_router")]);
    assert!(late[0].text.contains("no leader is at work"), "{}", late[0]);
    assert!(late[1].text.contains("keyheat plan forget-router"), "{}", late[1]);
    let mut log = Log::default();
    log.claim(3, 7).plan(3, 7, 1, "a", 4);
    assert_eq!(found(&log, &[has(&log, "r1", 1)]), [(Level::Fault, "heartbeat")]);
}

#[test]
fn a_late_record_is_a_note_until_the_leader_has_passed_it_over() {
    let mut log = sound();
    log.claim(4, 8).plan(3, 7, 4, "a", 2);
    let router = has(&log, "r1", 1);
    let notes = [(Level::Note, "refused"), (Level::Note, "shadowed")];
    assert_eq!(found(&log, std::slice::from_ref(&router)), notes);
    beat(&mut log, 4, 8, 1);
    let router = RouterAck { applied: version(4, 1), ..router };
    assert_eq!(found(&log, &[router]), [(Level::Fault, "shadowed"), (Level::Note, "refused")]);
}

#[test]
fn what_no_reader_can_obey_and_two_contents_are_faults() {
    let mut log = sound();
    log.value(3, 7, 4, "a", Some(b"{}".to_vec()));
    let router = has(&log, "r1", 1);
    assert!(found(&log, &[router]).contains(&(Level::Fault, "refused")));
    let mut log = sound();
    log.plan(3, 7, 2, "b", 16);
    let router = has(&log, "r1", 1);
    let findings = found(&log, &[router]);
    assert!(findings.contains(&(Level::Fault, "two_contents")), "{findings:?}");
}

#[test]
fn a_digest_that_differs_is_a_fault_of_heartbeat_or_router() {
    let mut log = sound();
    // A plan record of the leader's is lost.
    let removed = log.0.remove(2);
    assert!(removed.key.ends_with(b"b"));
    let router = has(&log, "r1", 1);
    assert_eq!(found(&log, &[router]), [(Level::Fault, "digest")]);
    let log = sound();
    let other = RouterAck { digest: Digest(1), ..has(&log, "r1", 1) };
    assert_eq!(found(&log, &[other]), [(Level::Fault, "digest")]);
    let ahead = ack("r1", 1, version(9, 9));
    assert_eq!(found(&log, &[ahead]), [(Level::Fault, "ahead")]);
}

#[test]
fn routers_that_refuse_lag_or_share_a_name_are_faults() {
    let log = sound();
    let twins = [has(&log, "r1", 1), has(&log, "r1", 2)];
    assert_eq!(found(&log, &twins), [(Level::Fault, "twins")]);
    let refused = RefusedKey {
        keyspace: "customer".into(),
        key: KeyField(b"a".to_vec()),
        version: version(3, 1),
        reason: "hash".into(),
    };
    let refusing = RouterAck { refusals: vec![refused], ..has(&log, "r1", 1) };
    assert!(found(&log, &[refusing]).contains(&(Level::Fault, "refusing_router")));
    let behind = ack("r1", 1, version(3, 1));
    let late = findings_at(time(60_000), &log, &said(&[behind]));
    assert!(late.iter().any(|finding| finding.check == "behind"), "{late:?}");
    assert_eq!(found(&log, &[]), [(Level::Fault, "no_router")]);
}

#[test]
fn a_plan_that_waits_says_for_whom() {
    let mut log = Log::default();
    log.claim(3, 7).record(3, 7, 1, &plan(b"a", 4, State::Prepare));
    let early = has(&log, "r1", 1);
    let words = |log: &Log, acks: &[RouterAck]| {
        let findings = findings_at(time(1000), log, &said(acks));
        findings.into_iter().find(|finding| finding.check == "waiting").unwrap().text
    };
    let late = ack("r2", 2, Version::default());
    assert!(
        words(&log, &[early.clone(), late]).contains("'plan/customer/a', version 3.1, prepare, waits for routers r2")
    );
    assert!(words(&log, &[early]).contains("waits for the leader"));
    log.record(3, 7, 2, &plan(b"a", 4, State::Moving));
    assert!(words(&log, &[has(&log, "r1", 1)]).contains("waits for the owner's report"));
}

#[test]
fn a_report_on_a_migration_that_was_never_begun_is_a_fault() {
    let log = sound();
    let report = |migration: Version| RetiredReport {
        schema: SCHEMA,
        keyspace: "customer".into(),
        key: KeyField(b"a".to_vec()),
        layout: 0,
        migration,
        remaining: 0,
        time: DECIDED_AT.into(),
    };
    let reported = |migration| {
        let key = AckTopicKey::Retired { key: customer("a"), layout: 0 };
        let mut acks = said(&[has(&log, "r1", 1)]);
        acks.push(ack_record(&key, report(migration).encode()));
        findings_at(time(1000), &log, &acks)
    };
    // The plans of these tests are all of migration 3.17.
    assert_eq!(reported(version(3, 17)), []);
    assert_eq!(reported(version(2, 1)), [], "of an earlier migration of the key");
    let findings = reported(version(9, 1));
    assert_eq!(findings.iter().map(|finding| finding.check).collect::<Vec<_>>(), ["unknown_report"]);
}
