//! Families in the Prometheus text format.

use prometheus::proto;

use crate::telemetry::{Definition, Family, Kind, Sample, Value};

/// The text format, version 0.0.4.
///
/// # Errors
/// When a family has no series, or two kinds of value in one family: a mistake in telemetry, never in the input.
pub fn exposition(families: &[Family]) -> Result<String, prometheus::Error> {
    let families: Vec<proto::MetricFamily> = families.iter().map(family).collect();
    prometheus::TextEncoder::new().encode_to_string(&families)
}

fn family(family: &Family) -> proto::MetricFamily {
    let definition = family.definition;
    let mut out = proto::MetricFamily::default();
    out.set_name(definition.name.to_owned());
    out.set_help(definition.help.to_owned());
    out.set_field_type(match definition.kind {
        Kind::Counter => proto::MetricType::COUNTER,
        Kind::Gauge => proto::MetricType::GAUGE,
        Kind::Histogram { .. } => proto::MetricType::HISTOGRAM,
    });
    out.set_metric(family.samples.iter().map(|sample| metric(definition, sample)).collect());
    out
}

fn metric(definition: &Definition, sample: &Sample) -> proto::Metric {
    let pair = |(label, value): (&crate::telemetry::Label, &String)| {
        let mut pair = proto::LabelPair::default();
        pair.set_name(label.name.to_owned());
        pair.set_value(value.clone());
        pair
    };
    let mut out = proto::Metric::from_label(definition.labels.iter().zip(&sample.labels).map(pair).collect());
    match (&sample.value, definition.kind) {
        (Value::Number(number), Kind::Counter) => {
            let mut counter = proto::Counter::default();
            counter.set_value(*number);
            out.set_counter(counter);
        }
        (Value::Number(number), _) => {
            let mut gauge = proto::Gauge::default();
            gauge.set_value(*number);
            out.set_gauge(gauge);
        }
        (Value::Histogram { buckets, count, sum }, _) => out.set_histogram(histogram(buckets, *count, *sum)),
    }
    out
}

fn histogram(buckets: &[(f64, u64)], count: u64, sum: f64) -> proto::Histogram {
    let bucket = |(bound, cumulative): &(f64, u64)| {
        let mut bucket = proto::Bucket::default();
        bucket.set_upper_bound(*bound);
        bucket.set_cumulative_count(*cumulative);
        bucket
    };
    let mut out = proto::Histogram::default();
    out.set_bucket(buckets.iter().map(bucket).collect());
    out.set_sample_count(count);
    out.set_sample_sum(sum);
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::telemetry::{KeyspaceLabels, Telemetry, TelemetrySettings};
    use crate::units::Span;

    #[test]
    fn the_text_has_help_type_and_series() {
        let keyspaces = vec![KeyspaceLabels { name: "customer".to_owned(), windows: vec![Span::from_secs(10)] }];
        let telemetry = Telemetry::new(TelemetrySettings::new(keyspaces));
        telemetry.add_read(3, 99);
        telemetry.observe_tick(Duration::from_micros(2500));
        let text = exposition(&telemetry.families(&[], &[])).unwrap();
        for line in [
            "# TYPE keyheat_records_read_total counter",
            "# HELP keyheat_records_read_total Records read from the input.",
            "keyheat_records_read_total 3",
            "keyheat_records_refused_total{reason=\"not_json\"} 0",
            "keyheat_distinct_keys{keyspace=\"customer\",window=\"10s\",bound=\"upper\"} 0",
            "keyheat_tick_duration_seconds_bucket{le=\"0.0025\"} 1",
            "keyheat_tick_duration_seconds_bucket{le=\"+Inf\"} 1",
            "keyheat_tick_duration_seconds_sum 0.0025",
        ] {
            assert!(text.lines().any(|found| found == line), "missing: {line}\n{text}");
        }
    }
}
