//! The file as written becomes the settings that each stage owns, or all its faults at once. No I/O.
//!
//! [`load`] walks over the file once. A key is known because a stage asks for it; what nobody asks for is unknown. Every fault says
//! where it is, the value got, the rule and the remedy; rules over several keys are checked in the same walk, with the defaults in
//! place of what is absent or faulty.

mod change;
mod connection;
mod events;
mod fault;
mod keyspace;
mod kind;
mod load;
mod outside;
mod placement;
mod planning;
mod rules;
mod section;
mod seed;
mod settings;
#[cfg(test)]
mod tests;
mod windows;

pub use change::NeedsRestart;
pub use fault::{Fault, Faults, MAX_FAULTS, Place};
pub use load::{Loaded, MAX_CONFIG_BYTES, load};
pub use rules::{DEFAULT_FLOOR, DEFAULT_MEDIAN, DEFAULT_SHARD_FLOOR, DEFAULT_SHARD_MEDIAN};
pub use settings::{
    ConfigHash, ControlSettings, KafkaSettings, KeyLabel, ObserveSettings, Sasl, SaslMechanism, Security,
    ServiceSettings, Settings, SourceSettings, Start, Tls,
};
pub use windows::{DEFAULT_WINDOWS, MAX_PANES, MAX_WINDOW, MIN_PANE};
