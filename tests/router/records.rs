//! Records of one migration, as a leader would publish them.

use keyheat::protocol::{Layout, PlanKey, PlanRecord, Version};
use keyheat::router::Table;
use serde_json::json;

pub(crate) const KEYSPACE: &str = "customer";

/// A migration from one layout to another.
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    pub(crate) key: Vec<u8>,
    pub(crate) from: Layout,
    pub(crate) to: Layout,
    pub(crate) writes: &'static str,
    pub(crate) history: &'static str,
    pub(crate) seed: u64,
}

impl Walk {
    /// From the bare key to `buckets` buckets.
    pub(crate) fn split(key: &[u8], buckets: u32, writes: &'static str) -> Self {
        let to = Layout::split(1, buckets, 0).unwrap();
        Self { key: key.to_vec(), from: Layout::BARE, to, writes, history: "move", seed: 7 }
    }

    pub(crate) fn plan_key(&self) -> PlanKey {
        PlanKey::new(KEYSPACE, &self.key)
    }

    /// The states of this migration, in their order.
    pub(crate) fn states(&self) -> Vec<&'static str> {
        match self.writes {
            "update" => vec!["proposed", "prepare", "hold", "dual", "moving", "settled"],
            _ => vec!["proposed", "prepare", "dual", "moving", "settled"],
        }
    }

    pub(crate) fn record(&self, state: &str) -> PlanRecord {
        let (a, b) = (layout(self.from), layout(self.to));
        let (write, read) = match state {
            "proposed" => (a.clone(), vec![a.clone()]),
            "prepare" => (a.clone(), vec![b.clone(), a.clone()]),
            "hold" => (serde_json::Value::Null, vec![b.clone(), a.clone()]),
            "dual" | "moving" => (b.clone(), vec![b.clone(), a.clone()]),
            "settled" => (b.clone(), vec![b.clone()]),
            other => panic!("no such state: {other}"),
        };
        let mut record = json!({
            "schema": 1, "keyspace": KEYSPACE, "state": state, "write": write, "read": read,
            "delete": "tombstone",
            "migration": {"version": {"epoch": 1, "seq": 1}, "from": a, "to": b, "writes": self.writes, "history": self.history},
            "bucket": {"hash": "xxh64-low-bits", "seed": format!("{:016x}", self.seed), "key": "{key}:{label}"},
            "evidence": {"rule": "relative", "window_ms": 60_000, "count": {"lower": 1, "upper": 1}, "threshold": 1,
                "rate_per_s": 1.0, "median": 1, "reads": 0, "writes": 1, "shard": null, "completeness": 1.0,
                "end_offsets": {}, "config": "0000000000000000"},
            "prediction": {"hottest_bucket_share": 0.5, "hottest_shard_before": null, "hottest_shard_after": null,
                "added_load": 0.0},
            "outcome": null, "decided_at": "2026-11-30T10:11:32.120Z"
        });
        match std::str::from_utf8(&self.key) {
            Ok(text) => record["key"] = json!(text),
            Err(_) => {
                use base64::Engine as _;
                record["key_b64"] = json!(base64::engine::general_purpose::STANDARD.encode(&self.key));
            }
        }
        serde_json::from_value(record).unwrap()
    }

    /// Puts the record of `state` into `table`.
    pub(crate) fn apply(&self, table: &Table, seq: u64, state: &str) {
        table.put(&self.plan_key(), version(seq), &self.record(state)).unwrap();
        table.reached(version(seq), keyheat::protocol::Digest(seq));
    }
}

pub(crate) const fn version(seq: u64) -> Version {
    Version { epoch: 1, seq }
}

fn layout(layout: Layout) -> serde_json::Value {
    serde_json::to_value(layout).unwrap()
}
