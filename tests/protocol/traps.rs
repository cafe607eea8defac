//! The traps of compaction and of late records, each one a row of the model of claim and fence, as a fixed history.

use keyheat::protocol::{Applied, PlanTopicKey, RefusedRecord};

use super::log::{Log, contents, customer, version};

fn refused(outcome: &Applied) -> &'static str {
    match outcome {
        Applied::Refused { reason, .. } => reason.label(),
        _ => "",
    }
}

/// `f-last`: were the last claim of an epoch to win, the first claimant's accepted records would change hands.
#[test]
fn the_first_claim_of_an_epoch_wins() {
    let mut log = Log::default();
    log.claim(1, 7).claim(1, 8).plan(1, 8, 1, "a", 2).plan(1, 7, 1, "a", 4);
    let outcomes = log.outcomes();
    assert!(matches!(outcomes[0], Applied::Claim { won: true, .. }));
    assert!(matches!(outcomes[1], Applied::Claim { won: false, .. }));
    assert_eq!(refused(&outcomes[2]), "not_leader");
    assert_eq!(contents(&log.fold()), [("a".to_owned(), 4, version(1, 1))]);
}

/// Were a claim of unknown outcome sent again, compaction would keep the second of both: a fresh reader refuses what lies between, and
/// another's claim of the epoch wins for it. So a claim is sent once; where it is there twice, the readers are told, and a fresh one
/// does not serve.
#[test]
fn a_claim_that_is_there_twice_is_seen() {
    let mut log = Log::default();
    log.claim(1, 7).claim(1, 8).plan(1, 7, 1, "a", 4).claim(1, 7);
    let outcomes = log.outcomes();
    assert!(matches!(outcomes[0], Applied::Claim { won: true, repeated: false, .. }));
    assert!(matches!(outcomes[3], Applied::Claim { won: false, repeated: true, .. }));
    let tail = log.fold();
    log.heartbeat(1, 7, 2, &tail);
    assert_ne!(contents(&log.compacted().fold()), contents(&tail));
    assert_eq!(refused(&log.compacted().outcomes().pop().unwrap()), "not_leader", "no heartbeat, no service");
    // The leader claims a new epoch and publishes its plans again.
    log.claim(2, 9).value(2, 9, 1, "a", tail.answer(&PlanTopicKey::Plan(customer("a"))));
    let healed = log.fold();
    log.heartbeat(2, 9, 2, &healed);
    assert!(matches!(log.compacted().outcomes().pop(), Some(Applied::Heartbeat { agrees: true, .. })));
}

/// A late claim of a lower epoch takes nothing away from the leader.
#[test]
fn a_claim_below_the_highest_epoch_is_lost() {
    let mut log = Log::default();
    log.claim(2, 7).claim(1, 8).plan(1, 8, 9, "a", 2).plan(2, 7, 1, "a", 4);
    assert!(matches!(log.outcomes()[1], Applied::Claim { won: false, .. }));
    assert_eq!(contents(&log.fold()), [("a".to_owned(), 4, version(2, 1))]);
}

/// `f-fixed`: were all claims under one key, compaction would keep the loser's, and a fresh reader would follow it.
#[test]
fn compaction_keeps_every_claim() {
    let mut log = Log::default();
    log.claim(1, 7).claim(1, 8).plan(1, 7, 1, "a", 4);
    assert_eq!(log.compacted().fold().leader(), log.fold().leader());
    assert_eq!(contents(&log.compacted().fold()), contents(&log.fold()));
}

/// `f-clean-old`, `f-clean-live`: a claim's tombstone takes nothing away.
#[test]
fn a_claim_is_never_removed() {
    let mut log = Log::default();
    log.claim(1, 7).plan(1, 7, 1, "a", 4);
    let mut tombstone = log.0[0].clone();
    tombstone.value = None;
    log.0.push(tombstone);
    assert_eq!(refused(&log.outcomes()[2]), "claim_removed");
    log.plan(1, 7, 2, "a", 8);
    assert_eq!(contents(&log.fold()), [("a".to_owned(), 8, version(1, 2))]);
}

/// A paused leader wakes up after another has claimed: every reader refuses what it sends.
#[test]
fn a_zombie_changes_nothing() {
    let mut log = Log::default();
    log.claim(1, 7)
        .plan(1, 7, 1, "a", 4)
        .claim(2, 8)
        .plan(1, 7, 2, "a", 16)
        .tombstone(1, 7, 3, "a")
        .plan(2, 8, 1, "b", 2);
    let outcomes = log.outcomes();
    assert_eq!([refused(&outcomes[3]), refused(&outcomes[4])], ["not_leader"; 2]);
    assert_eq!(contents(&log.fold()), [("a".to_owned(), 4, version(1, 1)), ("b".to_owned(), 2, version(2, 1))]);
}

/// `f-many`: with several records in flight an older one lands last; it is refused, and it is seen to be missing.
#[test]
fn a_record_that_lands_after_a_newer_one_is_refused_and_shadows_its_key() {
    let mut log = Log::default();
    log.claim(1, 7).plan(1, 7, 2, "b", 2).plan(1, 7, 1, "a", 4);
    assert_eq!(refused(&log.outcomes()[2]), "old_version");
    let table = log.fold();
    assert_eq!(contents(&table), [("b".to_owned(), 2, version(1, 2))]);
    let shadowed: Vec<_> = table.shadowed().map(|(key, _)| key.clone()).collect();
    assert_eq!(shadowed, [PlanTopicKey::Plan(customer("a"))]);
}

/// `f-nolag`: a late record shadows the accepted one and compaction takes that away before the leader has answered. The heartbeat's
/// digest tells the fresh reader; after the answer both readers agree again.
#[test]
fn a_shadowed_record_is_missed_by_digest_and_healed_by_the_answer() {
    let mut log = Log::default();
    log.claim(1, 7).plan(1, 7, 1, "a", 4).claim(2, 8).plan(1, 7, 2, "a", 16);
    let tail = log.fold();
    log.heartbeat(2, 8, 1, &tail);
    assert!(matches!(log.outcomes().pop(), Some(Applied::Heartbeat { agrees: true, .. })));
    let fresh = log.compacted();
    assert!(
        matches!(fresh.outcomes().pop(), Some(Applied::Heartbeat { agrees: false, .. })),
        "a fresh reader does not serve"
    );

    let key = PlanTopicKey::Plan(customer("a"));
    let answer = tail.answer(&key);
    assert!(answer.is_some());
    log.value(2, 8, 2, "a", answer);
    let healed = log.fold();
    assert_eq!(healed.shadowed().len(), 0);
    log.heartbeat(2, 8, 3, &healed);
    assert!(matches!(log.compacted().outcomes().pop(), Some(Applied::Heartbeat { agrees: true, .. })));
    assert_eq!(contents(&log.compacted().fold()), [("a".to_owned(), 4, version(2, 2))]);
}

/// The model's `reassert = plans`: a refused record of a key without a plan has to be answered too, with a tombstone.
#[test]
fn a_refused_record_of_a_key_without_a_plan_is_answered_by_a_tombstone() {
    let mut log = Log::default();
    log.claim(1, 7).claim(2, 8).plan(1, 7, 1, "a", 4);
    let table = log.fold();
    let key = PlanTopicKey::Plan(customer("a"));
    assert!(table.shadowed().any(|(shadowed, _)| *shadowed == key));
    assert_eq!(table.answer(&key), None);
    log.tombstone(2, 8, 1, "a");
    assert_eq!(log.fold().shadowed().len(), 0);
}

/// A refused tombstone of a key that has no plan changes nothing that compaction could show.
#[test]
fn a_refused_tombstone_of_nothing_needs_no_answer() {
    let mut log = Log::default();
    log.claim(1, 7).claim(2, 8).plan(1, 7, 1, "a", 4).tombstone(1, 7, 2, "a");
    assert_eq!(log.fold().shadowed().len(), 0);
    log.plan(2, 8, 1, "a", 4).tombstone(1, 7, 3, "a");
    assert_eq!(log.fold().shadowed().len(), 1, "here it would take the plan away");
}

#[test]
fn an_epoch_that_none_could_count_on_from_is_refused() {
    for epoch in [0, 1 << 53, u64::MAX] {
        let mut log = Log::default();
        log.claim(1, 7).claim(epoch, 8);
        let Some(Applied::Refused { reason, .. }) = log.outcomes().pop() else { panic!("accepted {epoch}") };
        assert_eq!(reason, RefusedRecord::ClaimEpoch(epoch));
        assert_eq!(log.fold().highest_epoch(), 1);
    }
}
