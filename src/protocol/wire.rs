//! JSON of records: one way in, one way out.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::plan_record::{MAX_VALUE_BYTES, SCHEMA};
use super::refusal::RefusedRecord;

/// The longest text of a parser's message that is kept.
const MAX_MESSAGE_CHARS: usize = 160;

/// Writes a value. The record types have string keys and finite numbers only, so that writing cannot fail; an empty value would be
/// refused by every reader.
pub(super) fn to_json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// Reads a value of at most [`MAX_VALUE_BYTES`] whose schema is [`SCHEMA`].
pub(super) fn from_json<T: DeserializeOwned>(value: &[u8]) -> Result<T, RefusedRecord> {
    from_json_within(value, MAX_VALUE_BYTES)
}

/// Reads a value of at most `limit` bytes whose schema is [`SCHEMA`].
pub(super) fn from_json_within<T: DeserializeOwned>(value: &[u8], limit: usize) -> Result<T, RefusedRecord> {
    if value.len() > limit {
        return Err(RefusedRecord::TooLong { bytes: value.len(), limit });
    }
    check_schema(value)?;
    parse(value)
}

/// Reads the schema number alone: another schema may have another shape.
pub(super) fn check_schema(value: &[u8]) -> Result<(), RefusedRecord> {
    let peek: Schema = parse(value)?;
    if peek.schema == SCHEMA { Ok(()) } else { Err(RefusedRecord::Schema(peek.schema)) }
}

/// Reads JSON, with the parser's message cut to a limit.
pub(super) fn parse<T: DeserializeOwned>(value: &[u8]) -> Result<T, RefusedRecord> {
    serde_json::from_slice(value)
        .map_err(|error| RefusedRecord::Json(error.to_string().chars().take(MAX_MESSAGE_CHARS).collect()))
}

#[derive(serde::Deserialize)]
struct Schema {
    schema: u32,
}
