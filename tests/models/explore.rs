//! Every interleaving of a world, by breadth: the first history that breaks a property is a shortest one.
//!
//! The search is stateright's. It tells states apart by 64 bits of their hash: of a million states two are taken for one with a
//! chance of 1 in 37 million.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use stateright::{Checker, Model, Property};

/// Something that can go on in several ways.
pub(crate) trait World: Send + Sync + 'static {
    type State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static;
    /// What happened in a step, for people.
    type Label: Clone + Debug + PartialEq + Send + Sync + 'static;

    /// The kinds of steps that this world is to take, each at least once.
    const KINDS: &'static [&'static str];

    fn start(&self) -> Self::State;

    /// Every way to go on.
    fn steps(&self, state: &Self::State, steps: &mut Vec<Step<Self::Label, Self::State>>);

    /// What is wrong with a state.
    fn fault(&self, state: &Self::State) -> Option<String>;

    /// True where nothing is left to be done.
    fn is_over(&self, _state: &Self::State) -> bool {
        false
    }
}

/// One way to go on.
#[derive(Clone)]
pub(crate) struct Step<L, S> {
    /// Its place in [`World::KINDS`].
    pub(crate) kind: usize,
    pub(crate) label: L,
    pub(crate) to: S,
}

impl<L: Debug, S> Debug for Step<L, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.label.fmt(f)
    }
}

impl<L: PartialEq, S: PartialEq> PartialEq for Step<L, S> {
    fn eq(&self, other: &Self) -> bool {
        self.label == other.label && self.to == other.to
    }
}

/// What was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// Different states.
    pub(crate) states: usize,
    /// The most steps from the start to a state.
    pub(crate) depth: usize,
    /// Kinds of steps that were never taken.
    pub(crate) untaken: Vec<&'static str>,
    /// What broke, and the steps that led to it.
    pub(crate) broken: Option<(String, Vec<String>)>,
}

struct Searched<W> {
    world: Arc<W>,
    taken: Arc<AtomicU64>,
}

impl<W: World> Model for Searched<W> {
    type State = W::State;
    type Action = Step<W::Label, W::State>;

    fn init_states(&self) -> Vec<Self::State> {
        vec![self.world.start()]
    }

    fn actions(&self, state: &Self::State, actions: &mut Vec<Self::Action>) {
        self.world.steps(state, actions);
        let taken = actions.iter().fold(0_u64, |taken, step| taken | 1 << step.kind);
        self.taken.fetch_or(taken, Relaxed);
    }

    fn next_state(&self, _state: &Self::State, action: Self::Action) -> Option<Self::State> {
        Some(action.to)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("nothing is wrong", |searched: &Self, state| searched.world.fault(state).is_none())]
    }
}

/// Looks at every state within reach.
pub(crate) fn explore<W: World>(world: &Arc<W>) -> Found {
    explore_to(world, usize::MAX)
}

/// Looks at every state that is within reach in fewer than `depth` steps.
pub(crate) fn explore_to<W: World>(world: &Arc<W>, depth: usize) -> Found {
    let taken = Arc::new(AtomicU64::new(0));
    let searched = Searched { world: Arc::clone(world), taken: Arc::clone(&taken) };
    let checker = searched.checker().threads(1).target_max_depth(depth).spawn_bfs().join();
    let broken = checker.discovery("nothing is wrong").map(|path| {
        let why = world.fault(path.last_state()).unwrap_or_default();
        (why, path.into_actions().iter().map(|action| format!("{action:?}")).collect())
    });
    let taken = taken.load(Relaxed);
    let untaken = W::KINDS.iter().enumerate().filter(|(kind, _)| taken & 1 << kind == 0).map(|(_, name)| *name);
    Found { states: checker.unique_state_count(), depth: checker.max_depth(), untaken: untaken.collect(), broken }
}
