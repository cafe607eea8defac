//! The routers' table: placing, guards, waiting, gathering, and the vectors that routers in other languages share.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop at the first surprise as tests do")]

mod gathering;
mod guards;
mod holding;
#[cfg(feature = "kafka")]
mod live;
mod placing;
mod records;
mod vectors;
