//! Replays of real recordings against numbers that were computed by brute force.
//!
//! The recordings are not part of the project: they are looked for in the folder that `KEYHEAT_DATA` names, else in
//! `../shared/data`. Where they are missing each test says so and passes as skipped.

mod recording;
mod verdicts;
