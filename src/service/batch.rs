//! A batch of records: decoded, counted, and told of once.

use crate::engine::Engine;
use crate::input::{Decoder, Refusal};
use crate::plan::{Mapper, MapperCheck, Planned};
use crate::source::{Answer, Record};
use crate::telemetry::{Events, Telemetry};
use crate::units::{EventTime, Offset, Partition};

/// Counts of one batch: atomics and log lines are touched once a batch, not once a record.
pub(super) struct Batch {
    records: u64,
    bytes: u64,
    counted: Vec<u64>,
    /// By keyspace, where a mapper is declared.
    mappers: Vec<Option<MapperCheck>>,
    refused: [(u64, Partition, Offset); Refusal::ALL.len()],
}

const NOTHING: (u64, Partition, Offset) = (0, Partition(0), Offset(0));

impl Batch {
    /// Nothing counted in these keyspaces, each with its declared mapper.
    pub(super) fn new(mappers: Vec<Option<Mapper>>) -> Self {
        let mappers: Vec<_> = mappers.into_iter().map(|mapper| mapper.map(MapperCheck::new)).collect();
        let counted = vec![0; mappers.len()];
        Self { records: 0, bytes: 0, counted, mappers, refused: [NOTHING; Refusal::ALL.len()] }
    }

    /// Declared mappers, by keyspace, held against where events were served.
    pub(super) fn mappers(&self) -> &[Option<MapperCheck>] {
        &self.mappers
    }

    /// Keys with a plan, by keyspace: their requests go where the plan says.
    pub(super) fn set_plans(&mut self, plans: &[Vec<Planned>]) {
        for (mapper, plans) in self.mappers.iter_mut().zip(plans) {
            if let Some(mapper) = mapper {
                mapper.set_plans(plans);
            }
        }
    }

    /// Decodes one record and counts its event, or its refusal, unless it must wait: then it will come again.
    pub(super) fn take(
        &mut self,
        record: Record<'_>,
        decoder: &mut Decoder,
        engine: &mut Engine,
        now: EventTime,
    ) -> Answer {
        match self.count(record, decoder, engine, now) {
            Ok(Answer::Taken) => {}
            Ok(Answer::MustWait) => {
                decoder.undo(record.value.unwrap_or_default());
                return Answer::MustWait;
            }
            Err(refusal) => {
                let slot = &mut self.refused[refusal as usize];
                *slot = (slot.0 + 1, record.partition, record.offset);
            }
        }
        self.records += 1;
        self.bytes += record.value.map_or(0, |value| value.len() as u64);
        Answer::Taken
    }

    fn count(
        &mut self,
        record: Record<'_>,
        decoder: &mut Decoder,
        engine: &mut Engine,
        now: EventTime,
    ) -> Result<Answer, Refusal> {
        let value = record.value.ok_or(Refusal::Tombstone)?;
        let event = decoder.decode(value)?;
        if engine.must_wait(record.partition, event.time, now) {
            return Ok(Answer::MustWait);
        }
        engine.handle_event(record.partition, &event, now)?;
        for ((keyspace, counted), mapper) in self.counted.iter_mut().enumerate().zip(&mut self.mappers) {
            let Some(key) = event.keys.get(keyspace) else { continue };
            *counted += 1;
            if let Some(mapper) = mapper {
                mapper.see(key, &event);
            }
        }
        Ok(Answer::Taken)
    }

    /// Hands the counts on and begins anew; returns the number of records.
    pub(super) fn flush(
        &mut self,
        telemetry: &Telemetry,
        events: &Events,
        decoder: &mut Decoder,
        now: EventTime,
    ) -> u64 {
        let records = std::mem::take(&mut self.records);
        if records == 0 {
            return 0;
        }
        telemetry.add_read(records, std::mem::take(&mut self.bytes));
        let keys = decoder.take_counts().keys;
        for (keyspace, counted) in self.counted.iter_mut().enumerate() {
            telemetry.add_counted(keyspace, std::mem::take(counted));
            let Some(missing) = keys.get(keyspace) else { continue };
            let parts = [
                (Refusal::KeyMissing, missing.missing),
                (Refusal::KeyEmpty, missing.empty),
                (Refusal::KeyTooLong, missing.too_long),
            ];
            for (reason, number) in parts.into_iter().filter(|(_, number)| *number > 0) {
                telemetry.add_keys_refused(keyspace, reason, number);
            }
        }
        for (reason, slot) in Refusal::ALL.into_iter().zip(&mut self.refused) {
            let (number, partition, offset) = std::mem::replace(slot, NOTHING);
            if number > 0 {
                events.records_refused(now, reason, number, partition, offset);
            }
        }
        records
    }
}
