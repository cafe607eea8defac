//! Which topics keyheat needs, with which settings, as data; and what is wrong with those that are there.

use std::collections::BTreeMap;
use std::fmt;

use crate::config::ControlSettings;
use crate::protocol::MAX_ACK_BYTES;

/// A topic as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSpec {
    /// Its name.
    pub name: String,
    /// Number of partitions.
    pub partitions: usize,
    /// Settings beside replication.
    pub settings: Vec<TopicSetting>,
}

/// One setting of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSetting {
    /// Its name in Kafka.
    pub name: &'static str,
    /// What a topic is made with.
    pub value: String,
    /// What a topic that somebody else made may have.
    pub accepts: Accepts,
}

/// Which values of a setting keep the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    /// The one that topics are made with.
    Same,
    /// A number from here on.
    AtLeast(u64),
    /// A number in this range, both ends included.
    Between(u64, u64),
    /// Anything: it is advice.
    Any,
}

impl Accepts {
    fn takes(self, made_with: &str, value: &str) -> bool {
        let in_range = |min, max| value.parse::<u64>().is_ok_and(|number| (min..=max).contains(&number));
        match self {
            Self::Same => value == made_with,
            Self::AtLeast(min) => in_range(min, u64::MAX),
            Self::Between(min, max) => in_range(min, max),
            Self::Any => true,
        }
    }
}

impl TopicSetting {
    fn wanted(&self) -> String {
        match self.accepts {
            Accepts::Same | Accepts::Any => self.value.clone(),
            Accepts::AtLeast(min) => format!("at least {min}"),
            Accepts::Between(min, max) => format!("from {min} to {max}"),
        }
    }
}

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
/// Kafka's own default for `max.message.bytes`: a limit at least as tight as this one protects readers.
const KAFKA_MESSAGE_BYTES: u64 = 1_048_588;
/// A plan record is at most 4 KiB; with its key, headers and batch it stays far below.
const PLAN_MESSAGE_BYTES: u64 = 65_536;
/// An acknowledgement, its key, headers and batch.
const ACK_MESSAGE_BYTES: u64 = 2 * MAX_ACK_BYTES as u64;

impl TopicSpec {
    /// The topics between the leader and the routers.
    #[must_use]
    pub fn control(settings: &ControlSettings) -> Vec<Self> {
        vec![
            Self { name: settings.plan_topic.clone(), partitions: 1, settings: compacted(PLAN_MESSAGE_BYTES) },
            Self { name: settings.acks_topic.clone(), partitions: 1, settings: compacted(ACK_MESSAGE_BYTES) },
        ]
    }

    /// What is wrong with a topic that is there: `replicas` is the least number over its partitions, `brokers` that of the cluster,
    /// and `described` its settings, none where the cluster cannot describe them.
    #[must_use]
    pub fn faults(
        &self,
        partitions: usize,
        replicas: usize,
        brokers: usize,
        described: Option<&BTreeMap<String, String>>,
    ) -> Vec<TopicFault> {
        let fault = |setting: &str, got: String, wanted: String| TopicFault {
            topic: self.name.clone(),
            setting: setting.to_owned(),
            got: Some(got),
            wanted,
        };
        let mut faults = Vec::new();
        if partitions != self.partitions {
            faults.push(fault(PARTITIONS, partitions.to_string(), self.partitions.to_string()));
        }
        let replication = Replication::of(brokers);
        if replicas < replication.factor {
            faults.push(fault(REPLICAS, replicas.to_string(), format!("at least {}", replication.factor)));
        }
        let wanted = self.settings.iter().cloned().chain(replication.settings());
        for setting in wanted.filter(|_| described.is_some()) {
            let got = described.and_then(|described| described.get(setting.name));
            if !got.is_some_and(|got| setting.accepts.takes(&setting.value, got)) {
                let got = got.cloned().unwrap_or_else(|| "not described".to_owned());
                faults.push(fault(setting.name, got, setting.wanted()));
            }
        }
        faults
    }
}

/// The log keeps the last record of each key; its times are the broker's; nothing vanishes that a router may still have to read.
fn compacted(max_message_bytes: u64) -> Vec<TopicSetting> {
    let setting = |name, value: String, accepts| TopicSetting { name, value, accepts };
    vec![
        setting("cleanup.policy", "compact".to_owned(), Accepts::Same),
        setting("message.timestamp.type", "LogAppendTime".to_owned(), Accepts::Same),
        // A record that the fence refuses and that is the last of its key is answered within this time.
        setting("min.compaction.lag.ms", HOUR_MS.to_string(), Accepts::AtLeast(HOUR_MS)),
        // Longer than any router's outage: until then a tombstone can be read.
        setting("delete.retention.ms", (7 * DAY_MS).to_string(), Accepts::AtLeast(7 * DAY_MS)),
        setting(
            "max.message.bytes",
            max_message_bytes.to_string(),
            Accepts::Between(max_message_bytes, KAFKA_MESSAGE_BYTES),
        ),
        // Only closed segments are compacted: a day's worth is what a fresh reader reads at most beside the table.
        setting("segment.ms", DAY_MS.to_string(), Accepts::Any),
    ]
}

/// How often records are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Replication {
    pub(super) factor: usize,
}

impl Replication {
    /// Three copies, or as many as there are brokers.
    pub(super) fn of(brokers: usize) -> Self {
        Self { factor: brokers.clamp(1, 3) }
    }

    /// On several brokers a record is on two before it counts as written, and no broker that lacks it may lead.
    pub(super) fn settings(self) -> Vec<TopicSetting> {
        if self.factor == 1 {
            return Vec::new();
        }
        let setting = |name, value: &str, accepts| TopicSetting { name, value: value.to_owned(), accepts };
        vec![
            setting("min.insync.replicas", "2", Accepts::AtLeast(2)),
            setting("unclean.leader.election.enable", "false", Accepts::Same),
        ]
    }
}

const PARTITIONS: &str = "number of partitions";
const REPLICAS: &str = "number of replicas";

/// Something that is wrong with a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicFault {
    /// The topic.
    pub topic: String,
    /// Name of the setting; empty when the topic is missing.
    pub setting: String,
    /// What it is; none when the topic is missing.
    pub got: Option<String>,
    /// What it should be.
    pub wanted: String,
}

impl TopicFault {
    pub(super) fn missing(topic: &str) -> Self {
        Self { topic: topic.to_owned(), setting: String::new(), got: None, wanted: "there".to_owned() }
    }

    /// True when the topic is not there.
    #[must_use]
    pub const fn is_missing(&self) -> bool {
        self.got.is_none()
    }

    /// What to do.
    #[must_use]
    pub fn remedy(&self) -> String {
        let topic = &self.topic;
        match self.setting.as_str() {
            "" => "make it; keyheat topics create makes those of plans and acknowledgements".to_owned(),
            PARTITIONS => {
                "order holds in one partition only: delete the topic, once no router uses it, and make it anew"
                    .to_owned()
            }
            REPLICAS => "kafka-reassign-partitions.sh gives it more".to_owned(),
            "max.message.bytes" => alter(topic, "max.message.bytes", self.wanted.split(' ').nth(1).unwrap_or_default()),
            setting => alter(topic, setting, self.wanted.rsplit(' ').next().unwrap_or_default()),
        }
    }
}

fn alter(topic: &str, setting: &str, value: &str) -> String {
    format!("kafka-configs.sh --alter --entity-type topics --entity-name {topic} --add-config {setting}={value}")
}

impl fmt::Display for TopicFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.got {
            None => write!(f, "topic '{}' is missing; {}", self.topic, self.remedy()),
            Some(got) => {
                let Self { topic, setting, wanted, .. } = self;
                write!(f, "topic '{topic}': {setting} is {got}, which should be {wanted}; {}", self.remedy())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(spec: &TopicSpec) -> BTreeMap<String, String> {
        let settings = spec.settings.iter().cloned().chain(Replication::of(3).settings());
        settings.map(|setting| (setting.name.to_owned(), setting.value)).collect()
    }

    #[test]
    fn a_topic_as_it_was_made_has_no_fault() {
        for spec in TopicSpec::control(&ControlSettings::default()) {
            assert_eq!(spec.faults(1, 3, 3, Some(&described(&spec))), []);
            assert_eq!(spec.faults(1, 1, 1, None), []);
        }
    }

    #[test]
    fn each_wrong_setting_is_a_fault_with_a_remedy() {
        let spec = &TopicSpec::control(&ControlSettings::default())[0];
        let mut described = described(spec);
        described.insert("cleanup.policy".to_owned(), "delete,compact".to_owned());
        described.insert("max.message.bytes".to_owned(), "5000".to_owned());
        described.insert("delete.retention.ms".to_owned(), "86400000".to_owned());
        described.insert("segment.ms".to_owned(), "5".to_owned());
        described.insert("min.insync.replicas".to_owned(), "1".to_owned());
        described.remove("message.timestamp.type");
        let faults: Vec<String> = spec.faults(2, 1, 3, Some(&described)).iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(faults.join("\n"), @r"
        topic 'keyheat.plan.v1': number of partitions is 2, which should be 1; order holds in one partition only: delete the topic, once no router uses it, and make it anew
        topic 'keyheat.plan.v1': number of replicas is 1, which should be at least 3; kafka-reassign-partitions.sh gives it more
        topic 'keyheat.plan.v1': cleanup.policy is delete,compact, which should be compact; kafka-configs.sh --alter --entity-type topics --entity-name keyheat.plan.v1 --add-config cleanup.policy=compact
        topic 'keyheat.plan.v1': message.timestamp.type is not described, which should be LogAppendTime; kafka-configs.sh --alter --entity-type topics --entity-name keyheat.plan.v1 --add-config message.timestamp.type=LogAppendTime
        topic 'keyheat.plan.v1': delete.retention.ms is 86400000, which should be at least 604800000; kafka-configs.sh --alter --entity-type topics --entity-name keyheat.plan.v1 --add-config delete.retention.ms=604800000
        topic 'keyheat.plan.v1': max.message.bytes is 5000, which should be from 65536 to 1048588; kafka-configs.sh --alter --entity-type topics --entity-name keyheat.plan.v1 --add-config max.message.bytes=65536
        topic 'keyheat.plan.v1': min.insync.replicas is 1, which should be at least 2; kafka-configs.sh --alter --entity-type topics --entity-name keyheat.plan.v1 --add-config min.insync.replicas=2
        ");
    }
}
