//! The thread of the clients: requests at their pace, access events to Kafka, numbers for the viewer.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::settings::{DemoSettings, HOT_CLIENT, PRELOADED};
use crate::router::Table;
use crate::service::{Clock, Stop};
use crate::simulate::{
    Clients, Delivered, EventProducer, Load, LoadSettings, Served, Shards, Tally, Traffic, WrongAnswer,
};
use crate::telemetry::{MAX_LOG_CHARS, escape};
use crate::units::{EventTime, Span};

/// Between two looks at what is due.
const TICK: Duration = Duration::from_millis(1);
/// How often the numbers are laid down.
const SHOW_EVERY_NS: u64 = 50_000_000;
/// How many of the newest slots of the load meter a bar shows.
const BAR_SLOTS: usize = 4;
/// At the end, the longest wait for calls in flight.
const LAND_LIMIT_NS: u64 = 3_000_000_000;
/// At the end, the longest wait for Kafka to take the last events.
const FLUSH_LIMIT: Duration = Duration::from_secs(3);

/// What the clients' thread says of itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// When the first request was sent, since the demo's start.
    pub(super) begun: Option<Span>,
    /// When the hot client's first request was answered, since the demo's start.
    pub(super) hot_at: Option<Span>,
    pub(super) calls_per_s: Vec<f64>,
    /// The hottest shard as a multiple of the median.
    pub(super) imbalance: Option<f64>,
    pub(super) tally: Tally,
    pub(super) delivered: Delivered,
    /// Wrong answers in words.
    pub(super) wrong: Vec<String>,
    /// Why the thread ended too early.
    pub(super) failure: Option<String>,
}

/// The wall clock at the demo's start and the time since: it never jumps, and clients and routers share it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeline {
    clock: Clock,
    start: EventTime,
}

impl Timeline {
    pub(super) fn begin() -> Self {
        let clock = Clock::system();
        Self { clock, start: clock.now() }
    }

    pub(super) fn now(&self) -> EventTime {
        self.start.saturating_add(self.clock.elapsed())
    }

    pub(super) fn elapsed(&self) -> Span {
        self.clock.elapsed()
    }

    fn elapsed_ns(&self) -> u64 {
        self.clock.elapsed_ns()
    }
}

/// What the thread works with.
pub(super) struct ClientsThread {
    pub(super) settings: DemoSettings,
    pub(super) load: LoadSettings,
    pub(super) timeline: Timeline,
    pub(super) tables: Vec<Arc<Table>>,
    pub(super) shards: Arc<Shards>,
    pub(super) producer: EventProducer,
    pub(super) stop: Stop,
    pub(super) seen: Arc<Mutex<Seen>>,
}

impl ClientsThread {
    /// Sends requests until it is told to stop, then waits for those in flight.
    pub(super) fn run(mut self) {
        let begun = self.timeline.elapsed();
        self.load.start = self.timeline.now();
        let clients = Clients::of(&self.load);
        match Load::new(self.load.clone()) {
            Ok(load) => {
                let (tables, shards) = (std::mem::take(&mut self.tables), Arc::clone(&self.shards));
                let traffic = Traffic::new(self.settings.traffic(), load, &clients, &tables, &shards);
                self.serve(traffic, &clients, begun);
            }
            Err(error) => self.fail(error.to_string()),
        }
    }

    fn serve(self, mut traffic: Traffic<'_>, clients: &Clients, begun: Span) {
        let hot = clients.number_of(HOT_CLIENT);
        if let Some(hot) = hot {
            traffic.preload(hot, PRELOADED);
        }
        let begun_ns = self.timeline.elapsed_ns();
        self.show(|seen| seen.begun = Some(begun));
        let (mut shown_ns, mut ending_ns) = (0, None);
        let mut event = Vec::new();
        loop {
            let now_ns = self.timeline.elapsed_ns() - begun_ns;
            traffic.step(now_ns);
            for served in traffic.take_served() {
                if Some(served.client) == hot {
                    let now = self.timeline.elapsed();
                    self.show(|seen| seen.hot_at = seen.hot_at.or(Some(now)));
                }
                event.clear();
                write_event(&served, clients, self.shards.names(), &mut event);
                if let Err(error) = self.producer.send(&served.id, &event, || !self.stop.is_set()) {
                    return self.fail(format!("an access event could not be sent: {error}"));
                }
            }
            self.producer.poll();
            if ending_ns.is_none() && now_ns.saturating_sub(shown_ns) >= SHOW_EVERY_NS {
                shown_ns = now_ns;
                self.lay_down(&traffic, clients);
            }
            if self.stop.is_set() && ending_ns.is_none() {
                traffic.stop_sending();
                ending_ns = Some(now_ns);
            }
            if ending_ns.is_some_and(|since_ns| traffic.is_idle() || now_ns - since_ns > LAND_LIMIT_NS) {
                break;
            }
            thread::sleep(TICK);
        }
        let tally = *traffic.tally();
        // Placements that never ended go with the traffic: the routers can leave.
        drop(traffic);
        let seen = Arc::clone(&self.seen);
        let delivered = self.producer.finish(FLUSH_LIMIT);
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        (seen.tally, seen.delivered) = (tally, delivered);
    }

    fn lay_down(&self, traffic: &Traffic<'_>, clients: &Clients) {
        let (rates, imbalance) = (traffic.meter().rates(BAR_SLOTS), traffic.meter().imbalance());
        let delivered = self.producer.delivered();
        let known = self.seen.lock().unwrap_or_else(PoisonError::into_inner).wrong.len();
        let wrong: Vec<String> =
            traffic.wrong_answers().iter().skip(known).map(|answer| words(answer, clients)).collect();
        self.show(|seen| {
            seen.wrong.extend(wrong);
            (seen.calls_per_s, seen.imbalance, seen.tally) = (rates, imbalance, *traffic.tally());
            seen.delivered = delivered;
        });
    }

    fn show(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn fail(&self, reason: String) {
        self.show(|seen| seen.failure = Some(reason));
    }
}

/// A wrong answer in words.
fn words(answer: &WrongAnswer, clients: &Clients) -> String {
    let shown = |bytes| escape(bytes, MAX_LOG_CHARS);
    let found = answer.found.map_or_else(|| "nothing".to_owned(), |row| format!("revision {}", row.revision));
    let placed = answer.placed_by.map_or_else(|| "no plan".to_owned(), |version| format!("plan {version}"));
    let (client, id) = (shown(clients.key(answer.client)), shown(&answer.id));
    format!("{:?} by {:?} under {placed}: record {id} of {client}, {found} found", answer.wrong, answer.operation)
}

/// One JSON object: `ts` (milliseconds), `client`, `id`, `op`, `shard`. A scan has no id.
fn write_event(served: &Served, clients: &Clients, shards: &[String], event: &mut Vec<u8>) {
    use std::io::Write as _;

    use crate::input::Operation;

    let operation = match served.operation {
        Operation::Read => "read",
        Operation::Write => "write",
        Operation::Scan => "scan",
        Operation::Delete => "delete",
        Operation::Unknown => "unknown",
    };
    let text = |bytes: &[u8]| serde_json::Value::from(String::from_utf8_lossy(bytes));
    let client = text(clients.key(served.client));
    let shard = serde_json::Value::from(shards.get(served.shard).map_or("", String::as_str));
    let ts = served.at.as_millis();
    let written = if served.id.is_empty() {
        write!(event, r#"{{"ts":{ts},"client":{client},"op":"{operation}","shard":{shard}}}"#)
    } else {
        let id = text(&served.id);
        write!(event, r#"{{"ts":{ts},"client":{client},"id":{id},"op":"{operation}","shard":{shard}}}"#)
    };
    // Writing to memory does not fail.
    drop(written);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Operation;

    #[test]
    fn an_event_is_one_json_object() {
        let settings = DemoSettings { length: Span::from_secs(1), seed: 1, http: None };
        let clients = Clients::of(&settings.load(EventTime::MIN).unwrap());
        let names = ["s0".to_owned(), "s1".to_owned()];
        let hot = clients.number_of(HOT_CLIENT).unwrap();
        let at = EventTime::from_millis(1_796_033_492_120).unwrap();
        let mut event = Vec::new();
        let read = Served { at, client: hot, id: b"o7".to_vec(), operation: Operation::Read, shard: 1 };
        write_event(&read, &clients, &names, &mut event);
        assert_eq!(
            String::from_utf8(event).unwrap(),
            r#"{"ts":1796033492120,"client":"acme","id":"o7","op":"read","shard":"s1"}"#
        );
        let mut event = Vec::new();
        let scan = Served { id: Vec::new(), operation: Operation::Scan, shard: 0, ..read };
        write_event(&scan, &clients, &names, &mut event);
        let event: serde_json::Value = serde_json::from_slice(&event).unwrap();
        assert_eq!((&event["op"], event.get("id")), (&"scan".into(), None));
    }
}
