//! What a run of the demo comes to.

use serde::{Serialize, Serializer};

/// The summary: one object for scripts, a few lines for people.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Everything that the demo is to show was seen, and no read missed a record.
    pub closed: bool,
    /// How long it ran.
    #[serde(serialize_with = "one_digit")]
    pub seconds: f64,
    /// Access events that Kafka has taken.
    pub events: u64,
    /// Load of the hottest shard as a multiple of the median shard's: the highest while the client was hot and not split.
    #[serde(serialize_with = "two_digits")]
    pub imbalance_before: Option<f64>,
    /// The same at the end, in a window that began after the split had settled.
    #[serde(serialize_with = "two_digits")]
    pub imbalance_after: Option<f64>,
    /// Buckets of the split; null when none has settled.
    pub buckets: Option<u32>,
    /// From the moment the client turned hot until the service said so.
    pub detected_after_ms: Option<u64>,
    /// From the moment the client turned hot until its split had settled.
    pub settled_after_ms: Option<u64>,
    /// Reads that were checked against what their readers had written.
    pub reads_checked: u64,
    /// Of these, wrong: a record was missed, or an older one found.
    pub reads_missed: u64,
}

impl Summary {
    /// The summary as text.
    #[must_use]
    pub fn to_lines(&self) -> Vec<String> {
        let times = |imbalance: Option<f64>| imbalance.map_or_else(|| "-".to_owned(), |times| format!("{times:.2}"));
        let after = |ms: Option<u64>| ms.map_or_else(|| "never".to_owned(), |ms| format!("after {} ms", grouped(ms)));
        let buckets = self.buckets.map_or_else(|| "no split".to_owned(), |buckets| format!("{buckets} buckets"));
        vec![
            format!("loop closed               {}", if self.closed { "yes" } else { "no" }),
            format!(
                "hottest shard / median    {} before, {} after",
                times(self.imbalance_before),
                times(self.imbalance_after)
            ),
            format!("hot client detected       {}", after(self.detected_after_ms)),
            format!("split settled             {}, {buckets}", after(self.settled_after_ms)),
            format!(
                "reads                     {} checked, {} missed a record",
                grouped(self.reads_checked),
                grouped(self.reads_missed)
            ),
            format!("events                    {} in {:.1} s", grouped(self.events), self.seconds),
        ]
    }
}

/// A number with its thousands apart.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn one_digit<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((number * 10.0).round() / 10.0)
}

#[expect(clippy::ref_option, reason = "the signature that serde calls")]
fn two_digits<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    number.map(|number| (number * 100.0).round() / 100.0).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        Summary {
            closed: true,
            seconds: 60.04,
            events: 1_234_567,
            imbalance_before: Some(7.418),
            imbalance_after: Some(1.104),
            buckets: Some(8),
            detected_after_ms: Some(2512),
            settled_after_ms: Some(7001),
            reads_checked: 999,
            reads_missed: 0,
        }
    }

    #[test]
    fn scripts_get_one_object_with_these_fields() {
        assert_eq!(
            serde_json::to_string(&summary()).unwrap(),
            r#"{"closed":true,"seconds":60.0,"events":1234567,"imbalance_before":7.42,"imbalance_after":1.1,"buckets":8,"detected_after_ms":2512,"settled_after_ms":7001,"reads_checked":999,"reads_missed":0}"#
        );
        let nothing = Summary { imbalance_after: None, buckets: None, settled_after_ms: None, ..summary() };
        let object = serde_json::to_value(&nothing).unwrap();
        for absent in ["imbalance_after", "buckets", "settled_after_ms"] {
            assert!(object[absent].is_null(), "{absent}");
        }
    }

    #[test]
    fn people_get_lines() {
        assert_eq!(
            summary().to_lines().join("\n"),
            "loop closed               yes\n\
             hottest shard / median    7.42 before, 1.10 after\n\
             hot client detected       after 2,512 ms\n\
             split settled             after 7,001 ms, 8 buckets\n\
             reads                     999 checked, 0 missed a record\n\
             events                    1,234,567 in 60.0 s"
        );
    }

    #[test]
    fn thousands_are_set_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(grouped(number), text);
        }
    }
}
