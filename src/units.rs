//! Quantities with their unit in the type: checked constructors, named failures.
//!
//! A number that crosses a module boundary is one of these, or carries its unit last in its name (`_ms`, `_per_s`).

use std::fmt;
use std::str::FromStr;

use jiff::SignedDuration;
use jiff::civil::{DateTime, date};
use serde::{Deserialize, Serialize};

/// A moment of event time: milliseconds since 1970-01-01T00:00:00Z, from 1 ms to the end of the year 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventTime(i64);

/// The last millisecond of the year 9999: the last one that RFC 3339 can write.
const MAX_TIME_MS: i64 = 253_402_300_799_999;

const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

/// A number of milliseconds that is no event time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("time out of range: {0} ms since the epoch, which should be from 1 to {MAX_TIME_MS}; give milliseconds")]
pub struct TimeOutOfRange(pub i64);

impl EventTime {
    /// The earliest event time.
    pub const MIN: Self = Self(1);
    /// The latest event time.
    pub const MAX: Self = Self(MAX_TIME_MS);

    /// The moment `millis` milliseconds after the epoch.
    ///
    /// # Errors
    /// [`TimeOutOfRange`] before 1 ms or after the year 9999.
    pub const fn from_millis(millis: i64) -> Result<Self, TimeOutOfRange> {
        if millis < 1 || millis > MAX_TIME_MS { Err(TimeOutOfRange(millis)) } else { Ok(Self(millis)) }
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This moment later by `span`, at most [`EventTime::MAX`].
    #[must_use]
    pub fn saturating_add(self, span: Span) -> Self {
        Self(self.0.saturating_add_unsigned(span.as_millis()).min(MAX_TIME_MS))
    }

    /// This moment earlier by `span`, at least [`EventTime::MIN`].
    #[must_use]
    pub fn saturating_sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub_unsigned(span.as_millis()).max(1))
    }

    /// How long `earlier` lies before this moment; zero when it does not.
    #[must_use]
    pub fn since(self, earlier: Self) -> Span {
        Span::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// RFC 3339 in UTC with milliseconds, e.g. `2026-11-30T10:11:32.120Z`.
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        // A civil time reaches to the end of the year 9999; a `jiff::Timestamp` ends 26 hours earlier.
        match EPOCH.checked_add(SignedDuration::from_millis(self.0)) {
            Ok(utc) => format!("{utc:.3}Z"),
            Err(_) => unreachable_range(self.0),
        }
    }
}

/// The range of [`EventTime`] lies inside that of a civil time, so this text is never seen; a display does not panic.
fn unreachable_range(millis: i64) -> String {
    format!("{millis} ms")
}

impl fmt::Display for EventTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_rfc3339())
    }
}

/// A length of time in whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(u64);

/// A text that is no length of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid length of time '{0}', which should be a whole number followed by ms, s, m, h or d, e.g. 10s")]
pub struct InvalidSpan(pub String);

impl Span {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// A length of `millis` milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// A length of `secs` seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// Milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Seconds with their fraction.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "exact below 2^53 ms, 285,000 years")]
    pub const fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// The same length for the standard library's waits.
    #[must_use]
    pub const fn to_duration(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0)
    }

    /// The sum, at most the longest span.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// What is left of this length without `other`; no time when `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This length `times` over, at most the longest span.
    #[must_use]
    pub const fn saturating_mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }

    /// True for no time.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl FromStr for Span {
    type Err = InvalidSpan;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidSpan(text.chars().take(64).collect());
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at_checked(digits).ok_or_else(invalid)?;
        let millis_each: u64 = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(invalid()),
        };
        let number: u64 = number.parse().map_err(|_| invalid())?;
        number.checked_mul(millis_each).map(Self).ok_or_else(invalid)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = match self.0 {
            0 => (0, "s"),
            ms if ms % 86_400_000 == 0 => (ms / 86_400_000, "d"),
            ms if ms % 3_600_000 == 0 => (ms / 3_600_000, "h"),
            ms if ms % 60_000 == 0 => (ms / 60_000, "m"),
            ms if ms % 1000 == 0 => (ms / 1000, "s"),
            ms => (ms, "ms"),
        };
        write!(f, "{number}{unit}")
    }
}

/// What is known of a count: `lower <= true <= upper`. It never travels as one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The count is at least this.
    pub lower: u64,
    /// The count is at most this.
    pub upper: u64,
}

impl Estimate {
    /// A count that is known exactly.
    #[must_use]
    pub const fn exact(count: u64) -> Self {
        Self { lower: count, upper: count }
    }

    /// True when both bounds meet.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        self.lower == self.upper
    }

    /// The tighter of both sides: what two valid estimates of one count say together.
    #[must_use]
    pub fn best(self, other: Self) -> Self {
        Self { lower: self.lower.max(other.lower), upper: self.upper.min(other.upper) }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_exact() { write!(f, "{}", self.lower) } else { write!(f, "{}..{}", self.lower, self.upper) }
    }
}

impl Estimate {
    /// Which part of `whole` events these are; anything when there are none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share is for display: 53 bits are enough")]
    pub fn share_of(self, whole: u64) -> ShareBounds {
        let part = |count: u64| Share(count.min(whole) as f64 / whole as f64);
        let known = ShareBounds { lower: part(self.lower), upper: part(self.upper) };
        if whole == 0 { ShareBounds { lower: Share(0.0), upper: Share(1.0) } } else { known }
    }
}

/// A share that is not known exactly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ShareBounds {
    /// The share is at least this.
    pub lower: Share,
    /// The share is at most this.
    pub upper: Share,
}

impl fmt::Display for ShareBounds {
    /// Percent with one decimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [lower, upper] = [self.lower, self.upper].map(|share| format!("{:.1}", share.0 * 100.0));
        if lower == upper { write!(f, "{lower} %") } else { write!(f, "{lower}..{upper} %") }
    }
}

/// Events per second, finite and not negative.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(f64);

/// A text or number that is no rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid rate '{0}', which should be a number above 0, events per second, e.g. 1000/s")]
pub struct InvalidRate(pub String);

impl Rate {
    /// `per_s` events per second.
    ///
    /// # Errors
    /// [`InvalidRate`] when not finite or below 0.
    pub fn per_second(per_s: f64) -> Result<Self, InvalidRate> {
        if per_s.is_finite() && per_s >= 0.0 { Ok(Self(per_s)) } else { Err(InvalidRate(per_s.to_string())) }
    }

    /// The mean rate of `count` events in `span`; 0 in no time.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate is for display and sizing: 53 bits are enough")]
    pub fn of(count: u64, span: Span) -> Self {
        if span.is_zero() { Self(0.0) } else { Self(count as f64 / span.as_secs_f64()) }
    }

    /// Events per second.
    #[must_use]
    pub const fn as_per_second(self) -> f64 {
        self.0
    }

    /// The least whole count that reaches this rate in `span`: `ceil(rate x span)`.
    ///
    /// A product that misses a whole number by the rounding of its factors (8.3/s over 60 s is 498.00000000000006) is taken for it.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "finite and not negative by construction; `as` saturates above u64"
    )]
    pub fn count_in(self, span: Span) -> u64 {
        let product = self.0 * span.as_secs_f64();
        (product - product * 1e-12).ceil() as u64
    }
}

impl FromStr for Rate {
    type Err = InvalidRate;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidRate(text.chars().take(64).collect());
        let number: f64 = text.strip_suffix("/s").unwrap_or(text).parse().map_err(|_| invalid())?;
        if number > 0.0 { Self::per_second(number).map_err(|_| invalid()) } else { Err(invalid()) }
    }
}

/// A part of a whole, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Share(f64);

/// A text or number that is no share.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid share '{0}', which should be from 0 to 1 or a percentage, e.g. 2%")]
pub struct InvalidShare(pub String);

impl Share {
    /// `share` of 1.
    ///
    /// # Errors
    /// [`InvalidShare`] outside 0..=1.
    pub fn new(share: f64) -> Result<Self, InvalidShare> {
        if (0.0..=1.0).contains(&share) { Ok(Self(share)) } else { Err(InvalidShare(share.to_string())) }
    }

    /// From 0 to 1.
    #[must_use]
    pub const fn as_f64(self) -> f64 {
        self.0
    }
}

impl FromStr for Share {
    type Err = InvalidShare;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidShare(text.chars().take(64).collect());
        let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
        let number: f64 = number.parse().map_err(|_| invalid())?;
        Self::new(number / whole).map_err(|_| invalid())
    }
}

/// The number of a Kafka partition, or of a part of another source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Partition(pub i32);

/// A place in a partition: the number of the next record to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Offset(pub i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_outside_the_calendar_are_refused() {
        for millis in [i64::MIN, -1, 0, MAX_TIME_MS + 1, i64::MAX] {
            assert_eq!(EventTime::from_millis(millis), Err(TimeOutOfRange(millis)));
        }
        assert_eq!(EventTime::from_millis(1_796_033_492_120).unwrap().to_string(), "2026-11-30T10:11:32.120Z");
        assert_eq!(EventTime::MAX.to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!(EventTime::MAX.saturating_add(Span::from_secs(1)), EventTime::MAX);
        assert_eq!(EventTime::MIN.saturating_sub(Span::from_secs(1)), EventTime::MIN);
    }

    #[test]
    fn spans_read_back_as_written() {
        for text in ["0s", "1ms", "10s", "1500ms", "5m", "2h", "7d"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        for text in ["", "10", "s", "-1s", "1.5s", "10 s", "99999999999999999999s", "9999999999999999d", "1µs"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn rates_and_shares_know_their_bounds() {
        assert_eq!("1000/s".parse::<Rate>().unwrap().count_in(Span::from_secs(10)), 10_000);
        assert_eq!("0.15".parse::<Rate>().unwrap().count_in(Span::from_secs(10)), 2);
        for (tenths, seconds) in
            (1..2_000u64).flat_map(|tenths| [1u64, 5, 10, 60, 300].map(|seconds| (tenths, seconds)))
        {
            let rate: Rate = format!("{}.{}/s", tenths / 10, tenths % 10).parse().unwrap();
            let exact = (tenths * seconds).div_ceil(10);
            assert_eq!(rate.count_in(Span::from_secs(seconds)), exact, "{tenths} tenths a second over {seconds} s");
        }
        for text in ["0", "-1/s", "NaN", "inf", "fast"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
        assert_eq!("2%".parse::<Share>().unwrap(), Share::new(0.02).unwrap());
        for text in ["101%", "-0.1", "NaN", "half"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }

    #[test]
    fn two_estimates_of_one_count_give_the_tighter_one() {
        let best = Estimate { lower: 3, upper: 9 }.best(Estimate { lower: 1, upper: 7 });
        assert_eq!(best, Estimate { lower: 3, upper: 7 });
        assert_eq!(best.to_string(), "3..7");
        assert_eq!(Estimate::exact(4).to_string(), "4");
    }
}
