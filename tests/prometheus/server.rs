//! The Prometheus of the tests does what the other tests take for granted.

use std::time::Duration;

use super::support::{Prometheus, poll_until};

#[test]
fn what_is_scraped_can_be_asked_for() {
    // Nothing listens on port 1 of this machine: a target that is down, which Prometheus has to say.
    let prometheus = Prometheus::start(&["127.0.0.1:1"], None);
    let series = poll_until("the first scrape", Duration::from_secs(30), || {
        let series = prometheus.query("up").expect("a good expression");
        (!series.is_empty()).then_some(series)
    });
    let up: Vec<(Option<&str>, f64)> = series
        .iter()
        .map(|series| {
            let instance = series.labels.iter().find(|(name, _)| name == "instance").map(|(_, value)| value.as_str());
            (instance, series.value)
        })
        .collect();
    assert_eq!(up, [(Some("127.0.0.1:1"), 0.0)]);
    assert_eq!(prometheus.query("vector(1) / 0").map(|series| series[0].value), Ok(f64::INFINITY));
    assert_eq!(prometheus.query("1 + 1").map(|series| series[0].value), Ok(2.0));
    let refused = prometheus.query("rate(up").expect_err("a bad expression");
    assert!(refused.contains("parse error"), "{refused}");
}
