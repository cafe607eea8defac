//! The repository agrees with itself: what is pure stays pure, folders look one way only, and every name, link and path that one
//! file says of another is true.
#![cfg(test)]

mod dependencies;
mod direction;
mod folders;
mod metrics;
mod purity;
mod scan;
mod texts;
mod tree;
