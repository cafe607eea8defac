//! `docs/metrics.md` is the catalogue as a page. With `KEYHEAT_UPDATE=1` this test writes it anew.

use std::fmt::Write as _;
use std::fs;

use keyheat::telemetry::{CATALOGUE, Kind, Label, MAX_PARTITION_SERIES, MAX_SHARD_SERIES, MAX_TOP_KEYS, Values};

use crate::dashboard::root;

const PATH: &str = "docs/metrics.md";

fn values(label: &Label) -> String {
    let words = match label.values {
        Values::Closed(values) => values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(" "),
        Values::Keyspaces => "a configured keyspace".to_owned(),
        Values::Windows => "the length of a window, e.g. `10s`".to_owned(),
        Values::Ranks => format!("`1` to at most `{MAX_TOP_KEYS}`"),
        Values::TopKeys => "a key as `observe.key_label` says".to_owned(),
        Values::Shards => "a shard, or `other`".to_owned(),
        Values::Partitions => "a partition, or `other`".to_owned(),
        Values::Version => "a version".to_owned(),
        Values::Config => "16 hexadecimal digits".to_owned(),
    };
    format!("{}: {words}", label.name)
}

fn page() -> String {
    let mut page = format!(
        "# Metrics\n\n\
         Everything that `/metrics` exposes, from the catalogue in `src/telemetry/catalogue.rs`. Series with closed label values exist\n\
         with 0 from the start. No input makes more than 2,000 series: at most {MAX_TOP_KEYS} keys a keyspace, {MAX_SHARD_SERIES} shards over all\n\
         keyspaces and {MAX_PARTITION_SERIES} partitions have their own; shards and partitions beyond are summed under `other`, and\n\
         `keyheat_series_cut` says how much was. Estimates have both bounds under the label `bound`.\n\n\
         | Metric | Kind | Labels | Meaning |\n|---|---|---|---|\n"
    );
    for row in CATALOGUE {
        let kind = match row.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram { .. } => "histogram",
        };
        let labels = row.labels.iter().map(values).collect::<Vec<_>>().join("; ");
        writeln!(page, "| `{}` | {kind} | {labels} | {} |", row.name, row.help).unwrap();
    }
    page
}

#[test]
fn the_page_of_metrics_is_the_catalogue() {
    let path = root().join(PATH);
    if std::env::var_os("KEYHEAT_UPDATE").is_some() {
        fs::write(&path, page()).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page(), "{PATH} is not the catalogue; run: KEYHEAT_UPDATE=1 cargo test --test stack page");
}
