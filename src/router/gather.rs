//! One sorted, paged answer out of many places: fan-out, merge, and which copy of a record counts.
//!
//! A [`Gather`] is a state machine without I/O: it says what to fetch or to look up, is told what came, and gives pages.
//!
//! - The cursor is the last (sort key, id) that was returned, never a position in a bucket: it means the same after the layout
//!   has changed.
//! - A copy counts only in its own place, and only when no other place that is read has one that goes before it. Copies of one
//!   id may have different sort keys, so a row whose other copies were not met beside it is looked up before it counts.
//! - A page of a key with many tombstones, or with many copies that do not count, could go on for long: after
//!   [`GatherSettings::page_depth`] fetches of one place it ends with fewer rows, or none, and a cursor.
//! - A count is the number of rows of such a scan, never a sum over layouts.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::placement::{Place, ReadRule, ScanPlacement};

/// Sizes of a gather.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatherSettings {
    /// Rows of a page that is returned; at least 1.
    pub page_rows: usize,
    /// The most rows that one fetch may bring; at least 1.
    pub fetch_rows: usize,
    /// The most fetches in flight at once; at least 1.
    pub parallel: usize,
    /// The most fetches of one place for one page; at least 1.
    pub page_depth: usize,
}

impl Default for GatherSettings {
    fn default() -> Self {
        Self { page_rows: 100, fetch_rows: 100, parallel: 8, page_depth: 64 }
    }
}

/// Where a page ended: the last row that was returned, or of a page that ended early the last one that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor {
    /// The row's sort key.
    pub sort_key: Vec<u8>,
    /// The row's id; orders rows with one sort key.
    pub id: Vec<u8>,
}

/// A record in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<V> {
    /// What rows are sorted by, as bytes that sort so.
    pub sort_key: Vec<u8>,
    /// The request id of the record.
    pub id: Vec<u8>,
    /// The record's version where records carry one, else 0.
    pub version: u64,
    /// True for the mark that a delete left.
    pub tombstone: bool,
    /// The record.
    pub value: V,
}

/// A fetch to make: at most `rows` rows of a place in ascending order of (sort key, id), all after `after`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// Number of the place in [`ScanPlacement::places`].
    pub place: usize,
    /// Rows up to this one are not wanted.
    pub after: Option<Cursor>,
    /// How many at most.
    pub rows: usize,
}

/// A look-up to make: what these places hold for this id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookUp<'a> {
    /// Hand it back with the answer.
    pub ticket: usize,
    /// The id.
    pub id: Vec<u8>,
    /// Its own places in the other layouts that matter.
    pub places: Vec<Place<'a>>,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<'a, V> {
    /// Fetch these, in parallel if you like, and report each by [`Gather::fetched`].
    Fetch(Vec<Fetch>),
    /// Look these up and report each by [`Gather::looked_up`].
    LookUp(Vec<LookUp<'a>>),
    /// Nothing until a report comes.
    Wait,
    /// A page. Ask again for the next one, or begin anew with its cursor.
    Page(Page<V>),
}

/// A page of rows in ascending order of (sort key, id). With fewer rows than asked for, or none, and a cursor it ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<V> {
    /// The rows.
    pub rows: Vec<Row<V>>,
    /// Where the next page begins; none when there are no more rows.
    pub next: Option<Cursor>,
}

/// A report that fits nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GatherError {
    /// Nobody asked.
    #[error("an answer for place {0}, of which nothing was asked; report each fetch once")]
    NotAsked(usize),
    /// More than was asked for.
    #[error("{got} rows from place {place}, at most {asked} were asked for")]
    TooMany {
        /// The place.
        place: usize,
        /// Rows that came.
        got: usize,
        /// Rows that were asked for.
        asked: usize,
    },
    /// The rows of a place come in order.
    #[error("rows of place {0} that are not in ascending order of (sort key, id), or not after the cursor")]
    Unsorted(usize),
    /// Nobody asked.
    #[error("an answer with ticket {0}, which was not given out or was answered already")]
    NoTicket(usize),
}

/// One place's part.
struct Source<V> {
    rows: VecDeque<Row<V>>,
    /// The last row that was fetched.
    after: Option<Cursor>,
    exhausted: bool,
    in_flight: bool,
    /// Fetches for this page.
    fetches: usize,
}

/// A row that may get on the page.
struct Candidate<'a, V> {
    row: Row<V>,
    /// Copies in layouts with a rank below this one go before it.
    before: usize,
    check: Check<'a>,
}

enum Check<'a> {
    Counts,
    LookUp(Vec<Place<'a>>),
    Asked,
    Dropped,
}

/// A scan in progress.
pub struct Gather<'s, 'a, V> {
    scan: &'s ScanPlacement<'a>,
    settings: GatherSettings,
    sources: Vec<Source<V>>,
    page: Vec<Candidate<'s, V>>,
    /// The last row that was looked at.
    passed: Option<Cursor>,
}

impl<'s, 'a: 's, V> Gather<'s, 'a, V> {
    /// A gather over `scan`, which stays alive for as long, of the rows after `after`.
    #[must_use]
    pub fn new(scan: &'s ScanPlacement<'a>, settings: GatherSettings, after: Option<Cursor>) -> Self {
        let settings = GatherSettings {
            page_rows: settings.page_rows.max(1),
            fetch_rows: settings.fetch_rows.max(1),
            parallel: settings.parallel.max(1),
            page_depth: settings.page_depth.max(1),
        };
        let source = |_: &_| Source {
            rows: VecDeque::new(),
            after: after.clone(),
            exhausted: false,
            in_flight: false,
            fetches: 0,
        };
        let sources = scan.places().iter().map(source).collect();
        Self { scan, settings, sources, page: Vec::new(), passed: after }
    }

    /// What to do next.
    pub fn step(&mut self) -> Step<'s, V> {
        // A ticket is a place on the page, so the page stays as it is until every answer is there.
        if self.page.iter().any(|candidate| matches!(candidate.check, Check::Asked)) {
            return Step::Wait;
        }
        self.merge();
        let lookups = self.lookups();
        if !lookups.is_empty() {
            return Step::LookUp(lookups);
        }
        if self.page.len() >= self.settings.page_rows || self.at_end() {
            let next = if self.at_end() { None } else { self.page.last().map(|candidate| cursor_of(&candidate.row)) };
            return Step::Page(self.finish(next));
        }
        let fetches = self.fetches();
        if !fetches.is_empty() {
            Step::Fetch(fetches)
        } else if self.sources.iter().any(|source| source.in_flight) {
            Step::Wait
        } else {
            // What is wanted has been fetched as often as may be; every row of that was looked at, so the next page is further on.
            let next = self.passed.clone();
            Step::Page(self.finish(next))
        }
    }

    /// The rows that a fetch brought; `end` when the place has none after them.
    ///
    /// # Errors
    /// [`GatherError`]; nothing is changed then.
    pub fn fetched(&mut self, place: usize, rows: Vec<Row<V>>, end: bool) -> Result<(), GatherError> {
        let asked = self.settings.fetch_rows;
        let source =
            self.sources.get_mut(place).filter(|source| source.in_flight).ok_or(GatherError::NotAsked(place))?;
        if rows.len() > asked {
            return Err(GatherError::TooMany { place, got: rows.len(), asked });
        }
        let sorted = rows.is_sorted_by(|a, b| order(a, b) == Ordering::Less);
        let behind = |first: &Row<V>| source.after.as_ref().is_some_and(|after| !is_after(first, after));
        if !sorted || rows.first().is_some_and(behind) {
            return Err(GatherError::Unsorted(place));
        }
        if let Some(last) = rows.last() {
            source.after = Some(cursor_of(last));
        }
        source.in_flight = false;
        source.exhausted = end || rows.is_empty();
        source.rows.extend(rows);
        Ok(())
    }

    /// What a look-up found: the copy that goes first by the scan's rule, a tombstone too; none when no place has one. By
    /// [`ReadRule::FirstFound`] it is that of the first place which has one, else the one with the highest version.
    ///
    /// The copy may have come after its place was fetched: a mover copies and callers write while the scan runs. So a copy that
    /// this scan will not meet by itself does not make the record vanish.
    ///
    /// # Errors
    /// [`GatherError::NoTicket`]
    pub fn looked_up(&mut self, ticket: usize, found: Option<Row<V>>) -> Result<(), GatherError> {
        let candidate = self
            .page
            .get(ticket)
            .filter(|candidate| matches!(candidate.check, Check::Asked))
            .ok_or(GatherError::NoTicket(ticket))?;
        let (check, instead) = match found {
            None => (Check::Counts, None),
            // Copies with one version are one record.
            Some(copy) if self.scan.rule() == ReadRule::HighestVersion && copy.version <= candidate.row.version => {
                (Check::Counts, None)
            }
            Some(copy) if copy.tombstone => (Check::Dropped, None),
            Some(copy) if copy.sort_key == candidate.row.sort_key => (Check::Counts, Some(copy)),
            Some(copy) if self.meets(&copy, candidate) => (Check::Dropped, None),
            // A write that runs beside the scan: the record as it was before is as good an answer as the one after.
            Some(_) => (Check::Counts, None),
        };
        if let Some(candidate) = self.page.get_mut(ticket) {
            candidate.check = check;
            if let Some(copy) = instead {
                candidate.row = copy;
            }
        }
        Ok(())
    }

    /// True when the scan has passed the copy's place in the order, or will come across it there. One that was moved back behind
    /// the scan is missed, as in a single store.
    fn meets(&self, copy: &Row<V>, candidate: &Candidate<'a, V>) -> bool {
        let is_copy = |row: &Row<V>| order(row, copy) == Ordering::Equal;
        if order(copy, &candidate.row) == Ordering::Less || self.page.iter().any(|other| is_copy(&other.row)) {
            return true;
        }
        let mut homes = self
            .sources
            .iter()
            .zip(self.scan.places())
            .filter(|(_, place)| self.scan.home_ranks(&copy.id, place).any(|rank| rank < candidate.before));
        homes.any(|(source, _)| {
            let waits = source.rows.iter().any(is_copy);
            let comes = !source.exhausted && source.after.as_ref().is_none_or(|after| is_after(copy, after));
            waits || comes
        })
    }

    fn at_end(&self) -> bool {
        self.sources.iter().all(|source| source.exhausted && source.rows.is_empty())
    }

    /// Moves rows to the page while every place has shown its next one.
    fn merge(&mut self) {
        self.page.retain(|candidate| !matches!(candidate.check, Check::Dropped));
        while self.page.len() < self.settings.page_rows
            && self.sources.iter().all(|source| !source.rows.is_empty() || source.exhausted)
        {
            let heads = self.sources.iter().filter_map(|source| source.rows.front());
            let Some(next) = heads.min_by(|a, b| order(a, b)).map(cursor_of) else { return };
            self.passed = Some(next.clone());
            self.take(next);
        }
    }

    /// Takes every copy at one (sort key, id) and keeps the one that counts, if any.
    fn take(&mut self, at: Cursor) {
        let layouts = self.scan.layouts();
        let mut met = vec![false; layouts];
        let mut best: Option<(usize, Row<V>)> = None;
        for (source, place) in self.sources.iter_mut().zip(self.scan.places()) {
            if source.rows.front().is_none_or(|row| row.id != at.id || row.sort_key != at.sort_key) {
                continue;
            }
            let Some(row) = source.rows.pop_front() else { continue };
            for home in self.scan.home_ranks(&row.id, place) {
                met[home] = true;
            }
            let Some(rank) = self.scan.home_rank(&row.id, place) else { continue };
            if best
                .as_ref()
                .is_none_or(|(other, held)| self.scan.rule().prefers((rank, row.version), (*other, held.version)))
            {
                best = Some((rank, row));
            }
        }
        let Some((rank, row)) = best else { return };
        if row.tombstone {
            return;
        }
        let before = match self.scan.rule() {
            ReadRule::FirstFound => rank,
            ReadRule::HighestVersion => layouts,
        };
        let others: Vec<_> =
            (0..before).filter(|&other| !met[other]).filter_map(|other| self.scan.home_of(&row.id, other)).collect();
        let check = if others.is_empty() { Check::Counts } else { Check::LookUp(others) };
        self.page.push(Candidate { row, before, check });
    }

    /// Look-ups go out together: the page is full, or nothing more can be merged without a fetch.
    fn lookups(&mut self) -> Vec<LookUp<'s>> {
        let mut lookups = Vec::new();
        for (ticket, candidate) in self.page.iter_mut().enumerate() {
            if let Check::LookUp(places) = &mut candidate.check {
                lookups.push(LookUp { ticket, id: candidate.row.id.clone(), places: std::mem::take(places) });
                candidate.check = Check::Asked;
            }
        }
        lookups
    }

    fn fetches(&mut self) -> Vec<Fetch> {
        let (rows, depth) = (self.settings.fetch_rows, self.settings.page_depth);
        let in_flight = self.sources.iter().filter(|source| source.in_flight).count();
        let room = self.settings.parallel.saturating_sub(in_flight);
        let wanting = self
            .sources
            .iter_mut()
            .enumerate()
            .filter(|(_, source)| source.rows.is_empty() && !source.exhausted && !source.in_flight)
            .filter(|(_, source)| source.fetches < depth);
        wanting
            .take(room)
            .map(|(place, source)| {
                source.in_flight = true;
                source.fetches += 1;
                Fetch { place, after: source.after.clone(), rows }
            })
            .collect()
    }

    fn finish(&mut self, next: Option<Cursor>) -> Page<V> {
        self.sources.iter_mut().for_each(|source| source.fetches = 0);
        Page { rows: self.page.drain(..).map(|candidate| candidate.row).collect(), next }
    }
}

impl ReadRule {
    /// True when a copy with (rank, version) goes before another.
    fn prefers(self, (rank, version): (usize, u64), (other_rank, other_version): (usize, u64)) -> bool {
        match self {
            Self::FirstFound => rank < other_rank,
            Self::HighestVersion => version > other_version || version == other_version && rank < other_rank,
        }
    }
}

fn order<V>(a: &Row<V>, b: &Row<V>) -> Ordering {
    a.sort_key.cmp(&b.sort_key).then_with(|| a.id.cmp(&b.id))
}

fn is_after<V>(row: &Row<V>, cursor: &Cursor) -> bool {
    row.sort_key.cmp(&cursor.sort_key).then_with(|| row.id.cmp(&cursor.id)) == Ordering::Greater
}

fn cursor_of<V>(row: &Row<V>) -> Cursor {
    Cursor { sort_key: row.sort_key.clone(), id: row.id.clone() }
}
