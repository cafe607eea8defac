//! Commands and questions at the leader's loop: a command is carried out by the planner and answered, a word on a key once it was read
//! back; a question is answered from the tables.

use crate::observe::{Answer, Asked, Command, KeyKnown, Order, Orders};
use crate::plan::{Disobeyed, Planner};
use crate::protocol::{AckTable, PlanTable};
use crate::telemetry::Events;
use crate::units::EventTime;

/// The leader's part in the plan topic, as far as commands depend on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    /// This process leads.
    pub(super) leads: bool,
    /// The plan topic has lost records: nothing is published any more.
    pub(super) contradicted: bool,
}

/// What has become of a command.
enum Carried {
    /// This is its answer.
    Answered(Answer),
    /// The planner knows it by this number and will answer it.
    Waits(u64),
}

/// Takes commands, and keeps those that are not answered yet.
#[derive(Debug)]
pub(super) struct Clerk {
    orders: Orders,
    /// Words on keys, by the planner's number; the planner takes no more than a few at once.
    told: Vec<(u64, Order)>,
    asked: Asked,
}

impl Clerk {
    pub(super) const fn new(orders: Orders, asked: Asked) -> Self {
        Self { orders, told: Vec::new(), asked }
    }

    /// Takes every command that waits and answers what can be answered. True when there is something new to decide on.
    pub(super) fn carry_out(
        &mut self,
        standing: Standing,
        planner: &mut Planner,
        events: &Events,
        now: EventTime,
    ) -> bool {
        let mut any = false;
        while let Some(order) = self.orders.poll() {
            any = true;
            match carried(&order.command, standing, planner, events, now) {
                Carried::Answered(answer) => order.answer(answer),
                Carried::Waits(number) => self.told.push((number, order)),
            }
        }
        for (number, order) in std::mem::take(&mut self.told) {
            match planner.answer(number) {
                None => self.told.push((number, order)),
                Some(Ok(effect)) => {
                    if let Command::Tell(word) = &order.command {
                        events.told(&word.key.keyspace, &word.key.key, effect.label());
                    }
                    order.answer(Answer::Told(effect));
                }
                Some(Err(disobeyed)) => order.answer(Answer::Disobeyed(disobeyed)),
            }
        }
        any
    }

    /// Answers every question that waits.
    pub(super) fn answer(&mut self, standing: Standing, planner: &Planner, table: &PlanTable, acks: &AckTable) {
        while let Some(question) = self.asked.poll() {
            let hindrance = planner.hindrances().get(&question.key).copied().filter(|_| standing.leads);
            let known = KeyKnown { leads: standing.leads, hindrance, ..KeyKnown::of(&question.key, table, acks) };
            question.answer(known);
        }
    }

    /// Another epoch has begun: what was wanted before must not come true when nobody thinks of it any more.
    pub(super) fn forget(&mut self, planner: &mut Planner) {
        planner.forget_words();
        for (_, order) in self.told.drain(..) {
            order.answer(Answer::NotLeading);
        }
    }
}

fn carried(command: &Command, standing: Standing, planner: &mut Planner, events: &Events, now: EventTime) -> Carried {
    let answer = match command {
        _ if !standing.leads => Answer::NotLeading,
        Command::Approve(key) if planner.approve(key) => {
            events.approved(&key.keyspace, &key.key);
            Answer::Done
        }
        Command::Approve(_) => Answer::NothingProposed,
        Command::Freeze(frozen) => {
            planner.set_freeze(*frozen);
            events.frozen(*frozen);
            Answer::Done
        }
        Command::Tell(_) if standing.contradicted => Answer::Disobeyed(Disobeyed::Stopped),
        Command::Tell(word) => match planner.tell(word.clone(), now) {
            Ok(number) => return Carried::Waits(number),
            Err(disobeyed) => Answer::Disobeyed(disobeyed),
        },
    };
    Carried::Answered(answer)
}
