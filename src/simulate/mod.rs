//! Load generator, simulated shards and routers: demo and tests use the same.

mod clients;
pub mod demo;
mod flight;
mod imbalance;
mod load;
mod owner;
mod producer;
mod random;
pub mod screen;
mod shards;
mod store;
#[cfg(test)]
mod tests;
mod traffic;
mod truth;

pub use clients::Clients;
pub use imbalance::{LoadMeter, imbalance};
pub use load::{HotSpell, InvalidLoad, InvalidSpell, Load, LoadSettings, MAX_KEYS, MAX_SPELLS, Request};
pub use owner::{Move, Placing, Retirement};
pub use producer::{Delivered, EventProducer};
pub use random::{Random, Zipf};
pub use shards::Shards;
pub use store::{Overloaded, Queue, Row, Store};
pub use traffic::{MAX_WRONG_ANSWERS, Served, Tally, Traffic, TrafficSettings, WrongAnswer};
pub use truth::{Since, Truth, Wrong};
