//! Bytes of a record become an [`AccessEvent`], or a counted [`Refusal`].
//!
//! Pure: a record and the settings give the same event everywhere. A key is the bytes that came.

mod event;
mod refusal;
mod settings;
mod template;

pub use event::{AccessEvent, Keys, MAX_KEYSPACES, Operation};
pub use refusal::Refusal;
pub use settings::{DEFAULT_MAX_KEY_BYTES, DEFAULT_MAX_RECORD_BYTES, InputSettings, OperationWords};
pub use template::{InvalidTemplate, Part, Template};
