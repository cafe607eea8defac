//! What two windows must have in common before their counts may meet.

use siphasher::sip::SipHasher24;

use super::super::settings::{HotOn, KeyspaceSettings};
use super::timeline::{MAX_WINDOWS, Timeline, index};

/// The message whose keyed hash stands for a seed.
const SEED_LABEL: &[u8] = b"keyheat window seed";

/// One window's shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ring {
    /// Length of a pane in milliseconds.
    pub(super) pane_ms: u64,
    /// Panes of the window.
    pub(super) panes: u32,
    /// Panes of its ring, the slack included.
    pub(super) capacity: u32,
}

/// Shape and seed of what is counted. Counts of different identities mean different things cell by cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) hot_on: HotOn,
    /// One or two.
    pub(super) rings: Vec<Ring>,
    pub(super) depth: u8,
    pub(super) width_log2: u8,
    /// Names that a pane lists at most.
    pub(super) listed: u32,
    /// Stands for the seed, which it does not tell.
    pub(super) fingerprint: u64,
}

/// Two windows do not count the same thing in the same way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} differs: {own} here, {other} there; windows meet only when both sides count with the same settings and seed"
)]
pub struct Mismatch {
    /// What differs.
    pub what: &'static str,
    /// Its value on this side.
    pub own: String,
    /// Its value on the other side.
    pub other: String,
}

impl Identity {
    /// The identity of a keyspace's counts.
    pub(super) fn of(settings: &KeyspaceSettings, timeline: &Timeline) -> Self {
        let counting = &settings.counting;
        let rings = (0..timeline.windows().min(MAX_WINDOWS)).map(|window| {
            let axis = timeline.axis(window);
            Ring { pane_ms: axis.pane_ms.unsigned_abs(), panes: narrow(axis.panes), capacity: narrow(axis.capacity) }
        });
        let shape = super::super::sketch::Rows::new(counting.depth, counting.width_log2, counting.seed);
        Self {
            hot_on: settings.hot_on,
            rings: rings.collect(),
            depth: u8::try_from(shape.depth()).unwrap_or(u8::MAX),
            width_log2: u8::try_from(shape.width_log2()).unwrap_or(u8::MAX),
            listed: u32::try_from(counting.listed()).unwrap_or(u32::MAX),
            fingerprint: fingerprint(counting.seed),
        }
    }

    /// Refuses another identity with the first difference.
    pub(super) fn check(&self, other: &Self) -> Result<(), Mismatch> {
        let windows = |identity: &Self| identity.rings.len().to_string();
        differ("the number of windows", &windows(self), &windows(other))?;
        for (window, (own, other)) in self.rings.iter().zip(&other.rings).enumerate() {
            let long = window > 0;
            let name = |short, longer| if long { longer } else { short };
            let pane = |ring: &Ring| format!("{} ms", ring.pane_ms);
            differ(name("the pane", "the longer window's pane"), &pane(own), &pane(other))?;
            let panes = |ring: &Ring| format!("{} panes", ring.panes);
            differ(name("the window", "the longer window"), &panes(own), &panes(other))?;
            let slack = |ring: &Ring| format!("{} panes", ring.capacity.saturating_sub(ring.panes));
            differ(name("the slack", "the longer window's slack"), &slack(own), &slack(other))?;
        }
        differ("the sketch's depth", &self.depth.to_string(), &other.depth.to_string())?;
        let cells = |identity: &Self| 1u64.checked_shl(identity.width_log2.into()).unwrap_or(0).to_string();
        differ("the sketch's width", &cells(self), &cells(other))?;
        differ("the number of names listed a pane", &self.listed.to_string(), &other.listed.to_string())?;
        differ("what is counted (hot_on)", label(self.hot_on), label(other.hot_on))?;
        let seed = |identity: &Self| format!("{:016x}", identity.fingerprint);
        differ("the seed's fingerprint", &seed(self), &seed(other))
    }
}

fn differ(what: &'static str, own: &str, other: &str) -> Result<(), Mismatch> {
    if own == other { Ok(()) } else { Err(Mismatch { what, own: own.to_owned(), other: other.to_owned() }) }
}

const fn label(hot_on: HotOn) -> &'static str {
    match hot_on {
        HotOn::All => "all",
        HotOn::Reads => "reads",
        HotOn::Writes => "writes",
    }
}

/// The seed keys a pseudo-random function of a fixed message. Nothing but trying every seed leads back, which a plain hash of
/// eight bytes, a bijection, would not hold up.
fn fingerprint(seed: u64) -> u64 {
    SipHasher24::new_with_keys(seed, seed.rotate_left(32) ^ 0x6b65_7968_6561_7421).hash(SEED_LABEL)
}

fn narrow(panes: i64) -> u32 {
    u32::try_from(index(panes)).unwrap_or(u32::MAX)
}
