//! Where a command writes: data on standard output, words on standard error. The only file that opens either.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};

use serde::Serialize;

use super::args::{ColorChoice, GlobalArgs, OutputFormat};

/// The two streams of a command and how to write to them.
///
/// Data is buffered; on a terminal each line is flushed, else when the buffer is full and at the end. A command that runs on
/// calls [`Output::flush`] whenever a reader should see what there is.
pub struct Output {
    format: Option<OutputFormat>,
    color: bool,
    quiet: bool,
    interactive: bool,
    data: BufWriter<Box<dyn Write + Send>>,
    words: Box<dyn Write + Send>,
}

/// Bytes of data held back when standard output is not a terminal.
const DATA_BUFFER_BYTES: usize = 64 * 1024;

impl Output {
    /// The process's own streams, with colours and form as the command line and the terminal ask.
    #[must_use]
    pub fn from_args(args: &GlobalArgs) -> Self {
        let terminal = io::stdout().is_terminal();
        let color = match args.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                terminal && !env_is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
            }
        };
        Self {
            format: args.output,
            color,
            quiet: args.quiet,
            interactive: terminal,
            data: BufWriter::with_capacity(DATA_BUFFER_BYTES, Box::new(io::stdout())),
            words: Box::new(io::stderr()),
        }
    }

    /// The form of the data, `default` being what suits the command.
    #[must_use]
    pub fn format_or(&self, default: OutputFormat) -> OutputFormat {
        self.format.unwrap_or(default)
    }

    /// True when data may carry colours.
    #[must_use]
    pub const fn color(&self) -> bool {
        self.color
    }

    /// True when nobody wants words.
    #[must_use]
    pub const fn quiet(&self) -> bool {
        self.quiet
    }

    /// True when standard output is a terminal: a live screen can be drawn.
    #[must_use]
    pub const fn interactive(&self) -> bool {
        self.interactive
    }

    /// Writes bytes of data as they are.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn data(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.data.write_all(bytes)
    }

    /// Writes one line of data.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn line(&mut self, text: impl Display) -> io::Result<()> {
        writeln!(self.data, "{text}")?;
        if self.interactive { self.data.flush() } else { Ok(()) }
    }

    /// Writes one JSON object on a line of its own.
    ///
    /// # Errors
    /// When standard output cannot be written, or the value has no form in JSON.
    pub fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.data, value)?;
        self.data.write_all(b"\n")?;
        if self.interactive { self.data.flush() } else { Ok(()) }
    }

    /// Says something to the person, unless quiet.
    pub fn note(&mut self, text: impl Display) {
        if !self.quiet {
            // Nobody can be told when standard error itself is gone.
            drop(writeln!(self.words, "{text}"));
        }
    }

    /// Writes over the line on standard error that says how far it is; an empty text takes it away. For terminals.
    pub fn progress(&mut self, text: impl Display) {
        drop(write!(self.words, "\r\x1b[2K{text}").and_then(|()| self.words.flush()));
    }

    /// Prints an error with its causes, once, at the edge.
    pub fn error(&mut self, error: &dyn Error) {
        let mut text = format!("keyheat: {error}");
        let mut cause = error.source();
        while let Some(inner) = cause {
            text.push_str(": ");
            text.push_str(&inner.to_string());
            cause = inner.source();
        }
        drop(writeln!(self.words, "{text}"));
    }

    /// Hands all data to the system.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.data.flush()
    }
}

/// Set and not empty, as no-color.org asks.
fn env_is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod captured {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// What a command under test has written.
    #[derive(Clone, Default)]
    pub(crate) struct Captured {
        data: Shared,
        words: Shared,
    }

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Shared {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Captured {
        pub(crate) fn data(&self) -> String {
            self.data.text()
        }

        pub(crate) fn words(&self) -> String {
            self.words.text()
        }
    }

    impl Output {
        /// An output into memory, for tests of commands.
        pub(crate) fn captured(format: Option<OutputFormat>) -> (Self, Captured) {
            let captured = Captured::default();
            let output = Self {
                format,
                color: false,
                quiet: false,
                interactive: true,
                data: BufWriter::with_capacity(0, Box::new(captured.data.clone())),
                words: Box::new(captured.words.clone()),
            };
            (output, captured)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::CommandError;

    #[test]
    fn data_and_words_go_different_ways() {
        let (mut output, written) = Output::captured(None);
        output.line("a b").unwrap();
        output.json(&serde_json::json!({"a": 1})).unwrap();
        output.note("by the way");
        output.quiet = true;
        output.note("not said");
        let source = io::Error::other("disk on fire");
        output.error(&CommandError::Io { what: "cannot read x".to_owned(), source });
        assert_eq!(written.data(), "a b\n{\"a\":1}\n");
        assert_eq!(written.words(), "by the way\nkeyheat: cannot read x: disk on fire\n");
    }

    #[test]
    fn the_form_is_what_was_asked_or_what_suits_the_command() {
        let (asked, _) = Output::captured(Some(OutputFormat::Json));
        let (free, _) = Output::captured(None);
        assert_eq!(asked.format_or(OutputFormat::Table), OutputFormat::Json);
        assert_eq!(free.format_or(OutputFormat::Table), OutputFormat::Table);
    }
}
