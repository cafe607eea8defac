//! What a stream of keys leaves behind in bounded memory: a count-min table, a sample of keys, and bounds on both.

mod count_min;
mod estimate;
mod hash;
mod key_sample;

pub(crate) use count_min::{CountMin, Holder, Table};
pub(crate) use estimate::{Median, distinct_bounds, median_bounds};
pub(crate) use hash::{Rows, key_hash, scatter};
pub(crate) use key_sample::KeySample;
