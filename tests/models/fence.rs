//! Two publishers, the plan topic with compaction, readers from the start and fresh ones: claims, the fence, publishing.
//!
//! What is sent lies on the network and lands late, twice or never; a publisher may stand still at any point and go on long after, or
//! end and start anew. The steps are those of the product: `Leadership` decides what to send and what became of it, `PlanTable` folds.

use std::collections::BTreeSet;

use keyheat::control::{Draft, Leadership, Outgoing, Purpose, Send};
use keyheat::plan::migration::{self, Standing};
use keyheat::protocol::{Applied, History, LogRecord, Nonce, PlanTable, PlanTopicKey, Version, Writes};
use keyheat::units::{EventTime, Span};

use super::explore::{Step, World};
use super::pool::{Memo, Pool};
use super::records::{claim, customer, name_of, now, order, record};

/// A rule that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// None is.
    All,
    /// The last claim of an epoch wins.
    LastClaimWins,
    /// All claims have one key.
    OneClaimKey,
    /// The next record is sent before the last one was read back.
    SeveralInFlight,
    /// An old claim is deleted.
    OldClaimsDeleted,
    /// Compaction comes before a refused record is answered.
    CompactedBeforeAnswered,
}

/// Two publishers that want different plans.
pub(crate) struct Fence {
    pub(crate) without: Rule,
    /// The most records that get on the topic.
    pub(crate) appends: u8,
    /// How often a record is sent again, or a claim given up, in all.
    pub(crate) again: u8,
    /// How often the group gives the partition to a publisher, in all.
    pub(crate) assignments: u8,
    /// How often a publisher ends and starts anew, in all.
    pub(crate) restarts: u8,
    records: Pool<String, Written>,
    tables: Pool<String, PlanTable>,
    leaderships: Pool<Leadership, Leadership>,
    folds: Memo<(u32, u32), (u32, Outcome)>,
    reads: Memo<(u32, u32, u32), Read>,
}

/// A record and what it is.
struct Written {
    record: LogRecord,
    nonce: Nonce,
    version: Version,
    /// The same for records of which compaction keeps one.
    place: String,
    is_claim: bool,
}

/// What a record did to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Accepted,
    Claimed,
    Refused,
}

/// What a record did to a publisher that read it.
#[derive(Debug, Clone)]
struct Read {
    leadership: u32,
    table: u32,
    /// It answers what was in flight: number of the key, version.
    published: Option<(u8, Version)>,
    accepted: Option<Version>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// Offset and number of each record that compaction has left.
    log: Vec<(u8, u32)>,
    appended: u8,
    /// The table of a reader that folds each record as it comes.
    tail: u32,
    /// Epoch and nonce of the last record that this reader accepted.
    last_accepted: Option<(u64, Nonce)>,
    publishers: [Publisher; 2],
    /// Sent and not landed, in order of their numbers.
    network: Vec<u32>,
    again: u8,
    assignments: u8,
    restarts: u8,
    fault: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Publisher {
    leadership: u32,
    table: u32,
    /// The offset up to which it has read.
    read: u8,
    /// What it knows as published in the epoch that it leads: number of the key, version.
    published: Vec<(u8, Version)>,
    /// Only without the rule: what is in flight beside the leadership's own.
    flying: Vec<(u8, Version)>,
}

const KEYS: [&str; 2] = ["k", "m"];
/// What each publisher wants of each key: a number of buckets, or no plan.
const WANTED: [[Option<u32>; 2]; 2] = [[Some(2), Some(2)], [Some(4), None]];
/// The most records on the network at once.
const NETWORK: usize = 3;
/// A claim or record without an answer is given up or sent again by then.
const LATER: Span = Span::from_secs(8);

impl Fence {
    pub(crate) fn new(without: Rule, appends: u8) -> Self {
        Self {
            without,
            appends,
            again: 1,
            assignments: 3,
            restarts: 0,
            records: Pool::new(),
            tables: Pool::new(),
            leaderships: Pool::new(),
            folds: Memo::new(),
            reads: Memo::new(),
        }
    }

    fn put_table(&self, table: PlanTable) -> u32 {
        self.tables.put(name_of(&table), table)
    }

    fn put_leadership(&self, leadership: Leadership) -> u32 {
        self.leaderships.put(leadership.clone(), leadership)
    }

    fn put_record(&self, record: LogRecord, version: Version, nonce: Nonce) -> u32 {
        let is_claim = record.key.starts_with(b"claim/");
        let place = match self.without {
            Rule::OneClaimKey if is_claim => "claim".to_owned(),
            _ => record.key.escape_ascii().to_string(),
        };
        let name = format!("{version} {nonce} {place} {:?}", record.value);
        self.records.put(name, Written { record, nonce, version, place, is_claim })
    }

    /// Folds one record. Without the rule of the first claim a later one of the same epoch takes its place.
    fn apply(&self, table: &mut PlanTable, written: &Written) -> Applied {
        let applied = table.apply(&written.record);
        match applied {
            Applied::Claim { epoch, nonce, won: false, repeated: false }
                if self.without == Rule::LastClaimWins && epoch == table.highest_epoch() =>
            {
                *table = led_by(table, epoch, nonce);
                Applied::Claim { epoch, nonce, won: true, repeated: false }
            }
            applied => applied,
        }
    }

    fn fold(&self, table: u32, number: u32) -> (u32, Outcome) {
        self.folds.get((table, number), || {
            let mut folded = (*self.tables.get(table)).clone();
            let outcome = match self.apply(&mut folded, &self.records.get(number)) {
                Applied::Claim { .. } => Outcome::Claimed,
                Applied::Refused { .. } | Applied::Ignored(_) => Outcome::Refused,
                _ => Outcome::Accepted,
            };
            (self.put_table(folded), outcome)
        })
    }

    /// The table of a reader that begins now.
    fn fresh(&self, state: &State) -> u32 {
        let empty = self.put_table_empty();
        state.log.iter().fold(empty, |table, (_, number)| self.fold(table, *number).0)
    }

    fn put_table_empty(&self) -> u32 {
        self.put_table(PlanTable::new())
    }

    fn lands(&self, state: &State, at: usize) -> State {
        let mut to = state.clone();
        let number = to.network.remove(at);
        let written = self.records.get(number);
        to.log.push((to.appended, number));
        to.appended += 1;
        let before = self.tables.get(to.tail);
        let (tail, outcome) = self.fold(to.tail, number);
        to.tail = tail;
        if outcome == Outcome::Accepted {
            let rival =
                to.last_accepted.is_some_and(|(epoch, nonce)| written.version.epoch == epoch && written.nonce != nonce);
            if rival {
                to.fault = Some("records of two publishers were accepted in one epoch");
            } else if written.version <= before.last_version() {
                to.fault = Some("an accepted version is not above the one before");
            }
            to.last_accepted = Some((written.version.epoch, written.nonce));
        } else if before.digest() != self.tables.get(tail).digest() {
            to.fault = Some("a refused record changed the plans");
        }
        to
    }

    /// The publisher reads what it has not read.
    fn reads(&self, state: &State, which: usize) -> State {
        let mut to = state.clone();
        let publisher = &mut to.publishers[which];
        for &(offset, number) in &state.log {
            if offset >= publisher.read {
                let read = self.read_one(publisher.leadership, publisher.table, number);
                publisher.note(&read);
                (publisher.leadership, publisher.table) = (read.leadership, read.table);
            }
        }
        publisher.read = state.appended;
        if self.leaderships.get(publisher.leadership).leading().is_none() {
            publisher.published.clear();
            publisher.flying.clear();
        }
        to
    }

    fn read_one(&self, leadership: u32, table: u32, number: u32) -> Read {
        self.reads.get((leadership, table, number), || {
            let written = self.records.get(number);
            let mut leadership = (*self.leaderships.get(leadership)).clone();
            let mut table = (*self.tables.get(table)).clone();
            let applied = self.apply(&mut table, &written);
            let last = table.last_version();
            let answered = if self.ignores_rival(&leadership, &applied) {
                None
            } else {
                leadership.handle_applied(Some(written.nonce), &applied, last, now())
            };
            let accepted = !matches!(applied, Applied::Refused { .. } | Applied::Claim { .. });
            let published = answered.filter(|_| accepted).and_then(|outgoing| {
                let key = KEYS.iter().position(|key| outgoing.draft.key == PlanTopicKey::Plan(customer(key)))?;
                Some((u8::try_from(key).unwrap(), outgoing.version))
            });
            Read {
                leadership: self.put_leadership(leadership),
                table: self.put_table(table),
                published,
                accepted: accepted.then_some(last),
            }
        })
    }

    /// Where the last claim wins, a claimant does not mind one that was first.
    fn ignores_rival(&self, leadership: &Leadership, applied: &Applied) -> bool {
        let mut later = leadership.clone();
        later.poll_send(now().saturating_add(LATER));
        let claims = later.is_candidate() && !leadership.is_candidate();
        let rival = matches!(applied, Applied::Claim { nonce, .. } if *nonce != leadership.nonce());
        self.without == Rule::LastClaimWins && claims && rival
    }

    /// What a leader with nothing in flight may send: an answer before everything else.
    fn drafts(&self, table: &PlanTable, publisher: &Publisher, which: usize) -> Vec<Draft> {
        if let Some(answer) = Draft::answer(table) {
            return vec![answer];
        }
        let wanted = KEYS.iter().enumerate().find_map(|(number, key)| {
            let sent = publisher.flying.iter().any(|(flying, _)| usize::from(*flying) == number);
            let has = table.plan(&customer(key)).map(|entry| entry.record.migration.to.buckets());
            let wanted = WANTED[which][number];
            (has != wanted && !sent).then(|| decision(key, wanted))
        });
        wanted.into_iter().chain([Draft::heartbeat(table, now(), None)]).collect()
    }

    fn put_sent(&self, send: Send, nonce: Nonce) -> u32 {
        match send {
            Send::Claim(epoch, _) => self.put_record(claim(epoch, nonce), Version { epoch, seq: 0 }, nonce),
            Send::Record(Outgoing { draft, version, .. }) => {
                self.put_record(record(&draft.key, draft.value, version, nonce), version, nonce)
            }
        }
    }

    /// Sends what the leadership has to send at `at`, if it has.
    fn sends(&self, to: &mut State, which: usize, mut leadership: Leadership, at: EventTime) -> bool {
        let sent = leadership.poll_send(at);
        let is_sent = sent.is_some();
        if let Some(sent) = sent {
            if let (Rule::SeveralInFlight, Send::Record(Outgoing { draft, version, .. })) = (self.without, &sent) {
                let key = KEYS.iter().position(|key| draft.key == PlanTopicKey::Plan(customer(key)));
                let flying = key.map(|key| (u8::try_from(key).unwrap(), *version));
                to.publishers[which].flying.extend(flying);
                // As if it had been answered.
                leadership.handle_refused(*version);
            }
            to.network.push(self.put_sent(sent, leadership.nonce()));
            to.network.sort_unstable();
        }
        to.publishers[which].leadership = self.put_leadership(leadership);
        is_sent
    }

    fn publisher_steps(&self, state: &State, which: usize, steps: &mut Vec<Step<Label, State>>) {
        let publisher = &state.publishers[which];
        let leadership = self.leaderships.get(publisher.leadership);
        if state.assignments > 0 && !leadership.is_candidate() {
            let (mut to, mut assigned) = (state.clone(), (*leadership).clone());
            assigned.handle_assigned();
            to.assignments -= 1;
            to.publishers[which].published.clear();
            to.publishers[which].flying.clear();
            to.publishers[which].leadership = self.put_leadership(assigned);
            steps.push(step(Label::Assigned(which), to));
        }
        if state.restarts > 0 {
            let mut to = state.clone();
            to.restarts -= 1;
            to.publishers[which] = self.publisher(10 + u64::from(state.restarts));
            steps.push(step(Label::Restarts(which), to));
        }
        if publisher.read < state.appended {
            steps.push(step(Label::Reads(which), self.reads(state, which)));
        }
        if state.network.len() >= NETWORK {
            return;
        }
        if leadership.is_candidate() && publisher.read == state.appended {
            let (mut to, mut claiming) = (state.clone(), (*leadership).clone());
            claiming.handle_read_to_end(now());
            if self.sends(&mut to, which, claiming, now()) {
                steps.push(step(Label::Claims(which), to));
            }
        }
        if state.again > 0 {
            let later = now().saturating_add(LATER);
            let mut to = state.clone();
            to.again -= 1;
            if self.sends(&mut to, which, (*leadership).clone(), later) {
                steps.push(step(Label::SendsAgain(which), to));
            } else if to.publishers[which] != state.publishers[which] {
                steps.push(step(Label::GivesUpClaim(which), to));
            }
        }
        if leadership.next_version().is_some() {
            let table = self.tables.get(publisher.table);
            for draft in self.drafts(&table, publisher, which) {
                let (purpose, mut to, mut leading) = (draft.purpose, state.clone(), (*leadership).clone());
                leading.submit(draft, now());
                if self.sends(&mut to, which, leading, now()) {
                    steps.push(step(Label::Sends(which, purpose), to));
                }
            }
        }
    }

    /// What compaction leaves now; none when that is everything.
    fn compacted(&self, state: &State) -> Option<State> {
        let written: Vec<_> = state.log.iter().map(|(_, number)| self.records.get(*number)).collect();
        let tail = self.tables.get(state.tail);
        let in_force: BTreeSet<Version> = tail.plans().map(|(_, entry)| entry.version).collect();
        let stays = |at: usize| {
            let overtaken = written[at + 1..].iter().any(|later| later.place == written[at].place);
            // The leader answers a refused record within the time that compaction waits.
            let waits = self.without != Rule::CompactedBeforeAnswered && in_force.contains(&written[at].version);
            let tombstone = written[at].record.value.is_none() && at + 1 < written.len();
            (!overtaken || waits) && !tombstone
        };
        let log: Vec<_> = (0..written.len()).filter(|at| stays(*at)).map(|at| state.log[at]).collect();
        (log.len() < state.log.len()).then(|| State { log, ..state.clone() })
    }

    /// A claim that is not the newest is taken away.
    fn cleaned(&self, state: &State) -> Option<State> {
        let epoch = self.tables.get(state.tail).highest_epoch();
        let old = state.log.iter().position(|(_, number)| {
            let written = self.records.get(*number);
            written.is_claim && written.version.epoch < epoch
        })?;
        let mut to = state.clone();
        to.log.remove(old);
        Some(to)
    }

    fn publisher(&self, base: u64) -> Publisher {
        Publisher {
            leadership: self.put_leadership(Leadership::new(Nonce(base))),
            table: self.put_table_empty(),
            read: 0,
            published: Vec::new(),
            flying: Vec::new(),
        }
    }
}

impl Publisher {
    /// What became of its own records.
    fn note(&mut self, read: &Read) {
        let mut published: Vec<(u8, Version)> = read.published.into_iter().collect();
        if let Some(accepted) = read.accepted {
            // With one in flight a version that is accepted answers all before it. With several it does not.
            published.extend(self.flying.extract_if(.., |(_, version)| *version <= accepted));
        }
        for (key, version) in published {
            self.published.retain(|(other, _)| *other != key);
            self.published.push((key, version));
        }
        self.published.sort_unstable();
    }
}

impl World for Fence {
    type State = State;
    type Label = Label;

    const KINDS: &'static [&'static str] = &[
        "a record lands",
        "compaction",
        "assigned",
        "reads",
        "claims",
        "sends an answer",
        "sends a decision",
        "sends a heartbeat",
        "sends again",
        "gives up a claim",
        "restarts",
        "an old claim is deleted",
    ];

    fn start(&self) -> State {
        State {
            log: Vec::new(),
            appended: 0,
            tail: self.put_table_empty(),
            last_accepted: None,
            publishers: [self.publisher(1), self.publisher(2)],
            network: Vec::new(),
            again: self.again,
            assignments: self.assignments,
            restarts: self.restarts,
            fault: None,
        }
    }

    fn steps(&self, state: &State, steps: &mut Vec<Step<Label, State>>) {
        if state.fault.is_some() {
            return;
        }
        if state.appended < self.appends {
            for at in 0..state.network.len() {
                if at == 0 || state.network[at - 1] != state.network[at] {
                    let written = self.records.get(state.network[at]);
                    let label = Label::Lands(written.place.clone(), written.version, written.nonce);
                    steps.push(step(label, self.lands(state, at)));
                }
            }
        }
        for which in 0..2 {
            self.publisher_steps(state, which, steps);
        }
        steps.extend(self.compacted(state).map(|to| step(Label::Compaction, to)));
        if self.without == Rule::OldClaimsDeleted {
            steps.extend(self.cleaned(state).map(|to| step(Label::OldClaimDeleted, to)));
        }
    }

    fn fault(&self, state: &State) -> Option<String> {
        if let Some(fault) = state.fault {
            return Some(fault.to_owned());
        }
        let tail = self.tables.get(state.tail);
        let fresh = self.tables.get(self.fresh(state));
        if fresh.is_vouched_for() && fresh.digest() != tail.digest() {
            return Some("a fresh reader serves by other plans than those that followed".to_owned());
        }
        state.publishers.iter().find_map(|publisher| {
            let leadership = self.leaderships.get(publisher.leadership);
            let leads = leadership.leading().map(|epoch| (epoch, leadership.nonce()));
            if leads.is_none() || leads != tail.leader() || publisher.read < state.appended {
                return None;
            }
            let missing = publisher.published.iter().find(|(key, version)| {
                let held = tail.plan(&customer(KEYS[usize::from(*key)])).map(|entry| entry.version);
                // A tombstone leaves nothing behind.
                held.is_some_and(|held| held != *version) || held.is_none() && !self.is_tombstone(state, *version)
            });
            if let Some((key, version)) = missing {
                let key = KEYS[usize::from(*key)];
                return Some(format!("a leader holds {version} of {key} for published, readers do not have it"));
            }
            let own = self.tables.get(publisher.table);
            (own.digest() != tail.digest()).then(|| "a leader decides by other plans than readers have".to_owned())
        })
    }
}

impl Fence {
    /// True when no record with a value has this version in the log.
    fn is_tombstone(&self, state: &State, version: Version) -> bool {
        let leader = self.tables.get(state.tail).leader().map(|(_, nonce)| nonce);
        !state.log.iter().any(|(_, number)| {
            let written = self.records.get(*number);
            written.version == version && Some(written.nonce) == leader && written.record.value.is_some()
        })
    }
}

/// What happened in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Label {
    Lands(String, Version, Nonce),
    Compaction,
    Assigned(usize),
    Reads(usize),
    Claims(usize),
    Sends(usize, Purpose),
    SendsAgain(usize),
    GivesUpClaim(usize),
    Restarts(usize),
    OldClaimDeleted,
}

fn step(label: Label, to: State) -> Step<Label, State> {
    let kind = match &label {
        Label::Lands(..) => 0,
        Label::Compaction => 1,
        Label::Assigned(_) => 2,
        Label::Reads(_) => 3,
        Label::Claims(_) => 4,
        Label::Sends(_, Purpose::Answer) => 5,
        Label::Sends(_, Purpose::Decision) => 6,
        Label::Sends(_, Purpose::Heartbeat) => 7,
        Label::SendsAgain(_) => 8,
        Label::GivesUpClaim(_) => 9,
        Label::Restarts(_) => 10,
        Label::OldClaimDeleted => 11,
    };
    Step { kind, label, to }
}

/// A plan of so many buckets, or a tombstone.
fn decision(key: &str, buckets: Option<u32>) -> Draft {
    let value = buckets.map(|buckets| {
        let version = Version { epoch: 1, seq: 1 };
        let order = order(customer(key), version, buckets, Writes::Insert, History::Move);
        migration::begin(order, &Standing::of(None).unwrap()).unwrap().encode()
    });
    Draft { key: PlanTopicKey::Plan(customer(key)), value, purpose: Purpose::Decision }
}

/// The same table with another winner of its epoch: what a fold would hold whose last claim wins.
fn led_by(table: &PlanTable, epoch: u64, nonce: Nonce) -> PlanTable {
    let mut anew = PlanTable::new();
    let mut entries: Vec<_> = table.plans().map(|(key, entry)| (entry.version, key, entry)).collect();
    entries.sort_by_key(|(version, ..)| *version);
    let epochs: BTreeSet<u64> = entries.iter().map(|(version, ..)| version.epoch).chain([epoch]).collect();
    for of in epochs {
        anew.apply(&claim(of, nonce));
        for (version, key, entry) in entries.iter().filter(|(version, ..)| version.epoch == of) {
            anew.apply(&record(&PlanTopicKey::Plan((*key).clone()), Some(entry.value.clone()), *version, nonce));
        }
    }
    if table.last_version().epoch == epoch {
        let heartbeat = Draft::heartbeat(&anew, now(), None);
        anew.apply(&record(&heartbeat.key, heartbeat.value, table.last_version(), nonce));
    }
    for (key, shadow) in table.shadowed() {
        let value = if shadow.tombstone { None } else { Some(Vec::new()) };
        anew.apply(&record(key, value, Version { epoch: 0, seq: 0 }, nonce));
    }
    anew
}
