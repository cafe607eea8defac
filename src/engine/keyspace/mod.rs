//! One keyspace: its events counted, its keys and shards judged.

mod admission;
mod counting;
mod judging;
mod report;

pub(crate) use counting::Keyspace;
