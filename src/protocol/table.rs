//! The plan topic, folded record by record in log order: what every reader holds, the leader and each router alike.
//!
//! The fence: the first claim of an epoch wins; a record counts only if its epoch is the highest claimed so far, its nonce that of the
//! winner, and its version above the last accepted one. Since an epoch counts only from its first claim on and a lower one never
//! again, the newest winner is all that has to be kept. The fold looks at nothing that compaction may take away: the verdict on a
//! record depends on claims, which are kept, and on versions, which grow.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::advice::Advice;
use super::digest::Digest;
use super::headers::{MAX_VERSION_NUMBER, RecordHeaders};
use super::heartbeat::Heartbeat;
use super::log_record::LogRecord;
use super::plan_record::{MAX_VALUE_BYTES, PlanRecord, State};
use super::policy::Policy;
use super::record_key::{PlanKey, PlanTopicKey};
use super::refusal::{IgnoredRecord, RefusedRecord};
use super::version::{Nonce, Version};
use crate::units::{EventTime, Offset};

/// The most plans of a table.
pub const MAX_PLANS: usize = 10_000;
/// The most advice records of a table, the most policies, and the most of other kinds.
pub const MAX_OTHERS: usize = 10_000;
/// The most keys that are remembered as shadowed, as unreadable and as voided.
pub const MAX_TROUBLED: usize = 10_000;

/// The table of plans at one place of the log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanTable {
    leader: Option<(u64, Nonce)>,
    last: Version,
    plans: BTreeMap<PlanKey, Arc<PlanEntry>>,
    advice: BTreeMap<PlanKey, Arc<AdviceEntry>>,
    policies: BTreeMap<PlanKey, Arc<PolicyEntry>>,
    others: BTreeMap<PlanTopicKey, OtherEntry>,
    heartbeat: Option<HeartbeatEntry>,
    digest: Digest,
    shadowed: BTreeMap<PlanTopicKey, Shadow>,
    unreadable: BTreeMap<PlanKey, Unreadable>,
    voided: BTreeMap<PlanKey, EventTime>,
    cut: u64,
}

/// An accepted plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanEntry {
    /// Its version.
    pub version: Version,
    /// The record.
    pub record: PlanRecord,
    /// The record's value as it was read.
    pub value: Vec<u8>,
    /// When the broker appended it.
    pub log_time: Option<EventTime>,
    /// Its place in the log.
    pub offset: Offset,
}

/// Accepted advice.
#[derive(Debug, Clone, PartialEq)]
pub struct AdviceEntry {
    /// Its version.
    pub version: Version,
    /// The record.
    pub advice: Advice,
    /// The record's value as it was read.
    pub value: Vec<u8>,
}

/// An accepted policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyEntry {
    /// Its version.
    pub version: Version,
    /// The record.
    pub policy: Policy,
    /// The record's value as it was read.
    pub value: Vec<u8>,
}

/// An accepted record that this version keeps as bytes: advice on shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherEntry {
    /// Its version.
    pub version: Version,
    /// The record's value as it was read.
    pub value: Vec<u8>,
}

/// The last accepted heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatEntry {
    /// Its version.
    pub version: Version,
    /// The value.
    pub heartbeat: Heartbeat,
    /// True when its digest was that of this table at that place.
    pub agrees: bool,
    /// When the broker appended it.
    pub log_time: Option<EventTime>,
    /// Its place in the log.
    pub offset: Offset,
}

/// A key whose newest record in the log was refused: compaction may take the accepted one away, so the leader answers it at once,
/// with the accepted record again or, when there is none, with a tombstone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shadow {
    /// Where the refused record is.
    pub offset: Offset,
    /// True when the refused record is a tombstone.
    pub tombstone: bool,
}

/// A key whose newest rightful record this reader cannot obey; it keeps the last accepted one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Version of the record that was refused.
    pub version: Version,
    /// Why.
    pub reason: RefusedRecord,
}

/// What one record did to the table.
#[derive(Debug, Clone, PartialEq)]
pub enum Applied {
    /// A plan came or changed.
    Plan {
        /// Whose.
        key: PlanKey,
        /// As it is now.
        entry: Arc<PlanEntry>,
        /// As it was.
        previous: Option<Arc<PlanEntry>>,
    },
    /// A plan's tombstone was accepted.
    Removed {
        /// Whose.
        key: PlanKey,
        /// Version of the tombstone.
        version: Version,
        /// As it was.
        previous: Option<Arc<PlanEntry>>,
    },
    /// Advice came or changed.
    Advice {
        /// Whose.
        key: PlanKey,
        /// As it is now.
        entry: Arc<AdviceEntry>,
    },
    /// Advice was withdrawn.
    AdviceRemoved {
        /// Whose.
        key: PlanKey,
        /// Version of the tombstone.
        version: Version,
    },
    /// A policy came or changed.
    Policy {
        /// Whose.
        key: PlanKey,
        /// As it is now.
        entry: Arc<PolicyEntry>,
    },
    /// A policy was taken back.
    PolicyRemoved {
        /// Whose.
        key: PlanKey,
        /// Version of the tombstone.
        version: Version,
    },
    /// A record of a kind that is kept as bytes was accepted: advice on a shard.
    Other {
        /// Its key.
        key: PlanTopicKey,
        /// Its version.
        version: Version,
        /// True for a tombstone.
        removed: bool,
    },
    /// A claim.
    Claim {
        /// The epoch that was claimed.
        epoch: u64,
        /// Whose claim it is.
        nonce: Nonce,
        /// True when it is the first of its epoch and the epoch is the highest.
        won: bool,
        /// True when the leader's claim is there twice. Compaction will take the first away, and with it what lies between: the
        /// leader claims a new epoch and publishes its plans again.
        repeated: bool,
    },
    /// A heartbeat was accepted.
    Heartbeat {
        /// The value.
        heartbeat: Heartbeat,
        /// Its version.
        version: Version,
        /// True when its digest is that of this table.
        agrees: bool,
    },
    /// The record does not count.
    Refused {
        /// Its key.
        key: PlanTopicKey,
        /// Its version, where the headers give one.
        version: Option<Version>,
        /// Why.
        reason: RefusedRecord,
    },
    /// The record's key has no form that this version knows.
    Ignored(IgnoredRecord),
}

impl PlanTable {
    /// The table before the first record.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next record of the log.
    pub fn apply(&mut self, record: &LogRecord) -> Applied {
        let key = match PlanTopicKey::parse(&record.key) {
            Ok(key) => key,
            Err(ignored) => return Applied::Ignored(ignored),
        };
        if let PlanTopicKey::Claim { epoch, nonce } = key {
            return self.claim(epoch, nonce, record);
        }
        let headers = match record.parsed_headers() {
            Ok(headers) => headers,
            Err(reason) => return self.refuse(key, None, reason.into(), record),
        };
        match self.accept(&key, &headers, record) {
            Ok(applied) => applied,
            Err(reason) => self.refuse(key, Some(headers.version), reason, record),
        }
    }

    fn claim(&mut self, epoch: u64, nonce: Nonce, record: &LogRecord) -> Applied {
        let refused = |reason| Applied::Refused { key: PlanTopicKey::Claim { epoch, nonce }, version: None, reason };
        if record.value.is_none() {
            return refused(RefusedRecord::ClaimRemoved);
        }
        if epoch == 0 || epoch > MAX_VERSION_NUMBER {
            return refused(RefusedRecord::ClaimEpoch(epoch));
        }
        let repeated = self.leader == Some((epoch, nonce));
        let won = epoch > self.highest_epoch();
        if won {
            self.leader = Some((epoch, nonce));
        }
        Applied::Claim { epoch, nonce, won, repeated }
    }

    /// The fence, then the record itself. A record that passes the fence is the last version even when it cannot be obeyed.
    fn accept(
        &mut self,
        key: &PlanTopicKey,
        headers: &RecordHeaders,
        record: &LogRecord,
    ) -> Result<Applied, RefusedRecord> {
        let version = headers.version;
        if self.leader != Some((version.epoch, headers.nonce)) {
            return Err(RefusedRecord::NotLeader(version));
        }
        if version <= self.last {
            return Err(RefusedRecord::OldVersion { got: version, last: self.last });
        }
        self.last = version;
        let applied = match key {
            PlanTopicKey::Plan(plan) => self.plan_record(plan, version, record)?,
            PlanTopicKey::Advice(subject) => self.advice_record(subject, version, record)?,
            PlanTopicKey::Policy(subject) => self.policy_record(subject, version, record)?,
            PlanTopicKey::ShardAdvice(_) => self.other_record(key, version, record)?,
            PlanTopicKey::Heartbeat => self.heartbeat_record(version, record)?,
            PlanTopicKey::Claim { epoch, nonce } => return Ok(self.claim(*epoch, *nonce, record)),
        };
        self.shadowed.remove(key);
        Ok(applied)
    }

    fn plan_record(&mut self, key: &PlanKey, version: Version, record: &LogRecord) -> Result<Applied, RefusedRecord> {
        let Some(value) = &record.value else {
            self.unreadable.remove(key);
            let previous = self.plans.remove(key);
            self.toggle(key, previous.as_deref());
            return Ok(Applied::Removed { key: key.clone(), version, previous });
        };
        let plan = PlanRecord::decode(key, value)?;
        if let Some((limit, log_time)) = void_after(&plan, record.log_time) {
            self.remember_void(key, log_time);
            return Err(RefusedRecord::Void(limit));
        }
        if self.plans.len() >= MAX_PLANS && !self.plans.contains_key(key) {
            return Err(RefusedRecord::TooMany(MAX_PLANS));
        }
        self.unreadable.remove(key);
        self.voided.remove(key);
        let PlanTopicPlace { log_time, offset } = PlanTopicPlace::of(record);
        let entry = Arc::new(PlanEntry { version, record: plan, value: value.clone(), log_time, offset });
        let previous = self.plans.insert(key.clone(), Arc::clone(&entry));
        self.toggle(key, previous.as_deref());
        self.toggle(key, Some(&entry));
        Ok(Applied::Plan { key: key.clone(), entry, previous })
    }

    fn advice_record(&mut self, key: &PlanKey, version: Version, record: &LogRecord) -> Result<Applied, RefusedRecord> {
        let Some(value) = &record.value else {
            self.advice.remove(key);
            return Ok(Applied::AdviceRemoved { key: key.clone(), version });
        };
        let advice = Advice::decode(key, value)?;
        let entry = Arc::new(AdviceEntry { version, advice, value: value.clone() });
        keep(&mut self.advice, key, Arc::clone(&entry))?;
        Ok(Applied::Advice { key: key.clone(), entry })
    }

    fn policy_record(&mut self, key: &PlanKey, version: Version, record: &LogRecord) -> Result<Applied, RefusedRecord> {
        let Some(value) = &record.value else {
            self.policies.remove(key);
            return Ok(Applied::PolicyRemoved { key: key.clone(), version });
        };
        let policy = Policy::decode(key, value)?;
        let entry = Arc::new(PolicyEntry { version, policy, value: value.clone() });
        keep(&mut self.policies, key, Arc::clone(&entry))?;
        Ok(Applied::Policy { key: key.clone(), entry })
    }

    fn other_record(
        &mut self,
        key: &PlanTopicKey,
        version: Version,
        record: &LogRecord,
    ) -> Result<Applied, RefusedRecord> {
        let removed = record.value.is_none();
        match &record.value {
            None => {
                self.others.remove(key);
            }
            Some(value) if value.len() > MAX_VALUE_BYTES => {
                return Err(RefusedRecord::TooLong { bytes: value.len(), limit: MAX_VALUE_BYTES });
            }
            Some(value) => keep(&mut self.others, key, OtherEntry { version, value: value.clone() })?,
        }
        Ok(Applied::Other { key: key.clone(), version, removed })
    }

    fn heartbeat_record(&mut self, version: Version, record: &LogRecord) -> Result<Applied, RefusedRecord> {
        let heartbeat = Heartbeat::decode(record.value.as_deref().unwrap_or_default())?;
        let agrees = heartbeat.digest == self.digest;
        let PlanTopicPlace { log_time, offset } = PlanTopicPlace::of(record);
        self.heartbeat = Some(HeartbeatEntry { version, heartbeat: heartbeat.clone(), agrees, log_time, offset });
        Ok(Applied::Heartbeat { heartbeat, version, agrees })
    }

    fn refuse(
        &mut self,
        key: PlanTopicKey,
        version: Option<Version>,
        reason: RefusedRecord,
        record: &LogRecord,
    ) -> Applied {
        if let (true, PlanTopicKey::Plan(plan), Some(version)) = (reason.is_unreadable(), &key, version) {
            if self.unreadable.len() < MAX_TROUBLED || self.unreadable.contains_key(plan) {
                self.unreadable.insert(plan.clone(), Unreadable { version, reason: reason.clone() });
            } else {
                self.cut += 1;
            }
        }
        if reason.is_unreadable() {
            // The newest record of the key is the leader's own, readable or not: it is not to be answered.
            self.shadowed.remove(&key);
        } else if !matches!(key, PlanTopicKey::Heartbeat | PlanTopicKey::Claim { .. }) {
            self.shadow(&key, Shadow { offset: record.offset, tombstone: record.value.is_none() });
        }
        Applied::Refused { key, version, reason }
    }

    fn shadow(&mut self, key: &PlanTopicKey, shadow: Shadow) {
        if shadow.tombstone && !self.holds(key) {
            // A tombstone of what is not there leaves the log as the table has it.
            self.shadowed.remove(key);
        } else if self.shadowed.len() < MAX_TROUBLED || self.shadowed.contains_key(key) {
            self.shadowed.insert(key.clone(), shadow);
        } else {
            self.cut += 1;
        }
    }

    fn remember_void(&mut self, key: &PlanKey, log_time: EventTime) {
        if self.voided.len() < MAX_TROUBLED || self.voided.contains_key(key) {
            self.voided.insert(key.clone(), log_time);
        } else {
            self.cut += 1;
        }
    }

    fn holds(&self, key: &PlanTopicKey) -> bool {
        match key {
            PlanTopicKey::Plan(key) => self.plans.contains_key(key),
            PlanTopicKey::Advice(key) => self.advice.contains_key(key),
            PlanTopicKey::Policy(key) => self.policies.contains_key(key),
            other => self.others.contains_key(other),
        }
    }

    fn toggle(&mut self, key: &PlanKey, entry: Option<&PlanEntry>) {
        if let Some(entry) = entry {
            let bytes = PlanTopicKey::Plan(key.clone()).to_bytes();
            self.digest = self.digest.toggled(&bytes, entry.version, &entry.value);
        }
    }

    /// The plan of a key.
    #[must_use]
    pub fn plan(&self, key: &PlanKey) -> Option<&PlanEntry> {
        self.plans.get(key).map(Arc::as_ref)
    }

    /// Every plan, in the order of keyspace and key.
    pub fn plans(&self) -> impl ExactSizeIterator<Item = (&PlanKey, &Arc<PlanEntry>)> {
        self.plans.iter()
    }

    /// The advice on a key.
    #[must_use]
    pub fn advice(&self, key: &PlanKey) -> Option<&AdviceEntry> {
        self.advice.get(key).map(Arc::as_ref)
    }

    /// All advice on keys, in the order of keyspace and key.
    pub fn advised(&self) -> impl ExactSizeIterator<Item = (&PlanKey, &Arc<AdviceEntry>)> {
        self.advice.iter()
    }

    /// What an operator has set for a key.
    #[must_use]
    pub fn policy(&self, key: &PlanKey) -> Option<&PolicyEntry> {
        self.policies.get(key).map(Arc::as_ref)
    }

    /// All policies, in the order of keyspace and key.
    pub fn policies(&self) -> impl ExactSizeIterator<Item = (&PlanKey, &Arc<PolicyEntry>)> {
        self.policies.iter()
    }

    /// A record that is kept as bytes: advice on a shard.
    #[must_use]
    pub fn other(&self, key: &PlanTopicKey) -> Option<&OtherEntry> {
        self.others.get(key)
    }

    /// Digest of the plans.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// The highest epoch that was claimed; 0 before the first claim.
    #[must_use]
    pub fn highest_epoch(&self) -> u64 {
        self.leader.map_or(0, |(epoch, _)| epoch)
    }

    /// The highest epoch and the nonce of its winner.
    #[must_use]
    pub const fn leader(&self) -> Option<(u64, Nonce)> {
        self.leader
    }

    /// The last accepted version.
    #[must_use]
    pub const fn last_version(&self) -> Version {
        self.last
    }

    /// The last accepted heartbeat.
    #[must_use]
    pub const fn heartbeat(&self) -> Option<&HeartbeatEntry> {
        self.heartbeat.as_ref()
    }

    /// True when the leader's last heartbeat does not speak against this table: its digest was that of the table at that place, or
    /// there was none, or the table differs by right because this version could not read a record. Who begins to follow serves
    /// nothing before.
    #[must_use]
    pub fn is_vouched_for(&self) -> bool {
        self.heartbeat.as_ref().is_none_or(|heartbeat| heartbeat.agrees) || !self.unreadable.is_empty()
    }

    /// Keys whose newest record in the log was refused and has to be answered: the accepted record again, else a tombstone.
    pub fn shadowed(&self) -> impl ExactSizeIterator<Item = (&PlanTopicKey, &Shadow)> {
        self.shadowed.iter()
    }

    /// True when the newest record of the key in the log is not the one in force: refused by the fence, or not to be read.
    #[must_use]
    pub fn is_troubled(&self, key: &PlanKey) -> bool {
        self.unreadable.contains_key(key) || self.shadowed.contains_key(&PlanTopicKey::Plan(key.clone()))
    }

    /// When the last proposal or prepare of the key that came too late reached the log; none once a plan of the key was accepted.
    #[must_use]
    pub fn voided_at(&self, key: &PlanKey) -> Option<EventTime> {
        self.voided.get(key).copied()
    }

    /// The value with which the leader answers a shadowed key; none for a tombstone. It is the accepted one, without its `not_after`:
    /// that limits how late a decision may arrive, and this one has arrived.
    #[must_use]
    pub fn answer(&self, key: &PlanTopicKey) -> Option<Vec<u8>> {
        match key {
            PlanTopicKey::Plan(key) => self.plans.get(key).map(|entry| {
                let lasting = entry.record.not_after.is_none();
                if lasting {
                    entry.value.clone()
                } else {
                    PlanRecord { not_after: None, ..entry.record.clone() }.encode()
                }
            }),
            PlanTopicKey::Advice(key) => self.advice.get(key).map(|entry| entry.value.clone()),
            PlanTopicKey::Policy(key) => self.policies.get(key).map(|entry| entry.value.clone()),
            other => self.others.get(other).map(|entry| entry.value.clone()),
        }
    }

    /// Keys whose newest rightful record this reader cannot obey: what a router reports as refused.
    pub fn unreadable(&self) -> impl ExactSizeIterator<Item = (&PlanKey, &Unreadable)> {
        self.unreadable.iter()
    }

    /// How often a shadowed, unreadable or voided key was not remembered because there were too many.
    #[must_use]
    pub const fn cut(&self) -> u64 {
        self.cut
    }
}

/// Where and when a record was appended.
struct PlanTopicPlace {
    log_time: Option<EventTime>,
    offset: Offset,
}

impl PlanTopicPlace {
    fn of(record: &LogRecord) -> Self {
        Self { log_time: record.log_time, offset: record.offset }
    }
}

/// The `not_after` that the record has missed, if it has, and when it reached the log.
fn void_after(plan: &PlanRecord, log_time: Option<EventTime>) -> Option<(String, EventTime)> {
    if !matches!(plan.state, State::Proposed | State::Prepare) {
        return None;
    }
    let (limit, log_time) = (plan.not_after.as_ref()?, log_time?);
    // `PlanRecord::check` has refused what is no time.
    let limit_ms = limit.parse::<jiff::Timestamp>().ok()?.as_millisecond();
    (log_time.as_millis() > limit_ms).then(|| (limit.clone(), log_time))
}

/// Takes an entry in, while there is room for its key.
fn keep<K: Ord + Clone, E>(entries: &mut BTreeMap<K, E>, key: &K, entry: E) -> Result<(), RefusedRecord> {
    if entries.len() >= MAX_OTHERS && !entries.contains_key(key) {
        return Err(RefusedRecord::TooMany(MAX_OTHERS));
    }
    entries.insert(key.clone(), entry);
    Ok(())
}
