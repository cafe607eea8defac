//! Waiting for a condition instead of for a time.

use std::thread;
use std::time::{Duration, Instant};

const BETWEEN_POLLS: Duration = Duration::from_millis(20);

/// Asks `condition` again and again until it gives a value, and gives that.
///
/// # Panics
/// When it gave none within `limit`; the message names `what` was waited for.
pub(crate) fn poll_until<T>(what: &str, limit: Duration, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = now() + limit;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(now() < deadline, "waited {limit:?} in vain for {what}");
        thread::sleep(BETWEEN_POLLS);
    }
}

/// The clock of the tests: for deadlines only, never for what is asserted.
#[expect(clippy::disallowed_methods, reason = "a test that waits for a server needs a deadline")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
