//! The clock, the loops, start and stop.

mod clock;
mod stop;

pub use clock::Clock;
pub use stop::Stop;
