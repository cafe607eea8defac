//! Migrations to begin: which key, to how many buckets, and where.

use std::sync::Arc;

use super::advising;
use super::evidence;
use super::hindrance::Hindrance;
use super::memory::Memory;
use super::migration::{self, Order, Standing};
use super::operation::Operation;
use super::pins;
use super::placement::{self, Place, Placement};
use super::running::Running;
use super::settings::{Merge, Mode, PlanSettings};
use super::sizing::{self, Load, Size, Sizing};
use super::view::{View, is_within};
use crate::engine::{HotKey, Operations};
use crate::protocol::{Layout, PlanEntry, PlanKey, PlanRecord, Prediction, plan_seed};

/// A change that a key wants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Change {
    /// From the bare key to so many buckets.
    Split(Size),
    /// To twice as many, on the way to this size.
    Grow(Size),
    /// To half as many.
    Shrink,
    /// Back to the bare key.
    Withdraw,
    /// To so many buckets, since an operator has pinned the key.
    Pin(u32),
}

impl Change {
    /// True for a change that takes buckets away: never on incomplete counts, and one a minute.
    const fn cools(self) -> bool {
        matches!(self, Self::Shrink | Self::Withdraw)
    }
}

/// Looks for the one migration that begins next.
pub(super) struct Beginning<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) memory: &'a Memory,
}

impl Beginning<'_> {
    /// The change that a hot key wants: none when it is as it should be.
    pub(super) fn heats(
        &self,
        hot: &HotKey,
        settings: &PlanSettings,
        standing: &Standing,
    ) -> Result<Option<Change>, Hindrance> {
        // A split answers the peak since the key became hot. Growth answers what is there now: that peak may be long gone, and a key
        // that shrank since would grow back.
        let per_s = if standing.write.is_bare() { hot.peak } else { hot.rate };
        let load = Load::at(hot, per_s.as_per_second());
        if standing.write.is_bare() {
            if hot.reason.count.lower < hot.reason.threshold {
                return Err(Hindrance::Cooling);
            }
            if advising::is_mostly_reads(&load) {
                return Err(Hindrance::Reads);
            }
        }
        if settings.merge == Merge::None {
            return if standing.write.is_bare() { Err(Hindrance::OneObject) } else { Ok(None) };
        }
        if standing.write.is_bare() && advising::is_one_caller(hot) {
            return Err(Hindrance::OneCaller);
        }
        let size = match sizing::size(&load, settings) {
            Sizing::Split(size) => size,
            // A key that is split already is not hindered by what keeps it from growing.
            _ if !standing.write.is_bare() => return Ok(None),
            Sizing::Undecided { events, needed } => return Err(Hindrance::Undecided { events, needed }),
            Sizing::NoRequestIds { share } => return Err(Hindrance::NoRequestIds(share)),
            Sizing::LittleGain { gain, cause } => return Err(Hindrance::LittleGain { gain, cause }),
        };
        if standing.write.is_bare() {
            Ok(Some(Change::Split(size)))
        } else {
            Ok((size.buckets > standing.write.buckets()).then_some(Change::Grow(size)))
        }
    }

    /// The change that a key wants which is no longer as hot.
    pub(super) fn cools(&self, key: &PlanKey, settings: &PlanSettings, standing: &Standing) -> Option<Change> {
        if standing.write.is_bare() || standing.read.len() > 1 {
            return None;
        }
        let now = self.view.now;
        if self.memory.cool_for(key, now).is_some_and(|cool| cool >= settings.quiet) {
            Some(Change::Withdraw)
        } else if self.memory.small_for(key, now).is_some_and(|small| small >= settings.quiet) {
            Some(Change::Shrink)
        } else {
            None
        }
    }

    /// What keeps a change from beginning now, beside what the key itself is like.
    pub(super) fn hindrance(
        &self,
        key: &PlanKey,
        entry: Option<&PlanEntry>,
        settings: &PlanSettings,
        change: Change,
        running: &Running<'_>,
    ) -> Option<Hindrance> {
        let (view, budget) = (self.view, self.view.budget);
        let splits_more = matches!(change, Change::Split(_));
        if settings.mode == Mode::Observe {
            Some(Hindrance::Observed)
        } else if !view.world.condition.is_settled() {
            Some(Hindrance::Unsettled)
        } else if budget.freeze {
            Some(Hindrance::Frozen)
        } else if settings.is_listed(&key.key) && !change.cools() {
            Some(Hindrance::Listed)
        } else if splits_more && entry.is_some_and(|entry| running.cools_down(key, entry, settings.cooldown)) {
            Some(Hindrance::Cooldown)
        } else {
            self.unripe(key, entry, running)
                .or_else(|| view.over_budget(settings.mode, splits_more, change.cools()).map(Hindrance::Budget))
        }
    }

    /// What has just become of the key's last migration, so that the next one waits.
    pub(super) fn unripe(&self, key: &PlanKey, entry: Option<&PlanEntry>, running: &Running<'_>) -> Option<Hindrance> {
        let (view, budget) = (self.view, self.view.budget);
        // What a router is told to enter is not left at once: dwell runs from the record that ended the last migration.
        let dwells = entry.is_some_and(|entry| {
            running.rested(key, entry) < budget.min_dwell
                || is_within(&entry.record.decided_at, view.now, budget.min_dwell)
        });
        if view.world.table.voided_at(key).is_some_and(|at| view.now.since(at) < budget.min_dwell) {
            // What came too late once would again: answered with a tombstone and begun anew, it would fill the topic.
            Some(Hindrance::Void)
        } else if self.memory.rests(key, view.now) {
            Some(Hindrance::Refused)
        } else if dwells || self.memory.was_taken_back(key) {
            Some(Hindrance::Dwell)
        } else {
            None
        }
    }

    /// The first record of a change.
    pub(super) fn first_record(
        &self,
        key: &PlanKey,
        settings: &PlanSettings,
        record: Option<&PlanRecord>,
        standing: &Standing,
        change: Change,
    ) -> Result<Operation, Hindrance> {
        let order = self.order(key, settings, record, standing, change)?;
        let record = match settings.mode {
            Mode::Propose if !matches!(change, Change::Pin(_)) => migration::propose(order, standing)?,
            Mode::Propose | Mode::Observe | Mode::Auto => migration::begin(order, standing)?,
        };
        Ok(Operation::Put(Box::new(record)))
    }

    /// What is to be done for a change, and why.
    pub(super) fn order(
        &self,
        key: &PlanKey,
        settings: &PlanSettings,
        record: Option<&PlanRecord>,
        standing: &Standing,
        change: Change,
    ) -> Result<Order, Hindrance> {
        let is_pin = matches!(change, Change::Pin(_));
        let hot = if is_pin { self.view.hot(key) } else { self.view.heat(key) };
        let current = standing.write;
        let buckets = match change {
            Change::Split(size) => size.buckets,
            Change::Grow(_) => current.buckets().saturating_mul(2),
            Change::Shrink => current.buckets() / 2,
            Change::Withdraw => 1,
            Change::Pin(buckets) => buckets,
        };
        let seed = match record {
            Some(record) if !current.is_bare() => record.bucket.seed,
            _ => plan_seed(&key.key, settings.seed),
        };
        let (first, prediction) = match hot {
            Some(hot) => self.placed(key, hot, current, buckets),
            None if is_pin => self.foreseen(key, current, buckets),
            None => (current.first(), cooled_prediction()),
        };
        let evidence = match (hot, record) {
            _ if is_pin => pins::evidence_of_pin(self.view, key),
            (Some(hot), _) => evidence::of(hot, self.view.world),
            (None, Some(record)) => evidence::of_absence(&record.evidence, self.view.world),
            (None, None) => return Err(Hindrance::Unsettled),
        };
        Ok(Order {
            key: key.clone(),
            version: self.view.world.next,
            buckets,
            first,
            seed,
            writes: settings.writes,
            history: settings.history,
            evidence,
            prediction,
            // What a key rests for is read from its record, by a new leader as well: it goes all the way back with the key.
            undone: record
                .filter(|record| change == Change::Withdraw && record.did_not_help())
                .and_then(|record| record.outcome.clone()),
            decided_at: self.view.now.to_rfc3339(),
            not_after: self.view.now.saturating_add(self.view.protocol.not_after).to_rfc3339(),
        })
    }

    /// Where the buckets go, and what that is expected to do.
    fn placed(&self, key: &PlanKey, hot: &HotKey, current: Layout, buckets: u32) -> (u32, Prediction) {
        let load = Load::at_peak(hot);
        let scans = load.scan_share();
        let points: Vec<f64> = load.shares(buckets);
        let shares: Vec<f64> = points.iter().map(|share| share * (1.0 - scans) + scans).collect();
        let own = own_in_window(hot);
        let (mapper, shards) = self.view.store(key);
        let place = Place { mapper, key: &key.key, shares: &shares, shards, own: &own };
        // Growth and shrinking keep the first label: ids whose bucket stays the same then stay where they are.
        let layout = match buckets {
            1 => Ok(Layout::BARE),
            buckets => Layout::split(1, buckets, current.first()),
        };
        let placement = match layout {
            Ok(layout) if !current.is_bare() => placement::predict(&place, layout),
            _ => placement::search(&place),
        };
        let Placement { first, hottest_shard_before, hottest_shard_after } = placement;
        let prediction = Prediction {
            hottest_bucket_share: points.iter().copied().fold(0.0, f64::max),
            hottest_shard_before,
            hottest_shard_after,
            added_load: scans * f64::from(buckets - 1),
        };
        (first, prediction)
    }
}

/// What the key put on each shard in the longest window, as the loads of shards are counted. The key's own counts by shard reach back
/// further, so that they are scaled to what it did in the window: as counted by operation, which leaves out what came before the key
/// was a candidate, or at least as many as its rule has proved. Else that part would pass for the load of others on its old shard.
fn own_in_window(hot: &HotKey) -> Vec<(Arc<[u8]>, u64)> {
    let Operations { reads, writes, scans, unknown } = hot.profile.operations;
    let (window, counted) = (
        (reads + writes + scans + unknown).max(hot.reason.count.lower),
        hot.profile.shards.iter().map(|(_, count)| count.upper).sum::<u64>(),
    );
    let scaled = |count: u64| u128::from(count) * u128::from(window) / u128::from(counted.max(1));
    let scale = |count| u64::try_from(scaled(count)).unwrap_or(u64::MAX);
    hot.profile.shards.iter().map(|(shard, count)| (Arc::clone(shard), scale(count.upper))).collect()
}

/// A key that is counted no more is one place again, and its load is too small to be seen on a shard.
const fn cooled_prediction() -> Prediction {
    Prediction { hottest_bucket_share: 1.0, hottest_shard_before: None, hottest_shard_after: None, added_load: 0.0 }
}
