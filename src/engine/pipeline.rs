//! The engine: events, progress and ticks in; verdicts out.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::keyspace::{Keyspace, RestoreError, TOGETHER};
use super::outbox::{MAX_VERDICTS, Outbox};
use super::settings::{EngineSettings, FixedSetting, KeyspaceSettings};
use super::status::{KeyspaceStatus, Progress};
use super::verdict::{Condition, HotKey, ShardLoad, Verdict};
use super::window::{Watermark, Window};
use crate::input::{AccessEvent, MAX_KEYSPACES, Refusal};
use crate::units::{Estimate, EventTime, Partition, Span};

/// Counts every key and shard of every keyspace over sliding windows and says which are hot.
///
/// Methods come in three kinds: `handle_*` take what happened, `poll_verdict` gives what changed (call it after each
/// `handle_*` until it gives none), all others answer questions. Every `handle_*` but `handle_revoke` takes the clock;
/// [`Engine::next_deadline`] says when `handle_tick` is due. Over several partitions ask [`Engine::must_wait`] before each event.
///
/// What holds at every moment: `lower <= true <= upper` for every count; a key whose count in a window reaches a threshold
/// and [`KeyspaceStatus::recall_above`] is at least suspect; nothing is said to be hot on a count that is not proved. Counts
/// are those of the windows by pane: the newest one ends with the open pane, which the newest event time lies in.
#[derive(Debug)]
pub struct Engine {
    keyspaces: Vec<Keyspace>,
    pub(super) time: Watermark,
    out: Outbox,
    memory_bytes: Vec<u64>,
    longest: Span,
    /// Events from here on belong to the open pane of every keyspace.
    open_from: EventTime,
}

impl Engine {
    /// An engine that has seen nothing. Only the first two windows of a keyspace and the first [`MAX_KEYSPACES`] count.
    #[must_use]
    pub fn new(settings: EngineSettings) -> Self {
        let EngineSettings { keyspaces, time } = settings;
        let windows = keyspaces.iter().flat_map(|keyspace| keyspace.windows.iter().take(2));
        let longest = windows.map(|window| window.length).max().unwrap_or_default();
        let memory_bytes = keyspaces.iter().map(|keyspace| Keyspace::max_bytes(keyspace, &time)).collect();
        let keyspaces = keyspaces.into_iter().take(MAX_KEYSPACES).enumerate();
        let keyspaces = keyspaces.map(|(number, settings)| Keyspace::new(number, settings, &time)).collect();
        Self {
            keyspaces,
            time: Watermark::new(time),
            out: Outbox::default(),
            memory_bytes,
            longest,
            open_from: EventTime::MAX,
        }
    }

    /// Counts one event. `now` is the clock, or what stands for it in a replay.
    ///
    /// # Errors
    /// [`Refusal::Future`] for an event ahead of `now` by more than `max_ahead`, [`Refusal::TooLate`] for one older than
    /// every window of every keyspace. A refused event changes nothing.
    pub fn handle_event(
        &mut self,
        partition: Partition,
        event: &AccessEvent<'_>,
        now: EventTime,
    ) -> Result<(), Refusal> {
        if !self.steady(partition, now).contains(&event.time) {
            self.accept(partition, event, now)?;
        }
        self.count(std::slice::from_ref(event));
        Ok(())
    }

    /// Counts events of one partition that were read together, in their order: the same as one by one, and faster where many of them
    /// are of the open pane. `refused` is told the place and the reason of each that is not counted, as by
    /// [`Engine::handle_event`].
    pub fn handle_events(
        &mut self,
        partition: Partition,
        events: &[AccessEvent<'_>],
        now: EventTime,
        mut refused: impl FnMut(usize, Refusal),
    ) {
        let mut rest = events;
        while let Some(event) = rest.first() {
            let mut steady = self.steady_events(partition, rest, now);
            if steady == 0 {
                if let Err(refusal) = self.accept(partition, event, now) {
                    refused(events.len() - rest.len(), refusal);
                    rest = rest.get(1..).unwrap_or_default();
                    continue;
                }
                // Event time has gone on to this event; those after it may be no newer.
                steady = self.steady_events(partition, rest, now).max(1);
            }
            let (counted, after) = rest.split_at_checked(steady).unwrap_or((rest, &[]));
            self.count(counted);
            rest = after;
        }
    }

    /// Events of the partition with these times move no event time and belong to the open pane of every keyspace.
    #[inline]
    fn steady(&self, partition: Partition, now: EventTime) -> RangeInclusive<EventTime> {
        match self.time.steady_until(partition, now) {
            Some(until) => self.open_from..=until,
            None => EventTime::MAX..=EventTime::MIN,
        }
    }

    /// How many of the first events move no event time and belong to the open pane of every keyspace.
    #[inline]
    fn steady_events(&self, partition: Partition, events: &[AccessEvent<'_>], now: EventTime) -> usize {
        let times = self.steady(partition, now);
        events.iter().take(TOGETHER).take_while(|event| times.contains(&event.time)).count()
    }

    /// Counts events to which event time has gone on.
    #[inline]
    fn count(&mut self, events: &[AccessEvent<'_>]) {
        let newest = self.time.newest().unwrap_or(EventTime::MIN);
        for keyspace in &mut self.keyspaces {
            keyspace.add(events, newest, &mut self.out);
        }
    }

    /// Event time goes on to an event, unless it is refused.
    fn accept(&mut self, partition: Partition, event: &AccessEvent<'_>, now: EventTime) -> Result<(), Refusal> {
        if self.time.is_future(event.time, now) {
            return Err(Refusal::Future);
        }
        if !self.keyspaces.is_empty() && self.keyspaces.iter().all(|keyspace| keyspace.is_too_late(event.time)) {
            self.keyspaces.iter_mut().for_each(Keyspace::note_too_late);
            return Err(Refusal::TooLate);
        }
        let is_first = self.time.newest().is_none();
        let is_new = self.time.accept(partition, event.time, now);
        self.advance();
        let newest = self.time.newest().unwrap_or(event.time);
        if is_new && !is_first {
            self.keyspaces.iter_mut().for_each(|keyspace| keyspace.restart_warm_up(newest));
        }
        Ok(())
    }

    /// Takes how far a partition has been read.
    pub fn handle_progress(&mut self, progress: Progress, now: EventTime) {
        let is_new = self.time.progress(progress, now);
        self.advance();
        if let (true, Some(newest)) = (is_new, self.time.newest()) {
            self.keyspaces.iter_mut().for_each(|keyspace| keyspace.restart_warm_up(newest));
        }
    }

    /// A partition was taken away: it holds event time back no longer. What was counted of it stays until it leaves the windows.
    pub fn handle_revoke(&mut self, partition: Partition) {
        self.time.revoke(partition);
        self.advance();
    }

    /// The clock moved: partitions become idle, and when all are, windows go on sliding so that things cool.
    pub fn handle_tick(&mut self, now: EventTime) {
        self.time.pass(now);
        self.advance();
    }

    /// The clock at which `handle_tick` may change something; none when only an event can.
    #[must_use]
    pub fn next_deadline(&self) -> Option<EventTime> {
        let warm = self.keyspaces.iter().filter(|keyspace| keyspace.is_warm());
        let panes = warm.filter_map(|keyspace| EventTime::from_millis(keyspace.next_pane_ms()).ok());
        let carried = panes.min().and_then(|newest| self.time.clock_at(newest));
        self.time.next_change().into_iter().chain(carried).min()
    }

    /// The oldest change that has not been fetched.
    pub fn poll_verdict(&mut self) -> Option<Verdict> {
        self.out.pop()
    }

    /// Hot keys of a keyspace, then suspect ones, the busiest first.
    #[must_use]
    pub fn hot_keys(&self, keyspace: usize) -> Vec<HotKey> {
        self.keyspaces.get(keyspace).map(Keyspace::hot_keys).unwrap_or_default()
    }

    /// Known shards in the newest window, the busiest first.
    #[must_use]
    pub fn shard_loads(&self, keyspace: usize, window: usize) -> Vec<ShardLoad> {
        self.keyspaces.get(keyspace).map(|keyspace| keyspace.shard_loads(window)).unwrap_or_default()
    }

    /// The `limit` candidates with the highest counts in the newest window, the busiest first.
    #[must_use]
    pub fn top_keys(&self, keyspace: usize, window: usize, limit: usize) -> Vec<(Arc<[u8]>, Estimate)> {
        self.keyspaces.get(keyspace).map(|keyspace| keyspace.top_keys(window, limit)).unwrap_or_default()
    }

    /// Bounds of any key's count in the newest window.
    #[must_use]
    pub fn estimate(&self, keyspace: usize, window: usize, key: &[u8]) -> Estimate {
        self.keyspaces.get(keyspace).map(|keyspace| keyspace.estimate(key, window)).unwrap_or_default()
    }

    /// Planned keys are candidates whatever their count and are never evicted. Replaces the earlier list.
    pub fn protect(&mut self, keyspace: usize, keys: &[Arc<[u8]>]) {
        let newest = self.time.newest().unwrap_or(EventTime::MIN);
        if let Some(keyspace) = self.keyspaces.get_mut(keyspace) {
            keyspace.protect(keys, newest, &mut self.out);
        }
    }

    /// Other rules for a keyspace from now on: `key_rules`, `overrides`, `shard_rules`, `min_keys`, `clear` and `clear_after` of the
    /// settings. What is counted stays, and everybody is judged anew at once. Where a threshold fell, a key that was too cool to be
    /// counted exactly may be missed for one window: [`super::WindowStatus::complete_from`] says until when.
    ///
    /// # Errors
    /// [`FixedSetting`] when the settings differ in anything else, or there is no such keyspace; nothing is changed then.
    pub fn set_rules(&mut self, keyspace: usize, settings: &KeyspaceSettings) -> Result<(), FixedSetting> {
        let name = settings.name.clone();
        let Some(own) = self.keyspaces.get_mut(keyspace) else {
            return Err(FixedSetting { keyspace: name, setting: "number of keyspaces" });
        };
        match own.settings().fixed_difference(settings) {
            Some(setting) => Err(FixedSetting { keyspace: name, setting }),
            None => {
                own.set_rules(settings, &mut self.out);
                Ok(())
            }
        }
    }

    /// Other rules for every keyspace, in the order of the configuration, as [`Engine::set_rules`]: for all of them, or for none.
    ///
    /// # Errors
    /// [`FixedSetting`] when one of them, or their number, cannot change; nothing is changed then.
    pub fn set_all_rules(&mut self, settings: &[KeyspaceSettings]) -> Result<(), FixedSetting> {
        let fixed = |keyspace: &str, setting| FixedSetting { keyspace: keyspace.to_owned(), setting };
        if settings.len() != self.keyspaces.len() {
            let name = settings.get(self.keyspaces.len()).map_or("", |more| more.name.as_str());
            return Err(fixed(name, "number of keyspaces"));
        }
        for (own, new) in self.keyspaces.iter().zip(settings) {
            if let Some(setting) = own.settings().fixed_difference(new) {
                return Err(fixed(&own.settings().name, setting));
            }
        }
        for (own, new) in self.keyspaces.iter_mut().zip(settings) {
            own.set_rules(new, &mut self.out);
        }
        Ok(())
    }

    /// Where event time is: the newest event, or how far the clock has carried it since; none before the first event.
    #[must_use]
    pub const fn newest(&self) -> Option<EventTime> {
        self.time.newest()
    }

    /// How far the answers can be trusted.
    #[must_use]
    pub fn condition(&self) -> Condition {
        let newest = self.time.newest();
        let completeness = self.time.completeness();
        Condition {
            incomplete: !completeness.is_whole() || self.time.was_taken_within(self.longest),
            completeness,
            lag: self.time.lag(),
            warming_up: newest
                .is_none_or(|newest| self.keyspaces.iter().any(|keyspace| keyspace.is_warming_up(newest))),
            catching_up: self.time.is_catching_up(self.longest),
            watermark: self.time.watermark(),
        }
    }

    /// What a keyspace counts now, and the limits that it ran into; empty when there is no such keyspace.
    #[must_use]
    pub fn status(&self, keyspace: usize) -> KeyspaceStatus {
        let memory_bytes = self.memory_bytes.get(keyspace).copied().unwrap_or(0);
        self.keyspaces.get(keyspace).map(|keyspace| keyspace.status(self.out.cut(), memory_bytes)).unwrap_or_default()
    }

    /// A digest of everything that a keyspace's panes and samples hold: the same for the same events in any order, as long
    /// as none is too late.
    #[must_use]
    pub fn digest(&self, keyspace: usize) -> Option<u64> {
        self.keyspaces.get(keyspace).map(Keyspace::digest)
    }

    /// What a keyspace has counted, as a value; none when there is no such keyspace.
    #[must_use]
    pub fn window(&self, keyspace: usize) -> Option<Window> {
        self.keyspaces.get(keyspace).map(Keyspace::window)
    }

    /// Goes on from what was counted before or elsewhere, as if this engine had counted it: panes, samples, candidates and
    /// shards. Nothing is hot until it is judged, which is done at once: a key at or above a threshold is raised anew, one that
    /// was only not yet cleared is cold. Not part of a window: how far each partition is, which keys are planned
    /// ([`Engine::protect`]), the number of keys ever, and what requests on a key looked like ([`HotKey::profile`]), which
    /// is counted from here on.
    ///
    /// # Errors
    /// [`RestoreError`] when identities differ, the keyspace does not exist or has counted events; nothing is changed then.
    pub fn restore(&mut self, keyspace: usize, window: &Window) -> Result<(), RestoreError> {
        let own = self.keyspaces.get_mut(keyspace).ok_or(RestoreError::NoKeyspace(keyspace))?;
        own.restore(window, &mut self.out)
    }

    /// The most bytes that an engine with these settings takes.
    #[must_use]
    pub fn memory_bytes(settings: &EngineSettings) -> u64 {
        let keyspaces = settings.keyspaces.iter().take(MAX_KEYSPACES);
        let counting: u64 = keyspaces.map(|keyspace| Keyspace::max_bytes(keyspace, &settings.time)).sum();
        counting.saturating_add((MAX_VERDICTS * size_of::<Verdict>()) as u64)
    }

    pub(super) fn advance(&mut self) {
        if let (Some(newest), Some(watermark)) = (self.time.newest(), self.time.watermark()) {
            for keyspace in &mut self.keyspaces {
                keyspace.advance(newest, watermark, &mut self.out);
            }
            let heads = self.keyspaces.iter().map(Keyspace::head_from);
            self.open_from = heads.max().unwrap_or(EventTime::MIN);
        }
    }
}
