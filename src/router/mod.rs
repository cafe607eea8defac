//! The table that a router asks where a request goes, fed from the plan topic; reading it never blocks.
//!
//! # How a router uses it
//!
//! ```
//! use keyheat::router::{Table, TableSettings, Write};
//!
//! let table = Table::new(TableSettings::default());
//! match table.write("customer", b"c42", b"order-1") {
//!     Ok(Write::Placed(placement)) => {
//!         let _store_key = &placement.place().key; // the store call goes here, while `placement` lives
//!     }
//!     Ok(Write::Held(_held)) => {} // await it with a limit, then ask again
//!     Err(_refused) => {}          // this key's last record could not be understood: fail the request
//! }
//! ```
//!
//! A placement is a **guard**: it is counted until it is dropped, and a version of a plan is acknowledged only when no guard
//! is left that this version would place elsewhere. So keep a placement as long as its store call runs and no longer, and give
//! a call whose outcome is unknown back by [`Placement::outcome_unknown`].
//!
//! The folder is pure without the feature `kafka`: time is an argument, nothing waits, nothing is read or written.

mod bucket;
mod changes;
mod gather;
mod guard;
mod ledger;
#[cfg(feature = "kafka")]
mod live;
mod node;
mod placement;
mod rules;
#[cfg(feature = "kafka")]
mod sender;
mod stripe;
mod table;
#[cfg(feature = "kafka")]
mod topic;

pub use bucket::{BucketKey, InvalidBucketKey};
pub use changes::ApplyError;
pub use gather::{Cursor, Fetch, Gather, GatherError, GatherSettings, LookUp, Page, Row, Step};
pub use ledger::{AckState, RefusedPlan, Waiting};
#[cfg(feature = "kafka")]
pub use live::{
    ACKS_TOPIC, Departure, PLAN_TOPIC, Router, RouterError, RouterSettings, RouterStatus, SnapshotError, Stage,
};
pub use placement::{
    DeletePlacement, Held, NoPlan, Place, Placement, ReadPlacement, ReadRule, Refused, ScanPlace, ScanPlacement, Write,
};
pub use rules::{Rules, WriteRule};
#[cfg(feature = "kafka")]
pub(crate) use sender::{Reported, Sender};
pub use stripe::{Kind as GuardKind, Left};
pub use table::{Table, TableSettings};
#[cfg(feature = "kafka")]
pub use topic::{FollowError, TopicFollower};
