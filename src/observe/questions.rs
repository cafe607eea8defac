//! What people ask about one key: handed to the loop that follows the plan topic, with all that it knows on its way back.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::plan::Hindrance;
use crate::protocol::{
    AckTable, AdviceEntry, BackfillReport, PlanEntry, PlanKey, PlanTable, PolicyEntry, RetiredReport, Version,
};

/// Questions that wait at once at the most: more are refused.
const WAITING: usize = 16;

/// Everything that is known of one key.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KeyKnown {
    /// This process leads: only then are there hindrances.
    pub leads: bool,
    /// Its plan.
    pub plan: Option<PlanEntry>,
    /// What every registered router says of the plan's newest record; empty without a plan.
    pub routers: Vec<RouterKnown>,
    /// What the owner says of the move into the plan's new layout.
    pub backfill: Option<BackfillReport>,
    /// What the owner says of the layout that the plan leaves.
    pub retired: Option<RetiredReport>,
    /// What an operator has set.
    pub policy: Option<PolicyEntry>,
    /// What to do other than split.
    pub advice: Option<AdviceEntry>,
    /// Why nothing begins, or why its migration stands still.
    pub hindrance: Option<Hindrance>,
}

/// What one router says of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterKnown {
    /// Its name, as it gave it.
    pub id: String,
    /// The newest version that it has applied.
    pub applied: Version,
    /// It has acknowledged the record.
    pub acknowledged: bool,
    /// Why it cannot obey the record, if it cannot.
    pub refusal: Option<String>,
}

impl KeyKnown {
    /// What both topics say of a key.
    #[must_use]
    pub fn of(key: &PlanKey, table: &PlanTable, acks: &AckTable) -> Self {
        let plan = table.plan(key).cloned();
        let routers = plan.iter().flat_map(|entry| {
            acks.routers().map(|router| RouterKnown {
                id: router.ack.id.clone(),
                applied: router.ack.applied,
                acknowledged: router.ack.acknowledges(key, entry.version),
                refusal: router
                    .ack
                    .refusal(key)
                    .filter(|refused| refused.version == entry.version)
                    .map(|refused| refused.reason.clone()),
            })
        });
        let migration = plan.as_ref().map(|entry| entry.record.migration);
        // A report of an earlier migration says nothing of this one.
        let backfill = migration.and_then(|migration| {
            acks.backfill(key, migration.to.number()).filter(|report| report.migration == migration.version)
        });
        let retired = migration.and_then(|migration| {
            acks.retired(key, migration.from.number()).filter(|report| report.migration == migration.version)
        });
        Self {
            leads: false,
            routers: routers.collect(),
            backfill: backfill.cloned(),
            retired: retired.cloned(),
            policy: table.policy(key).cloned(),
            advice: table.advice(key).cloned(),
            hindrance: None,
            plan,
        }
    }
}

/// The side that asks.
#[derive(Debug, Clone)]
pub struct Questions(mpsc::Sender<Question>);

/// The side that knows.
#[derive(Debug)]
pub struct Asked(mpsc::Receiver<Question>);

/// One question and the way back.
#[derive(Debug)]
pub struct Question {
    /// What is asked about.
    pub key: PlanKey,
    answer: oneshot::Sender<Arc<KeyKnown>>,
}

/// Both sides.
#[must_use]
pub fn questions() -> (Questions, Asked) {
    let (ask, asked) = mpsc::channel(WAITING);
    (Questions(ask), Asked(asked))
}

impl Questions {
    /// Asks and waits for the answer; none when too many wait, or nobody answers any more.
    pub async fn ask(&self, key: PlanKey) -> Option<Arc<KeyKnown>> {
        let (answer, answered) = oneshot::channel();
        self.0.try_send(Question { key, answer }).ok()?;
        answered.await.ok()
    }
}

impl Asked {
    /// The oldest question that waits.
    pub fn poll(&mut self) -> Option<Question> {
        self.0.try_recv().ok()
    }
}

impl Question {
    /// Answers it.
    pub fn answer(self, known: KeyKnown) {
        if self.answer.send(Arc::new(known)).is_err() {
            // Whoever asked has gone: the time for the answer was over.
        }
    }
}
