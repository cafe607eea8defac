//! The byte form of a window, version 1.
//!
//! Little endian: magic (8 bytes), version (u16), identity, body, xxh3-64 of all before. Numbers of the body are varints: seven
//! bits a byte, the least first, the last byte below 128. Counts in a row (cells of a table, counts a pane) are varints too, a
//! run of zeros being a 0 and its length. One window has one byte form: everything is sorted, and no number is longer than it
//! has to be.
//!
//! | Part | Form |
//! |---|---|
//! | identity | `hot_on` u8; windows u8; each: pane ms u64, panes u32, ring u32; depth u8; width as a power of two u8; names listed a pane u32; the seed's fingerprint u64 |
//! | marks | started u8; left out a window; shards left out; and if started: head pane, panes that wait for the watermark, seen since ms, admission level f64 |
//! | bars | number; each: panes before the head, a bar a window (always two) |
//! | panes | of the shorter window, then of the longer one, the oldest first: events, and if not 0: halvings of theta u8; number of names, each: hash less the one before, count; the table row by row if theta was halved |
//! | keys | number; each in order: length, bytes; lower bounds a pane; upper less lower bounds a pane |
//! | shards | number; each in order: length, bytes; 0 or 1 + newest ms; counts a pane |

use xxhash_rust::xxh3::xxh3_64;

use super::super::settings::HotOn;
use super::identity::{Identity, Mismatch};
use super::key_counts::Pane;
use super::portable::{Window, spots};
use super::timeline::MAX_WINDOWS;
use crate::units::Estimate;

pub(super) const MAGIC: &[u8; 8] = b"KHWINDOW";
pub(super) const VERSION: u16 = 1;
pub(super) const CHECKSUM_BYTES: usize = 8;

/// Why bytes are no window.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// They do not begin as a window does.
    #[error("not a window: it begins with {0:02x?} and should begin with 'KHWINDOW'")]
    NotAWindow(Vec<u8>),
    /// Another version of the byte form.
    #[error("a window of version {0}, which should be {VERSION}; let instances of one version exchange windows")]
    Version(u16),
    /// They end too early.
    #[error("a window cut off at byte {0}; fetch it again")]
    Truncated(usize),
    /// They were changed on the way.
    #[error("a damaged window: its checksum is {got:016x} and should be {wanted:016x}; fetch it again")]
    Checksum {
        /// Of the bytes that came.
        got: u64,
        /// That came with them.
        wanted: u64,
    },
    /// Of a keyspace that counts in another way.
    #[error(transparent)]
    Differs(#[from] Mismatch),
    /// The checksum is right and the contents are not.
    #[error("an impossible window: {what} at byte {at}; it was not written by keyheat")]
    Impossible {
        /// What cannot be.
        what: &'static str,
        /// Where reading stopped.
        at: usize,
    },
}

impl Window {
    /// The byte form: the same for equal windows.
    ///
    /// As secret as the seed and as private as the keys, see [`Window`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        put_identity(&mut out, &self.identity);
        out.push(u8::from(self.timeline.started()));
        self.left_out.iter().for_each(|events| put(&mut out, *events));
        put(&mut out, self.shards_cut);
        if self.timeline.started() {
            self.put_body(&mut out);
        }
        let checksum = xxh3_64(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    fn put_body(&self, out: &mut Vec<u8>) {
        let mark = self.timeline.mark(0);
        put(out, mark.head.unsigned_abs());
        put(out, (mark.head - 1 - mark.closed).unsigned_abs());
        put(out, self.since_ms.unsigned_abs());
        out.extend_from_slice(&self.level.to_bits().to_le_bytes());
        put(out, self.bars.len() as u64);
        for (pane, bars) in self.bars.iter() {
            put(out, (mark.head - pane).unsigned_abs());
            bars.iter().for_each(|bar| put(out, *bar));
        }
        for (window, number) in spots(&self.timeline) {
            if let Some(pane) = self.counts.pane(&self.timeline, window, number) {
                self.put_pane(out, pane, window == 0 && number == mark.head);
            }
        }
        put(out, self.keys.len() as u64);
        for (key, listed) in &self.keys {
            put_text(out, key);
            put_counts(out, listed.panes.iter().map(|pane| pane.lower));
            put_counts(out, listed.panes.iter().map(|pane| pane.upper - pane.lower));
        }
        put(out, self.shards.len() as u64);
        for (name, shard) in &self.shards {
            put_text(out, name);
            put(out, shard.seen_ms.map_or(0, |seen| seen.unsigned_abs() + 1));
            put_counts(out, shard.panes.iter().copied());
        }
    }

    fn put_pane(&self, out: &mut Vec<u8>, pane: &Pane, is_open: bool) {
        put(out, pane.events);
        if pane.events == 0 {
            return;
        }
        out.push(u8::try_from(pane.sample.theta().leading_zeros()).unwrap_or(64));
        let mut names: Vec<_> = pane.sample.iter().collect();
        names.sort_unstable();
        put(out, names.len() as u64);
        let mut before = 0;
        for (hash, count) in names {
            put(out, hash - before);
            put(out, count.into());
            before = hash;
        }
        if pane.sample.is_complete() {
            return;
        }
        if is_open {
            put_counts(out, self.counts.sketch.open_table().cells().iter().map(|cell| u64::from(*cell)));
        } else {
            put_counts(out, pane.table.cells().iter().map(|cell| u64::from(*cell)));
        }
    }
}

fn put_identity(out: &mut Vec<u8>, identity: &Identity) {
    out.push(hot_on_byte(identity.hot_on));
    out.push(u8::try_from(identity.rings.len()).unwrap_or(u8::MAX));
    for ring in &identity.rings {
        out.extend_from_slice(&ring.pane_ms.to_le_bytes());
        out.extend_from_slice(&ring.panes.to_le_bytes());
        out.extend_from_slice(&ring.capacity.to_le_bytes());
    }
    out.extend_from_slice(&[identity.depth, identity.width_log2]);
    out.extend_from_slice(&identity.listed.to_le_bytes());
    out.extend_from_slice(&identity.fingerprint.to_le_bytes());
}

pub(super) const fn hot_on_byte(hot_on: HotOn) -> u8 {
    match hot_on {
        HotOn::All => 0,
        HotOn::Reads => 1,
        HotOn::Writes => 2,
    }
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put(out, text.len() as u64);
    out.extend_from_slice(text);
}

fn put_counts(out: &mut Vec<u8>, counts: impl Iterator<Item = u64>) {
    let mut zeros = 0;
    for count in counts {
        if count == 0 {
            zeros += 1;
            continue;
        }
        if zeros > 0 {
            out.push(0);
            put(out, zeros);
            zeros = 0;
        }
        put(out, count);
    }
    if zeros > 0 {
        out.push(0);
        put(out, zeros);
    }
}

/// Bytes that are read, none twice and none beyond the end.
pub(super) struct Reader<'a> {
    pub(super) rest: &'a [u8],
    /// Length of all, the checksum included.
    pub(super) total: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn at(&self) -> usize {
        self.total - CHECKSUM_BYTES - self.rest.len()
    }

    pub(super) const fn impossible(&self, what: &'static str) -> ReadError {
        ReadError::Impossible { what, at: self.at() }
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], ReadError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(ReadError::Truncated(self.total))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(ReadError::Truncated(self.total))?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, ReadError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn number(&mut self) -> Result<u64, ReadError> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return if byte == 0 && shift > 0 {
                    Err(self.impossible("a number longer than it has to be"))
                } else {
                    Ok(number)
                };
            }
        }
        Err(self.impossible("a number of more than 64 bits"))
    }

    /// A number from 0 to `most`.
    pub(super) fn up_to(&mut self, most: u64, what: &'static str) -> Result<u64, ReadError> {
        let number = self.number()?;
        if number > most { Err(self.impossible(what)) } else { Ok(number) }
    }

    /// A text of 1 to `most` bytes.
    pub(super) fn text(&mut self, most: u64, what: &'static str) -> Result<&'a [u8], ReadError> {
        let length = self.up_to(most, what)?;
        if length == 0 {
            return Err(self.impossible(what));
        }
        self.bytes(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// Counts in a row, each at most `most`.
    pub(super) fn counts(&mut self, wanted: usize, most: u64) -> Result<Vec<u64>, ReadError> {
        let mut counts = Vec::new();
        let mut after_zeros = false;
        while counts.len() < wanted {
            let count = self.up_to(most, "a count that is too high")?;
            if count > 0 {
                counts.push(count);
                after_zeros = false;
                continue;
            }
            let room = (wanted - counts.len()) as u64;
            let zeros = self.up_to(room, "more zeros than there are counts")?;
            if zeros == 0 || after_zeros {
                return Err(self.impossible("zeros that are not one run"));
            }
            counts.resize(counts.len() + usize::try_from(zeros).unwrap_or(0), 0);
            after_zeros = true;
        }
        Ok(counts)
    }
}

/// Bounds a pane from lower bounds and what is unknown above them.
pub(super) fn estimates(lower: &[u64], unknown: &[u64]) -> Box<[Estimate]> {
    let bound = |(lower, unknown): (&u64, &u64)| Estimate { lower: *lower, upper: lower.saturating_add(*unknown) };
    lower.iter().zip(unknown).map(bound).collect()
}

/// No windows, no bars.
pub(super) const NO_BARS: [u64; MAX_WINDOWS] = [0; MAX_WINDOWS];
