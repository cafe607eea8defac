//! What each panel says.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span as Text};
use ratatui::widgets::{Block, Paragraph};

use super::theme::Theme;
use crate::protocol::State;
use crate::simulate::demo::{DemoView, KeyView, Migration, RouterStand, grouped};
use crate::units::Span;

/// A shard with more than so many times the median's load is shown as hot.
const HOT_SHARD: f64 = 2.0;
/// Eighths of a character cell, from nothing to a whole one.
const EIGHTHS: [&str; 9] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

/// One line: what it is, how far it has run, how to end it.
pub(super) fn title(frame: &mut Frame<'_>, area: Rect, view: &DemoView, theme: Theme) {
    let left = Line::from(vec![
        Text::styled(" keyheat demo ", theme.strong()),
        Text::styled(format!(" {} of {} ", clock(view.elapsed), clock(view.length)), theme.plain()),
        match view.missing {
            None => Text::styled(" loop closed ", theme.good()),
            Some(_) => Text::styled(format!(" {} ", view.waiting_for.unwrap_or("running")), theme.busy()),
        },
    ]);
    let http = view.http.map_or_else(String::new, |http| format!("http://{http}/metrics   "));
    let right = Line::styled(format!("{http}q ends "), theme.dim()).right_aligned();
    frame.render_widget(left, area);
    frame.render_widget(right, area);
}

/// Load by shard as bars.
pub(super) fn load(frame: &mut Frame<'_>, area: Rect, view: &DemoView, theme: Theme) {
    let block = framed("Load by shard, calls/s", theme);
    let name_width = view.shards.iter().map(|shard| shard.name.chars().count()).max().unwrap_or(0).min(12);
    let room = usize::from(block.inner(area).width).saturating_sub(name_width + 8);
    let mut rates: Vec<f64> = view.shards.iter().map(|shard| shard.calls_per_s).collect();
    rates.sort_by(f64::total_cmp);
    let median = rates.get(rates.len() / 2).copied().unwrap_or(0.0);
    let lines = view.shards.iter().map(|shard| {
        let hot = shard.calls_per_s > HOT_SHARD * median;
        let style = if hot { theme.bad() } else { theme.good() };
        let name: String = shard.name.chars().take(name_width).collect();
        let drawn = bar(shard.calls_per_s, view.scale_per_s, room);
        Line::from(vec![
            Text::styled(format!(" {name:<name_width$} "), theme.plain()),
            Text::styled(format!("{drawn}{:>1$}", "", room.saturating_sub(drawn.chars().count())), style),
            Text::styled(format!("{:>5.0}", shard.calls_per_s), if hot { theme.strong() } else { theme.plain() }),
        ])
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(block), area);
}

/// A bar of at most `width` characters.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and eight times the width")]
#[expect(clippy::cast_precision_loss, reason = "the width of a terminal")]
fn bar(value: f64, scale: f64, width: usize) -> String {
    let part = if scale > 0.0 { (value / scale).clamp(0.0, 1.0) } else { 0.0 };
    let eighths = (part * (width * 8) as f64).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// The numbers that the demo is about.
pub(super) fn numbers(frame: &mut Frame<'_>, area: Rect, view: &DemoView, theme: Theme) {
    let times = |imbalance: Option<f64>| imbalance.map_or_else(|| "-".to_owned(), |times| format!("{times:.2}"));
    let (before, after) = view.before_and_after;
    let row = |name: &str, value: String, style| {
        Line::from(vec![
            Text::styled(format!(" {name:<20}"), theme.plain()),
            Text::styled(format!("{value:>12}"), style),
        ])
    };
    let judged = |bad: bool| if bad { theme.bad() } else { theme.good() };
    let lines = vec![
        row("now", times(view.imbalance), theme.strong()),
        row("before the split", times(before), theme.plain()),
        row("after the split", times(after), theme.good()),
        row("reads checked", grouped(view.reads.checked), theme.plain()),
        row("reads missed", grouped(view.reads.missed), judged(view.reads.missed > 0)),
        row("refused, shard full", grouped(view.requests.refused), theme.plain()),
        row(
            "writes waiting",
            view.requests.waiting.to_string(),
            if view.requests.waiting > 0 { theme.busy() } else { theme.plain() },
        ),
        row("longest wait", view.requests.longest_wait.to_string(), theme.plain()),
    ];
    frame.render_widget(Paragraph::new(lines).block(framed("Hottest shard ÷ median shard", theme)), area);
}

/// What the service counts: every number with both bounds.
pub(super) fn keys(frame: &mut Frame<'_>, area: Rect, view: &DemoView, theme: Theme) {
    let roomy = area.width >= 56;
    let line = |key: &KeyView| {
        let threshold = if roomy { format!(", threshold {}", key.threshold) } else { String::new() };
        let name: String = key.key.chars().take(12).collect();
        let (word, style) = if key.confirmed { ("hot", theme.bad()) } else { ("suspect", theme.busy()) };
        Line::from(vec![
            Text::styled(format!(" {name:<12} "), theme.strong()),
            Text::styled(format!("{word:<7} "), style),
            Text::styled(
                format!("{}..{} in {}{threshold}", key.count.lower, key.count.upper, key.window),
                theme.plain(),
            ),
        ])
    };
    let mut lines: Vec<Line<'_>> = view.keys.iter().map(line).collect();
    if lines.is_empty() {
        lines.push(Line::styled(" none", theme.dim()));
    }
    frame.render_widget(Paragraph::new(lines).block(framed("Hot keys: requests, lower..upper bound", theme)), area);
}

/// Which version each router has applied, and whether it has acknowledged the newest record.
pub(super) fn routers(frame: &mut Frame<'_>, area: Rect, view: &DemoView, theme: Theme) {
    let line = |router: &RouterStand| {
        let (word, style) = match (&view.migration, router.applied, router.acknowledged) {
            (_, None, _) => ("joins".to_owned(), theme.busy()),
            (None, Some(_), _) => ("serves".to_owned(), theme.plain()),
            (Some(plan), Some(_), true) => (format!("ack {}", plan.state.label()), theme.good()),
            (Some(plan), Some(_), false) => (format!("not yet {}", plan.state.label()), theme.busy()),
        };
        let applied = router.applied.map_or_else(|| "-".to_owned(), |version| version.to_string());
        Line::from(vec![
            Text::styled(format!(" {:<10.10} ", router.id), theme.plain()),
            Text::styled(format!("{applied:<7} "), theme.strong()),
            Text::styled(word, style),
        ])
    };
    let lines: Vec<Line<'_>> = view.routers.iter().map(line).collect();
    frame.render_widget(Paragraph::new(lines).block(framed("Routers: applied version", theme)), area);
}

/// The migration's states with the time at which each was reached.
pub(super) fn plan(frame: &mut Frame<'_>, area: Rect, view: &DemoView, theme: Theme) {
    let Some(migration) = &view.migration else {
        let text = Line::styled(" none: every key is in one place", theme.dim());
        frame.render_widget(Paragraph::new(text).block(framed("Plan", theme)), area);
        return;
    };
    let states = [State::Prepare, State::Hold, State::Dual, State::Moving, State::Settled];
    let mut steps = Vec::new();
    for state in states {
        if !steps.is_empty() {
            steps.push(Text::styled(" ▸ ", theme.dim()));
        }
        steps.extend(step(migration, state, theme));
    }
    let title = format!("Plan {}: the client into {} buckets", migration.version, migration.to.buckets());
    let lines = vec![Line::from([vec![Text::raw(" ")], steps].concat()), detail(migration, theme)];
    frame.render_widget(Paragraph::new(lines).block(framed(&title, theme)), area);
}

fn step<'a>(migration: &Migration, state: State, theme: Theme) -> Vec<Text<'a>> {
    let at = State::ALL.iter().position(|other| *other == state).and_then(|at| migration.reached[at]);
    let name = state.label();
    let style = if migration.state == state {
        if state == State::Settled { theme.good().patch(theme.strong()) } else { theme.busy().patch(theme.strong()) }
    } else if at.is_some() {
        theme.plain()
    } else {
        theme.dim()
    };
    let mark = if migration.state == state { "[" } else { "" };
    let end = if migration.state == state { "]" } else { "" };
    let time = at.map_or_else(String::new, |at| format!(" {:.1}s", at.as_secs_f64()));
    vec![Text::styled(format!("{mark}{name}{time}{end}"), style)]
}

fn detail<'a>(migration: &Migration, theme: Theme) -> Line<'a> {
    let text = match (migration.state, migration.moved) {
        (State::Proposed, _) => "waits for approval".to_owned(),
        (State::Prepare, _) => "writes as before; reads look in the buckets, then at the bare key".to_owned(),
        (State::Hold, _) => "writes of this client wait; reads look in both places".to_owned(),
        (State::Dual, _) => "writes go to the buckets; reads look there, then at the bare key".to_owned(),
        (State::Moving, Some((moved, expected))) => {
            format!("the owner has moved {} of {} records", grouped(moved), grouped(expected))
        }
        (State::Moving, None) => "the owner moves the old records".to_owned(),
        (State::Settled, _) => "reads and writes use the buckets only".to_owned(),
    };
    Line::styled(format!(" {text}"), theme.plain())
}

/// The newest lines of the story.
pub(super) fn log(frame: &mut Frame<'_>, area: Rect, view: &DemoView, theme: Theme) {
    let block = framed("What happened", theme);
    let room = usize::from(block.inner(area).height);
    let from = view.lines.len().saturating_sub(room);
    let lines = view.lines.iter().skip(from).map(|line| {
        Line::from(vec![
            Text::styled(format!("{:>6.1} s  ", line.at.as_secs_f64()), theme.dim()),
            Text::styled(line.text.clone(), theme.tone(line.tone)),
        ])
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(block), area);
}

fn framed<'a>(title: &str, theme: Theme) -> Block<'a> {
    Block::bordered().border_style(theme.dim()).title(Text::styled(format!(" {title} "), theme.strong()))
}

/// Minutes and seconds.
fn clock(span: Span) -> String {
    let secs = span.as_millis() / 1000;
    format!("{}:{:02}", secs / 60, secs % 60)
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn bars_keep_to_their_room() {
        assert_eq!(bar(0.0, 100.0, 4), "");
        assert_eq!(bar(50.0, 100.0, 4), "██");
        assert_eq!(bar(53.0, 100.0, 4), "██▏");
        assert_eq!(bar(1000.0, 100.0, 4), "████");
        assert_eq!(bar(1.0, 0.0, 4), "");
    }
}
