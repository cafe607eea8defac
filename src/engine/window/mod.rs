//! Windows that slide over event time by panes: counts of all keys in bounded memory, exact counts of a few, and the watermark.

mod alignment;
mod bars;
mod bytes;
mod candidates;
mod detail;
mod folding;
mod frequent;
mod identity;
mod key_counts;
mod merge;
mod near;
mod part;
mod portable;
mod reading;
mod sampler;
mod shard_detail;
mod shards;
mod tally;
mod timeline;
mod watermark;

pub(crate) use bars::Bars;
pub use bytes::ReadError;
pub(crate) use candidates::{Candidate, Candidates, MAX_DETAILS};
pub(crate) use detail::{Detail, Request};
pub use identity::Mismatch;
pub(crate) use key_counts::{Facts, KeyCounts, OpenEvent, window_ending_at};
pub use merge::MergeError;
pub use portable::Window;
pub(crate) use portable::{Parts, spot};
pub(crate) use shard_detail::ShardDetail;
pub(crate) use shards::{MAX_SHARD_DETAILS, Shard, Shards};
pub(crate) use tally::Tally;
pub(crate) use timeline::{MAX_WINDOWS, Timeline, index};
pub(crate) use watermark::Watermark;
