//! The plan topic as an independent reader sees it: kcat's records, JSON without our types, and the fence in a few lines.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::support::Record;

/// A record that counts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Counted {
    pub(crate) key: String,
    pub(crate) epoch: u64,
    pub(crate) seq: u64,
    /// `None` is a tombstone.
    pub(crate) value: Option<Value>,
}

/// The whole topic, checked: every record has its headers, and the same version is the same bytes.
#[derive(Debug, Default)]
pub(crate) struct ControlLog {
    /// Records that count, in log order.
    pub(crate) counted: Vec<Counted>,
    /// Epochs that were claimed, in log order.
    pub(crate) epochs: Vec<u64>,
    /// Records that do not count.
    pub(crate) refused: usize,
}

/// Key and value of a record.
type Content = (Vec<u8>, Option<Vec<u8>>);

impl ControlLog {
    /// Folds what kcat printed.
    pub(crate) fn of(records: &[Record]) -> Self {
        let mut log = Self::default();
        let mut leader: Option<(u64, String)> = None;
        let mut last = (0, 0);
        let mut bytes = BTreeMap::<(u64, String, u64), Content>::new();
        for record in records {
            let key = String::from_utf8(record.key.clone().expect("every record has a key")).unwrap();
            check_headers(record, &key);
            let number = |name: &str| record.header_text(name).unwrap().parse::<u64>().unwrap();
            let nonce = record.header_text("kh_nonce").unwrap().to_owned();
            let (epoch, seq) = (number("kh_epoch"), number("kh_seq"));
            let content = (key.clone().into_bytes(), record.value.clone());
            let first = bytes.entry((epoch, nonce.clone(), seq)).or_insert_with(|| content.clone());
            assert_eq!(*first, content, "I1: version {epoch}.{seq} has two contents");
            if key.starts_with("claim/") {
                assert_eq!(key, format!("claim/{epoch}/{nonce}"));
                if leader.as_ref().is_none_or(|(led, _)| epoch > *led) {
                    leader = Some((epoch, nonce));
                    log.epochs.push(epoch);
                }
                continue;
            }
            if leader.as_ref() != Some(&(epoch, nonce)) || (epoch, seq) <= last {
                log.refused += 1;
                continue;
            }
            last = (epoch, seq);
            let value = record.value.as_deref().map(|value| serde_json::from_slice(value).expect("JSON"));
            log.counted.push(Counted { key, epoch, seq, value });
        }
        log
    }

    /// Records of the plan of one key, in order.
    pub(crate) fn plan<'a>(&'a self, keyspace: &str, key: &str) -> Vec<&'a Counted> {
        let key = format!("plan/{keyspace}/{key}");
        self.counted.iter().filter(|record| record.key == key).collect()
    }

    /// Keys of events that have a plan, or had one.
    pub(crate) fn planned(&self) -> BTreeSet<String> {
        let plans = self.counted.iter().filter_map(|record| record.key.strip_prefix("plan/"));
        plans.filter_map(|rest| rest.split_once('/')).map(|(_, key)| key.to_owned()).collect()
    }

    /// The states of one key's plan, in order; a tombstone is `-`.
    pub(crate) fn states(&self, keyspace: &str, key: &str) -> Vec<String> {
        let state = |record: &&Counted| match &record.value {
            Some(value) => value["state"].as_str().unwrap().to_owned(),
            None => "-".to_owned(),
        };
        self.plan(keyspace, key).iter().map(state).collect()
    }

    /// The number of buckets that one key's settled records write to, each change once; 1 is the bare layout.
    pub(crate) fn buckets(&self, keyspace: &str, key: &str) -> Vec<u64> {
        let settled = self.plan(keyspace, key).into_iter().filter_map(|record| record.value.as_ref());
        let settled = settled.filter(|value| value["state"] == "settled");
        let mut buckets: Vec<u64> = settled.map(|value| value["write"]["buckets"].as_u64().unwrap_or(1)).collect();
        buckets.dedup();
        buckets
    }

    /// The numbers of the layouts that one key's records were ever to be written to.
    pub(crate) fn layouts(&self, keyspace: &str, key: &str) -> BTreeSet<u64> {
        let written = self.plan(keyspace, key).into_iter().filter_map(|record| record.value.as_ref());
        written.filter_map(|value| value["write"]["layout"].as_u64()).collect()
    }
}

/// `CloudEvents` in binary mode and the fence's three, on tombstones too.
fn check_headers(record: &Record, key: &str) {
    let header = |name: &str| {
        record.header_text(name).unwrap_or_else(|| panic!("{key} at {:?}: header {name} is missing", record.offset))
    };
    assert_eq!(header("ce_specversion"), "1.0");
    assert!(header("ce_id").starts_with(header("kh_epoch")), "{}", header("ce_id"));
    assert!(!header("ce_source").is_empty());
    assert!(header("ce_type").starts_with("keyheat."), "{}", header("ce_type"));
    assert!(header("ce_time").ends_with('Z'), "{}", header("ce_time"));
    assert_eq!(header("kh_nonce").len(), 16);
    assert!(header("kh_seq").parse::<u64>().is_ok() && header("kh_epoch").parse::<u64>().is_ok());
    assert!(header("ce_subject").starts_with(key.split('/').next().unwrap()), "{}", header("ce_subject"));
    match &record.value {
        Some(_) => assert_eq!(header("content-type"), "application/json"),
        None => assert!(header("ce_type").contains("removed") && record.header_text("content-type").is_none()),
    }
}
