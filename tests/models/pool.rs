//! Values kept once, each with a number that stands for it in states: what is compared and hashed a million times is a number.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};

/// Values, each kept once, found by what tells them apart.
pub(crate) struct Pool<K, V> {
    kept: RwLock<Kept<K, V>>,
}

struct Kept<K, V> {
    numbers: HashMap<K, u32>,
    values: Vec<Arc<V>>,
}

impl<K: Hash + Eq, V> Pool<K, V> {
    pub(crate) fn new() -> Self {
        Self { kept: RwLock::new(Kept { numbers: HashMap::new(), values: Vec::new() }) }
    }

    /// The number of a value.
    pub(crate) fn put(&self, key: K, value: V) -> u32 {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let next = u32::try_from(kept.values.len()).unwrap();
        match kept.numbers.get(&key) {
            Some(number) => *number,
            None => {
                kept.numbers.insert(key, next);
                kept.values.push(Arc::new(value));
                next
            }
        }
    }

    /// The value with this number.
    pub(crate) fn get(&self, number: u32) -> Arc<V> {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&kept.values[number as usize])
    }
}

/// What a function of small arguments has given before. The function is called once for each argument.
pub(crate) struct Memo<K, V>(RwLock<HashMap<K, V>>);

impl<K: Hash + Eq, V: Clone> Memo<K, V> {
    pub(crate) fn new() -> Self {
        Self(RwLock::new(HashMap::new()))
    }

    pub(crate) fn get(&self, key: K, work_out: impl FnOnce() -> V) -> V {
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return known.clone();
        }
        let value = work_out();
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(key, value.clone());
        value
    }
}
