//! Keys of records on the plan topic and the acks topic.
//!
//! A key of an event may hold any bytes, `/` too; every other part has none, so each form reads in one way only.

use super::version::Nonce;

/// Key of a record on the plan topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PlanTopicKey {
    /// `plan/<keyspace>/<key bytes>`
    Plan(PlanKey),
    /// `advice/<keyspace>/<key bytes>`
    Advice(PlanKey),
    /// `advice/shard/<keyspace>/<shard bytes>`
    ShardAdvice(PlanKey),
    /// `policy/<keyspace>/<key bytes>`
    Policy(PlanKey),
    /// `claim/<epoch>/<nonce>`
    Claim {
        /// The epoch that is claimed.
        epoch: u64,
        /// Whose claim it is.
        nonce: Nonce,
    },
    /// `heartbeat`
    Heartbeat,
}

/// A key of a keyspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlanKey {
    /// Name of the keyspace; has no `/`.
    pub keyspace: String,
    /// The key's bytes.
    pub key: Vec<u8>,
}

impl PlanKey {
    /// The key `key` of `keyspace`.
    #[must_use]
    pub fn new(keyspace: &str, key: &[u8]) -> Self {
        Self { keyspace: keyspace.to_owned(), key: key.to_vec() }
    }
}

/// Key of a record on the acks topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AckTopicKey {
    /// `router/<id>/<nonce>`: two routers with one id are two members.
    Router {
        /// The router's name; has no `/`.
        id: String,
        /// Made with its snapshot.
        nonce: Nonce,
    },
    /// `backfill/<keyspace>/<key bytes>/<layout>`
    Backfill {
        /// The key whose records are moved.
        key: PlanKey,
        /// Number of the layout that is entered.
        layout: u32,
    },
    /// `retired/<keyspace>/<key bytes>/<layout>`
    Retired {
        /// The key whose old place is empty.
        key: PlanKey,
        /// Number of the layout that was left.
        layout: u32,
    },
}
