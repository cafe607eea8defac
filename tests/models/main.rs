//! Models of the protocol, explored to a stated depth: every interleaving of publishers, routers, the owner and callers.
//!
//! The models take their steps by the product's own functions; what is theirs is the world around: networks that delay, processes
//! that stand still or die, a store, callers. For each rule there is a model without it, which must break.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop at the first surprise as tests do")]
#![expect(clippy::print_stdout, reason = "what was explored is the result")]

mod explore;
mod fence;
mod fence_holds;
mod migration;
mod migration_holds;
mod migration_needs;
mod pool;
mod reach;
mod records;
