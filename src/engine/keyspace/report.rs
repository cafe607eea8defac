//! What a keyspace says when it is asked.

use std::sync::Arc;

use super::super::rules::Seen;
use super::super::settings::CountingMode;
use super::super::sketch::{Median, distinct_bounds, key_hash};
use super::super::status::{KeyspaceStatus, RuleStatus, WindowStatus};
use super::super::verdict::{HotKey, ShardLoad};
use super::super::window::{MAX_WINDOWS, window_ending_at};
use super::counting::Keyspace;
use super::judging::time;
use crate::units::{Estimate, Rate};

impl Keyspace {
    /// Hot keys first, then suspects, the busiest first.
    pub(crate) fn hot_keys(&self) -> Vec<HotKey> {
        let wraps = self.wraps();
        let shortest = self.settings.windows.first().map(|window| window.length).unwrap_or_default();
        let mut keys: Vec<HotKey> = Vec::new();
        for candidate in self.candidates.iter() {
            let heat = &candidate.heat;
            if heat.is_cold() {
                continue;
            }
            let counts = self.told(wraps, candidate.tally.head());
            let peak = if heat.is_hot() { heat.peak().max(counts[0].lower) } else { 0 };
            keys.push(HotKey {
                keyspace: self.number,
                key: Arc::clone(&candidate.key),
                hot_since: heat.hot_since(),
                reason: heat.reason(self.rules.head(candidate.set), &Seen { counts, events: self.head_events }),
                peak: Rate::of(peak, shortest),
                rate: Rate::of(counts[0].lower, shortest),
                profile: candidate.profile(&self.timeline),
            });
        }
        keys.sort_by(|a, b| {
            let order =
                (b.hot_since.is_some(), b.reason.count.lower).cmp(&(a.hot_since.is_some(), a.reason.count.lower));
            order.then_with(|| a.key.cmp(&b.key))
        });
        keys
    }

    /// Known shards in the newest window, the busiest first.
    pub(crate) fn shard_loads(&self, window: usize) -> Vec<ShardLoad> {
        let wraps = self.wraps();
        let load = |shard: &super::super::window::Shard| ShardLoad {
            shard: Arc::clone(&shard.name),
            count: self.told(wraps, shard.tally.head()).get(window).copied().unwrap_or_default(),
            hot_since: shard.heat.hot_since(),
            profile: (!shard.heat.is_cold()).then(|| Box::new(self.shard_profile(shard))),
        };
        let mut loads: Vec<ShardLoad> = self.shards.iter().map(load).collect();
        loads.sort_by(|a, b| b.count.lower.cmp(&a.count.lower).then_with(|| a.shard.cmp(&b.shard)));
        loads
    }

    /// Candidates with the highest counts in the newest window.
    pub(crate) fn top_keys(&self, window: usize, limit: usize) -> Vec<(Arc<[u8]>, Estimate)> {
        let wraps = self.wraps();
        let count =
            |candidate: &super::super::window::Candidate| self.told(wraps, candidate.tally.head()).get(window).copied();
        let mut keys: Vec<_> = self
            .candidates
            .iter()
            .filter_map(|candidate| Some((Arc::clone(&candidate.key), count(candidate)?)))
            .collect();
        keys.sort_by(|a, b| (b.1.lower, b.1.upper).cmp(&(a.1.lower, a.1.upper)).then_with(|| a.0.cmp(&b.0)));
        keys.truncate(limit);
        keys
    }

    /// Bounds of any key's count in the newest window.
    pub(crate) fn estimate(&self, key: &[u8], window: usize) -> Estimate {
        if window >= self.timeline.windows() || !self.timeline.started() {
            return Estimate::default();
        }
        let hash = key_hash(key, self.settings.counting.seed);
        if let Some(candidate) = self.candidates.get(self.candidates.find(hash, key)) {
            return self.told(self.wraps(), candidate.tally.head())[window];
        }
        let (from, to) = window_ending_at(&self.timeline, window, self.timeline.mark(window).head);
        self.counts.window_bound(&self.timeline, window, from, to, hash)
    }

    /// Which windows hold so many events that counters of 32 bits may have wrapped.
    fn wraps(&self) -> [bool; MAX_WINDOWS] {
        [0, 1].map(|window| window < self.timeline.windows() && self.counts.wraps(&self.timeline, window))
    }

    /// Where counters may have wrapped nothing but the number of all events bounds a count from above.
    fn told(&self, wraps: [bool; MAX_WINDOWS], mut counts: [Estimate; MAX_WINDOWS]) -> [Estimate; MAX_WINDOWS] {
        for window in 0..MAX_WINDOWS {
            if wraps[window] {
                counts[window].upper = self.head_events[window];
            }
        }
        counts
    }

    /// A digest of all panes: equal for the same events in any order.
    pub(crate) fn digest(&self) -> u64 {
        self.counts.digest(&self.timeline)
    }

    /// True when something is counted or hot, so that time alone can change what is said.
    pub(crate) fn is_warm(&self) -> bool {
        self.head_events.iter().any(|events| *events > 0) || self.is_hot()
    }

    /// True when any key or shard is hot or suspect.
    pub(super) fn is_hot(&self) -> bool {
        self.candidates.iter().any(|candidate| !candidate.heat.is_cold())
            || self.shards.iter().any(|shard| !shard.heat.is_cold())
    }

    /// The newest event time at which the next pane closes at the head.
    pub(crate) fn next_pane_ms(&self) -> i64 {
        self.timeline.head_from_ms() + self.timeline.axis(0).pane_ms
    }

    /// The state and the limits of the keyspace.
    pub(crate) fn status(&self, verdicts_cut: u64, memory_bytes: u64) -> KeyspaceStatus {
        let windows: Vec<WindowStatus> =
            (0..self.timeline.windows()).map(|window| self.window_status(window)).collect();
        KeyspaceStatus {
            recall_above: windows.iter().filter_map(|window| window.recall_above).max(),
            windows,
            keys_ever: distinct_bounds(self.ever.len(), self.ever.theta()),
            candidates: self.candidates.len(),
            hot: self.candidates.iter().filter(|candidate| candidate.heat.is_hot()).count(),
            suspect: self.candidates.iter().filter(|candidate| candidate.heat.is_suspect()).count(),
            shards: self.shards.len(),
            level: self.admission.level(),
            too_late: self.too_late,
            candidates_cut: self.candidates_cut,
            protected_cut: self.protected_cut,
            shards_cut: self.shards.cut(),
            exact_panes_cut: match self.settings.counting.mode {
                CountingMode::Exact { .. } => self.counts.unlisted(),
                CountingMode::Sketch => 0,
            },
            verdicts_cut,
            memory_bytes,
        }
    }

    fn window_status(&self, window: usize) -> WindowStatus {
        let (events, oldest) = (self.head_events[window], self.oldest_short(window));
        let thresholds: Vec<u64> = self.rules.least(window, events).collect();
        let (mut recall_above, mut last_above) = (None, None);
        for (set, threshold) in (0..).zip(&thresholds).filter(|(_, threshold)| **threshold < u64::MAX) {
            let complete = self.admission.complete_above(set, window, oldest);
            if complete > *threshold {
                recall_above = recall_above.max(Some(complete));
                last_above = last_above.max(self.admission.last_above(set, window, *threshold));
            }
        }
        let axis = self.timeline.axis(0);
        let complete_from = last_above.map(|pane| (pane + 1) * axis.pane_ms + self.timeline.axis(window).window_ms());
        let wrapped = self.counts.wraps(&self.timeline, window);
        if wrapped {
            let complete = self.admission.complete_above(0, window, oldest);
            recall_above = recall_above.max(Some(complete.max(events)));
        }
        WindowStatus {
            length: self.rules.head(0).length(window),
            events,
            keys: self.facts[window].keys,
            median: self.facts[window].median.map(Median::estimate),
            threshold: thresholds.into_iter().min().filter(|least| *least < u64::MAX),
            recall_above,
            complete_from: complete_from.map(time),
            rules: self.rule_status(window),
            wrapped,
        }
    }

    fn rule_status(&self, window: usize) -> Vec<RuleStatus> {
        let levels = self.rules.head(0);
        let status = |rule| {
            let threshold = levels.threshold(window, rule, self.head_events[window]);
            RuleStatus {
                rule: levels.kind(rule),
                hot_from: threshold.and_then(|threshold| threshold.confirm),
                suspect_from: threshold.map(|threshold| threshold.suspect),
                not_applicable: levels.waits_for(window, rule),
            }
        };
        (0..levels.rules()).map(status).collect()
    }
}
