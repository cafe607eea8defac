//! Any sequence of heat, failures, joins, leaders, operators' words and lost sight: every record is a legal step, and in the end all can finish.

use keyheat::plan::{BudgetSettings, PlanSettings, Wish};
use keyheat::protocol::{AckTable, History, Layout, PlanKey, PlanRecord, PlanTopicKey, State, Version, Writes};
use keyheat::units::{EventTime, Span};
use proptest::prelude::*;

use super::sim::{Sim, hot, settings};

#[derive(Debug, Clone)]
enum Event {
    Heat(usize, f64),
    Cool(usize),
    Stuck(usize, bool),
    WaitsIn(usize, Vec<State>),
    Refuses(usize, bool),
    Owner(bool),
    NewLeader,
    Complete(bool),
    Settled(bool),
    Say(usize, Wish),
    Spread(bool),
    Pass(u64),
}

const KEYS: [&str; 4] = ["a", "b", "c", "d"];

fn event() -> impl Strategy<Value = Event> {
    let key = || 0..KEYS.len();
    let router = || 0_usize..2;
    prop_oneof![
        6 => (key(), prop::sample::select(vec![120.0, 350.0, 700.0, 3000.0])).prop_map(|(key, rate)| Event::Heat(key, rate)),
        4 => key().prop_map(Event::Cool),
        2 => (router(), any::<bool>()).prop_map(|(router, on)| Event::Stuck(router, on)),
        2 => (router(), prop::sample::subsequence(State::ALL.to_vec(), 0..3)).prop_map(|(router, states)| Event::WaitsIn(router, states)),
        1 => (router(), any::<bool>()).prop_map(|(router, on)| Event::Refuses(router, on)),
        1 => any::<bool>().prop_map(Event::Owner),
        2 => (key(), wish()).prop_map(|(key, wish)| Event::Say(key, wish)),
        1 => Just(Event::NewLeader),
        1 => any::<bool>().prop_map(Event::Complete),
        1 => any::<bool>().prop_map(Event::Settled),
        1 => any::<bool>().prop_map(Event::Spread),
        8 => prop::sample::select(vec![1_u64, 3, 30, 70, 310, 650]).prop_map(Event::Pass),
    ]
}

fn wish() -> impl Strategy<Value = Wish> {
    let pin = prop::sample::select(vec![2, 8, 32]).prop_map(|buckets| Wish::Pin { buckets, from: None, until: None });
    let plain = prop::sample::select(vec![
        Wish::Unpin,
        Wish::Block,
        Wish::Unblock,
        Wish::Withdraw { block: false },
        Wish::Withdraw { block: true },
    ]);
    prop_oneof![2 => pin, 5 => plain]
}

fn happen(sim: &mut Sim, event: &Event) {
    match event {
        Event::Heat(key, rate) => {
            sim.hot.retain(|hot| &*hot.key != KEYS[*key].as_bytes());
            sim.hot.push(hot(KEYS[*key], *rate));
        }
        Event::Cool(key) => sim.hot.retain(|hot| &*hot.key != KEYS[*key].as_bytes()),
        Event::Stuck(router, on) => sim.routers[*router].stuck = *on,
        Event::WaitsIn(router, states) => sim.routers[*router].waits_in.clone_from(states),
        Event::Refuses(router, on) => sim.routers[*router].refuses = *on,
        Event::Owner(works) => sim.owner_works = *works,
        Event::NewLeader => sim.new_leader(),
        Event::Complete(complete) => sim.count_of_ten(if *complete { 10 } else { 8 }),
        Event::Settled(settled) => sim.condition.catching_up = !settled,
        // What comes of it is told by the records.
        Event::Say(key, wish) => drop(sim.say_only(KEYS[*key], *wish)),
        Event::Spread(spread) => sim.spread = *spread,
        Event::Pass(secs) => sim.now = sim.now.saturating_add(Span::from_secs(*secs)),
    }
}

/// True for a record that says again what the one before it says, with what was measured.
fn tells(before: &PlanRecord, after: &PlanRecord) -> bool {
    after.outcome.is_some() && PlanRecord { outcome: before.outcome.clone(), ..after.clone() } == *before
}

/// The steps that a key may make, written down anew: from one record to the next, none being the bare key without a record.
fn is_legal(before: Option<&PlanRecord>, after: Option<&PlanRecord>) -> bool {
    let bare = |record: &PlanRecord| record.read.len() == 1 && record.read[0].is_bare();
    let rests = |record: &PlanRecord| match record.state {
        State::Settled => !record.retire.is_empty() || record.is_turned_round(),
        State::Moving => record.migration.history == History::Keep,
        _ => false,
    };
    let begins = |record: &PlanRecord| matches!(record.state, State::Proposed | State::Prepare);
    let (before, after) = match (before, after) {
        (None, Some(after)) => return begins(after) && after.migration.from.is_bare(),
        (Some(before), None) => return bare(before) && (rests(before) || before.state == State::Proposed),
        (None, None) => return false,
        (Some(before), Some(after)) => (before, after),
    };
    let same = before.migration == after.migration && before.bucket == after.bucket;
    let holds = before.migration.writes == Writes::Update;
    match (before.state, after.state) {
        _ if tells(before, after) => {
            rests(before) && before.outcome.is_none() && before.migration.to == before.write.unwrap_or(Layout::BARE)
        }
        _ if rests(before) => begins(after) && Some(after.migration.from) == before.write && !same,
        (State::Proposed, State::Prepare) => after.migration.to == before.migration.to,
        (State::Proposed | State::Prepare, State::Settled) => same && after.is_turned_round(),
        (State::Prepare, State::Hold) => same && holds,
        (State::Prepare, State::Dual) => same && !holds,
        (State::Hold, State::Prepare | State::Dual) => same,
        (State::Dual, State::Moving) | (State::Moving, State::Settled) => same,
        (State::Settled, State::Settled) => same && before.retire.is_empty() && !after.retire.is_empty(),
        _ => false,
    }
}

/// True when the step needs every router's acknowledgement of the record before it.
fn is_gated(before: &PlanRecord, after: &PlanRecord) -> bool {
    let turns = after.is_turned_round() || (before.state, after.state) == (State::Hold, State::Prepare);
    !turns && before.state != State::Proposed
}

struct Checker {
    budget: BudgetSettings,
    begun: Vec<(PlanKey, EventTime)>,
    cooled: Vec<(PlanKey, EventTime)>,
    migrations: Vec<(PlanKey, Version)>,
}

impl Checker {
    /// Lets the planner send one record and holds it against the rules. False when there is nothing to send.
    fn step(&mut self, sim: &mut Sim) -> Result<bool, TestCaseError> {
        let (before, acks, appended) = (sim.table.clone(), sim.acks.clone(), sim.log.len());
        if !sim.step() {
            return Ok(false);
        }
        prop_assert_eq!(sim.log.len(), appended + 1);
        let record = sim.log[appended].clone();
        let Ok(PlanTopicKey::Plan(key)) = PlanTopicKey::parse(&record.key) else { return Ok(true) };
        let (old, new) = (before.plan(&key), sim.table.plan(&key));
        let (old_record, new_record) = (old.map(|entry| &entry.record), new.map(|entry| &entry.record));
        prop_assert!(is_legal(old_record, new_record), "{:?} -> {:?}", old_record, new_record);
        if let (Some(old), Some(new)) = (old, new) {
            prop_assert!(new.version > old.version);
            self.neighbours(&old.record, &new.record)?;
            if is_gated(&old.record, &new.record) {
                prop_assert!(
                    acknowledged(&acks, &key, old.version),
                    "a gate was passed: {:?} -> {:?}",
                    old.record.state,
                    new.record.state
                );
            }
        }
        if let Some(new) = new_record {
            prop_assert_eq!(new.check(), Ok(()));
            self.begins(sim, &key, new)?;
        }
        let holds = sim.table.plans().filter(|(_, entry)| entry.record.state == State::Hold).count();
        prop_assert!(holds <= 1);
        let splits =
            sim.table.plans().filter(|(_, entry)| entry.record.read.iter().any(|layout| !layout.is_bare())).count();
        prop_assert!(splits <= self.budget.max_splits);
        Ok(true)
    }

    /// I11: a write goes where every read looks, whichever of two neighbouring records a router obeys.
    fn neighbours(&self, old: &PlanRecord, new: &PlanRecord) -> Result<(), TestCaseError> {
        for (writer, reader) in [(old, new), (new, old)] {
            prop_assert!(
                writer.write.is_none_or(|layout| reader.read.contains(&layout)),
                "{:?} beside {:?}",
                writer,
                reader
            );
        }
        Ok(())
    }

    fn begins(&mut self, sim: &Sim, key: &PlanKey, record: &PlanRecord) -> Result<(), TestCaseError> {
        let name = (key.clone(), record.migration.version);
        if self.migrations.contains(&name) {
            return Ok(());
        }
        self.migrations.push(name);
        let rule = record.evidence.rule.as_str();
        let policy = sim.table.policy(key).map(|entry| &entry.policy);
        let by_word = policy.map(|policy| if policy.block { "withdrawn" } else { "pinned" });
        prop_assert!(by_word.is_none_or(|word| word == rule), "{} against the operator's word", rule);
        prop_assert!(
            matches!(rule, "pinned" | "withdrawn") || sim.condition.is_settled(),
            "begun while counts cannot be trusted"
        );
        let cools = record.migration.to.buckets() < record.migration.from.buckets();
        if rule == "withdrawn" {
            // The budget is counted from the newest records of keys: this one takes the place of the one before.
            self.begun.retain(|(begun, _)| begun != key);
            self.cooled.retain(|(cooled, _)| cooled != key);
            self.begun.push((key.clone(), sim.now));
            self.cooled.push((key.clone(), sim.now));
            return Ok(());
        }
        prop_assert!(
            !cools || rule == "pinned" || sim.condition.completeness.is_whole(),
            "cooled down on incomplete counts"
        );
        let within = |times: &[(PlanKey, EventTime)]| {
            times.iter().filter(|(_, at)| sim.now.since(*at) < Span::from_secs(60)).count()
        };
        prop_assert!(within(&self.begun) < self.budget.max_changes_per_minute);
        prop_assert!(!cools || within(&self.cooled) == 0, "a wave of withdrawals");
        self.begun.push((key.clone(), sim.now));
        if cools {
            self.cooled.push((key.clone(), sim.now));
        }
        Ok(())
    }

    fn settle(&mut self, sim: &mut Sim) -> Result<(), TestCaseError> {
        sim.follow();
        for _ in 0..200 {
            if !self.step(sim)? {
                return Ok(());
            }
        }
        prop_assert!(false, "the planner does not come to rest");
        Ok(())
    }
}

fn acknowledged(acks: &AckTable, key: &PlanKey, version: Version) -> bool {
    acks.routers().len() == 2 && acks.routers().all(|router| router.ack.acknowledges(key, version))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_sequence_of_records_is_a_legal_walk(
        writes in prop::sample::select(vec![Writes::Insert, Writes::Versioned, Writes::Update]),
        history in prop::sample::select(vec![History::Move, History::Move, History::None, History::Expire]),
        events in prop::collection::vec(event(), 0..60),
    ) {
        let budget = BudgetSettings { max_splits: 3, max_changes_per_minute: 2, ..BudgetSettings::default() };
        let mut sim = Sim::with_budget(vec![PlanSettings { writes, history, ..settings() }], budget);
        let mut checker = Checker { budget, begun: Vec::new(), cooled: Vec::new(), migrations: Vec::new() };
        for event in &events {
            happen(&mut sim, event);
            checker.settle(&mut sim)?;
        }
        // Everything works again and nothing is hot: every key comes back to the bare key.
        for router in &mut sim.routers {
            router.stuck = false;
            router.refuses = false;
            router.waits_in.clear();
        }
        sim.owner_works = true;
        sim.count_of_ten(10);
        sim.condition.catching_up = false;
        sim.hot.clear();
        for key in KEYS {
            for wish in [Wish::Unpin, Wish::Unblock] {
                drop(sim.say_only(key, wish));
                checker.settle(&mut sim)?;
            }
        }
        for _ in 0..80 {
            sim.now = sim.now.saturating_add(Span::from_secs(61));
            checker.settle(&mut sim)?;
        }
        for (key, entry) in sim.table.plans() {
            prop_assert!(entry.record.read.len() == 1 && entry.record.read[0].is_bare(), "{:?} ends as {:?}", key, entry.record);
        }
    }
}
