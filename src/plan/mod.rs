//! Verdicts and acknowledgements become operations on the plan topic.
//!
//! Pure: the same view of the world and the same time give the same decisions.

mod mapper;
mod operation;
mod settings;

pub use mapper::{Mapper, MapperKind, ShardHash};
pub use operation::{Action, Advice, Operation};
pub use settings::{BudgetSettings, Mode, PlanSettings, ProtocolSettings};
