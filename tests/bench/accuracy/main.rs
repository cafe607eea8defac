//! How right the counts are, beside two crates that find frequent items, on the same events in the same run.
//!
//! `cargo bench --bench accuracy [-- NAME]`: streams by Zipf 0.6, 0.8, 1.0 and 1.2, still and drifting, and every recording in the
//! folder that `KEYHEAT_DATA` names (else `../shared/data`); only those with NAME in theirs. At the end of each pane every contestant is
//! asked which keys have at least T events in the window that ends there, and the answers are compared with exact counts. Prints two
//! tables in Markdown. Ends with exit code 1 when keyheat missed a key with as many events as it promises to find (T, or `recall_above` where there
//! was no room for all), confirmed a wrong one, or gave bounds that do not hold the truth.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on panics")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a bench prints what it measured")]

mod contest;
mod score;
mod streams;

use std::process::ExitCode;

use contest::{Contest, Outcome};
use score::Score;

fn main() -> ExitCode {
    // `cargo test --all-targets` starts benchmarks as tests: nothing to measure there.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let mut outcomes = Vec::new();
    for stream in streams::zipf().chain(streams::recordings()) {
        let Some(stream) = stream.filter(|stream| stream.name.contains(&only)) else { continue };
        eprintln!("{} ...", stream.name);
        outcomes.extend(Contest::new(&stream).run());
    }
    print_own(&outcomes);
    print_rivals(&outcomes);
    let wrong: Vec<_> = outcomes.iter().filter(|outcome| !outcome.is_right()).map(|outcome| &outcome.name).collect();
    if wrong.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("keyheat missed a key, confirmed a wrong one or gave wrong bounds: {wrong:?}");
    ExitCode::FAILURE
}

fn print_own(outcomes: &[Outcome]) {
    println!(
        "| Events | T | hot | promised from | recall | precision | confirmed | precision | upper p50 | p99 | max | candidates | MiB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for Outcome { name, threshold, own, .. } in outcomes {
        println!(
            "| {name} | {threshold} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.1} |",
            own.hot,
            own.promised,
            own.recall(),
            own.precision(),
            own.confirmed_recall(),
            own.confirmed_precision(),
            own.error(0.5),
            own.error(0.99),
            own.error(1.0),
            own.kept,
            own.mib()
        );
    }
    println!();
}

fn print_rivals(outcomes: &[Outcome]) {
    let columns = "recall, precision, confirmed, its precision, p99, max";
    println!(
        "| Events | T | keyheat: {columns} | panes of FrequentItems, MiB | FrequentItems fed anew, MiB | heavykeeper fed anew: recall, precision, p99, max, MiB |"
    );
    println!("|---|---|---|---|---|---|");
    let bounded = |score: &Score| {
        let numbers = [
            score.recall(),
            score.precision(),
            score.confirmed_recall(),
            score.confirmed_precision(),
            score.error(0.99),
            score.error(1.0),
        ];
        numbers.join(" ")
    };
    for Outcome { name, threshold, own, panes, items, keeper } in outcomes {
        let keeper_numbers = [keeper.recall(), keeper.precision(), keeper.error(0.99), keeper.error(1.0)].join(" ");
        println!(
            "| {name} | {threshold} | {} | {}, {:.1} | {}, {:.1} | {keeper_numbers}, {:.1} |",
            bounded(own),
            bounded(panes),
            panes.mib(),
            bounded(items),
            items.mib(),
            keeper.mib()
        );
    }
}
