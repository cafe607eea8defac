//! The owner of the store: moves a key's record, empties what was left, purges tombstones, and reports.

use keyheat::protocol::State as Phase;

use super::state::{Label, Mover, State};
use super::store::{Change, cell};
use super::{Migration, Rule};

impl Migration {
    pub(super) fn owner_steps(&self, state: &State, out: &mut impl FnMut(Label, State)) {
        for key in 0..self.setup.keys {
            self.moves(state, key, out);
            self.retires(state, key, out);
        }
    }

    fn moves(&self, state: &State, number: u8, out: &mut impl FnMut(Label, State)) {
        let key = &state.keys[usize::from(number)];
        let table = self.tables.get(state.newest());
        let Some(entry) = table.plan(&self.key(number)) else { return };
        let migration = entry.record.migration;
        let rules = self.rules(state.newest(), number);
        let places = [migration.from, migration.to].map(|layout| self.place(&rules, layout, number));
        let moving = entry.record.state == Phase::Moving;
        let mut to = state.clone();
        let after = &mut to.keys[usize::from(number)];
        match key.mover {
            Mover::Read(of, value) if of == migration.version => {
                if let Some(copy) = Change::copies(places[1], value, migration.writes) {
                    copy.make(&mut after.cells);
                }
                after.mover = Mover::Copied(of);
                out(Label::MoverCopies(number), to);
            }
            Mover::Copied(of) if of == migration.version => {
                let report = Some((migration.to.number(), of));
                if moving && key.moved != report {
                    after.moved = report;
                    out(Label::OwnerReportsMoved(number), to);
                }
            }
            // A copy that is in its own place already needs no mover.
            _ if moving => {
                after.mover = if places[0] == places[1] {
                    Mover::Copied(migration.version)
                } else {
                    Mover::Read(migration.version, cell(&key.cells, places[0]))
                };
                out(Label::MoverReads(number), to);
            }
            _ => {}
        }
    }

    fn retires(&self, state: &State, number: u8, out: &mut impl FnMut(Label, State)) {
        let key = &state.keys[usize::from(number)];
        let table = self.tables.get(state.newest());
        let Some(entry) = table.plan(&self.key(number)) else { return };
        let Some(&left) = entry.record.retire.first() else { return };
        let migration = entry.record.migration;
        let rules = self.rules(state.newest(), number);
        let [old, new] = [left, migration.to].map(|layout| self.place(&rules, layout, number));
        let report = Some((left.number(), migration.version));
        if key.retired == report {
            return;
        }
        let mut to = state.clone();
        let after = &mut to.keys[usize::from(number)];
        let goes = old != new || self.setup.without == Rule::RetireByPlace;
        if goes && cell(&key.cells, old) != 0 {
            Change::empties(old).make(&mut after.cells);
            out(Label::OwnerEmpties(number), to);
        } else if cell(&key.cells, new) < 0 {
            Change::empties(new).make(&mut after.cells);
            out(Label::OwnerPurges(number), to);
        } else {
            after.retired = report;
            out(Label::OwnerReportsRetired(number), to);
        }
    }
}
