//! The demo's live screen: one view drawn on a terminal of 80x24 characters or more.
//!
//! Drawing is a function of the view and the theme; [`Screen`] owns the terminal and gives it back on every way out.

mod draw;
mod panels;
mod terminal;
#[cfg(test)]
mod tests;
mod theme;

pub use draw::{MIN_HEIGHT, MIN_WIDTH, draw};
pub use terminal::{Screen, Wish};
pub use theme::Theme;
