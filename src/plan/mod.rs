//! Verdicts and acknowledgements become operations on the plan topic.
//!
//! Pure: the same view of the world and the same time give the same decisions.

mod mapper;
mod operation;
mod policy;
mod settings;
mod world;

pub use mapper::{Mapper, MapperKind, ShardHash};
pub use operation::Operation;
pub use policy::Planner;
pub use settings::{BudgetSettings, Mode, PlanSettings, ProtocolSettings};
pub use world::World;

pub use crate::protocol::{Action, Advice};
