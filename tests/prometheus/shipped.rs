//! Dashboards, rules and alerts as they are shipped, asked of a real Prometheus that scrapes the real service under load.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::support::dashboard::{Query, dashboards, root};
use super::support::process::{Process, get};
use super::support::{Kafka, Prometheus, Record, Series, poll_until};
use crate::{folder, service};

/// From the first scrape to the last series: windows have to fill, and rates need some scrapes.
const LIMIT: Duration = Duration::from_secs(120);

/// The service under a load with one hot key and one record that is no JSON, and a Prometheus that scrapes it.
struct Stack {
    prometheus: Prometheus,
    address: String,
    _service: Process,
    _load: Process,
}

impl Stack {
    fn start() -> Self {
        let kafka = Kafka::shared();
        let (access, plan, acks) = (Kafka::name("access"), Kafka::name("plan"), Kafka::name("acks"));
        kafka.create_topic(&access, 4, &[]);
        let config = format!(
            "[kafka]\nbrokers = [{:?}]\n\n[input]\ntopic = {access:?}\ngroup = {access:?}\nstart = \"earliest\"\ntime = \"/ts\"\n\
             shard = \"/shard\"\nrequest_id = \"/id\"\noperation = \"/op\"\n\n[[keyspace]]\nname = \"client\"\nkey = \"/client\"\n\
             windows = [\"2s/500ms\", \"6s/1s\"]\nmedian = 10\nfloor = 50\nmode = \"propose\"\nbucket_rate = \"100/s\"\n\n\
             [control]\nplan_topic = {plan:?}\nacks_topic = {acks:?}\n",
            kafka.bootstrap
        );
        let (service, address) = service("shipped", &config);
        // The service is there first: it waits for its topics and goes on when they appear.
        let made = Command::new(env!("CARGO_BIN_EXE_keyheat"))
            .args(["topics", "create", "--config"])
            .arg(folder("shipped").join("keyheat.toml"))
            .output()
            .expect("the program starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let rules = folder("shipped");
        for name in ["rules", "alerts"] {
            fs::write(rules.join(format!("{name}.yml")), shipped(name)).expect("a file");
        }
        let prometheus = Prometheus::start(&[&address], Some(&rules.join("*.yml").display().to_string()));
        poll_until("a first scrape with the counters at 0", LIMIT, || {
            let series = prometheus.query("keyheat_records_refused_total{reason=\"not_json\"} == 0").ok()?;
            (!series.is_empty()).then_some(())
        });
        kafka.produce(&access, [Record::event(b"this is no JSON")]);
        let arguments = ["--rate=1500/s", "--keys=200", "--zipf=0.2", "--shards=8", "--hot=c-hot:30%", "--for=10m"];
        let (brokers, topic) = (format!("--brokers={}", kafka.bootstrap), format!("--topic={access}"));
        let load = Process::start(&rules, "generate", &[&["generate", &brokers, &topic], &arguments[..]].concat());
        Self { prometheus, address, _service: service, _load: load }
    }

    /// The series of an expression once there are some.
    fn series(&self, what: &str, expr: &str) -> Vec<Series> {
        poll_until(what, LIMIT, || {
            let series = self.prometheus.query(expr).unwrap_or_else(|error| panic!("{what}: {error}"));
            (!series.is_empty()).then_some(series)
        })
    }
}

fn shipped(folder: &str) -> String {
    let path = root().join(format!("dashboards/prometheus/{folder}/keyheat.yml"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every `name: text` line of a rules file.
fn fields(text: &str, name: &str) -> Vec<String> {
    let prefix = format!("- {name}: ");
    text.lines().filter_map(|line| line.trim().strip_prefix(&prefix)).map(str::to_owned).collect()
}

#[test]
fn every_panel_rule_and_alert_has_series_under_load() {
    let stack = Stack::start();
    for dashboard in dashboards() {
        for query in dashboard.queries() {
            check(&stack, &query);
        }
        let variables = ["job", "instance", "keyspace"];
        let labels: BTreeSet<String> =
            stack.series("labels", "keyheat_hot_keys")[0].labels.iter().map(|(label, _)| label.clone()).collect();
        assert!(variables.iter().all(|variable| labels.contains(*variable)), "{labels:?}");
    }
    for record in fields(&shipped("rules"), "record") {
        stack.series(&record, &record);
    }
    the_load_is_seen(&stack);
    no_alert_cries_wolf(&stack);
    let (status, metrics) = get(&stack.address, "/metrics").expect("an answer");
    assert_eq!(status, 200);
    promtool_takes(&metrics);
}

/// A panel's query has series, each with the labels that its legend names; an annotation's is one that Prometheus takes.
fn check(stack: &Stack, query: &Query) {
    let expr = query.substituted("15s");
    if query.annotation {
        stack.prometheus.query(&expr).unwrap_or_else(|error| panic!("{}: {error}: {expr}", query.title));
        return;
    }
    for series in stack.series(&format!("{}: {expr}", query.title), &expr) {
        for label in query.legend_labels() {
            let value = series.labels.iter().find(|(name, _)| *name == label).map(|(_, value)| value.as_str());
            assert!(value.is_some_and(|value| !value.is_empty()), "{}: no label {label}: {series:?}", query.title);
        }
    }
}

/// What was put in is what can be seen.
fn the_load_is_seen(stack: &Stack) {
    stack.series("the hot key", "keyheat_hot_key_rate{keyspace=\"client\", key=\"c-hot\", bound=\"lower\"} > 100");
    stack.series("eight shards", "keyheat_known_shards == 8");
    stack.series("an uneven load", "keyheat_shard_imbalance_ratio > 1.5");
    stack.series("a verdict", "keyheat_verdicts_total{subject=\"key\", change=\"hot\"} > 0");
    stack.series("events in all", "sum(keyheat_events_counted_total) > 5000");
    let refused = "increase(keyheat_records_refused_total{reason=\"not_json\"}[10m]) > 0";
    stack.series("the first refusal as an increase (O4)", refused);
    stack.series("every latch closed", "min(keyheat_ready) == 1");
    assert_eq!(get(&stack.address, "/readyz").map(|(status, _)| status), Some(200));
    stack.series("a leader", "sum(keyheat_leader) == 1");
}

/// Under an ordinary load with a hot key only alerts about heat may be pending, and none about health.
fn no_alert_cries_wolf(stack: &Stack) {
    let allowed = ["KeyheatHotKey", "KeyheatHotShard"];
    let alerts = stack.prometheus.query("ALERTS").expect("a good expression");
    for alert in alerts {
        let name = alert.labels.iter().find(|(label, _)| label == "alertname").map(|(_, name)| name.as_str());
        assert!(name.is_some_and(|name| allowed.contains(&name)), "{alert:?}");
    }
}

/// What promtool says of a scrape.
fn promtool_takes(metrics: &str) {
    let mut child = Command::new(root().join("tests/tools/prometheus"))
        .args(["promtool", "check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bash runs the scripts of tests/tools");
    let mut stdin = child.stdin.take().expect("standard input is piped");
    stdin.write_all(metrics.as_bytes()).expect("it reads its input");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let said = [String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)].concat();
    assert!(output.status.success(), "{said}");
}
