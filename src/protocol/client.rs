//! Settings of librdkafka that every client of these topics has in common, as data: what keeps the contract, and why.
//!
//! Data only, so that the pure core needs no Kafka client. What a user writes under `[kafka.librdkafka]` comes after these and wins,
//! except for [`RESERVED_CLIENT_PROPERTIES`].

/// For every client.
pub const CLIENT_PROPERTIES: &[(&str, &str)] = &[
    // A middlebox that forgets an idle connection is noticed.
    ("socket.keepalive.enable", "true"),
    // A topic with a spelling mistake is named as missing, not made with the broker's defaults.
    ("allow.auto.create.topics", "false"),
];

/// For clients that read.
pub const CONSUMER_PROPERTIES: &[(&str, &str)] = &[
    // The default of a whole second stops a partition as soon as its queue is full: measured 6.7 times slower at the same CPU.
    ("fetch.queue.backoff.ms", "10"),
    // A record that was damaged on its way is an error, not an event; costs nothing that can be measured.
    ("check.crcs", "true"),
    // Partitions read from the start stay within a second of event time of each other; with the defaults 2.3 s were seen.
    ("queued.min.messages", "10000"),
    ("fetch.message.max.bytes", "262144"),
    ("queued.max.messages.kbytes", CONSUMER_QUEUE_KIB),
    // What one answer of a broker brings is unpacked at once: with the default of 50 MiB and 64 partitions the process grew to 180 MiB.
    ("fetch.max.bytes", "1048576"),
];

/// Records that wait inside a reading client take at most so much, in KiB.
const CONSUMER_QUEUE_KIB: &str = "16384";

/// For clients that read control topics, beside [`CONSUMER_PROPERTIES`]: their records are few and small.
pub const CONTROL_CONSUMER_PROPERTIES: &[(&str, &str)] = &[("queued.max.messages.kbytes", CONTROL_QUEUE_KIB)];

/// Control records that wait inside a reading client take at most so much, in KiB.
const CONTROL_QUEUE_KIB: &str = "2048";

/// For clients that write control records.
pub const PRODUCER_PROPERTIES: &[(&str, &str)] = &[
    // An unknown outcome that is sent again must not overtake: same order, each at most once, on all replicas in sync.
    ("enable.idempotence", "true"),
    ("acks", "all"),
    // A control record is sent alone and waited for: nothing is won by waiting for company.
    ("linger.ms", "0"),
    ("queue.buffering.max.messages", "1000"),
    ("queue.buffering.max.kbytes", PRODUCER_QUEUE_KIB),
];

/// Records that wait inside a writing client take at most so much, in KiB.
const PRODUCER_QUEUE_KIB: &str = "4096";

/// Properties that are set by a key of the configuration, or on which the contract of the source or of the fence stands.
pub const RESERVED_CLIENT_PROPERTIES: &[(&str, &str)] = &[
    ("acks", "a control record must be on all replicas in sync"),
    ("auto.offset.reset", "set input.start"),
    ("bootstrap.servers", "set kafka.brokers"),
    ("client.id", "set kafka.client_id"),
    ("enable.auto.commit", "offsets are committed once their records are counted"),
    ("enable.auto.offset.store", "offsets are committed once their records are counted"),
    ("enable.idempotence", "a control record must not be doubled or overtaken"),
    ("enable.partition.eof", "the end of a partition decides when it is idle"),
    ("group.id", "set input.group"),
    ("group.protocol", "partitions are assigned by the classic protocol"),
    ("log.queue", "log lines are taken from the main queue"),
    ("metadata.broker.list", "set kafka.brokers"),
    ("partition.assignment.strategy", "partitions are assigned cooperatively"),
    ("security.protocol", "set kafka.security"),
    ("session.timeout.ms", "set service.session_timeout"),
    ("transactional.id", "publishers are fenced by the log"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_property_is_set_twice() {
        let mut names: Vec<_> = [CLIENT_PROPERTIES, CONSUMER_PROPERTIES, PRODUCER_PROPERTIES].concat();
        let all = names.len();
        names.sort_unstable();
        names.dedup_by_key(|(name, _)| *name);
        assert_eq!(names.len(), all);
        assert!(RESERVED_CLIENT_PROPERTIES.is_sorted_by_key(|(name, _)| *name));
    }
}
