//! Verdicts and acknowledgements become operations on the plan topic.
//!
//! Pure: the same view of the world and the same time give the same decisions.

mod advising;
mod beginning;
mod evidence;
mod hindrance;
mod mapper;
mod memory;
pub mod migration;
mod operation;
mod outcome;
mod pins;
mod placement;
mod policy;
mod running;
mod settings;
mod sizing;
mod view;
mod words;
mod world;

pub use hindrance::Hindrance;
pub use mapper::{
    BELIEVED_AGAIN, DatePlace, InvalidMapper, LEAST_CHECKED, MAGLEV_TABLE, MAX_MAGLEV_TABLE, MAX_MISMATCH, MAX_RANGES,
    MAX_RING_POINTS, MAX_SHARDS, MAX_TABLE_KEYS, Mapper, MapperCheck, MapperKind, MapperTrust, Planned, RingPoints,
    SLOTS, SeededHash, Settled, ShardHash, SlotRange, first_twice,
};
pub use operation::Operation;
pub use placement::{Place, Placement, SEARCHED, bucket_key, predict, search};
pub use policy::Planner;
pub use settings::{BudgetSettings, Merge, Mode, PlanSettings, ProtocolSettings};
pub use sizing::{Cause, Load, Size, Sizing, size};
pub use words::{Disobeyed, Effect, Wish, Word};
pub use world::World;

pub use crate::protocol::{Action, Advice};
