//! Bytes of a record become an [`AccessEvent`], or a counted [`Refusal`].
//!
//! Pure: a record and the settings give the same event everywhere. A key is the bytes that came. The time of an event is
//! read as follows: a number below 10^11 is seconds, below 10^14 milliseconds, below 10^17 microseconds, any other
//! nanoseconds since the epoch, as JSON number or string, with or without fraction and exponent; a text is RFC 3339 with
//! its zone. Anything else is refused.

mod decoder;
mod event;
mod extract;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod reference;
mod refusal;
mod scan;
mod settings;
mod template;
mod time;

pub use decoder::{DecodeCounts, Decoder, KeyCounts, MAX_WEIGHT};
pub use event::{AccessEvent, Keys, MAX_KEYSPACES, Operation};
pub use refusal::Refusal;
pub use settings::{DEFAULT_MAX_KEY_BYTES, DEFAULT_MAX_RECORD_BYTES, InputSettings, OperationWords};
pub use template::{InvalidTemplate, MAX_POINTER_STEPS, MAX_TEMPLATE_BYTES, MAX_TEMPLATE_PARTS, Part, Template};
pub use time::parse_time;
