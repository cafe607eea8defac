//! Who may publish: a state machine without a broker.
//!
//! Owning the plan topic's partition in the group makes a process a candidate, no more: a paused owner does not know that it
//! lost. The fence is the log itself. A candidate reads the topic to its end, appends `claim/<highest epoch + 1>/<nonce>` and
//! leads when it reads its own claim back as the first of that epoch. A claim is sent once: of two copies compaction keeps the
//! second, and a fresh reader would refuse what lies between them. So a claim without an answer is given up, and another one is
//! made, with another nonce.
//!
//! One record is in flight at a time; a record whose outcome is unknown is sent again with the same version and bytes (I1), and
//! is done when it is read back and accepted (I4).

use crate::protocol::{Applied, Heartbeat, Nonce, PlanTable, PlanTopicKey, SCHEMA, Version};
use crate::units::{EventTime, Span};

/// A record without an answer is sent again after so long.
const RESEND_AFTER: Span = Span::from_secs(3);
/// A claim that was not read back by then is given up: longer than the client tries to deliver it.
const CLAIM_LIMIT: Span = Span::from_secs(8);
/// An owner that was deposed, and hears of no living leader for so long, joins the group anew.
const REJOIN_AFTER: Span = Span::from_secs(15);

/// A record that should be on the topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Draft {
    /// Its key.
    pub key: PlanTopicKey,
    /// Its value; none for a tombstone.
    pub value: Option<Vec<u8>>,
    /// Why it is sent.
    pub purpose: Purpose,
}

impl Draft {
    /// The answer to a refused record that is the last of its key and would survive compaction: the accepted one again, else a
    /// tombstone. It goes before everything else. None when no key is shadowed.
    #[must_use]
    pub fn answer(table: &PlanTable) -> Option<Self> {
        let (key, _) = table.shadowed().next()?;
        Some(Self { key: key.clone(), value: table.answer(key), purpose: Purpose::Answer })
    }

    /// The leader is there and holds `table`; `acks_seen` is the offset up to which it has read the acks topic.
    #[must_use]
    pub fn heartbeat(table: &PlanTable, now: EventTime, acks_seen: Option<i64>) -> Self {
        let heartbeat = Heartbeat {
            schema: SCHEMA,
            newest: table.last_version(),
            time: now.to_rfc3339(),
            plans: table.plans().len() as u64,
            digest: table.digest(),
            acks_seen,
        };
        Self { key: PlanTopicKey::Heartbeat, value: Some(heartbeat.encode()), purpose: Purpose::Heartbeat }
    }
}

/// Why a record is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// It was decided.
    Decision,
    /// It answers a refused record that had become the last of its key.
    Answer,
    /// It says that the leader is there.
    Heartbeat,
}

/// A draft with its version and the time of its decision: every time it is sent it is the same bytes (I1).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Outgoing {
    /// The record.
    pub draft: Draft,
    /// Its version.
    pub version: Version,
    /// When it was decided.
    pub decided_at: EventTime,
}

/// What should be sent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Send {
    /// The claim of an epoch, first made at this time.
    Claim(u64, EventTime),
    /// A record of the current epoch, again or for the first time.
    Record(Outgoing),
}

/// Whether this process may publish.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum State {
    /// The partition is not assigned to it.
    Follower,
    /// It is; the topic has not been read to its end yet.
    Candidate,
    /// Its claim is to be sent, or was sent once and not read back.
    Claiming { epoch: u64, claimed_at: EventTime, sent: bool },
    /// Its claim is the first of the highest epoch.
    Leading { epoch: u64, last_seq: u64, in_flight: Option<InFlight> },
    /// A higher claim was seen while the partition is assigned: it waits for a new assignment.
    Deposed { since: EventTime },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct InFlight {
    record: Outgoing,
    send_at: EventTime,
}

/// Leadership of one process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Leadership {
    /// Names this process; each claim's nonce is made from it.
    base: Nonce,
    claims: u64,
    state: State,
    highest_epoch: u64,
}

impl Leadership {
    /// A process that owns nothing; `base` is random and its own.
    #[must_use]
    pub const fn new(base: Nonce) -> Self {
        Self { base, claims: 0, state: State::Follower, highest_epoch: 0 }
    }

    /// The nonce of the last claim.
    #[must_use]
    pub const fn nonce(&self) -> Nonce {
        // Steps of an odd constant: 2^64 claims have different nonces.
        Nonce(self.base.0.wrapping_add(self.claims.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// The partition was assigned.
    pub fn handle_assigned(&mut self) {
        self.state = State::Candidate;
    }

    /// The partition was taken away.
    pub fn handle_revoked(&mut self) {
        self.state = State::Follower;
    }

    /// The topic has been read to its end, as asked after the assignment: a candidate claims.
    pub fn handle_read_to_end(&mut self, now: EventTime) {
        if self.state == State::Candidate {
            self.claims += 1;
            self.state = State::Claiming { epoch: self.highest_epoch + 1, claimed_at: now, sent: false };
        }
    }

    /// A record of the plan topic was folded: `nonce` is that of its headers, where they give one, and `last` the table's last
    /// accepted version after it. Gives what was in flight when this record is its answer.
    pub fn handle_applied(
        &mut self,
        nonce: Option<Nonce>,
        applied: &Applied,
        last: Version,
        now: EventTime,
    ) -> Option<Outgoing> {
        match applied {
            Applied::Claim { epoch, nonce, repeated: true, .. } => {
                self.handle_claim_repeated(*epoch, *nonce);
                None
            }
            Applied::Claim { epoch, nonce, won, .. } => {
                self.handle_claim(*epoch, *nonce, *won, now);
                None
            }
            Applied::Refused { version, .. } => {
                let mine = nonce == Some(self.nonce());
                let flying = self.in_flight().filter(|flying| mine && Some(flying.version) == *version).cloned()?;
                self.handle_refused(flying.version);
                Some(flying)
            }
            Applied::Ignored(_) => None,
            _ => {
                let flying = self.in_flight().filter(|flying| flying.version == last).cloned();
                self.handle_accepted(last, now);
                flying
            }
        }
    }

    /// A claim was read: its epoch, its nonce, and whether it is the first of that epoch.
    pub fn handle_claim(&mut self, epoch: u64, nonce: Nonce, first: bool, now: EventTime) {
        self.highest_epoch = self.highest_epoch.max(epoch);
        match self.state {
            State::Claiming { epoch: mine, .. } if epoch == mine && nonce == self.nonce() && first => {
                self.state = State::Leading { epoch, last_seq: 0, in_flight: None };
            }
            // A rival was first with this epoch, or claimed a higher one: read on and claim above it.
            State::Claiming { epoch: mine, .. } if epoch >= mine && nonce != self.nonce() => {
                self.state = State::Candidate
            }
            State::Leading { epoch: mine, .. } if epoch > mine => self.state = State::Deposed { since: now },
            _ => {}
        }
    }

    /// The claim that this process leads by was read a second time: it is made anew, above the doubled one.
    pub fn handle_claim_repeated(&mut self, epoch: u64, nonce: Nonce) {
        if self.leading() == Some(epoch) && nonce == self.nonce() {
            self.state = State::Candidate;
        }
    }

    /// A record of some leader was accepted: its version.
    pub fn handle_accepted(&mut self, version: Version, now: EventTime) {
        match &mut self.state {
            State::Leading { epoch, in_flight, .. } => {
                let mine = in_flight.as_ref().is_some_and(|flying| flying.record.version <= version);
                if version.epoch == *epoch && mine {
                    *in_flight = None;
                }
            }
            // Somebody lives and leads: no reason to join anew.
            State::Deposed { since } => *since = now,
            _ => {}
        }
    }

    /// A record with this version and this process's nonce was read and refused: it will never count.
    pub fn handle_refused(&mut self, version: Version) {
        if let State::Leading { in_flight, .. } = &mut self.state
            && in_flight.as_ref().is_some_and(|flying| flying.record.version == version)
        {
            *in_flight = None;
        }
    }

    /// Takes the next record: gives it a version and puts it in flight. `None` when not leading or one is in flight already.
    pub fn submit(&mut self, draft: Draft, now: EventTime) -> Option<Version> {
        let State::Leading { epoch, last_seq, in_flight: in_flight @ None } = &mut self.state else { return None };
        *last_seq += 1;
        let version = Version { epoch: *epoch, seq: *last_seq };
        *in_flight = Some(InFlight { record: Outgoing { draft, version, decided_at: now }, send_at: now });
        Some(version)
    }

    /// The version that the next record would get; `None` when none may be submitted.
    #[must_use]
    pub fn next_version(&self) -> Option<Version> {
        match &self.state {
            State::Leading { epoch, last_seq, in_flight: None } => Some(Version { epoch: *epoch, seq: last_seq + 1 }),
            _ => None,
        }
    }

    /// What to send now: the claim, once; or the record in flight, again when it has had no answer for a while.
    pub fn poll_send(&mut self, now: EventTime) -> Option<Send> {
        match &mut self.state {
            State::Claiming { epoch, claimed_at, sent: sent @ false } => {
                *sent = true;
                Some(Send::Claim(*epoch, *claimed_at))
            }
            State::Claiming { claimed_at, .. } if now.since(*claimed_at) >= CLAIM_LIMIT => {
                self.state = State::Candidate;
                None
            }
            State::Leading { in_flight: Some(flying), .. } if now >= flying.send_at => {
                flying.send_at = now.saturating_add(RESEND_AFTER);
                Some(Send::Record(flying.record.clone()))
            }
            _ => None,
        }
    }

    /// The client does not know whether what was sent last is on the topic: a record is sent again soon, a claim given up.
    pub fn handle_send_failed(&mut self, now: EventTime) {
        let soon = now.saturating_add(Span::from_millis(500));
        match &mut self.state {
            State::Claiming { sent: true, .. } => self.state = State::Candidate,
            State::Leading { in_flight: Some(flying), .. } => flying.send_at = flying.send_at.min(soon),
            _ => {}
        }
    }

    /// The producer was lost and made anew: a new claim is needed, since the old one's last record may still arrive.
    pub fn handle_producer_lost(&mut self) {
        if !matches!(self.state, State::Follower) {
            self.state = State::Candidate;
        }
    }

    /// True when the partition is owned, another one leads or led, and nothing has been heard for long: join the group anew.
    #[must_use]
    pub fn should_rejoin(&self, now: EventTime) -> bool {
        matches!(self.state, State::Deposed { since } if now.since(since) >= REJOIN_AFTER)
    }

    /// True when the topic must be read to its end before anything else.
    #[must_use]
    pub fn is_candidate(&self) -> bool {
        self.state == State::Candidate
    }

    /// The epoch that this process leads, if it does.
    #[must_use]
    pub const fn leading(&self) -> Option<u64> {
        match self.state {
            State::Leading { epoch, .. } => Some(epoch),
            _ => None,
        }
    }

    /// The record whose outcome is not known yet.
    #[must_use]
    pub const fn in_flight(&self) -> Option<&Outgoing> {
        match &self.state {
            State::Leading { in_flight: Some(flying), .. } => Some(&flying.record),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::PlanKey;

    const MINE: Nonce = Nonce(1);
    const RIVAL: Nonce = Nonce(2);

    fn at(secs: i64) -> EventTime {
        EventTime::from_millis(1_700_000_000_000 + secs * 1000).unwrap()
    }

    fn draft(key: &str) -> Draft {
        let key = PlanTopicKey::Plan(PlanKey::new("customer", key.as_bytes()));
        Draft { key, value: None, purpose: Purpose::Decision }
    }

    fn leader() -> Leadership {
        let mut leadership = Leadership::new(MINE);
        leadership.handle_claim(6, RIVAL, true, at(0));
        leadership.handle_assigned();
        leadership.handle_read_to_end(at(0));
        assert_eq!(leadership.poll_send(at(0)), Some(Send::Claim(7, at(0))));
        leadership.handle_claim(7, leadership.nonce(), true, at(1));
        assert_eq!(leadership.leading(), Some(7));
        leadership
    }

    #[test]
    fn one_record_is_in_flight_and_is_sent_again_with_the_same_version() {
        let mut leadership = leader();
        let version = leadership.submit(draft("k"), at(2)).unwrap();
        assert_eq!(version, Version { epoch: 7, seq: 1 });
        assert_eq!(leadership.submit(draft("m"), at(2)), None);
        let Some(Send::Record(first)) = leadership.poll_send(at(2)) else { panic!("nothing to send") };
        assert_eq!(leadership.poll_send(at(3)), None);
        let Some(Send::Record(again)) = leadership.poll_send(at(6)) else { panic!("not sent again") };
        assert_eq!(first, again);
        leadership.handle_accepted(version, at(7));
        assert_eq!(leadership.next_version(), Some(Version { epoch: 7, seq: 2 }));
        let late = leadership.submit(draft("m"), at(8)).unwrap();
        leadership.handle_refused(late);
        assert_eq!(leadership.next_version(), Some(Version { epoch: 7, seq: 3 }), "a version is never used twice");
    }

    #[test]
    fn the_first_claim_of_an_epoch_wins() {
        let mut leadership = Leadership::new(MINE);
        leadership.handle_assigned();
        leadership.handle_read_to_end(at(0));
        assert_eq!(leadership.poll_send(at(0)), Some(Send::Claim(1, at(0))));
        leadership.handle_claim(1, RIVAL, true, at(1));
        leadership.handle_claim(1, leadership.nonce(), false, at(1));
        assert_eq!(leadership.leading(), None);
        leadership.handle_read_to_end(at(1));
        assert_eq!(leadership.poll_send(at(1)), Some(Send::Claim(2, at(1))));
    }

    #[test]
    fn a_deposed_leader_publishes_nothing_until_it_is_assigned_anew() {
        let mut leadership = leader();
        leadership.submit(draft("k"), at(2));
        leadership.handle_claim(8, RIVAL, true, at(3));
        assert_eq!(leadership.poll_send(at(100)), None);
        assert_eq!(leadership.next_version(), None);
        leadership.handle_read_to_end(at(4));
        assert_eq!(leadership.poll_send(at(100)), None);
        assert!(!leadership.should_rejoin(at(10)));
        leadership.handle_accepted(Version { epoch: 8, seq: 1 }, at(10));
        assert!(!leadership.should_rejoin(at(20)), "the other one lives");
        assert!(leadership.should_rejoin(at(25)));
        leadership.handle_assigned();
        leadership.handle_read_to_end(at(30));
        assert_eq!(leadership.poll_send(at(30)), Some(Send::Claim(9, at(30))));
    }

    #[test]
    fn a_claim_without_an_answer_is_given_up_and_made_anew() {
        let mut leadership = Leadership::new(MINE);
        leadership.handle_assigned();
        leadership.handle_read_to_end(at(0));
        assert_eq!(leadership.poll_send(at(0)), Some(Send::Claim(1, at(0))));
        let given_up = leadership.nonce();
        assert_eq!(leadership.poll_send(at(1)), None, "a claim is sent once");
        leadership.handle_send_failed(at(1));
        assert!(leadership.is_candidate());
        leadership.handle_read_to_end(at(2));
        assert_eq!(leadership.poll_send(at(2)), Some(Send::Claim(1, at(2))));
        assert_ne!(leadership.nonce(), given_up);
        leadership.handle_claim(1, given_up, true, at(3));
        assert_eq!(leadership.leading(), None, "the first one has landed after all: read on, claim above it");
        leadership.handle_read_to_end(at(4));
        assert_eq!(leadership.poll_send(at(4)), Some(Send::Claim(2, at(4))));
        assert_eq!(leadership.poll_send(at(13)), None);
        assert!(leadership.is_candidate(), "no word from the client either");
        leadership.handle_revoked();
        assert_eq!(leadership.poll_send(at(20)), None);
    }

    #[test]
    fn a_claim_read_twice_is_made_anew() {
        let mut leadership = leader();
        leadership.submit(draft("k"), at(2));
        leadership.handle_claim_repeated(6, RIVAL);
        assert_eq!(leadership.leading(), Some(7));
        leadership.handle_claim_repeated(7, leadership.nonce());
        assert_eq!(leadership.leading(), None);
        leadership.handle_read_to_end(at(3));
        assert_eq!(leadership.poll_send(at(3)), Some(Send::Claim(8, at(3))));
    }
}
