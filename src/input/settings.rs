//! What the input is told: checked by `config/`, owned here.

use super::template::Template;

/// How a record becomes an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputSettings {
    /// How to take the key in each keyspace, in their order; 1 to [`super::MAX_KEYSPACES`].
    pub keys: Vec<Template>,
    /// Where the time of the event is.
    pub time: Template,
    /// Where the shard is, if events carry it.
    pub shard: Option<Template>,
    /// Where the request id is, if events carry it.
    pub request_id: Option<Template>,
    /// Where the operation is, if events carry it.
    pub operation: Option<Template>,
    /// Which words mean which operation; compared without regard to ASCII case.
    pub operation_words: OperationWords,
    /// Where the caller is, if events carry it.
    pub caller: Option<Template>,
    /// Where the weight is, if events carry it.
    pub weight: Option<Template>,
    /// A longer record is refused.
    pub max_record_bytes: usize,
    /// A longer key is refused.
    pub max_key_bytes: usize,
}

/// Default of [`InputSettings::max_record_bytes`].
pub const DEFAULT_MAX_RECORD_BYTES: usize = 1 << 20;
/// Default of [`InputSettings::max_key_bytes`].
pub const DEFAULT_MAX_KEY_BYTES: usize = 512;

/// Words that name operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationWords {
    /// Point reads.
    pub read: Vec<String>,
    /// Writes.
    pub write: Vec<String>,
    /// Scans.
    pub scan: Vec<String>,
    /// Deletes.
    pub delete: Vec<String>,
}

impl Default for OperationWords {
    fn default() -> Self {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        Self {
            read: words(&["read", "get", "head", "r"]),
            write: words(&["write", "set", "put", "post", "patch", "insert", "update", "w"]),
            scan: words(&["scan", "list", "query", "s"]),
            delete: words(&["delete", "del", "d"]),
        }
    }
}
