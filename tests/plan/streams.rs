//! What a stream of events ends in: a split, advice, or nothing.

use keyheat::plan::{Action, Hindrance};

use super::closed_loop::{Loop, Traffic};
use super::sim::customer;

/// Two minutes of this.
fn after(traffic: &[Traffic]) -> Loop {
    let mut world = Loop::new();
    (0..120).for_each(|_| world.second(traffic));
    world
}

fn advice(world: &Loop, key: &str) -> Option<Action> {
    world.sim.table.advice(&customer(key)).map(|entry| entry.advice.action)
}

/// Nothing but quiet keys, and one just below its threshold.
#[test]
fn quiet_keys_end_in_nothing() {
    let world = after(&[Traffic::new("c1", 15)]);
    assert_eq!((world.sim.table.plans().len(), world.sim.table.advised().count()), (0, 0));
    assert!(world.sim.planner.hindrances().is_empty());
}

#[test]
fn hot_writes_of_many_callers_end_in_a_split() {
    let world = after(&[Traffic::new("c1", 100)]);
    assert!(world.is_split("c1"));
    assert_eq!(world.sim.states_of("c1").last(), Some(&"retire"));
    assert_eq!(advice(&world, "c1"), None);
    assert_eq!(world.sim.table.plans().len(), 1, "of no other key");
}

/// The same stream twice: where buckets are on shards of their own it stays split, where all events say one shard it goes back and rests.
#[test]
fn a_split_that_events_do_not_follow_ends_at_the_bare_key() {
    for spread in [true, false] {
        let mut world = Loop::new();
        world.spread = spread;
        (0..400).for_each(|_| world.second(&[Traffic::new("c1", 100)]));
        assert_eq!((world.is_split("c1"), world.begun("c1").len()), (spread, if spread { 1 } else { 2 }));
        let outcome = world.sim.plan("c1").unwrap().outcome.clone().unwrap();
        assert_eq!(outcome.helped, spread, "{outcome:?}");
        let shard = outcome.key_shard_share.unwrap();
        assert!(if spread { shard < 0.25 } else { shard > 0.999 }, "{outcome:?}");
        if !spread {
            assert_eq!(world.sim.planner.hindrances()[&customer("c1")], Hindrance::Cooldown);
        }
    }
}

#[test]
fn hot_reads_end_in_the_advice_to_cache() {
    // Of a hundred a second, ten at most write.
    let reads = Traffic { reads_of_ten: 10, ..Traffic::new("c1", 95) };
    let world = after(&[reads, Traffic::new("c1", 5)]);
    assert_eq!((world.is_split("c1"), advice(&world, "c1")), (false, Some(Action::CacheOrReplicate)));
    assert_eq!(world.sim.planner.hindrances()[&customer("c1")], Hindrance::Reads);
}

#[test]
fn one_caller_ends_in_the_advice_to_limit_it() {
    let job = Traffic { caller: Some("job-7"), ..Traffic::new("c1", 100) };
    let world = after(&[job, Traffic::new("c1", 3)]);
    assert_eq!((world.is_split("c1"), advice(&world, "c1")), (false, Some(Action::Limit)));
    assert_eq!(world.sim.planner.hindrances()[&customer("c1")], Hindrance::OneCaller);
    let reason = &world.sim.table.advice(&customer("c1")).unwrap().advice.reason;
    assert!(reason.starts_with("caller 'job-7' makes at least 9"), "{reason}");
}

#[test]
fn one_request_id_ends_in_the_advice_to_limit_it() {
    let same = Traffic { id: Some("always-this"), ..Traffic::new("c1", 100) };
    let world = after(&[same, Traffic::new("c1", 3)]);
    assert_eq!((world.is_split("c1"), advice(&world, "c1")), (false, Some(Action::Limit)));
    let reason = &world.sim.table.advice(&customer("c1")).unwrap().advice.reason;
    assert!(reason.contains("one request id"), "{reason}");
}

/// Many keys of one shard, none of them hot: buckets of a key are not the cure.
#[test]
fn a_hot_shard_without_a_hot_key_ends_in_no_split() {
    let many: Vec<Traffic> = (0..60).map(|key| Traffic::new(&format!("c{key}"), 8)).collect();
    let spread = ["s2", "s3", "s4"].map(|shard| Traffic { shard, ..Traffic::new(shard, 15) });
    let world = after(&[many, spread.to_vec()].concat());
    assert_eq!((world.sim.table.plans().len(), world.sim.table.advised().count()), (0, 0));
    let hot: Vec<_> = world.shard_loads().into_iter().filter(|shard| shard.hot_since.is_some()).collect();
    assert_eq!(hot.len(), 1, "{hot:?}");
    assert_eq!(&*hot[0].shard, b"s0");
}
