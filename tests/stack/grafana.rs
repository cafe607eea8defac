//! Dashboards and provisioning: the rules of Grafana's dashboard linter, and cases O5, O6 and O9.

use std::collections::BTreeSet;

use keyheat::telemetry::{CATALOGUE, Kind, Metric};
use serde_json::Value;

use crate::dashboard::{Dashboard, dashboards};
use crate::files::{assert_none, list, names, str_of, text, yaml};
use crate::promql::{kept_labels, selectors};

const DATASOURCE: &str = "${datasource}";
/// Panel types of Grafana 12; `graph`, `singlestat` and `table-old` are gone (O9).
const PANEL_TYPES: [&str; 8] = ["bargauge", "gauge", "heatmap", "row", "stat", "state-timeline", "table", "timeseries"];
/// Units of Grafana that say something; `none` only for ratios.
const UNITS: [&str; 6] = ["bytes", "eps", "none", "ops", "s", "short"];

fn each(check: impl Fn(&Dashboard, &mut Vec<String>)) {
    let dashboards = dashboards();
    assert!(!dashboards.is_empty());
    let mut faults = Vec::new();
    for dashboard in &dashboards {
        check(dashboard, &mut faults);
    }
    assert_none(&faults);
}

#[test]
fn a_dashboard_has_what_provisioning_needs() {
    each(|dashboard, faults| {
        let json = &dashboard.json;
        let mut hold = |ok: bool, what: &str| {
            if !ok {
                faults.push(format!("{}: {what}", dashboard.file))
            }
        };
        hold(json["schemaVersion"] == 42, "schemaVersion is 42");
        hold(json["id"].is_null(), "id is null");
        hold(!str_of(&json["uid"]).is_empty() && str_of(&json["uid"]).len() <= 40, "uid of 1 to 40 characters");
        hold(json["editable"] == false, "editable is false");
        hold(json["graphTooltip"] == 1, "graphTooltip is 1");
        hold(!str_of(&json["title"]).is_empty() && !str_of(&json["description"]).is_empty(), "title and description");
        hold(json["time"]["from"].is_string() && json["refresh"].is_string(), "time and refresh");
        hold(list(&json["tags"]).count() > 0, "tags");
    });
    let dashboards = dashboards();
    let uids: BTreeSet<&str> = dashboards.iter().map(|dashboard| str_of(&dashboard.json["uid"])).collect();
    assert_eq!(uids.len(), dashboards.len(), "one uid a dashboard");
}

#[test]
fn datasources_are_found_o5_o6() {
    let provisioned = yaml("dashboards/provisioning/datasources/prometheus.yaml");
    let uids: Vec<&str> = list(&provisioned["datasources"]).map(|source| str_of(&source["uid"])).collect();
    assert_eq!(uids, ["keyheat-prometheus"]);
    assert!(
        list(&provisioned["datasources"]).all(|source| source["type"] == "prometheus" && source["isDefault"] == true)
    );
    each(|dashboard, faults| {
        let plain = dashboard.json.to_string();
        for left_over in ["__inputs", "__requires", "${DS_", "$DS_"] {
            if plain.contains(left_over) {
                faults.push(format!("{}: {left_over} of an export", dashboard.file));
            }
        }
        for uid in uids_in(&dashboard.json) {
            if uid != DATASOURCE && uid != "-- Grafana --" && !uids.contains(&uid.as_str()) {
                faults.push(format!("{}: datasource uid {uid} is not provisioned", dashboard.file));
            }
        }
    });
}

/// Every uid of a `datasource` anywhere in the JSON.
fn uids_in(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, inner)| {
                let own = if name == "datasource" { inner["uid"].as_str().map(str::to_owned) } else { None };
                own.into_iter().chain(uids_in(inner)).collect::<Vec<_>>()
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(uids_in).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn variables_are_those_that_every_panel_uses() {
    each(|dashboard, faults| {
        let mut fault = |what: String| faults.push(format!("{}: {what}", dashboard.file));
        let variables: Vec<&Value> = list(&dashboard.json["templating"]["list"]).collect();
        let sources: Vec<_> = variables.iter().filter(|variable| variable["type"] == "datasource").collect();
        let [source] = sources.as_slice() else { return fault("exactly one datasource variable".to_owned()) };
        if source["name"] != "datasource" || source["query"] != "prometheus" || source["label"] != "Data Source" {
            fault("the datasource variable is named datasource, of prometheus, labelled Data Source".to_owned());
        }
        for name in ["job", "instance", "keyspace"] {
            let Some(variable) = dashboard.variable(name) else {
                fault(format!("no variable {name}"));
                continue;
            };
            let multi = variable["multi"] == true && variable["includeAll"] == true && variable["allValue"] == ".+";
            if !multi || variable["refresh"] != 2 || variable["datasource"]["uid"] != DATASOURCE {
                fault(format!(
                    "variable {name}: multi, All is .+, refreshed with the time range, from ${{datasource}}"
                ));
            }
            let found = selectors(str_of(&variable["query"]["query"]));
            let metric = found.first().and_then(|selector| selector.definition());
            let has_label = metric.is_some_and(|row| {
                ["job", "instance"].contains(&name) || row.labels.iter().any(|label| label.name == name)
            });
            if !has_label {
                fault(format!("variable {name}: asks for a metric without that label"));
            }
        }
    });
}

#[test]
fn panels_are_complete_and_do_not_overlap_o9() {
    each(|dashboard, faults| {
        let mut ids = BTreeSet::new();
        let mut taken: BTreeSet<(u64, u64)> = BTreeSet::new();
        for panel in dashboard.panels() {
            let title = str_of(&panel["title"]);
            let mut hold = |ok: bool, what: &str| {
                if !ok {
                    faults.push(format!("{}: {title}: {what}", dashboard.file))
                }
            };
            let kind = str_of(&panel["type"]);
            hold(PANEL_TYPES.contains(&kind), "a panel type that Grafana has");
            hold(ids.insert(panel["id"].as_u64()), "an id of its own");
            hold(!title.is_empty(), "a title");
            let at = |name: &str| panel["gridPos"][name].as_u64().unwrap_or(u64::MAX);
            hold(at("x") < 24 && at("x") + at("w") <= 24 && at("h") <= 20, "a place inside the 24 columns");
            for cell in (at("x")..at("x") + at("w")).flat_map(|x| (at("y")..at("y") + at("h")).map(move |y| (x, y))) {
                hold(taken.insert(cell), "a place that no other panel has");
            }
            if kind == "row" {
                continue;
            }
            hold(!str_of(&panel["description"]).is_empty(), "a description");
            hold(panel["datasource"]["uid"] == DATASOURCE, "the datasource variable");
            hold(UNITS.contains(&str_of(&panel["fieldConfig"]["defaults"]["unit"])), "a unit");
            hold(list(&panel["targets"]).count() > 0, "a query");
            let refs: BTreeSet<&str> = list(&panel["targets"]).map(|target| str_of(&target["refId"])).collect();
            hold(refs.len() == list(&panel["targets"]).count(), "a refId for each query");
            hold(list(&panel["targets"]).all(|t| t["datasource"]["uid"] == DATASOURCE), "the variable in each query");
        }
    });
}

#[test]
fn queries_follow_the_rules_of_the_linter() {
    each(query_faults);
}

fn query_faults(dashboard: &Dashboard, faults: &mut Vec<String>) {
    for query in dashboard.queries() {
        let mut hold = |ok: bool, what: &str| {
            if !ok {
                faults.push(format!("{}: {}: {what}: {}", dashboard.file, query.title, query.expr))
            }
        };
        let found = selectors(&query.expr);
        hold(!found.is_empty(), "it selects a metric");
        for selector in &found {
            hold(selector.matchers.contains("job=~\"$job\""), "job=~\"$job\"");
            hold(selector.matchers.contains("instance=~\"$instance\""), "instance=~\"$instance\"");
            hold(selector.range.as_deref().is_none_or(|range| range == "$__rate_interval"), "$__rate_interval");
            if selector.name == "up" {
                continue;
            }
            let Some(row) = selector.definition() else {
                hold(false, "a metric of the catalogue");
                continue;
            };
            let grows = row.kind != Kind::Gauge;
            let is_rate = ["rate", "irate", "increase"].contains(&selector.function.as_str());
            hold(
                grows == is_rate || selector.function == "changes",
                "counters inside rate or increase, gauges outside",
            );
            let known = |label: &String| {
                ["job", "instance", "le"].contains(&label.as_str()) || row.labels.iter().any(|l| l.name == label)
            };
            hold(selector.labels().iter().all(known), "labels that the metric has");
            let of_keyspace = row.labels.iter().any(|label| label.name == "keyspace");
            hold(!of_keyspace || selector.matchers.contains("keyspace=~\"$keyspace\""), "keyspace=~\"$keyspace\"");
            let kept = kept_labels(&query.expr).unwrap_or_default();
            hold(kept.iter().all(known), "it aggregates by labels that the metric has");
            hold(query.legend_labels().iter().all(|label| kept.contains(label)), "a legend of labels that are kept");
        }
    }
}

/// Metrics that no panel shows, and why.
const NOT_SHOWN: [(Metric, &str); 10] = [
    (Metric::BuildInfo, "variables ask for it"),
    (Metric::BytesRead, "for those who pay by the byte"),
    (Metric::PartitionPosition, "runbooks ask for it"),
    (Metric::ConfigInfo, "each decision and the API have it"),
    (Metric::ConfigReloads, "an alert watches it"),
    (Metric::ProcessStart, "restarts show as resets of counters"),
    (Metric::LastTick, "an alert watches it"),
    (Metric::Watermark, "its lag is shown"),
    (Metric::WindowWrapped, "recall, which is then lost, is shown and an alert watches it"),
    (Metric::ControlSeq, "the epoch is shown, the API has both"),
];

#[test]
fn every_metric_is_shown_or_left_out_with_a_reason() {
    let mut words: BTreeSet<&'static str> = BTreeSet::new();
    for dashboard in dashboards() {
        for query in dashboard.queries() {
            words
                .extend(selectors(&query.expr).iter().filter_map(|selector| selector.definition()).map(|row| row.name));
        }
    }
    let mut faults = Vec::new();
    for row in CATALOGUE {
        let reason = NOT_SHOWN.iter().find(|(metric, _)| *metric == row.metric);
        if words.contains(row.name) == reason.is_some() {
            let shown = words.contains(row.name);
            faults.push(format!(
                "{}: shown: {shown}, reason not to: {reason:?}; add a panel, or a reason to NOT_SHOWN",
                row.name
            ));
        }
    }
    assert_none(&faults);
}

#[test]
fn planted_faults_are_found() {
    let shipped = "sum(rate(keyheat_records_read_total{job=~\"$job\", instance=~\"$instance\"}[$__rate_interval]))";
    for (planted, rule) in [
        ("sum(rate(keyheat_records_read_total[$__rate_interval]))", "job=~\"$job\""),
        ("sum(rate(keyheat_records_read_total{job=~\"$job\", instance=~\"$instance\"}[5m]))", "$__rate_interval"),
        ("sum(keyheat_records_read_total{job=~\"$job\", instance=~\"$instance\"})", "counters inside rate"),
        ("sum(rate(keyheat_lag_records{job=~\"$job\", instance=~\"$instance\"}[$__rate_interval]))", "gauges outside"),
        ("sum(keyheat_no_such{job=~\"$job\", instance=~\"$instance\"})", "a metric of the catalogue"),
        ("sum by (color) (keyheat_lag_records{job=~\"$job\", instance=~\"$instance\"})", "aggregates by labels"),
        ("keyheat_lag_records{job=~\"$job\", instance=~\"$instance\", color=\"red\"}", "labels that the metric has"),
        ("sum(keyheat_hot_keys{job=~\"$job\", instance=~\"$instance\"})", "keyspace=~\"$keyspace\""),
    ] {
        let mut dashboard = dashboards().remove(0);
        let inside_json = |expr: &str| serde_json::to_string(expr).unwrap();
        let plain = dashboard.json.to_string();
        assert!(plain.contains(&inside_json(shipped)));
        dashboard.json =
            serde_json::from_str(&plain.replacen(&inside_json(shipped), &inside_json(planted), 1)).unwrap();
        let mut faults = Vec::new();
        query_faults(&dashboard, &mut faults);
        assert!(faults.iter().any(|fault| fault.contains(rule)), "{planted}: {faults:?}");
    }
    let uids = uids_in(&serde_json::json!({"a": [{"datasource": {"uid": "elsewhere"}}]}));
    assert_eq!(uids, ["elsewhere"]);
}

#[test]
fn the_provider_finds_the_dashboards() {
    let provider = yaml("dashboards/provisioning/dashboards/keyheat.yaml");
    assert_eq!(provider["apiVersion"], 1);
    let [provider] = provider["providers"].as_array().unwrap().as_slice() else { panic!("one provider") };
    assert_eq!((str_of(&provider["type"]), &provider["allowUiUpdates"]), ("file", &Value::Bool(false)));
    assert_eq!(names("dashboards/provisioning"), ["dashboards", "datasources"]);
    assert!(text("docs/runbooks/README.md").contains("Runbooks"));
}
