//! One keyspace: its events counted, its keys and shards judged.

mod admission;
mod batch;
mod carrying;
mod causes;
mod counting;
mod judging;
mod moving;
mod report;
mod thresholds;

pub(crate) use batch::TOGETHER;
pub use carrying::RestoreError;
pub(crate) use counting::Keyspace;
