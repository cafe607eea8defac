//! Replays of real recordings, and of a small one in `fixtures/golden`, against decisions and numbers computed by brute force.
//!
//! The recordings are not part of the project: they are looked for in the folder that `KEYHEAT_DATA` names, else in
//! `../shared/data`. Where they are missing each test says so and passes as skipped.

mod behind;
mod decisions;
mod recording;
mod verdicts;
