//! What thresholds are computed from, at both ends of the windows, and other rules while it runs.

use super::super::outbox::Outbox;
use super::super::rules::{Basis, Calm, Levels, Seen};
use super::super::settings::KeyspaceSettings;
use super::super::sketch::median_bounds;
use super::super::window::{Facts, MAX_WINDOWS, window_ending_at};
use super::counting::{Keyspace, MIN_SHARDS};
use crate::units::Estimate;

/// The last pane of the window to look at; none for a window that has not moved.
type Ends = [Option<i64>; MAX_WINDOWS];
type Bases = [Option<Basis>; MAX_WINDOWS];

impl Keyspace {
    /// What is known of all keys in the windows that end there.
    pub(super) fn bases(&mut self, ends: Ends) -> Bases {
        let mut bases = Bases::default();
        for (window, basis) in bases.iter_mut().enumerate().take(self.timeline.windows()) {
            let Some(end) = ends[window] else { continue };
            let (from, to) = window_ending_at(&self.timeline, window, end);
            let Facts { keys, median } = self.counts.facts(&self.timeline, window, from, to);
            *basis = Some(Basis { full: self.is_full(window, end), subjects: keys, median });
        }
        bases
    }

    /// What is known of all shards in the windows that end there.
    pub(super) fn shard_bases(&self, ends: Ends) -> Bases {
        let mut bases = Bases::default();
        for (window, basis) in bases.iter_mut().enumerate().take(self.timeline.windows()) {
            let Some(end) = ends[window] else { continue };
            let (from, to) = window_ending_at(&self.timeline, window, end);
            let mut counts = self.shards.counts(&self.timeline, window, from, to);
            let (subjects, median) = (Estimate::exact(counts.len() as u64), median_bounds(&mut counts, true));
            *basis = Some(Basis { full: self.is_full(window, end), subjects, median });
        }
        bases
    }

    /// Thresholds for the pane that has been opened.
    pub(super) fn set_levels(&mut self, bases: Bases, shard_bases: Bases) {
        for (window, (basis, shard_basis)) in bases.into_iter().zip(shard_bases).enumerate() {
            if let Some(basis) = basis {
                self.facts[window] = Facts { keys: basis.subjects, median: basis.median };
                self.rules.set_head(window, basis);
            }
            if let Some(basis) = shard_basis {
                self.shard_levels.set(window, basis);
            }
        }
    }

    /// Thresholds of shards from the newest windows as they are at this moment.
    pub(super) fn refresh_shard_levels(&mut self) {
        for window in 0..self.timeline.windows() {
            let mut counts: Vec<u64> = self.shards.iter().map(|shard| shard.tally.head()[window].lower).collect();
            let subjects = Estimate::exact(counts.len() as u64);
            let basis = Basis { subjects, median: median_bounds(&mut counts, true), ..self.shard_levels.basis(window) };
            self.shard_levels.set(window, basis);
        }
    }

    /// Thresholds for the windows that the watermark has just passed: of the same windows, all their events being there.
    pub(super) fn set_closed_levels(&mut self, long_too: bool) {
        let ends = [0, 1].map(|window| (window == 0 || long_too).then(|| self.timeline.mark(window).closed));
        let bases = self.bases(ends).into_iter().zip(self.shard_bases(ends)).enumerate();
        for (window, (basis, shard_basis)) in bases {
            if let Some(basis) = basis {
                self.rules.set_closed(window, basis);
            }
            if let Some(basis) = shard_basis {
                self.closed_shard_levels.set(window, basis);
            }
        }
    }

    /// Nothing is known of any window.
    pub(super) fn forget_levels(&mut self) {
        self.facts = [Facts::default(); MAX_WINDOWS];
        for window in 0..self.timeline.windows() {
            self.rules.set_head(window, Basis::default());
            self.rules.set_closed(window, Basis::default());
            self.shard_levels.set(window, Basis::default());
            self.closed_shard_levels.set(window, Basis::default());
        }
    }

    /// True when all of the window that ends with this pane was seen.
    pub(super) fn is_full(&self, window: usize, end: i64) -> bool {
        let (from, _) = window_ending_at(&self.timeline, window, end);
        from.saturating_mul(self.timeline.axis(window).pane_ms) >= self.since_ms
    }

    /// Other rules from now on. What is counted stays; everybody is judged anew at once.
    pub(crate) fn set_rules(&mut self, settings: &KeyspaceSettings, out: &mut Outbox) {
        if *settings == self.settings {
            return;
        }
        self.rules = self.rules.replaced(settings);
        self.shard_levels = replaced(&self.shard_levels, settings);
        self.closed_shard_levels = replaced(&self.closed_shard_levels, settings);
        self.calm = Calm::of(settings);
        self.settings = settings.clone();
        self.admission.change_base(self.rules.least_ever(self.head_events));
        let Self { candidates, shards, rules, shard_levels, head_events, .. } = self;
        for candidate in candidates.iter_mut() {
            candidate.set = rules.of(&candidate.key);
            let seen = Seen { counts: candidate.tally.head(), events: *head_events };
            candidate.heat.rules_changed(rules.head(candidate.set), &seen);
        }
        for shard in shards.iter_mut() {
            let seen = Seen { counts: shard.tally.head(), events: *head_events };
            shard.heat.rules_changed(shard_levels, &seen);
        }
        if self.timeline.started() {
            self.judge_heads(out);
        } else {
            // Planned keys and declared shards are there before the first event: they are judged when it comes.
            self.candidates.iter_mut().for_each(|candidate| candidate.tally.set_wake([0; MAX_WINDOWS]));
            self.shards.iter_mut().for_each(|shard| shard.tally.set_wake([0; MAX_WINDOWS]));
        }
    }
}

/// The same thresholds under other rules for shards.
fn replaced(levels: &Levels, settings: &KeyspaceSettings) -> Levels {
    let mut new = Levels::new(&settings.shard_rules, &settings.windows, MIN_SHARDS);
    for window in 0..settings.windows.len().min(MAX_WINDOWS) {
        new.set(window, levels.basis(window));
    }
    new
}
