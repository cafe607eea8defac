//! `keyheat check FILE`: all that is wrong with a configuration, or what it does and the memory it takes.

use std::path::{Path, PathBuf};

use clap::Args;
use rdkafka::error::KafkaError;
use serde_json::{Value, json};

use super::args::OutputFormat;
use super::check_report::Report;
use super::config_file;
use super::exit::{CommandError, ExitStatus};
use super::output::Output;
use crate::config::{self, Fault, Faults, KafkaSettings, Loaded, Place};

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The configuration
    pub file: PathBuf,
    /// Print every key in use with its value, defaults too
    #[arg(long)]
    pub as_used: bool,
}

/// Prints faults or what the configuration does.
///
/// # Errors
/// When the file cannot be read, or standard output not written.
pub(super) fn run(args: &CheckArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let text = config_file::read(&args.file)?;
    let checked =
        config::load(&text).and_then(|loaded| client_faults(&loaded.settings.kafka).map(|warnings| (loaded, warnings)));
    let is_json = output.format_or(OutputFormat::Table) == OutputFormat::Json;
    match checked {
        Err(faults) => {
            if is_json {
                output.json(&faults_json(&args.file, &faults))?;
            } else {
                for line in config_file::fault_lines(&args.file, &faults) {
                    output.line(line)?;
                }
            }
            Ok(ExitStatus::Usage)
        }
        Ok((mut loaded, warnings)) => {
            loaded.warnings.extend(warnings);
            let report = Report::of(&loaded);
            if is_json {
                output.json(&report.to_json(&args.file, &loaded))?;
            } else {
                print_words(args, &loaded, &report, output)?;
            }
            Ok(ExitStatus::Success)
        }
    }
}

fn print_words(args: &CheckArgs, loaded: &Loaded, report: &Report, output: &mut Output) -> Result<(), CommandError> {
    if args.as_used {
        for (path, value) in &loaded.as_used {
            output.line(format_args!("{path} = {value}"))?;
        }
        return Ok(());
    }
    output.line(report.words(&args.file, loaded))?;
    for warning in &loaded.warnings {
        output.note(format_args!("{}:{warning}", args.file.display()));
    }
    Ok(())
}

/// What librdkafka says of the client's properties; a password that cannot be read here may be readable where the service runs.
fn client_faults(kafka: &KafkaSettings) -> Result<Vec<Fault>, Faults> {
    let fault = |key: &str, what: String, remedy: &str| Fault {
        place: Place::START,
        key: key.to_owned(),
        what,
        rule: String::new(),
        remedy: Some(remedy.to_owned()),
    };
    let configs = [kafka.consumer_config(), kafka.producer_config()];
    let mut list = Vec::new();
    for config in configs {
        match config {
            Err(error) => {
                return Ok(vec![fault("kafka", error.to_string(), "make it readable where the service runs")]);
            }
            Ok(config) => {
                if let Err(KafkaError::ClientConfig(_, why, name, _)) = config.create_native_config() {
                    let remedy = "the name and its values are in librdkafka's CONFIGURATION.md";
                    list.push(fault(
                        &format!("kafka.librdkafka.{name}"),
                        format!("librdkafka refuses it: {why}"),
                        remedy,
                    ));
                }
            }
        }
    }
    list.dedup();
    if list.is_empty() { Ok(Vec::new()) } else { Err(Faults { list, cut: 0 }) }
}

fn faults_json(file: &Path, faults: &Faults) -> Value {
    json!({
        "file": file.display().to_string(),
        "ok": false,
        "faults": faults.list.iter().map(fault_json).collect::<Vec<_>>(),
        "faults_cut": faults.cut,
    })
}

/// A fault as scripts read it.
pub(super) fn fault_json(fault: &Fault) -> Value {
    json!({
        "line": fault.place.line,
        "column": fault.place.column,
        "key": fault.key,
        "what": fault.what,
        "rule": fault.rule,
        "remedy": fault.remedy,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const EXAMPLE: &str = include_str!("../../fixtures/config/good/keyheat.example.toml");

    fn check(name: &str, text: &str, format: Option<OutputFormat>) -> (ExitStatus, String, String) {
        let file = std::env::temp_dir().join(format!("keyheat-check-{}-{name}.toml", std::process::id()));
        fs::write(&file, text).unwrap();
        let (mut output, written) = Output::captured(format);
        let status = run(&CheckArgs { file: file.clone(), as_used: false }, &mut output).unwrap();
        fs::remove_file(&file).unwrap();
        let data = written.data().replace(&file.display().to_string(), "keyheat.toml");
        (status, data, written.words())
    }

    #[test]
    fn a_good_file_is_told_in_words() {
        let (status, data, words) = check("good", EXAMPLE, None);
        assert_eq!((status, words.as_str()), (ExitStatus::Success, ""));
        let (memory, others): (Vec<&str>, Vec<&str>) = data.lines().partition(|line| line.starts_with("memory "));
        assert!(memory[0].contains("MiB to count (client "), "{memory:?}");
        insta::assert_snapshot!(others.join("\n"), @r#"
        keyheat.toml is good; its decisions carry config 359dbaad78617321

        reads     topic 'access' as group 'keyheat' from 127.0.0.1:9092, from 72s back, so that windows are whole
        events    time "/ts", shard "/shard", request id "/request_id", operation "/op", caller "/caller", weight none
        keyspace  client: key "/client", compared by all events
                    a key is hot in 10s (sliding by 1s): at 5000 events (500/s), or at 10 times the median key and 200 events (20.0/s)
                    a key is hot in 1m (sliding by 5s): at 30000 events (500/s), or at 10 times the median key and 200 events (3.3/s)
                    a shard is hot in 10s (sliding by 1s): at 2 times the median shard and 100 events (10.0/s)
                    a shard is hot in 1m (sliding by 5s): at 2 times the median shard and 100 events (1.7/s)
                    it cools below 70 % of that for 30s
                    it proposes splits into 2 to 16 buckets of at most 500/s with 30 % to spare; records are rewritten in place, old ones are moved by their owner; placed on 8 shards by murmur2, modulo
        budget    at most 100 split keys, 10 changes a minute, 5m between changes of one key; routers expected: 1
        topics    'access' must be there; 'keyheat.plan.v1' and 'keyheat.acks.v1' are made by keyheat topics create
        http      127.0.0.1:9464, keys shown plain
        "#);
    }

    #[test]
    fn rules_of_a_pattern_are_told_with_their_thresholds() {
        let own = "[[keyspace.rules]]\nkeys = \"acme:*\"\nrate = \"25/s\"\nshare = 0.01\nfloor = 30\n";
        let text = format!("{EXAMPLE}\n{own}");
        let (_, data, _) = check("pattern", &text, None);
        for line in [
            "a key that matches \"acme:*\" is hot in 10s (sliding by 1s): at 250 events (25/s), or at 1 % of all events and 30 events",
            "a key that matches \"acme:*\" is hot in 1m (sliding by 5s): at 1500 events (25/s), or at 1 % of all events and 30 events",
        ] {
            assert!(data.contains(line), "{data}");
        }
        let (_, data, _) = check("pattern-json", &text, Some(OutputFormat::Json));
        let own = &serde_json::from_str::<Value>(&data).unwrap()["keyspaces"][0]["pattern_thresholds"][0];
        assert_eq!(own["keys"], "acme:*");
        let counts: Vec<_> =
            own["key_thresholds"].as_array().unwrap().iter().map(|rule| rule["at_least"].as_u64().unwrap()).collect();
        assert_eq!(counts, [250, 30, 1500, 30]);
        assert_eq!(own["key_thresholds"][1]["share"], 0.01);
    }

    #[test]
    fn exact_counting_is_told_with_the_memory_that_it_takes() {
        let exact =
            |keys: &str| EXAMPLE.replacen("[[keyspace]]", &format!("[[keyspace]]\ncounting = \"exact\"\n{keys}"), 1);
        let memory = |text: &str| {
            let (_, data, _) = check("exact", text, Some(OutputFormat::Json));
            serde_json::from_str::<Value>(&data).unwrap()["keyspaces"][0]["memory_bytes"].as_u64().unwrap()
        };
        let (_, data, _) = check("exact", &exact(""), None);
        assert!(data.contains("counted exactly up to 100000 keys a pane"), "{data}");
        assert!(memory(&exact("")) > memory(&exact("max_keys = 1000")) + (60 << 20));
        assert!(memory(EXAMPLE) > memory(&exact("max_keys = 1000")));
        let (status, data, _) =
            check("exact", &EXAMPLE.replacen("[[keyspace]]", "[[keyspace]]\nmax_keys = 1000", 1), None);
        assert_eq!(status, ExitStatus::Usage);
        assert!(data.contains("max_keys: got 1000; has no use without counting = \"exact\""), "{data}");
    }

    #[test]
    fn a_good_file_is_told_to_scripts() {
        let (status, data, _) = check("json", EXAMPLE, Some(OutputFormat::Json));
        assert_eq!(status, ExitStatus::Success);
        let report: Value = serde_json::from_str(&data).unwrap();
        assert_eq!(report["ok"], true);
        assert_eq!(report["keyspaces"][0]["key_thresholds"][0]["at_least"], 5000);
        let parts = ["counting", "records_waiting_to_be_read", "records_waiting_to_be_sent"];
        let sum: u64 = parts.iter().map(|part| report["memory_bytes"][part].as_u64().unwrap()).sum();
        assert_eq!(report["memory_bytes"]["total"], sum);
    }

    #[test]
    fn faults_are_all_printed_and_the_code_is_that_of_usage() {
        let (status, data, _) = check("bad", "[kafka]\nbroker = 1\n", None);
        assert_eq!(status, ExitStatus::Usage);
        assert_eq!(data.lines().count(), 4, "{data}");
        assert!(data.contains("keyheat.toml:2:1: kafka.broker: unknown key"), "{data}");
        let (_, data, _) = check("bad-json", "[kafka]\nbroker = 1\n", Some(OutputFormat::Json));
        let report: Value = serde_json::from_str(&data).unwrap();
        assert_eq!((&report["ok"], report["faults"].as_array().unwrap().len()), (&json!(false), 4));
    }

    #[test]
    fn properties_that_librdkafka_refuses_are_faults() {
        let text = EXAMPLE.replace("[input]", "[kafka.librdkafka]\nfetch.wait.max.mss = 5\n\n[input]");
        let (status, data, _) = check("librdkafka", &text, None);
        assert_eq!(status, ExitStatus::Usage);
        assert!(
            data.contains("kafka.librdkafka.fetch.wait.max.mss: librdkafka refuses it: No such configuration property"),
            "{data}"
        );
    }
}
