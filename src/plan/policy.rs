//! From the world to operations: the planner.

use std::collections::BTreeMap;

use super::operation::Operation;
use super::settings::{BudgetSettings, PlanSettings, ProtocolSettings};
use super::world::World;
use crate::protocol::{PlanKey, PlanRecord, State, Version};
use crate::units::EventTime;

/// Decides what should be on the plan topic. It is asked again after each record that was read back: of the operations that it
/// returns, the most important first, the caller sends only the first.
#[derive(Debug, Clone)]
pub struct Planner {
    keyspaces: Vec<PlanSettings>,
    budget: BudgetSettings,
    protocol: ProtocolSettings,
    /// When each hold was first seen, by its version.
    holds: BTreeMap<PlanKey, (Version, EventTime)>,
}

impl Planner {
    /// A planner of keyspaces in the order of the engine's. It has begun nothing itself: a new leader starts with one.
    #[must_use]
    pub fn new(keyspaces: Vec<PlanSettings>, budget: BudgetSettings, protocol: ProtocolSettings) -> Self {
        Self { keyspaces, budget, protocol, holds: BTreeMap::new() }
    }

    /// The keyspaces, as configured.
    #[must_use]
    pub fn keyspaces(&self) -> &[PlanSettings] {
        &self.keyspaces
    }

    /// The limits, as configured.
    #[must_use]
    pub const fn budget(&self) -> &BudgetSettings {
        &self.budget
    }

    /// What should be sent, the most important first.
    pub fn decide(&mut self, world: &World<'_>, now: EventTime) -> Vec<Operation> {
        let mut operations = Vec::new();
        for (key, entry) in world.table.plans().filter(|(_, entry)| entry.record.state == State::Hold) {
            let held = self.holds.entry(key.clone()).or_insert((entry.version, now));
            if held.0 != entry.version {
                *held = (entry.version, now);
            }
            if now.since(held.1) >= self.protocol.hold_limit {
                let record = PlanRecord {
                    state: State::Prepare,
                    write: Some(entry.record.migration.from),
                    ..entry.record.clone()
                };
                operations.push(Operation::Put(Box::new(record)));
            }
        }
        operations
    }
}
