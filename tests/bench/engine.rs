//! What it costs to count one event, beside an exact hash map without any window, in the same run.
//!
//! `cargo bench --no-default-features --bench engine [-- MILLIONS [NAME]]`: so many millions of events (4 unless given) on
//! one million keys by Zipf 1.0, 20 s of event time, one thread; only the case NAME, beside the map. Contestants take turns, so that a busy machine slows all of
//! them; the medians of five rounds and their ratio to the map are printed: of all, and of the counting alone, which is what is left
//! when reading the keys (of the map) or making the events (of the others) is taken off.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on panics")]
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

mod counting;

use std::time::Duration;

use counting::{Case, Stream};

const ROUNDS: usize = 5;

/// Processor time of this thread where the system tells it, so that what else runs is not measured; else the clock.
#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn timed(run: &dyn Fn() -> u64) -> (Duration, u64) {
    let processor = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    };
    let (clock, begin) = (std::time::Instant::now(), processor());
    let result = std::hint::black_box(run());
    let used = processor().zip(begin).map(|(end, begin)| end - begin);
    (used.unwrap_or_else(|| clock.elapsed()), result)
}

/// The case that does the same but for the counting: what it takes is the stream's and the decoder's, not the counter's.
const fn without_counting(case: Case) -> Option<Case> {
    match case {
        Case::ExactMap => Some(Case::ReadOnly),
        Case::Keys => Some(Case::MakeKeys),
        Case::Events | Case::ManyCandidates | Case::Median => Some(Case::MakeEvents),
        Case::ReadOnly | Case::MakeKeys | Case::MakeEvents => None,
    }
}

fn main() {
    // `cargo test --all-targets` starts benchmarks as tests: nothing to measure there.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let millions = std::env::args().filter_map(|argument| argument.parse::<usize>().ok()).next().unwrap_or(4);
    let only =
        std::env::args().skip(1).find(|argument| !argument.starts_with('-') && argument.parse::<usize>().is_err());
    let stream = Stream::new(millions * 1_000_000);
    let is_named = |case: &Case| only.as_ref().is_none_or(|only| case.name() == only);
    let is_wanted = |case: &Case| {
        let uncounted = [Case::ExactMap].into_iter().chain(Case::ALL.into_iter().filter(is_named));
        *case == Case::ExactMap || is_named(case) || uncounted.filter_map(without_counting).any(|own| own == *case)
    };
    let cases: Vec<Case> = Case::ALL.into_iter().filter(is_wanted).collect();
    let mut times = vec![Vec::new(); cases.len()];
    let mut results = vec![0; cases.len()];
    for _ in 0..ROUNDS {
        for (at, case) in cases.iter().enumerate() {
            let (time, result) = timed(&|| case.run(&stream));
            times[at].push(time.as_secs_f64() * 1e9 / (millions as f64 * 1e6));
            results[at] = result;
        }
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let medians: Vec<f64> = times.iter_mut().map(median).collect();
    let median_of = |case| cases.iter().position(|own| *own == case).map_or(0.0, |at| medians[at]);
    let counting = |case: Case| median_of(case) - without_counting(case).map_or(0.0, median_of);
    for (((case, ns), result), times) in cases.iter().zip(&medians).zip(&results).zip(&times) {
        let (name, ratio, least) = (case.name(), ns / medians[0], times[0]);
        let alone = match without_counting(*case) {
            Some(_) => format!("{:5.2} counting alone", counting(*case) / counting(Case::ExactMap)),
            None => "not counted         ".to_owned(),
        };
        println!(
            "{name:16} {ns:7.1} ns/event  {ratio:5.2} of the map, {alone}  ({result} names, candidates or bytes; at best {least:.1} ns)"
        );
    }
}
