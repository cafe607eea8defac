//! A real Prometheus for a test, through `tests/tools/prometheus`.

use std::fs;

use super::server::Server;

/// One series of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    /// Name, value of each label; the metric's name is the label `__name__`.
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) value: f64,
}

/// A running Prometheus.
pub(crate) struct Prometheus {
    /// Its address, `http://host:port`.
    pub(crate) url: String,
    server: Server,
}

impl Prometheus {
    /// One that scrapes these addresses (`host:port`) every second under the job name `keyheat`, with rules where there are some
    /// (the path of a file of them).
    pub(crate) fn start(targets: &[&str], rules: Option<&str>) -> Self {
        let server = Server::new("prometheus");
        let rule_files = rules.map(|path| format!("rule_files: [{path:?}]\n")).unwrap_or_default();
        let config = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}\n{rule_files}scrape_configs:\n  - job_name: keyheat\n    \
             static_configs: [{{targets: {targets:?}}}]\n"
        );
        fs::create_dir_all(server.dir()).expect("a folder");
        let path = server.dir().join("prometheus.yml");
        fs::write(&path, config).expect("a configuration");
        let url = server.start(&["start".to_owned(), path.display().to_string()]);
        Self { url, server }
    }

    /// What an expression gives now.
    ///
    /// # Errors
    /// What Prometheus says of an expression that it refuses.
    pub(crate) fn query(&self, expression: &str) -> Result<Vec<Series>, String> {
        let answer = self.server.run(&["ask".to_owned(), expression.to_owned()]);
        let answer: serde_json::Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
        if answer["status"] != "success" {
            return Err(answer["error"].as_str().unwrap_or("no reason given").to_owned());
        }
        let result = &answer["data"]["result"];
        match answer["data"]["resultType"].as_str() {
            Some("vector") => result.as_array().into_iter().flatten().map(series).collect(),
            Some("scalar") => Ok(vec![Series { labels: Vec::new(), value: number(&result[1])? }]),
            other => Err(format!("gave a {other:?}, which is no number a series")),
        }
    }
}

fn series(answer: &serde_json::Value) -> Result<Series, String> {
    let labels = answer["metric"].as_object().into_iter().flatten();
    let labels = labels.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned())).collect();
    Ok(Series { labels, value: number(&answer["value"][1])? })
}

/// Prometheus writes numbers as text: NaN and infinity have none in JSON.
fn number(answer: &serde_json::Value) -> Result<f64, String> {
    let text = answer.as_str().ok_or_else(|| format!("{answer} is no number"))?;
    text.parse().map_err(|error| format!("{text}: {error}"))
}
