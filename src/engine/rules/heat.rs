//! Cold, suspect or hot: what one key or shard was last said to be, and when that changes.

use super::super::settings::{KeyspaceSettings, RuleKind};
use super::super::verdict::{Change, Reason};
use super::super::window::MAX_WINDOWS;
use super::levels::{Found, Levels, times_half};
use crate::units::{Estimate, EventTime};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Cold,
    Suspect,
    Hot,
}

/// Counts of one key or shard in one set of windows, with the events of those windows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// Bounds of the count in each window.
    pub(crate) counts: [Estimate; MAX_WINDOWS],
    /// All events of each window.
    pub(crate) events: [u64; MAX_WINDOWS],
}

/// When heat is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calm {
    share: f64,
    after_ms: u64,
}

impl Calm {
    /// As the keyspace says.
    pub(crate) const fn of(settings: &KeyspaceSettings) -> Self {
        Self { share: settings.clear.as_f64(), after_ms: settings.clear_after.as_millis() }
    }

    /// The least count that does not let a threshold's heat end.
    pub(crate) fn level(self, threshold: u64) -> u64 {
        times_half(self.share, threshold.saturating_mul(2))
    }
}

/// Index of no rule.
const NO_RULE: u16 = u16::MAX;

/// The state of one key or shard.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Heat {
    state: State,
    /// When the state last changed.
    changed: Option<EventTime>,
    hot_since: Option<EventTime>,
    /// Index of the rule that raised it; none of them when the rules are other ones by now.
    rule: u16,
    kind: Option<RuleKind>,
    window: u8,
    /// The least threshold of each window when it was raised.
    raised: [u64; MAX_WINDOWS],
    cool_since: Option<EventTime>,
    /// Event time up to which a newest window was seen that is not cool: the watermark has to pass it before it can be.
    warm_until: Option<EventTime>,
    /// Highest lower bound of the shortest window while hot.
    peak: u64,
}

impl Heat {
    /// True when confirmed and not cleared.
    pub(crate) fn is_hot(&self) -> bool {
        self.state == State::Hot
    }

    /// True when it may be hot and that is not confirmed.
    pub(crate) fn is_suspect(&self) -> bool {
        self.state == State::Suspect
    }

    /// True when neither hot nor suspect.
    pub(crate) fn is_cold(&self) -> bool {
        self.state == State::Cold
    }

    /// When it became hot.
    pub(crate) const fn hot_since(&self) -> Option<EventTime> {
        self.hot_since
    }

    /// Highest lower bound of the shortest window while hot.
    pub(crate) const fn peak(&self) -> u64 {
        self.peak
    }

    /// Notes the newest count of the shortest window.
    pub(crate) fn note(&mut self, lower: u64) {
        if self.is_hot() {
            self.peak = self.peak.max(lower);
        }
    }

    /// The rule that raised it, with the numbers as they are now.
    pub(crate) fn reason(&self, levels: &Levels, seen: &Seen) -> Reason {
        let (rule, window) = (usize::from(self.rule), usize::from(self.window));
        let threshold = levels.threshold(window, rule, seen.events[window]);
        let now = threshold.map(|threshold| threshold.confirm.unwrap_or(threshold.suspect));
        let kind = self.kind.unwrap_or_else(|| levels.kind(rule));
        reason(levels, seen, kind, window, now.unwrap_or(self.raised[window]))
    }

    /// Raises when a rule holds or may hold, and it was not known before.
    pub(crate) fn raise(&mut self, levels: &Levels, seen: &Seen, at: EventTime) -> Option<(Change, Reason)> {
        if self.is_hot() {
            return None;
        }
        let Found { rule, window, threshold, confirmed } = levels.find(&seen.counts, &seen.events)?;
        if self.is_suspect() && !confirmed {
            return None;
        }
        for (at, raised) in self.raised.iter_mut().enumerate() {
            *raised = levels.least(at, seen.events[at]);
        }
        self.set_rule(levels, rule, window);
        self.cool_since = None;
        let at = self.not_before(at);
        let change = if confirmed {
            self.state = State::Hot;
            self.hot_since = Some(at);
            self.peak = seen.counts[0].lower;
            Change::Hot
        } else {
            self.state = State::Suspect;
            Change::Suspect
        };
        Some((change, reason(levels, seen, levels.kind(rule), window, threshold)))
    }

    /// The rules changed: what was hot by the old ones is held to the new ones from now on.
    pub(crate) fn rules_changed(&mut self, levels: &Levels, seen: &Seen) {
        if self.is_cold() {
            return;
        }
        if let Some(Found { rule, window, .. }) = levels.find(&seen.counts, &seen.events) {
            self.set_rule(levels, rule, window);
        } else {
            self.rule = NO_RULE;
        }
        for (at, raised) in self.raised.iter_mut().enumerate() {
            *raised = levels.least(at, seen.events[at]);
        }
    }

    fn set_rule(&mut self, levels: &Levels, rule: usize, window: usize) {
        self.rule = u16::try_from(rule).unwrap_or(NO_RULE);
        self.kind = Some(levels.kind(rule));
        self.window = u8::try_from(window).unwrap_or(0);
    }

    /// A pane of the newest window ends at `until` with these counts: it is remembered when they are not cool.
    pub(crate) fn note_head(&mut self, levels: &Levels, head: &Seen, calm: Calm, until: EventTime) {
        if !self.is_cold() && !self.is_low(levels, head, calm) {
            self.warm_until = self.warm_until.max(Some(until));
        }
    }

    fn is_low(&self, levels: &Levels, seen: &Seen, calm: Calm) -> bool {
        seen.counts.iter().enumerate().all(|(window, count)| {
            let now = levels.least(window, seen.events[window]);
            // What was never proved leaves nothing to hold on to: only the threshold in force counts.
            let threshold = if self.is_hot() { now.min(self.raised[window]) } else { now };
            count.upper < calm.level(threshold)
        })
    }

    /// Clears when the counts of both ends have been low for long enough. `at` is the time up to which all is counted.
    pub(crate) fn clear(
        &mut self,
        (head_levels, head): (&Levels, &Seen),
        (closed_levels, closed): (&Levels, &Seen),
        calm: Calm,
        at: EventTime,
    ) -> Option<(Change, Reason)> {
        if self.is_cold() {
            return None;
        }
        // What lies between both ends was seen at the head: the watermark has to pass it.
        let passed = self.warm_until.is_none_or(|until| until <= at);
        if !(passed && self.is_low(head_levels, head, calm) && self.is_low(closed_levels, closed, calm)) {
            self.cool_since = None;
            return None;
        }
        let since = *self.cool_since.get_or_insert(at);
        (at.since(since).as_millis() >= calm.after_ms).then(|| self.end(head_levels, head, at))
    }

    /// Forgets the heat of a subject that is no longer counted.
    pub(crate) fn end(&mut self, levels: &Levels, head: &Seen, at: EventTime) -> (Change, Reason) {
        let reason = self.reason(levels, head);
        let at = self.not_before(at);
        *self = Self { changed: Some(at), ..Self::default() };
        (Change::Cleared, reason)
    }

    /// When it last changed: verdicts of one subject never go back in time.
    pub(crate) fn changed(&self) -> Option<EventTime> {
        self.changed
    }

    /// Something was said of it up to this moment, when it had other counters.
    pub(crate) fn begin_after(&mut self, at: Option<EventTime>) {
        self.changed = self.changed.max(at);
    }

    /// It has been cool at least from this moment on, provided that it is when judged next.
    pub(crate) fn cool_from(&mut self, at: EventTime) {
        self.cool_since.get_or_insert(at);
    }

    fn not_before(&mut self, at: EventTime) -> EventTime {
        let at = self.changed.map_or(at, |changed| changed.max(at));
        self.changed = Some(at);
        at
    }

    /// The lower bounds of the newest windows from which on `raise` may give something.
    pub(crate) fn wake(&self, levels: &Levels, seen: &Seen, windows: usize) -> [u64; MAX_WINDOWS] {
        let mut wake = [u64::MAX; MAX_WINDOWS];
        if self.is_hot() {
            return wake;
        }
        for (window, wake) in wake.iter_mut().enumerate().take(windows) {
            let unknown = seen.counts[window].upper - seen.counts[window].lower;
            *wake = levels.wake(window, seen.events[window], unknown, self.is_suspect());
        }
        wake
    }
}

fn reason(levels: &Levels, seen: &Seen, rule: RuleKind, window: usize, threshold: u64) -> Reason {
    Reason {
        rule,
        window: levels.length(window),
        threshold,
        count: seen.counts[window],
        median: levels.median(window).map(super::super::sketch::Median::estimate),
        subjects: levels.subjects(window),
    }
}
