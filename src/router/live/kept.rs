//! The records of the plan topic that a snapshot needs: folded again, they give the same table.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::protocol::{Applied, LogRecord, PlanKey, PlanTopicKey, Version};

/// Records in force: the accepted one of each key, the newest unreadable one of each key, their claims, and the last heartbeat.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept {
    /// By version: the order in which they were accepted, whatever their offsets are.
    records: BTreeMap<Version, LogRecord>,
    accepted: HashMap<PlanKey, Version>,
    unreadable: HashMap<PlanKey, Version>,
    claims: BTreeMap<u64, LogRecord>,
    heartbeat: Option<(Version, LogRecord)>,
}

impl Kept {
    /// Takes what a record did; true when the snapshot should be written anew.
    pub(super) fn take(&mut self, applied: &Applied, record: &LogRecord) -> bool {
        match applied {
            Applied::Plan { key, entry, .. } => {
                self.forget(key);
                self.accepted.insert(key.clone(), entry.version);
                self.records.insert(entry.version, record.clone());
                true
            }
            Applied::Removed { key, .. } => {
                self.forget(key);
                true
            }
            Applied::Refused { key: PlanTopicKey::Plan(key), version: Some(version), reason }
                if reason.is_unreadable() =>
            {
                if let Some(old) = self.unreadable.insert(key.clone(), *version) {
                    self.records.remove(&old);
                }
                self.records.insert(*version, record.clone());
                true
            }
            Applied::Claim { epoch, won: true, .. } => {
                // The first one stays: a repeated claim changes nothing.
                self.claims.entry(*epoch).or_insert_with(|| record.clone());
                true
            }
            Applied::Heartbeat { version, .. } => {
                self.heartbeat = Some((*version, record.clone()));
                false
            }
            _ => false,
        }
    }

    fn forget(&mut self, key: &PlanKey) {
        for old in [self.accepted.remove(key), self.unreadable.remove(key)].into_iter().flatten() {
            self.records.remove(&old);
        }
    }

    /// Takes over the records of a key from an earlier life: its log no longer has them.
    pub(super) fn adopt(&mut self, other: &Self, key: &PlanKey) {
        for (theirs, mine) in [(&other.accepted, &mut self.accepted), (&other.unreadable, &mut self.unreadable)] {
            let Some(version) = theirs.get(key) else { continue };
            let Some(record) = other.records.get(version) else { continue };
            mine.insert(key.clone(), *version);
            self.records.insert(*version, record.clone());
            if let Some(claim) = other.claims.get(&version.epoch) {
                self.claims.entry(version.epoch).or_insert_with(|| claim.clone());
            }
        }
    }

    /// The records in the order in which they fold to the same table. Of the claims those that a kept record needs, and the newest.
    pub(super) fn in_order(&self) -> Vec<&LogRecord> {
        let mut epochs: BTreeSet<u64> = self.records.keys().map(|version| version.epoch).collect();
        epochs.extend(self.heartbeat.as_ref().map(|(version, _)| version.epoch));
        epochs.extend(self.claims.keys().next_back());
        let claims = self.claims.iter().filter(|(epoch, _)| epochs.contains(epoch));
        let mut all: Vec<(Version, &LogRecord)> =
            claims.map(|(epoch, record)| (Version { epoch: *epoch, seq: 0 }, record)).collect();
        all.extend(self.records.iter().map(|(version, record)| (*version, record)));
        all.extend(self.heartbeat.as_ref().map(|(version, record)| (*version, record)));
        all.sort_by_key(|(version, _)| *version);
        all.into_iter().map(|(_, record)| record).collect()
    }
}
