//! Where buckets go, and when a declared mapper is not believed.

use std::collections::BTreeSet;

use keyheat::plan::{Mapper, MapperKind, MapperTrust, PlanSettings, RingPoints, SeededHash, ShardHash};
use keyheat::protocol::PlanRecord;

use super::sim::{Sim, hot, settings};

/// Functions that spread the buckets of a key, onto eight shards.
fn spreading() -> Vec<Mapper> {
    let kinds = [
        MapperKind::Modulo(ShardHash::Murmur2),
        MapperKind::Jump(ShardHash::Xxh64),
        MapperKind::Rendezvous(ShardHash::Xxh64),
        MapperKind::Ring { hash: RingPoints::Ketama, points: 160 },
        MapperKind::MultiProbe { hash: SeededHash::Siphash, seeds: [1, 2], probes: 21 },
        MapperKind::Maglev { table_size: 65_537 },
    ];
    kinds
        .into_iter()
        .map(|kind| Mapper::new(kind, (0..8).map(|shard| format!("s{shard}")).collect()).unwrap())
        .collect()
}

/// The plan of a key that wants eight buckets.
fn planned(mapper: &Mapper, trust: &[MapperTrust]) -> PlanRecord {
    let mut sim = Sim::new(vec![PlanSettings { mapper: Some(mapper.clone()), ..settings() }]);
    sim.mappers = trust.to_vec();
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    sim.plan("c42").unwrap().clone()
}

fn places(mapper: &Mapper, record: &PlanRecord) -> BTreeSet<usize> {
    let write = record.write.unwrap();
    let key = |bucket| format!("c42:{}", write.label(bucket).unwrap());
    (0..write.buckets()).map(|bucket| mapper.shard_of(key(bucket).as_bytes())).collect()
}

#[test]
fn eight_buckets_go_to_eight_shards_whatever_the_function() {
    for mapper in spreading() {
        let record = planned(&mapper, &[]);
        assert_eq!((record.write.unwrap().buckets(), places(&mapper, &record).len()), (8, 8), "{}", mapper.label());
    }
}

/// Every label of a key with a hash tag is in one slot: nothing is gained, and the search ends all the same.
#[test]
fn where_buckets_cannot_be_spread_the_first_label_is_taken() {
    let slots = MapperKind::Slots(vec![keyheat::plan::SlotRange { first: 0, last: 16_383, shard: 1 }]);
    let mapper = Mapper::new(slots, vec!["s0".to_owned(), "s1".to_owned()]).unwrap();
    let record = planned(&mapper, &[MapperTrust::Confirmed]);
    assert_eq!((record.write.unwrap().first(), places(&mapper, &record).len()), (0, 1));
}

#[test]
fn a_refuted_mapper_is_not_placed_by_and_the_split_goes_on() {
    for mapper in spreading() {
        let [unchecked, confirmed, refuted] = [MapperTrust::Unchecked, MapperTrust::Confirmed, MapperTrust::Refuted]
            .map(|trust| planned(&mapper, &[trust]));
        assert_eq!(unchecked, confirmed);
        assert!(confirmed.write.unwrap().first() > 0, "{}: the first labels are no good place", mapper.label());
        let write = refuted.write.unwrap();
        assert_eq!((write.buckets(), write.first()), (8, 0), "{}", mapper.label());
        let prediction = refuted.prediction;
        assert_eq!((prediction.hottest_shard_before, prediction.hottest_shard_after), (None, None));
    }
}

#[test]
fn doubt_in_one_keyspace_is_none_in_another() {
    let mapper = &spreading()[0];
    let settings = |name: &str| PlanSettings { keyspace: name.to_owned(), mapper: Some(mapper.clone()), ..settings() };
    let mut sim = Sim::new(vec![settings("customer"), settings("object")]);
    sim.mappers = vec![MapperTrust::Confirmed, MapperTrust::Refuted];
    sim.hot = vec![hot("c42", 700.0)];
    sim.settle();
    assert!(sim.plan("c42").unwrap().write.unwrap().first() > 0);
}
