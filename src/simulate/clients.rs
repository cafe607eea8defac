//! The simulated clients: their keys, and what each has written.

use std::collections::HashMap;

use super::load::LoadSettings;
use super::truth::Truth;

/// The clients' names, which are the keys of the keyspace.
#[derive(Debug, Clone)]
pub struct Clients {
    keys: Vec<Box<[u8]>>,
    numbers: HashMap<String, usize>,
}

impl Clients {
    /// The clients of a load: `c1`, `c2`, ... and the hot ones.
    #[must_use]
    pub fn of(load: &LoadSettings) -> Self {
        let mut clients = Self { keys: Vec::new(), numbers: HashMap::new() };
        let names = (1..=load.keys).map(|number| format!("c{number}"));
        for name in names.chain(load.hot.iter().map(|spell| spell.key.clone())) {
            if !clients.numbers.contains_key(&name) {
                clients.keys.push(name.as_bytes().into());
                clients.numbers.insert(name, clients.keys.len() - 1);
            }
        }
        clients
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// The client's key.
    #[must_use]
    pub fn key(&self, client: usize) -> &[u8] {
        &self.keys[client]
    }

    /// The number of the client with this name.
    #[must_use]
    pub fn number_of(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }
}

/// One record of a client, as the client knows it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Record {
    pub(super) truth: Truth,
    /// A write of it is in flight, or waits.
    pub(super) busy: bool,
}

/// The id of a client's record with this number.
pub(super) fn id_of(number: usize) -> Vec<u8> {
    format!("o{number}").into_bytes()
}

/// The number of a record by its id; none for an id that no client gives.
pub(super) fn number_of(id: &[u8]) -> Option<usize> {
    std::str::from_utf8(id.strip_prefix(b"o")?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back() {
        for number in [0, 7, 12_345] {
            assert_eq!(number_of(&id_of(number)), Some(number));
        }
        for id in [b"".as_slice(), b"o", b"7", b"ox", b"o\xff"] {
            assert_eq!(number_of(id), None);
        }
    }
}
