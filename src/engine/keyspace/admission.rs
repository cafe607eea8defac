//! From which estimate on a key gets exact counters, and what that promises.

use std::collections::VecDeque;

use super::super::rules::SetNumber;
use super::super::window::{Bars, MAX_WINDOWS};
use crate::units::EventTime;

/// A key becomes a candidate at this part of the least threshold.
const LEAST_LEVEL: f64 = 0.125;
/// A full table raises the level at least by this factor: a flood of keys ends after a few rounds.
const RISE: f64 = 1.25;
/// Each pane lowers a raised level by this factor while there is room.
const FALL: f64 = 0.9;

/// Counts in each window, for each set of rules.
type SetBars<T> = Vec<[T; MAX_WINDOWS]>;

/// The admission level.
///
/// A key with a count of at least the highest bar that was in force since its window began became a candidate at the event
/// that reached the bar (a count-min estimate is never below the truth), and stays one. So what may be missed is below
/// that bar, and only where the bar is above the threshold.
#[derive(Debug)]
pub(crate) struct Admission {
    level: f64,
    /// The least threshold of each set of rules in each window.
    base: SetBars<u64>,
    /// Estimates that admit a key now.
    bars: SetBars<u32>,
    /// The least of them: below it nobody is admitted, whatever its set.
    least: [u32; MAX_WINDOWS],
    /// The highest bars while each pane was open, the newest last.
    history: VecDeque<(i64, SetBars<u64>)>,
    /// When heat last ended for want of room: whoever it was may come back.
    ended: Option<EventTime>,
}

impl Admission {
    /// No pane is open yet.
    pub(crate) fn new(base: SetBars<u64>) -> Self {
        let mut admission = Self {
            level: LEAST_LEVEL,
            base: Vec::new(),
            bars: Vec::new(),
            least: [0; MAX_WINDOWS],
            history: VecDeque::new(),
            ended: None,
        };
        admission.set_base(base);
        admission
    }

    /// The level: which part of a threshold admits.
    pub(crate) const fn level(&self) -> f64 {
        self.level
    }

    /// The heat of a key ended for want of room.
    pub(crate) fn note_end(&mut self, at: EventTime) {
        self.ended = self.ended.max(Some(at));
    }

    /// When that last happened, whatever the key.
    pub(crate) const fn ended(&self) -> Option<EventTime> {
        self.ended
    }

    /// True when an estimate admits a key of the set with the lowest bars.
    #[inline]
    pub(crate) const fn may_admit(&self, estimates: [u32; MAX_WINDOWS], counted: [bool; MAX_WINDOWS]) -> bool {
        reaches(estimates, self.least, counted)
    }

    /// True when an estimate admits a key of the set.
    pub(crate) fn admits(&self, set: SetNumber, estimates: [u32; MAX_WINDOWS], counted: [bool; MAX_WINDOWS]) -> bool {
        reaches(estimates, at(&self.bars, set), counted)
    }

    /// How much of a threshold these upper bounds are, in the window where it is most.
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
    pub(crate) fn heat(&self, set: SetNumber, uppers: [u64; MAX_WINDOWS]) -> f64 {
        let base = at(&self.base, set);
        let part = |window: usize| uppers[window] as f64 / base[window] as f64;
        part(0).max(part(1))
    }

    /// True when upper bounds are so low that the key may lose its counters: below half the level.
    pub(crate) fn evicts(&self, set: SetNumber, uppers: [u64; MAX_WINDOWS]) -> bool {
        let bars = at(&self.bars, set);
        uppers.iter().zip(bars).all(|(upper, bar)| upper.saturating_mul(2) < u64::from(bar))
    }

    /// True when upper bounds reach this part of a threshold.
    pub(crate) fn reaches(&self, set: SetNumber, uppers: [u64; MAX_WINDOWS], part: f64) -> bool {
        self.heat(set, uppers) >= part
    }

    /// The lower bound at which a window reaches half its threshold.
    pub(crate) fn half(&self, set: SetNumber, window: usize, unknown: u64) -> u64 {
        at(&self.base, set)[window].div_ceil(2).saturating_sub(unknown)
    }

    /// A pane has been opened with these least thresholds.
    pub(crate) fn open_pane(&mut self, pane: i64, oldest: i64, base: SetBars<u64>, has_room: bool) {
        if has_room {
            self.level = (self.level * FALL).max(LEAST_LEVEL);
        }
        self.set_base(base);
        while self.history.front().is_some_and(|(old, _)| *old < oldest) {
            self.history.pop_front();
        }
        self.history.push_back((pane, self.bars_now()));
    }

    /// The rules changed while a pane is open. What was in force is remembered: a key of any set may have been left out by the
    /// highest bar that there was.
    pub(crate) fn change_base(&mut self, base: SetBars<u64>) {
        self.set_base(base);
        let sets = self.base.len();
        for (_, bars) in &mut self.history {
            *bars = vec![highest(bars); sets];
        }
        self.raise_newest();
    }

    /// The table is full: the level rises, at least to `heat`.
    pub(crate) fn rise(&mut self, heat: f64) {
        self.level = (self.level * RISE).max(heat);
        self.set_bars();
        self.raise_newest();
    }

    /// A key of the set with these upper bounds is not counted exactly: counts up to them may be missed.
    pub(crate) fn promise(&mut self, set: SetNumber, uppers: [u64; MAX_WINDOWS]) {
        if let Some(highest) = self.history.back_mut().and_then(|(_, bars)| bars.get_mut(usize::from(set))) {
            *highest = greater(*highest, uppers.map(|upper| upper.saturating_add(1)));
        }
    }

    /// What may be missed since pane `oldest`, whatever the set of rules.
    pub(crate) fn bars(&self, oldest: i64) -> Bars {
        let since = self.history.iter().filter(|entry| entry.0 >= oldest);
        Bars::of(since.map(|(pane, bars)| (*pane, highest(bars))))
    }

    /// Goes on at a level, with these least thresholds and with what may be missed from before.
    pub(crate) fn resume(&mut self, level: f64, base: SetBars<u64>, bars: &Bars, head: i64) {
        self.level = level.max(LEAST_LEVEL);
        self.set_base(base);
        let sets = self.base.len();
        self.history = bars.iter().map(|(pane, bars)| (pane, vec![bars; sets])).collect();
        if self.history.back().is_none_or(|(pane, _)| *pane < head) {
            self.history.push_back((head, self.bars_now()));
        }
        self.raise_newest();
    }

    /// The newest pane's highest bars are at least those in force.
    fn raise_newest(&mut self) {
        let now = self.bars_now();
        if let Some((_, highest)) = self.history.back_mut() {
            highest.iter_mut().zip(now).for_each(|(bar, now)| *bar = greater(*bar, now));
        }
    }

    /// Every key of the set with at least this count since pane `oldest` is a candidate.
    pub(crate) fn complete_above(&self, set: SetNumber, window: usize, oldest: i64) -> u64 {
        let since = self.history.iter().filter(|(pane, _)| *pane >= oldest);
        let highest = since.map(|(_, bars)| at(bars, set)[window]).max();
        highest.unwrap_or_else(|| u64::from(at(&self.bars, set)[window]))
    }

    /// The last pane in which a key of the set may have been left out though it had `count`.
    pub(crate) fn last_above(&self, set: SetNumber, window: usize, count: u64) -> Option<i64> {
        self.history.iter().rev().find(|(_, bars)| at(bars, set)[window] > count).map(|(pane, _)| *pane)
    }

    fn bars_now(&self) -> SetBars<u64> {
        self.bars.iter().map(|bars| bars.map(u64::from)).collect()
    }

    fn set_base(&mut self, base: SetBars<u64>) {
        self.base = base;
        self.base.iter_mut().flatten().for_each(|least| *least = (*least).max(1));
        self.set_bars();
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "thresholds far below 2^53; `as` saturates, and a bar of u32::MAX admits nobody"
    )]
    fn set_bars(&mut self) {
        let level = self.level;
        let bar = |base: u64| ((base as f64 * level).ceil() as u32).max(1);
        self.bars = self.base.iter().map(|base| base.map(bar)).collect();
        let lesser = |least: [u32; MAX_WINDOWS], bars: &[u32; MAX_WINDOWS]| [0, 1].map(|at| least[at].min(bars[at]));
        self.least = self.bars.iter().fold([u32::MAX; MAX_WINDOWS], lesser);
    }
}

const fn reaches(estimates: [u32; MAX_WINDOWS], bars: [u32; MAX_WINDOWS], counted: [bool; MAX_WINDOWS]) -> bool {
    (counted[0] && estimates[0] >= bars[0]) || (counted[1] && estimates[1] >= bars[1])
}

fn greater(a: [u64; MAX_WINDOWS], b: [u64; MAX_WINDOWS]) -> [u64; MAX_WINDOWS] {
    [a[0].max(b[0]), a[1].max(b[1])]
}

/// The highest bars of all sets.
fn highest(bars: &SetBars<u64>) -> [u64; MAX_WINDOWS] {
    bars.iter().fold([0; MAX_WINDOWS], |most, bar| greater(most, *bar))
}

/// The numbers of a set; those of all keys where the set is unknown.
fn at<T: Copy + Default>(bars: &SetBars<T>, set: SetNumber) -> [T; MAX_WINDOWS] {
    bars.get(usize::from(set)).or_else(|| bars.first()).copied().unwrap_or_default()
}
