//! The store: cells in places, and what each call does there, one access after the other.

use keyheat::protocol::{Delete, Layout, Writes};
use keyheat::router::{GuardKind, ReadRule, Rules, WriteRule};

use super::spec::Call;
use super::{ID, Migration, Rule};
use crate::records::SEED;

/// What a place holds: 0 nothing, a negative number a tombstone, else a record. In a versioned keyspace the number is the version.
pub(crate) type Cells = Vec<(u32, i16)>;

/// A call in flight, with the guard that its placement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Flight {
    pub(crate) number: u8,
    pub(crate) call: Call,
    pub(crate) key: u8,
    /// The record of the log that placed it.
    pub(crate) under: u8,
    /// Accesses made.
    step: u8,
    /// What they brought.
    carried: i16,
}

/// A change of one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Change {
    pub(crate) place: u32,
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum What {
    Put(i16),
    /// If newer than what is there.
    PutNewer(i16),
    /// If nothing is there, not even a tombstone.
    PutAbsent(i16),
    Increment,
    PutUnique(i16),
}

/// The next access of a call.
pub(crate) struct Access {
    pub(crate) change: Option<Change>,
    pub(crate) then: Then,
}

/// What comes after an access.
pub(crate) enum Then {
    Goes(Flight),
    Answers(i16),
}

/// Promotion is over.
const PROMOTED: u8 = u8::MAX;

impl Call {
    pub(crate) const fn guard(self) -> GuardKind {
        match self {
            Self::Write | Self::Delete => GuardKind::Write,
            Self::Read | Self::Count => GuardKind::Read,
            Self::Increment | Self::InsertUnique => GuardKind::InPlace,
        }
    }
}

impl Change {
    /// Makes the change; gives the store's answer.
    pub(crate) fn make(self, cells: &mut Cells) -> i16 {
        let old = cell(cells, self.place);
        let (new, answer) = match self.what {
            What::Put(value) => (value, 0),
            What::PutNewer(value) => (if value.abs() > old.abs() { value } else { old }, 0),
            What::PutAbsent(value) => (if old == 0 { value } else { old }, 0),
            What::Increment => (old.max(0) + 1, old.max(0) + 1),
            What::PutUnique(value) if old <= 0 => (value, 1),
            What::PutUnique(_) => (old, 0),
        };
        set(cells, self.place, new);
        answer
    }

    pub(crate) const fn empties(place: u32) -> Self {
        Self { place, what: What::Put(0) }
    }

    /// What a mover does with a copy.
    pub(crate) const fn copies(place: u32, value: i16, writes: Writes) -> Option<Self> {
        match writes {
            Writes::Versioned if value != 0 => Some(Self { place, what: What::PutNewer(value) }),
            Writes::Insert | Writes::Update if value > 0 => Some(Self { place, what: What::PutAbsent(value) }),
            _ => None,
        }
    }
}

/// What a place holds.
pub(crate) fn cell(cells: &Cells, place: u32) -> i16 {
    cells.iter().find(|(other, _)| *other == place).map_or(0, |(_, value)| *value)
}

fn set(cells: &mut Cells, place: u32, value: i16) {
    cells.retain(|(other, _)| *other != place);
    if value != 0 {
        cells.push((place, value));
        cells.sort_unstable();
    }
}

impl Flight {
    pub(crate) const fn new(number: u8, call: Call, key: u8, under: u8) -> Self {
        Self { number, call, key, under, step: 0, carried: 0 }
    }

    /// After an access that found `carried`.
    const fn after(self, step: u8, carried: i16) -> Then {
        Then::Goes(Self { step, carried, ..self })
    }
}

impl Migration {
    /// The store's place of the id in a layout of a key.
    pub(crate) fn place(&self, rules: &Rules, layout: Layout, key: u8) -> u32 {
        let name = self.key(key).key;
        let bytes = rules.key_of(layout, rules.bucket_of(layout, self.id().as_bytes()), &name).into_owned();
        self.places.put(bytes.clone(), bytes)
    }

    /// The id's bucket of 2 and of 4.
    pub(crate) fn buckets(&self) -> (u32, u32) {
        let layout = |buckets| Layout::split(1, buckets, 0).unwrap();
        let bucket = |buckets| layout(buckets).bucket_of(self.id().as_bytes(), SEED);
        (bucket(2), bucket(4))
    }

    fn id(&self) -> &'static str {
        if self.setup.stays { ID.0 } else { ID.1 }
    }

    /// What a call writes: its number, so that each write can be told apart; in a versioned keyspace that is the version, and the one
    /// clock that gives versions is the order in which calls begin.
    pub(crate) const fn value_of(number: u8) -> i16 {
        number as i16 + 2
    }

    /// The next access of a call to `cells`.
    pub(crate) fn access(&self, flight: Flight, rules: &Rules, cells: &Cells) -> Access {
        let value = Self::value_of(flight.number);
        match flight.call {
            Call::Read | Call::Count => Access { change: None, then: self.look(flight, rules, cells) },
            Call::Write => {
                let what = match self.setup.writes {
                    Writes::Versioned => What::PutNewer(value),
                    Writes::Insert | Writes::Update => What::Put(value),
                };
                self.change(flight, rules, what)
            }
            Call::Delete => {
                let how = if self.setup.without == Rule::Tombstones { Delete::Remove } else { rules.delete() };
                let what = match (how, self.setup.writes) {
                    (Delete::Remove, _) => What::Put(0),
                    (Delete::Tombstone, Writes::Versioned) => What::PutNewer(-value),
                    (Delete::Tombstone, Writes::Insert | Writes::Update) => What::Put(-1),
                };
                self.change(flight, rules, what)
            }
            Call::Increment => self.in_place(flight, rules, cells, What::Increment),
            Call::InsertUnique => self.in_place(flight, rules, cells, What::PutUnique(value)),
        }
    }

    fn written_to(&self, flight: Flight, rules: &Rules) -> Layout {
        match rules.write_rule(flight.call.guard()) {
            WriteRule::Goes(layout) => layout,
            WriteRule::Waits | WriteRule::Forbidden(_) => panic!("a call was placed that has no place: {flight:?}"),
        }
    }

    fn change(&self, flight: Flight, rules: &Rules, what: What) -> Access {
        let place = self.place(rules, self.written_to(flight, rules), flight.key);
        // The answer of the store is the call's, and is known when the change is made.
        Access { change: Some(Change { place, what }), then: Then::Answers(0) }
    }

    /// An operation that needs the old value: the older record is copied first, then the store's own operation runs.
    fn in_place(&self, flight: Flight, rules: &Rules, cells: &Cells, what: What) -> Access {
        let write = self.written_to(flight, rules);
        if flight.carried > 0 {
            let place = self.place(rules, write, flight.key);
            let change = Change { place, what: What::PutAbsent(flight.carried) };
            return Access { change: Some(change), then: flight.after(PROMOTED, 0) };
        }
        let promotes = self.setup.without != Rule::Promotion && flight.step != PROMOTED;
        let older = rules.promotes_from(write).nth(usize::from(flight.step)).filter(|_| promotes);
        let Some(older) = older else { return self.change(flight, rules, what) };
        let found = cell(cells, self.place(rules, older, flight.key));
        let then = match found {
            0 => flight.after(flight.step + 1, 0),
            tombstone if tombstone < 0 => flight.after(PROMOTED, 0),
            record => flight.after(flight.step, record),
        };
        Access { change: None, then }
    }

    /// A read looks in one layout more.
    fn look(&self, flight: Flight, rules: &Rules, cells: &Cells) -> Then {
        let layouts: Vec<Layout> = rules.looks().collect();
        let step = usize::from(flight.step);
        let found = cell(cells, self.place(rules, layouts[step], flight.key));
        let last = step + 1 == layouts.len();
        if flight.call == Call::Count && self.setup.without == Rule::CountOnce {
            let sum = flight.carried + i16::from(found > 0);
            return if last { Then::Answers(sum) } else { flight.after(flight.step + 1, sum) };
        }
        let (best, over) = match rules.read_rule() {
            ReadRule::FirstFound => (found, found != 0),
            ReadRule::HighestVersion if found.abs() > flight.carried.abs() => (found, false),
            ReadRule::HighestVersion => (flight.carried, false),
        };
        if !last && !over {
            return flight.after(flight.step + 1, best);
        }
        Then::Answers(if flight.call == Call::Count { i16::from(best > 0) } else { best.max(0) })
    }
}
