//! Colours, or none.

use ratatui::style::{Color, Modifier, Style};

use crate::simulate::demo::Tone;

/// How things look: with colours, or by words and weight alone. Nothing is said by colour only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    color: bool,
}

impl Theme {
    /// Colours where they are wanted.
    #[must_use]
    pub const fn new(color: bool) -> Self {
        Self { color }
    }

    fn colored(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    /// Titles and numbers that count.
    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Frames and labels.
    pub(super) fn dim(self) -> Style {
        self.colored(Color::DarkGray)
    }

    /// Names and values that are neither good nor bad.
    pub(super) fn plain(self) -> Style {
        Style::new()
    }

    /// As it should be.
    pub(super) fn good(self) -> Style {
        self.colored(Color::Green)
    }

    /// On the way, or worth a look.
    pub(super) fn busy(self) -> Style {
        self.colored(Color::Yellow)
    }

    /// As it should not be.
    pub(super) fn bad(self) -> Style {
        self.colored(Color::Red)
    }

    /// A line of the story.
    pub(super) fn tone(self, tone: Tone) -> Style {
        match tone {
            Tone::Step => self.plain(),
            Tone::Good => self.good(),
            Tone::Bad => self.bad(),
        }
    }
}
