//! Events of the open pane are counted together.
//!
//! In several turns over all of them, since what one event reads lies far apart: so the misses of many events overlap, and what is
//! decided for each is a bit, not a branch. They are hashed, put into the sketch and looked up among the candidates; then each that
//! may change something is looked at, in their order, as if it had come alone.

use super::super::outbox::Outbox;
use super::super::sketch::key_hash;
use super::super::window::{MAX_WINDOWS, OpenEvent};
use super::counting::{Applicant, Keyspace, compares, request};
use crate::input::AccessEvent;
use crate::units::EventTime;

/// So many events at most are counted together: enough for their cells to be fetched at the same time.
pub(crate) const TOGETHER: usize = u64::BITS as usize;

/// Events that are counted together. A set of them is a number with one bit each, the first event's the lowest.
#[derive(Debug, Default)]
pub(super) struct Batch {
    events: Vec<OpenEvent>,
    /// Those with a key.
    keyed: u64,
    /// Those that name a shard.
    sharded: u64,
    /// Those whose key is a candidate of this revision, or may become one.
    noted: u64,
    revision: u64,
    /// No rule need look at the shards of these events: they are counted on them before any is looked at.
    are_shards_counted: bool,
}

impl Keyspace {
    /// Counts at most [`TOGETHER`] events on their keys, all of the open pane, or one of a pane before. Call `advance` with their own
    /// times before.
    pub(crate) fn add(&mut self, events: &[AccessEvent<'_>], newest: EventTime, out: &mut Outbox) {
        let mut batch = std::mem::take(&mut self.batch);
        self.hash(events, &mut batch);
        self.counts.add_open(&self.timeline, &mut batch.events);
        self.look_up(events, &mut batch, 0);
        let before = self.head_events;
        batch.are_shards_counted = self.find_calm_shards(events, &mut batch);
        if batch.are_shards_counted {
            self.count_shards(events, &batch);
        }
        // Where shards are counted there is nothing to do for an event on a key that is no candidate.
        let mut rest = if batch.are_shards_counted { batch.noted } else { batch.keyed };
        while rest != 0 {
            let place = rest.trailing_zeros();
            rest &= rest - 1;
            let Some(event) = events.get(place as usize) else { break };
            if batch.are_shards_counted && self.count_calmly(event, &batch, place) {
                continue;
            }
            self.look_at_event(event, &batch, (place, before), newest, out);
            if self.candidates.revision() != batch.revision {
                self.look_up(events, &mut batch, place as usize + 1);
                if batch.are_shards_counted {
                    rest = batch.noted & !up_to(place);
                }
            }
        }
        self.set_head_events(before, batch.events.last().map_or(0, |last| last.number));
        if let Some(late) = events.get(batch.events.len()) {
            self.add_late(late, newest, out);
        }
        self.batch = batch;
    }

    /// The newest windows have gained so many events.
    #[inline]
    fn set_head_events(&mut self, before: [u64; MAX_WINDOWS], number: u32) {
        let more = u64::from(number);
        self.head_events = [before[0] + more, before[1] + if self.timeline.has_long() { more } else { 0 }];
    }

    /// Takes the events up to the first late one, with their hashes.
    fn hash(&self, events: &[AccessEvent<'_>], batch: &mut Batch) {
        batch.events.clear();
        let (head_from_ms, seed, hot_on) =
            (self.timeline.head_from_ms(), self.settings.counting.seed, self.settings.hot_on);
        let (mut keyed, mut sharded, mut number, mut bit) = (0u64, 0u64, 0, 1);
        for event in events.get(..TOGETHER).unwrap_or(events) {
            let Some(key) = event.keys.get(self.number) else {
                batch.events.push(OpenEvent { number, ..OpenEvent::default() });
                bit <<= 1;
                continue;
            };
            if event.time.as_millis() < head_from_ms {
                break;
            }
            let compared = compares(hot_on, event.operation);
            keyed |= bit;
            sharded |= if event.shard.is_empty() { 0 } else { bit };
            bit <<= 1;
            number += u32::from(compared);
            batch.events.push(OpenEvent { hash: key_hash(key, seed), compared, number, ..OpenEvent::default() });
        }
        (batch.keyed, batch.sharded) = (keyed, sharded);
    }

    /// Finds which of the events from `first` on are noted, and where their keys are among the candidates.
    fn look_up(&self, events: &[AccessEvent<'_>], batch: &mut Batch, first: usize) {
        let (mut may_be, mut may_become) = (0, 0);
        for (place, event) in batch.events.iter_mut().enumerate().skip(first) {
            event.candidate = None;
            may_be |= u64::from(self.candidates.may_have(event.hash)) << place;
            let reaches = self.admission.may_admit(event.uppers, [true; MAX_WINDOWS]);
            may_become |= u64::from(event.compared & reaches) << place;
        }
        let mut is = 0;
        may_be &= batch.keyed;
        while may_be != 0 {
            let place = may_be.trailing_zeros();
            may_be &= may_be - 1;
            if let (Some(own), Some(event)) = (batch.events.get_mut(place as usize), events.get(place as usize)) {
                let key = event.keys.get(self.number).unwrap_or_default();
                own.candidate = self.candidates.look_up(own.hash, key);
                is |= u64::from(own.candidate.is_some()) << place;
            }
        }
        batch.noted = is | may_become;
        batch.revision = self.candidates.revision();
    }

    /// Finds the shards that the events name. False when one of them is not known by now, or is so near to a threshold that the rules
    /// may have to look at it.
    fn find_calm_shards(&self, events: &[AccessEvent<'_>], batch: &mut Batch) -> bool {
        let mut rest = batch.sharded;
        while rest != 0 {
            let place = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let (Some(own), Some(event)) = (batch.events.get_mut(place), events.get(place)) else { return false };
            own.shard = self.shards.calm(event.shard, u64::BITS);
            if own.shard.is_none() {
                return false;
            }
        }
        true
    }

    /// Counts the events on their shards, and notes when the keys were first seen.
    fn count_shards(&mut self, events: &[AccessEvent<'_>], batch: &Batch) {
        for (own, event) in batch.events.iter().zip(events) {
            let time_ms = event.time.as_millis();
            if let Some(at) = own.shard {
                self.shards.add_calm(at, own.compared, time_ms);
            }
            if own.compared {
                let first_s = self.first_second(own.hash, time_ms);
                if let Some(at) = own.shard {
                    self.note_shard(usize::from(at), own.hash, event, first_s);
                }
            }
        }
    }

    /// Counts an event on its candidate where that is all; else false.
    #[inline]
    fn count_calmly(&mut self, event: &AccessEvent<'_>, batch: &Batch, place: u32) -> bool {
        let own = batch.events.get(place as usize).filter(|own| own.compared);
        let candidate = own.and_then(|own| self.candidates.get_mut(own.candidate?));
        candidate.is_some_and(|candidate| candidate.add_calm(event.operation, event.weight))
    }

    /// Looks at one event that is in the sketch, and so are those after it; `before` are the numbers of events before all of them.
    #[inline]
    fn look_at_event(
        &mut self,
        event: &AccessEvent<'_>,
        batch: &Batch,
        (place, before): (u32, [u64; MAX_WINDOWS]),
        newest: EventTime,
        out: &mut Outbox,
    ) {
        let Some((own, after)) = batch.events.get(place as usize..).and_then(<[_]>::split_first) else { return };
        self.set_head_events(before, own.number);
        let shard = if batch.are_shards_counted {
            own.shard.map(usize::from)
        } else {
            self.note_open_shard(event, own, newest, out)
        };
        if batch.noted >> place & 1 == 0 {
            return;
        }
        let mut slot = own.candidate;
        match slot {
            Some(at) if own.compared && self.candidates.add_open(at) => self.look_at_key(at, newest, out),
            Some(_) => {}
            None if self.admission.may_admit(own.uppers, [true; MAX_WINDOWS]) => {
                slot = self.admit_open(event, own, after, newest, out);
            }
            None => {}
        }
        if let Some(candidate) = slot.and_then(|at| self.candidates.get_mut(at))
            && candidate.note_open(event.operation, event.weight)
        {
            candidate.look(self.timeline.generation(), &request(event, &self.shards, shard));
        }
    }

    /// Counts an event of the open pane on its shard; gives the shard's place in the list.
    #[inline]
    fn note_open_shard(
        &mut self,
        event: &AccessEvent<'_>,
        own: &OpenEvent,
        newest: EventTime,
        out: &mut Outbox,
    ) -> Option<usize> {
        let shard = self.shards.see(event.shard, event.time.as_millis(), &self.timeline);
        if own.compared {
            let first_s = self.first_second(own.hash, event.time.as_millis());
            if let Some(at) = shard {
                if self.shards.add_open(at) {
                    self.look_at_shard(at, newest, out);
                }
                self.note_shard(at, own.hash, event, first_s);
            }
        }
        shard
    }

    /// An event of the open pane may make its key a candidate; `after` are those that are in the sketch already.
    #[cold]
    fn admit_open(
        &mut self,
        event: &AccessEvent<'_>,
        own: &OpenEvent,
        after: &[OpenEvent],
        newest: EventTime,
        out: &mut Outbox,
    ) -> Option<usize> {
        let later = after.iter().filter(|later| later.compared && later.hash == own.hash).count() as u64;
        let (key, counted) = (event.keys.get(self.number)?, [true; MAX_WINDOWS]);
        self.admit_if_due(&Applicant { key, hash: own.hash, uppers: own.uppers, counted, later }, newest, out)
    }
}

/// The set of an event and those before it.
const fn up_to(place: u32) -> u64 {
    u64::MAX >> (u64::BITS - 1 - place)
}
