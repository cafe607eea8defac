//! The clock, the only loop, readiness, start and stop.
