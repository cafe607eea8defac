//! A caller's side of the connection to a router, which may be dead, silent, or another one than a moment ago.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use super::wire::{Answer, Ending, Question};

/// The longest that a caller waits for a router's answer: longer than a write waits in hold.
const PATIENCE: Duration = Duration::from_secs(3);

/// Where a router is to be asked, as all callers see it.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// Grows with each life of the router: set before it is killed, so that who sees the old one had its answer from a living router.
    pub(crate) life: AtomicU64,
    /// None while it is down.
    pub(crate) addr: Mutex<Option<String>>,
}

/// One caller's connection to one router.
#[derive(Debug, Default)]
pub(crate) struct Link {
    stream: Option<BufReader<TcpStream>>,
    /// Of the router that it was made to.
    pub(crate) life: u64,
}

impl Link {
    /// Asks. None when the router is down or silent; then it was told nothing that could matter.
    pub(crate) fn ask(&mut self, desk: &Desk, question: &Question) -> Option<Answer> {
        let life = desk.life.load(SeqCst);
        if self.stream.is_none() || self.life != life {
            let addr = desk.addr.lock().unwrap().clone()?;
            let stream = TcpStream::connect(addr).ok()?;
            stream.set_nodelay(true).ok()?;
            stream.set_read_timeout(Some(PATIENCE)).ok()?;
            stream.set_write_timeout(Some(PATIENCE)).ok()?;
            (self.stream, self.life) = (Some(BufReader::new(stream)), life);
        }
        let answer = self.exchange(&serde_json::to_string(question).unwrap());
        if answer.is_none() {
            // An answer that comes later is to another question: with the connection the placement ends.
            self.stream = None;
        }
        answer
    }

    fn exchange(&mut self, line: &str) -> Option<Answer> {
        let stream = self.stream.as_mut()?;
        stream.get_mut().write_all(format!("{line}\n").as_bytes()).ok()?;
        let mut answer = String::new();
        let read = stream.read_line(&mut answer).ok()?;
        (read > 0).then(|| serde_json::from_str(&answer).unwrap())
    }

    /// Says how the call has ended; a router that is gone need not know.
    pub(crate) fn end(&mut self, ending: Ending) {
        let said = format!("{}\n", serde_json::to_string(&ending).unwrap());
        if let Some(stream) = &mut self.stream
            && stream.get_mut().write_all(said.as_bytes()).is_err()
        {
            self.stream = None;
        }
    }
}
