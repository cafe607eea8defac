//! `keyheat demo`: the closed loop in one process, live on the terminal, as lines, or as one object.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use clap::Args;

use super::args::OutputFormat;
use super::exit::{CommandError, ExitStatus};
use super::output::Output;
use super::signals::end_on_signals;
use crate::service::Stop;
use crate::simulate::demo::{Demo, DemoError, DemoSettings, DemoView, status_line, story_line};
use crate::simulate::screen::{Screen, Theme, Wish};
use crate::units::Span;

/// Arguments of `demo`.
///
/// A mock Kafka cluster inside this process, clients of which one turns hot after 8 s, three routers, eight shards, and the
/// service as in production: it detects the hot client and splits it, the routers follow, the owner moves the old records, and
/// every read is checked. Ends with 1 when the loop did not close.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// How long it runs; the loop closes after some 25 s
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// Serve /metrics, /livez, /readyz and the API there meanwhile, e.g. 127.0.0.1:9464
    #[arg(long, value_name = "ADDR")]
    pub http: Option<SocketAddr>,
    /// Another seed gives other requests and other places of the buckets
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// How often everything is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often a plain line says how things are.
const LINE_EVERY: Span = Span::from_secs(1);

/// Runs the demo to its end.
///
/// # Errors
/// When a part of it cannot start or fails, or the terminal cannot be used.
pub(super) fn run(args: &DemoArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let stop = Stop::default();
    end_on_signals(&stop)?;
    let settings = DemoSettings { length: Span::from_secs(args.seconds), seed: args.seed, http: args.http };
    let json = output.format_or(OutputFormat::Table) == OutputFormat::Json;
    let mut demo = Demo::start(settings).map_err(failed)?;
    if output.interactive() && !output.quiet() && !json {
        watch(&mut demo, &stop, Theme::new(output.color()))?;
    } else {
        Teller { json, told: 0, due: Span::ZERO }.follow(&mut demo, &stop, output)?;
    }
    output.note("ending: requests in flight are answered, routers leave");
    let ended = demo.finish().map_err(failed)?;
    if json {
        output.json(&ended.summary)?;
    } else {
        for line in ended.summary.to_lines() {
            output.line(line)?;
        }
    }
    match ended.missing {
        None => Ok(ExitStatus::Success),
        Some(missing) => {
            output.note(format_args!("the loop is not closed: {missing}"));
            Ok(ExitStatus::Failed)
        }
    }
}

/// On the terminal, until the end, a signal or a key. The terminal is given back on every way out.
fn watch(demo: &mut Demo, stop: &Stop, theme: Theme) -> Result<(), CommandError> {
    let terminal = |source| CommandError::Io { what: "cannot draw on the terminal".to_owned(), source };
    let mut screen = Screen::open(theme).map_err(terminal)?;
    while !demo.is_over() && !stop.is_set() {
        let view = demo.look().map_err(failed)?;
        screen.show(&view).map_err(terminal)?;
        if screen.wish(LOOK_EVERY).map_err(terminal)? == Wish::End {
            break;
        }
    }
    Ok(())
}

/// Tells the demo in lines: as data, or as words where the data is to be one object.
struct Teller {
    json: bool,
    /// How many lines of the story were told.
    told: usize,
    due: Span,
}

impl Teller {
    fn follow(mut self, demo: &mut Demo, stop: &Stop, output: &mut Output) -> Result<(), CommandError> {
        while !demo.is_over() && !stop.is_set() {
            let view = demo.look().map_err(failed)?;
            if !output.quiet() {
                self.tell(&view, output)?;
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn tell(&mut self, view: &DemoView, output: &mut Output) -> Result<(), CommandError> {
        for line in view.lines.iter().skip(self.told.saturating_sub(view.lines_cut)) {
            self.say(output, &story_line(line))?;
        }
        self.told = view.lines_cut + view.lines.len();
        if view.elapsed >= self.due {
            self.due = view.elapsed.saturating_add(LINE_EVERY);
            self.say(output, &status_line(view))?;
        }
        output.flush()?;
        Ok(())
    }

    fn say(&self, output: &mut Output, text: &str) -> Result<(), CommandError> {
        if self.json {
            output.note(text);
            Ok(())
        } else {
            Ok(output.line(text)?)
        }
    }
}

fn failed(error: DemoError) -> CommandError {
    CommandError::Failed(Box::new(error))
}
