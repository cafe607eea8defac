//! One case of the counting bench, for a tool that counts instructions: clocks are noisy where others work, instructions are not.
//!
//! `instructions CASE EVENTS`: makes the stream, does the work once and prints what came out. `tests/tools/instructions` runs it
//! with two numbers of events, so that the difference is the work alone.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on panics")]
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

mod counting;

use counting::{Case, Stream};

fn main() {
    let arguments: Vec<String> = std::env::args().filter(|argument| argument != "--bench").collect();
    // `cargo test --all-targets` starts benchmarks as tests: nothing to measure there.
    let [_, name, events] = &arguments[..] else { return };
    let case = Case::ALL.into_iter().find(|case| case.name() == name).unwrap();
    let stream = Stream::new(events.parse().unwrap());
    println!("{}", case.run(&stream));
}
