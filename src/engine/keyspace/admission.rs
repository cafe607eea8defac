//! From which estimate on a key gets exact counters, and what that promises.

use std::collections::VecDeque;

use super::super::window::{Bars, MAX_WINDOWS};

/// A key becomes a candidate at this part of the least threshold.
const LEAST_LEVEL: f64 = 0.125;
/// A full table raises the level at least by this factor: a flood of keys ends after a few rounds.
const RISE: f64 = 1.25;
/// Each pane lowers a raised level by this factor while there is room.
const FALL: f64 = 0.9;

/// The admission level.
///
/// A key with a count of at least the highest bar that was in force since its window began became a candidate at the event
/// that reached the bar (a count-min estimate is never below the truth), and stays one. So what may be missed is below
/// that bar, and only where the bar is above the threshold.
#[derive(Debug)]
pub(crate) struct Admission {
    level: f64,
    /// The least threshold of each window.
    base: [u64; MAX_WINDOWS],
    /// Estimates that admit a key now.
    bars: [u32; MAX_WINDOWS],
    /// The highest bar while each pane was open, the newest last.
    history: VecDeque<(i64, [u64; MAX_WINDOWS])>,
}

impl Admission {
    /// No pane is open yet.
    pub(crate) fn new(base: [u64; MAX_WINDOWS]) -> Self {
        let mut admission = Self { level: LEAST_LEVEL, base, bars: [0; MAX_WINDOWS], history: VecDeque::new() };
        admission.set_bars();
        admission
    }

    /// The level: which part of a threshold admits.
    pub(crate) const fn level(&self) -> f64 {
        self.level
    }

    /// True when an estimate admits its key.
    #[inline]
    pub(crate) fn admits(&self, estimates: [u32; MAX_WINDOWS], counted: [bool; MAX_WINDOWS]) -> bool {
        (counted[0] && estimates[0] >= self.bars[0]) || (counted[1] && estimates[1] >= self.bars[1])
    }

    /// How much of a threshold these upper bounds are, in the window where it is most.
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
    pub(crate) fn heat(&self, uppers: [u64; MAX_WINDOWS]) -> f64 {
        let part = |window: usize| uppers[window] as f64 / self.base[window] as f64;
        part(0).max(part(1))
    }

    /// True when upper bounds are so low that the key may lose its counters: below half the level.
    pub(crate) fn evicts(&self, uppers: [u64; MAX_WINDOWS]) -> bool {
        uppers.iter().zip(self.bars).all(|(upper, bar)| upper.saturating_mul(2) < u64::from(bar))
    }

    /// True when upper bounds reach this part of a threshold.
    pub(crate) fn reaches(&self, uppers: [u64; MAX_WINDOWS], part: f64) -> bool {
        self.heat(uppers) >= part
    }

    /// The lower bound at which a window reaches half its threshold.
    pub(crate) fn half(&self, window: usize, unknown: u64) -> u64 {
        self.base[window].div_ceil(2).saturating_sub(unknown)
    }

    /// A pane has been opened with these least thresholds.
    pub(crate) fn open_pane(&mut self, pane: i64, oldest: i64, base: [u64; MAX_WINDOWS], has_room: bool) {
        self.base = base.map(|least| least.max(1));
        if has_room {
            self.level = (self.level * FALL).max(LEAST_LEVEL);
        }
        self.set_bars();
        while self.history.front().is_some_and(|(old, _)| *old < oldest) {
            self.history.pop_front();
        }
        self.history.push_back((pane, self.bars.map(u64::from)));
    }

    /// The table is full: the level rises, at least to `heat`.
    pub(crate) fn rise(&mut self, heat: f64) {
        self.level = (self.level * RISE).max(heat);
        self.set_bars();
        self.promise(self.bars.map(|bar| u64::from(bar).saturating_sub(1)));
    }

    /// A key with these upper bounds is not counted exactly: counts up to them may be missed.
    pub(crate) fn promise(&mut self, uppers: [u64; MAX_WINDOWS]) {
        if let Some((_, highest)) = self.history.back_mut() {
            highest.iter_mut().zip(uppers).for_each(|(bar, upper)| *bar = (*bar).max(upper.saturating_add(1)));
        }
    }

    /// What may be missed since pane `oldest`.
    pub(crate) fn bars(&self, oldest: i64) -> Bars {
        Bars::of(self.history.iter().copied().filter(|entry| entry.0 >= oldest))
    }

    /// Goes on at a level, with these least thresholds and with what may be missed from before.
    pub(crate) fn resume(&mut self, level: f64, base: [u64; MAX_WINDOWS], bars: &Bars, head: i64) {
        self.level = level.max(LEAST_LEVEL);
        self.base = base.map(|least| least.max(1));
        self.set_bars();
        self.history = bars.iter().collect();
        if self.history.back().is_none_or(|(pane, _)| *pane < head) {
            self.history.push_back((head, self.bars.map(u64::from)));
        }
        self.promise(self.bars.map(|bar| u64::from(bar).saturating_sub(1)));
    }

    /// Every key with at least this count since pane `oldest` is a candidate.
    pub(crate) fn complete_above(&self, window: usize, oldest: i64) -> u64 {
        let since = self.history.iter().filter(|(pane, _)| *pane >= oldest);
        since.map(|(_, bars)| bars[window]).max().unwrap_or_else(|| u64::from(self.bars[window]))
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "thresholds far below 2^53; `as` saturates, and a bar of u32::MAX admits nobody"
    )]
    fn set_bars(&mut self) {
        self.bars = self.base.map(|base| ((base as f64 * self.level).ceil() as u32).max(1));
    }
}
