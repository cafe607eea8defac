//! What the search does not ask: whether an end can be reached from everywhere.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::explore::World;

/// A state from which no way leads to an end, as the steps to the nearest such state; none when there is always a way.
pub(crate) fn stuck<W: World>(world: &Arc<W>) -> Option<Vec<String>> {
    let hash = |state: &W::State| {
        let mut hasher = DefaultHasher::new();
        state.hash(&mut hasher);
        hasher.finish()
    };
    let start = world.start();
    let mut numbers = HashMap::from([(hash(&start), 0)]);
    // For each state the one that it was first reached from and by which of its steps, and all that lead to it.
    let (mut first, mut before) = (vec![(0, 0)], vec![Vec::new()]);
    let (mut ends, mut queue, mut steps) = (Vec::new(), VecDeque::from([(0, start.clone())]), Vec::new());
    while let Some((number, state)) = queue.pop_front() {
        if world.is_over(&state) {
            ends.push(number);
        }
        steps.clear();
        world.steps(&state, &mut steps);
        for (taken, step) in steps.drain(..).enumerate() {
            let to = *numbers.entry(hash(&step.to)).or_insert_with(|| {
                before.push(Vec::new());
                first.push((number, taken));
                queue.push_back((first.len() - 1, step.to));
                first.len() - 1
            });
            before[to].push(number);
        }
    }
    let mut ends_well = vec![false; first.len()];
    while let Some(number) = ends.pop() {
        if !std::mem::replace(&mut ends_well[number], true) {
            ends.extend(&before[number]);
        }
    }
    let mut at = ends_well.iter().position(|well| !well)?;
    let mut taken = Vec::new();
    while at != 0 {
        taken.push(first[at].1);
        at = first[at].0;
    }
    Some(replayed(world, start, taken))
}

/// The labels of a walk whose choices are given, the last one first.
fn replayed<W: World>(world: &Arc<W>, start: W::State, mut taken: Vec<usize>) -> Vec<String> {
    let (mut state, mut labels) = (start, Vec::new());
    while let Some(choice) = taken.pop() {
        let mut steps = Vec::new();
        world.steps(&state, &mut steps);
        let step = steps.swap_remove(choice);
        labels.push(format!("{:?}", step.label));
        state = step.to;
    }
    labels
}
