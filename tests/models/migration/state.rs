//! The state of a migration's world, small enough to be kept a million times.

use keyheat::protocol::{Nonce, Version};

use super::spec::{Call, Spec};
use super::store::{Cells, Change, Flight};
use super::{Budget, Migration};
use crate::explore::Step;

/// Everything at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// The table after each record of the plan topic; the first is that of the first leader's claim.
    pub(super) log: Vec<u32>,
    pub(super) leader: Leader,
    /// The record that a leader had in flight when another one took its place.
    pub(super) late_record: Option<u32>,
    /// The acks topic: what each router said last.
    pub(super) acks: Vec<Option<Ack>>,
    pub(super) routers: Vec<Router>,
    pub(super) keys: Vec<Key>,
    /// Calls of unknown outcome that may still land.
    pub(super) late: Vec<Late>,
    /// Calls that are still to be made, of each kind.
    pub(super) left: Vec<u8>,
    /// The number of the next call.
    pub(super) next: u8,
    pub(super) may: Budget,
    pub(super) fault: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Leader {
    pub(super) epoch: u64,
    pub(super) seq: u64,
    /// Sent, and not on the topic yet.
    pub(super) flying: Option<u32>,
}

impl Leader {
    pub(super) const fn nonce(&self) -> Nonce {
        Nonce(self.epoch)
    }

    pub(super) const fn next(&self) -> Version {
        Version { epoch: self.epoch, seq: self.seq + 1 }
    }
}

/// A router's acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Ack {
    /// The place in the log up to which it has applied.
    pub(super) applied: u8,
    /// A bit for each key that still waits.
    pub(super) waiting: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Router {
    pub(super) stage: Stage,
    /// The place in the log up to which it has applied.
    pub(super) at: u8,
    /// Its snapshot holds at least so much of it.
    pub(super) kept: u8,
    pub(super) flight: Option<Flight>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// Not there yet.
    Out,
    /// It has appended its record.
    Joining,
    Serving,
    /// Dead, with its snapshot.
    Down,
}

/// A key with its one id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// Migrations that were begun.
    pub(super) walked: u8,
    pub(super) cells: Cells,
    pub(super) mover: Mover,
    /// The owner's reports: number of the layout, name of the migration.
    pub(super) moved: Option<(u32, Version)>,
    pub(super) retired: Option<(u32, Version)>,
    pub(super) spec: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Mover {
    Idle,
    /// It has read the record in the old layout, for the migration with this name.
    Read(Version, i16),
    Copied(Version),
}

/// A call of unknown outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Late {
    pub(super) router: u8,
    /// Its router has died since.
    pub(super) of_former_life: bool,
    pub(super) call: Call,
    pub(super) key: u8,
    pub(super) under: u8,
    pub(super) change: Change,
}

impl State {
    /// The table at the end of the plan topic.
    pub(super) fn newest(&self) -> u32 {
        self.log.last().copied().unwrap_or_default()
    }

    /// The place in the log of the last record.
    pub(super) fn end(&self) -> u8 {
        u8::try_from(self.log.len() - 1).unwrap()
    }

    pub(super) fn serving(&self) -> impl Iterator<Item = &Router> + Clone {
        self.routers.iter().filter(|router| router.stage == Stage::Serving)
    }
}

impl Migration {
    /// The world with this table as the plan topic's first, an earlier migration's report still on the acks topic.
    pub(super) fn start_from(&self, table: u32) -> State {
        let setup = &self.setup;
        let router = |which: u8| {
            let out = setup.joins && which + 1 == setup.routers;
            Router { stage: if out { Stage::Out } else { Stage::Serving }, at: 0, kept: 0, flight: None }
        };
        let routers: Vec<_> = (0..setup.routers).map(router).collect();
        let registered = |router: &Router| (router.stage == Stage::Serving).then_some(Ack { applied: 0, waiting: 0 });
        let spec = Spec::new(i16::from(setup.present));
        let spec = self.specs.put(spec.clone(), spec);
        let key = |key: u8| {
            let bare = self.place(&keyheat::router::Rules::bare(), keyheat::protocol::Layout::BARE, key);
            Key {
                walked: 0,
                cells: if setup.present { vec![(bare, 1)] } else { Vec::new() },
                mover: Mover::Idle,
                moved: Some((1, Version { epoch: 0, seq: 7 })),
                retired: Some((0, Version { epoch: 0, seq: 7 })),
                spec,
            }
        };
        State {
            log: vec![table],
            leader: Leader { epoch: 1, seq: 0, flying: None },
            late_record: None,
            acks: routers.iter().map(registered).collect(),
            routers,
            keys: (0..setup.keys).map(key).collect(),
            late: Vec::new(),
            left: setup.calls.iter().map(|(_, times)| *times).collect(),
            next: 0,
            may: setup.may,
            fault: None,
        }
    }
}

/// What happened in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Label {
    LeaderDecides(u8, &'static str),
    LeaderTurnsBack(u8),
    LeaderTurnsRound(u8),
    LeaderAnswers,
    RecordLands,
    NewLeader,
    LateRecordLands,
    Applies(u8),
    Acknowledges(u8),
    Crashes(u8),
    RestartsAt(u8, u8),
    SnapshotLostJoins(u8),
    AppendsJoin(u8),
    ReadsToTheEndServes(u8),
    Begins(u8, Call, u8),
    Accesses(u8, Call),
    Answers(u8, Call, i16),
    GivesUp(u8, Call),
    CrashesWithCall(u8, Call),
    LateCallLands(u8, Call),
    LateCallIsLost(u8, Call),
    MoverReads(u8),
    MoverCopies(u8),
    OwnerReportsMoved(u8),
    OwnerEmpties(u8),
    OwnerPurges(u8),
    OwnerReportsRetired(u8),
}

/// The kinds of steps.
pub(crate) const KINDS: &[&str] = &[
    "a record is decided",
    "a hold is turned back",
    "a migration is turned round",
    "a refused record is answered",
    "a record lands",
    "a new leader",
    "a late record lands",
    "a router applies",
    "a router acknowledges",
    "a router dies",
    "a router comes back",
    "a snapshot is lost",
    "a router appends its record",
    "a router has joined",
    "a call begins",
    "a call's access",
    "a call answers",
    "an outcome is unknown",
    "a router dies with a call on the way",
    "a late call lands",
    "a late call is lost",
    "the mover reads",
    "the mover copies",
    "the owner reports moved",
    "the owner empties",
    "the owner purges",
    "the owner reports retired",
];

pub(super) const fn step(label: Label, to: State) -> Step<Label, State> {
    let kind = match label {
        Label::LeaderDecides(..) => 0,
        Label::LeaderTurnsBack(_) => 1,
        Label::LeaderTurnsRound(_) => 2,
        Label::LeaderAnswers => 3,
        Label::RecordLands => 4,
        Label::NewLeader => 5,
        Label::LateRecordLands => 6,
        Label::Applies(_) => 7,
        Label::Acknowledges(_) => 8,
        Label::Crashes(_) => 9,
        Label::RestartsAt(..) => 10,
        Label::SnapshotLostJoins(_) => 11,
        Label::AppendsJoin(_) => 12,
        Label::ReadsToTheEndServes(_) => 13,
        Label::Begins(..) => 14,
        Label::Accesses(..) => 15,
        Label::Answers(..) => 16,
        Label::GivesUp(..) => 17,
        Label::CrashesWithCall(..) => 18,
        Label::LateCallLands(..) => 19,
        Label::LateCallIsLost(..) => 20,
        Label::MoverReads(_) => 21,
        Label::MoverCopies(_) => 22,
        Label::OwnerReportsMoved(_) => 23,
        Label::OwnerEmpties(_) => 24,
        Label::OwnerPurges(_) => 25,
        Label::OwnerReportsRetired(_) => 26,
    };
    Step { kind, label, to }
}
