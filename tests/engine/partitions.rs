//! Several partitions: read in any interleaving, under the rule that one that runs ahead waits, they count like one log in order.

use keyheat::engine::{Engine, Progress, TimeSettings, Verdict};
use keyheat::input::{AccessEvent, Refusal};
use keyheat::units::{EventTime, Offset, Partition, Span};
use proptest::prelude::*;

use crate::oracle::{absolute, at, relative, settings, window};

const HOUR_MS: i64 = 3_600_000;

/// One record: its time, or none when it is no event; and its key.
type Entry = (Option<EventTime>, u8);

/// One partition and how far it is read.
#[derive(Debug, Clone, Default)]
struct Log {
    records: Vec<Entry>,
    next: usize,
    held: bool,
    /// Nothing of it comes: its broker is away.
    away: bool,
}

/// A source over an engine.
struct Reader {
    engine: Engine,
    logs: Vec<Log>,
    now: EventTime,
    refused: Vec<Refusal>,
    verdicts: Vec<Verdict>,
    given_up: Vec<i32>,
    /// A broker answers.
    up: bool,
}

impl Reader {
    /// The clock shows two hours after the begin of event time: all is backlog.
    fn new(logs: Vec<Vec<Entry>>) -> Self {
        Self::with_lead(logs, TimeSettings::default().max_ahead)
    }

    fn with_lead(logs: Vec<Vec<Entry>>, max_ahead: Span) -> Self {
        let rules = [absolute(3.0), relative(4.0, 5)];
        let mut settings = settings(&[window(10_000, 1_000), window(60_000, 5_000)], &rules);
        settings.keyspaces[0].counting.width_log2 = 8;
        settings.time.max_ahead = max_ahead;
        let engine = Engine::new(settings);
        let logs = logs.into_iter().map(|records| Log { records, ..Log::default() }).collect();
        let now = at(2 * HOUR_MS);
        let (refused, verdicts, given_up) = (Vec::new(), Vec::new(), Vec::new());
        let mut reader = Self { engine, logs, now, refused, verdicts, given_up, up: true };
        reader.tell();
        reader
    }

    /// The engine hears how far everything is, and says what may go on.
    fn tell(&mut self) {
        for (number, log) in (0i32..).zip(&self.logs) {
            let offset = |at: usize| Offset(i64::try_from(at).unwrap());
            let end = Some(offset(log.records.len())).filter(|_| self.up && (!log.away || log.next > 0));
            let progress = Progress { partition: Partition(number), position: offset(log.next), end, paused: log.held };
            self.engine.handle_progress(progress, self.now);
        }
        self.engine.handle_tick(self.now);
        while let Some(partition) = self.engine.poll_released() {
            self.logs[usize::try_from(partition.0).unwrap()].held = false;
        }
        while let Some(partition) = self.engine.poll_given_up() {
            self.given_up.push(partition.0);
        }
    }

    /// Reads one record of a partition; false when there is none to read.
    fn read(&mut self, number: usize) -> bool {
        let log = &mut self.logs[number];
        let Some(&(time, key)) = log.records.get(log.next).filter(|_| self.up && !log.held && !log.away) else {
            return false;
        };
        let partition = Partition(i32::try_from(number).unwrap());
        if let Some(time) = time {
            if self.engine.must_wait(partition, time, self.now) {
                log.held = true;
                return false;
            }
            let event = AccessEvent::new(time, std::slice::from_ref(&key));
            self.refused.extend(self.engine.handle_event(partition, &event, self.now).err());
        }
        log.next += 1;
        self.verdicts.extend(std::iter::from_fn(|| self.engine.poll_verdict()));
        true
    }

    /// Reads everything, in the order of `choices` over and over; false when it comes to a stop before the end.
    fn read_all(&mut self, choices: &[usize]) -> bool {
        loop {
            let mut moved = false;
            for choice in choices.iter().chain(&[0, 1, 2, 3, 4]) {
                if *choice >= self.logs.len() {
                    self.tell();
                } else {
                    moved |= self.read(*choice);
                }
            }
            self.tell();
            if self.logs.iter().all(|log| log.next == log.records.len()) {
                return true;
            }
            if !moved && !self.logs.iter().any(|log| !log.held && !log.away && log.next < log.records.len()) {
                return false;
            }
        }
    }

    /// Every record in the order of event time, each in its partition.
    fn in_order(logs: &[Vec<Entry>], max_ahead: Span) -> Self {
        let numbered = logs.iter().enumerate().flat_map(|(number, log)| log.iter().map(move |entry| (number, *entry)));
        let mut all: Vec<_> = numbered.collect();
        all.sort_by_key(|(_, (time, _))| *time);
        let mut reader = Self::with_lead(Vec::new(), max_ahead);
        for (number, (time, key)) in all {
            let Some(time) = time else { continue };
            let partition = Partition(i32::try_from(number).unwrap());
            let event = AccessEvent::new(time, std::slice::from_ref(&key));
            reader.refused.extend(reader.engine.handle_event(partition, &event, reader.now).err());
            reader.verdicts.extend(std::iter::from_fn(|| reader.engine.poll_verdict()));
        }
        reader
    }
}

/// A log of `records` events from `from_ms` on, a second apart.
fn every_second(from_ms: i64, records: i64, key: u8) -> Vec<Entry> {
    (0..records).map(|number| (Some(at(from_ms + number * 1_000)), key)).collect()
}

/// A log that begins up to twenty minutes after the first, with gaps, disorder of up to two seconds, and records that are no event.
fn log() -> impl Strategy<Value = Vec<Entry>> {
    let forward = prop_oneof![6 => Just(0i64), 6 => 0i64..900, 2 => 0i64..9_000, 1 => 0i64..400_000];
    let step = (forward, 0i64..2_000, 0u8..6, 0u8..20);
    (0i64..1_200_000, prop::collection::vec(step, 0..120)).prop_map(|(begin, steps)| {
        let mut newest = begin + 2_000;
        let entry = |(forward, back, key, kind): (i64, i64, u8, u8)| {
            newest += forward;
            ((kind > 0).then(|| at(newest - back)), key)
        };
        steps.into_iter().map(entry).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever the skew between partitions and the order in which they are read, no event is lost, and what is counted is bit for
    /// bit what one log in order gives. Reading never comes to a stop.
    #[test]
    fn any_interleaving_counts_like_one_log_in_order(
        logs in prop::collection::vec(log(), 1..5),
        choices in prop::collection::vec(0usize..6, 1..60),
        max_ahead in prop::sample::select(vec![0u64, 300, 5_000, 30_000]).prop_map(Span::from_millis),
    ) {
        let mut reader = Reader::with_lead(logs.clone(), max_ahead);
        prop_assert!(reader.read_all(&choices), "comes to a stop");
        let ordered = Reader::in_order(&logs, max_ahead);
        prop_assert!(reader.refused.is_empty() && ordered.refused.is_empty(), "{:?}", reader.refused);
        prop_assert_eq!(reader.engine.digest(0), ordered.engine.digest(0));
        prop_assert_eq!(reader.engine.condition().watermark, ordered.engine.condition().watermark);
        for key in 0u8..6 {
            for number in 0..2 {
                let counts = [&reader, &ordered].map(|reader| reader.engine.estimate(0, number, &[key]));
                prop_assert_eq!(counts[0], counts[1]);
            }
        }
    }

    /// One event of 2099 or 1970, wherever it comes, changes nothing: neither counts, nor verdicts, nor the watermark.
    #[test]
    fn one_wrong_date_changes_nothing(
        logs in prop::collection::vec(log(), 1..4),
        choices in prop::collection::vec(0usize..5, 1..40),
        (place, ancient) in (any::<prop::sample::Index>(), any::<bool>()),
    ) {
        let date = if ancient { "1970-01-01T00:00:01Z" } else { "2099-06-01T12:00:00Z" };
        let millis = date.parse::<jiff::Timestamp>().unwrap().as_millisecond();
        let wrong = (Some(EventTime::from_millis(millis).unwrap()), 7u8);
        let mut more = logs.clone();
        let log = place.index(more.len());
        let length = more[log].len();
        // The very first event of all is the only word on what time it is: there is nothing that it could be wrong against.
        let at_least = usize::from(ancient).min(length);
        let offset = at_least + place.index(length + 1 - at_least);
        prop_assume!(!ancient || more[log][..offset].iter().any(|(time, _)| time.is_some()));
        more[log].insert(offset, wrong);
        let mut plain = Reader::new(logs);
        let mut spoiled = Reader::new(more);
        prop_assert!(plain.read_all(&choices) && spoiled.read_all(&choices));
        prop_assert_eq!(&spoiled.refused, &[if ancient { Refusal::TooLate } else { Refusal::Future }]);
        prop_assert_eq!(spoiled.engine.digest(0), plain.engine.digest(0));
        prop_assert_eq!(spoiled.engine.condition(), plain.engine.condition());
        let told = |reader: &Reader| reader.verdicts.iter().map(|verdict| (verdict.change, verdict.subject.clone())).collect::<Vec<_>>();
        prop_assert_eq!(told(&spoiled), told(&plain));
        prop_assert_eq!(spoiled.engine.hot_keys(0), plain.engine.hot_keys(0));
    }
}

fn reader(logs: &[Vec<Entry>]) -> Reader {
    Reader::new(logs.to_vec())
}

/// Reads until `next` records of each log are read, by turns.
fn read_to(reader: &mut Reader, next: usize) {
    for _ in 0..10 * next {
        if reader.logs.iter().all(|log| log.next >= next) {
            return;
        }
        for number in 0..reader.logs.len() {
            if reader.logs[number].next < next {
                reader.read(number);
            }
        }
        reader.tell();
    }
    assert!(reader.logs.iter().all(|log| log.next >= next), "all are at {next}");
}

/// The clock goes on by `secs` seconds, and the engine hears of everything each second.
fn wait(reader: &mut Reader, secs: u64) {
    for _ in 0..secs {
        reader.now = reader.now.saturating_add(Span::from_secs(1));
        reader.tell();
    }
}

/// One goes an hour ahead of the other and is stopped a few times a minute of event time, not at each record.
#[test]
fn a_partition_that_runs_ahead_is_stopped_seldom() {
    let mut reader = reader(&[every_second(0, 600, 1), every_second(1, 600, 2)]);
    let mut stops = 0;
    while reader.logs.iter().any(|log| log.next < 600) {
        for number in 0..2 {
            while reader.read(number) {}
            stops += usize::from(reader.logs[number].held);
        }
        reader.tell();
        let lead = reader.logs[0].next.abs_diff(reader.logs[1].next);
        assert!(lead <= 6, "{lead} s apart");
    }
    assert!(
        (100..=400).contains(&stops),
        "600 s in steps of 2.5 s to 5 s, each with at most one stop a partition: {stops}"
    );
    assert!(reader.refused.is_empty());
}

/// Of a partition nothing has come yet: it may be anywhere, so that nothing of the others is counted, until it is found to be empty.
#[test]
fn nobody_goes_before_a_partition_that_nothing_has_come_from() {
    let mut reader = reader(&[every_second(600_000, 9, 1), every_second(0, 9, 2)]);
    assert!(!reader.read(0) && reader.logs[0].held);
    assert_eq!((reader.engine.condition().watermark, reader.engine.condition().lag), (None, Some(18)));
    assert!(reader.read_all(&[0, 1]) && reader.refused.is_empty());
    let mut reader = self::reader(&[every_second(600_000, 9, 1), Vec::new()]);
    assert!(reader.read(0), "an empty one stops nobody");
    assert!(reader.given_up.is_empty());
}

/// A partition whose broker is away is waited for as long as a partition may be silent, then the others go on without it: that is
/// told once, and nothing is settled. When it moves again, it is waited for again, and counts only from a whole window on.
#[test]
fn a_partition_that_does_not_move_is_given_up_and_comes_back() {
    let mut reader = reader(&[every_second(0, 400, 1), every_second(0, 400, 2)]);
    read_to(&mut reader, 3);
    reader.logs[1].away = true;
    while reader.read(0) {}
    reader.tell();
    assert!(reader.logs[0].held);
    wait(&mut reader, 4);
    assert!(reader.logs[0].held && reader.given_up.is_empty() && !reader.engine.condition().incomplete);
    assert_eq!(reader.engine.next_deadline(), Some(reader.now.saturating_add(Span::from_secs(1))));
    wait(&mut reader, 1);
    assert_eq!((reader.logs[0].held, reader.given_up.as_slice()), (false, &[1][..]));
    let condition = reader.engine.condition();
    assert!(condition.incomplete && !condition.is_settled() && (condition.completeness.share() - 0.5).abs() < 1e-9);
    for _ in 0..300 {
        assert!(reader.read(0), "nobody is waited for");
    }
    wait(&mut reader, 60);
    assert_eq!(reader.given_up, [1], "told once");

    reader.logs[1].away = false;
    assert!(reader.read(1));
    reader.tell();
    assert!(reader.engine.condition().warming_up && !reader.engine.condition().incomplete, "it starts cold");
    assert!(!reader.read(0) && reader.logs[0].held, "waited for again");
    assert!(reader.read_all(&[1]), "and goes on to the end");
    assert!(reader.refused.iter().all(|refusal| *refusal == Refusal::TooLate));
}

/// While no broker answers nobody is given up and the clock carries nothing on, however long it takes; then all goes on exactly.
#[test]
fn an_outage_of_all_brokers_gives_nobody_up() {
    let logs = [every_second(0, 400, 1), every_second(90_000, 400, 2)];
    let mut reader = reader(&logs);
    while reader.read(0) || reader.read(1) {}
    reader.tell();
    reader.up = false;
    wait(&mut reader, 3_600);
    assert_eq!((reader.given_up.len(), reader.engine.condition().lag), (0, None));
    reader.up = true;
    assert!(reader.read_all(&[1, 0, 0]) && reader.refused.is_empty());
    assert_eq!(reader.engine.digest(0), Reader::in_order(&logs, TimeSettings::default().max_ahead).engine.digest(0));
}

/// A partition of records that are no events moves and stands still in event time: waited for twelve times as long, not for ever.
#[test]
fn a_partition_without_an_event_is_not_waited_for_for_ever() {
    let mut reader = reader(&[every_second(0, 100, 1), vec![(None, 0); 1_000]]);
    assert!(!reader.read(0));
    for second in 0..59 {
        assert!(reader.read(1) && reader.logs[0].held, "{second}");
        wait(&mut reader, 1);
    }
    assert!(reader.given_up.is_empty());
    assert!(reader.read(1));
    wait(&mut reader, 2);
    assert_eq!(reader.given_up, [1]);
    (0..100).for_each(|_| assert!(reader.read(0)));
    // Read to its end there is nothing more to wait for, and nothing is missing.
    while reader.read(1) {}
    reader.tell();
    assert!(!reader.engine.condition().incomplete);
}

/// An idle partition beside one that does not move: event time follows the clock again once that one is given up.
#[test]
fn a_partition_that_does_not_move_stops_no_cooling() {
    let mut reader = reader(&[every_second(0, 10, 1), every_second(0, 10, 2)]);
    read_to(&mut reader, 5);
    reader.logs[1].away = true;
    reader.logs[0].records.truncate(5);
    reader.tell();
    let before = reader.engine.condition().watermark;
    wait(&mut reader, 9);
    assert_eq!((reader.engine.condition().watermark, reader.given_up.len()), (before, 0));
    wait(&mut reader, 20);
    assert_eq!(reader.given_up, [1]);
    assert!(reader.engine.condition().watermark > before);
}

/// A producer whose clock is fast by less than `max_ahead` stops nobody for longer than it takes to read what is there.
#[test]
fn a_fast_clock_within_the_limit_costs_nothing() {
    let mut logs = [every_second(0, 100, 1), every_second(0, 100, 2)];
    logs[0].insert(50, (Some(at(54_900)), 7));
    let mut reader = reader(&logs);
    assert!(reader.read_all(&[0, 0, 1]) && reader.refused.is_empty());
    assert_eq!(reader.engine.digest(0), Reader::in_order(&logs, TimeSettings::default().max_ahead).engine.digest(0));
}

/// A clock that is set back or forward, or stands still, changes no count: event time alone moves panes.
#[test]
fn a_clock_that_jumps_changes_no_count() {
    let logs = [every_second(0, 300, 1), every_second(0, 300, 2)];
    let mut steady = reader(&logs);
    assert!(steady.read_all(&[0, 1]));
    let year = Span::from_secs(31_536_000);
    let mut jumping = reader(&logs);
    for round in 1..=300usize {
        let start = jumping.now;
        jumping.now =
            if round % 2 == 0 { start.saturating_sub(year) } else { start.saturating_add(year.saturating_mul(2)) };
        jumping.engine.handle_clock_set(jumping.now);
        read_to(&mut jumping, round);
        jumping.now = start;
        jumping.engine.handle_clock_set(jumping.now);
        jumping.tell();
    }
    assert!(jumping.refused.is_empty() && jumping.given_up.is_empty());
    assert_eq!(jumping.engine.digest(0), steady.engine.digest(0));
    assert_eq!(jumping.engine.condition().watermark, steady.engine.condition().watermark);
}

/// What was taken away is missing for as long as a window reaches back to it; of partitions that exist and are not here, always.
#[test]
fn what_was_taken_away_makes_the_counts_incomplete() {
    let mut reader = reader(&[every_second(0, 400, 1), every_second(0, 400, 2)]);
    read_to(&mut reader, 100);
    assert!(!reader.engine.condition().incomplete);
    reader.engine.handle_lost(Partition(1));
    let lost = reader.engine.condition();
    assert!(lost.incomplete && lost.lag.is_none() && lost.completeness.counted == 1);
    reader.tell();
    assert!(!reader.engine.condition().incomplete, "it came back, and goes on where it was");
    reader.engine.handle_revoke(Partition(1));
    let log = reader.logs.pop().unwrap();
    assert!(reader.engine.condition().incomplete);
    (0..59).for_each(|_| assert!(reader.read(0)));
    assert!(reader.engine.condition().incomplete);
    (0..2).for_each(|_| assert!(reader.read(0)));
    assert!(!reader.engine.condition().incomplete);
    reader.engine.handle_partitions(2);
    let half = reader.engine.condition();
    assert!(half.incomplete && (half.completeness.counted, half.completeness.exist) == (1, 2));
    reader.logs.push(log);
    reader.tell();
    assert!(!reader.engine.condition().incomplete && reader.engine.condition().warming_up, "a new one starts cold");
}
