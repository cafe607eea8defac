//! JSON Schemas (2020-12) of the values of records, made from the types that read them.
//!
//! A schema says what a reader of version 1 takes: fields that it does not name are allowed and ignored. It cannot say everything:
//! that the key in a value is the one in the record's key, that a migration has two different layouts, how long a value is, and
//! that numbers are written without a fraction.

mod documents;
mod rules;

pub use documents::{Document, component, components, documents};
pub(super) use rules::{HEX16, bucket_key, plan_record};
