//! Pictures of the screen.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

use super::{Theme, draw};
use crate::protocol::State;
use crate::simulate::demo::fixture::{version, view_at_start, view_while_moving};
use crate::simulate::demo::{DemoView, Line, Tone};
use crate::units::Span;

fn terminal(view: &DemoView, width: u16, height: u16, theme: Theme) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view, theme)).unwrap();
    terminal
}

fn picture(view: &DemoView, width: u16, height: u16) -> String {
    terminal(view, width, height, Theme::new(false)).backend().to_string()
}

fn closed() -> DemoView {
    let mut view = view_while_moving();
    view.elapsed = Span::from_millis(24_000);
    for shard in &mut view.shards {
        shard.calls_per_s = 275.0;
    }
    view.imbalance = Some(1.04);
    view.before_and_after.1 = Some(1.04);
    view.missing = None;
    if let Some(migration) = &mut view.migration {
        (migration.state, migration.version) = (State::Settled, version(6));
        migration.reached[5] = Some(Span::from_millis(14_100));
    }
    for router in &mut view.routers {
        (router.applied, router.acknowledged) = (Some(version(6)), true);
    }
    view.requests.waiting = 0;
    view.lines.push(Line {
        at: Span::from_millis(18_900),
        tone: Tone::Good,
        text: "the hottest shard takes 1.04 times the median shard: the loop is closed".to_owned(),
    });
    view
}

#[test]
fn at_the_start() {
    insta::assert_snapshot!(picture(&view_at_start(), 80, 24));
}

#[test]
fn while_records_move() {
    insta::assert_snapshot!(picture(&view_while_moving(), 80, 24));
}

#[test]
fn when_the_loop_is_closed_on_a_larger_terminal() {
    insta::assert_snapshot!(picture(&closed(), 110, 34));
}

#[test]
fn on_a_terminal_that_is_too_small() {
    insta::assert_snapshot!(picture(&view_while_moving(), 46, 8));
}

#[test]
fn every_size_is_drawn() {
    for width in 1..130 {
        for height in 1..40 {
            picture(&view_while_moving(), width, height);
        }
    }
}

#[test]
fn without_colours_nothing_is_coloured() {
    let colours = |theme| {
        let terminal = terminal(&view_while_moving(), 100, 30, theme);
        let cells = terminal.backend().buffer().content().to_vec();
        cells.iter().filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset).count()
    };
    assert_eq!(colours(Theme::new(false)), 0);
    assert!(colours(Theme::new(true)) > 0);
}
