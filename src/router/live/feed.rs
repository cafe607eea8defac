//! From records of the plan topic to the table: the fold, what a snapshot needs of it, and reading all of it again.

use std::collections::HashMap;
use std::sync::Arc;

use super::kept::Kept;
use crate::protocol::{Applied, LogRecord, MAX_PLANS, PlanKey, PlanTable, Version};
use crate::router::{ApplyError, Table};

/// Why a router that has read the topic acknowledges nothing: what it knows and what the topic holds contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Contradiction {
    /// Records that this router has applied are not there.
    #[error(
        "the plan topic ends at version {log}, this router has applied {known}, and {lost} of its plans are older there or gone: \
         the topic lost records or was made anew; the table stays as it is and nothing is acknowledged"
    )]
    LogLost {
        /// The topic's last version.
        log: Version,
        /// What was applied before.
        known: Version,
        /// How many plans are older or missing in the topic.
        lost: usize,
    },
    /// The table took a change no more.
    #[error("{0}; nothing newer is applied or acknowledged")]
    Stuck(ApplyError),
}

/// Feeds one table.
pub(super) struct Feed {
    table: Arc<Table>,
    fold: Fold,
    /// The topic read again from its beginning, while the table stays as it is.
    fresh: Option<Fold>,
    changed: bool,
    contradiction: Option<Contradiction>,
}

#[derive(Default)]
struct Fold {
    plan: PlanTable,
    kept: Kept,
    /// Keys whose tombstone was read, while the topic is read again; at most [`MAX_PLANS`].
    removed: HashMap<PlanKey, Version>,
}

impl Fold {
    /// Takes a record of a topic that is read again.
    fn take_again(&mut self, record: &LogRecord) {
        let applied = self.plan.apply(record);
        self.kept.take(&applied, record);
        match applied {
            Applied::Removed { key, version, .. } if self.removed.len() < MAX_PLANS => {
                self.removed.insert(key, version);
            }
            Applied::Plan { key, .. } => {
                self.removed.remove(&key);
            }
            _ => {}
        }
    }
}

impl Feed {
    pub(super) fn new(table: Arc<Table>) -> Self {
        Self { table, fold: Fold::default(), fresh: None, changed: false, contradiction: None }
    }

    /// Fills the table from a snapshot, which was complete up to `applied`.
    pub(super) fn restore(&mut self, records: &[LogRecord], applied: Version) {
        for record in records {
            self.take(record);
        }
        self.table.reached(applied, self.fold.plan.digest());
        self.changed = false;
    }

    /// Begins to read the topic again from its beginning.
    pub(super) fn begin_again(&mut self) {
        self.fresh = Some(Fold::default());
    }

    /// True while the topic is read again.
    pub(super) const fn reads_again(&self) -> bool {
        self.fresh.is_some()
    }

    /// Takes the next record.
    pub(super) fn take(&mut self, record: &LogRecord) {
        if let Some(fresh) = &mut self.fresh {
            fresh.take_again(record);
            return;
        }
        if matches!(self.contradiction, Some(Contradiction::Stuck(_))) {
            return;
        }
        let applied = self.fold.plan.apply(record);
        match self.table.apply(&applied) {
            Ok(()) => {}
            // Only after records were lost: the table knows better, and stays.
            Err(ApplyError::NotNewer { .. }) => return,
            Err(full @ ApplyError::Full(_)) => {
                self.contradiction = Some(Contradiction::Stuck(full));
                return;
            }
        }
        self.changed |= self.fold.kept.take(&applied, record);
        self.table.reached(self.fold.plan.last_version(), self.fold.plan.digest());
    }

    /// True when the leader's last heartbeat does not speak against the fold.
    pub(super) fn is_vouched_for(&self) -> bool {
        self.fresh.as_ref().unwrap_or(&self.fold).plan.is_vouched_for()
    }

    /// Ends reading again: the table takes what is newer. No key is removed, unless it has no layout but the bare key any more,
    /// and none goes back to an older record.
    pub(super) fn finish_again(&mut self) {
        let Some(mut fresh) = self.fresh.take() else { return };
        let known = self.table.version();
        let log = fresh.plan.last_version();
        let mut lost = 0;
        for (key, version) in self.table.versions() {
            let in_log = fresh.plan.plan(&key).map(|entry| entry.version);
            let refused = fresh.plan.unreadable().find(|(other, _)| **other == key).map(|(_, other)| other.version);
            // A tombstone that was read, or one that was cleaned up while this router was away: then only of a key that has come
            // back to the bare layout, and `log` is above its version.
            let cleaned_up = (log > version && self.table.is_bare(&key)).then_some(log);
            let removed = fresh.removed.get(&key).copied().filter(|tombstone| *tombstone > version).or(cleaned_up);
            match (in_log.max(refused), removed) {
                (Some(newest), _) if newest >= version => {}
                (None, Some(tombstone)) if self.table.remove(&key, tombstone).is_ok() => {}
                _ => {
                    lost += 1;
                    fresh.kept.adopt(&self.fold.kept, &key);
                }
            }
        }
        fresh.removed.clear();
        self.merge(&fresh.plan);
        self.fold = fresh;
        self.changed = true;
        if lost > 0 || log < known {
            self.contradiction = Some(Contradiction::LogLost { log, known, lost });
        } else if !matches!(self.contradiction, Some(Contradiction::Stuck(_))) {
            self.contradiction = None;
        }
        self.table.reached(log, self.fold.plan.digest());
    }

    fn merge(&mut self, plan: &PlanTable) {
        for (key, entry) in plan.plans() {
            let applied = Applied::Plan { key: key.clone(), entry: Arc::clone(entry), previous: None };
            self.merge_one(&applied);
        }
        for (key, unreadable) in plan.unreadable() {
            let newer = self.table.version_of(key).is_none_or(|known| unreadable.version > known);
            if newer && let Err(error) = self.table.refuse(key, unreadable.version, unreadable.reason.clone()) {
                self.contradiction = Some(Contradiction::Stuck(error));
            }
        }
        if let Some(heartbeat) = plan.heartbeat() {
            let applied = Applied::Heartbeat {
                heartbeat: heartbeat.heartbeat.clone(),
                version: heartbeat.version,
                agrees: heartbeat.agrees,
            };
            self.merge_one(&applied);
        }
    }

    fn merge_one(&mut self, applied: &Applied) {
        match self.table.apply(applied) {
            // What the table has already, or knows better.
            Ok(()) | Err(ApplyError::NotNewer { .. }) => {}
            Err(full @ ApplyError::Full(_)) => self.contradiction = Some(Contradiction::Stuck(full)),
        }
    }

    /// True when the snapshot does not hold everything yet.
    pub(super) const fn has_changed(&self) -> bool {
        self.changed
    }

    /// The snapshot holds everything.
    pub(super) const fn saved(&mut self) {
        self.changed = false;
    }

    /// What a snapshot needs.
    pub(super) fn records(&self) -> Vec<&LogRecord> {
        self.fold.kept.in_order()
    }

    /// Why nothing is acknowledged, if so.
    pub(super) const fn contradiction(&self) -> Option<&Contradiction> {
        self.contradiction.as_ref()
    }
}
