//! One accepted version of one key's plan, with the guards that were taken under it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::task::Waker;

use super::rules::Rules;
use super::stripe::{Counts, Kind, Left, Unknown};
use crate::protocol::{RefusedRecord, Version};

/// What a key's node says.
#[derive(Debug)]
pub(super) enum Content {
    /// An accepted record.
    Rules(Rules),
    /// The first record of the key could not be understood: nobody knows where its requests go.
    Refused(RefusedRecord),
}

/// One version of one key.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) keyspace: Box<str>,
    pub(super) key: Box<[u8]>,
    pub(super) version: Version,
    pub(super) content: Content,
    counts: Counts,
    unknown: Unknown,
    waiters: Waiters,
}

impl Node {
    pub(super) fn new(keyspace: &str, key: &[u8], version: Version, content: Content) -> Self {
        Self {
            keyspace: keyspace.into(),
            key: key.into(),
            version,
            content,
            counts: Counts::default(),
            unknown: Unknown::default(),
            waiters: Waiters::default(),
        }
    }

    pub(super) fn is_of(&self, keyspace: &str, key: &[u8]) -> bool {
        *self.key == *key && *self.keyspace == *keyspace
    }

    pub(super) fn enter(&self, kind: Kind) {
        self.counts.add(kind);
    }

    pub(super) fn leave(&self, kind: Kind) {
        self.counts.take(kind);
    }

    pub(super) fn note_unknown(&self, kind: Kind, until_ms: i64) {
        self.unknown.note(kind, until_ms);
    }

    pub(super) fn left(&self, now_ms: i64) -> Left {
        self.counts.left(&self.unknown, now_ms)
    }

    pub(super) fn unknown_until_ms(&self) -> i64 {
        self.unknown.latest_ms()
    }

    pub(super) fn waiters(&self) -> &Waiters {
        &self.waiters
    }
}

/// The writes that wait for the next version of a key.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    over: AtomicBool,
    wakers: Mutex<HashMap<u64, Waker>>,
}

impl Waiters {
    /// True when a newer version took this one's place.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(SeqCst)
    }

    /// Remembers whom to wake under the caller's `ticket`; false when the wait is over already.
    pub(super) fn wait(&self, ticket: u64, waker: &Waker) -> bool {
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        // Asked under the lock, under which `end` takes the list: a waker is either taken by it or not put in.
        if self.is_over() {
            return false;
        }
        wakers.insert(ticket, waker.clone());
        true
    }

    /// Forgets a waiter that gave up.
    pub(super) fn forget(&self, ticket: u64) {
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        wakers.remove(&ticket);
    }

    /// Wakes everyone.
    pub(super) fn end(&self) {
        let wakers = {
            let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
            self.over.store(true, SeqCst);
            std::mem::take(&mut *wakers)
        };
        for waker in wakers.into_values() {
            waker.wake();
        }
    }
}
