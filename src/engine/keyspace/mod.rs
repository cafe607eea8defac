//! One keyspace: its events counted, its keys and shards judged.

mod admission;
mod carrying;
mod counting;
mod judging;
mod report;

pub use carrying::RestoreError;
pub(crate) use counting::Keyspace;
