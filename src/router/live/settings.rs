//! What a router is told.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rdkafka::ClientConfig;

use crate::router::TableSettings;
use crate::units::{EventTime, Span};

/// The plan topic's usual name.
pub const PLAN_TOPIC: &str = "keyheat.plan.v1";
/// The acks topic's usual name.
pub const ACKS_TOPIC: &str = "keyheat.acks.v1";

/// The time as this router sees it.
type Now = Arc<dyn Fn() -> EventTime + Send + Sync>;

/// A router's settings.
#[derive(Clone)]
pub struct RouterSettings {
    /// How to reach Kafka: `bootstrap.servers`, security, `client.id`.
    pub client: ClientConfig,
    /// Name of the plan topic.
    pub plan_topic: String,
    /// Name of the acks topic.
    pub acks_topic: String,
    /// The router's name: 1 to 128 bytes without `/`. Two routers with one name are two members all the same.
    pub id: String,
    /// The file from which it starts without Kafka. Without one every start is a new member, and the former one blocks all plans
    /// until it is dropped, unless it left by [`super::Router::shutdown`].
    pub snapshot: Option<PathBuf>,
    /// The longest a store call can be in flight; the store must enforce it (a statement timeout).
    pub call_limit: Span,
    /// The longest time between two records of this router on the acks topic.
    pub ack_interval: Span,
    /// Sizes and limits of the table.
    pub table: TableSettings,
    /// The time: the same clock that gives [`crate::router::Placement::outcome_unknown`] its times. Best is one that never jumps: the
    /// wall clock at the start plus the monotonic time since.
    pub now: Now,
}

impl RouterSettings {
    /// Router `id` with the usual topics and limits, without a snapshot.
    pub fn new(client: ClientConfig, id: &str, now: impl Fn() -> EventTime + Send + Sync + 'static) -> Self {
        Self {
            client,
            plan_topic: PLAN_TOPIC.to_owned(),
            acks_topic: ACKS_TOPIC.to_owned(),
            id: id.to_owned(),
            snapshot: None,
            call_limit: Span::from_secs(30),
            ack_interval: Span::from_secs(3),
            table: TableSettings::default(),
            now: Arc::new(now),
        }
    }
}

impl fmt::Debug for RouterSettings {
    /// Without the client's settings: they hold passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouterSettings")
            .field("plan_topic", &self.plan_topic)
            .field("acks_topic", &self.acks_topic)
            .field("id", &self.id)
            .field("snapshot", &self.snapshot)
            .field("call_limit", &self.call_limit)
            .field("ack_interval", &self.ack_interval)
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}
