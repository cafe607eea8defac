//! Events: each leaves a counter and a log line together, so that neither tells what the other does not.
//!
//! Whatever came from outside is escaped and cut in the line; keys are shown as configured; values of records never are.
//! Lines of a kind that outside input can cause are limited; the counter is not.

use std::sync::{Arc, Mutex, PoisonError};

use tracing::{error, info, warn};

use super::counters::Telemetry;
use super::display::{MAX_LOG_CHARS, escape};
use super::labels::{CommitResult, ConfigReload, ControlKind, ControlResult, KafkaErrorClass, Rebalance};
use super::log_limit::LogLimit;
use super::verdict_line;
use crate::engine::Verdict;
use crate::input::Refusal;
use crate::plan::MapperTrust;
use crate::protocol::Version;
use crate::units::{EventTime, Offset, Partition, Span};

/// Lines of one kind in [`LOG_PERIOD`].
const LOG_LINES: u32 = 10;
/// The period of the limit.
const LOG_PERIOD: Span = Span::from_secs(10);
/// The longest line on the configuration, in characters: a fault has the value, the rule and the remedy.
const MAX_CONFIG_CHARS: usize = 1000;

/// Counts and logs. Shared by all threads; `now` is the clock.
#[derive(Debug)]
pub struct Events {
    telemetry: Arc<Telemetry>,
    limit: Mutex<LogLimit>,
}

/// What is limited on its own.
#[derive(Debug, Clone, Copy)]
enum LineKind {
    Refused(Refusal),
    KafkaError(KafkaErrorClass),
    Control(ControlKind, ControlResult),
    Commit,
    Verdict,
    RouterRefusal,
    HoldTurnedBack,
    OffsetsLost,
    Repeated,
    GivenUp,
    Mapper,
}

const CONTROL_RESULTS: usize = ControlResult::ALL.len();
const KAFKA_FROM: usize = Refusal::ALL.len();
const CONTROL_FROM: usize = KAFKA_FROM + KafkaErrorClass::ALL.len();
const SINGLE_FROM: usize = CONTROL_FROM + ControlKind::ALL.len() * CONTROL_RESULTS;

impl LineKind {
    const COUNT: usize = SINGLE_FROM + 8;

    const fn index(self) -> usize {
        match self {
            Self::Refused(reason) => reason as usize,
            Self::KafkaError(class) => KAFKA_FROM + class as usize,
            Self::Control(kind, result) => CONTROL_FROM + kind as usize * CONTROL_RESULTS + result as usize,
            Self::Commit => SINGLE_FROM,
            Self::Verdict => SINGLE_FROM + 1,
            Self::RouterRefusal => SINGLE_FROM + 2,
            Self::HoldTurnedBack => SINGLE_FROM + 3,
            Self::OffsetsLost => SINGLE_FROM + 4,
            Self::Repeated => SINGLE_FROM + 5,
            Self::GivenUp => SINGLE_FROM + 6,
            Self::Mapper => SINGLE_FROM + 7,
        }
    }
}

impl Events {
    /// Events that count in `telemetry`.
    #[must_use]
    pub fn new(telemetry: Arc<Telemetry>) -> Self {
        Self { telemetry, limit: Mutex::new(LogLimit::new(LineKind::COUNT, LOG_LINES, LOG_PERIOD)) }
    }

    /// The counters behind it, for what happens too often for a line.
    #[must_use]
    pub const fn telemetry(&self) -> &Arc<Telemetry> {
        &self.telemetry
    }

    /// `records` records were refused, the last one at this place. The line names the place, never the record.
    pub fn records_refused(&self, now: EventTime, reason: Refusal, records: u64, partition: Partition, at: Offset) {
        self.telemetry.add_refused(reason, records);
        if let Some(suppressed) = self.admit(LineKind::Refused(reason), now) {
            let (partition, offset) = (partition.0, at.0);
            warn!(reason = reason.label(), records, partition, offset, suppressed, "record refused: {reason}");
        }
    }

    /// The engine changed what it knows of a key or shard.
    pub fn verdict(&self, now: EventTime, keyspace: &str, verdict: &Verdict) {
        self.telemetry.count_verdict(verdict);
        let Some(suppressed) = self.admit(LineKind::Verdict, now) else { return };
        verdict_line::log(verdict, keyspace, self.telemetry.settings().key_display, suppressed);
    }

    /// Rules of a configuration that was read again are in force, in each keyspace fully from this event time on, or at once.
    pub fn reload_applied(&self, config: &str, keyspaces: &[(&str, Option<EventTime>)]) {
        self.telemetry.count_reload(ConfigReload::Applied);
        for (keyspace, complete_from) in keyspaces {
            let fully = complete_from.map_or_else(|| "at once".to_owned(), |at| format!("from {} on", at.to_rfc3339()));
            let complete_from = complete_from.map(EventTime::to_rfc3339);
            info!(keyspace, config, complete_from, "rules changed: fully in force {fully}");
        }
    }

    /// A configuration was read again and changes nothing; `why` has a line for each fault.
    pub fn reload_refused(&self, why: &[String]) {
        self.telemetry.count_reload(ConfigReload::Refused);
        for line in why {
            warn!("configuration not reloaded, nothing changed: {}", escape(line.as_bytes(), MAX_CONFIG_CHARS));
        }
    }

    /// A configuration was read again and says what is in force already.
    pub fn reload_unchanged(&self) {
        self.telemetry.count_reload(ConfigReload::Unchanged);
        info!("configuration read again: it says what is in force already");
    }

    /// Something in a configuration that was read again works and may not be what was meant.
    pub fn config_warning(&self, line: &str) {
        warn!("configuration: {}", escape(line.as_bytes(), MAX_CONFIG_CHARS));
    }

    /// A rebalance gave or took these partitions.
    pub fn rebalance(&self, kind: Rebalance, partitions: &[Partition]) {
        self.telemetry.count_rebalance(kind);
        let listed: Vec<i32> = partitions.iter().take(64).map(|partition| partition.0).collect();
        info!(kind = kind.label(), number = partitions.len(), partitions = ?listed, "partitions {}", kind.label());
    }

    /// A Kafka client (`client` says which) reported an error.
    pub fn kafka_error(&self, now: EventTime, client: &'static str, class: KafkaErrorClass, text: &str) {
        self.telemetry.count_kafka_error(class);
        if let Some(suppressed) = self.admit(LineKind::KafkaError(class), now) {
            let text = escape(text.as_bytes(), MAX_LOG_CHARS);
            warn!(client, class = class.label(), suppressed, "kafka error: {text}");
        }
    }

    /// Offsets from `from` to before `to` do not exist any more.
    pub fn offsets_lost(&self, now: EventTime, partition: Partition, from: Offset, to: Offset) {
        let lost = u64::try_from(to.0.saturating_sub(from.0)).unwrap_or(0);
        self.telemetry.add_offsets_lost(lost);
        if let Some(suppressed) = self.admit(LineKind::OffsetsLost, now) {
            let (partition, wanted, found) = (partition.0, from.0, to.0);
            warn!(partition, wanted, found, lost, suppressed, "offsets lost: they do not exist any more");
        }
    }

    /// A record that had been handed out came again and was left out.
    pub fn record_repeated(&self, now: EventTime, partition: Partition, at: Offset) {
        self.telemetry.count_repeated();
        if let Some(suppressed) = self.admit(LineKind::Repeated, now) {
            let (partition, offset) = (partition.0, at.0);
            info!(partition, offset, suppressed, "record came again and is left out");
        }
    }

    /// A partition's log begins anew below the position.
    pub fn partition_rewound(&self, partition: Partition, at: Offset) {
        self.telemetry.count_rewound();
        let (partition, offset) = (partition.0, at.0);
        warn!(partition, offset, "the log begins anew: the topic was made anew or cut; the partition starts cold");
    }

    /// Others waited for a partition in vain, and go on without it.
    pub fn partition_given_up(&self, now: EventTime, partition: Partition) {
        self.telemetry.count_given_up();
        if let Some(suppressed) = self.admit(LineKind::GivenUp, now) {
            let partition = partition.0;
            warn!(
                partition,
                suppressed,
                "the partition does not move, or brings no event: others wait for it no longer, and nothing is planned until it does"
            );
        }
    }

    /// What events say of a declared mapper has changed: `mismatch` of the last ones were elsewhere than it says. The gauge is the view's.
    pub fn mapper(&self, now: EventTime, keyspace: &str, trust: MapperTrust, mismatch: f64) {
        let Some(suppressed) = self.admit(LineKind::Mapper, now) else { return };
        let (label, percent) = (trust.label(), 100.0 * mismatch);
        if trust == MapperTrust::Refuted {
            warn!(
                keyspace,
                trust = label,
                mismatch,
                suppressed,
                "{percent:.1} % of the events are on other shards than the declared mapper says: buckets are placed by luck; correct \
                 keyspace.mapper"
            );
        } else {
            info!(
                keyspace,
                trust = label,
                mismatch,
                suppressed,
                "events are on the shards that the declared mapper says"
            );
        }
    }

    /// The plan topic has lost records: publishing stops until a person has looked.
    pub fn plan_topic_lost(&self, detail: &str) {
        let detail = escape(detail.as_bytes(), MAX_LOG_CHARS);
        error!("publishing stops: {detail}; see the runbook KeyheatNotReady, then restart");
    }

    /// An offset commit ended; `failure` says why when it failed. A good one leaves no line.
    pub fn commit(&self, now: EventTime, failure: Option<&str>) {
        let Some(failure) = failure else { return self.telemetry.count_commit(CommitResult::Ok) };
        self.telemetry.count_commit(CommitResult::Failed);
        if let Some(suppressed) = self.admit(LineKind::Commit, now) {
            let failure = escape(failure.as_bytes(), MAX_LOG_CHARS);
            warn!(suppressed, "offset commit failed: {failure}; the offsets are sent again with the next one");
        }
    }

    /// The watchdog found lag, a reachable broker and no progress for `span`.
    pub fn stall(&self, span: Span, lag: u64) {
        self.telemetry.count_stall();
        error!(lag, %span, "no progress for {span} with {lag} unread records and a reachable broker");
    }

    /// A record of the plan topic came to this end. `key` is the key of the keyspace it is about, if any.
    pub fn control(
        &self,
        now: EventTime,
        (kind, result): (ControlKind, ControlResult),
        version: Version,
        key: Option<(&str, &[u8])>,
        detail: &str,
    ) {
        self.telemetry.count_control(kind, result);
        let routine = kind == ControlKind::Heartbeat && result == ControlResult::Published;
        let Some(suppressed) = (if routine { None } else { self.admit(LineKind::Control(kind, result), now) }) else {
            return;
        };
        let (kind, label) = (kind.label(), result.label());
        let keyspace = key.map_or("", |(keyspace, _)| keyspace);
        let key = key.map_or_else(String::new, |(_, key)| self.key_text(key));
        let detail = escape(detail.as_bytes(), MAX_LOG_CHARS);
        match result {
            ControlResult::Published => {
                info!(kind, result = label, %version, keyspace, key, suppressed, "{kind} {label}: {detail}");
            }
            ControlResult::Failed | ControlResult::Refused | ControlResult::Reasserted => {
                warn!(kind, result = label, %version, keyspace, key, suppressed, "{kind} {label}: {detail}");
            }
        }
    }

    /// This process began or ceased to publish.
    pub fn leader(&self, leads: bool, epoch: u64) {
        let what = if leads { "leads: it publishes plans" } else { "follows: another process publishes plans" };
        info!(leads, epoch, "this process {what}");
    }

    /// Somebody approved the proposal of a key.
    pub fn approved(&self, keyspace: &str, key: &[u8]) {
        let key = self.key_text(key);
        info!(keyspace, key, "the proposal was approved by command");
    }

    /// What somebody said of a key is on the plan topic.
    pub fn told(&self, keyspace: &str, key: &[u8], effect: &'static str) {
        let key = self.key_text(key);
        info!(keyspace, key, effect, "a key was pinned, blocked, withdrawn or let go by command");
    }

    /// Somebody stopped everything new, or let it begin again.
    pub fn frozen(&self, frozen: bool) {
        let what = if frozen { "nothing new begins until it is ended, or this process" } else { "ended" };
        info!(frozen, "freeze by command: {what}");
    }

    /// A hold was turned back because not every router acknowledged in time.
    pub fn hold_turned_back(&self, now: EventTime, keyspace: &str, key: &[u8], waiting_for: usize) {
        self.telemetry.count_hold_turned_back();
        if let Some(suppressed) = self.admit(LineKind::HoldTurnedBack, now) {
            let key = self.key_text(key);
            warn!(
                keyspace,
                key, waiting_for, suppressed, "hold turned back: {waiting_for} routers did not acknowledge"
            );
        }
    }

    /// A router said that it cannot obey a plan record.
    pub fn router_refusal(&self, now: EventTime, router: &str, keyspace: &str, key: &[u8], reason: &str) {
        self.telemetry.count_router_refusal();
        if let Some(suppressed) = self.admit(LineKind::RouterRefusal, now) {
            let (router, reason) = (escape(router.as_bytes(), MAX_LOG_CHARS), escape(reason.as_bytes(), MAX_LOG_CHARS));
            let (keyspace, key) = (escape(keyspace.as_bytes(), MAX_LOG_CHARS), self.key_text(key));
            warn!(router, keyspace, key, suppressed, "router refuses a plan: {reason}");
        }
    }

    fn key_text(&self, key: &[u8]) -> String {
        self.telemetry.settings().key_display.text(key, MAX_LOG_CHARS)
    }

    fn admit(&self, kind: LineKind, now: EventTime) -> Option<u64> {
        let admitted = self.limit.lock().unwrap_or_else(PoisonError::into_inner).admit(kind.index(), now);
        if admitted.is_none() {
            self.telemetry.add_lines_suppressed(1);
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::engine::{
        BUCKET_COUNTERS, Change, KeyProfile, Operations, Profile, Reason, RuleKind, ShardCause, ShardProfile, Subject,
    };
    use crate::telemetry::{KeyDisplay, KeyspaceLabels, Metric, TelemetrySettings};
    use crate::units::Estimate;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn events(key_display: KeyDisplay) -> Events {
        let keyspaces = vec![KeyspaceLabels { name: "customer".to_owned(), windows: vec![Span::from_secs(10)] }];
        Events::new(Arc::new(Telemetry::new(TelemetrySettings { key_display, ..TelemetrySettings::new(keyspaces) })))
    }

    /// What the log has, as text or as JSON.
    fn logged(json: bool, run: impl FnOnce()) -> String {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let builder = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false);
        if json {
            tracing::subscriber::with_default(builder.json().finish(), run);
        } else {
            tracing::subscriber::with_default(builder.finish(), run);
        }
        let bytes = buffer.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    fn hot(key: &[u8]) -> Verdict {
        let reason = Reason {
            rule: RuleKind::Absolute,
            window: Span::from_secs(10),
            threshold: 20,
            count: Estimate { lower: 25, upper: 30 },
            median: None,
            subjects: Estimate::exact(100),
        };
        Verdict {
            at: EventTime::MIN,
            keyspace: 0,
            change: Change::Hot,
            subject: Subject::Key(key.into()),
            reason,
            profile: Profile::Shard(Box::default()),
        }
    }

    fn at(ms: i64) -> EventTime {
        EventTime::from_millis(ms).unwrap()
    }

    #[test]
    fn every_byte_of_a_key_reaches_the_log_harmlessly_t7() {
        for json in [false, true] {
            let events = events(KeyDisplay::Plain);
            let text = logged(json, || {
                for byte in 0..=255_u8 {
                    events.verdict(at(20_000 * (i64::from(byte) + 1)), "customer", &hot(&[b'k', byte, b'"', b'k']));
                }
                events.kafka_error(at(1), "source", KafkaErrorClass::Transport, "a\nb\x1b[2J\u{202e}");
            });
            assert_eq!(text.lines().count(), 257, "one line an event");
            assert!(text.lines().all(|line| !line.contains(char::is_control) && !line.contains('\u{202e}')));
            if json {
                assert!(text.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
            }
        }
    }

    #[test]
    fn keys_are_hidden_where_the_setting_says_so_t17() {
        for key_display in [KeyDisplay::Off, KeyDisplay::Hash { secret: [1; 16] }] {
            let events = events(key_display);
            let text = logged(false, || {
                events.verdict(at(1), "customer", &hot(b"mail@example.org"));
                events.hold_turned_back(at(1), "customer", b"mail@example.org", 2);
                events.router_refusal(at(1), "r1", "customer", b"mail@example.org", "unknown hash");
            });
            assert_eq!(text.lines().count(), 3);
            assert!(!text.contains("mail"), "{text}");
        }
    }

    #[test]
    fn a_verdict_says_what_lies_behind_it_and_shows_keys_as_configured() {
        let mut of_key = hot(b"whale");
        of_key.reason.median = Some(Estimate { lower: 2, upper: 3 });
        of_key.profile = Profile::Key(Box::new(KeyProfile {
            since: at(1000),
            operations: Operations { reads: 20, writes: 5, scans: 0, unknown: 0 },
            weight: 77,
            sampled: 25,
            shards: vec![(b"s\n1"[..].into(), Estimate { lower: 20, upper: 21 })],
            callers: vec![(b"alice"[..].into(), Estimate::exact(25))],
            buckets: Box::new([0; BUCKET_COUNTERS]),
            without_request_id: 0,
        }));
        let of_shard = Verdict {
            subject: Subject::Shard(b"s\n1"[..].into()),
            profile: Profile::Shard(Box::new(ShardProfile {
                cause: Some(ShardCause::OneKey),
                sampled: 200,
                keys: vec![(b"whale"[..].into(), Estimate { lower: 120, upper: 130 })],
                fresh: None,
            })),
            ..hot(b"")
        };
        let told = |key_display| {
            let events = events(key_display);
            logged(true, || {
                events.verdict(at(1), "customer", &of_key);
                events.verdict(at(1), "customer", &of_shard);
            })
        };
        let text = told(KeyDisplay::Plain);
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [key, shard] = [0, 1].map(|line: usize| lines[line]["fields"].clone());
        for (field, value) in [
            ("message", "key hot"),
            ("keys", "100"),
            ("median", "2..3"),
            ("shard", r"s\n1"),
            ("shard_share", "80.0..84.0 %"),
            ("caller", "alice"),
            ("caller_share", "100.0 %"),
            ("since", "1970-01-01T00:00:01.000Z"),
        ] {
            assert_eq!(key[field], value, "{field}: {key}");
        }
        assert_eq!((&key["reads"], &key["writes"], &key["weight"]), (&20.into(), &5.into(), &77.into()));
        let behind = ["message", "cause", "key", "key_share"].map(|field| shard[field].as_str().unwrap().to_owned());
        assert_eq!(behind, ["shard hot", "one_key", "whale", "60.0..65.0 %"]);
        for key_display in [KeyDisplay::Off, KeyDisplay::Hash { secret: [1; 16] }] {
            let text = told(key_display);
            assert!(!text.contains("whale") && !text.contains("alice"), "{text}");
        }
    }

    #[test]
    fn a_reload_is_told_and_counted_whatever_became_of_it() {
        let events = events(KeyDisplay::Plain);
        let text = logged(true, || {
            events.reload_applied("00000000000000aa", &[("customer", Some(at(61_000))), ("object", None)]);
            events.reload_refused(&["k.toml:3:1: rate: got \"x\"".to_owned(), "k.toml:4:1: a\nb".to_owned()]);
            events.reload_unchanged();
        });
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let said = |line: usize, field: &str| lines[line]["fields"][field].as_str().map(str::to_owned);
        assert_eq!(said(0, "message").unwrap(), "rules changed: fully in force from 1970-01-01T00:01:01.000Z on");
        assert_eq!(said(0, "complete_from").unwrap(), "1970-01-01T00:01:01.000Z");
        assert_eq!(said(1, "message").unwrap(), "rules changed: fully in force at once");
        assert_eq!((said(1, "keyspace").unwrap().as_str(), said(1, "complete_from")), ("object", None));
        assert_eq!(
            said(2, "message").unwrap(),
            "configuration not reloaded, nothing changed: k.toml:3:1: rate: got \"x\""
        );
        assert_eq!(lines.len(), 5);
        assert_eq!(events.telemetry().total(Metric::ConfigReloads), 3);
    }

    #[test]
    fn a_flood_is_counted_whole_and_logged_in_part() {
        let events = events(KeyDisplay::Plain);
        let refuse = |ms| events.records_refused(at(ms), Refusal::NotJson, 1, Partition(3), Offset(77));
        let text = logged(false, || (0..1000).for_each(|n| refuse(30_000 + n)));
        assert_eq!(text.lines().count(), 10);
        assert_eq!(events.telemetry().total(Metric::RecordsRefused), 1000);
        assert_eq!(events.telemetry().total(Metric::LinesSuppressed), 990);
        let text = logged(false, || refuse(60_000));
        assert!(text.contains("suppressed=990") && text.contains("offset=77"), "{text}");
    }

    #[test]
    fn kinds_of_line_have_an_index_each() {
        let mut indices: Vec<usize> = Refusal::ALL.map(|reason| LineKind::Refused(reason).index()).to_vec();
        indices.extend(KafkaErrorClass::ALL.iter().map(|class| LineKind::KafkaError(*class).index()));
        for kind in ControlKind::ALL {
            indices.extend(ControlResult::ALL.iter().map(|result| LineKind::Control(*kind, *result).index()));
        }
        indices.extend(
            [
                LineKind::Commit,
                LineKind::Verdict,
                LineKind::RouterRefusal,
                LineKind::HoldTurnedBack,
                LineKind::OffsetsLost,
                LineKind::Repeated,
                LineKind::GivenUp,
                LineKind::Mapper,
            ]
            .map(LineKind::index),
        );
        assert_eq!(indices, (0..LineKind::COUNT).collect::<Vec<_>>());
    }
}
