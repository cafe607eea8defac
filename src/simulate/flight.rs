//! Calls in flight and what they do when they land.

use std::collections::BTreeSet;

use super::clients::{id_of, number_of};
use super::shards::Shards;
use super::store::Row;
use super::traffic::{Traffic, WrongAnswer};
use super::truth::Since;
use crate::input::Operation;
use crate::protocol::Delete;
use crate::router::{
    Cursor, DeletePlacement, Fetch, Gather, GatherSettings, LookUp, Page, Place, Placement, ReadPlacement, ReadRule,
    Row as Listed, ScanPlacement, Step, Write,
};
use crate::units::EventTime;

/// Sizes of a scan's pages.
const SCAN: GatherSettings = GatherSettings { page_rows: 500, fetch_rows: 64, parallel: 8, page_depth: 64 };

/// A call that lands at a known moment.
pub(super) enum Flight<'a> {
    Write(Box<WriteFlight<'a>>),
    Read(Box<ReadFlight<'a>>),
    Scan(Box<ScanFlight<'a>>),
}

/// How a record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteKind {
    /// Insert or overwrite.
    Put,
    /// Needs the old value.
    InPlace,
    /// Delete.
    Delete,
}

/// The guard of a write; none once its client has lost sight of it.
enum Guard<'a> {
    Write(Placement<'a>),
    Delete(DeletePlacement<'a>),
    None,
}

pub(super) struct WriteFlight<'a> {
    guard: Guard<'a>,
    pub(super) kind: WriteKind,
    pub(super) client: usize,
    pub(super) record: usize,
    pub(super) id: Vec<u8>,
    /// The store's key.
    pub(super) place: Vec<u8>,
    /// For a delete: how.
    how: Delete,
    pub(super) since: Since,
    pub(super) row: Row,
    /// The store drops a call that is older.
    pub(super) dropped_after_ns: u64,
}

impl<'a> WriteFlight<'a> {
    pub(super) fn put(write: Write<Placement<'a>>) -> Write<Self> {
        placed(write, |placement| {
            let place = placement.place().key.to_vec();
            Self::new(WriteKind::Put, Guard::Write(placement), place, Delete::Remove)
        })
    }

    pub(super) fn in_place(write: Write<Placement<'a>>) -> Write<Self> {
        placed(write, |placement| {
            let place = placement.place().key.to_vec();
            Self::new(WriteKind::InPlace, Guard::Write(placement), place, Delete::Remove)
        })
    }

    pub(super) fn delete(write: Write<DeletePlacement<'a>>) -> Write<Self> {
        placed(write, |placement| {
            let (place, how) = (placement.place().key.to_vec(), placement.how());
            Self::new(WriteKind::Delete, Guard::Delete(placement), place, how)
        })
    }

    fn new(kind: WriteKind, guard: Guard<'a>, place: Vec<u8>, how: Delete) -> Self {
        Self {
            guard,
            kind,
            client: 0,
            record: 0,
            id: Vec::new(),
            place,
            how,
            since: super::truth::Truth::default().since(),
            row: Row { revision: 0, live: false },
            dropped_after_ns: u64::MAX,
        }
    }

    /// Whose record it writes.
    pub(super) fn of(self, client: usize, record: usize, id: Vec<u8>) -> Self {
        Self { client, record, id, ..self }
    }

    /// The client does not know any more what becomes of the call; it is over at `until`.
    pub(super) fn lose_sight(&mut self, until: EventTime) {
        match std::mem::replace(&mut self.guard, Guard::None) {
            Guard::Write(placement) => placement.outcome_unknown(until),
            Guard::Delete(placement) => placement.outcome_unknown(until),
            Guard::None => {}
        }
    }
}

fn placed<P, Q>(write: Write<P>, change: impl FnOnce(P) -> Q) -> Write<Q> {
    match write {
        Write::Placed(placement) => Write::Placed(change(placement)),
        Write::Held(held) => Write::Held(held),
    }
}

pub(super) struct ReadFlight<'a> {
    pub(super) placement: ReadPlacement<'a>,
    pub(super) client: usize,
    pub(super) record: usize,
    pub(super) id: Vec<u8>,
    pub(super) since: Since,
    /// Number of the place that is being looked in.
    pub(super) looked: usize,
    pub(super) best: Option<Row>,
}

pub(super) struct ScanFlight<'a> {
    pub(super) placement: ScanPlacement<'a>,
    pub(super) client: usize,
    pub(super) since: Vec<Since>,
    pub(super) found: Vec<Option<Row>>,
    pub(super) cursor: Option<Cursor>,
    pub(super) shard: usize,
}

impl<'a> Traffic<'a> {
    /// The call's moment has come.
    pub(super) fn land(&mut self, at_ns: u64, flight: Flight<'a>) {
        match flight {
            Flight::Write(flight) => self.written(at_ns, *flight),
            Flight::Read(flight) => self.looked(at_ns, *flight),
            Flight::Scan(flight) => self.scanned(at_ns, *flight),
        }
    }

    fn written(&mut self, at_ns: u64, flight: WriteFlight<'a>) {
        let WriteFlight { guard, kind, client, record, id, place, how, since, row, dropped_after_ns } = flight;
        let shard = self.shards.number_of(&place);
        let operation = if kind == WriteKind::Delete { Operation::Delete } else { Operation::Write };
        let dropped = self.now_ns() > dropped_after_ns;
        if !dropped {
            if let (Guard::Write(placement), WriteKind::InPlace) = (&guard, kind) {
                let found = promote(self.shards, placement.promote_from(), &place, &id);
                let (checked, placed_by) =
                    (self.records[client][record].truth.check(since, found), placement.version());
                self.judge(checked, |wrong| WrongAnswer { wrong, operation, client, id: id.clone(), found, placed_by });
            }
            let mut store = self.shards.store_of(&place);
            if kind == WriteKind::Delete && how == Delete::Remove {
                store.remove(&place, &id);
            } else {
                store.upsert(&place, &id, row);
            }
            drop(store);
            self.records[client][record].truth.complete();
        }
        // The store has answered: only now does the router let go of the placement.
        drop(guard);
        self.records[client][record].busy = false;
        self.serve(at_ns, client, id, operation, shard);
    }

    /// Sends the call that looks in the next place.
    pub(super) fn look(&mut self, at_ns: u64, flight: ReadFlight<'a>) {
        let shard = self.shards.number_of(&flight.placement.places()[flight.looked].key);
        match self.call(at_ns, shard) {
            Ok(done_ns) => self.fly(done_ns, Flight::Read(Box::new(flight))),
            Err(_) => self.refuse(at_ns, flight.client, flight.id, Operation::Read, shard),
        }
    }

    fn looked(&mut self, at_ns: u64, mut flight: ReadFlight<'a>) {
        let place = &flight.placement.places()[flight.looked].key;
        let shard = self.shards.number_of(place);
        let found = self.shards.store_of(place).get(place, &flight.id);
        flight.best = match (flight.best, found) {
            (Some(best), Some(found)) if found.revision <= best.revision => Some(best),
            (best, found) => found.or(best),
        };
        flight.looked += 1;
        let enough = flight.best.is_some() && flight.placement.rule() == ReadRule::FirstFound;
        if !enough && flight.looked < flight.placement.places().len() {
            self.look(at_ns, flight);
            return;
        }
        let checked = self.records[flight.client][flight.record].truth.check(flight.since, flight.best);
        self.judge(checked, |wrong| WrongAnswer {
            wrong,
            operation: Operation::Read,
            client: flight.client,
            id: flight.id.clone(),
            found: flight.best,
            placed_by: flight.placement.version(),
        });
        self.serve(at_ns, flight.client, flight.id, Operation::Read, shard);
    }

    /// Brings one page. Its fetches are done at one moment; other calls come between the pages.
    fn scanned(&mut self, at_ns: u64, mut flight: ScanFlight<'a>) {
        let Some((page, done_ns)) = self.page(at_ns, &mut flight) else {
            self.refuse(at_ns, flight.client, Vec::new(), Operation::Scan, flight.shard);
            return;
        };
        for listed in page.rows {
            let number = number_of(&listed.id).filter(|number| *number < flight.found.len());
            if let Some(number) = number {
                flight.found[number] = Some(Row { revision: listed.version, live: !listed.tombstone });
            }
        }
        flight.cursor = page.next;
        if flight.cursor.is_some() {
            self.fly(done_ns, Flight::Scan(Box::new(flight)));
            return;
        }
        let records = self.records[flight.client].iter().zip(&flight.since).zip(&flight.found).enumerate();
        let mut checked =
            records.map(|(number, ((record, since), found))| (number, record.truth.check(*since, *found)));
        // A scan is one answer, right when every record in it is.
        let (number, checked) = checked.find(|(_, checked)| checked.is_err()).unwrap_or((0, Ok(())));
        self.judge(checked, |wrong| WrongAnswer {
            wrong,
            operation: Operation::Scan,
            client: flight.client,
            id: id_of(number),
            found: flight.found.get(number).copied().flatten(),
            placed_by: flight.placement.version(),
        });
        self.serve(at_ns, flight.client, Vec::new(), Operation::Scan, flight.shard);
    }

    /// The next page and when its last call is done; none when a shard refused one.
    fn page(&mut self, at_ns: u64, flight: &mut ScanFlight<'a>) -> Option<(Page<()>, u64)> {
        let mut gather = Gather::new(&flight.placement, SCAN, flight.cursor.clone());
        let mut done_ns = at_ns;
        loop {
            match gather.step() {
                Step::Fetch(fetches) => {
                    for fetch in fetches {
                        let place = &flight.placement.places()[fetch.place].key;
                        flight.shard = self.shards.number_of(place);
                        done_ns = done_ns.max(self.call(at_ns, flight.shard).ok()?);
                        let rows = fetched(self.shards, place, &fetch);
                        let end = rows.len() < fetch.rows;
                        gather.fetched(fetch.place, rows, end).ok()?;
                    }
                }
                Step::LookUp(lookups) => {
                    // One call asks a shard for all ids that are to be looked up there.
                    let places = lookups.iter().flat_map(|lookup| &lookup.places);
                    let asked: BTreeSet<usize> = places.map(|place| self.shards.number_of(&place.key)).collect();
                    for shard in asked {
                        done_ns = done_ns.max(self.call(at_ns, shard).ok()?);
                    }
                    for lookup in lookups {
                        gather.looked_up(lookup.ticket, looked_up(self.shards, &lookup)).ok()?;
                    }
                }
                // Every call was answered above.
                Step::Wait => return None,
                Step::Page(page) => return Some((page, done_ns)),
            }
        }
    }
}

fn fetched(shards: &Shards, place: &[u8], fetch: &Fetch) -> Vec<Listed<()>> {
    let after = fetch.after.as_ref().map(|cursor| cursor.id.as_slice());
    let page = shards.store_of(place).page(place, after, fetch.rows);
    page.into_iter().map(|(id, row)| listed(id.into_vec(), row)).collect()
}

const fn listed(id: Vec<u8>, row: Row) -> Listed<()> {
    Listed { sort_key: Vec::new(), id, version: row.revision, tombstone: !row.live, value: () }
}

/// The copy in the first of the places that has one: what goes first in a keyspace whose records are updated.
fn looked_up(shards: &Shards, lookup: &LookUp<'_>) -> Option<Listed<()>> {
    let mut rows = lookup.places.iter().filter_map(|place| shards.store_of(&place.key).get(&place.key, &lookup.id));
    rows.next().map(|row| listed(lookup.id.clone(), row))
}

/// Copies the record from the newest older place that has it, unless the place has one; what the place holds then.
fn promote(shards: &Shards, older: &[Place<'_>], place: &[u8], id: &[u8]) -> Option<Row> {
    let there = shards.store_of(place).get(place, id);
    if there.is_some() {
        return there;
    }
    let row = older.iter().find_map(|older| shards.store_of(&older.key).get(&older.key, id))?;
    let mut store = shards.store_of(place);
    store.insert_if_absent(place, id, row);
    store.get(place, id)
}
