//! Ranges of keys: by their bytes, or by a date that stands in them. Each begins where the one before it ends.

use jiff::civil::Date;

use super::{InvalidMapper, MAX_RANGES};

/// Where each range begins, in ascending order, with the number of its shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ranges<T>(Vec<(T, usize)>);

impl<T: Ord> Ranges<T> {
    pub(super) fn new(begins: Vec<(T, usize)>) -> Result<Self, InvalidMapper> {
        let fault = |rule, remedy| Err(InvalidMapper { setting: "ranges", rule, remedy });
        if begins.is_empty() || begins.len() > MAX_RANGES {
            return fault(format!("should be 1 to {MAX_RANGES} ranges"), "each begins where the one before it ends");
        }
        if let Some(index) = begins.windows(2).position(|pair| pair[0].0 >= pair[1].0) {
            let rule = format!("should ascend, and ranges[{}] does not begin behind ranges[{index}]", index + 1);
            return fault(rule, "put them in the order of from");
        }
        Ok(Self(begins))
    }

    /// The shard of the last range that begins at or before something; none before the first.
    fn last(&self, begins_at_or_before: impl Fn(&T) -> bool) -> Option<usize> {
        let behind = self.0.partition_point(|(from, _)| begins_at_or_before(from));
        self.0.get(behind.checked_sub(1)?).map(|(_, shard)| *shard)
    }
}

/// Ranges of bytes: compared one by one, unsigned, and a key comes before every longer one that begins with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyRanges(Ranges<Vec<u8>>);

impl KeyRanges {
    pub(super) fn new(begins: Vec<(Vec<u8>, usize)>) -> Result<Self, InvalidMapper> {
        if begins.first().is_some_and(|(from, _)| !from.is_empty()) {
            let rule = "should begin with the least of all keys, so that each key is in a range".to_owned();
            return Err(InvalidMapper { setting: "ranges", rule, remedy: "leave from out in the first one" });
        }
        Ranges::new(begins).map(Self)
    }

    pub(super) fn shard_of(&self, key: &[u8]) -> usize {
        self.0.last(|from| from.as_slice() <= key).unwrap_or(0)
    }
}

/// Where the date stands in a key: `2026-11-30` or `20261130`, whatever follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatePlace {
    /// What separates the parts of a key.
    pub delimiter: String,
    /// The number of the part that begins with the date, from 0.
    pub part: usize,
}

impl DatePlace {
    fn date_in(&self, key: &[u8]) -> Option<Date> {
        let mut rest = key;
        for _ in 0..self.part {
            let delimiter = self.delimiter.as_bytes();
            let at = rest.windows(delimiter.len().max(1)).position(|window| window == delimiter)?;
            rest = rest.get(at + delimiter.len()..)?;
        }
        let digits = |from, to| rest.get(from..to).and_then(number);
        let (month, day) = if rest.get(4) == Some(&b'-') && rest.get(7) == Some(&b'-') {
            (digits(5, 7)?, digits(8, 10)?)
        } else {
            (digits(4, 6)?, digits(6, 8)?)
        };
        Date::new(digits(0, 4)?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
    }
}

/// Up to four digits.
fn number(digits: &[u8]) -> Option<i16> {
    let add = |number: i16, digit: &u8| digit.is_ascii_digit().then(|| 10 * number + i16::from(digit - b'0'));
    digits.iter().try_fold(0, add)
}

/// Ranges of dates, and a shard for keys with no date or an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DateRanges {
    place: DatePlace,
    ranges: Ranges<Date>,
    otherwise: usize,
}

impl DateRanges {
    pub(super) fn new(place: DatePlace, begins: Vec<(Date, usize)>, otherwise: usize) -> Result<Self, InvalidMapper> {
        if place.part > 0 && place.delimiter.is_empty() {
            let rule = "should be the text between the parts of a key".to_owned();
            return Err(InvalidMapper { setting: "delimiter", rule, remedy: "e.g. \":\"" });
        }
        Ok(Self { place, ranges: Ranges::new(begins)?, otherwise })
    }

    pub(super) fn shard_of(&self, key: &[u8]) -> usize {
        let date = self.place.date_in(key);
        date.and_then(|date| self.ranges.last(|from| *from <= date)).unwrap_or(self.otherwise)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_are_compared_unsigned_and_a_begin_belongs_to_its_range() {
        let begins = [&b""[..], b"acme", b"m", b"m:5", b"\x80"];
        let ranges = KeyRanges::new(begins.iter().zip(0..).map(|(from, n)| (from.to_vec(), n)).collect()).unwrap();
        for (key, shard) in [
            (&b""[..], 0),
            (b"Zulu", 0),
            (b"acm", 0),
            (b"acme", 1),
            (b"acme:1", 1),
            (b"lx\xff", 1),
            (b"m", 2),
            (b"m:4\xff", 2),
            (b"m:5", 3),
            (b"m:50", 3),
            (b"\x7f\xff", 3),
            (b"\x80", 4),
            ("é".as_bytes(), 4),
            (b"\xff\xff", 4),
        ] {
            assert_eq!(ranges.shard_of(key), shard, "{}", key.escape_ascii());
        }
    }

    #[test]
    fn dates_are_found_where_they_stand() {
        let date = |text: &str| text.parse::<Date>().unwrap();
        let begins = vec![(date("2026-01-01"), 1), (date("2026-11-30"), 2), (date("2027-01-01"), 3)];
        let at = |part, delimiter: &str| {
            DateRanges::new(DatePlace { delimiter: delimiter.to_owned(), part }, begins.clone(), 0).unwrap()
        };
        for (part, delimiter, key, shard) in [
            (0, ":", "2026-11-29:c42", 1),
            (0, ":", "2026-11-30:c42", 2),
            (0, ":", "2026-11-30T23:59:59Z", 2),
            (0, ":", "20261129", 1),
            (0, "-", "20270101-c42", 3),
            (0, ":", "2025-12-31", 0),
            (0, ":", "2026-02-30", 0),
            (0, ":", "2026-1-01", 0),
            (0, ":", "c42", 0),
            (0, ":", "", 0),
            (1, ":", "c42:2026-11-30:17", 2),
            (1, ":", "c42:2026-01-01", 1),
            (1, "/", "c42/20271231/x", 3),
            (2, "::", "a::b::2026-12-01", 2),
            (1, ":", "c42", 0),
            (1, ":", "c42:", 0),
            (1, ":", "c42:+026-12-01", 0),
        ] {
            assert_eq!(at(part, delimiter).shard_of(key.as_bytes()), shard, "{key}");
        }
    }

    #[test]
    fn ranges_that_leave_keys_out_or_do_not_ascend_are_refused() {
        let refused = |begins: &[&str]| {
            KeyRanges::new(begins.iter().map(|from| (from.as_bytes().to_vec(), 0)).collect()).unwrap_err().rule
        };
        assert!(refused(&[]).contains("1 to 16384 ranges"));
        assert!(refused(&["a"]).contains("least of all keys"));
        assert!(refused(&["", "b", "a"]).contains("ranges[2] does not begin behind ranges[1]"));
        assert!(refused(&["", "b", "b"]).contains("ranges[2]"));
        let place = DatePlace { delimiter: String::new(), part: 1 };
        assert_eq!(DateRanges::new(place, vec![(Date::MIN, 0)], 0).unwrap_err().setting, "delimiter");
    }

    proptest! {
        #[test]
        fn the_last_range_that_begins_at_or_before_a_key_has_it(begins in prop::collection::btree_set("[a-c]{1,3}", 0..8), key in "[a-c]{0,4}") {
            let begins: Vec<Vec<u8>> = [Vec::new()].into_iter().chain(begins.into_iter().map(String::into_bytes)).collect();
            let ranges = KeyRanges::new(begins.iter().cloned().zip(0..).collect()).unwrap();
            let expected = (0..begins.len()).rev().find(|index| begins[*index].as_slice() <= key.as_bytes());
            prop_assert_eq!(Some(ranges.shard_of(key.as_bytes())), expected);
        }

        #[test]
        fn no_key_makes_a_date_panic(key in prop::collection::vec(any::<u8>(), 0..24), part in 0..3_usize) {
            let place = DatePlace { delimiter: ":".to_owned(), part };
            let ranges = DateRanges::new(place, vec![(Date::MIN, 1)], 0).unwrap();
            prop_assert!(ranges.shard_of(&key) < 2);
        }
    }
}
