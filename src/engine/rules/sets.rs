//! The rules of a keyspace: those of all keys, and those of keys that match a pattern.

use super::super::settings::KeyspaceSettings;
use super::super::window::MAX_WINDOWS;
use super::levels::{Basis, Levels};
use super::pattern::KeyPattern;

/// The number of a set of rules; 0 is that of all keys that no pattern matches.
pub(crate) type SetNumber = u8;
/// The most sets of rules beside that of all keys.
pub(crate) const MAX_OVERRIDES: usize = 64;

/// Thresholds of every set of rules at both ends of the windows.
#[derive(Debug, Clone)]
pub(crate) struct RuleSets {
    patterns: Vec<KeyPattern>,
    head: Vec<Levels>,
    closed: Vec<Levels>,
    head_basis: [Basis; MAX_WINDOWS],
    closed_basis: [Basis; MAX_WINDOWS],
}

impl RuleSets {
    /// Thresholds before anything is known. Only the first [`MAX_OVERRIDES`] count.
    pub(crate) fn new(settings: &KeyspaceSettings) -> Self {
        let overrides = settings.overrides.iter().take(MAX_OVERRIDES);
        let rules = std::iter::once(&settings.key_rules).chain(overrides.clone().map(|own| &own.rules));
        let levels: Vec<Levels> = rules.map(|rules| Levels::new(rules, &settings.windows, settings.min_keys)).collect();
        Self {
            patterns: overrides.map(|own| own.keys.clone()).collect(),
            closed: levels.clone(),
            head: levels,
            head_basis: [Basis::default(); MAX_WINDOWS],
            closed_basis: [Basis::default(); MAX_WINDOWS],
        }
    }

    /// The same thresholds under other rules.
    pub(crate) fn replaced(&self, settings: &KeyspaceSettings) -> Self {
        let mut sets = Self::new(settings);
        for window in 0..settings.windows.len().min(MAX_WINDOWS) {
            sets.set_head(window, self.head_basis[window]);
            sets.set_closed(window, self.closed_basis[window]);
        }
        sets
    }

    /// The set of a key: the first whose pattern it matches.
    pub(crate) fn of(&self, key: &[u8]) -> SetNumber {
        let found = self.patterns.iter().position(|pattern| pattern.matches(key));
        found.and_then(|at| SetNumber::try_from(at + 1).ok()).unwrap_or(0)
    }

    /// True when every key has the same rules.
    pub(crate) const fn is_one(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Thresholds at the head.
    pub(crate) fn head(&self, set: SetNumber) -> &Levels {
        self.head.get(usize::from(set)).unwrap_or(&self.head[0])
    }

    /// Thresholds of the last windows that the watermark passed.
    pub(crate) fn closed(&self, set: SetNumber) -> &Levels {
        self.closed.get(usize::from(set)).unwrap_or(&self.closed[0])
    }

    /// Computes thresholds at the head anew.
    pub(crate) fn set_head(&mut self, window: usize, basis: Basis) {
        self.head_basis[window] = basis;
        self.head.iter_mut().for_each(|levels| levels.set(window, basis));
    }

    /// Computes thresholds of the window that the watermark passed.
    pub(crate) fn set_closed(&mut self, window: usize, basis: Basis) {
        self.closed_basis[window] = basis;
        self.closed.iter_mut().for_each(|levels| levels.set(window, basis));
    }

    /// The least count of each set that could become a threshold in each window.
    pub(crate) fn least_ever(&self, events: [u64; MAX_WINDOWS]) -> Vec<[u64; MAX_WINDOWS]> {
        self.head.iter().map(|levels| [0, 1].map(|window| levels.least_ever(window, events[window]))).collect()
    }

    /// The least threshold of each set in a window.
    pub(crate) fn least(&self, window: usize, events: u64) -> impl Iterator<Item = u64> + '_ {
        self.head.iter().map(move |levels| levels.least(window, events))
    }
}
