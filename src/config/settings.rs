//! The configuration as used: each stage's own settings, and those of the stages that do I/O.

use core::net::{Ipv4Addr, SocketAddr};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use crate::engine::EngineSettings;
use crate::input::InputSettings;
use crate::plan::{BudgetSettings, PlanSettings, ProtocolSettings};
use crate::units::Span;

/// Everything that the service is told, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How Kafka is reached.
    pub kafka: KafkaSettings,
    /// What is read.
    pub source: SourceSettings,
    /// How a record becomes an event.
    pub input: InputSettings,
    /// How event time moves, and how keys are counted and judged in each keyspace; in the order of the file, 1 to
    /// [`crate::input::MAX_KEYSPACES`].
    pub engine: EngineSettings,
    /// How splits are planned; one for each keyspace, in the same order.
    pub plans: Vec<PlanSettings>,
    /// Limits over all keyspaces.
    pub budget: BudgetSettings,
    /// Times of the protocol.
    pub protocol: ProtocolSettings,
    /// The topics between the leader and the routers.
    pub control: ControlSettings,
    /// What can be seen from outside.
    pub observe: ObserveSettings,
    /// Start, stop and stalls.
    pub service: ServiceSettings,
    /// Names the settings on which decisions depend.
    pub hash: ConfigHash,
}

impl Settings {
    /// How far back a start must read so that the longest window is whole.
    #[must_use]
    pub fn reach(&self) -> Span {
        let windows = self.engine.keyspaces.iter().flat_map(|keyspace| &keyspace.windows);
        let longest = windows.map(|window| window.length.saturating_add(window.pane)).max().unwrap_or(Span::ZERO);
        longest.saturating_add(self.engine.time.disorder).saturating_add(self.engine.time.max_ahead)
    }
}

/// Names the settings on which decisions depend: `xxh64` of their canonical form, 16 hexadecimal digits in records and metrics.
///
/// Connection, HTTP and service settings are left out, and so are seeds and everything secret, since the hash is public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConfigHash(pub u64);

impl fmt::Display for ConfigHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// How Kafka is reached.
#[derive(Clone, PartialEq, Eq)]
pub struct KafkaSettings {
    /// Addresses of some brokers, `host:port`; the others are learned from them.
    pub brokers: Vec<String>,
    /// The name in the brokers' logs and quotas.
    pub client_id: String,
    /// How the connection is protected.
    pub security: Security,
    /// Further properties of librdkafka; they win over ours.
    pub librdkafka: BTreeMap<String, String>,
}

impl KafkaSettings {
    /// Plain connections to `brokers` and nothing else set, e.g. for a cluster on this machine.
    #[must_use]
    pub fn plain(brokers: &[&str]) -> Self {
        Self {
            brokers: brokers.iter().map(|broker| (*broker).to_owned()).collect(),
            client_id: Self::DEFAULT_CLIENT_ID.to_owned(),
            security: Security::default(),
            librdkafka: BTreeMap::new(),
        }
    }

    /// Default of [`KafkaSettings::client_id`].
    pub const DEFAULT_CLIENT_ID: &str = "keyheat";
}

/// Values of further properties can be passwords, so only their names are shown.
impl fmt::Debug for KafkaSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSettings")
            .field("brokers", &self.brokers)
            .field("client_id", &self.client_id)
            .field("security", &self.security)
            .field("librdkafka", &self.librdkafka.keys())
            .finish()
    }
}

/// How connections to Kafka are protected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Security {
    /// Encryption and who the other side is; none: plain text.
    pub tls: Option<Tls>,
    /// Who we are; none: nobody asks.
    pub sasl: Option<Sasl>,
}

/// Files of TLS, read when the client starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tls {
    /// Authorities whose certificates are believed, PEM; none: those of the system.
    pub ca_file: Option<String>,
    /// Our certificate, PEM, where the brokers ask for one.
    pub certificate_file: Option<String>,
    /// Its private key, PEM.
    pub key_file: Option<String>,
}

/// Name and password for the brokers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sasl {
    /// How the password is shown.
    pub mechanism: SaslMechanism,
    /// The name.
    pub username: String,
    /// File with the password, read when the client starts; one line break at its end is not part of it.
    pub password_file: String,
}

/// How a password is shown to a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaslMechanism {
    /// As it is.
    Plain,
    /// Salted challenge and response over SHA-256.
    ScramSha256,
    /// Salted challenge and response over SHA-512.
    ScramSha512,
}

impl SaslMechanism {
    /// The name in the protocol.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

/// What is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSettings {
    /// The topic with access events.
    pub topic: String,
    /// The consumer group that shares it.
    pub group: String,
    /// Where reading begins.
    pub start: Start,
}

/// Where a partition is begun when it is assigned for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// Far enough back that windows are whole: the longest window and the disorder before now.
    #[default]
    Window,
    /// At the oldest record.
    Earliest,
    /// Behind the newest record.
    Latest,
}

/// The topics between the leader and the routers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlSettings {
    /// Topic of plans.
    pub plan_topic: String,
    /// Topic of acknowledgements.
    pub acks_topic: String,
    /// How often the leader says that it is there.
    pub heartbeat: Span,
}

impl ControlSettings {
    /// Default of [`ControlSettings::plan_topic`].
    pub const DEFAULT_PLAN_TOPIC: &str = "keyheat.plan.v1";
    /// Default of [`ControlSettings::acks_topic`].
    pub const DEFAULT_ACKS_TOPIC: &str = "keyheat.acks.v1";
}

impl Default for ControlSettings {
    fn default() -> Self {
        Self {
            plan_topic: Self::DEFAULT_PLAN_TOPIC.to_owned(),
            acks_topic: Self::DEFAULT_ACKS_TOPIC.to_owned(),
            heartbeat: Span::from_secs(5),
        }
    }
}

/// What can be seen from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObserveSettings {
    /// Address of the HTTP side.
    pub listen: SocketAddr,
    /// Names by which it may be asked for, besides `localhost` and any IP address.
    pub allowed_hosts: Vec<String>,
    /// How keys are shown in labels, pages and logs.
    pub key_label: KeyLabel,
    /// The file with the token of who may give commands; none: nobody may.
    pub token_file: Option<PathBuf>,
}

impl ObserveSettings {
    /// Default of [`ObserveSettings::listen`]: reached from this machine only.
    pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9464);
}

impl Default for ObserveSettings {
    fn default() -> Self {
        Self {
            listen: Self::DEFAULT_LISTEN,
            allowed_hosts: Vec::new(),
            key_label: KeyLabel::default(),
            token_file: None,
        }
    }
}

/// How keys are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyLabel {
    /// As they came, escaped.
    #[default]
    Plain,
    /// By a hash.
    Hash,
    /// Not at all.
    Off,
}

/// Start, stop and stalls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceSettings {
    /// Records wait, Kafka answers and nothing moves for so long: first not ready, then the end (invariant I10).
    pub stall_timeout: Span,
    /// Stopping takes at most so long.
    pub shutdown_grace: Span,
    /// A member of the group, and so the leader, that is silent for so long has left.
    pub session_timeout: Span,
}

impl Default for ServiceSettings {
    fn default() -> Self {
        Self {
            stall_timeout: Span::from_secs(60),
            shutdown_grace: Span::from_secs(10),
            session_timeout: Span::from_secs(6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_always_sixteen_digits() {
        assert_eq!(ConfigHash(0x5b1c).to_string(), "0000000000005b1c");
    }
}
