//! What people tell the service: handed from the HTTP side to the loop that carries it out, with the answer on its way back.

use std::fmt;

use tokio::sync::{mpsc, oneshot};

use crate::plan::{Disobeyed, Effect, Word};
use crate::protocol::PlanKey;

/// Commands that wait at once at the most: more are refused.
const WAITING: usize = 16;

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The proposal of a key goes on to its first phase.
    Approve(PlanKey),
    /// Nothing new begins, or may again; what runs goes on.
    Freeze(bool),
    /// What an operator says of a key.
    Tell(Word),
}

/// What has become of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It is done: an approved migration begins as soon as the budget allows.
    Done,
    /// The key has no proposal that waits for approval.
    NothingProposed,
    /// What was said of a key is on the plan topic.
    Told(Effect),
    /// What was said of a key is not obeyed.
    Disobeyed(Disobeyed),
    /// Another process leads, or nobody yet: the command belongs to the leader.
    NotLeading,
}

/// What whoever gives commands has to know.
#[derive(Clone)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(secret)")
    }
}

/// A token that anybody could guess, or that no header can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "got {bytes} bytes; a token should be 16 to 256 visible ascii characters on one line, e.g. of: openssl rand -hex 16"
)]
pub struct InvalidToken {
    bytes: usize,
}

impl Token {
    /// A token as a file holds it: white space around it is not part of it.
    ///
    /// # Errors
    /// [`InvalidToken`] when it is too short, too long or not visible ASCII.
    pub fn new(text: &str) -> Result<Self, InvalidToken> {
        let text = text.trim();
        let is_sound = (16..=256).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_sound { Ok(Self(text.to_owned())) } else { Err(InvalidToken { bytes: text.len() }) }
    }

    /// Whether this is it; how long the comparison takes says nothing of where they differ.
    #[must_use]
    pub fn is(&self, given: &[u8]) -> bool {
        let differences = self.0.bytes().zip(given).fold(0, |sum, (own, other)| sum | (own ^ other));
        self.0.len() == given.len() && differences == 0
    }
}

/// Who may give commands, and where they go.
#[derive(Debug, Clone)]
pub struct Desk {
    /// What they have to know.
    pub token: Token,
    /// Where commands go.
    pub commands: Commands,
}

/// The side that gives commands.
#[derive(Debug, Clone)]
pub struct Commands(mpsc::Sender<Order>);

/// The side that carries them out.
#[derive(Debug)]
pub struct Orders(mpsc::Receiver<Order>);

/// One command and the way back.
#[derive(Debug)]
pub struct Order {
    /// What is to be done.
    pub command: Command,
    answer: oneshot::Sender<Answer>,
}

/// Both sides.
#[must_use]
pub fn commands() -> (Commands, Orders) {
    let (give, take) = mpsc::channel(WAITING);
    (Commands(give), Orders(take))
}

impl Commands {
    /// Gives a command and waits for its answer; none when too many wait, or nobody carries them out any more.
    pub async fn give(&self, command: Command) -> Option<Answer> {
        let (answer, answered) = oneshot::channel();
        self.0.try_send(Order { command, answer }).ok()?;
        answered.await.ok()
    }
}

impl Orders {
    /// The oldest command that waits.
    pub fn poll(&mut self) -> Option<Order> {
        self.0.try_recv().ok()
    }
}

impl Order {
    /// Answers it.
    pub fn answer(self, answer: Answer) {
        if self.answer.send(answer).is_err() {
            // Whoever asked has gone: the time for the answer was over.
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_visible_and_never_shown() {
        for wrong in
            ["", "short", "fifteen-bytes--", "with a space in it all", "zwölf-mal-zwölf-zwölf", &"x".repeat(257)]
        {
            assert!(Token::new(wrong).is_err(), "{wrong}");
        }
        let token = Token::new("  0123456789abcdef\n").unwrap();
        assert!(token.is(b"0123456789abcdef"));
        for other in ["", "0123456789abcde", "0123456789abcdeg", "0123456789abcdef0"] {
            assert!(!token.is(other.as_bytes()), "{other}");
        }
        assert_eq!(format!("{token:?}"), "Token(secret)");
    }
}
