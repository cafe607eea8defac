//! What operators tell the planner: pins, blocks, and splits to take back. Each is judged on the world of a decision, becomes records,
//! and is answered when these were read back from the plan topic.

use std::collections::{BTreeMap, BTreeSet};

use super::beginning::{Beginning, Change};
use super::hindrance::Hindrance;
use super::memory::Memory;
use super::migration::{self, Facts, Standing, Step, Wait};
use super::operation::Operation;
use super::pins::WITHDRAWN;
use super::policy::Rank;
use super::settings::{Merge, Mode, PlanSettings};
use super::view::View;
use crate::protocol::{
    KeyField, Layout, MAX_OTHERS, MAX_REASON_CHARS, MAX_VALUE_BYTES, Pin, PlanEntry, PlanKey, PlanRecord, Policy,
    SCHEMA, State, Version,
};
use crate::units::{EventTime, Span};

/// The most words that wait at once.
const MAX_OPEN: usize = 64;
/// A word that was not read back by then is given up: whoever said it has been told that it is not known to be done.
const WORD_LIMIT: Span = Span::from_secs(8);
/// The longest key of an event.
const MAX_KEY_BYTES: usize = 1024;

/// What an operator says of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Whose.
    pub key: PlanKey,
    /// What.
    pub wish: Wish,
    /// Why, for people: at most 256 characters.
    pub reason: Option<String>,
}

/// What is to become of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// So many buckets, hot or not, within a span of time.
    Pin {
        /// Number of buckets.
        buckets: u32,
        /// From then on; none: from now on.
        from: Option<EventTime>,
        /// Up to then; none: until it is unpinned.
        until: Option<EventTime>,
    },
    /// The pin no longer holds.
    Unpin,
    /// The planner leaves the key as it is.
    Block,
    /// The block no longer holds.
    Unblock,
    /// Back to the bare key.
    Withdraw {
        /// And stay there: the key is blocked as well.
        block: bool,
    },
}

/// What a word has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The policy is on the plan topic.
    Set,
    /// The policy is taken back.
    TakenBack,
    /// The migration back to the bare key has begun.
    Withdrawing,
    /// The key's migration ends where it began; the key stays in its former layout.
    TurnedRound,
    /// The proposal is removed.
    ProposalRemoved,
}

impl Effect {
    /// The word in answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::TakenBack => "taken_back",
            Self::Withdrawing => "withdrawing",
            Self::TurnedRound => "turned_round",
            Self::ProposalRemoved => "proposal_removed",
        }
    }
}

/// Why a word is not obeyed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Disobeyed {
    /// No such keyspace.
    #[error("no keyspace '{got}'; there are: {known}")]
    Keyspace {
        /// The name that was given.
        got: String,
        /// Those that are configured.
        known: String,
    },
    /// No event has such a key.
    #[error("got a key of {0} bytes; should be 1 to {MAX_KEY_BYTES}")]
    Key(usize),
    /// The keyspace is only observed.
    #[error("mode of this keyspace is observe: nothing is split or withdrawn; set mode to propose or auto")]
    Observed,
    /// The lists of the configuration keep the key as it is.
    #[error("the allow or block list of the configuration keeps this key as it is; change the list first")]
    Listed,
    /// Nothing makes up one object of several.
    #[error(
        "merge of this keyspace is none: each key is one object, which buckets cannot share; set merge to union if that is wrong"
    )]
    OneObject,
    /// Not a number of buckets.
    #[error("got {0} buckets; should be a power of two from 2 to 256")]
    Buckets(u32),
    /// More buckets than the keyspace allows.
    #[error(
        "got {buckets} buckets; should be at most max_buckets of the keyspace, {most}; pin fewer or raise the limit"
    )]
    AboveMost {
        /// Given.
        buckets: u32,
        /// Allowed.
        most: u32,
    },
    /// The span ends before it begins.
    #[error("got from {from} until {until}; a pin should begin before it ends")]
    EndsFirst {
        /// Given.
        from: String,
        /// Given.
        until: String,
    },
    /// The span is over.
    #[error("got until {0}, which is past; should be a time ahead, or none")]
    Past(String),
    /// The reason is too long.
    #[error("got a reason of {0} characters; should be at most {MAX_REASON_CHARS}")]
    Reason(usize),
    /// Key and reason do not fit in a record.
    #[error("the record would have {0} bytes, which should be at most {MAX_VALUE_BYTES}; shorten the reason")]
    TooLong(usize),
    /// As many keys have a policy as may.
    #[error("{MAX_OTHERS} keys are pinned or blocked, which is the most; take one back first")]
    Full,
    /// Too many words wait.
    #[error("{MAX_OPEN} commands wait to be carried out, which is the most; try again")]
    TooMany,
    /// There is no pin.
    #[error("this key is not pinned; `keyheat plan show` says what is known of it")]
    NotPinned,
    /// There is no block.
    #[error("this key is not blocked; `keyheat plan show` says what is known of it")]
    NotBlocked,
    /// There is nothing to withdraw.
    #[error("this key is not split, nor is it to be; to keep it so, block it")]
    NotSplit,
    /// A pin would split it again.
    #[error("this key is pinned and would be split again; unpin it first, or withdraw with block")]
    Pinned,
    /// Planning is frozen.
    #[error("planning is frozen and nothing new begins; unfreeze first")]
    Frozen,
    /// Writes may have gone to the new layout.
    #[error("the key's migration is in {}: from dual on it goes forward; withdraw when it has settled", .0.label())]
    GoesForward(State),
    /// The last migration is not over.
    #[error("the key's last migration still waits for {}; withdraw when it has ended", .0.label())]
    Unfinished(Wait),
    /// The record cannot be made.
    #[error(transparent)]
    Hindered(Hindrance),
    /// The record reached the log after its limit.
    #[error("the record reached the plan topic too late and is void: Kafka is slow, or its clock is ahead; try again")]
    Void,
    /// The record was not read back in time.
    #[error("not read back from the plan topic within {} s; `keyheat plan show` says what has come of it", .0.as_millis() / 1000)]
    Late(Span),
    /// The plan topic has lost records.
    #[error("the leader has stopped since the plan topic has lost records; /readyz says more")]
    Stopped,
}

/// A word that waits.
#[derive(Debug, Clone)]
struct Open {
    word: Word,
    since: EventTime,
    /// It was found right; from then on it is carried out whatever else comes.
    judged: bool,
    /// What it has begun to do to a migration of the key.
    turning: Option<Effect>,
    /// The version of the record after which it began a migration. A newer one of the same state is the answer to a void one.
    began_after: Option<Version>,
}

/// What a word needs next.
enum Need {
    /// This record.
    Send(Rank, Operation),
    /// Something that is on its way.
    Wait,
    /// Nothing more.
    Done(Effect),
}

/// Every word that waits, and the answers that nobody has taken yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Words {
    open: BTreeMap<u64, Open>,
    answers: BTreeMap<u64, Result<Effect, Disobeyed>>,
    next: u64,
}

impl Words {
    /// Takes a word; its number asks for the answer.
    pub(super) fn take(&mut self, word: Word, now: EventTime) -> Result<u64, Disobeyed> {
        if self.open.len() + self.answers.len() >= MAX_OPEN {
            return Err(Disobeyed::TooMany);
        }
        let number = self.next;
        self.next += 1;
        self.open.insert(number, Open { word, since: now, judged: false, turning: None, began_after: None });
        Ok(number)
    }

    /// The answer to a word, once.
    pub(super) fn answer(&mut self, number: u64) -> Option<Result<Effect, Disobeyed>> {
        self.answers.remove(&number)
    }

    /// No word is carried out any more.
    pub(super) fn forget(&mut self) {
        self.open.clear();
        self.answers.clear();
    }

    /// What the words need now: the oldest of each key alone, so that a later one finds what the earlier one has done.
    pub(super) fn decide(&mut self, view: &View<'_>, memory: &mut Memory) -> BTreeMap<PlanKey, (Rank, Operation)> {
        let mut needed = BTreeMap::new();
        let mut waiting = BTreeMap::new();
        let mut keys = BTreeSet::new();
        for (number, mut open) in std::mem::take(&mut self.open) {
            if view.now.since(open.since) >= WORD_LIMIT {
                self.answers.insert(number, Err(Disobeyed::Late(WORD_LIMIT)));
                continue;
            }
            let key = open.word.key.clone();
            if keys.contains(&key) {
                waiting.insert(number, open);
                continue;
            }
            match need(&mut open, view, memory) {
                Ok(Need::Done(effect)) => {
                    if effect == Effect::ProposalRemoved {
                        memory.take_back(&key, view.now);
                    }
                    self.answers.insert(number, Ok(effect));
                }
                Err(disobeyed) => {
                    self.answers.insert(number, Err(disobeyed));
                }
                Ok(pending) => {
                    keys.insert(key.clone());
                    waiting.insert(number, open);
                    if let Need::Send(rank, operation) = pending {
                        needed.insert(key, (rank, operation));
                    }
                }
            }
        }
        self.open = waiting;
        needed
    }
}

fn need(open: &mut Open, view: &View<'_>, memory: &Memory) -> Result<Need, Disobeyed> {
    let key = &open.word.key;
    let set = view.policy(key);
    match open.word.wish {
        Wish::Pin { .. } | Wish::Block => {
            let wanted = policy_of(open);
            if set == Some(&wanted) {
                return Ok(Need::Done(Effect::Set));
            }
            if !open.judged {
                judge(open, &wanted, view)?;
                open.judged = true;
            }
            Ok(Need::Send(Rank::Word, Operation::SetPolicy(Box::new(wanted))))
        }
        Wish::Unpin | Wish::Unblock => {
            let is_there = match open.word.wish {
                Wish::Unpin => set.is_some_and(|policy| policy.pin.is_some()),
                _ => set.is_some_and(|policy| policy.block),
            };
            match (is_there, open.judged) {
                (true, _) => {
                    open.judged = true;
                    Ok(Need::Send(Rank::Word, Operation::RemovePolicy(key.clone())))
                }
                (false, true) => Ok(Need::Done(Effect::TakenBack)),
                (false, false) => {
                    settings_of(key, view)?;
                    Err(if open.word.wish == Wish::Unpin { Disobeyed::NotPinned } else { Disobeyed::NotBlocked })
                }
            }
        }
        Wish::Withdraw { block } => withdraw(open, block, view, memory),
    }
}

/// The record that a pin or a block sets.
fn policy_of(open: &Open) -> Policy {
    let Word { key, wish, reason } = &open.word;
    let pin = match wish {
        Wish::Pin { buckets, from, until } => Some(Pin {
            buckets: *buckets,
            from: from.map(EventTime::to_rfc3339),
            until: until.map(EventTime::to_rfc3339),
        }),
        _ => None,
    };
    Policy {
        schema: SCHEMA,
        keyspace: key.keyspace.clone(),
        key: KeyField(key.key.clone()),
        block: pin.is_none(),
        pin,
        decided_at: open.since.to_rfc3339(),
        reason: reason.clone(),
    }
}

fn settings_of<'a>(key: &PlanKey, view: &View<'a>) -> Result<&'a PlanSettings, Disobeyed> {
    view.settings(key).ok_or_else(|| Disobeyed::Keyspace { got: key.keyspace.clone(), known: view.keyspace_names() })
}

/// Holds a pin or a block against the rules.
fn judge(open: &Open, wanted: &Policy, view: &View<'_>) -> Result<(), Disobeyed> {
    let Word { key, wish, reason } = &open.word;
    let settings = settings_of(key, view)?;
    if !(1..=MAX_KEY_BYTES).contains(&key.key.len()) {
        return Err(Disobeyed::Key(key.key.len()));
    }
    if let Wish::Pin { buckets, from, until } = *wish {
        if Layout::split(1, buckets, 0).is_err() {
            return Err(Disobeyed::Buckets(buckets));
        }
        if buckets > settings.max_buckets {
            return Err(Disobeyed::AboveMost { buckets, most: settings.max_buckets });
        }
        if let Some((from, until)) = from.zip(until).filter(|(from, until)| until <= from) {
            return Err(Disobeyed::EndsFirst { from: from.to_rfc3339(), until: until.to_rfc3339() });
        }
        if let Some(until) = until.filter(|until| *until <= view.now) {
            return Err(Disobeyed::Past(until.to_rfc3339()));
        }
        if settings.mode == Mode::Observe {
            return Err(Disobeyed::Observed);
        }
        if settings.is_listed(&key.key) {
            return Err(Disobeyed::Listed);
        }
        if settings.merge == Merge::None {
            return Err(Disobeyed::OneObject);
        }
    }
    let chars = reason.as_ref().map_or(0, |reason| reason.chars().count());
    if chars > MAX_REASON_CHARS {
        return Err(Disobeyed::Reason(chars));
    }
    let bytes = wanted.encode().len();
    if bytes > MAX_VALUE_BYTES {
        return Err(Disobeyed::TooLong(bytes));
    }
    if view.policy(key).is_none() && view.world.table.policies().len() >= MAX_OTHERS {
        return Err(Disobeyed::Full);
    }
    Ok(())
}

/// A split that is taken back, with a block that is set first: what is on its way back is not split again.
fn withdraw(open: &mut Open, block: bool, view: &View<'_>, memory: &Memory) -> Result<Need, Disobeyed> {
    let pinned = view.policy(&open.word.key).and_then(|policy| policy.pin.as_ref());
    if !block && pinned.is_some_and(|pin| !pin.is_over_at(view.now)) {
        return Err(Disobeyed::Pinned);
    }
    let back = go_back(open, view, memory)?;
    if block && !view.is_blocked(&open.word.key) {
        let wanted = policy_of(open);
        judge(open, &wanted, view)?;
        return Ok(Need::Send(Rank::Word, Operation::SetPolicy(Box::new(wanted))));
    }
    if let (Need::Send(rank, _), Some(entry)) = (&back, view.world.table.plan(&open.word.key)) {
        if *rank == Rank::Begin && *open.began_after.get_or_insert(entry.version) != entry.version {
            return Err(Disobeyed::Void);
        }
        // From here on what becomes of the migration is this word's doing.
        open.turning = turning(&entry.record).or(open.turning);
    }
    Ok(back)
}

/// What a word that withdraws makes of a migration that may still be turned round.
fn turning(record: &PlanRecord) -> Option<Effect> {
    match record.state {
        State::Proposed if record.migration.to.is_bare() => None,
        State::Proposed if record.read == [Layout::BARE] => Some(Effect::ProposalRemoved),
        State::Proposed | State::Prepare | State::Hold => Some(Effect::TurnedRound),
        State::Dual | State::Moving | State::Settled => None,
    }
}

/// The next record on the way back to the bare key.
fn go_back(open: &Open, view: &View<'_>, memory: &Memory) -> Result<Need, Disobeyed> {
    let key = &open.word.key;
    let settings = settings_of(key, view)?;
    if settings.mode == Mode::Observe {
        return Err(Disobeyed::Observed);
    }
    if view.world.table.is_troubled(key) {
        return Ok(Need::Wait);
    }
    let Some(entry) = view.world.table.plan(key) else {
        return open.turning.map(Need::Done).ok_or(Disobeyed::NotSplit);
    };
    let record = &entry.record;
    let send = |rank, record| Ok(Need::Send(rank, Operation::Put(Box::new(record))));
    match (record.state, Standing::of(Some(record))) {
        (_, Some(standing)) => match open.turning {
            Some(effect) => Ok(Need::Done(effect)),
            None => begin(key, entry, settings, &standing, view, memory),
        },
        (State::Proposed, None) if record.migration.to.is_bare() => approve(record, view),
        (State::Proposed, None) if record.read == [Layout::BARE] => {
            Ok(Need::Send(Rank::GiveUp, Operation::Remove(key.clone())))
        }
        (_, None) if record.migration.to.is_bare() => Ok(Need::Done(Effect::Withdrawing)),
        (State::Proposed | State::Prepare, None) => {
            migration::turn_round(record).map_or(Ok(Need::Wait), |round| send(Rank::GiveUp, round))
        }
        (State::Hold, None) => migration::turn_back(record).map_or(Ok(Need::Wait), |back| send(Rank::TurnBack, back)),
        (state, None) => Err(Disobeyed::GoesForward(state)),
    }
}

/// A proposal to go back that need not wait for anybody any more.
fn approve(proposal: &PlanRecord, view: &View<'_>) -> Result<Need, Disobeyed> {
    if view.budget.freeze {
        return Err(Disobeyed::Frozen);
    }
    let not_after = view.now.saturating_add(view.protocol.not_after).to_rfc3339();
    let approved = migration::approve(proposal, view.world.next, view.now.to_rfc3339(), not_after);
    Ok(approved.map_or(Need::Wait, |mut record| {
        WITHDRAWN.clone_into(&mut record.evidence.rule);
        Need::Send(Rank::Begin, Operation::Put(Box::new(record)))
    }))
}

/// The migration of a settled split back to the bare key. An operator's word need not wait for the budget, the dwell or warm counts.
fn begin(
    key: &PlanKey,
    entry: &PlanEntry,
    settings: &PlanSettings,
    standing: &Standing,
    view: &View<'_>,
    memory: &Memory,
) -> Result<Need, Disobeyed> {
    if standing.write.is_bare() {
        return Err(Disobeyed::NotSplit);
    }
    let facts = Facts::reported(view.world.acks, key, entry, view.protocol.expect_routers);
    match migration::next(&entry.record, &facts) {
        Step::Done => {}
        Step::Wait(wait) => return Err(Disobeyed::Unfinished(wait)),
        Step::Next(_) => return Err(Disobeyed::Unfinished(Wait::Retirement)),
    }
    if view.budget.freeze {
        return Err(Disobeyed::Frozen);
    }
    let beginning = Beginning { view, memory };
    let order = beginning.order(key, settings, Some(&entry.record), standing, Change::Withdraw);
    let mut order = order.map_err(Disobeyed::Hindered)?;
    WITHDRAWN.clone_into(&mut order.evidence.rule);
    let record = migration::begin(order, standing).map_err(|error| Disobeyed::Hindered(error.into()))?;
    Ok(Need::Send(Rank::Begin, Operation::Put(Box::new(record))))
}
