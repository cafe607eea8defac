//! Where buckets are not the cure: advice, a record and never a layout.

use std::sync::Arc;

use keyheat::engine::{HotKey, Operations};
use keyheat::plan::{Action, Disobeyed, Hindrance, Merge, PlanSettings, Wish};
use keyheat::units::Estimate;

use super::sim::{Sim, customer, hot, settings};

fn advice(sim: &Sim, key: &str) -> Option<(Action, String)> {
    sim.table.advice(&customer(key)).map(|entry| (entry.advice.action, entry.advice.reason.clone()))
}

fn settled(hot: HotKey) -> Sim {
    let mut sim = Sim::new(vec![settings()]);
    sim.hot = vec![hot];
    sim.settle();
    sim
}

/// A hot key whose requests do this.
fn doing(operations: Operations) -> HotKey {
    let mut hot = hot("a", 700.0);
    hot.profile.operations = operations;
    hot
}

/// Case H22 (valkey#2961): 990 reads and 10 writes want a cache; a stream of writes only, among others that read, is split.
#[test]
fn h22_reads_are_cached_and_writes_are_split() {
    let sim = settled(doing(Operations { reads: 990, writes: 10, scans: 0, unknown: 0 }));
    let (action, reason) = advice(&sim, "a").unwrap();
    assert_eq!(action, Action::CacheOrReplicate);
    assert!(reason.starts_with("99.0% of 700.0 requests/s read"), "{reason}");
    assert_eq!(sim.table.plans().len(), 0);
    assert_eq!(sim.planner.hindrances()[&customer("a")], Hindrance::Reads);
    let evidence = &sim.table.advice(&customer("a")).unwrap().advice.evidence;
    assert_eq!((evidence.reads, evidence.writes), (990, 10));

    let sim = settled(hot("b", 700.0));
    assert_eq!((advice(&sim, "b"), sim.table.plans().len()), (None, 1));
}

#[test]
fn the_share_of_reads_is_inclusive_at_nine_in_ten() {
    let with = |reads, writes| settled(doing(Operations { reads, writes, scans: 0, unknown: 0 }));
    assert!(advice(&with(900, 100), "a").is_some());
    assert!(advice(&with(899, 101), "a").is_none());
}

#[test]
fn one_caller_is_to_be_limited() {
    let caller = |name: &str, count| (Arc::from(name.as_bytes()), Estimate::exact(count));
    let called_by = |callers: Vec<(Arc<[u8]>, Estimate)>, mut hot: HotKey| {
        hot.profile.callers = callers;
        hot
    };
    let one = called_by(vec![caller("job-7", 250_000), caller("web", 6_000)], hot("a", 700.0));
    let sim = settled(one.clone());
    let (action, reason) = advice(&sim, "a").unwrap();
    assert_eq!(action, Action::Limit);
    assert!(reason.contains("'job-7' makes at least 97.7%"), "{reason}");
    assert_eq!(sim.planner.hindrances()[&customer("a")], Hindrance::OneCaller);
    // The key is the caller: that it calls itself says nothing.
    let sim = settled(called_by(vec![caller("a", 256_000)], one.clone()));
    assert_eq!((advice(&sim, "a"), sim.table.plans().len()), (None, 1));
    // Without it the key would still be hot.
    let mut busy = called_by(vec![caller("job-7", 235_000), caller("web", 21_000)], hot("a", 7000.0));
    busy.reason.threshold = 3_000;
    assert_eq!(settled(busy).table.plans().len(), 1);
    // What is not proved to be the caller's does not count.
    let doubtful = (Arc::from(b"c0".as_slice()), Estimate { lower: 210_000, upper: 250_000 });
    assert_eq!(settled(called_by(vec![doubtful], one)).table.plans().len(), 1);
}

/// What every write replaces is one object: nothing makes it up again from several buckets.
#[test]
fn overwrites_of_one_object_are_to_be_coalesced() {
    let object = PlanSettings { merge: Merge::None, ..settings() };
    let mut sim = Sim::new(vec![object.clone()]);
    let mut hot = hot("a", 700.0);
    sim.hot = vec![hot.clone()];
    sim.settle();
    let (action, reason) = advice(&sim, "a").unwrap();
    assert_eq!((action, sim.table.plans().len()), (Action::Coalesce, 0));
    assert!(reason.starts_with("700.0 requests/s replace one object") && !reason.contains("caller"), "{reason}");
    assert_eq!(sim.planner.hindrances()[&customer("a")], Hindrance::OneObject);

    // The writer is named: it is the one who can send less.
    hot.profile.callers = vec![(Arc::from(b"job-7".as_slice()), Estimate::exact(250_000))];
    let mut sim = Sim::new(vec![object.clone()]);
    sim.hot = vec![hot.clone()];
    sim.settle();
    let (action, reason) = advice(&sim, "a").unwrap();
    assert_eq!(action, Action::Coalesce);
    assert!(reason.contains("caller 'job-7' makes at least 97.7%"), "{reason}");

    // Reads of it are cached all the same.
    hot.profile.operations = Operations { reads: 990, writes: 10, scans: 0, unknown: 0 };
    let mut sim = Sim::new(vec![object.clone()]);
    sim.hot = vec![hot];
    sim.settle();
    assert_eq!(advice(&sim, "a").unwrap().0, Action::CacheOrReplicate);

    // Not by an operator's word either.
    let pin = Wish::Pin { buckets: 4, from: None, until: None };
    assert_eq!(sim.say("a", pin), Err(Disobeyed::OneObject));
}

/// A split from before the setting is not grown, and goes back when the key has cooled.
#[test]
fn what_turns_out_to_be_one_object_is_not_split_further() {
    let mut sim = settled(hot("a", 700.0));
    let buckets = sim.table.plan(&customer("a")).unwrap().record.migration.to.buckets();
    sim.keyspaces = vec![PlanSettings { merge: Merge::None, ..settings() }];
    sim.new_leader();
    sim.hot = vec![hot("a", 7_000.0)];
    sim.pass(3_600);
    sim.settle();
    assert_eq!(sim.table.plan(&customer("a")).unwrap().record.migration.to.buckets(), buckets);
    assert_eq!(advice(&sim, "a").unwrap().0, Action::Coalesce);
}

#[test]
fn one_request_id_is_to_be_limited() {
    let mut one = hot("a", 700.0);
    one.profile.buckets.fill(10);
    one.profile.buckets[7] = 100_000;
    let sim = settled(one);
    assert_eq!(advice(&sim, "a").unwrap().0, Action::Limit);
    assert!(matches!(sim.planner.hindrances()[&customer("a")], Hindrance::LittleGain { .. }));
}

#[test]
fn a_key_for_which_the_cap_is_not_enough_is_split_and_wants_a_shard_of_its_own() {
    let mut sim = Sim::new(vec![PlanSettings { max_buckets: 4, ..settings() }]);
    sim.hot = vec![hot("a", 700.0)];
    sim.settle();
    assert_eq!(sim.plan("a").unwrap().write.unwrap().buckets(), 4);
    let (action, reason) = advice(&sim, "a").unwrap();
    assert_eq!(action, Action::Isolate);
    assert!(
        reason.contains("4 buckets leave 25.0% of 700.0 requests/s on one of them, which may carry 100.0/s"),
        "{reason}"
    );
}

#[test]
fn scans_that_visit_every_bucket_want_a_shard_of_their_own() {
    let sim = settled(doing(Operations { reads: 0, writes: 200, scans: 800, unknown: 0 }));
    assert_eq!(advice(&sim, "a").unwrap().0, Action::Isolate);
    assert_eq!(sim.table.plans().len(), 0);
}

#[test]
fn without_request_ids_or_counts_there_is_neither_split_nor_advice() {
    let mut few = hot("a", 700.0);
    few.profile.buckets.fill(1);
    let sim = settled(few);
    assert_eq!(sim.table.plans().len() + sim.table.advised().len(), 0);
    assert_eq!(sim.planner.hindrances()[&customer("a")], Hindrance::Undecided { events: 256, needed: 800 });
    let mut lacking = hot("a", 700.0);
    lacking.profile.without_request_id = 100_000;
    let sim = settled(lacking);
    assert!(matches!(sim.planner.hindrances()[&customer("a")], Hindrance::NoRequestIds(_)));
    assert_eq!(sim.table.plans().len() + sim.table.advised().len(), 0);
}

#[test]
fn advice_ends_when_the_key_is_cool_and_does_not_flap() {
    let reads = Operations { reads: 990, writes: 10, scans: 0, unknown: 0 };
    let read = doing(reads);
    let mut sim = settled(read.clone());
    let before = sim.log.len();
    for turn in 0..30 {
        sim.hot = if turn % 2 == 0 { Vec::new() } else { vec![read.clone()] };
        sim.pass(60);
    }
    assert_eq!(sim.log.len(), before);
    sim.hot.clear();
    sim.pass(601);
    assert_eq!(advice(&sim, "a"), None);
}
