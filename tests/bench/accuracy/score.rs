//! What one contestant's answers were worth.

use hashbrown::{HashMap, HashSet};

/// An answer on one key: bounds of its count; of a contestant without bounds both are its estimate.
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) key: u32,
    pub(crate) lower: u64,
    pub(crate) upper: u64,
}

/// Over all ticks of a stream.
#[derive(Default)]
pub(crate) struct Score {
    /// Keys with at least T events, summed over the ticks.
    pub(crate) hot: u64,
    /// Of them those whose upper bound reaches T, and those whose lower bound does.
    found: u64,
    proved: u64,
    /// Answers whose upper bound reaches T, and whose lower bound does, right or wrong.
    flagged: u64,
    confirmed: u64,
    /// Relative errors of the upper bound on hot keys.
    errors: Vec<f64>,
    /// Answers whose bounds do not hold the truth.
    outside: u64,
    /// Keys from this count on are found, at the worst tick; more than T where there was no room for all.
    pub(crate) promised: u64,
    /// Keys that were promised and not found.
    missed: u64,
    /// The most keys kept, and the most bytes taken.
    pub(crate) kept: usize,
    pub(crate) bytes: u64,
}

impl Score {
    /// Judges the answers of one tick; keys that are not in them count 0. `bounded` says whether the bounds promise anything.
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
    pub(crate) fn judge(&mut self, truth: &HashMap<u32, u64>, threshold: u64, answers: &[Answer], bounded: bool) {
        self.hot += truth.values().filter(|count| **count >= threshold).count() as u64;
        if bounded {
            self.check(truth, answers.iter().copied());
        }
        for answer in answers {
            let count = truth.get(&answer.key).copied().unwrap_or(0);
            let (is_hot, may_be, is_sure) = (count >= threshold, answer.upper >= threshold, answer.lower >= threshold);
            self.flagged += u64::from(may_be);
            self.confirmed += u64::from(is_sure);
            self.found += u64::from(is_hot && may_be);
            self.proved += u64::from(is_hot && is_sure);
            if is_hot {
                self.errors.push(answer.upper.abs_diff(count) as f64 / count as f64);
            }
        }
    }

    /// Counts the answers whose bounds do not hold the truth.
    pub(crate) fn check(&mut self, truth: &HashMap<u32, u64>, answers: impl Iterator<Item = Answer>) {
        let count = |answer: &Answer| truth.get(&answer.key).copied().unwrap_or(0);
        let outside = answers.filter(|answer| !(answer.lower..=answer.upper).contains(&count(answer)));
        self.outside += outside.count() as u64;
    }

    /// Holds a contestant to its promise: every key with at least `promised` events is among the answers that may be hot.
    pub(crate) fn hold(&mut self, truth: &HashMap<u32, u64>, promised: u64, threshold: u64, answers: &[Answer]) {
        let found = answers.iter().filter(|answer| answer.upper >= threshold).map(|answer| answer.key);
        let found: HashSet<u32> = found.collect();
        let missed = truth.iter().filter(|(key, count)| **count >= promised && !found.contains(*key));
        self.missed += missed.count() as u64;
        self.promised = self.promised.max(promised);
    }

    /// Notes what is kept at a tick.
    pub(crate) fn note(&mut self, kept: usize, bytes: u64) {
        self.kept = self.kept.max(kept);
        self.bytes = self.bytes.max(bytes);
    }

    /// Nothing missed of what was promised, nothing wrongly confirmed, every bound true.
    pub(crate) const fn is_right(&self) -> bool {
        self.missed == 0 && self.proved == self.confirmed && self.outside == 0
    }

    /// Part of the hot keys that is flagged.
    pub(crate) fn recall(&self) -> String {
        part(self.found, self.hot)
    }

    /// Part of what is flagged that is hot.
    pub(crate) fn precision(&self) -> String {
        part(self.found, self.flagged)
    }

    /// Part of the hot keys that is confirmed.
    pub(crate) fn confirmed_recall(&self) -> String {
        part(self.proved, self.hot)
    }

    /// Part of what is confirmed that is hot.
    pub(crate) fn confirmed_precision(&self) -> String {
        part(self.proved, self.confirmed)
    }

    /// The error at a quantile.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank of a list"
    )]
    pub(crate) fn error(&self, quantile: f64) -> String {
        let mut errors = self.errors.clone();
        errors.sort_by(f64::total_cmp);
        let last = errors.len().saturating_sub(1);
        let rank = (last as f64 * quantile).ceil() as usize;
        match errors.get(rank) {
            Some(0.0) => "0".to_owned(),
            Some(error) => format!("{error:.4}"),
            None => "-".to_owned(),
        }
    }

    /// Bytes in MiB.
    #[expect(clippy::cast_precision_loss, reason = "for display")]
    pub(crate) fn mib(&self) -> f64 {
        self.bytes as f64 / f64::from(1 << 20)
    }
}

/// Cut, not rounded: 1 means all.
#[expect(clippy::cast_precision_loss, reason = "for display")]
fn part(some: u64, all: u64) -> String {
    match (some, all) {
        (_, 0) => "-".to_owned(),
        (some, all) if some == all => "1".to_owned(),
        _ => format!("{:.4}", (some as f64 / all as f64 * 1e4).floor() / 1e4),
    }
}
