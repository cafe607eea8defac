//! The simulated shards together: which of them has a key of the store, and the stores.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::store::Store;
use crate::plan::Mapper;

/// Stores behind a mapper, shared by clients and owner.
#[derive(Debug)]
pub struct Shards {
    mapper: Mapper,
    stores: Vec<Mutex<Store>>,
}

impl Shards {
    /// Empty shards, one for each name of the mapper.
    #[must_use]
    pub fn new(mapper: Mapper) -> Self {
        let stores = (0..mapper.shards().len()).map(|_| Mutex::default()).collect();
        Self { mapper, stores }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.stores.len()
    }

    /// Their names, in the order of their numbers.
    #[must_use]
    pub fn names(&self) -> &[String] {
        self.mapper.shards()
    }

    /// The number of the shard that has this key of the store.
    #[must_use]
    pub fn number_of(&self, key: &[u8]) -> usize {
        self.mapper.shard_of(key)
    }

    /// The store that has this key. One operation at a time: a store call is atomic, several are not.
    pub fn store_of(&self, key: &[u8]) -> MutexGuard<'_, Store> {
        self.stores[self.number_of(key)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
