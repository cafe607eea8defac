//! Waiting without a runtime: for threads that write.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::router::Held;
use crate::units::Span;

#[derive(Default)]
struct Signal {
    given: Mutex<bool>,
    changed: Condvar,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

impl Held {
    /// Blocks this thread until a newer version of the key's plan is in force, at most for `limit`. True when it is worth asking
    /// again; false when the write should fail.
    pub fn wait(self, limit: Span) -> bool {
        let signal = Arc::new(Signal::default());
        let waker = Waker::from(Arc::clone(&signal));
        let mut held = pin!(self);
        if held.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(()) {
            return true;
        }
        let given = signal.given.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = signal.changed.wait_timeout_while(given, limit.to_duration(), |given| !*given);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
