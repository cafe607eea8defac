//! The demo as plain lines, where there is no screen to draw on.

use super::story::{Line, Tone};
use super::summary::grouped;
use super::view::DemoView;
use crate::protocol::State;

/// One thing that happened, e.g. `   8.0 s  * client acme turns hot`.
#[must_use]
pub fn story_line(line: &Line) -> String {
    let mark = match line.tone {
        Tone::Step => "*",
        Tone::Good => "+",
        Tone::Bad => "!",
    };
    format!("{:>6.1} s {mark} {}", line.at.as_secs_f64(), line.text)
}

/// Everything that moves, in one line.
#[must_use]
pub fn status_line(view: &DemoView) -> String {
    let imbalance = view.imbalance.map_or_else(|| "-".to_owned(), |times| format!("{times:.2}"));
    let shards: Vec<String> =
        view.shards.iter().map(|shard| format!("{} {:.0}", shard.name, shard.calls_per_s)).collect();
    let keys = view.keys.iter().map(|key| {
        let word = if key.confirmed { "hot" } else { "suspect" };
        format!(" | {} {word} {}..{} in {}", key.key, key.count.lower, key.count.upper, key.window)
    });
    let plan = view.migration.as_ref().map_or_else(String::new, |migration| {
        let acked = view.routers.iter().filter(|router| router.acknowledged).count();
        let moved = match (migration.state, migration.moved) {
            (State::Moving, Some((moved, expected))) => format!(", {moved} of {expected} records moved"),
            _ => String::new(),
        };
        let (version, state, routers) = (migration.version, migration.state.label(), view.routers.len());
        format!(" | plan {version} {state}, {acked} of {routers} routers have acknowledged{moved}")
    });
    let state = view.waiting_for.map_or_else(String::new, |state| format!(" | {state}"));
    format!(
        "{:>6.1} s   hottest/median {imbalance} | calls/s {}{}{plan} | reads {} checked, {} missed{state}",
        view.elapsed.as_secs_f64(),
        shards.join(" "),
        keys.collect::<String>(),
        grouped(view.reads.checked),
        grouped(view.reads.missed),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::demo::fixture;
    use crate::units::Span;

    #[test]
    fn lines_say_what_the_screen_shows() {
        assert_eq!(
            status_line(&fixture::view_at_start()),
            "   0.4 s   hottest/median - | calls/s s0 0 s1 0 s2 0 s3 0 s4 0 s5 0 s6 0 s7 0 | reads 0 checked, 0 missed | warming up"
        );
        assert_eq!(
            status_line(&fixture::view_while_moving()),
            "  13.7 s   hottest/median 7.61 | calls/s s0 140 s1 141 s2 142 s3 1104 s4 144 s5 145 s6 146 s7 147 | acme hot \
             4310..4312 in 5s | \\u{1b}[31m-a-very-long-key suspect 0..1502 in 5s | plan 1.5 moving, 1 of 3 routers have \
             acknowledged, 1204 of 2000 records moved | reads 12,345 checked, 0 missed"
        );
        let line = Line { at: Span::from_millis(8049), tone: Tone::Bad, text: "client acme turns hot".to_owned() };
        assert_eq!(story_line(&line), "   8.0 s ! client acme turns hot");
    }
}
