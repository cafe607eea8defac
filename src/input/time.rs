//! The time of an event, read from text.
//!
//! | Text (a JSON number, or a string of the same form) | Read as |
//! |---|---|
//! | number below 10^11 | seconds since 1970-01-01T00:00:00Z |
//! | number below 10^14 | milliseconds |
//! | number below 10^17 | microseconds |
//! | any other number | nanoseconds |
//! | `2026-11-30T10:11:32.120Z`, also with `+01:00` or `+0100`, a space or `t` for the `T`, `,` for the `.` | RFC 3339 |
//!
//! Numbers may have a fraction and an exponent; they are read as decimals, never through a double. What is finer than a
//! millisecond is cut off. Second 60 is the first of the next minute. Everything else is refused: a time without a zone, which
//! would mean another moment on every host; a negative number; a moment before 1 ms or after the year 9999.

use crate::units::EventTime;

/// Reads the time of an event: epoch seconds, milliseconds, microseconds or nanoseconds by magnitude, with or without a fraction
/// and an exponent, or RFC 3339 with its zone.
#[must_use]
pub fn parse_time(text: &[u8]) -> Option<EventTime> {
    let millis = match text {
        [b'0'..=b'9', _, _, b'0'..=b'9', b'-', ..] => parse_rfc3339(text)?,
        [b'0'..=b'9', ..] => parse_number(text)?,
        _ => return None,
    };
    EventTime::from_millis(millis).ok()
}

/// Decimal digits beyond these cannot change a millisecond of the calendar, whatever the unit.
const MAX_DIGITS: u32 = 30;

/// A decimal number: `mantissa x 10^exponent`.
struct Decimal {
    mantissa: u128,
    exponent: i32,
}

fn parse_number(text: &[u8]) -> Option<i64> {
    if text.len() <= 18 && text.iter().all(u8::is_ascii_digit) {
        let number = text.iter().fold(0_i64, |number, digit| number * 10 + i64::from(digit - b'0'));
        return Some(match number {
            0..100_000_000_000 => number * 1000,
            100_000_000_000..100_000_000_000_000 => number,
            100_000_000_000_000..100_000_000_000_000_000 => number / 1000,
            _ => number / 1_000_000,
        });
    }
    let number = parse_decimal(text)?;
    let unit_exponent = match number.floor_times_ten_to(0)? {
        0..100_000_000_000 => 3,
        100_000_000_000..100_000_000_000_000 => 0,
        100_000_000_000_000..100_000_000_000_000_000 => -3,
        _ => -6,
    };
    i64::try_from(number.floor_times_ten_to(unit_exponent)?).ok()
}

impl Decimal {
    /// `floor(self x 10^power)`; none beyond 128 bits, which no time reaches.
    fn floor_times_ten_to(&self, power: i32) -> Option<u128> {
        let exponent = self.exponent.checked_add(power)?;
        if self.mantissa == 0 {
            return Some(0);
        }
        match 10_u128.checked_pow(exponent.unsigned_abs()) {
            Some(factor) if exponent >= 0 => self.mantissa.checked_mul(factor),
            Some(factor) => Some(self.mantissa / factor),
            None if exponent >= 0 => None,
            None => Some(0),
        }
    }
}

/// `digits[.digits][e[+-]digits]`; leading zeros are allowed, as strings have them.
fn parse_decimal(text: &[u8]) -> Option<Decimal> {
    let (whole, rest) = split_digits(text);
    let (fraction, rest) = match rest.split_first() {
        Some((b'.', rest)) => split_digits(rest),
        _ => (&[] as &[u8], rest),
    };
    if whole.is_empty() || (fraction.is_empty() && text.get(whole.len()) == Some(&b'.')) {
        return None;
    }
    let exponent = match rest.split_first() {
        None => 0,
        Some((b'e' | b'E', digits)) => parse_exponent(digits)?,
        Some(_) => return None,
    };
    let mut number = Decimal { mantissa: 0, exponent };
    let mut kept = 0;
    for (digits, is_fraction) in [(whole, false), (fraction, true)] {
        for digit in digits {
            let keep = kept < MAX_DIGITS;
            if keep {
                number.mantissa = number.mantissa * 10 + u128::from(digit - b'0');
                kept += u32::from(number.mantissa != 0);
            }
            number.exponent = number.exponent.checked_add(i32::from(!keep) - i32::from(is_fraction))?;
        }
    }
    Some(number)
}

fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

fn parse_exponent(text: &[u8]) -> Option<i32> {
    let (sign, digits) = match text.split_first()? {
        (b'-', digits) => (-1, digits),
        (b'+', digits) => (1, digits),
        _ => (1, text),
    };
    let (digits, rest) = split_digits(digits);
    if digits.is_empty() || !rest.is_empty() {
        return None;
    }
    // Beyond nine digits the number is zero or out of range all the same.
    let clamped =
        digits.iter().fold(0_i32, |exponent, digit| (exponent * 10 + i32::from(digit - b'0')).min(99_999_999));
    Some(sign * clamped)
}

/// Milliseconds since the epoch.
fn parse_rfc3339(text: &[u8]) -> Option<i64> {
    let number = |from: usize, to: usize| {
        let digits = text.get(from..to)?;
        let all = digits.iter().all(u8::is_ascii_digit);
        all.then(|| digits.iter().fold(0_i64, |number, digit| number * 10 + i64::from(digit - b'0')))
    };
    let sign = |at: usize| text.get(at).copied();
    let separators = (sign(4)?, sign(7)?, sign(10)?, sign(13)?, sign(16)?);
    if !matches!(separators, (b'-', b'-', b'T' | b't' | b' ', b':', b':')) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (fraction_ms, zone) = split_fraction(text.get(19..)?)?;
    let day_second = hour * 3600 + minute * 60 + second;
    let seconds = days_since_epoch(year, month, day) * 86_400 + day_second - parse_offset(zone)?;
    Some(seconds * 1000 + fraction_ms)
}

/// The milliseconds of `.123456`, if there is one, and what follows.
fn split_fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some((b'.' | b',', rest)) = text.split_first() else { return Some((0, text)) };
    let (digits, zone) = split_digits(rest);
    let digit = |place: usize| digits.get(place).map_or(0, |digit| i64::from(digit - b'0'));
    (!digits.is_empty()).then(|| (digit(0) * 100 + digit(1) * 10 + digit(2), zone))
}

/// Seconds east of UTC.
fn parse_offset(zone: &[u8]) -> Option<i64> {
    let (sign, digits) = match zone {
        [b'Z' | b'z'] => return Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] | [sign @ (b'+' | b'-'), h1, h2, m1, m2] => {
            (sign, [h1, h2, m1, m2])
        }
        _ => return None,
    };
    if !digits.iter().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let [h1, h2, m1, m2] = digits.map(|digit| i64::from(digit - b'0'));
    let (hours, minutes) = (h1 * 10 + h2, m1 * 10 + m2);
    let seconds = (hours * 60 + minutes) * 60;
    (hours <= 23 && minutes <= 59).then_some(if *sign == b'-' { -seconds } else { seconds })
}

fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap_year(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 in the Gregorian calendar. Years are taken to begin in March, so that the leap day is their last.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let (year, months_since_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let day_of_year = (153 * months_since_march + 2) / 5 + day - 1;
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    year * 365 + leap_days + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn millis(text: &str) -> Option<i64> {
        parse_time(text.as_bytes()).map(EventTime::as_millis)
    }

    #[test]
    fn a15_the_unit_follows_from_the_magnitude() {
        for text in ["1700000000", "1700000000000", "1700000000000000", "1700000000000000000"] {
            assert_eq!(millis(text), Some(1_700_000_000_000), "{text}");
        }
        assert_eq!(millis("99999999999"), Some(99_999_999_999_000));
        assert_eq!(millis("100000000000"), Some(100_000_000_000));
        assert_eq!(millis("99999999999999"), Some(99_999_999_999_999));
        assert_eq!(millis("100000000000000"), Some(100_000_000_000));
        assert_eq!(millis("100000000000000000"), Some(100_000_000_000));
        assert_eq!(millis("9223372036854775807"), Some(9_223_372_036_854));
        for text in
            ["0", "-1", "", "0.0009", "253402300800000000000", "1e30", "99999999999999999999999", "1e999999999999"]
        {
            assert_eq!(millis(text), None, "{text}");
        }
        assert_eq!(millis("253402300799999999999"), Some(253_402_300_799_999));
    }

    #[test]
    fn a16_numbers_and_digit_strings_of_every_form_are_equal() {
        for text in
            ["1700000000123", "1700000000123.0", "1.700000000123e12", "1700000000.123", "1700000000.1239999999999"]
        {
            assert_eq!(millis(text), Some(1_700_000_000_123), "{text}");
        }
        assert_eq!(millis("1796033492.468"), Some(1_796_033_492_468));
        assert_eq!(millis("001700000000"), Some(1_700_000_000_000));
        assert_eq!(millis(&format!("1700000000.123{}", "9".repeat(60))), Some(1_700_000_000_123));
        assert_eq!(millis(&format!("17000000001239{}e-20", "0".repeat(19))), Some(1_700_000_000_123));
        for text in [
            "NaN",
            "true",
            "1.",
            ".5",
            "1e",
            "1e+",
            "1700000000123 ",
            " 1700000000123",
            "17e3x",
            "+17",
            "0x10",
            "1_000",
        ] {
            assert_eq!(millis(text), None, "{text}");
        }
    }

    #[test]
    fn a14_a_time_without_zone_is_refused() {
        for text in ["2026-03-29T02:30:00", "2026-03-29 02:30:00.123", "2026-03-29", "2026-03-29T02:30"] {
            assert_eq!(millis(text), None, "{text}");
        }
    }

    #[test]
    fn rfc3339_in_its_usual_dialects() {
        let same = [
            "2026-11-30T10:11:32.120Z",
            "2026-11-30t10:11:32.12z",
            "2026-11-30 10:11:32,120999Z",
            "2026-11-30T11:11:32.120+01:00",
            "2026-11-30T05:41:32.120-0430",
        ];
        for text in same {
            assert_eq!(millis(text), Some(1_796_033_492_120), "{text}");
        }
        assert_eq!(millis("2016-12-31T23:59:60Z"), millis("2017-01-01T00:00:00Z"));
        assert_eq!(millis("9999-12-31T23:59:59.999Z"), Some(253_402_300_799_999));
        assert_eq!(millis("1970-01-01T00:00:00.001Z"), Some(1));
        let bad = [
            "1970-01-01T00:00:00Z",
            "9999-12-31T23:59:59-00:01",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-11-31T00:00:00Z",
            "2026-11-30T24:00:00Z",
            "2026-11-30T10:60:00Z",
            "2026-11-30T10:11:61Z",
            "2026-11-30T10:11:32.Z",
            "2026-11-30T10:11:32+24:00",
            "2026-11-30T10:11:32+1:00",
            "2026-11-30T10:11:32Zx",
            "2026-11-3aT10:11:32Z",
            "2026-11-30T10:11:32+01:0é",
            "2026-1",
        ];
        for text in bad {
            assert_eq!(millis(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn written_times_read_back(ms in 1_i64..=253_402_300_799_999) {
            let time = EventTime::from_millis(ms).unwrap();
            prop_assert_eq!(millis(&time.to_rfc3339()), Some(ms));
            if ms >= 100_000_000_000 {
                let unit = if ms < 100_000_000_000_000 { ms.to_string() } else { format!("{ms}000000") };
                prop_assert_eq!(millis(&unit), Some(ms));
                prop_assert_eq!(millis(&format!("{}e-3", format_args!("{unit}000"))), Some(ms));
            }
        }

        #[test]
        fn what_reads_as_rfc3339_reads_the_same_elsewhere(
            text in "(19|20|99)[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-][01][0-9]:[0-5][0-9])"
        ) {
            let reference = text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond);
            let reference = reference.filter(|ms| EventTime::from_millis(*ms).is_ok());
            prop_assert_eq!(millis(&text), reference);
        }

        #[test]
        fn no_text_is_a_panic(text in proptest::collection::vec(any::<u8>(), 0..40), digits in "[0-9]{4}[-.eE+0-9T:Z ]{0,30}") {
            let _ = parse_time(&text).map(EventTime::as_millis);
            let _ = millis(&digits);
        }
    }
}
