//! How a store maps a key to a shard, declared so that the placement of buckets can be chosen. Each function is defined to the bit, with
//! vectors of a paper, of a specification or of an implementation in wide use.

mod check;
mod declared;
mod hash;
mod jump;
mod maglev;
mod md5;
mod multi_probe;
mod planned;
mod ranges;
mod rendezvous;
mod ring;
mod slots;
mod table;

pub use check::{BELIEVED_AGAIN, LEAST_CHECKED, MAX_MISMATCH, MapperCheck, MapperTrust};
pub use declared::{InvalidMapper, MAX_RANGES, MAX_SHARDS, MAX_TABLE_KEYS, Mapper, MapperKind, first_twice};
pub use hash::ShardHash;
pub use maglev::{MAGLEV_TABLE, MAX_MAGLEV_TABLE};
pub use multi_probe::SeededHash;
pub use planned::{Planned, Settled};
pub use ranges::DatePlace;
pub use ring::{MAX_RING_POINTS, RingPoints};
pub use slots::{SLOTS, SlotRange};
