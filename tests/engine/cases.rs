//! Problems reported about other systems, by their fixed ids; the sources are named at each.

use std::collections::BTreeMap;

use keyheat::engine::{Change, HotOn, Progress, RuleKind, Subject};
use keyheat::input::{AccessEvent, Operation, Refusal};
use keyheat::units::{EventTime, Offset, Partition, Share, Span};

use crate::oracle::{Pair, absolute, at, relative, settings, share, window};

/// A15 (elastic/rally#79, gravitee-io/issues#869, Netflix/atlas#1673, allinurl/goaccess#259): seconds and microseconds taken for
/// milliseconds, 0, -1 and the largest number. What is no time at all has no value; all others are late or in the future.
#[test]
fn a15_times_of_another_unit_move_nothing() {
    for millis in [0, -1, i64::MIN, i64::MAX, 1_700_000_000_000_000] {
        assert!(EventTime::from_millis(millis).is_err(), "{millis}");
    }
    let rules = [absolute(1_000.0)];
    let run = |odd: &[EventTime]| {
        let mut pair = Pair::new(settings(&[window(10_000, 1_000), window(60_000, 5_000)], &rules));
        for second in 0..200i64 {
            pair.event(second * 1_000, "A");
            if second == 100 {
                odd.iter().for_each(|time| pair.send(0, &AccessEvent::new(*time, b"A"), at(second * 1_000)));
            }
        }
        pair
    };
    let seconds = EventTime::from_millis(1_700_000_000).unwrap();
    let odd = run(&[EventTime::MIN, seconds, EventTime::MAX, EventTime::from_millis(99_999_999_999_999).unwrap()]);
    let plain = run(&[]);
    assert_eq!((odd.refused(Refusal::TooLate), odd.refused(Refusal::Future)), (2, 2));
    assert_eq!(odd.engine.digest(0), plain.engine.digest(0));
    assert_eq!(odd.engine.condition(), plain.engine.condition());
}

/// A24 (amazon-archives/aws-waf-sample#28, aws-samples/amazon-cloudfront-access-logs-queries#21): logs that come up to a day late.
#[test]
fn a24_events_of_twenty_hours_ago_make_nothing_hot() {
    let mut pair = Pair::new(settings(&[window(10_000, 1_000), window(60_000, 5_000)], &[absolute(10.0)]));
    let now_ms = 20 * 3_600_000;
    for n in 0..5_000i64 {
        if n % 50 == 0 {
            pair.event(now_ms + n * 10, "live");
        }
        pair.send(1, &AccessEvent::new(at(n), b"old"), at(now_ms + n * 10));
    }
    assert_eq!((pair.refused(Refusal::TooLate), pair.engine.status(0).too_late), (5_000, 5_000));
    assert_eq!(pair.engine.estimate(0, 1, b"old").upper, 0);
    assert!(pair.verdicts.is_empty(), "{:?}", pair.verdicts);
    assert_eq!(pair.engine.condition().watermark, Some(at(now_ms + 49_500 - 2_000)));
}

/// H2 (mvanhorn/printing-press-library#959): few keys are active and the busiest of them is the median.
#[test]
fn h2_a_median_over_few_keys_is_not_applied() {
    let windows = [window(60_000, 5_000)];
    let rules = [relative(10.0, 20), absolute(50.0 / 60.0)];
    let mut pair = Pair::new(settings(&windows, &rules));
    for minute in 0..59i64 {
        let (times, client) =
            if minute == 40 { (91, "203.0.113.9") } else { (1 + usize::try_from(minute % 3).unwrap(), "198.51.100.7") };
        for n in 0..times {
            pair.event(minute * 60_000 + i64::try_from(n).unwrap() * 600, client);
        }
    }
    pair.event(59 * 60_000, "198.51.100.7");
    let hot: Vec<_> = pair.verdicts.iter().filter(|verdict| verdict.change == Change::Hot).collect();
    assert_eq!(hot.len(), 1, "{hot:?}");
    assert_eq!(hot[0].subject, Subject::Key((*b"203.0.113.9").into()));
    assert_eq!((hot[0].reason.rule, hot[0].reason.threshold), (RuleKind::Absolute, 50));
    assert!(pair.engine.status(0).windows[0].keys.upper < 8, "the relative rule had too few keys to apply");
}

/// H5 (grafana/grafana#6202, prometheus/alertmanager#204): a count that swings round the threshold.
#[test]
fn h5_a_count_round_the_threshold_gives_one_message() {
    let mut pair = Pair::new(settings(&[window(10_000, 1_000)], &[absolute(10.0)]));
    for n in 0..60i64 {
        for event in 0..(99 + 2 * (n % 2)) {
            pair.event(n * 10_000 + event * 99, "swings");
        }
    }
    assert_eq!(pair.changes("swings"), [Change::Hot], "one message, no flapping");
    // Silence clears it, once.
    for second in 0..120i64 {
        pair.event(600_000 + second * 1_000, "other");
    }
    assert_eq!(pair.changes("swings"), [Change::Hot, Change::Cleared]);
}

/// H9 (valkey-io/valkey#3708): a backlog drained at 500 times its own speed.
#[test]
fn h9_a_backlog_is_counted_by_event_time() {
    let mut pair = Pair::new(settings(&[window(10_000, 1_000), window(60_000, 5_000)], &[absolute(1_000.0)]));
    let hour_ms = 3_600_000;
    let progress = Progress { partition: Partition(0), position: Offset(0), end: Some(Offset(360_000)), paused: false };
    pair.engine.handle_progress(progress, at(hour_ms));
    for n in 0..36_000i64 {
        // The clock stands still at the end of the hour while the first six minutes are read.
        pair.send(0, &AccessEvent::new(at(n * 10), b"A"), at(hour_ms));
        assert!(n < 7_000 || pair.engine.condition().catching_up);
    }
    assert!(pair.verdicts.is_empty(), "{:?}", pair.verdicts);
    let count = pair.engine.estimate(0, 0, b"A");
    assert!(count.is_exact() && count.lower <= 1_000 && count.lower > 900, "100/s over 10 s: {count}");
    assert!(!pair.engine.condition().warming_up);
    pair.engine.handle_progress(Progress { position: Offset(360_000), ..progress }, at(hour_ms));
    assert!(!pair.engine.condition().catching_up);
}

/// H10 (laminardb/laminardb#388, turbolytics/sql-flow#358): one event from a fast clock.
#[test]
fn h10_an_event_from_the_future_moves_nothing() {
    let mut pair = Pair::new(settings(&[window(60_000, 5_000)], &[absolute(1_000.0)]));
    pair.send(0, &AccessEvent::new(at(86_400_000), b"A"), at(0));
    for second in 0..1_000i64 {
        pair.event(second * 1_000, "B");
    }
    assert_eq!((pair.refused(Refusal::Future), pair.refused(Refusal::TooLate)), (1, 0));
    assert_eq!(pair.engine.estimate(0, 0, b"B").lower, pair.count(0, b"B"));
    // One within the limit of 5 s is counted, and those of the right time after it are as well.
    pair.send(0, &AccessEvent::new(at(1_004_000), b"A"), at(999_000));
    pair.send(0, &AccessEvent::new(at(999_500), b"B"), at(999_500));
    assert_eq!((pair.refused(Refusal::Future), pair.refused(Refusal::TooLate)), (1, 0));
}

/// H11 (laminardb/laminardb#388, risingwavelabs/risingwave#23270): late events vanish and nobody counts them.
#[test]
fn h11_events_ten_minutes_late_are_counted_as_such() {
    let mut pair = Pair::new(settings(&[window(10_000, 1_000), window(60_000, 5_000)], &[absolute(10.0)]));
    pair.event(600_000, "on time");
    for n in 0..1_000i64 {
        pair.send(0, &AccessEvent::new(at(n), b"late"), at(600_000));
    }
    assert_eq!(pair.refused(Refusal::TooLate), 1_000);
    assert_eq!(pair.engine.status(0).too_late, 1_000);
    assert_eq!(pair.engine.estimate(0, 1, b"late").upper, 0);
    assert!(pair.changes("late").is_empty());
}

/// H14 (joshrotenberg/tower-resilience#433, plausible/analytics#6497): a burst over the edge of a fixed bucket.
#[test]
fn h14_a_burst_over_an_edge_is_seen_whole_and_two_apart_are_not_added() {
    let rules = [absolute(100.0 / 60.0)];
    let mut over = Pair::new(settings(&[window(60_000, 5_000)], &rules));
    over.events(59_900, "k", 60);
    over.events(60_100, "k", 60);
    assert_eq!(over.changes("k"), [Change::Hot]);
    assert_eq!(over.engine.estimate(0, 0, b"k").lower, 120);
    let mut apart = Pair::new(settings(&[window(60_000, 5_000)], &rules));
    apart.events(0, "k", 60);
    apart.events(60_100, "k", 60);
    assert!(apart.changes("k").is_empty());
    assert_eq!(apart.engine.estimate(0, 0, b"k").lower, 60);
}

/// H15 (redis/redis#4473, apache/datasketches-rust#70): a key that was hot long ago keeps its estimate.
#[test]
fn h15_what_was_hot_is_gone_with_its_window() {
    let mut settings = settings(&[window(10_000, 1_000), window(60_000, 5_000)], &[absolute(100.0)]);
    settings.keyspaces[0].clear_after = Span::from_secs(30);
    let mut pair = Pair::new(settings);
    for n in 0..10_000i64 {
        pair.event(n * 6, "A");
    }
    assert_eq!(pair.changes("A"), [Change::Hot]);
    for n in 0..300_000i64 {
        pair.event(60_000 + n * 120_000 / 300_000, &format!("once-{n}"));
    }
    assert_eq!(pair.changes("A"), [Change::Hot, Change::Cleared]);
    // Only what shares its cells is left: N/w is 2.3 here.
    assert!(pair.engine.estimate(0, 1, b"A").upper < 25, "{}", pair.engine.estimate(0, 1, b"A"));
    assert_eq!(pair.engine.estimate(0, 1, b"A").lower, 0);
    assert!(pair.engine.hot_keys(0).is_empty());
}

/// H22 (valkey-io/valkey#2961, redis/redis#4864): hot by reads and hot by writes need different cures.
#[test]
fn h22_reads_and_writes_are_carried_and_can_be_compared_alone() {
    let stream = |pair: &mut Pair| {
        for n in 0..5_000i64 {
            let operation = if n % 100 == 0 { Operation::Write } else { Operation::Read };
            if n % 5 == 0 {
                pair.request(n * 2, "read mostly", "s1", operation);
            }
            pair.request(n * 2, "written", "s2", Operation::Write);
            pair.request(n * 2, &format!("tail-{}", n % 997), "s3", Operation::Read);
        }
    };
    let mut all = Pair::new(settings(&[window(10_000, 1_000)], &[absolute(90.0)]));
    stream(&mut all);
    let hot = all.engine.hot_keys(0);
    let operations: BTreeMap<_, _> = hot.iter().map(|hot| (hot.key.to_vec(), hot.profile.operations)).collect();
    let mixed = operations[&b"read mostly"[..]];
    // Operations are counted from an eighth of the threshold of 900 on, every twentieth event of the key being a write.
    assert_eq!((mixed.reads, mixed.writes), (844, 44));
    let written = operations[&b"written"[..]];
    assert_eq!((written.reads, written.writes), (0, 5_000 - 112));
    assert_eq!(hot.iter().find(|hot| *hot.key == *b"written").unwrap().profile.shards[0].0.to_vec(), b"s2");

    let mut settings = settings(&[window(10_000, 1_000)], &[absolute(90.0)]);
    settings.keyspaces[0].hot_on = HotOn::Writes;
    let mut writes = Pair::new(settings);
    stream(&mut writes);
    let names: Vec<_> = writes.engine.hot_keys(0).iter().map(|hot| hot.key.to_vec()).collect();
    assert_eq!(names, [b"written"]);
}

/// H23 (awslabs/amazon-kinesis-client#50, tikv/pd#4588): a shard is hot though none of its keys is.
#[test]
fn h23_a_hot_shard_without_a_hot_key_and_a_hot_key_in_a_small_shard() {
    let mut settings = settings(&[window(10_000, 1_000)], &[share(0.002, 20)]);
    settings.keyspaces[0].shard_rules = vec![relative(5.0, 20)];
    let mut pair = Pair::new(settings);
    for n in 0..60_000i64 {
        let ms = n / 3;
        match n % 1_000 {
            // 32.8 % of all on shard 32, over some 12,000 keys.
            0..328 => pair.request(ms, &format!("k32-{}", (n * 7_919) % 12_000), "s32", Operation::Write),
            // 1 % on shard 5, about a quarter of it on one key.
            328..338 if n % 4 == 0 => pair.request(ms, "k5", "s5", Operation::Write),
            328..338 => pair.request(ms, &format!("k5-{n}"), "s5", Operation::Write),
            other => pair.request(ms, &format!("k-{n}"), &format!("s{}", 100 + other % 48), Operation::Write),
        }
    }
    assert_eq!(pair.shard_changes("s32").last(), Some(&Change::Hot));
    let hot: Vec<_> =
        pair.verdicts.iter().filter(|verdict| verdict.change == Change::Hot).map(|verdict| &verdict.subject).collect();
    assert_eq!(hot.iter().filter(|subject| matches!(subject, Subject::Key(_))).count(), 1, "{hot:?}");
    assert_eq!(pair.changes("k5").last(), Some(&Change::Hot));
    assert!(pair.shard_changes("s5").is_empty());
    let loads = pair.engine.shard_loads(0, 0);
    assert_eq!((loads.len(), loads[0].shard.to_vec()), (50, b"s32".to_vec()));
    let events = pair.engine.status(0).windows[0].events;
    assert_eq!(loads.iter().map(|load| load.count.lower).sum::<u64>(), events);
}

/// H23, other side: one busy shard among declared idle ones has a median of 0 and is found; two shards have no median.
#[test]
fn one_busy_shard_among_idle_ones_is_found() {
    let run = |declared: usize| {
        let mut settings = settings(&[window(10_000, 1_000)], &[]);
        settings.keyspaces[0].shard_rules = vec![relative(5.0, 20)];
        settings.keyspaces[0].declared_shards = (0..declared).map(|n| format!("s{n}").into_bytes()).collect();
        let mut pair = Pair::new(settings);
        for n in 0..3_000i64 {
            pair.request(n * 10, &format!("k{n}"), "s0", Operation::Read);
        }
        pair.shard_changes("s0").last().copied()
    };
    assert_eq!(run(4), Some(Change::Hot));
    assert_eq!(run(2), None);
}

/// H25: a flat stream, some dozens of keys whose counts differ by a few per cent, for two hours.
#[test]
fn h25_nothing_is_hot_in_a_flat_stream() {
    let mut settings = settings(&[window(10_000, 1_000), window(60_000, 5_000)], &[relative(4.0, 20), share(0.1, 20)]);
    settings.keyspaces[0].shard_rules = vec![relative(3.0, 20)];
    let mut pair = Pair::new(settings);
    for n in 0..240_000i64 {
        // 40 keys; key k is left out once in 50 + k of its turns.
        let key = n % 40;
        if (n / 40) % (50 + key) != 0 {
            pair.request(n * 30, &format!("key-{key}"), &format!("s{}", key % 8), Operation::Read);
        }
    }
    assert!(pair.verdicts.is_empty(), "{:?}", pair.verdicts);
}

/// Clears need `clear_after` below `clear` of the threshold; a share of the threshold above that keeps a key hot.
#[test]
fn a_key_stays_hot_between_the_clear_level_and_the_threshold() {
    let mut settings = settings(&[window(10_000, 1_000)], &[absolute(10.0)]);
    settings.keyspaces[0].clear = Share::new(0.7).unwrap();
    settings.keyspaces[0].clear_after = Span::from_secs(20);
    let mut pair = Pair::new(settings);
    let rate = |pair: &mut Pair, from_s: i64, to_s: i64, per_s: i64| {
        for second in from_s..to_s {
            (0..per_s).for_each(|n| pair.event(second * 1_000 + n, "k"));
            pair.event(second * 1_000 + 999, "clock");
        }
    };
    rate(&mut pair, 0, 20, 12);
    rate(&mut pair, 20, 200, 8);
    assert_eq!(pair.changes("k"), [Change::Hot]);
    rate(&mut pair, 200, 300, 6);
    assert_eq!(pair.changes("k"), [Change::Hot, Change::Cleared]);
    let cleared = pair.verdicts.last().unwrap();
    // 6/s fills the window at 210 s at the latest and 69 or fewer are seen from about 205 s on; 20 s later it is over.
    assert!(cleared.at >= at(222_000) && cleared.at <= at(234_000), "{}", cleared.at);
}

/// Traffic begins all at once on even shards: nobody is called hot because the others have not begun yet, and one that takes half of
/// all is.
#[test]
fn traffic_that_begins_at_once_makes_no_shard_hot() {
    let run = |busy: bool| {
        let mut settings = settings(&[window(10_000, 1_000)], &[]);
        settings.keyspaces[0].shard_rules = vec![relative(3.0, 20)];
        let mut pair = Pair::new(settings);
        for n in 0..600i64 {
            pair.request(n * 100, "before", &format!("s{}", n % 20), Operation::Read);
        }
        for n in 0..40_000i64 {
            let shard = if busy && n % 2 == 0 { 3 } else { (n * 7_919) % 20 };
            pair.request(60_000 + n / 4, &format!("k{n}"), &format!("s{shard}"), Operation::Read);
        }
        pair.verdicts
            .iter()
            .filter(|verdict| verdict.change == Change::Hot)
            .map(|verdict| verdict.subject.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(run(false), []);
    assert_eq!(run(true), [Subject::Shard((*b"s3").into())]);
}
