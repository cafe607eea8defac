//! The fence holds, and needs every one of its rules.

use std::sync::Arc;

use super::explore::{Found, explore};
use super::fence::{Fence, Rule};

fn holds(name: &str, fence: Fence, untaken: &[&str], least: usize) {
    let Found { states, depth, untaken: found, broken } = explore(&Arc::new(fence));
    println!("{name}: {states} states, depth {depth}");
    if let Some((why, history)) = broken {
        panic!("{name}: {why}, after {} steps:\n{}", history.len(), history.join("\n"));
    }
    assert_eq!(found, untaken, "{name}");
    assert!(states >= least, "{name}: {states} states");
}

/// The history that breaks the fence without a rule.
fn breaks(without: Rule, steps: usize) {
    let found = explore(&Arc::new(Fence::new(without, 7)));
    let (why, history) = found.broken.unwrap_or_else(|| panic!("without {without:?} nothing broke"));
    println!("without {without:?}: {why}, after {} steps ({} states):", history.len(), found.states);
    println!("{}", history.join("\n"));
    // The search goes by breadth: another length means that the model is another one.
    assert_eq!(history.len(), steps, "{why}");
}

#[test]
fn the_fence_holds() {
    let mut fence = Fence::new(Rule::All, 5);
    fence.assignments = 2;
    holds("fence", fence, &["restarts", "an old claim is deleted"], 1_000_000);
}

#[test]
fn the_fence_holds_when_leaders_change_often() {
    let mut fence = Fence::new(Rule::All, 4);
    fence.assignments = 3;
    holds("fence, three leaders", fence, &["restarts", "an old claim is deleted"], 1_000_000);
}

#[test]
fn the_fence_holds_when_a_publisher_starts_anew() {
    let mut fence = Fence::new(Rule::All, 4);
    (fence.restarts, fence.assignments) = (1, 2);
    holds("fence, a publisher starts anew", fence, &["an old claim is deleted"], 500_000);
}

#[test]
#[ignore = "long: tests/run --all"]
fn the_fence_holds_longer() {
    let mut fence = Fence::new(Rule::All, 6);
    fence.assignments = 2;
    holds("fence, six records", fence, &["restarts", "an old claim is deleted"], 4_000_000);
}

#[test]
fn the_last_claim_must_not_win() {
    breaks(Rule::LastClaimWins, 15);
}

#[test]
fn claims_need_keys_of_their_own() {
    breaks(Rule::OneClaimKey, 10);
}

#[test]
fn one_record_must_be_in_flight() {
    breaks(Rule::SeveralInFlight, 9);
}

#[test]
fn old_claims_must_stay() {
    breaks(Rule::OldClaimsDeleted, 10);
}

#[test]
fn refused_records_must_be_answered_before_compaction() {
    breaks(Rule::CompactedBeforeAnswered, 12);
}
