//! Routers and their callers: apply, acknowledge, die, come back, join; place calls and make them.

use keyheat::router::{GuardKind, Left, WriteRule};

use super::spec::Open;
use super::state::{Ack, Label, Late, Router, Stage, State};
use super::store::{Access, Flight, Then};
use super::{Migration, Rule};

impl Migration {
    pub(super) fn router_steps(&self, state: &State, which: u8, out: &mut impl FnMut(Label, State)) {
        let router = state.routers[usize::from(which)];
        let with = |change: &dyn Fn(&mut Router)| {
            let mut to = state.clone();
            change(&mut to.routers[usize::from(which)]);
            to
        };
        match router.stage {
            Stage::Out => {
                let mut to = with(&|router| router.stage = Stage::Joining);
                to.acks[usize::from(which)] = Some(Ack { applied: 0, waiting: 0 });
                out(Label::AppendsJoin(which), to);
            }
            Stage::Joining => {
                let end = state.end();
                let kept = if self.keeps_first() { end } else { 0 };
                let to = with(&|router| (router.stage, router.at, router.kept) = (Stage::Serving, end, kept));
                out(Label::ReadsToTheEndServes(which), to);
                if self.setup.without == Rule::ServeAfterJoin {
                    self.call_steps(state, which, out);
                }
            }
            Stage::Serving => {
                if router.at < state.end() {
                    out(Label::Applies(which), with(&|router| router.at += 1));
                }
                if let Some(ack) = self.acknowledges(state, which) {
                    let kept = if self.keeps_first() { router.at } else { router.kept };
                    let mut to = with(&|router| router.kept = kept);
                    to.acks[usize::from(which)] = Some(ack);
                    out(Label::Acknowledges(which), to);
                }
                self.call_steps(state, which, out);
                if state.may.crashes > 0 {
                    self.crash_steps(state, which, out);
                }
            }
            // It never comes back, and nobody drops it.
            Stage::Down if self.setup.without == Rule::DeadEnd => {}
            Stage::Down => {
                for at in router.kept..=router.at {
                    let to = with(&|router| (router.stage, router.at) = (Stage::Serving, at));
                    out(Label::RestartsAt(which, at), to);
                }
                // The operator drops the old name once its calls are over.
                if state.may.lost_snapshots > 0 && state.late.iter().all(|late| late.router != which) {
                    let mut to = with(&|router| (router.stage, router.at, router.kept) = (Stage::Joining, 0, 0));
                    to.may.lost_snapshots -= 1;
                    to.acks[usize::from(which)] = Some(Ack { applied: 0, waiting: 0 });
                    out(Label::SnapshotLostJoins(which), to);
                }
            }
        }
    }

    /// What a router serves and acknowledges by is in its snapshot before.
    fn keeps_first(&self) -> bool {
        self.setup.without != Rule::SnapshotFirst
    }

    /// What a router may acknowledge, when that is news.
    fn acknowledges(&self, state: &State, which: u8) -> Option<Ack> {
        let router = state.routers[usize::from(which)];
        let mut late = state.late.iter().filter(|late| late.router == which);
        let guarded = !matches!(self.setup.without, Rule::Guards);
        // After a start nothing is acknowledged for as long as a call of the former life may be in flight.
        if late.clone().any(|late| late.of_former_life) && self.setup.without != Rule::UnknownGuards {
            return None;
        }
        let mut waiting = 0;
        let mut waits = |key: u8, under: u8, left: Left| {
            let current = self.rules(state.log[usize::from(router.at)], key);
            let older = self.rules(state.log[usize::from(under)], key);
            if guarded && current.waits_for(&older, left) {
                waiting |= 1 << key;
            }
        };
        if let Some(flight) = router.flight {
            let kind = flight.call.guard();
            let left = Left { reads: kind != GuardKind::Write, writes: kind != GuardKind::Read, ..Left::default() };
            waits(flight.key, flight.under, left);
        }
        if self.setup.without != Rule::UnknownGuards {
            late.by_ref().for_each(|late| {
                let unknown_reads = late.call.guard() == GuardKind::InPlace;
                waits(late.key, late.under, Left { unknown_reads, unknown_writes: true, ..Left::default() });
            });
        }
        let ack = Ack { applied: router.at, waiting };
        (state.acks[usize::from(which)] != Some(ack)).then_some(ack)
    }

    fn call_steps(&self, state: &State, which: u8, out: &mut impl FnMut(Label, State)) {
        let router = state.routers[usize::from(which)];
        if let Some(flight) = router.flight {
            self.flight_steps(state, which, flight, out);
            return;
        }
        for (kind, &(call, _)) in self.setup.calls.iter().enumerate().filter(|(kind, _)| state.left[*kind] > 0) {
            for key in 0..self.setup.keys {
                let rules = self.rules(state.log[usize::from(router.at)], key);
                let placed =
                    call.guard() == GuardKind::Read || matches!(rules.write_rule(call.guard()), WriteRule::Goes(_));
                if placed {
                    let mut to = state.clone();
                    to.left[kind] -= 1;
                    to.next += 1;
                    let flight = Flight::new(state.next, call, key, router.at);
                    to.routers[usize::from(which)].flight = Some(flight);
                    let open = Open { number: state.next, call, value: Self::value_of(state.next) };
                    let spec = &mut to.keys[usize::from(key)].spec;
                    *spec = self.spec_begun(*spec, open);
                    out(Label::Begins(which, call, key), to);
                }
            }
        }
    }

    fn flight_steps(&self, state: &State, which: u8, flight: Flight, out: &mut impl FnMut(Label, State)) {
        let Flight { number, call, key, under, .. } = flight;
        let Access { change, then } = self.next_access(state, flight);
        let mut to = state.clone();
        let after = &mut to.keys[usize::from(key)];
        let answer = change.map_or(0, |change| change.make(&mut after.cells));
        match then {
            Then::Goes(flight) => {
                to.routers[usize::from(which)].flight = Some(flight);
                out(Label::Accesses(which, call), to);
            }
            Then::Answers(found) => {
                let answer = if change.is_some() { answer } else { found };
                match self.spec_answered(after.spec, number, answer) {
                    Some(spec) => after.spec = spec,
                    None => to.fault = Some("a call answers what cannot be"),
                }
                to.routers[usize::from(which)].flight = None;
                out(Label::Answers(which, call, answer), to);
            }
        }
        if let (Some(change), true) = (change, state.may.unknown > 0) {
            let mut to = state.clone();
            to.may.unknown -= 1;
            to.routers[usize::from(which)].flight = None;
            to.late.push(Late { router: which, of_former_life: false, call, key, under, change });
            to.late.sort_unstable();
            out(Label::GivesUp(which, call), to);
        }
    }

    fn next_access(&self, state: &State, flight: Flight) -> Access {
        let rules = self.rules(state.log[usize::from(flight.under)], flight.key);
        self.access(flight, &rules, &state.keys[usize::from(flight.key)].cells)
    }

    fn crash_steps(&self, state: &State, which: u8, out: &mut impl FnMut(Label, State)) {
        let mut to = state.clone();
        to.may.crashes -= 1;
        for late in to.late.iter_mut().filter(|late| late.router == which) {
            late.of_former_life = true;
        }
        to.late.sort_unstable();
        let router = &mut to.routers[usize::from(which)];
        router.stage = Stage::Down;
        let flight = router.flight.take();
        out(Label::Crashes(which), to.clone());
        let Some(flight) = flight else { return };
        if let Some(change) = self.next_access(state, flight).change {
            let Flight { call, key, under, .. } = flight;
            to.late.push(Late { router: which, of_former_life: true, call, key, under, change });
            to.late.sort_unstable();
            out(Label::CrashesWithCall(which, call), to);
        }
    }

    /// Calls of unknown outcome land, or are lost.
    pub(super) fn late_steps(&self, state: &State, out: &mut impl FnMut(Label, State)) {
        for (at, &Late { router, call, key, change, .. }) in state.late.iter().enumerate() {
            let mut to = state.clone();
            to.late.remove(at);
            out(Label::LateCallIsLost(router, call), to.clone());
            change.make(&mut to.keys[usize::from(key)].cells);
            out(Label::LateCallLands(router, call), to);
        }
    }
}
