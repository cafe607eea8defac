//! Planning over a whole pure world: planner, plan topic, routers and owner, with time that a test sets.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop at the first surprise as tests do")]

mod advice;
mod budget;
mod closed_loop;
mod flapping;
mod holds;
mod load;
mod outcome;
mod pins;
mod placing;
mod random;
mod sim;
mod streams;
mod walks;
mod withdraw;
