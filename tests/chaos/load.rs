//! Which keys are asked for: in each keyspace a few are hot at any time, each for some seconds, then others.

use keyheat::simulate::Random;

/// The three kinds of keyspace, each with keys of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Insert,
    Versioned,
    Update,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Insert, Self::Versioned, Self::Update];

    /// The keyspace's name, which is that of the setting `writes` and of the event's field as well.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Versioned => "versioned",
            Self::Update => "update",
        }
    }

    /// The name of one of its keys.
    pub(crate) fn key(self, number: usize) -> String {
        format!("{}-{number}", self.name())
    }
}

/// Keys of a keyspace.
pub(crate) const KEYS: usize = 100;
/// Requests a second, over all keyspaces.
pub(crate) const PER_S: u64 = 900;
/// Keys of a keyspace that are hot at once: each has about 38 requests a second.
const HOT: usize = 7;
/// So many of ten requests are for a hot key, the others for any: a third of a request a second each.
const TO_HOT_OF_TEN: u64 = 9;
/// How long a key is hot.
const SPELL_MS: (u64, u64) = (14_000, 22_000);

/// Which key is hot when.
pub(crate) struct HotKeys {
    /// Of each place among the hot ones of a keyspace: until when its keys are hot, and which.
    spells: Vec<Vec<(u64, usize)>>,
}

impl HotKeys {
    /// Enough for a time of this length; keys come again only when all have been hot.
    pub(crate) fn new(length_ms: u64, random: &mut Random) -> Self {
        let mut keys: Vec<usize> = (0..KEYS).collect();
        for last in (1..KEYS).rev() {
            keys.swap(last, below(random, last + 1));
        }
        let mut next = keys.iter().copied().cycle();
        let mut spells = vec![Vec::new(); HOT];
        while let Some(shortest) = spells.iter_mut().min_by_key(|spells| end_of(spells))
            && end_of(shortest) < length_ms
        {
            let spell = SPELL_MS.0 + random.below(SPELL_MS.1 - SPELL_MS.0);
            shortest.push((end_of(shortest) + spell, next.next().unwrap_or_default()));
        }
        Self { spells }
    }

    /// The key of the next request.
    pub(crate) fn draw(&self, at_ms: u64, random: &mut Random) -> usize {
        if random.below(10) >= TO_HOT_OF_TEN {
            return below(random, KEYS);
        }
        let spells = &self.spells[below(random, HOT)];
        let spell = spells.iter().find(|(end, _)| at_ms < *end).or(spells.last());
        spell.map_or(0, |(_, key)| *key)
    }
}

fn end_of(spells: &[(u64, usize)]) -> u64 {
    spells.last().map_or(0, |(end, _)| *end)
}

/// A number below `bound`.
pub(crate) fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).unwrap()
}
