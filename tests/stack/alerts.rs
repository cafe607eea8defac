//! Recording rules, alerts and runbooks.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::dashboard::{dashboards, root};
use crate::files::{assert_none, list, names, str_of, text, yaml};
use crate::promql::selectors;

fn rules(path: &str) -> Vec<Value> {
    let file = yaml(path);
    list(&file["groups"]).flat_map(|group| list(&group["rules"]).cloned().collect::<Vec<_>>()).collect()
}

fn recorded() -> BTreeSet<String> {
    rules("dashboards/prometheus/rules/keyheat.yml").iter().map(|rule| str_of(&rule["record"]).to_owned()).collect()
}

#[test]
fn rules_use_metrics_and_labels_that_exist() {
    let recorded = recorded();
    let mut faults = Vec::new();
    for path in ["dashboards/prometheus/rules/keyheat.yml", "dashboards/prometheus/alerts/keyheat.yml"] {
        for rule in rules(path) {
            let expr = str_of(&rule["expr"]);
            for selector in selectors(expr) {
                if selector.name == "up" || recorded.contains(&selector.name) {
                    continue;
                }
                let Some(row) = selector.definition() else {
                    faults.push(format!("{path}: there is no metric {}", selector.name));
                    continue;
                };
                for label in selector.labels() {
                    if !row.labels.iter().any(|known| known.name == label) {
                        faults.push(format!("{path}: {} has no label {label}", selector.name));
                    }
                }
            }
        }
    }
    for name in &recorded {
        if name.split(':').count() != 3 {
            faults.push(format!("{name}: should be level:metric:operations"));
        }
    }
    assert_none(&faults);
}

#[test]
fn every_alert_says_what_to_do() {
    let mut faults = Vec::new();
    let mut alerts = BTreeSet::new();
    let dashboards: BTreeSet<String> =
        dashboards().iter().map(|dashboard| format!("/d/{}", str_of(&dashboard.json["uid"]))).collect();
    for rule in rules("dashboards/prometheus/alerts/keyheat.yml") {
        let name = str_of(&rule["alert"]).to_owned();
        let mut hold = |ok: bool, what: &str| {
            if !ok {
                faults.push(format!("{name}: {what}"))
            }
        };
        hold(name.starts_with("Keyheat") && name.bytes().all(|b| b.is_ascii_alphanumeric()), "KeyheatCamelCase");
        hold(["critical", "warning", "info"].contains(&str_of(&rule["labels"]["severity"])), "a severity");
        let annotation = |name: &str| str_of(&rule["annotations"][name]).to_owned();
        hold(!annotation("summary").is_empty() && !annotation("description").is_empty(), "summary and description");
        hold(dashboards.contains(&annotation("dashboard_url")), "the dashboard");
        let runbook = annotation("runbook_url");
        hold(runbook == format!("docs/runbooks/{name}.md") && root().join(&runbook).is_file(), "a runbook");
        if root().join(&runbook).is_file() {
            let text = text(&runbook);
            let sections = ["## What it means", "## Look at", "## Do"];
            hold(text.starts_with(&format!("# {name}\n")), "its runbook has its name");
            hold(sections.iter().all(|section| text.contains(section)), "its runbook has the three sections");
        }
        hold(
            text("docs/runbooks/README.md").contains(&format!("[{name}]({name}.md)")),
            "a line in the list of runbooks",
        );
        alerts.insert(format!("{name}.md"));
    }
    for file in names("docs/runbooks") {
        if file != "README.md" && !alerts.contains(&file) {
            faults.push(format!("docs/runbooks/{file}: there is no such alert"));
        }
    }
    assert_none(&faults);
}

#[test]
fn every_alert_has_a_test_in_which_it_fires_and_one_in_which_it_is_silent() {
    let folder = "dashboards/prometheus/tests";
    let files: Vec<Value> = names(folder).iter().map(|name| yaml(&format!("{folder}/{name}"))).collect();
    let mut faults = Vec::new();
    for rule in rules("dashboards/prometheus/alerts/keyheat.yml") {
        let name = str_of(&rule["alert"]);
        let cases: Vec<usize> = files
            .iter()
            .flat_map(|tests| list(&tests["tests"]))
            .flat_map(|test| list(&test["alert_rule_test"]))
            .filter(|case| case["alertname"] == name)
            .map(|case| list(&case["exp_alerts"]).count())
            .collect();
        if !cases.contains(&0) || !cases.iter().any(|expected| *expected > 0) {
            faults.push(format!("{name}: {cases:?} alerts expected in its tests"));
        }
    }
    assert_none(&faults);
}
