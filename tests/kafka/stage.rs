//! What the tests of the service share: topics, a configuration, processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::process::{PATIENCE, Process, get, program, scrape, sum};
use super::support::{Kafka, Record, poll_until};

/// A keyspace whose keys are hot from 500 events in the shorter window on; `MODE` is to be replaced.
pub(crate) const KEYSPACE: &str = r#"
[[keyspace]]
name = "customer"
key = "{/client}"
windows = ["5s/500ms", "10s/1s"]
rate = "100/s"
mode = "MODE"
writes = "insert"
history = "none"
bucket_rate = "60/s"
"#;

/// One test's topics, group and folder on a broker.
pub(crate) struct Stage<'a> {
    pub(crate) kafka: &'a Kafka,
    pub(crate) dir: PathBuf,
    pub(crate) input: String,
    pub(crate) group: String,
    pub(crate) plan_topic: String,
    pub(crate) acks_topic: String,
    config: PathBuf,
}

impl<'a> Stage<'a> {
    /// Names that no other test has; nothing is created yet. `rest` is what the configuration says beside the topics: other
    /// sections, and the keyspaces.
    pub(crate) fn new(kafka: &'a Kafka, name: &str, rest: &str) -> Self {
        Self::with_input(kafka, name, "", rest)
    }

    /// The same with more lines of the section `[input]`.
    pub(crate) fn with_input(kafka: &'a Kafka, name: &str, input_lines: &str, rest: &str) -> Self {
        let unique = Kafka::name(name);
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stages").join(&unique);
        fs::create_dir_all(&dir).unwrap();
        let stage = Self {
            kafka,
            input: format!("{unique}.input"),
            group: format!("{unique}.group"),
            plan_topic: format!("{unique}.plan"),
            acks_topic: format!("{unique}.acks"),
            config: dir.join("keyheat.toml"),
            dir,
        };
        stage.configure(input_lines, rest);
        stage
    }

    /// Writes the configuration; what is begun or told to read it again from now on has it.
    pub(crate) fn configure(&self, input_lines: &str, rest: &str) {
        let Self { kafka, input, group, plan_topic, acks_topic, .. } = self;
        let brokers = &kafka.bootstrap;
        let text = format!(
            r#"
[kafka]
brokers = ["{brokers}"]
[input]
topic = "{input}"
group = "{group}"
time = "/ts"
shard = "/shard"
request_id = "/id"
operation = "/op"
{input_lines}
[control]
plan_topic = "{plan_topic}"
acks_topic = "{acks_topic}"
heartbeat = "1s"
[observe]
listen = "127.0.0.1:0"
{rest}"#
        );
        fs::write(&self.config, text).unwrap();
    }

    /// The input topic, and the control topics as `keyheat topics create` makes them.
    pub(crate) fn create_topics(&self) {
        self.create_input();
        self.command(&["topics", "create", "--config", &self.config()]);
    }

    pub(crate) fn create_input(&self) {
        self.kafka.create_topic(&self.input, 4, &[("retention.ms", "-1")]);
    }

    /// Path of the configuration.
    pub(crate) fn config(&self) -> String {
        self.config.to_string_lossy().into_owned()
    }

    /// Runs a command to its end, which must be good.
    pub(crate) fn command(&self, arguments: &[&str]) {
        let done = Command::new(program()).args(arguments).output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "keyheat {}: {} {told}", arguments.join(" "), done.status);
    }

    /// The service.
    pub(crate) fn run(&self, name: &str) -> Process {
        Process::start(&self.dir, name, &["run", "--config", &self.config()])
    }

    /// A router, once it serves.
    pub(crate) fn route(&self, id: &str) -> Process {
        let Self { kafka, plan_topic, acks_topic, .. } = self;
        let topics = ["--plan-topic", plan_topic.as_str(), "--acks-topic", acks_topic.as_str()];
        let mut arguments = vec!["route", "--brokers", kafka.bootstrap.as_str(), "--id", id];
        arguments.extend(topics);
        let router = Process::start(&self.dir, id, &arguments);
        poll_until(&format!("router {id} to serve"), PATIENCE, || {
            router.lines().iter().any(|line| line.contains(r#""event":"ready""#)).then_some(())
        });
        router
    }

    /// A load to the input topic, running.
    pub(crate) fn generate(&self, name: &str, arguments: &[&str]) -> Process {
        let mut all = vec!["generate", "--brokers", self.kafka.bootstrap.as_str(), "--topic", self.input.as_str()];
        all.extend(arguments);
        Process::start(&self.dir, name, &all)
    }

    /// The plan topic as kcat reads it.
    pub(crate) fn plan_records(&self) -> Vec<Record> {
        self.kafka.kcat_all(&self.plan_topic)
    }
}

/// Waits until the service is ready.
pub(crate) fn wait_ready(service: &Process) -> String {
    let addr = service.http();
    poll_until(&format!("readiness of the service at {addr}"), PATIENCE, || {
        get(&addr, "/readyz").filter(|(status, _)| *status == 200).map(|_| ())
    });
    addr
}

/// Waits until a metric, summed over its series, is at least `least`.
pub(crate) fn wait_metric(addr: &str, name: &str, least: f64) -> f64 {
    poll_until(&format!("{name} >= {least} at {addr}"), PATIENCE, || {
        scrape(addr).map(|all| sum(&all, name)).filter(|value| *value >= least)
    })
}
