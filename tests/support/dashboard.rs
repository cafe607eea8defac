//! The dashboards that are shipped, read as Grafana reads them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// One dashboard.
#[derive(Debug)]
pub(crate) struct Dashboard {
    /// The file's name.
    pub(crate) file: String,
    pub(crate) json: Value,
}

/// One query of a panel or annotation.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    /// Title of the panel, or name of the annotation.
    pub(crate) title: String,
    pub(crate) expr: String,
    /// How a series is called; empty for annotations.
    pub(crate) legend: String,
    pub(crate) annotation: bool,
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// Every dashboard.
pub(crate) fn dashboards() -> Vec<Dashboard> {
    let folder = root().join("dashboards/grafana");
    let mut dashboards: Vec<Dashboard> = fs::read_dir(folder)
        .expect("a folder of dashboards")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let text = fs::read_to_string(&path).expect("a readable dashboard");
            let file = path.file_name().expect("a name").to_string_lossy().into_owned();
            Dashboard { json: serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}")), file }
        })
        .collect();
    dashboards.sort_by(|a, b| a.file.cmp(&b.file));
    dashboards
}

impl Dashboard {
    /// Every panel, rows and panels inside rows too.
    pub(crate) fn panels(&self) -> Vec<&Value> {
        let outer = self.json["panels"].as_array().into_iter().flatten();
        outer.flat_map(|panel| std::iter::once(panel).chain(panel["panels"].as_array().into_iter().flatten())).collect()
    }

    /// The variables, by name.
    pub(crate) fn variable(&self, name: &str) -> Option<&Value> {
        self.json["templating"]["list"].as_array().into_iter().flatten().find(|variable| variable["name"] == name)
    }

    /// Every query of every panel and annotation.
    pub(crate) fn queries(&self) -> Vec<Query> {
        let of_panel = |panel: &&Value| {
            let title = text(&panel["title"]);
            let targets = panel["targets"].as_array().cloned().unwrap_or_default();
            targets
                .into_iter()
                .map(|target| Query {
                    title: title.clone(),
                    expr: text(&target["expr"]),
                    legend: text(&target["legendFormat"]),
                    annotation: false,
                })
                .collect::<Vec<_>>()
        };
        let annotations = self.json["annotations"]["list"].as_array().into_iter().flatten();
        let of_annotations =
            annotations.filter(|annotation| annotation.get("expr").is_some()).map(|annotation| Query {
                title: text(&annotation["name"]),
                expr: text(&annotation["expr"]),
                legend: String::new(),
                annotation: true,
            });
        self.panels().iter().flat_map(of_panel).chain(of_annotations).collect()
    }
}

impl Query {
    /// The expression as Grafana sends it with every variable at All and this span for a rate.
    pub(crate) fn substituted(&self, interval: &str) -> String {
        let expr = self.expr.replace("$__rate_interval", interval).replace("$__interval", interval);
        ["$job", "$instance", "$keyspace"].iter().fold(expr, |expr, variable| expr.replace(variable, ".+"))
    }

    /// Labels that the legend names.
    pub(crate) fn legend_labels(&self) -> Vec<String> {
        self.legend
            .split("{{")
            .skip(1)
            .filter_map(|rest| rest.split_once("}}"))
            .map(|(label, _)| label.trim().to_owned())
            .collect()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
