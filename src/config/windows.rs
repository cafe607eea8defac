//! What windows a keyspace can have.

use crate::engine::WindowSettings;
use crate::units::Span;

/// The most panes of a window: each costs a row of the sketch.
pub const MAX_PANES: u64 = 360;
/// The shortest pane.
pub const MIN_PANE: Span = Span::from_millis(100);
/// The longest window.
pub const MAX_WINDOW: Span = Span::from_secs(24 * 3600);

/// The windows of a keyspace that names none: ten seconds by one, a minute by five.
pub const DEFAULT_WINDOWS: [WindowSettings; 2] = [
    WindowSettings { length: Span::from_secs(10), pane: Span::from_secs(1) },
    WindowSettings { length: Span::from_secs(60), pane: Span::from_secs(5) },
];

/// The rule that one window breaks, with the remedy.
pub(super) fn check(window: WindowSettings) -> Option<&'static str> {
    let WindowSettings { length, pane } = window;
    if pane < MIN_PANE {
        return Some("the pane is shorter than 100ms; choose a longer one");
    }
    if length > MAX_WINDOW {
        return Some("the window is longer than 24h; choose a shorter one");
    }
    if length.as_millis() == 0 || !length.as_millis().is_multiple_of(pane.as_millis()) {
        return Some("the pane does not divide the window; choose a window that is a whole number of panes");
    }
    if length.as_millis() / pane.as_millis() > MAX_PANES {
        return Some("the window has more than 360 panes; choose a longer pane or a shorter window");
    }
    None
}

/// The rule that two windows break together, with the remedy.
pub(super) fn check_pair(short: WindowSettings, long: WindowSettings) -> Option<&'static str> {
    if long.length <= short.length {
        return Some("the second window should be longer than the first; swap them or leave one out");
    }
    if !long.pane.as_millis().is_multiple_of(short.pane.as_millis()) {
        return Some("the second window's pane should be a multiple of the first one's, e.g. \"10s/1s\", \"60s/5s\"");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(length: &str, pane: &str) -> WindowSettings {
        WindowSettings { length: length.parse().unwrap(), pane: pane.parse().unwrap() }
    }

    #[test]
    fn panes_divide_windows_and_stay_few() {
        for (length, pane) in [("10s", "1s"), ("100ms", "100ms"), ("6m", "1s"), ("24h", "4m")] {
            assert_eq!(check(window(length, pane)), None, "{length}/{pane}");
        }
        for (length, pane) in
            [("10s", "3s"), ("0s", "1s"), ("1s", "99ms"), ("361s", "1s"), ("25h", "1h"), ("1s", "2s"), ("1s", "0s")]
        {
            assert!(check(window(length, pane)).is_some(), "{length}/{pane}");
        }
    }

    #[test]
    fn two_windows_nest() {
        let [short, long] = DEFAULT_WINDOWS;
        assert_eq!(check_pair(short, long), None);
        assert!(check_pair(long, short).is_some());
        assert!(check_pair(window("10s", "2s"), window("60s", "5s")).is_some());
    }
}
