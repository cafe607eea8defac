//! The program as a process: started, watched through its log and its HTTP side, stopped, killed.

#![allow(clippy::unwrap_used, clippy::string_slice, reason = "a test that cannot go on fails")]

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::exposition::{Scrape, parse};
use super::poll_until;

/// The longest that a step of a test may take before the test says what it waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// The program that tests run: the one that `KEYHEAT_BIN` names, else that which was built with them.
pub(crate) fn program() -> PathBuf {
    std::env::var_os("KEYHEAT_BIN").map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_keyheat")), PathBuf::from)
}

/// A running `keyheat`. It does not outlive the value.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
    out: PathBuf,
}

impl Process {
    /// Starts it with its log and its output in `dir`, under `name`.
    pub(crate) fn start(dir: &Path, name: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program());
        command.args(arguments).stdin(Stdio::null());
        Self::of(command, dir, name)
    }

    /// Starts any other program, likewise.
    pub(crate) fn of(mut command: Command, dir: &Path, name: &str) -> Self {
        fs::create_dir_all(dir).unwrap();
        let (log, out) = (dir.join(format!("{name}.log")), dir.join(format!("{name}.out")));
        let (said, told) = (File::create(&out).unwrap(), File::create(&log).unwrap());
        let child = command.stdout(said).stderr(told).spawn().unwrap();
        Self { child, log, out }
    }

    /// What it wrote to standard error so far.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap()).into_owned()
    }

    /// What it wrote to standard output so far, whole lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        let out = String::from_utf8_lossy(&fs::read(&self.out).unwrap()).into_owned();
        let whole = out.rfind('\n').map_or(0, |end| end + 1);
        out[..whole].lines().map(str::to_owned).collect()
    }

    /// Where its HTTP side listens, as it says in its log.
    pub(crate) fn http(&self) -> String {
        poll_until("the address of the HTTP side", PATIENCE, || {
            let log = self.log();
            let from = log.find("http://")? + "http://".len();
            let rest = &log[from..];
            Some(rest[..rest.find('/')?].to_owned())
        })
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").arg(format!("-{signal}")).arg(self.child.id().to_string()).status().unwrap();
        assert!(sent.success(), "kill -{signal}");
    }

    /// Waits for its end.
    pub(crate) fn end(&mut self, limit: Duration) -> ExitStatus {
        let log = self.log.clone();
        poll_until(&format!("the end of the process; its log is {}", log.display()), limit, || {
            self.child.try_wait().unwrap()
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Status and body of a GET, if the server answers.
pub(crate) fn get(addr: &str, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(addr).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body =
        if head.to_ascii_lowercase().contains("transfer-encoding: chunked") { dechunk(body) } else { body.to_owned() };
    Some((status, body))
}

fn dechunk(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else { break };
        if size == 0 || rest.len() < size {
            break;
        }
        whole.push_str(&rest[..size]);
        body = rest[size..].trim_start_matches("\r\n");
    }
    whole
}

/// What `/metrics` says.
pub(crate) fn scrape(addr: &str) -> Option<Scrape> {
    let (_, body) = get(addr, "/metrics").filter(|(status, _)| *status == 200)?;
    Some(parse(&body).expect("the text format of Prometheus"))
}

/// The sum of all series of one metric.
pub(crate) fn sum(scrape: &Scrape, name: &str) -> f64 {
    scrape.series.iter().filter(|series| series.name == name).map(|series| series.value).sum()
}
