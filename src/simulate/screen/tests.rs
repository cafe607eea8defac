//! Pictures of the screen.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

use super::{Theme, draw};
use crate::protocol::{Layout, State, Version};
use crate::simulate::demo::{
    DemoView, KeyView, Line, Migration, Reads, RequestsView, RouterStand, ShardLoadView, Tone,
};
use crate::units::{Estimate, Rate, Span};

fn terminal(view: &DemoView, width: u16, height: u16, theme: Theme) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view, theme)).unwrap();
    terminal
}

fn picture(view: &DemoView, width: u16, height: u16) -> String {
    terminal(view, width, height, Theme::new(false)).backend().to_string()
}

const fn version(seq: u64) -> Version {
    Version { epoch: 1, seq }
}

fn starting() -> DemoView {
    let shard = |number| ShardLoadView { name: format!("s{number}"), calls_per_s: 0.0 };
    let router = |number| RouterStand { id: format!("router-{number}"), applied: None, acknowledged: false };
    DemoView {
        elapsed: Span::from_millis(400),
        length: Span::from_secs(60),
        shards: (0..8).map(shard).collect(),
        scale_per_s: 0.0,
        capacity_per_s: 900,
        imbalance: None,
        before_and_after: (None, None),
        keys: Vec::new(),
        waiting_for: Some("warming up"),
        migration: None,
        routers: (1..=3).map(router).collect(),
        reads: Reads::default(),
        requests: RequestsView::default(),
        lines: Vec::new(),
        missing: Some("no client has turned hot yet"),
        http: None,
    }
}

fn moving() -> DemoView {
    let mut view = starting();
    view.elapsed = Span::from_millis(13_700);
    for (number, shard) in view.shards.iter_mut().enumerate() {
        shard.calls_per_s = if number == 3 { 1104.0 } else { 140.0 + f64::from(u32::try_from(number).unwrap()) };
    }
    view.scale_per_s = 1200.0;
    view.imbalance = Some(7.613);
    view.before_and_after = (Some(7.702), None);
    view.waiting_for = None;
    view.keys = vec![
        KeyView {
            key: "acme".to_owned(),
            confirmed: true,
            count: Estimate { lower: 4310, upper: 4312 },
            window: Span::from_secs(5),
            threshold: 1500,
            rate: Rate::per_second(862.0).unwrap(),
        },
        KeyView {
            key: r"\u{1b}[31m-a-very-long-key".to_owned(),
            confirmed: false,
            count: Estimate { lower: 0, upper: 1502 },
            window: Span::from_secs(5),
            threshold: 1500,
            rate: Rate::default(),
        },
    ];
    let at = |millis| Some(Span::from_millis(millis));
    view.migration = Some(Migration {
        name: version(2),
        version: version(5),
        state: State::Moving,
        to: Layout::split(1, 8, 1291).unwrap(),
        reached: [None, at(10_700), at(11_000), at(11_300), at(12_400), None],
        acknowledged: None,
        moved: Some((1204, 2000)),
    });
    view.routers[0].acknowledged = true;
    for router in &mut view.routers {
        router.applied = Some(version(5));
    }
    view.reads = Reads { checked: 12_345, missed: 0 };
    view.requests = RequestsView {
        sent: 30_000,
        refused: 1234,
        waiting: 3,
        longest_wait: Span::from_millis(214),
        failed: 0,
        events: 30_000,
        events_lost: 0,
    };
    let line = |millis, tone, text: &str| Line { at: Span::from_millis(millis), tone, text: text.to_owned() };
    view.lines = vec![
        line(8000, Tone::Bad, "client acme turns hot: 45 % of all requests"),
        line(10_700, Tone::Step, "plan 1.2 prepare: acme into 8 buckets 1291..1298; reads look there too"),
        line(11_000, Tone::Step, "plan 1.3 hold: writes of acme wait"),
        line(11_300, Tone::Step, "plan 1.4 dual: writes go to the buckets, reads look in both places"),
        line(12_400, Tone::Step, "plan 1.5 moving: the owner moves the old records"),
    ];
    view.http = "127.0.0.1:9464".parse().ok();
    view
}

fn closed() -> DemoView {
    let mut view = moving();
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
    insta::assert_snapshot!(picture(&starting(), 80, 24));
}

#[test]
fn while_records_move() {
    insta::assert_snapshot!(picture(&moving(), 80, 24));
}

#[test]
fn when_the_loop_is_closed_on_a_larger_terminal() {
    insta::assert_snapshot!(picture(&closed(), 110, 34));
}

#[test]
fn on_a_terminal_that_is_too_small() {
    insta::assert_snapshot!(picture(&moving(), 46, 8));
}

#[test]
fn every_size_is_drawn() {
    for width in 1..130 {
        for height in 1..40 {
            picture(&moving(), width, height);
        }
    }
}

#[test]
fn without_colours_nothing_is_coloured() {
    let colours = |theme| {
        let terminal = terminal(&moving(), 100, 30, theme);
        let cells = terminal.backend().buffer().content().to_vec();
        cells.iter().filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset).count()
    };
    assert_eq!(colours(Theme::new(false)), 0);
    assert!(colours(Theme::new(true)) > 0);
}
