//! Load generator, simulated shards and routers: demo and tests use the same.

pub mod demo;
mod imbalance;
mod load;
mod producer;
mod random;
pub mod screen;
mod store;
mod truth;

pub use imbalance::{LoadMeter, imbalance};
pub use load::{HotSpell, InvalidLoad, InvalidSpell, Load, LoadSettings, MAX_KEYS, MAX_SPELLS, Request};
pub use producer::{Delivered, EventProducer};
pub use random::{Random, Zipf};
pub use store::{Overloaded, Queue, Row, Store};
pub use truth::{Since, Truth, Wrong};
