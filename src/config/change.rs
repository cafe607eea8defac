//! What may change while the service runs: rules, and nothing else.

use super::load::Loaded;

/// A setting that cannot change while the service runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} differs{}: only rules change while it runs; restart to change it", more(*.others))]
pub struct NeedsRestart {
    /// The first one that differs, in the order of `check --as-used`.
    pub setting: String,
    /// So many more differ.
    pub others: usize,
}

fn more(others: usize) -> String {
    if others == 0 { String::new() } else { format!(" (and {others} more)") }
}

impl Loaded {
    /// True when `new` has other rules, false when it says the same as this one.
    ///
    /// # Errors
    /// [`NeedsRestart`] when it differs in anything else.
    pub fn has_other_rules(&self, new: &Self) -> Result<bool, NeedsRestart> {
        let (old, now) = (&self.settings, &new.settings);
        let one = |setting: &str| NeedsRestart { setting: setting.to_owned(), others: 0 };
        if old.engine.keyspaces.len() != now.engine.keyspaces.len() {
            return Err(one("the number of keyspaces"));
        }
        let gone = self.as_used.keys().filter(|path| !new.as_used.contains_key(*path));
        let came_or_changed = new.as_used.iter().filter(|(path, value)| self.as_used.get(*path) != Some(value));
        let mut differ: Vec<&String> = gone.chain(came_or_changed.map(|(path, _)| path)).collect();
        differ.sort_unstable();
        let fixed: Vec<&&String> = differ.iter().filter(|path| !is_of_rules(path)).collect();
        if let Some((first, others)) = fixed.split_first() {
            return Err(NeedsRestart { setting: (**first).clone(), others: others.len() });
        }
        // What is secret is not among the values in use.
        if old.kafka != now.kafka {
            return Err(one("kafka.librdkafka"));
        }
        let mut keyspaces = old.engine.keyspaces.iter().zip(&now.engine.keyspaces);
        match keyspaces.find_map(|(old, now)| old.fixed_difference(now)) {
            Some(setting) => Err(one(setting)),
            None => Ok(!differ.is_empty()),
        }
    }
}

/// Keys of a keyspace that say when something is hot, and when no longer.
const OF_RULES: [&str; 7] = ["rate", "median", "share", "floor", "min_keys", "clear", "clear_after"];

fn is_of_rules(path: &str) -> bool {
    let inner = path.strip_prefix("keyspace[").and_then(|path| path.split_once("].")).map(|(_, inner)| inner);
    inner.is_some_and(|inner| {
        OF_RULES.contains(&inner) || inner.starts_with("rules[") || inner.starts_with("shard_rules.")
    })
}
