//! kcat as the independent reader: another program, linked against another version of the client library.

use std::process::Command;

use super::Record;

/// First the lengths as text, then the bytes as they are, so that any byte may be in a key or a value.
const FORMAT: &str = "%p %o %T %K %S\n%k%s%h\n";

/// Reads a topic from its beginning to its end.
///
/// Headers come as `name=value` with commas between them: a value with a comma or a line feed in it cannot be told apart.
pub(super) fn read_all(bootstrap: &str, topic: &str) -> Vec<Record> {
    let output = Command::new("kcat")
        .args(["-C", "-q", "-e", "-b", bootstrap, "-t", topic, "-o", "beginning", "-f", FORMAT])
        .args(["-X", "check.crcs=true"])
        .output()
        .expect("kcat is installed (Debian's package kcat)");
    assert!(output.status.success(), "kcat failed: {}", String::from_utf8_lossy(&output.stderr));
    let mut rest = output.stdout.as_slice();
    let mut records = Vec::new();
    while !rest.is_empty() {
        records.push(take_record(&mut rest));
    }
    records.sort_by_key(|record| (record.partition, record.offset));
    records
}

fn take_record(rest: &mut &[u8]) -> Record {
    let line = String::from_utf8(take_line(rest).to_vec()).expect("a line of numbers");
    let numbers: Vec<i64> = line.split(' ').map(|number| number.parse().expect("a number")).collect();
    let &[partition, offset, time_ms, key_len, value_len] = numbers.as_slice() else {
        panic!("kcat printed {line:?} where five numbers belong");
    };
    let key = take(rest, key_len);
    let value = take(rest, value_len);
    let headers = take_line(rest);
    Record {
        partition: i32::try_from(partition).ok(),
        offset: Some(offset),
        time_ms: Some(time_ms),
        key,
        value,
        headers: headers.split(|&byte| byte == b',').filter(|header| !header.is_empty()).map(header).collect(),
    }
}

fn header(text: &[u8]) -> (String, Option<Vec<u8>>) {
    let text = String::from_utf8_lossy(text);
    let (name, value) = text.split_once('=').expect("a header is printed as name=value");
    (name.to_owned(), (value != "NULL").then(|| value.as_bytes().to_vec()))
}

/// A length of -1 is null; an empty key or value has the length 0.
fn take(rest: &mut &[u8], len: i64) -> Option<Vec<u8>> {
    let len = usize::try_from(len).ok()?;
    let (taken, after) = rest.split_at(len);
    *rest = after;
    Some(taken.to_vec())
}

fn take_line<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let end = rest.iter().position(|&byte| byte == b'\n').expect("a line ends");
    let (line, after) = rest.split_at(end);
    *rest = after.split_first().map_or(after, |(_, after)| after);
    line
}
