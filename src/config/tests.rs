//! Examples good and bad, planted faults, and input that is no configuration at all.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::subsequence;

use super::load::walk;
use super::*;
use crate::engine::{MAX_OVERRIDES, Rule};
use crate::units::{Rate, Share};

const EVERYTHING: &str = include_str!("../../fixtures/config/good/everything.toml");
const EXAMPLE: &str = include_str!("../../fixtures/config/good/keyheat.example.toml");
const MINIMAL: &str = include_str!("../../fixtures/config/good/minimal.toml");

fn faults(text: &str) -> String {
    load(text).map(|loaded| loaded.as_used).unwrap_err().to_string()
}

#[test]
fn faults_of_empty() {
    insta::assert_snapshot!(faults(include_str!("../../fixtures/config/bad/empty.toml")), @r##"
    1:1: input.topic: missing; should be the name of a topic: 1 to 249 letters, digits, '.', '_' or '-'
    1:1: kafka.brokers: missing; should be addresses of brokers, e.g. ["127.0.0.1:9092"]
    1:1: keyspace: missing; should be 1 to 8 sections [[keyspace]], each with a name and a key
    "##);
}

#[test]
fn faults_of_misspelt() {
    insta::assert_snapshot!(faults(include_str!("../../fixtures/config/bad/misspelt.toml")), @r##"
    1:2: kafak: unknown key; should be a name that docs/configuration.md lists; the nearest known name is 'kafka'
    6:1: kafka.topic: unknown key; should be a name that docs/configuration.md lists; 'topic' is a key of [input]
    10:1: input.request-id: unknown key; should be a name that docs/configuration.md lists; the nearest known name is 'request_id'
    11:1: input.operations: unknown key; should be a name that docs/configuration.md lists; the nearest known name is 'operation'
    12:1: input.seed: unknown key; should be a name that docs/configuration.md lists; 'seed' is a key of the file itself, above all sections
    17:1: keyspace[0].window: unknown key; should be a name that docs/configuration.md lists; the nearest known name is 'windows'
    18:1: keyspace[0].modes: unknown key; should be a name that docs/configuration.md lists; the nearest known name is 'mode'
    20:1: keyspace[0].treshold: unknown key; should be a name that docs/configuration.md lists
    21:1: keyspace[0].colour: unknown key; should be a name that docs/configuration.md lists
    "##);
}

#[test]
fn faults_of_out_of_range() {
    insta::assert_snapshot!(faults(include_str!("../../fixtures/config/bad/out_of_range.toml")), @r##"
    1:8: seed: got "12345"; should be 16 hexadecimal digits, e.g. of: openssl rand -hex 8
    4:12: kafka.brokers[0]: got "127.0.0.1"; should be host:port, e.g. "127.0.0.1:9092"
    4:25: kafka.brokers[1]: got "127.0.0.1:99999"; should be host:port, e.g. "127.0.0.1:9092"
    7:9: input.topic: got "access log"; should be the name of a topic: 1 to 249 letters, digits, '.', '_' or '-'
    8:9: input.start: got "yesterday"; should be one of "window", "earliest", "latest"
    9:8: input.time: got "ts"; should be a JSON pointer such as "/client", or a template such as "{/tenant}:{/client}"; it names no field; write a JSON pointer in braces, e.g. {/client}
    10:17: input.max_key_bytes: got 0; should be a whole number from 1 to 1024
    13:12: time.disorder: got "2 s"; should be a length of time from "0s" to "10m", e.g. "10s"
    14:16: time.idle_timeout: got 5; should be a length of time from "100ms" to "1h", e.g. "10s"
    17:8: keyspace[0].name: got "Client Keys"; should be a name of 1 to 64 of a-z, 0-9, '_' and '-'
    18:7: keyspace[0].key: got "{/client"; should be a JSON pointer such as "/client", or a template such as "{/tenant}:{/client}"; a '{' is not closed; write {{ for a plain '{'
    19:11: keyspace[0].windows: got a list of 3; should be a list of 1 to 2, each a window and its pane, e.g. "60s/5s"
    19:12: keyspace[0].windows[0]: got "10s/3s"; should be a window and its pane, e.g. "60s/5s"; the pane does not divide the window; choose a window that is a whole number of panes
    19:22: keyspace[0].windows[1]: got "60s"; should be a window and its pane, e.g. "60s/5s"
    19:29: keyspace[0].windows[2]: got "1h/5s"; should be a window and its pane, e.g. "60s/5s"; the window has more than 360 panes; choose a longer pane or a shorter window
    20:8: keyspace[0].rate: got -1; should be a rate above 0, events per second, e.g. "1000/s"
    21:10: keyspace[0].median: got 1; should be a number above 1: how many times the median, e.g. 10
    22:9: keyspace[0].share: got "200%"; should be a share above 0 and at most 1, e.g. "2%"
    23:9: keyspace[0].floor: got 0; should be a whole number from 1 to 4294967295
    24:9: keyspace[0].clear: got 1; should be a share above 0 and below 1, e.g. 0.7
    25:15: keyspace[0].bucket_rate: got "fast"; should be a rate above 0, events per second, e.g. "1000/s"
    26:15: keyspace[0].max_buckets: got 12; should be a power of two from 2 to 256
    27:12: keyspace[0].headroom: got nan; should be a number from 0 to 10: room above the peak as a share of it
    28:8: keyspace[0].mode: got "automatic"; should be one of "observe", "propose", "auto"
    31:10: observe.listen: got "localhost:9464"; should be an address and a port, e.g. "127.0.0.1:9464" or "[::1]:9464"
    34:10: plan.freeze: got "no"; should be true or false
    "##);
}

#[test]
fn faults_of_at_odds() {
    insta::assert_snapshot!(faults(include_str!("../../fixtures/config/bad/at_odds.toml")), @r##"
    3:1: kafka.sasl_password_file: missing; should be set, since kafka.security asks for a name and a password
    6:15: kafka.ssl_ca_file: got "/etc/ca.pem"; has no use with this kafka.security, which should be "ssl" or "sasl_ssl"; set it, or leave this out
    10:12: kafka.librdkafka.group.id: is not yours to set; set input.group
    11:10: kafka.librdkafka.acks: is not yours to set; a control record must be on all replicas in sync
    22:11: keyspace[0].windows: got ["60s/5s", "10s/2s"]; the second window should be longer than the first; swap them or leave one out; one window is enough as well
    23:9: keyspace[0].floor: got 50; should stand beside median or share, whose counts it bounds from below; add e.g. median = 10
    24:10: keyspace[0].hot_on: got "writes"; should be "all" while input.operation is not set; say where events have their operation
    26:16: keyspace[0].expire_after: got "1h"; has no use without history = "expire"; set that, or leave this out
    27:13: keyspace[0].protected: got 5000; protected (5000) should be at most candidates (4096); keys that are never evicted are candidates too
    29:9: keyspace[0].block: got ["b"]; should not have 'b', which allow has too; leave it in one list
    30:15: keyspace[0].shard_rules: does not fit; has no use while input.shard is not set; say where events have their shard
    31:56: keyspace[0].mapper.shards: got ["s0", "s1", "s0"]; should have no name twice, and has 's0'; each number is a shard of its own
    31:56: keyspace[0].mapper.shards: got ["s0", "s1", "s0"]; should not stand beside count or prefix; give the names, or count and prefix
    33:1: keyspace[1].bucket_rate: missing; should be the load that one bucket may carry, e.g. "500/s"; or set mode = "observe", which plans nothing
    33:1: keyspace[1].expire_after: missing; should be set with history = "expire": how long until the store has deleted the old records
    34:8: keyspace[1].name: got "client"; should differ from the other keyspaces' names; records and metrics go by the name
    37:11: keyspace[1].windows: got "1s/100ms"; time.disorder and time.max_ahead, together 602s, should be at most 360 panes of the shortest window, 36s; choose a longer pane or less slack
    38:10: keyspace[1].mapper.count: missing; should be the number of shards, since prefix is set
    41:14: protocol.hold_limit: got "1m"; hold_limit (1m) should be shorter than call_limit (30s); a hold keeps writes waiting, so it has to end before a store call would
    43:1: control.plan_topic: is "keyheat.plan.v1" by default; should not be input.topic; choose three topics: events, plans and acknowledgements
    44:14: control.acks_topic: got "keyheat.plan.v1"; plan_topic and acks_topic should be two topics; choose three topics: events, plans and acknowledgements
    44:14: control.acks_topic: got "keyheat.plan.v1"; should not be input.topic; choose three topics: events, plans and acknowledgements
    47:10: observe.listen: got "0.0.0.0:9464"; should be a loopback address, e.g. "127.0.0.1:9464"; keys are readable there: to be reached from other machines add listen_public = true
    50:17: service.stall_timeout: got "20s"; stall_timeout (20s) should be longer than session_timeout (30s); a rebalance is no stall
    "##);
}

#[test]
fn faults_of_rules() {
    insta::assert_snapshot!(faults(include_str!("../../fixtures/config/bad/rules.toml")), @r##"
    14:8: keyspace[0].rules[0].rate: got "0/s"; should be a rate above 0, events per second, e.g. "1000/s"
    16:1: keyspace[0].rules[1].keys: missing; should be a pattern of keys, e.g. "acme:*", of at most 256 bytes and 8 stars
    20:8: keyspace[0].rules[2].keys: got "acme:\\d+"; should be a pattern of keys, e.g. "acme:*", of at most 256 bytes and 8 stars; '\' should stand before '*' or '\'; write '\\' for one backslash
    24:8: keyspace[0].rules[3].keys: got "acme:*"; should differ from the patterns before it; the first that a key matches counts
    25:9: keyspace[0].rules[3].floor: got 5; should stand beside median or share, whose counts it bounds from below; add e.g. median = 10
    30:1: keyspace[0].rules[4].shares: unknown key; should be a name that docs/configuration.md lists; the nearest known name is 'share'
    31:1: keyspace[0].rules[4].clear: unknown key; should be a name that docs/configuration.md lists; 'clear' is a key of [[keyspace]]
    33:1: keyspace[0].rules[5].rate: missing; should be one of rate, median and share at least; or leave the section out: its keys then have the keyspace's
    34:8: keyspace[0].rules[5].keys: got ["a", "b"]; should be a pattern of keys, e.g. "acme:*", of at most 256 bytes and 8 stars
    40:9: keyspace[1].rules: got { keys = "*", rate = "1/s" }; should be sections [[keyspace.rules]], with two brackets, at most 64
    "##);
}

#[test]
fn more_sets_of_rules_than_there_is_room_for_are_a_fault() {
    let set = |n: usize| format!("[[keyspace.rules]]\nkeys = \"t{n}:*\"\nrate = {}\n", n + 1);
    let with = |sets: usize| format!("{MINIMAL}\n{}", (0..sets).map(set).collect::<String>());
    let overrides = load(&with(MAX_OVERRIDES)).unwrap().settings.engine.keyspaces[0].overrides.clone();
    assert_eq!(overrides.len(), MAX_OVERRIDES);
    assert!(overrides[63].keys.matches(b"t63:x") && !overrides[63].keys.matches(b"t6:x"));
    assert_eq!(overrides[63].rules, [Rule::Absolute { rate: Rate::per_second(64.0).unwrap() }]);
    let told = faults(&with(MAX_OVERRIDES + 1));
    assert!(
        told.contains("got 65 sections; should be sections [[keyspace.rules]], with two brackets, at most 64"),
        "{told}"
    );
}

#[test]
fn faults_of_shape() {
    insta::assert_snapshot!(faults(include_str!("../../fixtures/config/bad/shape.toml")), @r##"
    1:9: kafka: got "127.0.0.1:9092"; should be a section [kafka]
    4:9: input.topic: got ["access"]; should be the name of a topic: 1 to 249 letters, digits, '.', '_' or '-'
    5:19: input.operation_words: got ["get"]; should be a section [input.operation_words]
    7:1: keyspace: got [keyspace]; should be sections [[keyspace]], with two brackets, at most 8
    12:14: plan.max_splits: got 1_000_000; should be a whole number from 1 to 10000
    "##);
}

#[test]
fn faults_of_syntax() {
    insta::assert_snapshot!(faults(include_str!("../../fixtures/config/bad/syntax.toml")), @r##"
    3:1: not TOML: missing comma between array elements, expected `,`
    5:1: not TOML: missing comma between array elements, expected `,`
    6:1: not TOML: invalid boolean, expected `true`
    1 more not listed; mend these first
    "##);
}

#[test]
fn good_examples_have_no_faults_and_only_the_warnings_that_they_should() {
    assert_eq!(load(EVERYTHING).unwrap().warnings, []);
    assert_eq!(load(EXAMPLE).unwrap().warnings, []);
    let warned: Vec<String> = load(MINIMAL).unwrap().warnings.into_iter().map(|warning| warning.key).collect();
    assert_eq!(warned, ["seed"]);
}

/// Paths with `[]` for the numbers of lists, and `*` for names that are not ours.
fn general(path: &str) -> String {
    let free = path.strip_prefix("kafka.librdkafka.").map(|_| "kafka.librdkafka.*".to_owned());
    free.unwrap_or_else(|| path.chars().filter(|c| !c.is_ascii_digit()).collect())
}

#[test]
fn the_file_that_has_everything_has_every_key_that_is_asked_for() {
    let (_, outcome) = walk(EVERYTHING).unwrap();
    let used: BTreeSet<String> = outcome.used.keys().map(|path| general(path)).collect();
    assert_eq!(used, outcome.asked);
}

/// First two cells of each row that documents a key.
fn documented() -> BTreeMap<&'static str, &'static str> {
    let rows = include_str!("../../docs/configuration.md").lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter_map(|row| row.split_once("` | "));
    cells.filter_map(|(key, rest)| Some((key, rest.split_once(" | ")?.0))).collect()
}

#[test]
fn the_documentation_lists_every_key_that_is_asked_for() {
    let (_, outcome) = walk(EVERYTHING).unwrap();
    let documented: BTreeSet<String> = documented().into_keys().map(str::to_owned).collect();
    assert_eq!(documented, outcome.asked);
}

#[test]
fn the_documentation_has_the_defaults_in_use() {
    let written = ["kafka.brokers", "input.topic", "keyspace[].name", "keyspace[].key", "keyspace[].bucket_rate"];
    let text = MINIMAL.replace("mode = \"observe\"", "bucket_rate = 1");
    let used = load(&text).unwrap().as_used.into_iter().map(|(path, value)| (general(&path), format!("`{value}`")));
    let used: BTreeMap<String, String> = used.collect();
    let documented = documented();
    for (key, value) in used.iter().filter(|(key, _)| !written.contains(&key.as_str())) {
        let expected = if key == "keyspace[].rate" { "see above" } else { value };
        assert_eq!(documented.get(key.as_str()), Some(&expected), "{key}");
    }
    for (key, cell) in documented {
        assert!(used.contains_key(key) || ["required", "none", "see above"].contains(&cell), "{key}: {cell}");
    }
}

#[test]
fn values_arrive_where_they_belong() {
    let Settings { kafka, input, engine, plans, protocol, observe, .. } = load(EVERYTHING).unwrap().settings;
    assert_eq!(kafka.librdkafka.get("socket.timeout.ms").map(String::as_str), Some("20000"));
    assert_eq!(kafka.security.sasl.unwrap().mechanism, SaslMechanism::ScramSha256);
    assert_eq!((input.keys.len(), engine.keyspaces.len(), plans.len()), (7, 7, 7));
    let client = &engine.keyspaces[0];
    assert_eq!(
        client.key_rules,
        [
            Rule::Absolute { rate: Rate::per_second(1000.0).unwrap() },
            Rule::Relative { multiple: 8.5, floor: 50 },
            Rule::Share { share: Share::new(0.02).unwrap(), floor: 50 },
        ]
    );
    assert_eq!(client.overrides.len(), 2);
    assert_eq!(client.overrides[0].keys.to_string(), "acme:*");
    assert_eq!(
        client.overrides[0].rules,
        [
            Rule::Absolute { rate: Rate::per_second(200.0).unwrap() },
            Rule::Relative { multiple: 4.0, floor: 30 },
            Rule::Share { share: Share::new(0.01).unwrap(), floor: 30 },
        ]
    );
    assert_eq!(client.counting.width_log2, 17);
    assert_eq!(client.plan_seed, plans[0].seed);
    assert_ne!(client.plan_seed, client.counting.seed);
    assert_ne!(client.counting.seed, engine.keyspaces[1].counting.seed);
    assert_eq!(plans[0].allow, [b"eu:c42".to_vec(), vec![0xff, 0x00, 0xff]]);
    assert_eq!(plans[1].mapper.as_ref().unwrap().shards(), ["s0", "s1", "s2", "s3"]);
    assert_eq!(engine.keyspaces[1].declared_shards, [b"s0", b"s1", b"s2", b"s3"]);
    assert_eq!(protocol.expect_routers, 12);
    assert_eq!(observe.listen.to_string(), "0.0.0.0:9464");
}

#[test]
fn without_rules_a_key_is_hot_by_what_a_bucket_may_carry_or_else_by_the_median() {
    let rules = |text: &str| load(text).unwrap().settings.engine.keyspaces[0].key_rules.clone();
    assert_eq!(rules(MINIMAL), [Rule::Relative { multiple: DEFAULT_MEDIAN, floor: DEFAULT_FLOOR }]);
    let with_rate = MINIMAL.replace("mode = \"observe\"", "bucket_rate = 250");
    assert_eq!(rules(&with_rate), [Rule::Absolute { rate: Rate::per_second(250.0).unwrap() }]);
}

#[test]
fn the_hash_names_what_decides_and_nothing_else() {
    let hash = |text: &str| load(text).unwrap().settings.hash;
    let same = [
        ("client_id = \"keyheat-eu\"", "client_id = \"x\""),
        ("seed = \"0", "seed = \"1"),
        ("\"60s/5s\"", "\"1m/5000ms\""),
    ];
    for (from, to) in same {
        assert_eq!(hash(&EVERYTHING.replacen(from, to, 1)), hash(EVERYTHING), "{to}");
    }
    for (from, to) in [
        ("floor = 50", "floor = 51"),
        ("keys = \"acme:*\"", "keys = \"acm:*\""),
        ("floor = 30", "floor = 31"),
        ("max_splits = 20", "max_splits = 21"),
        ("hold_limit = \"1s\"", "hold_limit = \"2s\""),
    ] {
        assert_ne!(hash(&EVERYTHING.replacen(from, to, 1)), hash(EVERYTHING), "{to}");
    }
    let written_out = MINIMAL.replace("mode = \"observe\"", "mode = \"observe\"\nfloor = 20\nmedian = 10.0");
    assert_eq!(hash(&written_out), hash(MINIMAL));
}

#[test]
fn rules_may_change_while_it_runs_and_nothing_else() {
    let old = load(EVERYTHING).unwrap();
    let against = |from: &str, to: &str| {
        assert!(EVERYTHING.contains(from), "{from}");
        old.has_other_rules(&load(&EVERYTHING.replacen(from, to, 1)).unwrap()).map_err(|fixed| fixed.to_string())
    };
    assert_eq!(old.has_other_rules(&old), Ok(false));
    assert_eq!(against("\"60s/5s\"", "\"1m/5000ms\""), Ok(false), "the same, written otherwise");
    for (from, to) in [
        ("\nrate = \"1000/s\"", "\nrate = 900"),
        ("median = 8.5\n", ""),
        ("floor = 50", "floor = 51"),
        ("min_keys = 20", "min_keys = 21"),
        ("clear = 0.6", "clear = 0.5"),
        ("clear_after = \"1m\"", "clear_after = \"2m\""),
        ("shard_rules = { rate = 20000", "shard_rules = { rate = 20001"),
        ("keys = \"acme:*\"", "keys = \"acme*\""),
        ("\n[[keyspace.rules]]\nkeys = \"*:probe\"\nrate = \"5000/s\"\n", ""),
        ("key = \"/object\"", "key = \"/object\"\nshare = 0.5"),
    ] {
        assert_eq!(against(from, to), Ok(true), "{from} {to}");
    }
    for (from, to, first) in [
        ("client_id = \"keyheat-eu\"", "client_id = \"x\"", "kafka.client_id differs"),
        ("socket.timeout.ms = 20000", "socket.timeout.ms = 20001", "kafka.librdkafka"),
        ("seed = \"00000000000000ff\"", "seed = \"00000000000000fe\"", "seed differs"),
        ("disorder = \"3s\"", "disorder = \"4s\"", "time.disorder differs"),
        ("windows = [\"5s/500ms\", \"60s/5s\"]", "windows = \"60s/5s\"", "keyspace[0].windows differs"),
        ("hot_on = \"writes\"", "hot_on = \"all\"", "keyspace[0].hot_on differs"),
        ("bucket_rate = 500", "bucket_rate = 501", "keyspace[0].bucket_rate differs"),
        ("max_splits = 20", "max_splits = 21", "plan.max_splits differs"),
        ("key_label = \"hash\"", "key_label = \"off\"", "observe.key_label differs"),
        (
            "\n[plan]",
            "\n[[keyspace]]\nname = \"c\"\nkey = \"/c\"\nmode = \"observe\"\n\n[plan]",
            "the number of keyspaces differs",
        ),
    ] {
        let fixed = against(from, to).unwrap_err();
        assert!(fixed.starts_with(first), "{from} {to}: {fixed}");
        assert!(fixed.ends_with("only rules change while it runs; restart to change it"), "{fixed}");
    }
    let several =
        EVERYTHING.replace("max_splits = 20", "max_splits = 21").replace("disorder = \"3s\"", "disorder = \"4s\"");
    let several = several.replace("\nrate = \"1000/s\"", "\nrate = 900");
    let fixed = old.has_other_rules(&load(&several).unwrap()).unwrap_err();
    assert_eq!(fixed, NeedsRestart { setting: "plan.max_splits".to_owned(), others: 1 });
}

#[test]
fn secrets_are_never_shown() {
    let text = EVERYTHING.replace("[kafka.librdkafka]", "[kafka.librdkafka]\nssl.key.password = \"hunter2\"");
    let loaded = load(&text).unwrap();
    assert!(!format!("{loaded:?}").contains("hunter2"));
    assert_eq!(loaded.settings.kafka.librdkafka["ssl.key.password"], "hunter2");
    assert_eq!(loaded.as_used["seed"], "\"(secret)\"");
}

#[test]
fn a_file_that_is_too_long_is_refused_and_many_faults_are_counted() {
    assert!(faults(&" ".repeat(MAX_CONFIG_BYTES + 1)).contains("should be at most"));
    let many: String = (0..MAX_FAULTS + 50).map(|index| format!("unknown{index} = 1\n")).collect();
    let faults = load(&many).unwrap_err();
    assert_eq!((faults.list.len(), faults.cut), (MAX_FAULTS, 53));
}

/// Lines of the file that has everything, what to put in their place, and the key that is then at fault.
const PLANTED: [(&str, &str, &str); 35] = [
    ("seed = \"00000000000000ff\"", "seed = 7", "seed"),
    ("client_id = \"keyheat-eu\"", "client_id = \"a b\"", "kafka.client_id"),
    ("sasl_username = \"keyheat\"", "sasl_username = \"\"", "kafka.sasl_username"),
    ("\"client.rack\" = \"eu-1a\"", "\"client.rack\" = 1.5", "kafka.librdkafka.client.rack"),
    ("start = \"earliest\"", "begin = \"earliest\"", "input.begin"),
    ("weight = \"/bytes\"", "weight = \"bytes}\"", "input.weight"),
    ("max_key_bytes = 256", "max_key_bytes = 256.0", "input.max_key_bytes"),
    ("scan = [\"LIST\"]", "scan = [\"put\"]", "input.operation_words.scan"),
    ("max_ahead = \"1s\"", "max_ahead = \"1 s\"", "time.max_ahead"),
    ("key = \"{/tenant}:{/client}\"", "key = []", "keyspace[0].key"),
    ("windows = [\"5s/500ms\", \"60s/5s\"]", "windows = [\"5s/500ms\", \"60s/7s\"]", "keyspace[0].windows[1]"),
    ("rate = \"1000/s\"", "rate = \"1000/m\"", "keyspace[0].rate"),
    ("share = \"2%\"", "share = 0", "keyspace[0].share"),
    ("clear = 0.6", "clear = 1.0", "keyspace[0].clear"),
    ("hot_on = \"writes\"", "hot_on = \"write\"", "keyspace[0].hot_on"),
    ("shards = [\"s0\", \"s1\", \"s2\", \"s3\"]\n", "shards = [\"s0\", \"\", \"s2\"]\n", "keyspace[0].shards[1]"),
    ("shard_rules = { rate = 20000,", "shard_rules = { rates = 20000,", "keyspace[0].shard_rules.rates"),
    ("expire_after = \"30d\"", "expire_after = \"500d\"", "keyspace[0].expire_after"),
    ("bucket_rate = 500", "bucket_rate = inf", "keyspace[0].bucket_rate"),
    ("max_buckets = 64", "max_buckets = 63", "keyspace[0].max_buckets"),
    ("{ b64 = \"/wD/\" }", "{ b64 = \"%\" }", "keyspace[0].allow[1]"),
    ("hash = \"xxh64\"", "hash = \"md5\"", "keyspace[0].mapper.hash"),
    ("sketch_width = 131072", "sketch_width = 131071", "keyspace[0].sketch_width"),
    ("keys = \"acme:*\"", "keys = \"acme\\\\:*\"", "keyspace[0].rules[0].keys"),
    ("share = \"1%\"", "shares = \"1%\"", "keyspace[0].rules[0].shares"),
    ("floor = 30", "floor = 0", "keyspace[0].rules[0].floor"),
    ("rate = \"5000/s\"", "# none", "keyspace[0].rules[1].rate"),
    ("name = \"object\"", "name = \"client\"", "keyspace[1].name"),
    ("count = 4, prefix", "prefix", "keyspace[1].mapper.count"),
    ("freeze = true", "freeze = 1", "plan.freeze"),
    ("hold_limit = \"1s\"", "hold_limit = \"20s\"", "protocol.hold_limit"),
    ("heartbeat = \"2s\"", "heartbeat = \"2h\"", "control.heartbeat"),
    ("listen_public = true", "listen_public = false", "observe.listen"),
    ("allowed_hosts = [\"keyheat\"]", "allowed_hosts = [\"keyheat:9464\"]", "observe.allowed_hosts[0]"),
    ("stall_timeout = \"2m\"", "stall_timeout = \"10s\"", "service.stall_timeout"),
];

proptest! {
    #[test]
    fn every_planted_fault_is_found_and_nothing_else(planted in subsequence(&PLANTED[..], 1..=PLANTED.len())) {
        let mut text = EVERYTHING.to_owned();
        for (from, to, _) in &planted {
            prop_assert!(text.contains(from), "{from}");
            text = text.replacen(from, to, 1);
        }
        let expected: BTreeSet<&str> = planted.iter().map(|(_, _, key)| *key).collect();
        let faults = load(&text).unwrap_err();
        let found: BTreeSet<&str> = faults.list.iter().map(|fault| fault.key.as_str()).collect();
        prop_assert_eq!(found, expected, "{}", faults);
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        drop(load(&text));
    }

    #[test]
    fn no_damage_makes_it_panic(at in 0..EVERYTHING.len(), cut in 0..40_usize, put in "[\\[\\]{}=\"'.,#\n0-9a-z-]{0,12}") {
        let mut bytes = EVERYTHING.as_bytes().to_vec();
        bytes.splice(at..(at + cut).min(EVERYTHING.len()), put.bytes());
        drop(load(&String::from_utf8(bytes).unwrap()));
    }
}
