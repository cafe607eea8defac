//! The demo in numbers, and why these.

use core::net::SocketAddr;

use super::story::StorySettings;
use crate::config::{self, Faults, Settings};
use crate::simulate::{HotSpell, LoadSettings, TrafficSettings};
use crate::units::{EventTime, InvalidRate, InvalidShare, Rate, Share, Span};

/// What a viewer may choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoSettings {
    /// How long it runs.
    pub length: Span,
    /// Seed of all that is random.
    pub seed: u64,
    /// Where `/metrics` and the API are served, if at all.
    pub http: Option<SocketAddr>,
}

/// The client that turns hot.
pub const HOT_CLIENT: &str = "acme";
/// The keyspace.
pub(super) const KEYSPACE: &str = "client";
/// The topic of access events.
pub(super) const INPUT_TOPIC: &str = "demo.access";
/// Its partitions.
pub(super) const INPUT_PARTITIONS: i32 = 4;
/// How many routers there are.
pub(super) const ROUTERS: usize = 3;
/// How many shards there are.
pub(super) const SHARDS: usize = 8;
/// Records that the hot client has from the start: what the owner will have to move.
pub(super) const PRELOADED: usize = 2400;
/// Records that the owner copies or checks in a second: slow enough to be watched.
pub(super) const MOVED_PER_S: u64 = 3000;

/// Requests a second: enough that counts are smooth, few enough for one busy core in a debug build.
const RATE_PER_S: f64 = 2000.0;
/// Clients beside the hot one, all alike: with so many, shards differ by some per cent only.
const CLIENTS: u32 = 4000;
/// The hot client's share of all requests: its shard then takes `1 + 8 x 0.45 / 0.55 = 7.5` times the median.
const HOT_SHARE: f64 = 0.45;
/// When it turns hot, after the first request.
const HOT_AFTER: Span = Span::from_secs(8);
/// What one shard can serve: less than the hot one is asked for, and four times what it is asked for when all is even.
const CAPACITY_PER_S: u32 = 900;
/// The longest that a store call may take; the stores drop those that are older. Writes that nobody knows the outcome of keep a plan
/// in dual for so long.
const CALL_LIMIT: Span = Span::from_secs(4);
/// The longest that writes may wait for routers to acknowledge: many times what it takes, since a hold that is turned back is tried
/// again a minute later only.
const HOLD_LIMIT: Span = Span::from_secs(3);
/// What one bucket may carry: the hot client's 900/s with a headroom of 20 % need eight buckets, and so do the 800/s that have been
/// counted when it reaches its share of the window. By then the window holds the new load, not the old one, by which the buckets
/// would be placed.
const BUCKET_RATE_PER_S: u32 = 145;

/// Which imbalance is shown as the trouble, and which as the cure.
const UNEVEN: f64 = 5.0;
const EVEN: f64 = 1.5;

const METER_SLOT: Span = Span::from_millis(250);
const METER_SLOTS: usize = 16;

impl DemoSettings {
    /// The load; its first request is sent at `start`.
    ///
    /// # Errors
    /// Never: the numbers are written above, and checked like any others.
    pub fn load(&self, start: EventTime) -> Result<LoadSettings, InvalidNumber> {
        Ok(LoadSettings {
            rate: Rate::per_second(RATE_PER_S)?,
            keys: CLIENTS,
            zipf_exponent: 0.0,
            hot: vec![HotSpell {
                key: HOT_CLIENT.to_owned(),
                share: Share::new(HOT_SHARE)?,
                begin: HOT_AFTER,
                end: None,
            }],
            read_share: Share::new(0.5)?,
            mapper: None,
            disorder: Span::ZERO,
            seed: self.seed,
            start,
        })
    }

    /// What clients do.
    #[must_use]
    pub fn traffic(&self) -> TrafficSettings {
        TrafficSettings {
            keyspace: KEYSPACE.to_owned(),
            max_records: 4000,
            scans: 0.002,
            deletes: 0.05,
            updates_in_place: 0.05,
            unknown_outcomes: 0.002,
            call_limit: CALL_LIMIT,
            patience: Span::from_secs(10),
            capacity_per_s: CAPACITY_PER_S,
            longest_queue: Span::from_millis(100),
            meter_slot: METER_SLOT,
            meter_slots: METER_SLOTS,
            seed: self.seed,
        }
    }

    /// What is told.
    ///
    /// # Errors
    /// As [`DemoSettings::load`].
    pub fn story(&self) -> Result<StorySettings, InvalidNumber> {
        Ok(StorySettings {
            client: HOT_CLIENT.to_owned(),
            share: Share::new(HOT_SHARE)?,
            uneven: UNEVEN,
            even: EVEN,
            window: METER_SLOT.saturating_mul(METER_SLOTS as u64 + 1),
        })
    }

    /// The service's settings, read from a configuration file as anybody would write it.
    ///
    /// # Errors
    /// [`Faults`]; the file is written here and tested.
    pub fn service(&self, brokers: &str) -> Result<Settings, Faults> {
        Ok(config::load(&self.file(brokers))?.settings)
    }

    /// The configuration file. The window is short, so that a viewer need not wait; the mock cluster answers wrongly where a time lies
    /// in a partition, so reading starts at the earliest record.
    #[must_use]
    pub fn file(&self, brokers: &str) -> String {
        let list = brokers.split(',').map(|broker| format!("\"{broker}\"")).collect::<Vec<_>>().join(", ");
        format!(
            r#"seed = "{seed:016x}"

[kafka]
brokers = [{list}]

[input]
topic = "{INPUT_TOPIC}"
group = "keyheat-demo"
start = "earliest"
time = "/ts"
shard = "/shard"
request_id = "/id"
operation = "/op"

[time]
disorder = "500ms"
idle_timeout = "1s"

[[keyspace]]
name = "{KEYSPACE}"
key = "/client"
windows = "5s/500ms"
share = "40%"
floor = 500
shard_rules = {{ median = 3, floor = 500 }}
mode = "auto"
writes = "update"
history = "move"
bucket_rate = {BUCKET_RATE_PER_S}
headroom = 0.2
mapper = {{ kind = "modulo", hash = "murmur2", count = {SHARDS}, prefix = "s" }}

[plan]
min_dwell = "30s"

[protocol]
hold_limit = "{HOLD_LIMIT}"
call_limit = "{CALL_LIMIT}"
expect_routers = {ROUTERS}

[control]
heartbeat = "1s"

[service]
shutdown_grace = "4s"
"#,
            seed = self.seed,
        )
    }
}

/// A number of the demo that is out of range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNumber {
    /// A rate.
    #[error(transparent)]
    Rate(#[from] InvalidRate),
    /// A share.
    #[error(transparent)]
    Share(#[from] InvalidShare),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Mode;
    use crate::simulate::Load;

    fn settings() -> DemoSettings {
        DemoSettings { length: Span::from_secs(60), seed: 7, http: None }
    }

    #[test]
    fn the_configuration_has_no_faults_and_no_warnings() {
        let loaded =
            config::load(&settings().file("127.0.0.1:1,127.0.0.1:2")).unwrap_or_else(|faults| panic!("{faults}"));
        assert_eq!(loaded.warnings, []);
        let used = loaded.settings;
        assert_eq!(used.kafka.brokers, ["127.0.0.1:1", "127.0.0.1:2"]);
        assert_eq!(used.plans[0].mode, Mode::Auto);
        assert_eq!(used.plans[0].mapper.as_ref().unwrap().shards().len(), SHARDS);
        assert_eq!(used.protocol.call_limit, settings().traffic().call_limit);
    }

    #[test]
    fn the_load_is_one_that_can_be() {
        Load::new(settings().load(EventTime::MIN).unwrap()).unwrap();
        settings().story().unwrap();
    }
}
