//! Clients, routers' tables, shards and owner together, without Kafka: the protocol keeps every record in sight, and the check
//! notices when a rule of it is dropped.

use std::sync::Arc;

use super::demo::fixture::{self, CLIENT, KEYSPACE};
use super::{Clients, Load, LoadSettings, Move, Retirement, Shards, Tally, Traffic, TrafficSettings};
use crate::plan::{Mapper, MapperKind, ShardHash};
use crate::protocol::{Delete, Digest, Layout, PlanKey, PlanRecord, State};
use crate::router::{Table, TableSettings};
use crate::units::{EventTime, Rate, Share, Span};

const MS: u64 = 1_000_000;

/// The world of one test.
struct Rig {
    load: LoadSettings,
    settings: TrafficSettings,
    clients: Clients,
    tables: Vec<Arc<Table>>,
    shards: Shards,
}

impl Rig {
    fn new(seed: u64) -> Self {
        let load = LoadSettings {
            rate: Rate::per_second(4000.0).unwrap(),
            keys: 40,
            zipf_exponent: 0.0,
            hot: vec![format!("{CLIENT}:60%").parse().unwrap()],
            read_share: Share::new(0.5).unwrap(),
            mapper: None,
            disorder: Span::ZERO,
            seed,
            start: EventTime::from_millis(1_796_033_492_000).unwrap(),
        };
        let settings = TrafficSettings {
            keyspace: KEYSPACE.to_owned(),
            max_records: 300,
            scans: 0.01,
            deletes: 0.1,
            updates_in_place: 0.1,
            unknown_outcomes: 0.01,
            call_limit: Span::from_millis(400),
            patience: Span::from_secs(10),
            capacity_per_s: 4000,
            longest_queue: Span::from_millis(50),
            meter_slot: Span::from_millis(250),
            meter_slots: 4,
            seed,
        };
        let names = (0..8).map(|number| format!("s{number}")).collect();
        let mapper = Mapper::new(MapperKind::Modulo(ShardHash::Murmur2), names).unwrap();
        let tables = (0..3).map(|_| Arc::new(Table::new(TableSettings::default()))).collect();
        Self { clients: Clients::of(&load), settings, load, tables, shards: Shards::new(mapper) }
    }

    fn run(&self) -> Run<'_> {
        let load = Load::new(self.load.clone()).unwrap();
        let mut traffic = Traffic::new(self.settings.clone(), load, &self.clients, &self.tables, &self.shards);
        traffic.preload(self.clients.number_of(CLIENT).unwrap(), 200);
        Run { rig: self, traffic, now_ms: 0, seq: 0, gap_ms: 13 }
    }
}

struct Run<'a> {
    rig: &'a Rig,
    traffic: Traffic<'a>,
    now_ms: u64,
    seq: u64,
    /// Between two routers that learn of one record.
    gap_ms: u64,
}

impl Run<'_> {
    /// Lets `ms` milliseconds go by.
    fn pass(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now_ms += 1;
            self.traffic.step(self.now_ms * MS);
            let now = self.rig.load.start.saturating_add(Span::from_millis(self.now_ms));
            self.rig.tables.iter().for_each(|table| table.release_unknown(now));
        }
    }

    /// Publishes a record; routers learn of it one after the other.
    fn publish(&mut self, record: &PlanRecord) {
        self.seq += 1;
        assert_eq!(record.check(), Ok(()));
        for table in &self.rig.tables {
            table.put(&PlanKey::new(KEYSPACE, CLIENT.as_bytes()), fixture::version(self.seq), record).unwrap();
            table.reached(fixture::version(self.seq), Digest::default());
            self.pass(self.gap_ms);
        }
    }

    /// Waits until every router has acknowledged.
    fn wait(&mut self) {
        for _ in 0..5000 {
            if self.rig.tables.iter().all(|table| table.ack_state().waiting.is_empty()) {
                return;
            }
            self.pass(1);
        }
        panic!("a guard was never given back");
    }

    fn copy(&mut self, record: &PlanRecord) {
        let mut work = Move::new(record, &self.rig.shards).unwrap();
        while !work.step(&self.rig.shards, 10) {
            self.pass(1);
        }
        let report = work.report(EventTime::MIN);
        assert!(report.proves(record.migration.version), "{report:?}");
    }

    fn retire(&mut self, mut record: PlanRecord) {
        record.retire = vec![record.migration.from];
        record.delete = Delete::Remove;
        self.publish(&record);
        let mut work = Retirement::new(&record).unwrap().unwrap();
        while !work.step(&self.rig.shards, 10) {
            self.pass(1);
        }
        assert!(work.reports(&self.rig.shards, EventTime::MIN)[0].proves(record.migration.version));
        self.wait();
    }

    /// The whole migration by the rules.
    fn migrate(&mut self, from: Layout, to: Layout) {
        let name = fixture::version(self.seq + 1);
        let record = |state| fixture::migration(state, from, to, name);
        for state in [State::Prepare, State::Hold, State::Dual, State::Moving] {
            self.publish(&record(state));
            self.pass(50);
            self.wait();
        }
        self.copy(&record(State::Moving));
        self.publish(&record(State::Settled));
        self.wait();
        self.pass(100);
        self.retire(record(State::Settled));
        self.pass(100);
    }

    fn end(mut self) -> Tally {
        self.traffic.stop_sending();
        self.pass(2000);
        assert!(self.traffic.is_idle());
        *self.traffic.tally()
    }
}

fn split(number: u32, buckets: u32) -> Layout {
    Layout::split(number, buckets, 40).unwrap()
}

#[test]
fn no_read_misses_a_record_while_a_client_is_split_grown_shrunk_and_withdrawn() {
    for seed in 0..4 {
        let rig = Rig::new(seed);
        let mut run = rig.run();
        run.pass(500);
        let way = [Layout::BARE, split(1, 4), split(2, 8), split(3, 4), Layout::BARE];
        for pair in way.windows(2) {
            run.migrate(pair[0], pair[1]);
        }
        let tally = run.end();
        assert_eq!(tally.wrong(), 0, "seed {seed}: {tally:?}");
        assert!(tally.checked > 4000 && tally.unknown > 10 && tally.longest_wait > Span::ZERO, "{tally:?}");
        assert_eq!(tally.failed, 0, "{tally:?}");
    }
}

/// Runs phases, each published to one router after the other and, where the second is true, waited for.
fn against_the_rules(phases: &[(State, bool)], gap_ms: u64) -> Tally {
    let mut rig = Rig::new(1);
    // In dual, where some of these stop, updates in place wait for moving.
    rig.settings.patience = Span::from_secs(1);
    let mut run = rig.run();
    run.gap_ms = gap_ms;
    run.pass(500);
    for (state, wait) in phases {
        run.publish(&fixture::record(*state));
        if *wait {
            run.wait();
        }
        run.pass(50);
    }
    run.end()
}

#[test]
fn settling_without_the_move_is_noticed() {
    let phases = [State::Prepare, State::Hold, State::Dual, State::Moving, State::Settled].map(|state| (state, true));
    assert!(against_the_rules(&phases, 13).missed > 0);
}

#[test]
fn going_from_prepare_to_dual_without_a_hold_is_noticed() {
    let tally = against_the_rules(&[(State::Prepare, true), (State::Dual, false)], 200);
    assert!(tally.stale > 0, "{tally:?}");
}

#[test]
fn writing_to_the_new_layout_while_a_router_reads_the_old_one_only_is_noticed() {
    let tally = against_the_rules(&[(State::Dual, false)], 200);
    assert!(tally.wrong() > 0, "{tally:?}");
}

#[test]
fn moving_before_every_write_has_ended_is_noticed() {
    // Slow calls: many are in flight when the hold begins, and land in the old layout behind the mover.
    let mut rig = Rig::new(3);
    rig.settings.capacity_per_s = 2400;
    rig.settings.longest_queue = Span::from_millis(600);
    rig.settings.patience = Span::from_secs(1);
    let mut run = rig.run();
    run.pass(2000);
    for state in [State::Prepare, State::Hold, State::Dual, State::Moving] {
        run.publish(&fixture::record(state));
    }
    let mut work = Move::new(&fixture::record(State::Moving), &rig.shards).unwrap();
    while !work.step(&rig.shards, 10) {
        run.pass(1);
    }
    run.pass(1000);
    let tally = run.end();
    assert!(tally.stale > 0, "{tally:?}");
    let report = work.report(EventTime::MIN);
    assert!(!report.proves(fixture::version(1)), "the owner's own check: {report:?}");
}

#[test]
fn a_hold_lets_writes_wait_and_loses_none() {
    let rig = Rig::new(5);
    let mut run = rig.run();
    run.pass(200);
    run.publish(&fixture::record(State::Prepare));
    run.wait();
    run.publish(&fixture::record(State::Hold));
    run.pass(300);
    assert!(run.traffic.tally().waiting > 10, "{:?}", run.traffic.tally());
    // The hold is turned back: waiting writes go on at once, to the old layout.
    run.publish(&fixture::record(State::Prepare));
    run.pass(20);
    assert_eq!(run.traffic.tally().waiting, 0);
    let tally = run.end();
    assert!(tally.longest_wait >= Span::from_millis(300), "{tally:?}");
    assert_eq!((tally.wrong(), tally.failed), (0, 0), "{tally:?}");
}

#[test]
fn load_follows_the_buckets_and_every_request_leaves_one_event() {
    let rig = Rig::new(6);
    let mut run = rig.run();
    run.pass(2000);
    let before = run.traffic.meter().imbalance().unwrap();
    let events = run.traffic.take_served();
    assert!(before > 5.0, "{before}");
    let hot = rig.clients.number_of(CLIENT).unwrap();
    let home = rig.shards.number_of(CLIENT.as_bytes());
    assert!(events.iter().filter(|event| event.client == hot).all(|event| event.shard == home));
    run.migrate(Layout::BARE, split(1, 8));
    run.traffic.take_served();
    run.pass(2000);
    let after = run.traffic.take_served();
    let shards: std::collections::HashSet<usize> =
        after.iter().filter(|event| event.client == hot).map(|event| event.shard).collect();
    assert!(shards.len() > 3, "{shards:?}");
    assert!(run.traffic.meter().imbalance().unwrap() < before / 1.5);
    run.traffic.stop_sending();
    run.pass(1000);
    let tally = *run.traffic.tally();
    let events = events.len() + after.len() + run.traffic.take_served().len();
    assert_eq!(tally.failed, 0);
    assert!(u64::try_from(events).unwrap() <= tally.sent);
}

#[test]
fn a_shard_that_is_full_refuses_and_the_others_serve() {
    let mut rig = Rig::new(7);
    rig.settings.capacity_per_s = 800;
    let mut run = rig.run();
    run.pass(2000);
    let tally = run.end();
    assert!(tally.refused > 100, "{tally:?}");
    assert_eq!(tally.wrong(), 0, "{tally:?}");
}
