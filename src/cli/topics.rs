//! `keyheat topics create|check`: the topics between the leader and the routers.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::args::OutputFormat;
use super::config_file;
use super::exit::{CommandError, ExitStatus};
use super::output::Output;
use crate::config::{ControlSettings, KafkaSettings};
use crate::control::{Created, TopicAdmin, TopicFault, TopicSpec, TopicsError, Verified};

/// Arguments of `topics`.
#[derive(Debug, Args)]
pub struct TopicsArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: TopicsAction,
}

/// What to do with the topics.
#[derive(Debug, Subcommand)]
pub enum TopicsAction {
    /// Make the topics of plans and acknowledgements; what is there is left alone and checked
    Create(ClusterArgs),
    /// Say what is wrong with them, and whether the input topic is there
    Check(ClusterArgs),
}

/// Which cluster, and which topics.
#[derive(Debug, Args)]
pub struct ClusterArgs {
    /// The configuration with brokers and names of topics
    #[arg(long, value_name = "FILE", required_unless_present = "brokers", conflicts_with = "brokers")]
    pub config: Option<PathBuf>,
    /// Brokers, host:port, several by commas: for topics with their default names
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub brokers: Vec<String>,
    /// Seconds to wait for an answer of the cluster
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub timeout: u64,
}

/// The cluster and its topics, by file or by flags.
pub(super) struct Target {
    pub(super) kafka: KafkaSettings,
    pub(super) control: ControlSettings,
    /// None when only brokers are known.
    input: Option<String>,
}

/// Makes or checks topics.
///
/// # Errors
/// [`CommandError::Usage`] for a configuration with faults; otherwise when the cluster cannot be asked.
pub(super) fn run(args: &TopicsArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let (cluster, is_create) = match &args.action {
        TopicsAction::Create(cluster) => (cluster, true),
        TopicsAction::Check(cluster) => (cluster, false),
    };
    let target = target(cluster, output)?;
    let client = target.kafka.client_config().map_err(|error| CommandError::Failed(error.into()))?;
    let failed = |error: TopicsError| match error {
        TopicsError::Client(_) => CommandError::Usage(error.to_string()),
        error => CommandError::Failed(error.into()),
    };
    let admin = TopicAdmin::new(&client, Duration::from_secs(cluster.timeout)).map_err(failed)?;
    let specs = TopicSpec::control(&target.control);
    if is_create {
        let created = admin.create(&specs).map_err(failed)?;
        let refused = report_created(&specs, &created, output)?;
        if refused {
            return Ok(ExitStatus::Failed);
        }
    }
    let readable: Vec<&str> = target.input.iter().filter(|_| !is_create).map(String::as_str).collect();
    let verified = admin.verify(&specs, &readable).map_err(failed)?;
    report_verified(&specs, &readable, &verified, output)
}

/// The cluster that the arguments name.
pub(super) fn target(args: &ClusterArgs, output: &mut Output) -> Result<Target, CommandError> {
    let Some(path) = &args.config else {
        let brokers: Vec<&str> = args.brokers.iter().map(String::as_str).collect();
        return Ok(Target { kafka: KafkaSettings::plain(&brokers), control: ControlSettings::default(), input: None });
    };
    let settings = config_file::load(path, output)?.settings;
    Ok(Target { kafka: settings.kafka, control: settings.control, input: Some(settings.source.topic) })
}

/// One line a topic; true when one was refused.
fn report_created(specs: &[TopicSpec], created: &[Created], output: &mut Output) -> Result<bool, CommandError> {
    let is_json = output.format_or(OutputFormat::Table) == OutputFormat::Json;
    for (spec, created) in specs.iter().zip(created) {
        let (state, words) = match created {
            Created::Made => ("made", format!("made '{}'", spec.name)),
            Created::AlreadyThere => ("there", format!("'{}' is there already and left alone", spec.name)),
            Created::Refused(code) => ("refused", format!("the cluster refuses to make '{}': {code}", spec.name)),
        };
        if is_json {
            output.json(&serde_json::json!({ "topic": spec.name, "create": state }))?;
        } else {
            output.line(words)?;
        }
    }
    Ok(created.iter().any(|created| matches!(created, Created::Refused(_))))
}

/// A fault as scripts read it.
#[derive(Serialize)]
struct FaultLine<'f> {
    topic: &'f str,
    check: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    setting: Option<&'f str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    got: Option<&'f str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wanted: Option<&'f str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl<'f> FaultLine<'f> {
    fn of(fault: &'f TopicFault) -> Self {
        Self {
            topic: &fault.topic,
            check: if fault.is_missing() { "missing" } else { "wrong" },
            setting: (!fault.is_missing()).then_some(&*fault.setting),
            got: fault.got.as_deref(),
            wanted: (!fault.is_missing()).then_some(&*fault.wanted),
            remedy: Some(fault.remedy()),
        }
    }

    const fn good(topic: &'f str, check: &'static str) -> Self {
        Self { topic, check, setting: None, got: None, wanted: None, remedy: None }
    }
}

fn report_verified(
    specs: &[TopicSpec],
    readable: &[&str],
    verified: &Verified,
    output: &mut Output,
) -> Result<ExitStatus, CommandError> {
    let (faults, is_supported) = match verified {
        Verified::Faults(faults) => (faults, true),
        Verified::NotSupported(faults) => (faults, false),
    };
    let is_json = output.format_or(OutputFormat::Table) == OutputFormat::Json;
    for fault in faults {
        if is_json { output.json(&FaultLine::of(fault))? } else { output.line(fault)? }
    }
    let topics =
        specs.iter().map(|spec| (&*spec.name, is_supported)).chain(readable.iter().map(|topic| (*topic, true)));
    for (topic, is_checked) in topics.filter(|(topic, _)| faults.iter().all(|fault| fault.topic != *topic)) {
        let (check, words) =
            if is_checked { ("good", "good") } else { ("not_supported", "there; its settings are not known") };
        if is_json {
            output.json(&FaultLine::good(topic, check))?
        } else {
            output.line(format_args!("topic '{topic}': {words}"))?
        }
    }
    if !is_supported {
        output.note(
            "this cluster does not describe settings of topics: only existence, partitions and replicas were checked",
        );
    }
    Ok(if faults.is_empty() && is_supported { ExitStatus::Success } else { ExitStatus::Failed })
}

#[cfg(test)]
mod tests {
    use rdkafka::mocking::MockCluster;

    use super::*;

    fn check(brokers: &str, format: Option<OutputFormat>) -> (Result<ExitStatus, CommandError>, String, String) {
        let cluster = ClusterArgs { config: None, brokers: vec![brokers.to_owned()], timeout: 1 };
        let (mut output, written) = Output::captured(format);
        let result = run(&TopicsArgs { action: TopicsAction::Check(cluster) }, &mut output);
        (result, written.data(), written.words())
    }

    #[test]
    fn missing_topics_are_faults_and_what_cannot_be_described_is_said() {
        let cluster = MockCluster::new(1).unwrap();
        let brokers = cluster.bootstrap_servers();
        cluster.create_topic("keyheat.plan.v1", 1, 1).unwrap();
        let (result, data, words) = check(&brokers, None);
        assert_eq!(result.unwrap(), ExitStatus::Failed);
        assert_eq!(
            data,
            "topic 'keyheat.acks.v1' is missing; make it; keyheat topics create makes those of plans and acknowledgements\n\
             topic 'keyheat.plan.v1': there; its settings are not known\n"
        );
        assert!(words.contains("does not describe settings"));
        let (_, data, _) = check(&brokers, Some(OutputFormat::Json));
        let lines: Vec<serde_json::Value> = data.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["check"], "missing");
        assert_eq!(lines[1], serde_json::json!({"topic": "keyheat.plan.v1", "check": "not_supported"}));
    }
}
