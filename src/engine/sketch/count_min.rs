//! Count-min with two running totals in one cell, and the table of one closed pane.

use super::hash::{Rows, as_index};

/// Adds one event to the shorter window's total.
const SHORT: u64 = 1;
/// Adds one event to the longer window's total.
const LONG: u64 = 1 << 32;

/// The counts of one closed pane, row by row; the memory is taken when the first pane needs it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table(Vec<u32>);

impl Table {
    /// All zero, with room for every cell.
    pub(crate) fn zero(&mut self, rows: &Rows) {
        self.0.clear();
        self.0.resize(rows.cells(), 0);
    }

    /// Adds `count` events of one key.
    pub(crate) fn add(&mut self, rows: &Rows, hash: u64, count: u32) {
        for cell in rows.of(hash) {
            if let Some(cell) = self.0.get_mut(cell) {
                *cell = cell.wrapping_add(count);
            }
        }
    }

    /// Adds another pane cell by cell.
    pub(crate) fn add_table(&mut self, other: &Self) {
        for (cell, more) in self.0.iter_mut().zip(&other.0) {
            *cell = cell.wrapping_add(*more);
        }
    }

    /// The least of the key's cells: never below its count.
    pub(crate) fn upper(&self, rows: &Rows, hash: u64) -> u32 {
        rows.of(hash).map(|cell| self.0.get(cell).copied().unwrap_or(0)).min().unwrap_or(0)
    }

    /// The cells, for digests and the byte form.
    pub(crate) fn cells(&self) -> &[u32] {
        &self.0
    }

    /// Adds each `2^by` neighbours.
    pub(crate) fn fold(&mut self, by: u32) {
        self.0 = self.0.chunks(1 << by).map(|cells| cells.iter().fold(0, |sum, cell| cell.wrapping_add(sum))).collect();
    }

    /// A table of these cells.
    pub(crate) const fn of(cells: Vec<u32>) -> Self {
        Self(cells)
    }
}

/// Which totals hold a pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A closed pane of the shorter window.
    Closed,
    /// The open pane, which both totals hold.
    Open,
    /// What the longer window has taken over from closed panes.
    Long,
}

/// Running totals of one or two windows.
///
/// The low half of a cell counts the events of the shorter window, the high half those of the longer one, so an event
/// of the open pane writes one cell a row. What the open pane holds is the difference between the low half and `closed`,
/// the sum of the shorter window's closed panes. Counts are exact while a window holds fewer than 2^32 events.
#[derive(Debug, Clone)]
pub(crate) struct CountMin {
    rows: Rows,
    totals: Vec<u64>,
    closed: Vec<u32>,
}

impl CountMin {
    /// An empty table.
    pub(crate) fn new(rows: Rows) -> Self {
        let cells = rows.cells();
        Self { rows, totals: vec![0; cells], closed: vec![0; cells] }
    }

    /// The shape.
    pub(crate) const fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Adds events of the open pane to both totals; each is told its key's upper bounds over the shorter and the longer total.
    #[inline]
    pub(crate) fn add_open<'a>(&mut self, events: impl Iterator<Item = (u64, &'a mut [u32; 2])>) {
        if let Some((factors, width_log2)) = self.rows.usual() {
            // Four rows, known as such: the loop over them is unrolled, and the misses of several events overlap.
            let (first, rest) = self.totals.split_at_mut(1 << width_log2);
            let (second, rest) = rest.split_at_mut(1 << width_log2);
            let (third, fourth) = rest.split_at_mut(1 << width_log2);
            let mut rows = [first, second, third, fourth];
            for (hash, upper) in events {
                let mut least = [u32::MAX; 2];
                for (row, factor) in rows.iter_mut().zip(factors) {
                    if let Some(cell) = row.get_mut(as_index(hash.wrapping_mul(factor) >> (64 - width_log2))) {
                        add_one(cell, &mut least);
                    }
                }
                *upper = least;
            }
        } else {
            for (hash, upper) in events {
                *upper = [u32::MAX; 2];
                for index in self.rows.of(hash) {
                    if let Some(cell) = self.totals.get_mut(index) {
                        add_one(cell, upper);
                    }
                }
            }
        }
    }

    /// Adds an event of a closed pane to the totals whose panes still hold it; gives upper bounds as `add_open` does.
    pub(crate) fn add_closed(&mut self, hash: u64, in_short: bool, in_long: bool) -> [u32; 2] {
        let (mut short, mut long) = (u32::MAX, u32::MAX);
        let more = if in_short { SHORT } else { 0 } + if in_long { LONG } else { 0 };
        for index in self.rows.of(hash) {
            if let (Some(cell), Some(closed)) = (self.totals.get_mut(index), self.closed.get_mut(index)) {
                *cell = cell.wrapping_add(more);
                *closed = closed.wrapping_add(u32::from(in_short));
                short = short.min(low(*cell));
                long = long.min(high(*cell));
            }
        }
        [short, long]
    }

    /// Upper bounds of the key's counts over the shorter and the longer total.
    pub(crate) fn upper(&self, hash: u64) -> [u32; 2] {
        let cells = self.rows.of(hash).map(|cell| self.totals.get(cell).copied().unwrap_or(0));
        cells.fold([u32::MAX; 2], |[short, long], cell| [short.min(low(cell)), long.min(high(cell))])
    }

    /// Upper bound of the key's count in the open pane.
    pub(crate) fn open_upper(&self, hash: u64) -> u32 {
        let cells = self.rows.of(hash).map(|cell| {
            let total = self.totals.get(cell).copied().map_or(0, low);
            total.wrapping_sub(self.closed.get(cell).copied().unwrap_or(0))
        });
        cells.min().unwrap_or(0)
    }

    /// Closes the open pane, whose keys are all listed with their counts: the table is not needed.
    pub(crate) fn close_listed(&mut self, keys: impl Iterator<Item = (u64, u32)>) {
        for (hash, count) in keys {
            for cell in self.rows.of(hash) {
                if let Some(closed) = self.closed.get_mut(cell) {
                    *closed = closed.wrapping_add(count);
                }
            }
        }
    }

    /// Closes the open pane into its table.
    pub(crate) fn close(&mut self, table: &mut Table) {
        table.zero(&self.rows);
        for ((total, closed), pane) in self.totals.iter().zip(&mut self.closed).zip(&mut table.0) {
            *pane = low(*total).wrapping_sub(*closed);
            *closed = low(*total);
        }
    }

    /// Takes a pane that is listed out of a total: of the shorter window (0) or the longer one (1).
    pub(crate) fn expire_listed(&mut self, window: usize, keys: impl Iterator<Item = (u64, u32)>) {
        for (hash, count) in keys {
            for index in self.rows.of(hash) {
                if let (Some(total), Some(closed)) = (self.totals.get_mut(index), self.closed.get_mut(index)) {
                    if window == 0 {
                        *total = total.wrapping_sub(u64::from(count));
                        *closed = closed.wrapping_sub(count);
                    } else {
                        *total = total.wrapping_sub(u64::from(count) << 32);
                    }
                }
            }
        }
    }

    /// Takes a pane with a table out of a total.
    pub(crate) fn expire(&mut self, window: usize, table: &Table) {
        if window == 0 {
            for ((total, closed), pane) in self.totals.iter_mut().zip(&mut self.closed).zip(&table.0) {
                *total = total.wrapping_sub(u64::from(*pane));
                *closed = closed.wrapping_sub(*pane);
            }
        } else {
            for (total, pane) in self.totals.iter_mut().zip(&table.0) {
                *total = total.wrapping_sub(u64::from(*pane) << 32);
            }
        }
    }

    /// What the open pane holds.
    pub(crate) fn open_table(&self) -> Table {
        let cells = self.totals.iter().zip(&self.closed).map(|(total, closed)| low(*total).wrapping_sub(*closed));
        Table(cells.collect())
    }

    /// The same counts in narrower rows: each cell is the sum of `2^by` neighbours.
    pub(crate) fn folded(&self, rows: Rows, by: u32) -> Self {
        let totals =
            self.totals.chunks(1 << by).map(|cells| cells.iter().fold(0u64, |sum, cell| sum.wrapping_add(*cell)));
        let closed =
            self.closed.chunks(1 << by).map(|cells| cells.iter().fold(0u32, |sum, cell| sum.wrapping_add(*cell)));
        Self { rows, totals: totals.collect(), closed: closed.collect() }
    }

    /// Adds another structure of the same shape and seed cell by cell.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.totals.iter_mut().zip(&other.totals).for_each(|(total, more)| *total = total.wrapping_add(*more));
        self.closed.iter_mut().zip(&other.closed).for_each(|(closed, more)| *closed = closed.wrapping_add(*more));
    }

    /// Adds a pane whose keys are all listed to the totals that hold it.
    pub(crate) fn gain_listed(&mut self, holder: Holder, keys: impl Iterator<Item = (u64, u32)>) {
        for (hash, count) in keys {
            for index in self.rows.of(hash) {
                gain(self.totals.get_mut(index), self.closed.get_mut(index), holder, count);
            }
        }
    }

    /// Adds a pane with a table to the totals that hold it.
    pub(crate) fn gain(&mut self, holder: Holder, table: &Table) {
        for ((total, closed), count) in self.totals.iter_mut().zip(&mut self.closed).zip(&table.0) {
            gain(Some(total), Some(closed), holder, *count);
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.totals.fill(0);
        self.closed.fill(0);
    }

    /// True when every total is zero, for tests of long runs.
    #[cfg(test)]
    pub(crate) fn is_zero(&self) -> bool {
        self.totals.iter().all(|total| *total == 0) && self.closed.iter().all(|closed| *closed == 0)
    }
}

/// Adds an event of the open pane to a cell, and brings the least of the key's cells down to it.
#[inline]
fn add_one(cell: &mut u64, least: &mut [u32; 2]) {
    *cell = cell.wrapping_add(SHORT + LONG);
    *least = [least[0].min(low(*cell)), least[1].min(high(*cell))];
}

fn gain(total: Option<&mut u64>, closed: Option<&mut u32>, holder: Holder, count: u32) {
    let (Some(total), Some(closed)) = (total, closed) else { return };
    let count_of = u64::from(count);
    *total = total.wrapping_add(match holder {
        Holder::Closed => count_of,
        Holder::Open => count_of | count_of << 32,
        Holder::Long => count_of << 32,
    });
    if holder == Holder::Closed {
        *closed = closed.wrapping_add(count);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is what is asked for")]
const fn low(cell: u64) -> u32 {
    cell as u32
}

const fn high(cell: u64) -> u32 {
    (cell >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::super::hash::key_hash;
    use super::*;

    fn add_open(sketch: &mut CountMin, hash: u64) -> [u32; 2] {
        let mut upper = [0; 2];
        sketch.add_open(std::iter::once((hash, &mut upper)));
        upper
    }

    #[test]
    fn a_pane_is_what_the_total_gained() {
        let mut sketch = CountMin::new(Rows::new(4, 8, 3));
        let (a, b) = (key_hash(b"a", 3), key_hash(b"b", 3));
        for _ in 0..5 {
            add_open(&mut sketch, a);
        }
        let mut first = Table::default();
        sketch.close(&mut first);
        assert_eq!(add_open(&mut sketch, b), [1, 1]);
        assert_eq!(sketch.open_upper(a), 0);
        assert_eq!(first.upper(sketch.rows(), a), 5);
        // A late event belongs to the closed pane, not to the open one.
        sketch.add_closed(a, true, true);
        first.add(&sketch.rows().clone(), a, 1);
        assert_eq!((sketch.open_upper(a), sketch.upper(a)), (0, [6, 6]));
        let mut second = Table::default();
        sketch.close(&mut second);
        sketch.expire(0, &first);
        assert_eq!((sketch.upper(a), sketch.upper(b)), ([0, 6], [1, 1]));
        sketch.expire(1, &first);
        sketch.expire(0, &second);
        sketch.expire(1, &second);
        assert!(sketch.is_zero());
    }

    /// H17, second half: never below the truth; above it by more than `2e N / w` for fewer than `e^-depth` of the keys.
    #[test]
    fn h17_estimates_are_one_sided_and_bounded() {
        let mut sketch = CountMin::new(Rows::new(4, 11, 11));
        let count = |n: u32| 1 + u64::from(n.is_multiple_of(7)) * 9;
        let mut events = 0;
        for n in 0..100_000u32 {
            for _ in 0..count(n) {
                add_open(&mut sketch, key_hash(&n.to_le_bytes(), 11));
                events += 1;
            }
        }
        let bound = 2.0 * std::f64::consts::E * f64::from(events) / 2048.0;
        let mut over = 0;
        for n in 0..100_000u32 {
            let upper = u64::from(sketch.upper(key_hash(&n.to_le_bytes(), 11))[0]);
            assert!(upper >= count(n));
            over += u32::from((upper - count(n)) as f64 > bound);
        }
        assert!(f64::from(over) <= 100_000.0 * (-4.0f64).exp(), "{over}");
    }
}
