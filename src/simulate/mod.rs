//! Load generator, simulated shards and routers: demo and tests use the same.

mod load;
mod producer;
mod random;

pub use load::{HotSpell, InvalidLoad, InvalidSpell, Load, LoadSettings, MAX_KEYS, MAX_SPELLS, Request};
pub use producer::{Delivered, EventProducer};
pub use random::{Random, Zipf};
