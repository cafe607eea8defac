//! The terminal: taken over, drawn on, and given back on every way out.

use std::io;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::draw::draw;
use super::theme::Theme;
use crate::simulate::demo::DemoView;

/// What the viewer wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// To go on watching.
    Watch,
    /// To end the demo.
    End,
}

/// The terminal in its alternate screen. Dropping it gives the terminal back; so does a panic on any thread, before its message.
#[derive(Debug)]
pub struct Screen {
    terminal: DefaultTerminal,
    theme: Theme,
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// When standard output is no terminal that can be set up.
    pub fn open(theme: Theme) -> io::Result<Self> {
        Ok(Self { terminal: ratatui::try_init()?, theme })
    }

    /// Draws the view.
    ///
    /// # Errors
    /// When the terminal cannot be written.
    pub fn show(&mut self, view: &DemoView) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame, view, self.theme)).map(|_| ())
    }

    /// Waits for at most `longest` and says what the viewer wants.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub fn wish(&mut self, longest: Duration) -> io::Result<Wish> {
        let mut wait = longest;
        while event::poll(wait)? {
            if let Event::Key(key) = event::read()?
                && ends(key)
            {
                return Ok(Wish::End);
            }
            wait = Duration::ZERO;
        }
        Ok(Wish::Watch)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// In raw mode Ctrl-C is a key, not a signal.
fn ends(key: KeyEvent) -> bool {
    let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind == KeyEventKind::Press && (control_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_that_end_it() {
        let key = |code, modifiers| KeyEvent::new(code, modifiers);
        assert!(ends(key(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        assert!(ends(key(KeyCode::Char('q'), KeyModifiers::NONE)));
        assert!(ends(key(KeyCode::Esc, KeyModifiers::NONE)));
        assert!(!ends(key(KeyCode::Char('c'), KeyModifiers::NONE)));
        assert!(!ends(key(KeyCode::Enter, KeyModifiers::NONE)));
    }
}
