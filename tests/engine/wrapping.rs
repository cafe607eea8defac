//! 2^32 events in a window: counters of 32 bits wrap, the keyspace says so, and no bound is wrong. A window merged with itself is
//! doubled, so that no such stream has to be counted.

use keyheat::engine::{CountingSettings, Engine, EngineSettings, MergeError, Window};
use keyheat::input::AccessEvent;
use keyheat::units::{Estimate, Partition};

use crate::oracle::{absolute, at, settings, window};

/// `listed` names a pane.
fn plain(listed: usize) -> EngineSettings {
    let mut settings = settings(&[window(4_000, 1_000), window(12_000, 3_000)], &[absolute(10.0)]);
    settings.keyspaces[0].counting =
        CountingSettings { width_log2: 8, sample_k: listed / 2, seed: 5, ..CountingSettings::default() };
    settings
}

const COUNTS: [(&str, u64); 3] = [("a", 48), ("b", 12), ("c", 4)];

/// 64 events of three keys over three panes, doubled so many times.
fn doubled(settings: &EngineSettings, times: u32) -> Window {
    let mut engine = Engine::new(settings.clone());
    for (key, count) in COUNTS {
        for n in 0..count {
            let ms = i64::try_from(n % 3).unwrap() * 1_000;
            engine.handle_event(Partition(0), &AccessEvent::new(at(ms), key.as_bytes()), at(ms)).unwrap();
        }
    }
    let mut window = engine.window(0).unwrap();
    for _ in 0..times {
        let same = window.clone();
        window.merge(&same).unwrap();
    }
    window
}

#[test]
fn below_2_to_the_32_nothing_is_lost() {
    for listed in [2, 100] {
        let settings = plain(listed);
        let window = doubled(&settings, 25);
        assert_eq!((window.events(0), window.is_wrapped(0)), (1 << 31, false));
        let mut engine = Engine::new(settings.clone());
        engine.restore(0, &window).unwrap();
        for (key, count) in COUNTS {
            let truth = count << 25;
            for bounds in [window.estimate(0, key.as_bytes()), engine.estimate(0, 1, key.as_bytes())] {
                assert!(bounds.lower <= truth && truth <= bounds.upper, "{key}: {truth} in {bounds}");
                assert!(bounds.upper < 1 << 31, "{key}: {bounds}");
            }
        }
        assert!(engine.status(0).windows.iter().all(|window| !window.wrapped));
    }
}

#[test]
fn from_2_to_the_32_on_bounds_stay_true_and_the_keyspace_says_so() {
    for listed in [2, 100] {
        let settings = plain(listed);
        for times in [26, 28, 31, 32, 33] {
            let window = doubled(&settings, times);
            let read = Window::from_bytes(&window.to_bytes(), &settings.keyspaces[0], &settings.time).unwrap();
            assert_eq!(read.to_bytes(), window.to_bytes());
            let mut engine = Engine::new(settings.clone());
            engine.restore(0, &read).unwrap();
            for number in 0..2 {
                assert!(window.is_wrapped(number) && read.is_wrapped(number));
                let status = engine.status(0).windows.swap_remove(number);
                assert!(status.wrapped && status.recall_above >= Some(64 << times), "{status:?}");
                if let Some(median) = status.median {
                    assert!(median.lower <= 12 << times && median.upper >= 12 << times, "{median} at {times}");
                }
            }
            // Two more events: one in the open pane, one late.
            for ms in [2_100, 1_100] {
                engine.handle_event(Partition(0), &AccessEvent::new(at(ms), b"c"), at(2_100)).unwrap();
            }
            for (key, count) in COUNTS {
                for number in 0..2 {
                    let before = count << times;
                    let truth = before + if key == "c" { 2 } else { 0 };
                    let holds = |bounds: Estimate, truth: u64| bounds.lower <= truth && truth <= bounds.upper;
                    assert!(holds(read.estimate(number, key.as_bytes()), before), "{key} doubled {times} times");
                    assert!(holds(engine.estimate(0, number, key.as_bytes()), truth), "{key} doubled {times} times");
                    let top = engine.top_keys(0, number, 10);
                    let top = top.iter().find(|(name, _)| **name == *key.as_bytes());
                    assert!(top.is_none_or(|(_, bounds)| holds(*bounds, truth)), "{key}: {top:?}");
                }
            }
            for hot in engine.hot_keys(0) {
                let truth = COUNTS.iter().find(|(key, _)| *hot.key == *key.as_bytes()).unwrap().1 << times;
                assert!(hot.reason.count.upper >= truth, "{hot:?}");
            }
            // It passes: a window later all is as before.
            for second in 3..40 {
                let ms = second * 1_000;
                engine.handle_event(Partition(0), &AccessEvent::new(at(ms), b"a"), at(ms)).unwrap();
            }
            assert_eq!(engine.estimate(0, 0, b"a"), Estimate::exact(4), "doubled {times} times");
            assert_eq!(engine.estimate(0, 1, b"b"), Estimate::exact(0), "doubled {times} times");
            assert!(engine.status(0).windows.iter().all(|window| !window.wrapped));
        }
    }
}

#[test]
fn more_events_than_can_be_added_are_refused() {
    let mut window = doubled(&plain(100), 42);
    let same = window.clone();
    let before = window.to_bytes();
    let error = window.merge(&same).unwrap_err();
    assert_eq!(error, MergeError::TooManyEvents(1 << 49));
    assert_eq!(window.to_bytes(), before);
    assert!(error.to_string().contains("562949953421312 events"), "{error}");
}
