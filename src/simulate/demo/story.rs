//! What a viewer is to see, in order, and whether it was seen: the closed loop as facts with their times.
//!
//! The story is told by what others say: the shards' load, the service's verdicts, and the two topics. It decides nothing.

use super::summary::Summary;
use crate::protocol::{BackfillReport, Layout, Outcome, PlanRecord, Prediction, State, Version};
use crate::telemetry::{MAX_LOG_CHARS, escape};
use crate::units::{Estimate, Share, Span};

/// The most lines that are kept; older ones leave.
pub const MAX_LINES: usize = 500;

/// What the story is about and which imbalance makes it one.
#[derive(Debug, Clone, PartialEq)]
pub struct StorySettings {
    /// The client that turns hot.
    pub client: String,
    /// Its share of all requests from then on.
    pub share: Share,
    /// With the client hot the hottest shard takes more than so many times the median.
    pub uneven: f64,
    /// After the split it takes less than so many times the median.
    pub even: f64,
    /// How long a measurement of the imbalance looks back.
    pub window: Span,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Since the start.
    pub at: Span,
    /// How it is to be read.
    pub tone: Tone,
    /// What happened.
    pub text: String,
}

/// How a line is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// A step on the way.
    Step,
    /// It got better.
    Good,
    /// It got worse.
    Bad,
}

/// The migration that the plan topic tells of.
#[derive(Debug, Clone, PartialEq)]
pub struct Migration {
    /// The version that names it.
    pub name: Version,
    /// Version of its newest record.
    pub version: Version,
    /// Where it stands.
    pub state: State,
    /// The layout that is entered.
    pub to: Layout,
    /// When each state was first seen, in the order of [`State::ALL`].
    pub reached: [Option<Span>; State::ALL.len()],
    /// When all routers had acknowledged the newest record.
    pub acknowledged: Option<Span>,
    /// Records moved and to be moved, once the owner has said so.
    pub moved: Option<(u64, u64)>,
}

/// Reads that were checked against what the readers had written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reads {
    /// Checked.
    pub checked: u64,
    /// Of these, wrong: a record was missed, or an older one found.
    pub missed: u64,
}

/// The story so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Story {
    settings: StorySettings,
    hot_at: Option<Span>,
    uneven_at: Option<Span>,
    detected_at: Option<Span>,
    settled_at: Option<Span>,
    even_at: Option<Span>,
    before: Option<f64>,
    after: Option<f64>,
    buckets: Option<u32>,
    migration: Option<Migration>,
    reads: Reads,
    /// A request was served by another shard than the service expects.
    is_misplaced: bool,
    lines: Vec<Line>,
    lines_cut: usize,
}

impl Story {
    /// Nothing has happened.
    #[must_use]
    pub const fn new(settings: StorySettings) -> Self {
        Self {
            settings,
            hot_at: None,
            uneven_at: None,
            detected_at: None,
            settled_at: None,
            even_at: None,
            before: None,
            after: None,
            buckets: None,
            migration: None,
            reads: Reads { checked: 0, missed: 0 },
            is_misplaced: false,
            lines: Vec::new(),
            lines_cut: 0,
        }
    }

    /// Adds a line, which may be no part of the loop. The same text again adds nothing.
    pub fn note(&mut self, at: Span, tone: Tone, text: impl Into<String>) {
        let text = text.into();
        if self.lines.last().is_some_and(|last| last.text == text) {
            return;
        }
        if self.lines.len() >= MAX_LINES {
            self.lines.remove(0);
            self.lines_cut += 1;
        }
        self.lines.push(Line { at, tone, text });
    }

    /// The client has begun to take its share.
    pub fn turned_hot(&mut self, at: Span) {
        if self.hot_at.is_none() {
            self.hot_at = Some(at);
            let percent = self.settings.share.as_f64() * 100.0;
            self.note(
                at,
                Tone::Bad,
                format!("client {} turns hot: {percent:.0} % of all requests", self.settings.client),
            );
        }
    }

    /// The hottest shard as a multiple of the median, over the window that ends at `at`.
    pub fn measured(&mut self, at: Span, imbalance: f64) {
        // Before: from the moment the client is hot until writes go to the new layout.
        if self.hot_at.is_some() && self.reached(State::Dual).is_none() && self.settled_at.is_none() {
            self.before = Some(self.before.map_or(imbalance, |before| before.max(imbalance)));
            if self.uneven_at.is_none() && imbalance > self.settings.uneven {
                self.uneven_at = Some(at);
                self.note(at, Tone::Bad, format!("hottest shard at {imbalance:.1} times the median"));
            }
        }
        // After: in windows that began when the split had settled.
        if self.settled_at.is_some_and(|settled| at.saturating_sub(settled) >= self.settings.window) {
            self.after = Some(imbalance);
            if self.even_at.is_none() && imbalance < self.settings.even {
                self.even_at = Some(at);
                let text = format!("hottest shard at {imbalance:.2} times the median: the loop is closed");
                self.note(at, Tone::Good, text);
            }
        }
    }

    /// The service has confirmed a hot key.
    pub fn detected(&mut self, at: Span, key: &[u8], count: Estimate, window: Span, threshold: u64) {
        let shown = escape(key, MAX_LOG_CHARS);
        if key != self.settings.client.as_bytes() {
            self.note(at, Tone::Bad, format!("{shown} found hot as well: {count} requests in {window}"));
        } else if self.detected_at.is_none() {
            self.detected_at = Some(at);
            let text = format!("detected: {shown}, {count} requests in {window}, threshold {threshold}");
            self.note(at, Tone::Step, text);
        }
    }

    /// A plan record was accepted by a reader of the plan topic.
    pub fn planned(&mut self, at: Span, version: Version, record: &PlanRecord) {
        let key = escape(&record.key.0, MAX_LOG_CHARS);
        if record.key.0 != self.settings.client.as_bytes() {
            self.note(at, Tone::Bad, format!("plan {version} for {key}, which is not the hot client"));
            return;
        }
        let same = self.migration.as_ref().filter(|migration| migration.name == record.migration.version);
        let mut migration = same.cloned().unwrap_or(Migration {
            name: record.migration.version,
            version,
            state: record.state,
            to: record.migration.to,
            reached: [None; State::ALL.len()],
            acknowledged: None,
            moved: None,
        });
        let turned_back = record.state < migration.state;
        let again = same.is_some() && record.state == migration.state;
        (migration.version, migration.state, migration.acknowledged) = (version, record.state, None);
        migration.reached[index_of(record.state)].get_or_insert(at);
        let own = record.outcome.as_ref().filter(|_| again && !record.migration.to.is_bare());
        let text = if let Some(outcome) = own {
            as_measured(outcome, &record.prediction)
        } else if again && !record.retire.is_empty() {
            "the owner may delete the old records".to_owned()
        } else if again {
            "published again".to_owned()
        } else {
            what_it_means(record, &key)
        };
        let back = if turned_back { "turned back to " } else { "" };
        self.note(at, Tone::Step, format!("plan {version} {back}{}: {text}", record.state.label()));
        if record.state == State::Settled && !record.is_turned_round() {
            self.settled_at.get_or_insert(at);
            self.buckets = Some(record.migration.to.buckets());
        }
        self.migration = Some(migration);
    }

    /// All `routers` routers have acknowledged the newest record.
    pub fn acknowledged(&mut self, at: Span, version: Version, routers: usize) {
        let Some(migration) = &mut self.migration else { return };
        if migration.version != version || migration.acknowledged.is_some() {
            return;
        }
        migration.acknowledged = Some(at);
        let text = format!("all {routers} routers have acknowledged {version} {}", migration.state.label());
        self.note(at, Tone::Step, text);
    }

    /// The owner has reported on the move.
    pub fn moved(&mut self, at: Span, report: &BackfillReport) {
        let Some(migration) = &mut self.migration else { return };
        if migration.name != report.migration || migration.to.number() != report.layout {
            return;
        }
        migration.moved = Some((report.moved, report.expected));
        if report.proves(migration.name) {
            self.note(at, Tone::Step, format!("the owner has moved {} of {} records", report.moved, report.expected));
        }
    }

    /// Reads so far.
    pub fn read(&mut self, at: Span, reads: Reads) {
        if self.reads.missed == 0 && reads.missed > 0 {
            self.note(at, Tone::Bad, "a read missed a record that its reader had written");
        }
        self.reads = reads;
    }

    /// So many of the requests that the service looked at were served by another shard than the mapper says.
    pub fn served_elsewhere(&mut self, at: Span, requests: u64) {
        if requests > 0 && !self.is_misplaced {
            self.is_misplaced = true;
            self.note(at, Tone::Bad, "a request was served by another shard than the mapper says");
        }
    }

    /// What happened, oldest first; at most [`MAX_LINES`].
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// How many lines there were before those.
    #[must_use]
    pub const fn lines_cut(&self) -> usize {
        self.lines_cut
    }

    /// The newest migration of the hot client.
    #[must_use]
    pub const fn migration(&self) -> Option<&Migration> {
        self.migration.as_ref()
    }

    /// The highest imbalance before the split, and the last one after it.
    #[must_use]
    pub const fn imbalance(&self) -> (Option<f64>, Option<f64>) {
        (self.before, self.after)
    }

    /// What has not been seen yet, or was not to be seen; none when the loop is closed.
    #[must_use]
    pub fn missing(&self) -> Option<&'static str> {
        if self.reads.missed > 0 {
            return Some("reads missed records");
        }
        if self.is_misplaced {
            return Some("requests are on other shards than the mapper says");
        }
        if self.after.is_some_and(|after| after >= self.settings.even) {
            return Some("the load is not even after the split");
        }
        let steps = [
            (self.hot_at.is_some(), "no client has turned hot yet"),
            (self.uneven_at.is_some(), "no shard was much hotter than the others"),
            (self.detected_at.is_some(), "the hot client was not detected"),
            (self.migration.is_some(), "no plan was published"),
            (self.settled_at.is_some(), "the split has not settled"),
            (self.even_at.is_some(), "the load after the split was not measured"),
            (self.reads.checked > 0, "no read was checked"),
        ];
        steps.into_iter().find(|(seen, _)| !seen).map(|(_, missing)| missing)
    }

    /// The summary after a run of `length` in which the service was sent `events` events.
    #[must_use]
    pub fn summary(&self, length: Span, events: u64) -> Summary {
        let since_hot = |at: Option<Span>| Some(at?.saturating_sub(self.hot_at?).as_millis());
        Summary {
            closed: self.missing().is_none(),
            seconds: length.as_secs_f64(),
            events,
            imbalance_before: self.before,
            imbalance_after: self.after,
            buckets: self.buckets,
            detected_after_ms: since_hot(self.detected_at),
            settled_after_ms: since_hot(self.settled_at),
            reads_checked: self.reads.checked,
            reads_missed: self.reads.missed,
        }
    }

    fn reached(&self, state: State) -> Option<Span> {
        self.migration.as_ref().and_then(|migration| migration.reached[index_of(state)])
    }
}

fn index_of(state: State) -> usize {
    State::ALL.iter().position(|other| *other == state).unwrap_or(0)
}

/// What the split did, beside what was expected of it.
fn as_measured(outcome: &Outcome, prediction: &Prediction) -> String {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let pairs = [
        ("hottest bucket", outcome.hottest_bucket_share, Some(prediction.hottest_bucket_share)),
        ("hottest shard", outcome.hottest_shard, prediction.hottest_shard_after),
    ];
    let words = pairs.into_iter().filter_map(|(what, measured, predicted)| {
        let predicted = predicted.map_or_else(String::new, |share| format!(" ({} predicted)", percent(share)));
        measured.map(|share| format!("{what} {}{predicted}", percent(share)))
    });
    let helped = if outcome.helped { "it helped" } else { "it did not help" };
    format!("{helped}: {}", words.collect::<Vec<_>>().join(", "))
}

fn what_it_means(record: &PlanRecord, key: &str) -> String {
    let to = record.migration.to;
    match record.state {
        State::Proposed => format!("{key} into {} buckets, waits for approval", to.buckets()),
        State::Prepare => {
            let last = to.first() + to.buckets() - 1;
            format!("{key} into {} buckets {}..{last}, reads look there", to.buckets(), to.first())
        }
        State::Hold => format!("writes of {key} wait"),
        State::Dual => "writes go to the buckets, reads look in both places".to_owned(),
        State::Moving => "the owner moves the old records".to_owned(),
        State::Settled => "reads and writes use the buckets only".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::demo::fixture::{self, CLIENT};

    fn story() -> Story {
        Story::new(StorySettings {
            client: CLIENT.to_owned(),
            share: Share::new(0.45).unwrap(),
            uneven: 5.0,
            even: 1.5,
            window: Span::from_secs(4),
        })
    }

    const fn s(secs: u64) -> Span {
        Span::from_secs(secs)
    }

    /// The story as it should go; `until` cuts it after so many steps.
    fn told(until: usize) -> Story {
        let mut story = story();
        let record = |state| fixture::record(state);
        let steps: [&dyn Fn(&mut Story); 10] = [
            &|story| story.measured(s(5), 1.1),
            &|story| story.turned_hot(s(8)),
            &|story| story.measured(s(9), 7.4),
            &|story| story.detected(s(10), CLIENT.as_bytes(), Estimate::exact(4000), s(5), 1000),
            &|story| story.planned(s(11), fixture::version(1), &record(State::Prepare)),
            &|story| story.planned(s(12), fixture::version(2), &record(State::Hold)),
            &|story| story.planned(s(13), fixture::version(3), &record(State::Dual)),
            &|story| {
                story.planned(s(14), fixture::version(4), &record(State::Moving));
                story.planned(s(15), fixture::version(5), &record(State::Settled));
            },
            &|story| story.read(s(16), Reads { checked: 100, missed: 0 }),
            &|story| story.measured(s(19), 1.2),
        ];
        for step in steps.iter().take(until) {
            step(&mut story);
        }
        story
    }

    #[test]
    fn the_loop_is_closed_when_every_step_was_seen_and_not_before() {
        for until in 0..10 {
            assert!(told(until).missing().is_some(), "after {until} steps");
        }
        let story = told(10);
        assert_eq!(story.missing(), None);
        let summary = story.summary(s(60), 9);
        assert_eq!(
            (summary.detected_after_ms, summary.settled_after_ms, summary.buckets),
            (Some(2000), Some(7000), Some(8))
        );
        assert_eq!((summary.imbalance_before, summary.imbalance_after), (Some(7.4), Some(1.2)));
        assert!(summary.closed);
    }

    #[test]
    fn a_missed_record_or_an_uneven_end_opens_the_loop_again() {
        let mut story = told(10);
        story.measured(s(20), 1.5);
        assert_eq!(story.missing(), Some("the load is not even after the split"));
        story.measured(s(21), 1.3);
        assert_eq!(story.missing(), None);
        story.read(s(22), Reads { checked: 101, missed: 1 });
        assert_eq!(story.missing(), Some("reads missed records"));
        assert!(!story.summary(s(60), 9).closed);
    }

    #[test]
    fn a_request_on_another_shard_than_expected_opens_the_loop() {
        let mut story = told(10);
        story.served_elsewhere(s(20), 0);
        assert_eq!(story.missing(), None);
        story.served_elsewhere(s(21), 2);
        story.served_elsewhere(s(22), 0);
        assert_eq!(story.missing(), Some("requests are on other shards than the mapper says"));
        assert_eq!(story.lines().last().unwrap().text, "a request was served by another shard than the mapper says");
    }

    #[test]
    fn what_the_split_did_is_told_beside_what_was_expected() {
        let mut story = told(10);
        let outcome = Outcome {
            hottest_shard: Some(0.14),
            measured_at: String::new(),
            helped: true,
            hottest_bucket_share: Some(0.127),
            key_shard_share: None,
            window_ms: None,
            settled_at: None,
        };
        let record = PlanRecord { outcome: Some(outcome), ..fixture::record(State::Settled) };
        story.planned(s(30), fixture::version(6), &record);
        assert_eq!(
            story.lines().last().unwrap().text,
            "plan 1.6 settled: it helped: hottest bucket 12.7 % (13.0 % predicted), hottest shard 14.0 % (13.0 % predicted)"
        );
    }

    #[test]
    fn a_window_that_began_before_the_split_had_settled_says_nothing_of_after() {
        let mut story = told(9);
        story.measured(Span::from_millis(18_999), 1.2);
        assert_eq!(story.imbalance(), (Some(7.4), None));
    }

    #[test]
    fn acknowledgements_count_for_the_newest_record_only() {
        let mut story = told(6);
        story.acknowledged(s(12), fixture::version(1), 3);
        assert_eq!(story.migration().unwrap().acknowledged, None);
        story.acknowledged(s(12), fixture::version(2), 3);
        story.acknowledged(s(13), fixture::version(2), 3);
        assert_eq!(story.migration().unwrap().acknowledged, Some(s(12)));
        assert_eq!(story.lines().last().unwrap().text, "all 3 routers have acknowledged 1.2 hold");
    }

    #[test]
    fn reports_of_another_migration_count_for_nothing() {
        let mut story = told(7);
        let report = fixture::backfill(fixture::version(9), 7, 7);
        story.moved(s(14), &report);
        assert_eq!(story.migration().unwrap().moved, None);
        story.moved(s(14), &fixture::backfill(fixture::version(1), 3, 7));
        assert_eq!(story.migration().unwrap().moved, Some((3, 7)));
    }

    #[test]
    fn the_lines_tell_it_and_are_bounded() {
        let mut story = told(10);
        story.planned(
            s(16),
            fixture::version(6),
            &PlanRecord { retire: vec![Layout::BARE], ..fixture::record(State::Settled) },
        );
        let lines: Vec<_> = story.lines().iter().map(|line| format!("{} {}", line.at, line.text)).collect();
        insta::assert_snapshot!(lines.join("\n"));
        for number in 0..2 * MAX_LINES {
            story.note(s(17), Tone::Step, format!("line {number}"));
            story.note(s(17), Tone::Step, format!("line {number}"));
        }
        assert_eq!((story.lines().len(), story.lines_cut()), (MAX_LINES, MAX_LINES + 10));
    }
}
