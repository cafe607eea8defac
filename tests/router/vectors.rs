//! The vectors that routers in every language share; made by an implementation of another language.

use base64::Engine as _;
use keyheat::protocol::{Layout, bucket_hash};
use keyheat::router::BucketKey;
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    version: u32,
    bucket_hash: String,
    buckets: Vec<Hash>,
    keys: Vec<Key>,
}

#[derive(Deserialize)]
struct Hash {
    seed: String,
    id_b64: String,
    hash: String,
    r#in: Vec<InLayout>,
}

#[derive(Deserialize)]
struct InLayout {
    buckets: u32,
    first: u32,
    bucket: u32,
    label: u32,
}

#[derive(Deserialize)]
struct Key {
    form: String,
    key_b64: String,
    label: u32,
    store_key_b64: String,
}

fn vectors() -> Vectors {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/router/vectors.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn bytes(text: &str) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap()
}

/// S1 (thomhurst/Dekaf#1336, kafkaex/kafka_ex#398), S2 (nodefluent/node-sinek#39), S4 (dpkp/kafka-python#374): one documented
/// reduction, the seed is part of the name, the same in every process; S11 (whatwg/url#596): composed and decomposed forms are
/// two ids.
#[test]
fn s1_s2_s4_s11_buckets_are_those_of_the_vectors() {
    let vectors = vectors();
    assert_eq!((vectors.version, &*vectors.bucket_hash), (1, keyheat::protocol::BUCKET_HASH));
    for hash in &vectors.buckets {
        let (seed, id) = (hex(&hash.seed), bytes(&hash.id_b64));
        assert_eq!(bucket_hash(&id, seed), hex(&hash.hash), "seed {} id {}", hash.seed, hash.id_b64);
        for layout in &hash.r#in {
            let split = Layout::split(1, layout.buckets, layout.first).unwrap();
            let bucket = split.bucket_of(&id, seed);
            assert_eq!((bucket, split.label(bucket)), (layout.bucket, Some(layout.label)));
        }
    }
    assert_eq!(vectors.buckets.len(), 32);
}

/// S8: a separator inside keys stays what it is; the label is added once and never read back out of a key.
#[test]
fn s8_bucket_keys_are_those_of_the_vectors() {
    let vectors = vectors();
    for key in &vectors.keys {
        let rendered = BucketKey::parse(&key.form).unwrap().render(&bytes(&key.key_b64), key.label);
        assert_eq!(rendered, bytes(&key.store_key_b64), "form {}", key.form);
    }
    assert_eq!(vectors.keys.len(), 36);
}

/// S3 (confluentinc/librdkafka#1816): the index is in range for a million ids, the empty one too.
#[test]
fn s3_every_bucket_is_in_range_and_gets_its_share() {
    let layout = Layout::split(1, 8, 0).unwrap();
    let mut counts = [0_u32; 8];
    counts[layout.bucket_of(b"", 42) as usize] += 1;
    for n in 1..1_000_000_u32 {
        counts[layout.bucket_of(&n.to_le_bytes(), 42) as usize] += 1;
    }
    assert!(counts.iter().all(|&count| count.abs_diff(125_000) < 2_000), "{counts:?}");
}
