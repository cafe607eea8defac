//! `keyheat plan forget-router`: drops a router that cannot say itself that it has gone.

use std::time::Duration;

use clap::Args;

use super::exit::CommandError;
use super::output::Output;
use super::topics::{ClusterArgs, target};
use crate::control::forget_router;

/// Which router.
#[derive(Debug, Args)]
pub struct ForgetArgs {
    /// Where the topics are.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// You have made sure of it: the router is down, and its snapshot file is gone
    #[arg(long, required = true)]
    pub down_and_snapshot_gone: bool,
    /// Its id, as it acknowledges
    pub id: String,
}

/// Drops every registration of the router.
///
/// # Errors
/// [`CommandError::Usage`] for a configuration with faults; otherwise when there is no such router, or the cluster does not take it.
pub(super) fn run(args: &ForgetArgs, output: &mut Output) -> Result<(), CommandError> {
    let target = target(&args.cluster, output)?;
    let setup = |error: Box<dyn std::error::Error + Send + Sync>| CommandError::Failed(error);
    let consumer = target.kafka.control_consumer_config().map_err(|error| setup(error.into()))?;
    let producer = target.kafka.producer_config().map_err(|error| setup(error.into()))?;
    let (topic, limit) = (&target.control.acks_topic, Duration::from_secs(args.cluster.timeout));
    let dropped = forget_router(&consumer, &producer, topic, &args.id, limit);
    let dropped = dropped.map_err(|error| CommandError::Failed(error.into()))?;
    output.note(format_args!("forgotten: {} ({dropped} registrations on '{topic}')", args.id));
    Ok(())
}
