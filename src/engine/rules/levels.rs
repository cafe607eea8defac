//! Thresholds in force: fixed while a pane is open, computed anew when it closes.

use super::super::settings::{Rule, RuleKind, WindowSettings};
use super::super::sketch::Median;
use super::super::status::NotApplicable;
use super::super::window::MAX_WINDOWS;
use crate::units::{Estimate, Span};

/// What a window's thresholds are computed from.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Basis {
    /// The window has been watched from its begin to its end.
    pub(crate) full: bool,
    /// Number of keys or shards that the median runs over.
    pub(crate) subjects: Estimate,
    /// Their median.
    pub(crate) median: Option<Median>,
}

/// One rule in one window.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Level {
    /// Not applicable.
    Off,
    /// A count; `confirm` is none while the rule may only raise suspicion.
    Count { suspect: u64, confirm: Option<u64> },
    /// A share of all events of the very window that is judged.
    Share { share: f64, floor: u64, confirm: bool },
}

/// A threshold at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Threshold {
    /// Suspect when the upper bound reaches it.
    pub(crate) suspect: u64,
    /// Hot when the lower bound reaches it.
    pub(crate) confirm: Option<u64>,
}

/// A rule that holds, or may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// Index of the rule.
    pub(crate) rule: usize,
    /// Index of the window.
    pub(crate) window: usize,
    /// What was reached.
    pub(crate) threshold: u64,
    /// By the lower bound.
    pub(crate) confirmed: bool,
}

/// Thresholds of all rules in all windows.
#[derive(Debug, Clone)]
pub(crate) struct Levels {
    rules: Vec<Rule>,
    lengths: Vec<Span>,
    min_subjects: u64,
    levels: [Vec<Level>; MAX_WINDOWS],
    bases: [Basis; MAX_WINDOWS],
}

impl Levels {
    /// Thresholds before anything is known: absolute ones only.
    pub(crate) fn new(rules: &[Rule], windows: &[WindowSettings], min_subjects: u64) -> Self {
        let lengths = windows.iter().take(MAX_WINDOWS).map(|window| window.length).collect();
        let mut levels = Self {
            rules: rules.to_vec(),
            lengths,
            min_subjects,
            levels: [Vec::new(), Vec::new()],
            bases: [Basis::default(); MAX_WINDOWS],
        };
        for window in 0..levels.lengths.len() {
            levels.set(window, Basis::default());
        }
        levels
    }

    /// Computes a window's thresholds anew.
    pub(crate) fn set(&mut self, window: usize, basis: Basis) {
        let (Some(length), Some(slot)) = (self.lengths.get(window), self.levels.get_mut(window)) else { return };
        let level = |rule: &Rule| match *rule {
            Rule::Absolute { rate } => {
                let count = rate.count_in(*length).max(1);
                Level::Count { suspect: count, confirm: Some(count) }
            }
            Rule::Relative { multiple, floor } => match basis.median {
                Some(median) if basis.subjects.upper >= self.min_subjects => {
                    let sure = basis.full && basis.subjects.lower >= self.min_subjects;
                    let times = |doubled: u64| times_half(multiple, doubled).max(floor.max(1));
                    Level::Count {
                        suspect: times(median.lower_doubled),
                        confirm: sure.then(|| times(median.upper_doubled)),
                    }
                }
                _ => Level::Off,
            },
            Rule::Share { share, floor } => {
                Level::Share { share: share.as_f64(), floor: floor.max(1), confirm: basis.full }
            }
        };
        *slot = self.rules.iter().map(level).collect();
        self.bases[window] = basis;
    }

    /// The rule's threshold in a window with so many events; none where it does not apply.
    pub(crate) fn threshold(&self, window: usize, rule: usize, events: u64) -> Option<Threshold> {
        match *self.levels.get(window)?.get(rule)? {
            Level::Off => None,
            Level::Count { suspect, confirm } => Some(Threshold { suspect, confirm }),
            Level::Share { share, floor, confirm } => {
                let count = times_half(share, events.saturating_mul(2)).max(floor);
                Some(Threshold { suspect: count, confirm: confirm.then_some(count) })
            }
        }
    }

    /// The least threshold of a window; `u64::MAX` without any.
    pub(crate) fn least(&self, window: usize, events: u64) -> u64 {
        let rules = 0..self.rules.len();
        rules
            .filter_map(|rule| self.threshold(window, rule, events))
            .map(|found| found.suspect)
            .min()
            .unwrap_or(u64::MAX)
    }

    /// The least count that could become a threshold: floors stand in for rules that do not apply yet.
    pub(crate) fn least_ever(&self, window: usize, events: u64) -> u64 {
        let waiting = self.rules.iter().enumerate().filter_map(|(at, rule)| match rule {
            Rule::Relative { floor, .. } if self.threshold(window, at, events).is_none() => Some((*floor).max(1)),
            _ => None,
        });
        waiting.min().unwrap_or(u64::MAX).min(self.least(window, events))
    }

    /// The first rule, in the order of windows and rules, that is confirmed; else the first that may hold.
    pub(crate) fn find(&self, counts: &[Estimate; MAX_WINDOWS], events: &[u64; MAX_WINDOWS]) -> Option<Found> {
        let mut suspect = None;
        for window in 0..self.lengths.len() {
            for rule in 0..self.rules.len() {
                let Some(threshold) = self.threshold(window, rule, events[window]) else { continue };
                if let Some(confirm) = threshold.confirm.filter(|confirm| counts[window].lower >= *confirm) {
                    return Some(Found { rule, window, threshold: confirm, confirmed: true });
                }
                if suspect.is_none() && counts[window].upper >= threshold.suspect {
                    suspect = Some(Found { rule, window, threshold: threshold.suspect, confirmed: false });
                }
            }
        }
        suspect
    }

    /// The least lower bound at which `find` may give more than it did; `unknown` lies between the bounds.
    pub(crate) fn wake(&self, window: usize, events: u64, unknown: u64, suspect: bool) -> u64 {
        let thresholds = (0..self.rules.len()).filter_map(|rule| self.threshold(window, rule, events));
        let lower = thresholds.filter_map(|threshold| {
            let proof = threshold.confirm;
            if suspect { proof } else { Some(threshold.suspect.saturating_sub(unknown).min(proof.unwrap_or(u64::MAX))) }
        });
        lower.min().unwrap_or(u64::MAX)
    }

    /// The rule's kind.
    pub(crate) fn kind(&self, rule: usize) -> RuleKind {
        self.rules.get(rule).map_or(RuleKind::Absolute, Rule::kind)
    }

    /// The window's length.
    pub(crate) fn length(&self, window: usize) -> Span {
        self.lengths.get(window).copied().unwrap_or_default()
    }

    /// The median behind the window's thresholds.
    pub(crate) fn median(&self, window: usize) -> Option<Median> {
        self.bases.get(window)?.median
    }

    /// What the window's thresholds are computed from.
    pub(crate) fn basis(&self, window: usize) -> Basis {
        self.bases.get(window).copied().unwrap_or_default()
    }

    /// Number of keys or shards that the median runs over.
    pub(crate) fn subjects(&self, window: usize) -> Estimate {
        self.bases.get(window).map(|basis| basis.subjects).unwrap_or_default()
    }

    /// What the rule waits for in a window; none when it applies.
    pub(crate) fn waits_for(&self, window: usize, rule: usize) -> Option<NotApplicable> {
        let basis = self.bases.get(window)?;
        match self.rules.get(rule)? {
            Rule::Absolute { .. } => None,
            Rule::Relative { .. } if basis.subjects.lower < self.min_subjects => {
                Some(NotApplicable::FewSubjects { known: basis.subjects, needed: self.min_subjects })
            }
            Rule::Relative { .. } | Rule::Share { .. } => (!basis.full).then_some(NotApplicable::WindowNotFull),
        }
    }

    /// Number of rules.
    pub(crate) const fn rules(&self) -> usize {
        self.rules.len()
    }
}

/// The least whole number at or above `factor x doubled / 2`.
///
/// A product that misses a whole number by the rounding of its factors (0.07 x 100 is 7.000000000000001) is taken for it,
/// so that the boundary is where the settings say.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "thresholds far below 2^53; `as` saturates above and gives 0 for what is not a number"
)]
pub(super) fn times_half(factor: f64, doubled: u64) -> u64 {
    let product = factor * doubled as f64 / 2.0;
    (product - product * 1e-12).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Rate, Share};

    const WINDOW: WindowSettings = WindowSettings { length: Span::from_secs(10), pane: Span::from_secs(1) };

    fn levels(rules: &[Rule]) -> Levels {
        Levels::new(rules, &[WINDOW], 8)
    }

    fn exact(count: u64) -> [Estimate; MAX_WINDOWS] {
        [Estimate::exact(count), Estimate::default()]
    }

    #[test]
    fn boundaries_are_inclusive() {
        let absolute = levels(&[Rule::Absolute { rate: Rate::per_second(10.0).unwrap() }]);
        assert!(absolute.find(&exact(99), &[0; 2]).is_none());
        assert_eq!(absolute.find(&exact(100), &[0; 2]).map(|found| found.confirmed), Some(true));

        let mut share = levels(&[Rule::Share { share: Share::new(0.07).unwrap(), floor: 5 }]);
        share.set(0, Basis { full: true, ..Basis::default() });
        assert_eq!(share.threshold(0, 0, 100).unwrap().confirm, Some(7));
        assert_eq!(share.threshold(0, 0, 10).unwrap().confirm, Some(5));

        let mut relative = levels(&[Rule::Relative { multiple: 10.0, floor: 12 }]);
        let basis = |doubled| Basis {
            full: true,
            subjects: Estimate::exact(8),
            median: Some(Median { lower_doubled: doubled, upper_doubled: doubled }),
        };
        relative.set(0, basis(3));
        assert_eq!(relative.threshold(0, 0, 0).unwrap().confirm, Some(15));
        relative.set(0, basis(2));
        assert_eq!(relative.threshold(0, 0, 0).unwrap().confirm, Some(12), "the floor");
    }

    #[test]
    fn relative_and_share_wait_for_a_full_window_and_enough_keys() {
        let rules =
            [Rule::Relative { multiple: 2.0, floor: 20 }, Rule::Share { share: Share::new(0.5).unwrap(), floor: 20 }];
        let mut levels = levels(&rules);
        assert_eq!((levels.least(0, 10), levels.least_ever(0, 1000)), (20, 20));
        assert!(!levels.find(&exact(1000), &[1000, 0]).unwrap().confirmed);
        let median = Some(Median { lower_doubled: 40, upper_doubled: 40 });
        levels.set(0, Basis { full: true, subjects: Estimate { lower: 7, upper: 9 }, median });
        assert_eq!(levels.threshold(0, 0, 0), Some(Threshold { suspect: 40, confirm: None }));
        levels.set(0, Basis { full: true, subjects: Estimate::exact(7), median });
        assert_eq!(levels.threshold(0, 0, 0), None);
        levels.set(0, Basis { full: true, subjects: Estimate::exact(8), median });
        let found = levels.find(&exact(40), &[1000, 0]).unwrap();
        assert!(found.confirmed && found.rule == 0);
    }
}
