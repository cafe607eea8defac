//! A split that an operator takes back, in each state of its migration.

use keyheat::plan::{Disobeyed, Effect, Hindrance, Mode, Operation, PlanSettings, Wish, migration::Wait};
use keyheat::protocol::State;
use keyheat::units::Span;

use super::sim::{Sim, customer, hot, settings};

const WITHDRAW: Wish = Wish::Withdraw { block: false };
const FOR_GOOD: Wish = Wish::Withdraw { block: true };

fn buckets(sim: &Sim, key: &str) -> u32 {
    sim.plan(key).map_or(1, |record| record.write.unwrap().buckets())
}

/// A world in which the split of a hot key waits for a router in `state`.
fn stopped_in(state: State) -> Sim {
    let mut sim = Sim::new(vec![settings()]);
    sim.routers[1].waits_in = vec![state];
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    assert_eq!(sim.plan("c42").unwrap().state, state);
    sim
}

/// Still hot, just settled, the budget used up and the window cold: an operator's word counts all the same.
#[test]
fn a_settled_split_goes_back_at_once() {
    let mut sim = Sim::new(vec![settings()]);
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    sim.budget.max_changes_per_minute = 1;
    sim.new_leader();
    sim.condition.warming_up = true;
    assert_eq!(sim.say("c42", WITHDRAW), Ok(Effect::Withdrawing));
    sim.settle();
    let record = sim.plan("c42").unwrap();
    assert_eq!((buckets(&sim, "c42"), record.evidence.rule.as_str()), (1, "withdrawn"));
    assert_eq!(sim.states_of("c42")[6..], ["prepare", "hold", "dual", "moving", "settled", "retire"]);
    sim.condition.warming_up = false;
    sim.pass(290);
    assert_eq!(buckets(&sim, "c42"), 1, "it rests for the time of a dwell");
    assert_eq!(sim.planner.hindrances()[&customer("c42")], Hindrance::Dwell);
    sim.pass(20);
    assert_eq!(buckets(&sim, "c42"), 8, "and is split again while it is hot");
}

#[test]
fn with_block_it_stays_back() {
    let mut sim = Sim::new(vec![settings()]);
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    assert_eq!(sim.say("c42", FOR_GOOD), Ok(Effect::Withdrawing));
    sim.pass(2000);
    assert_eq!(buckets(&sim, "c42"), 1);
    assert_eq!(sim.planner.hindrances()[&customer("c42")], Hindrance::Blocked);
}

#[test]
fn heat_does_not_turn_a_withdrawal_round() {
    for wish in [WITHDRAW, FOR_GOOD] {
        let mut sim = Sim::new(vec![settings()]);
        sim.hot = vec![hot("c42", 700.0)];
        sim.settle();
        sim.routers[1].waits_in = vec![State::Prepare];
        assert_eq!(sim.say("c42", wish), Ok(Effect::Withdrawing));
        sim.pass(60);
        sim.new_leader();
        sim.pass(60);
        assert_eq!(sim.plan("c42").unwrap().state, State::Prepare);
        sim.routers[1].waits_in.clear();
        sim.pass(2);
        assert_eq!(buckets(&sim, "c42"), 1);
    }
}

#[test]
fn a_proposal_is_removed_and_not_made_again_at_once() {
    let mut sim = Sim::new(vec![PlanSettings { mode: Mode::Propose, ..settings() }]);
    sim.hot = vec![hot("c42", 700.0)];
    sim.pass(5);
    assert_eq!(sim.say("c42", WITHDRAW), Ok(Effect::ProposalRemoved));
    sim.pass(290);
    assert_eq!(sim.states_of("c42"), ["proposed", "end"]);
    assert_eq!(sim.planner.hindrances()[&customer("c42")], Hindrance::Dwell);
    sim.pass(20);
    assert_eq!(sim.states_of("c42"), ["proposed", "end", "proposed"]);
}

/// In a keyspace that waits for approval an operator's withdrawal does not: it takes the place of what was proposed.
#[test]
fn a_proposed_withdrawal_need_not_be_approved_any_more() {
    let mut sim = Sim::new(vec![settings()]);
    sim.hot = vec![hot("c42", 700.0)];
    sim.pass(10);
    sim.keyspaces = vec![PlanSettings { mode: Mode::Propose, ..settings() }];
    sim.new_leader();
    sim.hot.clear();
    sim.pass(700);
    assert_eq!(sim.states_of("c42").last(), Some(&"proposed"));
    assert_eq!(sim.say("c42", WITHDRAW), Ok(Effect::Withdrawing));
    sim.pass(1);
    assert_eq!(buckets(&sim, "c42"), 1);
}

#[test]
fn what_no_write_has_entered_is_turned_round() {
    for (state, states) in
        [(State::Prepare, &["prepare", "round"][..]), (State::Hold, &["prepare", "hold", "prepare", "round"])]
    {
        let mut sim = stopped_in(state);
        assert_eq!(sim.say("c42", WITHDRAW), Ok(Effect::TurnedRound), "{state:?}");
        sim.pass(60);
        assert_eq!(sim.states_of("c42"), states);
        assert_eq!(sim.planner.hindrances()[&customer("c42")], Hindrance::Dwell);
    }
}

#[test]
fn from_dual_on_it_goes_forward() {
    for state in [State::Dual, State::Moving, State::Settled] {
        let mut sim = stopped_in(state);
        let before = sim.log.len();
        let refused = sim.say("c42", FOR_GOOD).unwrap_err();
        match state {
            State::Settled => assert_eq!(refused, Disobeyed::Unfinished(Wait::Routers)),
            _ => assert_eq!(refused, Disobeyed::GoesForward(state)),
        }
        assert_eq!(sim.log.len(), before, "not even the block is set");
        sim.routers[1].waits_in.clear();
        sim.pass(1);
        assert_eq!(buckets(&sim, "c42"), 8);
    }
    let mut sim = Sim::new(vec![settings()]);
    sim.hot = vec![hot("c42", 700.0)];
    sim.owner_works = false;
    sim.settle();
    let text = sim.say("c42", WITHDRAW).unwrap_err().to_string();
    assert_eq!(text, "the key's migration is in moving: from dual on it goes forward; withdraw when it has settled");
}

#[test]
fn what_cannot_be_withdrawn_is_refused_with_the_rule() {
    let mut sim = Sim::new(vec![settings()]);
    assert_eq!(sim.say("c42", WITHDRAW), Err(Disobeyed::NotSplit));
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    sim.planner.set_freeze(true);
    assert_eq!(sim.say("c42", WITHDRAW), Err(Disobeyed::Frozen));
    sim.planner.set_freeze(false);
    assert_eq!(sim.say("c42", Wish::Pin { buckets: 8, from: None, until: None }), Ok(Effect::Set));
    assert_eq!(sim.say("c42", WITHDRAW), Err(Disobeyed::Pinned));
    assert_eq!(sim.say("c42", FOR_GOOD), Ok(Effect::Withdrawing), "the block takes the place of the pin");
    sim.pass(1000);
    assert_eq!(buckets(&sim, "c42"), 1);
    assert_eq!(sim.say("c42", WITHDRAW), Err(Disobeyed::NotSplit));
}

/// Records that are too late are void: the word is given up, and does not fill the topic.
#[test]
fn a_withdrawal_that_comes_too_late_is_given_up() {
    let mut sim = Sim::new(vec![settings()]);
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    sim.log_delay = Span::from_secs(20);
    let before = sim.log.len();
    assert_eq!(sim.say("c42", WITHDRAW), Err(Disobeyed::Void));
    sim.pass(5);
    assert_eq!(sim.log.len(), before + 2, "the record and the leader's answer to it");
    assert_eq!(buckets(&sim, "c42"), 8);
}

/// Words of one key are carried out one after the other, and no more wait than a few.
#[test]
fn words_wait_for_one_another() {
    let mut sim = Sim::new(vec![settings()]);
    let numbers: Vec<u64> =
        [Wish::Pin { buckets: 8, from: None, until: None }, Wish::Unpin, Wish::Block, Wish::Unblock]
            .into_iter()
            .map(|wish| sim.say_only("c42", wish).unwrap())
            .collect();
    while sim.step() {}
    let answers: Vec<_> = numbers.iter().map(|number| sim.planner.answer(*number).unwrap().unwrap()).collect();
    assert_eq!(answers, [Effect::Set, Effect::TakenBack, Effect::Set, Effect::TakenBack]);
    for number in 0..64 {
        sim.say_only(&format!("k{number}"), Wish::Block).unwrap();
    }
    assert_eq!(sim.say_only("more", Wish::Block), Err(Disobeyed::TooMany));
    sim.planner.forget_words();
    sim.settle();
    assert_eq!(sim.table.policies().len(), 0, "what was forgotten does not come true");
}

/// Writes that wait come first: a word on the key does not make its hold longer.
#[test]
fn a_word_does_not_hold_a_migration_up() {
    let mut sim = stopped_in(State::Hold);
    sim.say_only("c42", Wish::Pin { buckets: 8, from: None, until: None }).unwrap();
    sim.now = sim.now.saturating_add(Span::from_secs(2));
    let sent = sim.decide();
    assert!(matches!(&sent[0], Operation::Put(record) if record.state == State::Prepare), "{sent:?}");
    assert!(matches!(&sent[1], Operation::SetPolicy(_)), "{sent:?}");
}

#[test]
fn a_word_that_is_not_read_back_is_given_up() {
    let mut sim = Sim::new(vec![settings()]);
    let number = sim.say_only("c42", Wish::Block).unwrap();
    assert!(!sim.decide().is_empty());
    assert_eq!(sim.planner.answer(number), None);
    sim.now = sim.now.saturating_add(Span::from_secs(8));
    assert!(sim.decide().is_empty());
    assert!(matches!(sim.planner.answer(number), Some(Err(Disobeyed::Late(_)))));
}
