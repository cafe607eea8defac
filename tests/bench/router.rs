//! What one request of a key without a plan costs a router, guard included: the table beside a plain `DashMap` look-up and an
//! `RwLock<HashMap>`, in one run, while each of them changes 100 times a second.
//!
//! `cargo bench --no-default-features --bench router` prints nanoseconds a request (the least disturbed of interleaved rounds) and how many
//! times a plain `DashMap` look-up that is. A `divan` run of the same contestants on one thread follows.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use dashmap::DashMap;
use divan::Bencher;
use keyheat::protocol::{PlanKey, PlanRecord, Version};
use keyheat::router::{Table, TableSettings};

const KEYSPACE: &str = "customer";
const KEYS: usize = 4096;
/// A round is shorter than a time slice, so that some round is disturbed by nobody.
const REQUESTS: usize = 20_000;
const ROUNDS: usize = 40;
const BETWEEN_CHANGES: Duration = Duration::from_millis(10);

fn main() {
    if std::env::args().any(|argument| argument == "--bench") {
        ratios();
    }
    divan::main();
}

fn key(number: usize) -> Vec<u8> {
    let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("client-{:08x}", mixed >> 32).into_bytes()
}

/// Keys without a plan: other ones than those with one.
fn asked() -> Vec<Vec<u8>> {
    (0..KEYS).map(|number| key(1_000_000 + number)).collect()
}

/// A settled split, by the protocol's own reader.
fn record(key: &[u8]) -> PlanRecord {
    let text = std::str::from_utf8(key).expect("a text");
    let json = format!(
        r#"{{"schema":1,"keyspace":"{KEYSPACE}","key":"{text}","state":"settled","write":{{"layout":1,"buckets":8}},
        "read":[{{"layout":1,"buckets":8}}],"delete":"tombstone",
        "migration":{{"version":{{"epoch":1,"seq":1}},"from":{{"layout":0}},"to":{{"layout":1,"buckets":8}},"writes":"insert","history":"move"}},
        "bucket":{{"hash":"xxh64-low-bits","seed":"0000000000000007","key":"{{key}}:{{label}}"}},
        "evidence":{{"rule":"relative","window_ms":60000,"count":{{"lower":1,"upper":1}},"threshold":1,"rate_per_s":1.0,"median":1,
        "reads":0,"writes":1,"shard":null,"completeness":1.0,"end_offsets":{{}},"config":"0000000000000000"}},
        "prediction":{{"hottest_bucket_share":0.5,"hottest_shard_before":null,"hottest_shard_after":null,"added_load":0.0}},
        "outcome":null,"decided_at":"2026-11-30T10:11:32.120Z"}}"#
    );
    serde_json::from_str(&json).expect("a record")
}

/// One way to know which keys are split.
trait Contestant: Sync {
    fn with_plans(plans: usize) -> Self
    where
        Self: Sized;
    fn request(&self, key: &[u8]);
    /// Changes the plan of the key with this number for the `version`-th time.
    fn change(&self, number: usize, version: u64);
}

struct Ours(Table);
struct Dash(DashMap<Vec<u8>, u64>);
struct Locked(RwLock<HashMap<Vec<u8>, u64>>);

impl Contestant for Ours {
    fn with_plans(plans: usize) -> Self {
        let ours = Self(Table::new(TableSettings::default()));
        for number in 0..plans {
            ours.change(number, 1);
        }
        ours
    }

    fn request(&self, key: &[u8]) {
        // Placed, and given back as after the store's answer.
        drop(black_box(self.0.write(KEYSPACE, key, b"order-1")));
    }

    fn change(&self, number: usize, version: u64) {
        let key = key(number);
        let version = Version { epoch: 1, seq: version };
        self.0.put(&PlanKey::new(KEYSPACE, &key), version, &record(&key)).expect("a change");
    }
}

impl Contestant for Dash {
    fn with_plans(plans: usize) -> Self {
        Self((0..plans).map(|number| (key(number), 1)).collect())
    }

    fn request(&self, key: &[u8]) {
        black_box(self.0.get(key).map(|version| *version));
    }

    fn change(&self, number: usize, version: u64) {
        self.0.insert(key(number), version);
    }
}

impl Contestant for Locked {
    fn with_plans(plans: usize) -> Self {
        Self(RwLock::new((0..plans).map(|number| (key(number), 1)).collect()))
    }

    fn request(&self, key: &[u8]) {
        black_box(self.0.read().expect("a lock").get(key).copied());
    }

    fn change(&self, number: usize, version: u64) {
        self.0.write().expect("a lock").insert(key(number), version);
    }
}

/// Nanoseconds a request of one thread, of `threads` that ask at once.
#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn round(contestant: &dyn Contestant, keys: &[Vec<u8>], threads: usize, versions: &mut u64, plans: usize) -> f64 {
    let (stop, first) = (AtomicBool::new(false), *versions);
    let mut nanos = 0.0;
    thread::scope(|scope| {
        let changer = scope.spawn(|| {
            let mut version = first;
            while plans > 0 && !stop.load(Relaxed) {
                version += 1;
                let number = usize::try_from(version).unwrap_or(0) % plans;
                contestant.change(number, version);
                thread::sleep(BETWEEN_CHANGES);
            }
            version
        });
        let asking: Vec<_> = (0..threads)
            .map(|number| {
                scope.spawn(move || {
                    let start = Instant::now();
                    for request in 0..REQUESTS {
                        contestant.request(&keys[(request * 7 + number * 13) % keys.len()]);
                    }
                    start.elapsed().as_nanos() as f64 / REQUESTS as f64
                })
            })
            .collect();
        nanos = asking.into_iter().map(|asker| asker.join().expect("an asker")).sum::<f64>() / threads as f64;
        stop.store(true, Relaxed);
        *versions = changer.join().expect("the changer");
    });
    nanos
}

#[expect(clippy::print_stdout, reason = "a bench prints its figures")]
fn ratios() {
    let keys = asked();
    println!("threads  plans   table ns  dashmap ns  rwlock ns  table/dashmap");
    for threads in [1, 2, 8] {
        for plans in [0, 10, 10_000] {
            let contestants: [Box<dyn Contestant>; 3] = [
                Box::new(Ours::with_plans(plans)),
                Box::new(Dash::with_plans(plans)),
                Box::new(Locked::with_plans(plans)),
            ];
            let mut versions = [1; 3];
            let mut measured = [const { Vec::new() }; 3];
            for _ in 0..ROUNDS {
                for ((contestant, versions), measured) in contestants.iter().zip(&mut versions).zip(&mut measured) {
                    measured.push(round(&**contestant, &keys, threads, versions, plans));
                }
            }
            let [ours, dash, locked] = measured.map(|nanos| nanos.into_iter().fold(f64::INFINITY, f64::min));
            println!("{threads:>7} {plans:>6} {ours:>10.1} {dash:>11.1} {locked:>10.1} {:>14.2}", ours / dash);
        }
    }
}

#[divan::bench(types = [Ours, Dash, Locked], args = [0, 10, 10_000])]
fn request<C: Contestant + 'static>(bencher: Bencher<'_, '_>, plans: usize) {
    let (contestant, keys) = (C::with_plans(plans), asked());
    bencher.bench_local(|| {
        for key in &keys {
            contestant.request(key);
        }
    });
}
