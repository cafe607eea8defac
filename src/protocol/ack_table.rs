//! The acks topic, folded record by record: the registered routers and the owners' reports.

use std::collections::BTreeMap;

use super::ack::{BackfillReport, RetiredReport, RouterAck};
use super::log_record::LogRecord;
use super::record_key::{AckTopicKey, PlanKey};
use super::refusal::{IgnoredRecord, RefusedRecord};
use super::table::PlanTable;
use super::version::{Nonce, Version};
use crate::units::{EventTime, Offset};

/// The most registered routers.
pub const MAX_ROUTERS: usize = 1_000;
/// The most reports of each kind.
pub const MAX_REPORTS: usize = 20_000;

/// What routers and owners have said up to one place of the acks topic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AckTable {
    routers: BTreeMap<(String, Nonce), RouterEntry>,
    unlisted: bool,
    backfills: BTreeMap<(PlanKey, u32), BackfillReport>,
    retired: BTreeMap<(PlanKey, u32), RetiredReport>,
}

/// A registered router: every gate waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterEntry {
    /// What it said last.
    pub ack: RouterAck,
    /// When the broker appended it.
    pub log_time: Option<EventTime>,
    /// Its place in the log.
    pub offset: Offset,
}

/// What one record did to the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AckApplied {
    /// A router registered or acknowledged.
    Router {
        /// Its name.
        id: String,
        /// Its nonce.
        nonce: Nonce,
        /// True for its first record.
        joined: bool,
    },
    /// A router left, or was dropped.
    Left {
        /// Its name.
        id: String,
        /// Its nonce.
        nonce: Nonce,
    },
    /// An owner reported on a move.
    Backfill {
        /// Whose.
        key: PlanKey,
        /// Number of the layout that is entered.
        layout: u32,
    },
    /// An owner reported on a layout that was left.
    Retired {
        /// Whose.
        key: PlanKey,
        /// Number of the layout that was left.
        layout: u32,
    },
    /// A report was taken back.
    ReportRemoved(AckTopicKey),
    /// The record does not count; what was said before stands.
    Refused {
        /// Its key.
        key: AckTopicKey,
        /// Why.
        reason: RefusedRecord,
    },
    /// The record's key has no form that this version knows.
    Ignored(IgnoredRecord),
}

/// A router that knows what this log does not hold: records were lost, or the topic was made anew. The leader stops and alerts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// It has applied a version above the last one of the log.
    #[error("router {id} has applied {applied}, above the log's last version {last}: the plan topic has lost records")]
    Ahead {
        /// The router.
        id: String,
        /// What it has applied.
        applied: Version,
        /// What the log ends with.
        last: Version,
    },
    /// Its table at the same version is another.
    #[error(
        "router {id} has another table at version {version}: the plan topic has lost records, or it folds them otherwise"
    )]
    OtherTable {
        /// The router.
        id: String,
        /// The version of both tables.
        version: Version,
    },
}

impl AckTable {
    /// The table before the first record.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next record of the log.
    pub fn apply(&mut self, record: &LogRecord) -> AckApplied {
        let key = match AckTopicKey::parse(&record.key) {
            Ok(key) => key,
            Err(ignored) => return AckApplied::Ignored(ignored),
        };
        let taken = match (&key, record.value.as_deref()) {
            (AckTopicKey::Router { id, nonce }, Some(value)) => self.router_record(id, *nonce, value, record),
            (AckTopicKey::Router { id, nonce }, None) => {
                self.routers.remove(&(id.clone(), *nonce));
                Ok(AckApplied::Left { id: id.clone(), nonce: *nonce })
            }
            (AckTopicKey::Backfill { key, layout }, Some(value)) => BackfillReport::decode(key, *layout, value)
                .and_then(|report| insert_within(&mut self.backfills, (key.clone(), *layout), report, MAX_REPORTS))
                .map(|()| AckApplied::Backfill { key: key.clone(), layout: *layout }),
            (AckTopicKey::Retired { key, layout }, Some(value)) => RetiredReport::decode(key, *layout, value)
                .and_then(|report| insert_within(&mut self.retired, (key.clone(), *layout), report, MAX_REPORTS))
                .map(|()| AckApplied::Retired { key: key.clone(), layout: *layout }),
            (AckTopicKey::Backfill { key: subject, layout }, None) => {
                self.backfills.remove(&(subject.clone(), *layout));
                Ok(AckApplied::ReportRemoved(key.clone()))
            }
            (AckTopicKey::Retired { key: subject, layout }, None) => {
                self.retired.remove(&(subject.clone(), *layout));
                Ok(AckApplied::ReportRemoved(key.clone()))
            }
        };
        taken.unwrap_or_else(|reason| AckApplied::Refused { key, reason })
    }

    fn router_record(
        &mut self,
        id: &str,
        nonce: Nonce,
        value: &[u8],
        record: &LogRecord,
    ) -> Result<AckApplied, RefusedRecord> {
        let ack = RouterAck::decode(id, nonce, value)?;
        let member = (id.to_owned(), nonce);
        let joined = !self.routers.contains_key(&member);
        let entry = RouterEntry { ack, log_time: record.log_time, offset: record.offset };
        insert_within(&mut self.routers, member, entry, MAX_ROUTERS).inspect_err(|_| self.unlisted = true)?;
        Ok(AckApplied::Router { id: id.to_owned(), nonce, joined })
    }

    /// Registered routers, by id and nonce.
    pub fn routers(&self) -> impl ExactSizeIterator<Item = &RouterEntry> {
        self.routers.values()
    }

    /// True when every registered router has acknowledged the record of `key` with this version: it has applied that version and
    /// the key is not among those it waits for or refuses. True as well when no router is registered: how many there should be is
    /// the caller's to ask. False for ever once a router had to be left out because there were too many.
    #[must_use]
    pub fn acknowledged(&self, key: &PlanKey, version: Version) -> bool {
        !self.unlisted && self.routers.values().all(|router| router.ack.acknowledges(key, version))
    }

    /// Routers that have not acknowledged the record of `key` with this version.
    pub fn stragglers(&self, key: &PlanKey, version: Version) -> impl Iterator<Item = &RouterEntry> {
        self.routers.values().filter(move |router| !router.ack.acknowledges(key, version))
    }

    /// A router's reason for not obeying the record of `key` with this version, if one refuses it.
    #[must_use]
    pub fn refusal(&self, key: &PlanKey, version: Version) -> Option<&str> {
        let mut refusals = self.routers.values().filter_map(|router| router.ack.refusal(key));
        refusals.find(|refused| refused.version == version).map(|refused| refused.reason.as_str())
    }

    /// What the owner last said of the move of `key` into the layout with this number.
    #[must_use]
    pub fn backfill(&self, key: &PlanKey, layout: u32) -> Option<&BackfillReport> {
        self.backfills.get(&(key.clone(), layout))
    }

    /// What the owner last said of the layout with this number that `key` has left.
    #[must_use]
    pub fn retired(&self, key: &PlanKey, layout: u32) -> Option<&RetiredReport> {
        self.retired.get(&(key.clone(), layout))
    }

    /// What routers know that `table` does not: the reason to stop. The plan topic is read to its end after the acks topic was, else
    /// an acknowledgement of a record that is still to be read looks like one. A router that refuses records has another table by
    /// right.
    #[must_use]
    pub fn contradiction(&self, table: &PlanTable) -> Option<Contradiction> {
        let last = table.last_version();
        self.routers.values().map(|router| &router.ack).find_map(|ack| {
            let id = || ack.id.clone();
            if ack.applied > last {
                Some(Contradiction::Ahead { id: id(), applied: ack.applied, last })
            } else if ack.applied == last
                && ack.refusals.is_empty()
                && ack.applied.seq > 0
                && ack.digest != table.digest()
            {
                Some(Contradiction::OtherTable { id: id(), version: last })
            } else {
                None
            }
        })
    }
}

fn insert_within<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: V, most: usize) -> Result<(), RefusedRecord> {
    if map.len() >= most && !map.contains_key(&key) {
        return Err(RefusedRecord::TooMany(most));
    }
    map.insert(key, value);
    Ok(())
}
