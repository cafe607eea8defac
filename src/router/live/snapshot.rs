//! The file from which a router starts without Kafka: locked while used, replaced as a whole, on disk before it is acknowledged.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::protocol::{LogRecord, Nonce, Version};
use crate::units::{EventTime, Offset};

/// The format that this code writes and reads.
const FORMAT: u32 = 1;
/// The largest file that is read: every plan at its longest, with room.
const MAX_BYTES: u64 = 256 << 20;

/// Why a snapshot cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Two processes with one file.
    #[error("snapshot '{0}' is used by another process; give each router a file of its own")]
    InUse(PathBuf),
    /// The file is not what was written.
    #[error(
        "snapshot '{path}' is damaged ({what}); take the router off the acks topic with 'forget-router' once it is down, remove the file, and start it anew"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The file of another router.
    #[error("snapshot '{path}' is that of router '{got}', this one is '{wanted}'; give each router a file of its own")]
    OtherRouter {
        /// The file.
        path: PathBuf,
        /// The id in it.
        got: String,
        /// This router's id.
        wanted: String,
    },
    /// The file system's word.
    #[error("snapshot '{path}': {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        #[source]
        error: io::Error,
    },
}

/// What a snapshot holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Content {
    /// The router's membership: made with the file.
    pub(super) nonce: Nonce,
    /// True once it has joined: it may place requests from the records alone.
    pub(super) joined: bool,
    /// The version up to which the plan topic was applied.
    pub(super) applied: Version,
    /// Records that fold to its table, in their order.
    pub(super) records: Vec<LogRecord>,
}

/// A snapshot file in use by this process.
#[derive(Debug)]
pub(super) struct Snapshot {
    path: PathBuf,
    id: String,
    /// Locked as long as it is open.
    _lock: File,
}

#[derive(Serialize, Deserialize)]
struct Written {
    format: u32,
    id: String,
    nonce: Nonce,
    joined: bool,
    applied: Version,
    records: Vec<WrittenRecord>,
}

#[derive(Serialize, Deserialize)]
struct WrittenRecord {
    offset: i64,
    key: String,
    value: Option<String>,
    headers: Vec<(String, String)>,
    log_time: Option<EventTime>,
}

impl Snapshot {
    /// Takes the file for this process, and reads it when it is there.
    ///
    /// # Errors
    /// [`SnapshotError`]
    pub(super) fn open(path: &Path, id: &str) -> Result<(Self, Option<Content>), SnapshotError> {
        let io = |error| SnapshotError::Io { path: path.to_owned(), error };
        // The file itself is replaced at each writing, and a lock would stay with the old one.
        let lock =
            OpenOptions::new().create(true).truncate(false).write(true).open(beside(path, ".lock")).map_err(io)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SnapshotError::InUse(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        let snapshot = Self { path: path.to_owned(), id: id.to_owned(), _lock: lock };
        match fs::metadata(path) {
            Ok(meta) if meta.len() > MAX_BYTES => Err(snapshot.damaged(format!("{} bytes", meta.len()))),
            Ok(_) => {
                let bytes = fs::read(path).map_err(io)?;
                let content = snapshot.read(&bytes)?;
                Ok((snapshot, Some(content)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((snapshot, None)),
            Err(error) => Err(io(error)),
        }
    }

    /// The first line is the checksum of the rest.
    fn read(&self, bytes: &[u8]) -> Result<Content, SnapshotError> {
        let text = std::str::from_utf8(bytes).map_err(|_| self.damaged("not UTF-8".to_owned()))?;
        let (sum, body) = text.split_once('\n').ok_or_else(|| self.damaged("cut off".to_owned()))?;
        if sum != format!("{:016x}", xxh3_64(body.as_bytes())) {
            return Err(self.damaged("wrong checksum".to_owned()));
        }
        let written: Written = serde_json::from_str(body).map_err(|error| self.damaged(error.to_string()))?;
        if written.format != FORMAT {
            return Err(self.damaged(format!("format {}, this version reads {FORMAT}", written.format)));
        }
        if written.id != self.id {
            return Err(SnapshotError::OtherRouter {
                path: self.path.clone(),
                got: written.id,
                wanted: self.id.clone(),
            });
        }
        let records: Option<Vec<LogRecord>> = written.records.into_iter().map(WrittenRecord::into_record).collect();
        let records = records.ok_or_else(|| self.damaged("a record is not base64".to_owned()))?;
        Ok(Content { nonce: written.nonce, joined: written.joined, applied: written.applied, records })
    }

    /// Replaces the file as a whole; when this returns, what it holds is on disk.
    ///
    /// # Errors
    /// [`SnapshotError::Io`]; the earlier file is still in force.
    pub(super) fn write<'r>(
        &self,
        nonce: Nonce,
        joined: bool,
        applied: Version,
        records: impl IntoIterator<Item = &'r LogRecord>,
    ) -> Result<(), SnapshotError> {
        let records = records.into_iter().map(WrittenRecord::of).collect();
        let written = Written { format: FORMAT, id: self.id.clone(), nonce, joined, applied, records };
        self.replace(&written).map_err(|error| SnapshotError::Io { path: self.path.clone(), error })
    }

    fn replace(&self, written: &Written) -> io::Result<()> {
        let body = serde_json::to_string(written)?;
        let new = beside(&self.path, ".new");
        let mut file = File::create(&new)?;
        writeln!(file, "{:016x}", xxh3_64(body.as_bytes()))?;
        file.write_all(body.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        // The name is on disk only when its folder is.
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }

    fn damaged(&self, what: String) -> SnapshotError {
        SnapshotError::Damaged { path: self.path.clone(), what }
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

impl WrittenRecord {
    fn of(record: &LogRecord) -> Self {
        let header = |(name, value): &(String, Vec<u8>)| (name.clone(), STANDARD.encode(value));
        Self {
            offset: record.offset.0,
            key: STANDARD.encode(&record.key),
            value: record.value.as_ref().map(|value| STANDARD.encode(value)),
            headers: record.headers.iter().map(header).collect(),
            log_time: record.log_time,
        }
    }

    fn into_record(self) -> Option<LogRecord> {
        let header = |(name, value): (String, String)| Some((name, STANDARD.decode(value).ok()?));
        let value = match self.value {
            Some(value) => Some(STANDARD.decode(value).ok()?),
            None => None,
        };
        Some(LogRecord {
            offset: Offset(self.offset),
            key: STANDARD.decode(self.key).ok()?,
            value,
            headers: self.headers.into_iter().map(header).collect::<Option<_>>()?,
            log_time: self.log_time,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("keyheat-snapshot-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn record() -> LogRecord {
        LogRecord {
            offset: Offset(7),
            key: b"plan/k/\xff".to_vec(),
            value: Some(b"{}".to_vec()),
            headers: vec![("kh_seq".to_owned(), b"1".to_vec())],
            log_time: EventTime::from_millis(1_796_033_492_120).ok(),
        }
    }

    #[test]
    fn a_snapshot_reads_back_and_is_used_by_one_process_at_a_time() {
        let folder = folder("one");
        let path = folder.join("router.snapshot");
        let (snapshot, none) = Snapshot::open(&path, "r1").unwrap();
        assert_eq!(none, None);
        let version = Version { epoch: 1, seq: 9 };
        let removed = LogRecord { value: None, log_time: None, ..record() };
        snapshot.write(Nonce(5), true, version, [&record(), &removed]).unwrap();
        assert!(matches!(Snapshot::open(&path, "r1"), Err(SnapshotError::InUse(_))));
        drop(snapshot);
        let (again, content) = Snapshot::open(&path, "r1").unwrap();
        let wanted = Content { nonce: Nonce(5), joined: true, applied: version, records: vec![record(), removed] };
        assert_eq!(content, Some(wanted));
        drop(again);
        assert!(matches!(Snapshot::open(&path, "r2"), Err(SnapshotError::OtherRouter { .. })));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_damaged_snapshot_is_refused_at_every_cut_and_flip() {
        let folder = folder("damaged");
        let path = folder.join("router.snapshot");
        let (snapshot, _) = Snapshot::open(&path, "r1").unwrap();
        snapshot.write(Nonce(5), true, Version::default(), [&record()]).unwrap();
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            assert!(matches!(snapshot.read(&whole[..at]), Err(SnapshotError::Damaged { .. })), "cut at {at}");
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            assert!(matches!(snapshot.read(&flipped), Err(SnapshotError::Damaged { .. })), "flipped at {at}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
