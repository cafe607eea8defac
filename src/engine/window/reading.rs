//! A window from its byte form: nothing is believed, and no memory is taken that these settings do not allow anyway.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::super::settings::{HotOn, KeyspaceSettings, TimeSettings};
use super::super::sketch::{Holder, KeySample, Table, key_hash};
use super::bars::Bars;
use super::bytes::{CHECKSUM_BYTES, MAGIC, NO_BARS, ReadError, Reader, VERSION, estimates, hot_on_byte};
use super::identity::{Identity, Ring};
use super::key_counts::{Pane, WRAPS_AT};
use super::merge::MAX_EVENTS;
use super::portable::{Listed, ListedShard, Window, spots};
use super::shards::{MAX_SHARD_BYTES, MAX_SHARDS};
use super::timeline::{MAX_WINDOWS, Mark};
use crate::units::{Estimate, EventTime};

/// The longest key that any input takes.
const MAX_KEY_BYTES: u64 = 1 << 20;
/// The highest admission level: counts are no higher.
const MAX_LEVEL: f64 = 1e15;

impl Window {
    /// Reads the byte form of a window of a keyspace with these settings.
    ///
    /// Candidates beyond `max_candidates` are dropped as in [`Window::merge`].
    ///
    /// # Errors
    /// [`ReadError`]: another version or identity, damaged, or impossible bytes.
    pub fn from_bytes(bytes: &[u8], settings: &KeyspaceSettings, time: &TimeSettings) -> Result<Self, ReadError> {
        let start = bytes.get(..MAGIC.len()).ok_or(ReadError::Truncated(bytes.len()))?;
        if start != MAGIC {
            return Err(ReadError::NotAWindow(start.to_vec()));
        }
        let (covered, checksum) =
            bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(ReadError::Truncated(bytes.len()))?;
        let rest = covered.get(MAGIC.len()..).ok_or(ReadError::Truncated(bytes.len()))?;
        let mut reader = Reader { rest, total: bytes.len() };
        let version = u16::from_le_bytes(reader.array()?);
        if version != VERSION {
            return Err(ReadError::Version(version));
        }
        let (got, wanted) = (xxh3_64(covered), u64::from_le_bytes(*checksum));
        if got != wanted {
            return Err(ReadError::Checksum { got, wanted });
        }
        let mut window = Self::new(settings, time);
        window.identity.check(&identity(&mut reader)?)?;
        let started = reader.byte()?;
        for left_out in &mut window.left_out {
            *left_out = reader.number()?;
        }
        window.shards_cut = reader.number()?;
        match started {
            0 => {}
            1 => window.read_body(&mut reader)?,
            _ => return Err(reader.impossible("a window neither empty nor started")),
        }
        if !reader.rest.is_empty() {
            return Err(reader.impossible("bytes after its end"));
        }
        Ok(window)
    }

    fn read_body(&mut self, reader: &mut Reader<'_>) -> Result<(), ReadError> {
        let last_pane = EventTime::MAX.as_millis().unsigned_abs() / self.timeline.axis(0).pane_ms.unsigned_abs().max(1);
        let head = signed(reader.up_to(last_pane, "a pane after the end of time")?);
        let waiting = signed(reader.up_to(last_pane, "more panes before the watermark than a ring has")?);
        let closed = head - 1 - waiting;
        self.timeline.start_at(head, closed);
        if self.timeline.mark(0).closed != closed {
            return Err(reader.impossible("more panes before the watermark than a ring has"));
        }
        self.since_ms =
            signed(reader.up_to(EventTime::MAX.as_millis().unsigned_abs(), "a begin after the end of time")?);
        self.level = f64::from_bits(u64::from_le_bytes(reader.array()?));
        if !(0.0..=MAX_LEVEL).contains(&self.level) || self.level.is_sign_negative() {
            return Err(reader.impossible("an admission level out of range"));
        }
        self.bars = self.read_bars(reader)?;
        let events = self.read_panes(reader)?;
        self.read_keys(reader, &events)?;
        self.read_shards(reader, &events)
    }

    fn read_bars(&self, reader: &mut Reader<'_>) -> Result<Bars, ReadError> {
        let head = self.timeline.mark(0).head;
        let panes = (head - self.timeline.oldest_short() + 1).unsigned_abs();
        let count = reader.up_to(panes, "more bars than panes")?;
        let mut entries = Vec::new();
        for _ in 0..count {
            let pane = head - signed(reader.up_to(panes - 1, "a bar of a pane that has gone")?);
            let mut bars = NO_BARS;
            for bar in &mut bars {
                *bar = reader.number()?;
            }
            if bars.contains(&0) || entries.last().is_some_and(|(before, _)| *before >= pane) {
                return Err(reader.impossible("bars out of order"));
            }
            entries.push((pane, bars));
        }
        let bars = Bars::of(entries.iter().copied());
        if bars.iter().eq(entries) { Ok(bars) } else { Err(reader.impossible("bars out of order")) }
    }

    /// Reads all panes; gives the events of each.
    fn read_panes(&mut self, reader: &mut Reader<'_>) -> Result<Vec<u64>, ReadError> {
        let marks = [self.timeline.mark(0), self.timeline.mark(1)];
        let mut events = Vec::new();
        let mut sums = [0u64; MAX_WINDOWS];
        let panes: Vec<(usize, i64)> = spots(&self.timeline).collect();
        let mut in_open = 0;
        for (window, number) in panes {
            let mut pane = Pane::new(self.counts.listed());
            pane.events = reader.up_to(MAX_EVENTS, "more events than are counted")?;
            events.push(pane.events);
            sums[window] = sums[window].saturating_add(pane.events);
            if sums[window] > MAX_EVENTS {
                return Err(reader.impossible("more events than are counted"));
            }
            let holder = holder(window, number, &marks);
            if holder == Holder::Open {
                in_open = pane.events;
            }
            if pane.events > 0 {
                // The longer window's newest pane has the open pane's events in its number and not yet in its counts.
                let is_newest_long = window > 0 && number == marks[1].head;
                let counted = pane.events.checked_sub(if is_newest_long { in_open } else { 0 });
                let counted = counted.ok_or_else(|| reader.impossible("fewer events than in the open pane"))?;
                self.read_pane(reader, &mut pane, counted, holder)?;
            } else if window > 0 && number == marks[1].head && in_open > 0 {
                return Err(reader.impossible("fewer events than in the open pane"));
            }
            if holder == Holder::Open {
                // What the open pane holds is in the totals.
                pane.table = Table::default();
            }
            let slot = self.timeline.ring_slot(window, number);
            if let Some(place) = self.counts.rings[window].get_mut(slot) {
                *place = pane;
            }
        }
        Ok(events)
    }

    fn read_pane(
        &mut self,
        reader: &mut Reader<'_>,
        pane: &mut Pane,
        counted: u64,
        holder: Holder,
    ) -> Result<(), ReadError> {
        let theta = match reader.byte()? {
            64 => 0,
            halvings @ 0..64 => u64::MAX >> halvings,
            _ => return Err(reader.impossible("a theta out of range")),
        };
        let names = reader.up_to(pane.sample.limit() as u64, "more names than a pane lists")?;
        let least = u64::from(counted < WRAPS_AT);
        let (mut hash, mut sum) = (0u64, 0u64);
        let mut entries = Vec::new();
        for place in 0..names {
            let step = reader.number()?;
            hash = hash
                .checked_add(step)
                .filter(|hash| *hash <= theta && (step > 0 || place == 0))
                .ok_or_else(|| reader.impossible("names out of order"))?;
            let count = reader.up_to(u64::from(u32::MAX), "a count that is too high")?;
            if count < least {
                return Err(reader.impossible("a name without events"));
            }
            sum += count;
            entries.push((hash, u32::try_from(count).unwrap_or(u32::MAX)));
        }
        pane.sample = KeySample::of(pane.sample.limit(), theta, &entries);
        if pane.sample.is_complete() {
            if low(sum) != low(counted) {
                return Err(reader.impossible("counts that do not add up to the pane's events"));
            }
            self.counts.sketch.gain_listed(holder, entries.into_iter());
            return Ok(());
        }
        let rows = self.counts.sketch.rows();
        let cells = reader.counts(rows.cells(), u64::from(u32::MAX))?;
        let cells: Vec<u32> = cells.into_iter().map(low).collect();
        for row in cells.chunks(1 << rows.width_log2()) {
            if row.iter().fold(0u32, |sum, cell| sum.wrapping_add(*cell)) != low(counted) {
                return Err(reader.impossible("a row that does not add up to its pane's events"));
            }
        }
        pane.table = Table::of(cells);
        if counted < WRAPS_AT && entries.iter().any(|entry| pane.table.upper(rows, entry.0) < entry.1) {
            return Err(reader.impossible("a name with more events than its cells"));
        }
        self.counts.sketch.gain(holder, &pane.table);
        Ok(())
    }

    fn read_keys(&mut self, reader: &mut Reader<'_>, events: &[u64]) -> Result<(), ReadError> {
        let mut last: Option<Arc<[u8]>> = None;
        for _ in 0..reader.number()? {
            let key: Arc<[u8]> = Arc::from(reader.text(MAX_KEY_BYTES, "a key empty or too long")?);
            if last.as_ref().is_some_and(|last| *last >= key) {
                return Err(reader.impossible("keys out of order"));
            }
            let lower = reader.counts(events.len(), MAX_EVENTS)?;
            let unknown = reader.counts(events.len(), MAX_EVENTS)?;
            let panes = estimates(&lower, &unknown);
            if panes.iter().zip(events).any(|(pane, events)| pane.upper > *events) {
                return Err(reader.impossible("a key with more events than its pane"));
            }
            let hash = key_hash(&key, self.seed);
            let disagree = |(at, pane): ((usize, i64), &Estimate)| {
                let known = self.counts.bound(&self.timeline, at.0, at.1, hash);
                pane.lower > known.upper || pane.upper < known.lower
            };
            if spots(&self.timeline).zip(&panes).any(disagree) {
                return Err(reader.impossible("a key whose counters and cells disagree"));
            }
            self.keys.insert(Arc::clone(&key), Listed { hash, panes });
            last = Some(key);
            if self.keys.len() > self.max_keys.saturating_mul(2) {
                self.drop_least();
            }
        }
        self.drop_least();
        Ok(())
    }

    fn read_shards(&mut self, reader: &mut Reader<'_>, events: &[u64]) -> Result<(), ReadError> {
        for _ in 0..reader.up_to(MAX_SHARDS as u64, "more shards than are counted")? {
            let name: Arc<[u8]> = Arc::from(reader.text(MAX_SHARD_BYTES as u64, "a shard's name empty or too long")?);
            if self.shards.last_key_value().is_some_and(|(last, _)| *last >= name) {
                return Err(reader.impossible("shards out of order"));
            }
            let seen = reader.up_to(EventTime::MAX.as_millis().unsigned_abs() + 1, "an event after the end of time")?;
            let panes = reader.counts(events.len(), MAX_EVENTS)?.into_boxed_slice();
            if panes.iter().zip(events).any(|(count, events)| count > events) {
                return Err(reader.impossible("a shard with more events than its pane"));
            }
            self.shards.insert(name, ListedShard { seen_ms: seen.checked_sub(1).map(signed), panes });
        }
        Ok(())
    }
}

fn identity(reader: &mut Reader<'_>) -> Result<Identity, ReadError> {
    let hot_on = reader.byte()?;
    let known = [HotOn::All, HotOn::Reads, HotOn::Writes].into_iter().find(|known| hot_on_byte(*known) == hot_on);
    let hot_on = known.ok_or_else(|| reader.impossible("an unknown word for what is counted"))?;
    let windows = reader.byte()?;
    if usize::from(windows) > MAX_WINDOWS {
        return Err(reader.impossible("more windows than a keyspace has"));
    }
    let mut rings = Vec::new();
    for _ in 0..windows {
        rings.push(Ring {
            pane_ms: u64::from_le_bytes(reader.array()?),
            panes: u32::from_le_bytes(reader.array()?),
            capacity: u32::from_le_bytes(reader.array()?),
        });
    }
    Ok(Identity {
        hot_on,
        rings,
        depth: reader.byte()?,
        width_log2: reader.byte()?,
        listed: u32::from_le_bytes(reader.array()?),
        fingerprint: u64::from_le_bytes(reader.array()?),
    })
}

const fn holder(window: usize, number: i64, marks: &[Mark; MAX_WINDOWS]) -> Holder {
    if window > 0 {
        Holder::Long
    } else if number == marks[0].head {
        Holder::Open
    } else {
        Holder::Closed
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_possible_truncation, reason = "counters of 32 bits wrap, and so does what they add up to")]
const fn low(number: u64) -> u32 {
    number as u32
}
