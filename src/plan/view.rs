//! The world at one decision, with what is looked up again and again.

use std::collections::BTreeMap;

use super::mapper::{Mapper, MapperTrust};
use super::settings::{BudgetSettings, Mode, PlanSettings, ProtocolSettings};
use super::sizing::Load;
use super::world::World;
use crate::engine::{HotKey, ShardLoad};
use crate::protocol::{Layout, PlanKey, PlanRecord, State};
use crate::units::{EventTime, Span};

/// A split is made smaller only when half of its buckets would carry this share of what they may.
const SHRINK_BELOW: f64 = 0.7;
/// The span over which changes are counted.
const MINUTE: Span = Span::from_secs(60);

/// The world, the settings and the time of one decision.
#[derive(Clone)]
pub(super) struct View<'a> {
    pub(super) world: &'a World<'a>,
    pub(super) now: EventTime,
    pub(super) budget: &'a BudgetSettings,
    pub(super) protocol: &'a ProtocolSettings,
    /// Events follow what is decided, so that what a split does can be measured.
    pub(super) measures: bool,
    keyspaces: &'a [PlanSettings],
    heat: BTreeMap<(usize, &'a [u8]), &'a HotKey>,
    used: Used,
}

/// How much of the budget is used: from the records alone, so that a new leader keeps to it.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    /// Plans whose reads look beyond the bare key.
    splits: usize,
    /// Open proposals.
    proposals: usize,
    /// Migrations begun in the last minute.
    begun: usize,
    /// Proposals made in the last minute.
    proposed: usize,
    /// Migrations to fewer buckets begun or proposed in the last minute.
    cooled: usize,
    /// Advice given in the last minute.
    advised: usize,
}

impl Used {
    fn of(world: &World<'_>, now: EventTime) -> Self {
        let mut used = Self::default();
        for (_, entry) in world.table.plans() {
            let record = &entry.record;
            let (recent, proposal) = (is_within(&record.decided_at, now, MINUTE), record.state == State::Proposed);
            used.splits += usize::from(record.read.iter().any(|layout| !layout.is_bare()));
            used.proposals += usize::from(proposal);
            used.begun += usize::from(recent && !proposal);
            used.proposed += usize::from(recent && proposal);
            used.cooled += usize::from(recent && cools_down(record));
        }
        let recent = |decided_at: &str| is_within(decided_at, now, MINUTE);
        used.advised = world.table.advised().filter(|(_, entry)| recent(&entry.advice.decided_at)).count();
        used
    }
}

impl<'a> View<'a> {
    pub(super) fn new(
        world: &'a World<'a>,
        now: EventTime,
        keyspaces: &'a [PlanSettings],
        budget: &'a BudgetSettings,
        protocol: &'a ProtocolSettings,
        measures: bool,
    ) -> Self {
        let heat = world.hot.iter().map(|hot| ((hot.keyspace, &*hot.key), hot)).collect();
        Self { world, now, budget, protocol, measures, keyspaces, heat, used: Used::of(world, now) }
    }

    /// The number of a keyspace.
    fn number(&self, keyspace: &str) -> Option<usize> {
        self.keyspaces.iter().position(|settings| settings.keyspace == keyspace)
    }

    /// The names of all keyspaces, for a message.
    pub(super) fn keyspace_names(&self) -> String {
        self.keyspaces.iter().map(|settings| settings.keyspace.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The settings of a key's keyspace; none when it is no longer configured.
    pub(super) fn settings(&self, key: &PlanKey) -> Option<&'a PlanSettings> {
        self.number(&key.keyspace).and_then(|number| self.keyspaces.get(number))
    }

    /// The key if it is hot or suspect.
    pub(super) fn heat(&self, key: &PlanKey) -> Option<&'a HotKey> {
        self.heat.get(&(self.number(&key.keyspace)?, key.key.as_slice())).copied()
    }

    /// The key if it is hot.
    pub(super) fn hot(&self, key: &PlanKey) -> Option<&'a HotKey> {
        self.heat(key).filter(|hot| hot.hot_since.is_some())
    }

    /// Every hot key of a configured keyspace, the hottest first.
    pub(super) fn hottest(&self) -> Vec<(PlanKey, &'a HotKey, &'a PlanSettings)> {
        let mut hot: Vec<_> = self
            .world
            .hot
            .iter()
            .filter(|hot| hot.hot_since.is_some())
            .filter_map(|hot| {
                let settings = self.keyspaces.get(hot.keyspace)?;
                Some((PlanKey::new(&settings.keyspace, &hot.key), hot, settings))
            })
            .collect();
        hot.sort_by(|(key, a, _), (other, b, _)| {
            b.peak.as_per_second().total_cmp(&a.peak.as_per_second()).then_with(|| key.cmp(other))
        });
        hot
    }

    /// The store of a key's keyspace: its declared mapper, unless events are elsewhere than it says, and the load of its known shards.
    pub(super) fn store(&self, key: &PlanKey) -> (Option<&'a Mapper>, &'a [ShardLoad]) {
        let Some(number) = self.number(&key.keyspace) else { return (None, &[]) };
        let refuted = self.world.mappers.get(number) == Some(&MapperTrust::Refuted);
        let mapper = self.keyspaces.get(number).and_then(|settings| settings.mapper.as_ref()).filter(|_| !refuted);
        (mapper, self.world.shards.get(number).map_or(&[], Vec::as_slice))
    }

    /// True when the hot key's load, with headroom, would fit in half of the buckets that its writes go to, with room to spare.
    pub(super) fn fits_in_half(&self, key: &PlanKey, record: &PlanRecord) -> bool {
        let half = record.write.map_or(1, Layout::buckets) / 2;
        let (Some(settings), Some(hot)) = (self.settings(key), self.heat(key)) else { return false };
        if half < 2 {
            return false;
        }
        let load = Load::at(hot, hot.rate.as_per_second());
        let needed = load.per_s * (1.0 + settings.headroom);
        let scans = needed * load.scan_share();
        (needed - scans) / f64::from(half) + scans <= SHRINK_BELOW * settings.bucket_rate.as_per_second()
    }

    /// Why the budget allows no more of changes that split one key more, or that take buckets away.
    pub(super) const fn over_budget(&self, mode: Mode, splits_more: bool, cools: bool) -> Option<&'static str> {
        let used = self.used;
        let (lately, splits) = match mode {
            Mode::Propose => (used.proposed, used.splits + used.proposals),
            Mode::Observe | Mode::Auto => (used.begun, used.splits),
        };
        if lately >= self.budget.max_changes_per_minute {
            Some("max_changes_per_minute")
        } else if splits_more && splits >= self.budget.max_splits {
            Some("max_splits")
        } else if cools && used.cooled > 0 {
            // A general drop of load makes every key cool at once: no wave of withdrawals follows.
            Some("one key a minute cools down")
        } else {
            None
        }
    }

    /// Advice that was given in the last minute.
    pub(super) const fn advised_lately(&self) -> usize {
        self.used.advised
    }
}

/// True for a migration to fewer buckets.
pub(super) fn cools_down(record: &PlanRecord) -> bool {
    record.migration.to.buckets() < record.migration.from.buckets()
}

/// True when `time`, RFC 3339, lies less than `span` before `now`; a time ahead of now does too, and one that cannot be read does not.
pub(super) fn is_within(time: &str, now: EventTime, span: Span) -> bool {
    time_of(time).is_some_and(|time| now.since(time) < span)
}

/// The time that RFC 3339 names.
pub(super) fn time_of(text: &str) -> Option<EventTime> {
    let millis = text.parse::<jiff::Timestamp>().ok()?.as_millisecond();
    EventTime::from_millis(millis).ok()
}
