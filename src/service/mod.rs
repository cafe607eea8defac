//! The clock, the two loops, start and stop.

mod batch;
mod clerk;
mod clock;
mod driver;
mod exchange;
mod leader;
mod start;
mod stop;
mod topic_check;
mod view;

pub use clock::Clock;
pub use start::{Service, ServiceEnd, StartError};
pub use stop::Stop;
