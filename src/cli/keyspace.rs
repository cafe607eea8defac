//! The flags that build one keyspace, named `default`, on the command line: the same in every command that has no configuration.
//!
//! They are written as a configuration and read by the same code, so that a rule, a default and a limit are the same in both.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::exit::CommandError;
use super::output::Output;
use crate::config::{self, DEFAULT_MEDIAN, Fault, Settings};

/// Flags of the keyspace.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Events and rules")]
pub struct KeyspaceArgs {
    /// Take everything from a configuration instead; see keyheat check
    #[arg(long, value_name = "FILE", conflicts_with_all = ["key", "time", "window", "rate", "median", "share", "floor"])]
    pub config: Option<PathBuf>,
    /// Form of a record
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// The key: a JSON pointer, or a template such as '{/tenant}:{/client}'
    #[arg(long, value_name = "TEMPLATE", required_unless_present = "config")]
    pub key: Option<String>,
    /// Where the time is [default: /ts]
    #[arg(long, value_name = "POINTER")]
    pub time: Option<String>,
    /// Where the shard is
    #[arg(long, value_name = "POINTER")]
    pub shard: Option<String>,
    /// Where the request id is
    #[arg(long, value_name = "POINTER")]
    pub request_id: Option<String>,
    /// Where the operation is: read, write, scan, delete, an HTTP method ...
    #[arg(long, value_name = "POINTER")]
    pub operation: Option<String>,
    /// Where the caller is
    #[arg(long, value_name = "POINTER")]
    pub caller: Option<String>,
    /// Where the weight is: a whole number
    #[arg(long, value_name = "POINTER")]
    pub weight: Option<String>,
    /// A window and its pane, once or twice [default: 10s/1s and 60s/5s]
    #[arg(long, value_name = "LENGTH/PANE")]
    pub window: Vec<String>,
    /// Hot from this rate on, e.g. 1000/s
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Hot from so many times the median over active keys on [default rule: 10]
    #[arg(long, value_name = "TIMES", allow_negative_numbers = true)]
    pub median: Option<f64>,
    /// The median and share rules need so many events in the window [default: 20]
    #[arg(long, value_name = "EVENTS")]
    pub floor: Option<u64>,
    /// Hot from this share of all events on, e.g. 2%
    #[arg(long, value_name = "SHARE")]
    pub share: Option<String>,
    /// The median rule applies from so many active keys on [default: 8]
    #[arg(long, value_name = "KEYS")]
    pub min_keys: Option<u64>,
    /// A hot key clears below this part of its threshold [default: 0.7]
    #[arg(long, value_name = "SHARE")]
    pub clear: Option<String>,
    /// ... when it stays there for so long [default: 30s]
    #[arg(long, value_name = "SPAN")]
    pub clear_after: Option<String>,
    /// Which operations count: all, reads, writes [default: all]
    #[arg(long, value_name = "OPERATIONS")]
    pub hot_on: Option<String>,
    /// How keys are counted: sketch (bounds, any number of keys), exact [default: sketch]
    #[arg(long, value_name = "MODE")]
    pub counting: Option<String>,
    /// Exact counting holds so many names a pane [default: 100000]
    #[arg(long, value_name = "KEYS", requires = "counting")]
    pub max_keys: Option<u64>,
    /// How far events may be out of order [default: 2s]
    #[arg(long, value_name = "SPAN")]
    pub disorder: Option<String>,
    /// How far an event may be ahead of the clock [default: 5s]
    #[arg(long, value_name = "SPAN")]
    pub max_ahead: Option<String>,
    /// A source that was read to its end and gave nothing for so long holds nothing back [default: 5s]
    #[arg(long, value_name = "SPAN")]
    pub idle_timeout: Option<String>,
    /// Plan splits as well: the load that one bucket may carry, e.g. 500/s
    #[arg(long, value_name = "RATE")]
    pub bucket_rate: Option<String>,
    /// The most buckets of a split, a power of two [default: 16]
    #[arg(long, value_name = "BUCKETS", requires = "bucket_rate")]
    pub max_buckets: Option<u32>,
}

/// Form of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// One JSON object.
    #[default]
    Json,
}

impl KeyspaceArgs {
    /// The settings that the flags, or the configuration, describe.
    ///
    /// # Errors
    /// [`CommandError::Usage`] with every fault, by the name of its flag; [`CommandError::Io`] for a file that cannot be read.
    pub fn settings(&self, output: &mut Output) -> Result<Settings, CommandError> {
        if let Some(path) = &self.config {
            return from_file(path, output);
        }
        config::load(&self.to_toml()).map(|loaded| loaded.settings).map_err(|faults| {
            let faults: Vec<_> = faults.list.iter().map(as_flag).collect();
            CommandError::Usage(faults.join("\n"))
        })
    }

    fn to_toml(&self) -> String {
        let mut toml =
            String::from("seed = \"0000000000000000\"\n[kafka]\nbrokers = \"none:1\"\n[input]\ntopic = \"none\"\n");
        let text = |toml: &mut String, name: &str, value: &Option<String>| {
            if let Some(value) = value {
                toml.push_str(&format!("{name} = {}\n", quoted(value)));
            }
        };
        text(&mut toml, "time", &self.time);
        text(&mut toml, "shard", &self.shard);
        text(&mut toml, "request_id", &self.request_id);
        text(&mut toml, "operation", &self.operation);
        text(&mut toml, "caller", &self.caller);
        text(&mut toml, "weight", &self.weight);
        toml.push_str("[time]\n");
        text(&mut toml, "disorder", &self.disorder);
        text(&mut toml, "max_ahead", &self.max_ahead);
        text(&mut toml, "idle_timeout", &self.idle_timeout);
        toml.push_str("[[keyspace]]\nname = \"default\"\n");
        text(&mut toml, "key", &self.key);
        text(&mut toml, "rate", &self.rate);
        text(&mut toml, "share", &self.share);
        text(&mut toml, "clear", &self.clear);
        text(&mut toml, "clear_after", &self.clear_after);
        text(&mut toml, "hot_on", &self.hot_on);
        text(&mut toml, "counting", &self.counting);
        text(&mut toml, "bucket_rate", &self.bucket_rate);
        toml.push_str(if self.bucket_rate.is_some() { "mode = \"auto\"\n" } else { "mode = \"observe\"\n" });
        if !self.window.is_empty() {
            let windows: Vec<_> = self.window.iter().map(|window| quoted(window)).collect();
            toml.push_str(&format!("windows = [{}]\n", windows.join(", ")));
        }
        // A floor alone changes the default rule; it does not replace it.
        let no_rule = self.median.is_none() && self.share.is_none() && self.rate.is_none();
        let median = self.median.or((no_rule && self.floor.is_some()).then_some(DEFAULT_MEDIAN));
        let numbers = [
            ("median", median.map(|times| format!("{times:?}"))),
            ("floor", self.floor.map(|events| events.to_string())),
            ("min_keys", self.min_keys.map(|keys| keys.to_string())),
            ("max_keys", self.max_keys.map(|keys| keys.to_string())),
            ("max_buckets", self.max_buckets.map(|buckets| buckets.to_string())),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                toml.push_str(&format!("{name} = {number}\n"));
            }
        }
        toml
    }
}

fn from_file(path: &Path, output: &mut Output) -> Result<Settings, CommandError> {
    let text = fs::read_to_string(path)
        .map_err(|source| CommandError::Io { what: format!("cannot read {}", path.display()), source })?;
    let loaded = config::load(&text).map_err(|faults| {
        CommandError::Usage(format!("{} has faults; keyheat check lists them\n{faults}", path.display()))
    })?;
    for warning in &loaded.warnings {
        output.note(format_args!("{}:{warning}", path.display()));
    }
    Ok(loaded.settings)
}

/// A basic string of TOML: JSON's escapes are TOML's too, but for DEL, which JSON leaves as it is.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// The fault of a key as that of its flag, without a place in a file that nobody sees.
fn as_flag(fault: &Fault) -> String {
    let name = fault.key.rsplit('.').next().unwrap_or_default();
    let name = name.split('[').next().unwrap_or_default();
    let flag = if name == "windows" { "window".to_owned() } else { name.replace('_', "-") };
    let mut text = format!("--{flag}: {}", fault.what);
    for more in [Some(&fault.rule), fault.remedy.as_ref()].into_iter().flatten().filter(|more| !more.is_empty()) {
        text.push_str("; ");
        text.push_str(more);
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::engine::{CountingMode, HotOn, Rule};
    use crate::plan::Mode;
    use crate::units::Span;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: KeyspaceArgs,
    }

    fn settings(line: &str) -> Result<Settings, CommandError> {
        let args = Line::try_parse_from(std::iter::once("x").chain(line.split(' '))).unwrap().args;
        args.settings(&mut Output::captured(None).0)
    }

    #[test]
    fn without_rules_the_defaults_hold() {
        let settings = settings("--key /client").unwrap();
        let keyspace = &settings.engine.keyspaces[0];
        assert_eq!(keyspace.name, "default");
        assert_eq!(keyspace.key_rules, [Rule::Relative { multiple: 10.0, floor: 20 }]);
        assert_eq!(keyspace.windows.len(), 2);
        assert_eq!(settings.input.time.to_string(), "{/ts}");
        assert_eq!(settings.plans[0].mode, Mode::Observe);
    }

    #[test]
    fn every_flag_arrives() {
        let line = "--format json --key {/a}:{/b} --time /when --shard /s --request-id /r --operation /o --caller /c --weight /w \
                    --window 20s/2s --window 60s/10s --rate 50/s --median 4 --floor 7 --share 2% --min-keys 3 --clear 0.5 \
                    --clear-after 10s --hot-on writes --disorder 1s --max-ahead 3s --idle-timeout 4s --bucket-rate 10/s \
                    --max-buckets 8 --counting exact --max-keys 500";
        let settings = settings(line).unwrap();
        let keyspace = &settings.engine.keyspaces[0];
        assert_eq!(settings.input.keys[0].to_string(), "{/a}:{/b}");
        assert_eq!(settings.input.time.to_string(), "{/when}");
        let input = &settings.input;
        let fields = [&input.shard, &input.request_id, &input.operation, &input.caller, &input.weight];
        assert_eq!(fields.map(|field| field.as_ref().unwrap().to_string()), ["{/s}", "{/r}", "{/o}", "{/c}", "{/w}"]);
        assert_eq!(keyspace.windows[1].pane, Span::from_secs(10));
        assert_eq!(keyspace.key_rules.len(), 3);
        assert!(keyspace.key_rules.contains(&Rule::Relative { multiple: 4.0, floor: 7 }));
        assert_eq!((keyspace.min_keys, keyspace.clear.as_f64(), keyspace.hot_on), (3, 0.5, HotOn::Writes));
        assert_eq!(keyspace.clear_after, Span::from_secs(10));
        let time = settings.engine.time;
        let secs = [time.disorder, time.max_ahead, time.idle_timeout].map(|span| span.as_millis() / 1000);
        assert_eq!(secs, [1, 3, 4]);
        assert_eq!((settings.plans[0].mode, settings.plans[0].max_buckets), (Mode::Auto, 8));
        assert_eq!(keyspace.counting.mode, CountingMode::Exact { max_keys: 500 });
    }

    #[test]
    fn a_rule_switches_the_default_off_and_a_floor_alone_does_not() {
        let rules = |line: &str| settings(line).unwrap().engine.keyspaces[0].key_rules.clone();
        assert_eq!(rules("--key /k --floor 50"), [Rule::Relative { multiple: 10.0, floor: 50 }]);
        assert!(matches!(rules("--key /k --rate 5/s")[..], [Rule::Absolute { .. }]));
        assert!(matches!(rules("--key /k --share 2%")[..], [Rule::Share { floor: 20, .. }]));
    }

    #[test]
    fn every_fault_is_named_by_its_flag() {
        let refused = settings("--key client --window 10s/3s --rate fast --hot-on writes --floor 0").unwrap_err();
        assert_eq!(refused.exit_status(), crate::cli::ExitStatus::Usage);
        let text = refused.to_string();
        for flag in ["--key: ", "--window: ", "--rate: ", "--hot-on: ", "--floor: "] {
            assert!(text.contains(flag), "{text}");
        }
        assert!(Line::try_parse_from(["x"]).is_err());
        assert!(Line::try_parse_from(["x", "--config", "f", "--key", "/k"]).is_err());
    }
}
