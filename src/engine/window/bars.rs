//! From which count on no key is missing from a list of candidates.

use super::timeline::MAX_WINDOWS;

/// Counts that a key without exact counters has not reached since a pane, for each window.
///
/// An entry `(pane, bars)` says: since any pane up to this one and after the entry before it, every key with at least so many
/// events is listed. The farther back, the more may be missed, so bars never rise from one entry to the next; only the last
/// pane of equal ones is kept. Before the first event of a pane no key is missing: a bar of 1.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Bars(Vec<(i64, [u64; MAX_WINDOWS])>);

impl Bars {
    /// From the highest bars while each pane was open, the newest last.
    pub(crate) fn of(history: impl DoubleEndedIterator<Item = (i64, [u64; MAX_WINDOWS])>) -> Self {
        let mut entries: Vec<(i64, [u64; MAX_WINDOWS])> = Vec::new();
        for (pane, bars) in history.rev() {
            match entries.last() {
                Some((_, after)) => {
                    let most = most(bars, *after);
                    if most != *after {
                        entries.push((pane, most));
                    }
                }
                None => entries.push((pane, bars)),
            }
        }
        entries.reverse();
        Self(entries)
    }

    /// The entries, the newest last.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (i64, [u64; MAX_WINDOWS])> + '_ {
        self.0.iter().copied()
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Every key with at least so many events since pane `oldest` is listed.
    pub(crate) fn since(&self, oldest: i64) -> [u64; MAX_WINDOWS] {
        self.0.iter().find(|entry| entry.0 >= oldest).map_or([1; MAX_WINDOWS], |entry| entry.1)
    }

    /// What holds for the sum of two: a key that both miss has at most what each of them may miss.
    pub(super) fn with(&self, other: &Self) -> Self {
        let mut panes: Vec<i64> = self.iter().chain(other.iter()).map(|entry| entry.0).collect();
        panes.sort_unstable();
        panes.dedup();
        let sum = |pane: i64| {
            let (mut own, more) = (self.since(pane), other.since(pane));
            own.iter_mut().zip(more).for_each(|(bar, more)| *bar = bar.saturating_add(more - 1));
            (pane, own)
        };
        Self::of(panes.into_iter().map(sum))
    }

    /// A key with these upper bounds in pane `head` and before is no longer listed.
    pub(super) fn raise(&mut self, head: i64, uppers: [u64; MAX_WINDOWS]) {
        let bars = uppers.map(|upper| upper.saturating_add(1));
        *self = Self::of(self.0.drain(..).chain([(head, bars)]).collect::<Vec<_>>().into_iter());
    }

    /// Forgets what was before pane `oldest`.
    pub(super) fn forget_before(&mut self, oldest: i64) {
        self.0.retain(|entry| entry.0 >= oldest);
    }
}

fn most(mut bars: [u64; MAX_WINDOWS], other: [u64; MAX_WINDOWS]) -> [u64; MAX_WINDOWS] {
    bars.iter_mut().zip(other).for_each(|(bar, other)| *bar = (*bar).max(other));
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_bars_misses_what_each_may_miss() {
        let own = Bars::of([(1, [9, 9]), (2, [4, 7]), (3, [4, 7]), (4, [2, 2])].into_iter());
        assert_eq!(own.iter().collect::<Vec<_>>(), [(1, [9, 9]), (3, [4, 7]), (4, [2, 2])]);
        let other = Bars::of([(3, [5, 5]), (5, [3, 3])].into_iter());
        let sum = own.with(&other);
        assert_eq!(sum, other.with(&own));
        assert_eq!((sum.since(0), sum.since(2), sum.since(4), sum.since(5)), ([13, 13], [8, 11], [4, 4], [3, 3]));
        assert_eq!(sum.since(6), [1, 1]);
        let mut raised = sum;
        raised.raise(6, [9, 0]);
        assert_eq!((raised.since(1), raised.since(5), raised.since(6)), ([13, 13], [10, 3], [10, 1]));
    }
}
