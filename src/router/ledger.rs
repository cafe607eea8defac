//! What has been applied, and which keys still have guards of older versions: the source of acknowledgements.
//!
//! Only those who apply records and those who ask for the acknowledgement come here, under one lock; requests never do.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::node::{Content, Node};
use super::rules::Rules;
use super::stripe::{Left, Stripe};
use crate::protocol::{Digest, PlanKey, RefusedRecord, Version};

/// What a router may acknowledge now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AckState {
    /// Version of the last record that was applied or refused.
    pub applied: Version,
    /// Digest of the folded plan topic at that version.
    pub digest: Digest,
    /// Keys with a guard that their last record would place elsewhere: not yet acknowledged.
    pub waiting: Vec<Waiting>,
    /// Keys whose last record was refused: not acknowledged at all.
    pub refused: Vec<RefusedPlan>,
}

/// A key that is not yet acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiting {
    /// The key.
    pub key: PlanKey,
    /// The version that waits for older guards to end.
    pub version: Version,
}

/// A record that the router could not obey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedPlan {
    /// The key.
    pub key: PlanKey,
    /// The version that was refused.
    pub version: Version,
    /// Why.
    pub reason: RefusedRecord,
}

/// Guards that may be left of what a key was before its last record.
enum Older {
    /// Under an earlier version.
    Node(Arc<Node>),
    /// Before the key had a plan: in its stripe, in generations up to `through`.
    Stripe { stripe: usize, through: u64 },
}

impl Older {
    fn node(&self) -> Option<&Node> {
        match self {
            Self::Node(node) => Some(node),
            Self::Stripe { .. } => None,
        }
    }
}

#[derive(Default)]
struct Account {
    /// None: the key has no plan any more.
    current: Option<Arc<Node>>,
    version: Version,
    older: Vec<Older>,
    refusal: Option<(Version, RefusedRecord)>,
}

/// The account of every key, and how far the plan topic has been applied.
#[derive(Default)]
pub(super) struct Ledger {
    accounts: HashMap<PlanKey, Account>,
    /// Keys with something in `older`.
    draining: BTreeSet<PlanKey>,
    /// Keys with a refusal.
    refused: BTreeSet<PlanKey>,
    plans: usize,
    /// How many keys set each bit of each stripe's filter.
    bits: HashMap<(usize, u64), u32>,
    pub(super) applied: Version,
    pub(super) digest: Digest,
}

impl Ledger {
    /// Number of keys with a plan.
    pub(super) const fn plans(&self) -> usize {
        self.plans
    }

    /// The version in force for a key.
    pub(super) fn current(&self, key: &PlanKey) -> Option<&Arc<Node>> {
        self.accounts.get(key).and_then(|account| account.current.as_ref())
    }

    /// The newest version that was seen of a key.
    pub(super) fn version_of(&self, key: &PlanKey) -> Option<Version> {
        self.accounts.get(key).map(|account| account.version)
    }

    /// The keys with a plan, and its version.
    pub(super) fn versions(&self) -> Vec<(PlanKey, Version)> {
        let planned =
            |(key, account): (&PlanKey, &Account)| account.current.as_ref().map(|_| (key.clone(), account.version));
        self.accounts.iter().filter_map(planned).collect()
    }

    /// The filter of each stripe that has plans.
    pub(super) fn filters(&self) -> HashMap<usize, u64> {
        let mut filters = HashMap::new();
        for (stripe, bit) in self.bits.keys() {
            *filters.entry(*stripe).or_insert(0) |= bit;
        }
        filters
    }

    /// True when no guard of any version is left, apart from those of keys without a plan.
    pub(super) fn is_idle(&self, now_ms: i64) -> bool {
        let older_idle = |older: &Older| match older {
            Older::Node(node) => node.left(now_ms).nothing(),
            Older::Stripe { .. } => true,
        };
        self.accounts.values().all(|account| {
            account.current.as_ref().is_none_or(|node| node.left(now_ms).nothing())
                && account.older.iter().all(older_idle)
        })
    }

    /// Until when a call of unknown outcome may be in flight, apart from those of keys without a plan; 0: there was none.
    pub(super) fn unknown_until_ms(&self) -> i64 {
        let older_nodes =
            |account: &Account| account.older.iter().filter_map(Older::node).map(Node::unknown_until_ms).max();
        let nodes =
            |account: &Account| account.current.as_deref().map(Node::unknown_until_ms).max(older_nodes(account));
        self.accounts.values().filter_map(nodes).max().unwrap_or(0)
    }

    /// Wakes every write that waits.
    pub(super) fn wake_all(&self) {
        for node in self.accounts.values().filter_map(|account| account.current.as_ref()) {
            node.waiters().end();
        }
    }

    /// A version took the place of no plan. The stripe's `through` is its generation after the node became visible.
    pub(super) fn planned(&mut self, key: &PlanKey, node: Arc<Node>, (stripe, bit): (usize, u64), through: u64) {
        self.plans += 1;
        *self.bits.entry((stripe, bit)).or_insert(0) += 1;
        let version = node.version;
        self.turn(key, Some(node), version, Older::Stripe { stripe, through });
    }

    /// A version took the place of an earlier one.
    pub(super) fn replaced(&mut self, key: &PlanKey, old: Arc<Node>, new: Arc<Node>) {
        let version = new.version;
        self.turn(key, Some(new), version, Older::Node(old));
    }

    /// The key has no plan any more. True when no other key has this bit in its stripe.
    pub(super) fn removed(&mut self, key: &PlanKey, old: Arc<Node>, bit: (usize, u64), version: Version) -> bool {
        self.plans -= 1;
        self.turn(key, None, version, Older::Node(old));
        let keys = self.bits.entry(bit).or_insert(1);
        *keys -= 1;
        let last = *keys == 0;
        if last {
            self.bits.remove(&bit);
        }
        last
    }

    fn turn(&mut self, key: &PlanKey, current: Option<Arc<Node>>, version: Version, older: Older) {
        let account = self.accounts.entry(key.clone()).or_default();
        account.current = current;
        account.version = version;
        account.older.push(older);
        account.refusal = None;
        self.draining.insert(key.clone());
        self.refused.remove(key);
    }

    /// The key's newest record was not understood; what is in force stays so.
    pub(super) fn refuse(&mut self, key: &PlanKey, version: Version, reason: RefusedRecord) {
        let account = self.accounts.entry(key.clone()).or_default();
        account.version = version;
        account.refusal = Some((version, reason));
        self.refused.insert(key.clone());
    }

    /// What may be acknowledged at `now_ms`; forgets the guards that have ended.
    pub(super) fn ack_state(&mut self, stripes: &[Stripe], bare: &Rules, now_ms: i64) -> AckState {
        let mut waiting = Vec::new();
        let mut drained = Vec::new();
        for key in &self.draining {
            let Some(account) = self.accounts.get_mut(key) else {
                drained.push(key.clone());
                continue;
            };
            if account.still_waits(stripes, bare, now_ms) {
                waiting.push(Waiting { key: key.clone(), version: account.version });
            }
            if account.older.is_empty() {
                drained.push(key.clone());
            }
        }
        for key in drained {
            self.draining.remove(&key);
            if self.accounts.get(&key).is_some_and(|account| account.current.is_none() && account.refusal.is_none()) {
                self.accounts.remove(&key);
            }
        }
        AckState { applied: self.applied, digest: self.digest, waiting, refused: self.refusals() }
    }

    fn refusals(&self) -> Vec<RefusedPlan> {
        let one = |key: &PlanKey| {
            let (version, reason) = self.accounts.get(key)?.refusal.clone()?;
            Some(RefusedPlan { key: key.clone(), version, reason })
        };
        self.refused.iter().filter_map(one).collect()
    }
}

impl Account {
    /// True when a guard is left that what is in force would place elsewhere. A guard that it would not place elsewhere stays
    /// on the account: a later version may.
    fn still_waits(&mut self, stripes: &[Stripe], bare: &Rules, now_ms: i64) -> bool {
        let current = match self.current.as_ref().map(|node| &node.content) {
            None => bare,
            Some(Content::Rules(rules)) => rules,
            // Nothing of it is in force; the refusal is reported instead.
            Some(Content::Refused(_)) => return false,
        };
        let mut waits = false;
        self.older.retain(|older| {
            let (rules, left) = match older {
                Older::Node(node) => match &node.content {
                    Content::Rules(rules) => (rules, Some(node.left(now_ms))),
                    Content::Refused(_) => return false,
                },
                Older::Stripe { stripe, through } => {
                    let stripe = &stripes[*stripe];
                    if stripe.generation() <= *through {
                        stripe.try_advance(now_ms);
                    }
                    (bare, stripe.left_through(*through, now_ms))
                }
            };
            if left.is_some_and(Left::nothing) {
                return false;
            }
            waits |= current.waits_for(rules, left.unwrap_or(Left::ANYTHING));
            true
        });
        waits
    }
}
