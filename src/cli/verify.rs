//! `keyheat verify`: whether what lies on the plan topic and the acks topic obeys the protocol.

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::args::OutputFormat;
use super::exit::{CommandError, ExitStatus};
use super::output::Output;
use super::topics::{ClusterArgs, target};
use crate::control::{Finding, Level, ReadError, Survey, TopicAdmin, TopicSpec, TopicsError, Verified, read_whole};
use crate::service::Clock;
use crate::units::Span;

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Where the topics are.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// A leader or a router that said nothing for so long is silent
    #[arg(long, value_name = "SPAN", default_value = "30s")]
    pub silent_after: Span,
}

/// A finding as scripts read it.
#[derive(Serialize)]
struct FindingLine<'f> {
    level: &'static str,
    check: &'static str,
    text: &'f str,
}

/// The last line for scripts.
#[derive(Serialize)]
struct SummaryLine {
    plan_records: u64,
    ack_records: u64,
    epoch: u64,
    plans: usize,
    routers: usize,
    faults: usize,
    notes: usize,
}

/// Reads both topics to their ends and says what was found; exit status 1 when there are faults.
///
/// # Errors
/// [`CommandError::Usage`] for a configuration with faults; otherwise when the cluster cannot be asked or a topic not be read.
pub(super) fn run(args: &VerifyArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let target = target(&args.cluster, output)?;
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| CommandError::Failed(error);
    let limit = Duration::from_secs(args.cluster.timeout);
    let admin = target.kafka.client_config().map_err(|error| failed(error.into()))?;
    let mut findings = settings(&admin, &TopicSpec::control(&target.control), limit, output)?;
    let consumer = target.kafka.control_consumer_config().map_err(|error| failed(error.into()))?;
    let mut survey = Survey::new();
    // The plan topic last: what routers have acknowledged is then in it.
    let read = read_whole(&consumer, &target.control.acks_topic, limit, |record| survey.ack_record(record));
    read.map_err(|error: ReadError| failed(error.into()))?;
    let read = read_whole(&consumer, &target.control.plan_topic, limit, |record| survey.plan_record(record));
    read.map_err(|error| failed(error.into()))?;
    findings.extend(survey.findings(Clock::system().now(), args.silent_after));
    findings.sort();
    report(&survey, &findings, output)
}

/// Settings of the topics that break the contract.
fn settings(
    client: &rdkafka::ClientConfig,
    specs: &[TopicSpec],
    limit: Duration,
    output: &mut Output,
) -> Result<Vec<Finding>, CommandError> {
    let failed = |error: TopicsError| CommandError::Failed(error.into());
    let verified = TopicAdmin::new(client, limit).and_then(|admin| admin.verify(specs, &[])).map_err(failed)?;
    let faults = match verified {
        Verified::Faults(faults) => faults,
        Verified::NotSupported(faults) => {
            output.note("this cluster does not describe settings of topics: they were not checked");
            faults
        }
    };
    Ok(faults.into_iter().map(|fault| Finding::fault("topic", fault)).collect())
}

fn report(survey: &Survey, findings: &[Finding], output: &mut Output) -> Result<ExitStatus, CommandError> {
    let is_json = output.format_or(OutputFormat::Table) == OutputFormat::Json;
    for finding in findings {
        if is_json {
            let Finding { level, check, text } = finding;
            output.json(&FindingLine { level: level.label(), check, text })?;
        } else {
            output.line(finding)?;
        }
    }
    let faults = findings.iter().filter(|finding| finding.level == Level::Fault).count();
    let (plan_records, ack_records) = survey.records();
    let summary = SummaryLine {
        plan_records,
        ack_records,
        epoch: survey.plans().highest_epoch(),
        plans: survey.plans().plans().len(),
        routers: survey.acks().routers().len(),
        faults,
        notes: findings.len() - faults,
    };
    if is_json {
        output.json(&summary)?;
    } else {
        let SummaryLine { plan_records, ack_records, epoch, plans, routers, faults, notes } = summary;
        output.line(format_args!(
            "{plan_records} plan records, {ack_records} acks, epoch {epoch}, {plans} plans, {routers} routers: {faults} faults, {notes} notes"
        ))?;
    }
    Ok(if faults == 0 { ExitStatus::Success } else { ExitStatus::Failed })
}
