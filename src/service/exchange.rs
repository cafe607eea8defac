//! What the two loops lay down for each other: whole values, swapped under a lock that is never held over I/O.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::{Condition, HotKey, KeyspaceSettings, ShardLoad};
use crate::plan::{MapperTrust, Planned};
use crate::protocol::PolicyEntry;
use crate::telemetry::{ControlView, PlanView, RouterView};
use crate::units::{Offset, Partition};

/// What the driver knows: everything that a decision rests on, but for the topics.
#[derive(Debug, Clone)]
pub(super) struct Heat {
    /// What is hot or suspect, of all keyspaces.
    pub(super) hot: Vec<HotKey>,
    /// The known shards of each keyspace, by its index.
    pub(super) shards: Vec<Vec<ShardLoad>>,
    /// Whether buckets are placed by the declared mapper of each keyspace, by its index.
    pub(super) mappers: Vec<MapperTrust>,
    /// How far the engine's answers can be trusted.
    pub(super) condition: Condition,
    /// For each input partition the offset up to which was counted.
    pub(super) end_offsets: BTreeMap<Partition, Offset>,
    /// Names the configuration whose rules judged it.
    pub(super) config_hash: Arc<str>,
}

/// Rules that are to be in force from now on.
#[derive(Debug, Clone)]
pub(super) struct NewRules {
    /// Every keyspace, in the order of the configuration.
    pub(super) keyspaces: Vec<KeyspaceSettings>,
    /// Names the configuration that they are from.
    pub(super) config_hash: Arc<str>,
}

/// What the leader's loop knows.
#[derive(Debug, Clone, Default)]
pub(super) struct Led {
    /// This process's part in the plan topic.
    pub(super) control: ControlView,
    /// Routers that are registered.
    pub(super) routers: Vec<RouterView>,
    /// Plans on the topic with the index of their keyspace.
    pub(super) plans: Vec<(usize, PlanView)>,
    /// Pins and blocks with the index of their keyspace.
    pub(super) policies: Vec<(usize, Arc<PolicyEntry>)>,
    /// Keys with a plan, by keyspace: they are never evicted from the candidates.
    pub(super) planned: Vec<Vec<Arc<[u8]>>>,
    /// What these plans say of requests, by keyspace.
    pub(super) in_force: Vec<Vec<Planned>>,
    /// The plan topic was read to its end: other keys than these have no plan.
    pub(super) plans_known: bool,
}

/// The place where both lie.
#[derive(Debug)]
pub(super) struct Exchange {
    heat: Mutex<Arc<Heat>>,
    led: Mutex<Arc<Led>>,
    rules: Mutex<Option<Arc<NewRules>>>,
}

impl Exchange {
    /// Nothing known on either side.
    #[must_use]
    pub(super) fn new(keyspaces: usize, config_hash: Arc<str>) -> Self {
        let heat = Heat {
            hot: Vec::new(),
            shards: vec![Vec::new(); keyspaces],
            mappers: vec![MapperTrust::default(); keyspaces],
            condition: Condition::COLD,
            end_offsets: BTreeMap::new(),
            config_hash,
        };
        Self { heat: Mutex::new(Arc::new(heat)), led: Mutex::new(Arc::new(Led::default())), rules: Mutex::new(None) }
    }

    /// The driver lays down what is hot.
    pub(super) fn put_heat(&self, heat: Heat) {
        *self.heat.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(heat);
    }

    /// What the driver laid down last.
    #[must_use]
    pub(super) fn heat(&self) -> Arc<Heat> {
        Arc::clone(&self.heat.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The leader's loop lays down what it knows.
    pub(super) fn put_led(&self, led: Led) {
        *self.led.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(led);
    }

    /// What the leader's loop laid down last.
    #[must_use]
    pub(super) fn led(&self) -> Arc<Led> {
        Arc::clone(&self.led.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Somebody lays down other rules.
    pub(super) fn put_rules(&self, rules: NewRules) {
        *self.rules.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(rules));
    }

    /// Rules that are not in force yet.
    #[must_use]
    pub(super) fn rules(&self) -> Option<Arc<NewRules>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The driver has dealt with them.
    pub(super) fn rules_done(&self) {
        *self.rules.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
