//! The topics of plans and acknowledgements are made right, and what is wrong with others' is named.

use std::time::Duration;

use keyheat::config::{ControlSettings, KafkaSettings};
use keyheat::control::{Created, TopicAdmin, TopicFault, TopicSpec, Verified};

use super::support::Kafka;

const LIMIT: Duration = Duration::from_secs(30);

fn admin(kafka: &Kafka) -> TopicAdmin {
    let config = KafkaSettings::plain(&[&kafka.bootstrap]).client_config().expect("no password to read");
    TopicAdmin::new(&config, LIMIT).expect("an admin client")
}

fn specs() -> Vec<TopicSpec> {
    TopicSpec::control(&ControlSettings {
        plan_topic: Kafka::name("plan"),
        acks_topic: Kafka::name("acks"),
        ..ControlSettings::default()
    })
}

fn faults(verified: Verified) -> Vec<TopicFault> {
    match verified {
        Verified::Faults(faults) => faults,
        Verified::NotSupported(faults) => panic!("a real broker describes settings: {faults:?}"),
    }
}

#[test]
fn topics_are_made_once_and_are_then_right() {
    let kafka = Kafka::shared();
    let (admin, specs) = (admin(kafka), specs());
    let missing = faults(admin.verify(&specs, &["no-such-topic"]).expect("an answer"));
    assert!(missing.len() == 3 && missing.iter().all(TopicFault::is_missing), "{missing:?}");

    assert_eq!(admin.create(&specs).expect("an answer"), [Created::Made, Created::Made]);
    assert_eq!(admin.create(&specs).expect("an answer"), [Created::AlreadyThere, Created::AlreadyThere]);
    assert_eq!(faults(admin.verify(&specs, &[]).expect("an answer")), []);
    for spec in &specs {
        let described = kafka.topic_settings(&spec.name);
        for setting in &spec.settings {
            assert_eq!(described.get(setting.name), Some(&setting.value), "{}: {}", spec.name, setting.name);
        }
    }
}

#[test]
fn what_is_wrong_with_a_topic_that_somebody_else_made_is_named() {
    let kafka = Kafka::shared();
    let specs = specs();
    kafka.create_topic(&specs[0].name, 2, &[("cleanup.policy", "delete"), ("delete.retention.ms", "1000")]);
    kafka.create_topic(
        &specs[1].name,
        1,
        &[
            ("cleanup.policy", "compact"),
            ("message.timestamp.type", "LogAppendTime"),
            ("min.compaction.lag.ms", "7200000"),
            ("delete.retention.ms", "864000000"),
        ],
    );
    let found = faults(admin(kafka).verify(&specs, &[&specs[0].name]).expect("an answer"));
    let named: Vec<(&str, &str)> = found.iter().map(|fault| (fault.topic.as_str(), fault.setting.as_str())).collect();
    let plan = specs[0].name.as_str();
    let settings = [
        "number of partitions",
        "cleanup.policy",
        "message.timestamp.type",
        "min.compaction.lag.ms",
        "delete.retention.ms",
    ];
    assert_eq!(named, settings.map(|setting| (plan, setting)));
}
