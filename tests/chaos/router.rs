//! A router as a process: the library's router with a snapshot, which says over TCP where a request goes and keeps the placement
//! until it hears that the call is over.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use keyheat::router::{
    DeletePlacement, Place, Placement, ReadPlacement, ReadRule, Refused, Router, RouterSettings, Table, Write,
};
use keyheat::service::Clock;
use keyheat::units::Span;
use rdkafka::ClientConfig;

use super::support::process::Process;
use super::wire::{Answer, Ending, Operation, Placed, Question, RouterOrder};

/// Tells the process what it is to do.
const ORDER: &str = "KEYHEAT_CHAOS_ROUTER";
/// What its output says before its address.
const LISTENS: &str = "listens on ";
/// The longest that a write waits in hold.
const HELD_LIMIT: Span = Span::from_secs(2);

/// Starts a router: this program again, with nothing but the test below.
pub(crate) fn start(order: &RouterOrder, dir: &std::path::Path, name: &str) -> Process {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["router::a_process", "--exact", "--ignored", "--nocapture"])
        .env(ORDER, serde_json::to_string(order).unwrap())
        .stdin(Stdio::piped());
    Process::of(command, dir, name)
}

/// Where a router listens, once it does.
pub(crate) fn address(process: &Process) -> Option<String> {
    process.lines().iter().find_map(|line| line.split_once(LISTENS)).map(|(_, addr)| addr.to_owned())
}

#[test]
#[ignore = "no test: the process of a router, started by the others"]
fn a_process() {
    let order: RouterOrder = serde_json::from_str(&std::env::var(ORDER).expect("started by another test")).unwrap();
    // It does not outlive the test that holds the other end.
    thread::spawn(|| {
        drop(std::io::stdin().read_to_end(&mut Vec::new()));
        std::process::exit(0);
    });
    let clock = Clock::system();
    let mut client = ClientConfig::new();
    client.set("bootstrap.servers", &order.brokers).set("broker.address.family", "v4");
    let mut settings = RouterSettings::new(client, &order.id, move || clock.now());
    settings.plan_topic.clone_from(&order.plan_topic);
    settings.acks_topic.clone_from(&order.acks_topic);
    settings.snapshot = Some(PathBuf::from(&order.snapshot));
    settings.call_limit = Span::from_millis(order.call_limit_ms);
    let router = Router::start(settings).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("\n{LISTENS}{}", listener.local_addr().unwrap());
    for stream in listener.incoming() {
        let desk = Desk { table: Arc::clone(router.table()), clock, order: order.clone() };
        let stream = stream.unwrap();
        // A caller that goes away ends its own connection and no more.
        thread::spawn(move || drop(desk.attend(&stream)));
    }
}

/// One caller's connection: one request at a time.
struct Desk {
    table: Arc<Table>,
    clock: Clock,
    order: RouterOrder,
}

/// What is kept while a call runs.
enum Guard<'a> {
    Write(Placement<'a>),
    Delete(DeletePlacement<'a>),
    Read(#[expect(dead_code, reason = "held until it is dropped")] ReadPlacement<'a>),
}

impl Desk {
    fn attend(&self, stream: &TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        while let Some(line) = lines.next() {
            let question: Question = serde_json::from_str(&line?)?;
            let (answer, guard) = self.place(&question);
            self.answer(stream, &answer)?;
            if guard.is_none() {
                continue;
            }
            let guard = guard.filter(|_| self.order.breaks.as_deref() != Some("guard"));
            // A caller that went away without a word is one whose call may still land.
            let ending = lines.next().and_then(Result::ok).and_then(|line| serde_json::from_str(&line).ok());
            if ending != Some(Ending::Over) {
                let until = self.clock.now().saturating_add(Span::from_millis(self.order.call_limit_ms));
                match guard {
                    Some(Guard::Write(placement)) => placement.outcome_unknown(until),
                    Some(Guard::Delete(placement)) => placement.outcome_unknown(until),
                    Some(Guard::Read(_)) | None => {}
                }
            }
        }
        Ok(())
    }

    fn answer(&self, mut stream: &TcpStream, answer: &Answer) -> std::io::Result<()> {
        stream.write_all(format!("{}\n", serde_json::to_string(answer)?).as_bytes())
    }

    fn place<'a>(&'a self, question: &'a Question) -> (Answer, Option<Guard<'a>>) {
        let Question { operation, keyspace, key, id } = question;
        let (key, id) = (key.as_bytes(), id.as_bytes());
        let asked = match operation {
            Operation::Read => self.table.point_read(keyspace, key, id).map(|placement| self.read(placement)),
            Operation::Write => self.until_placed(|| self.table.write(keyspace, key, id)).map(|asked| asked.write()),
            Operation::InPlace => {
                self.until_placed(|| self.table.update_in_place(keyspace, key, id)).map(|asked| asked.write())
            }
            Operation::Delete => self.until_placed(|| self.table.delete(keyspace, key, id)).map(|asked| asked.delete()),
        };
        asked.unwrap_or_else(|refused| (Answer::Refused(refused.to_string()), None))
    }

    fn read<'a>(&self, placement: ReadPlacement<'a>) -> (Answer, Option<Guard<'a>>) {
        let mut places = texts(placement.places());
        if self.order.breaks.as_deref() == Some("old_layout") {
            places.truncate(1);
        }
        let answer = Placed {
            places,
            highest: placement.rule() == ReadRule::HighestVersion,
            version: placement.version().map(|version| (version.epoch, version.seq)),
            ..Placed::nowhere(None)
        };
        (Answer::Placed(answer), Some(Guard::Read(placement)))
    }

    /// Asks again as often as the key's plan changes while the write waits.
    fn until_placed<P>(&self, ask: impl Fn() -> Result<Write<P>, Refused>) -> Result<Asked<P>, Refused> {
        let begun = self.clock.elapsed_ns();
        let waited = || (self.clock.elapsed_ns() - begun) / 1000;
        let mut waits = false;
        loop {
            match ask()? {
                Write::Placed(placement) => return Ok(Asked::Placed(placement, waits.then(waited))),
                Write::Held(held) => {
                    waits = true;
                    let left = HELD_LIMIT.saturating_sub(Span::from_millis(waited() / 1000));
                    if left == Span::ZERO || !held.wait(left) {
                        return Ok(Asked::Held(waited()));
                    }
                }
            }
        }
    }
}

/// What became of asking for a write's place.
enum Asked<P> {
    Placed(P, Option<u64>),
    Held(u64),
}

impl<'a> Asked<Placement<'a>> {
    fn write(self) -> (Answer, Option<Guard<'a>>) {
        match self {
            Self::Held(waited_us) => (Answer::Held { waited_us }, None),
            Self::Placed(placement, waited_us) => {
                let answer = Placed {
                    places: texts(std::slice::from_ref(placement.place())),
                    older: texts(placement.promote_from()),
                    version: placement.version().map(|version| (version.epoch, version.seq)),
                    ..Placed::nowhere(waited_us)
                };
                (Answer::Placed(answer), Some(Guard::Write(placement)))
            }
        }
    }
}

impl<'a> Asked<DeletePlacement<'a>> {
    fn delete(self) -> (Answer, Option<Guard<'a>>) {
        match self {
            Self::Held(waited_us) => (Answer::Held { waited_us }, None),
            Self::Placed(placement, waited_us) => {
                let answer = Placed {
                    places: texts(std::slice::from_ref(placement.place())),
                    removes: placement.how() == keyheat::protocol::Delete::Remove,
                    version: placement.version().map(|version| (version.epoch, version.seq)),
                    ..Placed::nowhere(waited_us)
                };
                (Answer::Placed(answer), Some(Guard::Delete(placement)))
            }
        }
    }
}

impl Placed {
    const fn nowhere(waited_us: Option<u64>) -> Self {
        Self { places: Vec::new(), older: Vec::new(), removes: false, highest: false, version: None, waited_us }
    }
}

/// Keys of the store; those of this test are text.
fn texts(places: &[Place<'_>]) -> Vec<String> {
    places.iter().map(|place| String::from_utf8(place.key.to_vec()).unwrap()).collect()
}
