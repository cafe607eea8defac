//! The processes and what is done to them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use keyheat::simulate::Random;

use super::calls::Shop;
use super::load::below;
use super::router;
use super::stage::Stage;
use super::support::poll_until;
use super::support::process::{PATIENCE, Process};
use super::wire::RouterOrder;

/// The most processes that are down or paused at once.
const MOST_AT_ONCE: usize = 2;
/// The time between two faults.
const BETWEEN_MS: (u64, u64) = (2_500, 7_000);

/// How a process is started.
enum Role {
    /// With the number of its desk.
    Router(usize, Box<RouterOrder>),
    /// With its configuration.
    Detector(PathBuf),
}

/// What state a process is in.
enum State {
    Up,
    /// Paused until then, in milliseconds of the test's clock.
    Paused(u64),
    /// Killed, and started again then.
    Down(u64),
}

struct Member {
    name: String,
    role: Role,
    process: Process,
    state: State,
    lives: u64,
}

/// All processes.
pub(crate) struct Fleet<'a> {
    stage: &'a Stage<'a>,
    shop: &'a Shop,
    members: Vec<Member>,
    /// What was done, by kind of fault and role.
    pub(crate) done: BTreeMap<String, u64>,
}

impl<'a> Fleet<'a> {
    pub(crate) fn new(stage: &'a Stage<'a>, shop: &'a Shop) -> Self {
        Self { stage, shop, members: Vec::new(), done: BTreeMap::new() }
    }

    /// Starts a router at a desk; it need not serve yet.
    pub(crate) fn add_router(&mut self, desk: usize, order: RouterOrder) {
        let name = order.id.clone();
        self.add(name, Role::Router(desk, Box::new(order)));
    }

    /// Starts a detector.
    pub(crate) fn add_detector(&mut self, name: &str, config: PathBuf) {
        self.add(name.to_owned(), Role::Detector(config));
    }

    fn add(&mut self, name: String, role: Role) {
        let process = self.start(&name, 0, &role);
        self.members.push(Member { name, role, process, state: State::Up, lives: 1 });
    }

    fn start(&self, name: &str, lives: u64, role: &Role) -> Process {
        let (dir, log) = (&self.stage.dir, format!("{name}-{lives}"));
        match role {
            Role::Detector(config) => Process::start(dir, &log, &["run", "--config", &config.to_string_lossy()]),
            Role::Router(desk, order) => {
                let process = router::start(order, dir, &log);
                let addr = poll_until("a router to listen", PATIENCE, || router::address(&process));
                *self.shop.desks[*desk].addr.lock().unwrap() = Some(addr);
                process
            }
        }
    }

    /// Makes faults until `until_ms`, then lets all go on.
    pub(crate) fn trouble(&mut self, random: &mut Random, until_ms: u64) {
        let mut next_ms = self.now_ms() + BETWEEN_MS.0;
        while self.now_ms() < until_ms {
            self.recover(false);
            let troubled = self.members.iter().filter(|member| !matches!(member.state, State::Up)).count();
            if self.now_ms() >= next_ms && troubled < MOST_AT_ONCE {
                next_ms = self.now_ms() + BETWEEN_MS.0 + random.below(BETWEEN_MS.1 - BETWEEN_MS.0);
                let number = self.victim(random);
                if matches!(self.members[number].state, State::Up) {
                    self.fault(number, random);
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.recover(true);
    }

    /// Three of four times a router: without a leader nothing happens that a fault could disturb.
    fn victim(&self, random: &mut Random) -> usize {
        let wants_router = random.below(4) > 0;
        let is_router = |number: &usize| matches!(self.members[*number].role, Role::Router(..));
        let wanted: Vec<usize> = (0..self.members.len()).filter(|number| is_router(number) == wants_router).collect();
        wanted[below(random, wanted.len())]
    }

    fn now_ms(&self) -> u64 {
        self.shop.clock.elapsed().as_millis()
    }

    fn fault(&mut self, number: usize, random: &mut Random) {
        let now_ms = self.now_ms();
        let member = &mut self.members[number];
        assert!(member.process.is_running(), "{} ended by itself: {}", member.name, member.process.log());
        let role = if matches!(member.role, Role::Router(..)) { "router" } else { "detector" };
        let kills = random.below(2) == 0;
        if kills {
            if let Role::Router(desk, _) = &member.role {
                // Before its end: who still sees this life has had its answer from a living router.
                *self.shop.desks[*desk].addr.lock().unwrap() = None;
                self.shop.desks[*desk].life.fetch_add(1, SeqCst);
            }
            member.process.signal("KILL");
            member.process.end(PATIENCE);
            member.state = State::Down(now_ms + 200 + random.below(2_500));
        } else {
            // Some pauses are longer than the session of a group, so that a leader wakes up deposed.
            let long = role == "detector" && random.below(3) == 0;
            member.process.signal("STOP");
            member.state = State::Paused(now_ms + if long { 18_000 } else { 200 + random.below(4_000) });
        }
        *self.done.entry(format!("{role} {}", if kills { "killed" } else { "paused" })).or_default() += 1;
    }

    fn recover(&mut self, all: bool) {
        let now_ms = self.now_ms();
        for number in 0..self.members.len() {
            let member = &self.members[number];
            match member.state {
                State::Paused(until_ms) if all || now_ms >= until_ms => {
                    member.process.signal("CONT");
                    self.members[number].state = State::Up;
                }
                State::Down(until_ms) if all || now_ms >= until_ms => {
                    let process = self.start(&member.name, member.lives, &member.role);
                    let member = &mut self.members[number];
                    (member.process, member.state) = (process, State::Up);
                    member.lives += 1;
                }
                _ => {}
            }
        }
    }

    /// Ends the detectors in good order.
    pub(crate) fn end_detectors(&mut self) {
        for member in self.members.iter_mut().filter(|member| matches!(member.role, Role::Detector(_))) {
            member.process.signal("TERM");
            assert_eq!(member.process.end(PATIENCE).code(), Some(0), "{}: {}", member.name, member.process.log());
        }
    }

    /// Every process still runs.
    pub(crate) fn check(&mut self) {
        for member in &mut self.members {
            assert!(member.process.is_running(), "{} ended by itself: {}", member.name, member.process.log());
        }
    }
}
