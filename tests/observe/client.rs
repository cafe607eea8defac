//! A server to ask, and a client that can misbehave.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use keyheat::engine::{Change, Operations, RuleKind, Splittable};
use keyheat::observe::{HttpServer, HttpSettings, Readiness};
use keyheat::telemetry::{HotKeyView, KeyspaceLabels, Telemetry, TelemetrySettings, View};
use keyheat::units::{Estimate, EventTime, Rate, Span};

/// A server on a free port of 127.0.0.1, and what it shows.
pub(crate) struct Site {
    pub(crate) server: HttpServer,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) readiness: Arc<Readiness>,
}

/// One answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

pub(crate) fn keyspaces(names: &[&str]) -> Vec<KeyspaceLabels> {
    let windows = vec![Span::from_secs(10), Span::from_secs(60)];
    names.iter().map(|name| KeyspaceLabels { name: (*name).to_owned(), windows: windows.clone() }).collect()
}

pub(crate) fn site(change: impl FnOnce(&mut TelemetrySettings, &mut HttpSettings)) -> Site {
    let mut settings = TelemetrySettings::new(keyspaces(&["customer", "object"]));
    let mut http = HttpSettings::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    change(&mut settings, &mut http);
    let (telemetry, readiness) = (Arc::new(Telemetry::new(settings)), Arc::new(Readiness::new()));
    let server = HttpServer::start(http, Arc::clone(&telemetry), Arc::clone(&readiness)).unwrap();
    Site { server, telemetry, readiness }
}

impl Site {
    pub(crate) fn view(&self) -> View {
        View::empty(&self.telemetry.settings().keyspaces)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server.addr()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// What a request of these bytes is answered; the connection is then closed by the server.
    pub(crate) fn send(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        answer(&mut stream)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.server.addr()))
    }
}

/// All that comes until the server closes.
pub(crate) fn answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head in {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
    let body = if head.contains("transfer-encoding: chunked") { unchunked(body) } else { body.to_owned() };
    Answer { status, head: head.to_ascii_lowercase(), body }
}

fn unchunked(body: &str) -> String {
    let mut out = String::new();
    let mut rest = body;
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        out.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
    out
}

pub(crate) fn hot_key(key: &[u8], lower: u64) -> HotKeyView {
    HotKeyView {
        key: key.into(),
        state: Change::Hot,
        hot_since: Some(EventTime::MIN),
        rule: RuleKind::Absolute,
        window: Span::from_secs(10),
        threshold: 20,
        count: Estimate { lower, upper: lower + 10 },
        median: None,
        distinct_keys: Estimate::exact(100),
        rate: Rate::of(lower, Span::from_secs(10)),
        peak: Rate::of(lower, Span::from_secs(10)),
        operations: Operations::default(),
        weight: 0,
        candidate_since: EventTime::MIN,
        sampled: 0,
        shards: vec![(b"s1"[..].into(), Estimate::exact(lower))],
        callers: Vec::new(),
        splittable: Splittable::Undecided { events: 0, needed: 200 },
    }
}
