//! A table of keys, each with its shard, and a shard for all others.

use super::{InvalidMapper, MAX_TABLE_KEYS};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    /// In ascending order.
    keys: Vec<(Vec<u8>, usize)>,
    otherwise: usize,
}

impl Table {
    pub(super) fn new(mut keys: Vec<(Vec<u8>, usize)>, otherwise: usize) -> Result<Self, InvalidMapper> {
        let fault = |rule, remedy| Err(InvalidMapper { setting: "keys", rule, remedy });
        if keys.is_empty() || keys.len() > MAX_TABLE_KEYS {
            return fault(format!("should be 1 to {MAX_TABLE_KEYS} keys"), "all others are on the shard of otherwise");
        }
        keys.sort_unstable();
        if let Some(pair) = keys.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let rule = format!("should have no key twice, and has '{}'", pair[0].0.escape_ascii());
            return fault(rule, "leave one out");
        }
        Ok(Self { keys, otherwise })
    }

    pub(super) fn shard_of(&self, key: &[u8]) -> usize {
        let found = self.keys.binary_search_by(|(listed, _)| listed.as_slice().cmp(key));
        found.ok().and_then(|index| self.keys.get(index)).map_or(self.otherwise, |(_, shard)| *shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_keys_have_their_shard_and_all_others_the_other() {
        let keys = [("globex", 2), ("acme", 1), ("acme:17", 0)].map(|(key, shard)| (key.as_bytes().to_vec(), shard));
        let table = Table::new(keys.to_vec(), 3).unwrap();
        for (key, shard) in [("acme", 1), ("globex", 2), ("acme:17", 0), ("acme:1", 3), ("acm", 3), ("", 3), ("zz", 3)]
        {
            assert_eq!(table.shard_of(key.as_bytes()), shard, "{key}");
        }
    }

    #[test]
    fn tables_that_cannot_be_are_refused() {
        assert!(Table::new(Vec::new(), 0).unwrap_err().rule.contains("1 to 10000 keys"));
        let twice = vec![(b"a".to_vec(), 0), (b"b".to_vec(), 0), (b"a".to_vec(), 1)];
        assert!(Table::new(twice, 0).unwrap_err().rule.contains("has 'a'"));
    }
}
