//! `keyheat replay`.

use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::process::{Command, Stdio};

use crate::events::{events_with, write};
use crate::resident::{LIMIT, PROGRAM, computed, is_told, mebibytes, peak, read_by};
use crate::support::poll_until;
use crate::support::process::{PATIENCE, program};

const KEYS: u64 = 10_000_000;

#[test]
fn a_replay_of_ten_million_keys_stays_under_its_limit() {
    if !is_told() {
        return;
    }
    let mut child = Command::new(program())
        .args(["replay", "-", "--key", "/client", "--shard", "/shard", "--request-id", "/id", "--operation", "/op"])
        .args(["--output", "json", "--quiet"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let reading = std::thread::spawn(move || output.lines().map(Result::unwrap).last().unwrap_or_default());
    let mut input = BufWriter::new(child.stdin.take().unwrap());
    let (mut text, mut sent) = (String::new(), 0);
    for number in 0..events_with(KEYS) {
        write(&mut text, number);
        text.push('\n');
        input.write_all(text.as_bytes()).unwrap();
        sent += text.len() as u64;
    }
    input.flush().unwrap();
    // All of it is read and it waits for more: that is when its memory can be asked for.
    poll_until("the replay to have read all", PATIENCE, || {
        read_by(child.id()).filter(|read| *read >= sent).map(|_| ())
    });
    let peak = peak(child.id()).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    let summary: serde_json::Value = serde_json::from_str(&reading.join().unwrap()).unwrap();
    let minimal = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/config/good/minimal.toml");
    let counting = computed(minimal)["counting"].as_u64().unwrap();
    println!("notice: replay took {} at most for {KEYS} keys", mebibytes(peak));
    assert_eq!(summary["counted"].as_u64(), Some(events_with(KEYS)), "{summary}");
    assert!(summary["keys"]["upper"].as_u64().unwrap() >= KEYS, "{summary}");
    assert!(summary["flagged"].as_u64().unwrap() >= 1_000, "the warm keys were followed: {summary}");
    assert!(peak < counting + PROGRAM, "{}, counting by itself {}", mebibytes(peak), mebibytes(counting));
    assert!(peak < LIMIT, "{} of {}", mebibytes(peak), mebibytes(LIMIT));
}
