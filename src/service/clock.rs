//! The only file that asks the time.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::units::{EventTime, Span};

/// The system's clocks.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: Instant,
}

impl Clock {
    /// The clocks, with the monotonic one counted from now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    pub fn system() -> Self {
        Self { started: Instant::now() }
    }

    /// The wall clock. Before 1970 or after 9999 it is the nearest time that exists.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    pub fn now(&self) -> EventTime {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
        EventTime::from_millis(millis).unwrap_or(if millis < 1 { EventTime::MIN } else { EventTime::MAX })
    }

    /// The monotonic clock: time since the start of the process's service. It never goes back.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    pub fn elapsed(&self) -> Span {
        Span::from_millis(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// The monotonic clock in nanoseconds, for durations of ticks and batches.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    pub fn elapsed_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
