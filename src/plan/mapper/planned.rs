//! Where a request on a key with a plan goes in the store.

use std::borrow::Cow;
use std::sync::Arc;

use crate::input::{AccessEvent, Operation};
use crate::plan::placement::bucket_key;
use crate::protocol::{BUCKET_HASH, BUCKET_KEY, Layout, PlanEntry, State};
use crate::units::{EventTime, Span};

/// So long after a record has settled, requests may still be on their way under the one before it, and clocks differ.
const SETTLING: Span = Span::from_secs(10);

/// A key with a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// The key.
    pub key: Arc<[u8]>,
    /// Its one layout; none while it moves from one to another, or when nobody knows.
    pub settled: Option<Settled>,
}

/// The one layout of a key, for reads and for writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    pub(super) layout: Layout,
    pub(super) seed: u64,
    /// Requests from here on go by it.
    pub(super) from: EventTime,
}

impl Planned {
    /// What the newest accepted record says of a key.
    #[must_use]
    pub fn of(key: &[u8], entry: &PlanEntry) -> Self {
        let record = &entry.record;
        let is_known = record.bucket.hash == BUCKET_HASH && record.bucket.key == BUCKET_KEY;
        let layout = record.write.filter(|write| record.state == State::Settled && record.read == [*write] && is_known);
        let settled = layout.zip(entry.log_time).map(|(layout, at)| Settled {
            layout,
            seed: record.bucket.seed,
            from: at.saturating_add(SETTLING),
        });
        Self { key: Arc::from(key), settled }
    }
}

impl Settled {
    /// The key of the store that a request went to; none where the event does not say, and for a scan, which visits every bucket.
    pub(super) fn key_of<'k>(&self, key: &'k [u8], event: &AccessEvent<'_>) -> Option<Cow<'k, [u8]>> {
        if event.time < self.from {
            return None;
        }
        if self.layout.is_bare() {
            return Some(Cow::Borrowed(key));
        }
        let by_id = matches!(event.operation, Operation::Read | Operation::Write | Operation::Delete);
        if !by_id || event.request_id.is_empty() {
            return None;
        }
        let label = self.layout.label(self.layout.bucket_of(event.request_id, self.seed))?;
        Some(Cow::Owned(bucket_key(key, label)))
    }
}
