//! The rules that one record gives for one key: where its requests go, and for which older requests it waits.

use std::borrow::Cow;

use super::bucket::BucketKey;
use super::placement::ReadRule;
use super::stripe::{Kind, Left};
use crate::protocol::{BUCKET_HASH, Delete, History, Layout, PlanRecord, RefusedRecord, SCHEMA, State, Writes};

/// What an operation that needs the old value may do under a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InPlace {
    /// Go on.
    Open,
    /// Wait: a blind write of unknown outcome may still land in the old layout.
    Wait,
    /// The keyspace's records are not updated in place.
    Forbidden(Writes),
}

/// What becomes of a request to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteRule {
    /// It goes to this layout.
    Goes(Layout),
    /// It waits for a newer record.
    Waits,
    /// The keyspace's records are not updated in place.
    Forbidden(Writes),
}

/// What one record says about placing the requests of its key, and which guards taken under another one it waits for: all that a
/// [`super::Table`] knows of a plan. Pure, so that a model can ask the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    write: Option<Layout>,
    read: Box<[Layout]>,
    delete: Delete,
    writes: Writes,
    in_place: InPlace,
    look_again: bool,
    seed: u64,
    form: Option<BucketKey>,
}

impl Rules {
    /// The rules of a key without a plan.
    #[must_use]
    pub fn bare() -> Self {
        Self {
            write: Some(Layout::BARE),
            read: Box::new([Layout::BARE]),
            delete: Delete::Remove,
            writes: Writes::Update,
            in_place: InPlace::Open,
            look_again: false,
            seed: 0,
            form: None,
        }
    }

    /// The rules of a record.
    ///
    /// # Errors
    /// Why this router cannot obey it. What was read off the topic has been checked by then; what a caller made may not be.
    pub fn of(record: &PlanRecord) -> Result<Self, RefusedRecord> {
        if record.schema != SCHEMA {
            return Err(RefusedRecord::Schema(record.schema));
        }
        if record.bucket.hash != BUCKET_HASH {
            return Err(RefusedRecord::Hash(record.bucket.hash.chars().take(64).collect()));
        }
        record.check().map_err(RefusedRecord::Shape)?;
        let form = BucketKey::parse(&record.bucket.key).map_err(|error| RefusedRecord::Shape(error.rule()))?;
        let writes = record.migration.writes;
        let in_place = match (writes, record.state) {
            (Writes::Update, State::Dual) => InPlace::Wait,
            (Writes::Update, _) => InPlace::Open,
            // A proposal changes nothing: a key that was never split is still used as it always was.
            (_, State::Proposed) if *record.read == [Layout::BARE] => InPlace::Open,
            (Writes::Insert | Writes::Versioned, _) => InPlace::Forbidden(writes),
        };
        Ok(Self {
            write: record.write,
            read: record.read.clone().into_boxed_slice(),
            delete: record.delete,
            writes,
            in_place,
            look_again: record.migration.history == History::Expire && record.read.len() > 1,
            seed: record.bucket.seed,
            form: Some(form),
        })
    }

    /// Where a write goes: a blind one and a delete, or an operation that needs the old value.
    #[must_use]
    pub const fn write_rule(&self, kind: Kind) -> WriteRule {
        let in_place = matches!(kind, Kind::InPlace);
        match (self.write, self.in_place) {
            (_, InPlace::Forbidden(writes)) if in_place => WriteRule::Forbidden(writes),
            (_, InPlace::Wait) if in_place => WriteRule::Waits,
            (Some(layout), _) => WriteRule::Goes(layout),
            (None, _) => WriteRule::Waits,
        }
    }

    /// Every layout that is read, newest first.
    #[must_use]
    pub fn read(&self) -> &[Layout] {
        &self.read
    }

    /// The layouts in which a point read looks, in this order. With `history = expire` the newest comes once more at the end: what
    /// moved there between the two looks has left the older place.
    pub fn looks(&self) -> impl Iterator<Item = Layout> {
        let again = if self.look_again { self.read.first() } else { None };
        self.read.iter().chain(again).copied()
    }

    /// The layouts from which an operation that needs the old value promotes, newest first: those that are read after `write`.
    pub fn promotes_from(&self, write: Layout) -> impl Iterator<Item = Layout> {
        self.read.iter().copied().skip_while(move |&layout| layout != write).skip(1)
    }

    /// Which of several copies of an id counts.
    #[must_use]
    pub const fn read_rule(&self) -> ReadRule {
        match self.writes {
            Writes::Insert | Writes::Update => ReadRule::FirstFound,
            Writes::Versioned => ReadRule::HighestVersion,
        }
    }

    /// What a delete does.
    #[must_use]
    pub const fn delete(&self) -> Delete {
        self.delete
    }

    /// True when guards taken under `older` of which this is left hold up the acknowledgement of these rules: those that these rules
    /// would place elsewhere, by another write layout or another `read` list. Calls of unknown outcome do not hold up the
    /// acknowledgement of a hold: nothing is written during one, and the record after it waits for them.
    #[must_use]
    pub fn waits_for(&self, older: &Self, left: Left) -> bool {
        let unknown_counts = !self.holds_writes();
        let writes = left.writes || left.unknown_writes && unknown_counts;
        let reads = left.reads || left.unknown_reads && unknown_counts;
        writes && !self.same_write(older) || reads && !self.same_reads(older)
    }

    /// The bucket of a request id in a layout.
    #[must_use]
    pub fn bucket_of(&self, layout: Layout, id: &[u8]) -> u32 {
        layout.bucket_of(id, self.seed)
    }

    /// The store's key of a bucket: the bare key, or the record's form.
    #[must_use]
    pub fn key_of<'k>(&self, layout: Layout, bucket: u32, key: &'k [u8]) -> Cow<'k, [u8]> {
        match (layout.label(bucket), &self.form) {
            (Some(label), Some(form)) => Cow::Owned(form.render(key, label)),
            _ => Cow::Borrowed(key),
        }
    }

    /// True when a write begun under `older` goes where these rules send it.
    pub(super) fn same_write(&self, older: &Self) -> bool {
        match (self.write, older.write) {
            (Some(mine), Some(theirs)) => mine == theirs && (mine.is_bare() || self.same_buckets(older)),
            (None, None) => true,
            _ => false,
        }
    }

    /// True when a read begun under `older` looks where these rules send it, in the same order.
    pub(super) fn same_reads(&self, older: &Self) -> bool {
        let buckets_matter = self.read.iter().any(|layout| !layout.is_bare());
        self.read == older.read && (!buckets_matter || self.same_buckets(older))
    }

    fn same_buckets(&self, older: &Self) -> bool {
        self.seed == older.seed && self.form == older.form
    }

    /// True while writes wait.
    fn holds_writes(&self) -> bool {
        self.write.is_none()
    }
}
