//! The table as the plan topic changes it: one accepted record at a time, and what may be acknowledged.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use super::ledger::{AckState, Ledger};
use super::node::{Content, Node};
use super::rules::Rules;
use super::stripe::Stripe;
use super::table::{CLOSED, OPEN, Table};
use crate::protocol::{Applied, Digest, PlanKey, PlanRecord, PlanTopicKey, RefusedRecord, Version};
use crate::units::{EventTime, Span};

/// A change that the table cannot take. The router stays at the version before it and acknowledges nothing newer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Too many keys.
    #[error("the table has {0} keys with a plan, which is its limit; raise max_plans of the router")]
    Full(usize),
    /// Versions of a key only grow.
    #[error(
        "version {got} of a key that is at {known} already; records are applied in the order of the topic, accepted ones only"
    )]
    NotNewer {
        /// The version of the change.
        got: Version,
        /// The version of the key.
        known: Version,
    },
}

/// Changes: made by the one that follows the plan topic.
impl Table {
    /// What one record of the plan topic did to the folded [`crate::protocol::PlanTable`], done to this table too. A record of a
    /// superseded publisher, or one that came too late, changes nothing; nor does what is no plan.
    ///
    /// # Errors
    /// [`ApplyError`]
    pub fn apply(&self, applied: &Applied) -> Result<(), ApplyError> {
        match applied {
            Applied::Plan { key, entry, .. } => self.put(key, entry.version, &entry.record),
            Applied::Removed { key, version, .. } => self.remove(key, *version),
            Applied::Refused { key: PlanTopicKey::Plan(key), version: Some(version), reason }
                if reason.is_unreadable() =>
            {
                self.refuse(key, *version, reason.clone())
            }
            Applied::Heartbeat { heartbeat, .. } => {
                if let Some(time) = time_of(&heartbeat.time) {
                    self.heartbeat(time);
                }
                Ok(())
            }
            Applied::Advice { .. }
            | Applied::AdviceRemoved { .. }
            | Applied::Policy { .. }
            | Applied::PolicyRemoved { .. }
            | Applied::Other { .. }
            | Applied::Claim { .. }
            | Applied::Refused { .. }
            | Applied::Ignored(_) => Ok(()),
        }
    }

    /// One accepted record. A record that this router cannot obey is refused: the key keeps its last accepted one, and with none
    /// its requests fail.
    ///
    /// # Errors
    /// [`ApplyError`]
    pub fn put(&self, key: &PlanKey, version: Version, record: &PlanRecord) -> Result<(), ApplyError> {
        match Rules::of(record) {
            Ok(rules) => self.turn(key, version, Content::Rules(rules)),
            Err(reason) => self.refuse(key, version, reason),
        }
    }

    /// A record of the key that cannot be read or obeyed.
    ///
    /// # Errors
    /// [`ApplyError`]
    pub fn refuse(&self, key: &PlanKey, version: Version, reason: RefusedRecord) -> Result<(), ApplyError> {
        let accepted = self.ledger().current(key).is_some_and(|node| matches!(node.content, Content::Rules(_)));
        if !accepted {
            self.turn(key, version, Content::Refused(reason.clone()))?;
        }
        let mut ledger = self.ledger();
        if accepted {
            newer(&ledger, key, version)?;
        }
        ledger.refuse(key, version, reason);
        Ok(())
    }

    fn turn(&self, key: &PlanKey, version: Version, content: Content) -> Result<(), ApplyError> {
        let mut ledger = self.ledger();
        newer(&ledger, key, version)?;
        let hash = self.hash(&key.key);
        let node = Arc::new(Node::new(&key.keyspace, &key.key, version, content));
        if let Some(old) = ledger.current(key).map(Arc::clone) {
            {
                let mut chain = self.plans.entry(hash).or_default();
                chain.retain(|other| !Arc::ptr_eq(other, &old));
                chain.push(Arc::clone(&node));
            }
            ledger.replaced(key, Arc::clone(&old), node);
            old.waiters().end();
            return Ok(());
        }
        if ledger.plans() >= self.settings.max_plans {
            return Err(ApplyError::Full(ledger.plans()));
        }
        let (at, bit) = self.stripe_of(hash);
        let stripe = &self.stripes[at];
        self.plans.entry(hash).or_default().push(Arc::clone(&node));
        // Step (a1) is done when the filter's bit is set: until then the node is seen by none or by some, both are right.
        stripe.set_filter(bit);
        let through = stripe.generation();
        stripe.try_advance(self.now_ms.load(SeqCst));
        ledger.planned(key, node, (at, bit), through);
        Ok(())
    }

    /// A tombstone: the key is in the bare layout and needs no plan.
    ///
    /// # Errors
    /// [`ApplyError::NotNewer`]
    pub fn remove(&self, key: &PlanKey, version: Version) -> Result<(), ApplyError> {
        let mut ledger = self.ledger();
        newer(&ledger, key, version)?;
        let Some(old) = ledger.current(key).map(Arc::clone) else { return Ok(()) };
        let hash = self.hash(&key.key);
        let (at, bit) = self.stripe_of(hash);
        {
            let mut chain = self.plans.entry(hash).or_default();
            chain.retain(|other| !Arc::ptr_eq(other, &old));
        }
        self.plans.remove_if(&hash, |_, chain| chain.is_empty());
        let last_of_bit = ledger.removed(key, Arc::clone(&old), (at, bit), version);
        if last_of_bit && self.gate.load(SeqCst) == OPEN {
            self.stripes[at].clear_filter(bit);
        }
        old.waiters().end();
        Ok(())
    }

    /// The table knows the plan topic to its end: from now on requests are placed.
    pub fn open(&self) {
        let ledger = self.ledger();
        self.gate.store(OPEN, SeqCst);
        let filters = ledger.filters();
        for (at, stripe) in self.stripes.iter().enumerate() {
            stripe.reset_filter(filters.get(&at).copied().unwrap_or(0));
        }
    }

    /// The router leaves: nothing is placed any more, writes that wait are woken and refused. Requests in flight run on; see
    /// [`Table::is_idle`].
    pub fn close(&self) {
        self.shut(CLOSED);
        self.ledger().wake_all();
    }

    pub(super) fn shut(&self, gate: u8) {
        let _ledger = self.ledger();
        self.gate.store(gate, SeqCst);
        for stripe in &self.stripes {
            stripe.reset_filter(u64::MAX);
        }
    }

    /// The plan topic was applied up to `version`, where its digest is `digest`.
    pub fn reached(&self, version: Version, digest: Digest) {
        let mut ledger = self.ledger();
        ledger.applied = ledger.applied.max(version);
        ledger.digest = digest;
    }

    /// A heartbeat of the leader, made at `time`, was read.
    pub fn heartbeat(&self, time: EventTime) {
        self.heartbeat_ms.fetch_max(time.as_millis(), SeqCst);
    }

    /// It is `now`: calls of unknown outcome whose time has come no longer count.
    pub fn release_unknown(&self, now: EventTime) {
        self.now_ms.fetch_max(now.as_millis(), SeqCst);
    }
}

/// What the table knows of itself.
impl Table {
    /// The version up to which the plan topic was applied.
    #[must_use]
    pub fn version(&self) -> Version {
        self.ledger().applied
    }

    /// What may be acknowledged, as of the last [`Table::release_unknown`].
    #[must_use]
    pub fn ack_state(&self) -> AckState {
        let now_ms = self.now_ms.load(SeqCst);
        self.ledger().ack_state(&self.stripes, &self.bare, now_ms)
    }

    /// True when no request is in flight, nor any whose outcome is unknown, as of the last [`Table::release_unknown`]. Once the
    /// table is closed it stays so.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let now_ms = self.now_ms.load(SeqCst);
        self.ledger().is_idle(now_ms) && self.stripes.iter().all(|stripe| stripe.left(now_ms).nothing())
    }

    /// Until when a store call of unknown outcome may still land, as of the last [`Table::release_unknown`]; none when there is none.
    #[must_use]
    pub fn unknown_until(&self) -> Option<EventTime> {
        let stripes = self.stripes.iter().map(Stripe::unknown_until_ms).max().unwrap_or(0);
        let until_ms = stripes.max(self.ledger().unknown_until_ms());
        EventTime::from_millis(until_ms).ok().filter(|_| until_ms > self.now_ms.load(SeqCst))
    }

    /// True when requests are placed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.gate.load(SeqCst) == OPEN
    }

    /// The newest version of a key's plan, refused or in force.
    #[must_use]
    pub fn version_of(&self, key: &PlanKey) -> Option<Version> {
        self.ledger().version_of(key)
    }

    /// Every key with a plan, and its newest version.
    #[must_use]
    pub fn versions(&self) -> Vec<(PlanKey, Version)> {
        self.ledger().versions()
    }

    /// True when the key's plan, if it has one, places requests where no plan would.
    #[must_use]
    pub fn is_bare(&self, key: &PlanKey) -> bool {
        match self.ledger().current(key).map(|node| &node.content) {
            None => true,
            Some(Content::Rules(rules)) => rules.same_write(&self.bare) && rules.same_reads(&self.bare),
            Some(Content::Refused(_)) => false,
        }
    }

    /// How long ago the last heartbeat was made; none when there was none. A stale table stays in force.
    #[must_use]
    pub fn staleness(&self, now: EventTime) -> Option<Span> {
        EventTime::from_millis(self.heartbeat_ms.load(SeqCst)).ok().map(|time| now.since(time))
    }

    /// Number of keys with a plan.
    #[must_use]
    pub fn plans(&self) -> usize {
        self.ledger().plans()
    }

    /// Number of writes that wait.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.held.now()
    }
}

fn newer(ledger: &Ledger, key: &PlanKey, version: Version) -> Result<(), ApplyError> {
    match ledger.version_of(key) {
        Some(known) if known >= version => Err(ApplyError::NotNewer { got: version, known }),
        _ => Ok(()),
    }
}

/// A time as records write it.
fn time_of(text: &str) -> Option<EventTime> {
    let timestamp: jiff::Timestamp = text.parse().ok()?;
    EventTime::from_millis(timestamp.as_millisecond()).ok()
}
