//! What a mapper says, held against where requests were served: placement by a wrong one would be luck that calls itself a plan.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::declared::Mapper;
use super::planned::{Planned, Settled};
use crate::engine::scatter;
use crate::input::AccessEvent;

/// Above this share of events that were served elsewhere a mapper is not placed by.
pub const MAX_MISMATCH: f64 = 0.01;
/// One that was above is placed by again at this share: between the two it stays as it was, so that chance does not turn it to and fro.
pub const BELIEVED_AGAIN: f64 = 0.002;
/// Nothing is said of a mapper on fewer events; so many are all looked at, and after them about one in 64.
pub const LEAST_CHECKED: u64 = 1000;
/// Events for one that is looked at, on average.
const ONE_IN: u64 = 64;
/// At twice as many events in the balance half of it is forgotten: what was long ago counts for little.
const MEMORY: u64 = 1024;

/// Whether buckets are placed by a mapper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MapperTrust {
    /// Too few events were looked at to say anything: it is placed by.
    #[default]
    Unchecked,
    /// Events are where it says.
    Confirmed,
    /// More than [`MAX_MISMATCH`] of the events were elsewhere, and not yet at most [`BELIEVED_AGAIN`] again: nothing is placed by it.
    Refuted,
}

impl MapperTrust {
    /// Its name in the API.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unchecked => "unchecked",
            Self::Confirmed => "confirmed",
            Self::Refuted => "refuted",
        }
    }
}

/// A mapper and what became of its predictions. Of a key with a plan it is told by the request's id which bucket it went to; while its
/// records move the key is left out, since where a request goes then depends on the router that sent it.
#[derive(Debug, Clone)]
pub struct MapperCheck {
    mapper: Mapper,
    /// Keys with a plan, and their one layout where they have one; none while nobody knows them.
    plans: Option<BTreeMap<Arc<[u8]>, Option<Settled>>>,
    /// Events until the next one that is looked at.
    wait: u64,
    checked: u64,
    elsewhere: u64,
    balance: Balance,
    refuted: bool,
}

/// The newest events that were looked at, older ones forgotten by halves.
#[derive(Debug, Clone, Copy, Default)]
struct Balance {
    checked: u64,
    elsewhere: u64,
}

impl MapperCheck {
    /// Nothing looked at. It begins when the keys with a plan are known.
    #[must_use]
    pub const fn new(mapper: Mapper) -> Self {
        Self {
            mapper,
            plans: None,
            wait: 0,
            checked: 0,
            elsewhere: 0,
            balance: Balance { checked: 0, elsewhere: 0 },
            refuted: false,
        }
    }

    /// These keys, and no others, have a plan from now on.
    pub fn set_plans(&mut self, plans: &[Planned]) {
        let known = self.plans.get_or_insert_default();
        if known.len() != plans.len() || !plans.iter().all(|plan| known.get(&plan.key) == Some(&plan.settled)) {
            *known = plans.iter().map(|plan| (Arc::clone(&plan.key), plan.settled)).collect();
        }
    }

    /// One event and its key in the keyspace; without a shard it says nothing.
    #[inline]
    pub fn see(&mut self, key: &[u8], event: &AccessEvent<'_>) {
        if self.wait > 0 {
            self.wait -= 1;
        } else if !event.shard.is_empty() {
            self.look(key, event);
        }
    }

    fn look(&mut self, key: &[u8], event: &AccessEvent<'_>) {
        let Some(plans) = &self.plans else { return };
        let stored = match plans.get(key) {
            None => Some(Cow::Borrowed(key)),
            Some(settled) => settled.and_then(|settled| settled.key_of(key, event)),
        };
        let Some(stored) = stored else { return };
        let elsewhere = u64::from(self.mapper.shard_name(&stored).as_bytes() != event.shard);
        self.checked += 1;
        self.elsewhere += elsewhere;
        self.balance.checked += 1;
        self.balance.elsewhere += elsewhere;
        if self.balance.checked >= 2 * MEMORY {
            self.balance.checked /= 2;
            self.balance.elsewhere /= 2;
        }
        if self.checked >= LEAST_CHECKED {
            let most = if self.refuted { BELIEVED_AGAIN } else { MAX_MISMATCH };
            self.refuted = self.share().is_some_and(|share| share > most);
            // Not every 64th: a stream may have a rhythm of its own.
            self.wait = scatter(self.checked) % (2 * ONE_IN - 1);
        }
    }

    /// The mapper.
    #[must_use]
    pub const fn mapper(&self) -> &Mapper {
        &self.mapper
    }

    /// Events that were looked at since the start.
    #[must_use]
    pub const fn checked(&self) -> u64 {
        self.checked
    }

    /// Of these, those that were served elsewhere than the mapper says.
    #[must_use]
    pub const fn elsewhere(&self) -> u64 {
        self.elsewhere
    }

    /// Share of events that were served elsewhere, of the newest one to two thousand that were looked at; none before the first.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "at most 2048")]
    pub fn share(&self) -> Option<f64> {
        (self.balance.checked > 0).then(|| self.balance.elsewhere as f64 / self.balance.checked as f64)
    }

    /// Whether buckets are placed by it.
    #[must_use]
    pub const fn trust(&self) -> MapperTrust {
        if self.checked < LEAST_CHECKED {
            MapperTrust::Unchecked
        } else if self.refuted {
            MapperTrust::Refuted
        } else {
            MapperTrust::Confirmed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MapperKind, ShardHash};
    use super::*;
    use crate::input::Operation;
    use crate::protocol::Layout;
    use crate::units::EventTime;

    fn mapper(hash: ShardHash) -> Mapper {
        Mapper::new(MapperKind::Modulo(hash), (0..8).map(|number| format!("s{number}")).collect()).unwrap()
    }

    fn see(check: &mut MapperCheck, key: &[u8], shard: &str) {
        check.see(key, &AccessEvent { shard: shard.as_bytes(), ..AccessEvent::new(EventTime::MIN, key) });
    }

    /// A check of murmur2 that has seen events served by a store that maps otherwise for each of the given numbers of events.
    fn seen(stores: &[(ShardHash, u64)]) -> MapperCheck {
        let mut check = MapperCheck::new(mapper(ShardHash::Murmur2));
        check.set_plans(&[]);
        let mut number = 0_u64;
        for (hash, events) in stores {
            let store = mapper(*hash);
            for _ in 0..*events {
                let key = format!("c{}", number % 997).into_bytes();
                see(&mut check, &key, store.shard_name(&key));
                number += 1;
            }
        }
        check
    }

    #[test]
    fn events_where_they_should_be_confirm_it_and_elsewhere_refute_it() {
        let right = seen(&[(ShardHash::Murmur2, 100_000)]);
        assert_eq!((right.share(), right.elsewhere(), right.trust()), (Some(0.0), 0, MapperTrust::Confirmed));
        let wrong = seen(&[(ShardHash::Xxh64, 100_000)]);
        // One of eight shards is right by luck.
        let share = wrong.share().unwrap();
        assert!((0.8..0.95).contains(&share), "{share}");
        assert_eq!(wrong.trust(), MapperTrust::Refuted);
    }

    #[test]
    fn the_right_function_with_shards_in_another_order_is_wrong_for_every_key() {
        let store = mapper(ShardHash::Murmur2);
        let mut names = store.shards().to_vec();
        names.rotate_left(1);
        let mut check = MapperCheck::new(Mapper::new(MapperKind::Modulo(ShardHash::Murmur2), names).unwrap());
        check.set_plans(&[]);
        for number in 0..100_000_u64 {
            let key = number.to_le_bytes();
            see(&mut check, &key, store.shard_name(&key));
        }
        assert_eq!((check.share(), check.elsewhere()), (Some(1.0), check.checked()));
        assert_eq!(check.trust(), MapperTrust::Refuted);
    }

    #[test]
    fn the_first_thousand_are_all_looked_at_and_then_one_in_64() {
        assert_eq!(seen(&[(ShardHash::Murmur2, 1000)]).checked(), 1000);
        let checked = seen(&[(ShardHash::Murmur2, 1000 + 640_000)]).checked() - 1000;
        assert!((9_500..10_500).contains(&checked), "{checked}");
    }

    #[test]
    fn nothing_is_said_on_few_events() {
        for (events, trust) in
            [(0, MapperTrust::Unchecked), (999, MapperTrust::Unchecked), (1000, MapperTrust::Refuted)]
        {
            assert_eq!(seen(&[(ShardHash::Xxh64, events)]).trust(), trust, "{events}");
        }
        assert_eq!(seen(&[]).share(), None);
    }

    #[test]
    fn one_in_a_hundred_is_borne_and_more_is_not() {
        for (every, trust) in [(150, MapperTrust::Confirmed), (60, MapperTrust::Refuted)] {
            let mut check = MapperCheck::new(mapper(ShardHash::Murmur2));
            check.set_plans(&[]);
            let store = mapper(ShardHash::Murmur2);
            for number in 0..1000_u64 {
                let key = number.to_le_bytes();
                let shard = if number % every == 0 { "elsewhere" } else { store.shard_name(&key) };
                see(&mut check, &key, shard);
            }
            assert_eq!(check.trust(), trust, "one in {every}");
        }
    }

    #[test]
    fn chance_about_the_limit_does_not_turn_it_to_and_fro() {
        let mut check = MapperCheck::new(mapper(ShardHash::Murmur2));
        check.set_plans(&[]);
        let store = mapper(ShardHash::Murmur2);
        let mut turns = 0;
        // 1 % on average, in stretches of 0.7 % and of 1.3 %.
        for number in 0..4_000_000_u64 {
            let before = check.trust();
            let key = number.to_le_bytes();
            let every = if number / 400_000 % 2 == 0 { 77 } else { 143 };
            let shard = if scatter(number).is_multiple_of(every) { "elsewhere" } else { store.shard_name(&key) };
            see(&mut check, &key, shard);
            turns += u32::from(before != check.trust());
        }
        assert_eq!(check.trust(), MapperTrust::Refuted);
        assert!(turns <= 2, "from unchecked, at most by way of confirmed, to refuted: {turns}");
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let moved = seen(&[(ShardHash::Murmur2, 1_000_000), (ShardHash::Xxh64, 10_000)]);
        assert_eq!(moved.trust(), MapperTrust::Refuted, "within 10,000 events");
        let back = seen(&[(ShardHash::Xxh64, 100_000), (ShardHash::Murmur2, 1_000_000)]);
        assert_eq!(back.trust(), MapperTrust::Confirmed, "after a million events");
        assert!(back.elsewhere() > 1000, "what happened stays counted");
    }

    fn planned(key: &str, settled: Option<Settled>) -> Planned {
        Planned { key: Arc::from(key.as_bytes()), settled }
    }

    #[test]
    fn a_key_that_moves_and_events_without_a_shard_say_nothing() {
        let mut check = MapperCheck::new(mapper(ShardHash::Murmur2));
        let wrong =
            |check: &mut MapperCheck, key: &str, shard| (0..500).for_each(|_| see(check, key.as_bytes(), shard));
        wrong(&mut check, "c1", "elsewhere");
        assert_eq!(check.checked(), 0, "nobody knows yet which keys have a plan");
        check.set_plans(&[planned("c1", None)]);
        wrong(&mut check, "c1", "elsewhere");
        wrong(&mut check, "c2", "");
        assert_eq!(check.checked(), 0);
        check.set_plans(&[planned("c2", None)]);
        wrong(&mut check, "c1", "elsewhere");
        wrong(&mut check, "c2", "elsewhere");
        assert_eq!((check.checked(), check.elsewhere()), (500, 500));
    }

    #[test]
    fn a_split_key_is_looked_for_in_the_bucket_of_the_request() {
        let at = |ms| EventTime::from_millis(ms).unwrap();
        let layout = Layout::split(1, 8, 100).unwrap();
        let settled = Settled { layout, seed: 7, from: at(5_000) };
        let event = |id: &'static str, operation, ms| AccessEvent {
            shard: b"?",
            request_id: id.as_bytes(),
            operation,
            ..AccessEvent::new(at(ms), b"c42")
        };
        let key_of = |settled: Settled, event| {
            settled.key_of(b"c42", &event).map(|key| String::from_utf8(key.into_owned()).unwrap())
        };
        let bucket = layout.bucket_of(b"r1", 7);
        let stored = Some(format!("c42:{}", 100 + bucket));
        for operation in [Operation::Read, Operation::Write, Operation::Delete] {
            assert_eq!(key_of(settled, event("r1", operation, 5_000)), stored, "{operation:?}");
        }
        for (id, operation, ms) in [
            ("r1", Operation::Write, 4_999),
            ("r1", Operation::Scan, 5_000),
            ("", Operation::Write, 5_000),
            ("r1", Operation::Unknown, 5_000),
        ] {
            assert_eq!(key_of(settled, event(id, operation, ms)), None, "{id} {operation:?} {ms}");
        }
        let bare = Settled { layout: Layout::BARE, ..settled };
        assert_eq!(key_of(bare, event("", Operation::Scan, 5_000)), Some("c42".to_owned()));

        // Every request where its bucket is, none where the key itself was: nearly all buckets are on other shards.
        let (mut right, mut wrong) =
            (MapperCheck::new(mapper(ShardHash::Murmur2)), MapperCheck::new(mapper(ShardHash::Murmur2)));
        for check in [&mut right, &mut wrong] {
            check.set_plans(&[planned("c42", Some(settled))]);
            assert_eq!(check.trust(), MapperTrust::Unchecked);
        }
        let store = mapper(ShardHash::Murmur2);
        for number in 0..1000 {
            let id = format!("r{number}");
            let in_bucket = format!("c42:{}", 100 + layout.bucket_of(id.as_bytes(), 7));
            let event = |shard| AccessEvent {
                shard,
                request_id: id.as_bytes(),
                operation: Operation::Write,
                ..AccessEvent::new(at(9_000), b"c42")
            };
            right.see(b"c42", &event(store.shard_name(in_bucket.as_bytes()).as_bytes()));
            wrong.see(b"c42", &event(store.shard_name(b"c42").as_bytes()));
        }
        assert_eq!((right.checked(), right.elsewhere(), right.trust()), (1000, 0, MapperTrust::Confirmed));
        assert_eq!((wrong.checked(), wrong.trust()), (1000, MapperTrust::Refuted));
    }
}
