//! Where each panel goes.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::widgets::Paragraph;

use super::panels;
use super::theme::Theme;
use crate::simulate::demo::DemoView;

/// The least width that everything fits into.
pub const MIN_WIDTH: u16 = 80;
/// The least height that everything fits into.
pub const MIN_HEIGHT: u16 = 24;

/// From this height on the plan's state is explained.
const ROOMY_HEIGHT: u16 = 27;
/// The most keys that are shown.
const KEYS: u16 = 3;

/// Draws the view.
pub fn draw(frame: &mut Frame<'_>, view: &DemoView, theme: Theme) {
    let area = frame.area();
    if area.width < MIN_WIDTH || area.height < MIN_HEIGHT {
        too_small(frame, area);
        return;
    }
    let shards = u16::try_from(view.shards.len()).unwrap_or(u16::MAX);
    let side = u16::try_from(view.routers.len()).unwrap_or(u16::MAX).max(KEYS);
    let rows = Layout::vertical([
        Constraint::Length(1),
        Constraint::Max(shards.saturating_add(2).max(10)),
        Constraint::Max(side.saturating_add(2)),
        Constraint::Length(if area.height < ROOMY_HEIGHT { 3 } else { 4 }),
        Constraint::Min(4),
    ]);
    let [title, top, middle, plan, log] = rows.areas(area);
    let [load, numbers] = Layout::horizontal([Constraint::Fill(1), Constraint::Length(36)]).areas(top);
    let [keys, routers] = Layout::horizontal([Constraint::Fill(1), Constraint::Length(36)]).areas(middle);
    panels::title(frame, title, view, theme);
    panels::load(frame, load, view, theme);
    panels::numbers(frame, numbers, view, theme);
    panels::keys(frame, keys, view, theme);
    panels::routers(frame, routers, view, theme);
    panels::plan(frame, plan, view, theme);
    panels::log(frame, log, view, theme);
}

fn too_small(frame: &mut Frame<'_>, area: Rect) {
    let text = format!(
        "this terminal has {}x{} characters,\nthe demo needs {MIN_WIDTH}x{MIN_HEIGHT}: make it larger,\n\
         or press q and run it with its output piped",
        area.width, area.height
    );
    frame.render_widget(Paragraph::new(text), area);
}
