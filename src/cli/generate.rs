//! `keyheat generate`: access events of a load that is described by a few numbers, to Kafka, a file or standard output.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::exit::{CommandError, ExitStatus};
use super::output::Output;
use super::signals::end_on_signals;
use crate::config::KafkaSettings;
use crate::input::parse_time;
use crate::plan::{MAGLEV_TABLE, Mapper, MapperKind, RingPoints, SLOTS, SeededHash, ShardHash, SlotRange};
use crate::service::{Clock, Stop};
use crate::simulate::{EventProducer, HotSpell, Load, LoadSettings, Request};
use crate::units::{EventTime, Rate, Share, Span};

/// Arguments of `generate`.
///
/// Each event is one JSON object: ts (milliseconds), client (the key), id (of the request), op (read or write), shard.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// Events per second, evenly spaced
    #[arg(long, default_value = "1000/s", value_name = "RATE")]
    pub rate: Rate,
    /// Stop after so many events
    #[arg(long, value_name = "EVENTS")]
    pub count: Option<u64>,
    /// Stop after so much time of the load, e.g. 60s
    #[arg(long = "for", value_name = "SPAN")]
    pub length: Option<Span>,
    /// Do not wait: write as fast as possible; needs --count or --for
    #[arg(long)]
    pub fast: bool,
    /// Distinct keys c1, c2, ... besides the hot ones
    #[arg(long, default_value_t = 1000, value_name = "NUMBER")]
    pub keys: u32,
    /// Skew: key number r has a weight of 1/r^EXPONENT
    #[arg(long, default_value_t = 1.0, value_name = "EXPONENT")]
    pub zipf: f64,
    /// A key that takes a share of all events, from a time to another since the start; repeatable
    #[arg(long, value_name = "KEY:SHARE[:BEGIN..END]")]
    pub hot: Vec<HotSpell>,
    /// Share of reads; the rest are writes
    #[arg(long, default_value = "50%", value_name = "SHARE")]
    pub read_share: Share,
    /// Shards s0, s1, ...; 0: events carry no shard
    #[arg(long, default_value_t = 8, value_name = "NUMBER")]
    pub shards: u32,
    /// How a key is mapped to a shard
    #[arg(long, value_enum, default_value_t)]
    pub mapper: MapperName,
    /// Times step back by up to this much
    #[arg(long, default_value = "0s", value_name = "SPAN")]
    pub disorder: Span,
    /// The same seed and --start give the same events
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Time of the first event, RFC 3339 or a number since the epoch [default: now; with --fast to a file or standard output
    /// 2026-01-01T00:00:00Z, so that the same seed gives the same bytes]
    #[arg(long, value_name = "TIME", value_parser = read_time)]
    pub start: Option<EventTime>,
    /// Where to write; - is standard output
    #[arg(long, default_value = "-", value_name = "FILE", conflicts_with = "brokers")]
    pub output_file: PathBuf,
    /// Kafka brokers, host:port, separated by commas; needs --topic
    #[arg(long, value_delimiter = ',', value_name = "HOST:PORT", requires = "topic")]
    pub brokers: Vec<String>,
    /// The topic; each event's record key is its request id
    #[arg(long, requires = "brokers")]
    pub topic: Option<String>,
    /// A property of librdkafka, e.g. for security; repeatable
    #[arg(short = 'X', value_name = "NAME=VALUE", value_parser = read_property)]
    pub properties: Vec<(String, String)>,
}

/// Shard mappers by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum MapperName {
    /// Kafka's murmur2, sign bit masked, modulo the number of shards.
    #[default]
    ModuloMurmur2,
    /// CRC-32 modulo the number of shards.
    ModuloCrc32,
    /// FNV-1a modulo the number of shards.
    ModuloFnv1a,
    /// xxh64 modulo the number of shards.
    ModuloXxh64,
    /// Jump consistent hash of murmur2.
    JumpMurmur2,
    /// Jump consistent hash of xxh64.
    JumpXxh64,
    /// Rendezvous of xxh64, as the ring of go-redis.
    RendezvousXxh64,
    /// A ketama ring of 160 points a shard.
    RingKetama,
    /// Multi-probe of SipHash: 21 probes, seeds 1 and 2.
    MultiProbeSiphash,
    /// A Maglev table of 65,537 places.
    Maglev,
    /// Slots of a Redis cluster, in equal ranges.
    Slots,
}

impl MapperName {
    /// The function for so many shards, at least one.
    fn kind(self, shards: u32) -> MapperKind {
        match self {
            Self::ModuloMurmur2 => MapperKind::Modulo(ShardHash::Murmur2),
            Self::ModuloCrc32 => MapperKind::Modulo(ShardHash::Crc32),
            Self::ModuloFnv1a => MapperKind::Modulo(ShardHash::Fnv1a),
            Self::ModuloXxh64 => MapperKind::Modulo(ShardHash::Xxh64),
            Self::JumpMurmur2 => MapperKind::Jump(ShardHash::Murmur2),
            Self::JumpXxh64 => MapperKind::Jump(ShardHash::Xxh64),
            Self::RendezvousXxh64 => MapperKind::Rendezvous(ShardHash::Xxh64),
            Self::RingKetama => MapperKind::Ring { hash: RingPoints::Ketama, points: 160 },
            Self::MultiProbeSiphash => MapperKind::MultiProbe { hash: SeededHash::Siphash, seeds: [1, 2], probes: 21 },
            Self::Maglev => MapperKind::Maglev { table_size: MAGLEV_TABLE },
            Self::Slots => MapperKind::Slots((0..shards).filter_map(|shard| equal_part(shard, shards)).collect()),
        }
    }
}

/// The slots of one of so many shards; none where there are more shards than slots.
fn equal_part(shard: u32, shards: u32) -> Option<SlotRange> {
    let begin = |shard: u32| u16::try_from(shard * u32::from(SLOTS) / shards).ok();
    let (first, next) = (begin(shard)?, begin(shard + 1)?);
    (first < next).then(|| SlotRange { first, last: next - 1, shard: shard as usize })
}

/// 2026-01-01T00:00:00Z.
const FIXED_START_MS: i64 = 1_767_225_600_000;
/// Most shards of a load.
const MAX_SHARDS: u32 = 10_000;
/// How long a wait for the next event lasts at most before the stop flag is looked at.
const NAP: Duration = Duration::from_millis(10);
/// How long the last events may take to reach Kafka.
const FINISH_LIMIT: Duration = Duration::from_secs(120);
/// Events between two looks at the stop flag and the delivery reports.
const BATCH: u64 = 1000;

fn read_time(text: &str) -> Result<EventTime, String> {
    let rule = "a time is RFC 3339 with its zone, e.g. 2026-11-30T10:11:32Z, or a number since the epoch";
    parse_time(text.as_bytes()).ok_or_else(|| rule.to_owned())
}

pub(super) fn read_property(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a property is NAME=VALUE, e.g. security.protocol=ssl")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Generates events until the count, the length, a signal or the end of the reader.
///
/// # Errors
/// [`CommandError::Usage`] for a load that cannot be; otherwise when the events cannot be written, or Kafka lost some.
pub(super) fn run(args: &GenerateArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    if args.fast && args.count.is_none() && args.length.is_none() {
        return Err(CommandError::Usage("--fast without an end; add --count or --for".to_owned()));
    }
    let clock = Clock::system();
    let load = Load::new(settings(args, &clock)?).map_err(|error| CommandError::Usage(error.to_string()))?;
    let stop = Stop::default();
    end_on_signals(&stop)?;
    let sink = Sink::open(args, output)?;
    let written = Generator { args, clock, stop, sink }.run(load)?;
    output.note(format_args!("{written} events written"));
    Ok(ExitStatus::Success)
}

fn settings(args: &GenerateArgs, clock: &Clock) -> Result<LoadSettings, CommandError> {
    if args.shards > MAX_SHARDS {
        return Err(CommandError::Usage(format!("{} shards, which should be at most {MAX_SHARDS}", args.shards)));
    }
    let fixed_start = EventTime::from_millis(FIXED_START_MS).ok().filter(|_| args.fast && args.brokers.is_empty());
    let names = (0..args.shards).map(|shard| format!("s{shard}")).collect();
    let mapper = (args.shards > 0).then(|| Mapper::new(args.mapper.kind(args.shards), names)).transpose();
    let mapper = mapper.map_err(|invalid| CommandError::Usage(format!("--mapper with --shards: {invalid}")))?;
    Ok(LoadSettings {
        rate: args.rate,
        keys: args.keys,
        zipf_exponent: args.zipf,
        hot: args.hot.clone(),
        read_share: args.read_share,
        mapper,
        disorder: args.disorder,
        seed: args.seed,
        start: args.start.or(fixed_start).unwrap_or_else(|| clock.now()),
    })
}

/// Where events go.
enum Sink<'o> {
    Output(&'o mut Output),
    File(Box<BufWriter<File>>),
    Kafka(EventProducer),
}

impl<'o> Sink<'o> {
    fn open(args: &GenerateArgs, output: &'o mut Output) -> Result<Self, CommandError> {
        if let Some(topic) = &args.topic {
            let brokers: Vec<&str> = args.brokers.iter().map(String::as_str).collect();
            let mut settings = KafkaSettings::plain(&brokers);
            settings.librdkafka.extend(args.properties.iter().cloned());
            let client = settings.client_config().map_err(|error| CommandError::Failed(error.into()))?;
            let producer = EventProducer::new(&client, topic);
            return Ok(Self::Kafka(producer.map_err(|error| CommandError::Usage(error.to_string()))?));
        }
        if args.output_file.as_os_str() == "-" {
            return Ok(Self::Output(output));
        }
        let what = || format!("cannot write {}", args.output_file.display());
        let file = File::create(&args.output_file).map_err(|source| CommandError::Io { what: what(), source })?;
        Ok(Self::File(Box::new(BufWriter::new(file))))
    }

    fn write(&mut self, request: &Request, line: &mut Vec<u8>, stop: &Stop) -> Result<(), CommandError> {
        match self {
            Self::Kafka(producer) => {
                let sent = producer.send(request.id.as_bytes(), line, || !stop.is_set());
                return sent.map_err(|error| CommandError::Failed(error.into()));
            }
            Self::Output(output) => {
                line.push(b'\n');
                output.data(line)?;
            }
            Self::File(file) => {
                line.push(b'\n');
                file.write_all(line).map_err(file_error)?;
            }
        }
        Ok(())
    }

    /// Lets the reader see what there is.
    fn flush(&mut self) -> Result<(), CommandError> {
        match self {
            Self::Kafka(producer) => producer.poll(),
            Self::Output(output) => output.flush()?,
            Self::File(file) => file.flush().map_err(file_error)?,
        }
        Ok(())
    }

    /// Says how many of `written` events have arrived.
    fn finish(mut self, written: u64) -> Result<u64, CommandError> {
        self.flush()?;
        let Self::Kafka(producer) = self else { return Ok(written) };
        let delivered = producer.finish(FINISH_LIMIT);
        if delivered.lost == 0 {
            return Ok(delivered.confirmed);
        }
        Err(CommandError::failed(format!(
            "{} events arrived and {} did not: {}",
            delivered.confirmed,
            delivered.lost,
            delivered.reason.unwrap_or_default()
        )))
    }
}

fn file_error(source: io::Error) -> CommandError {
    CommandError::Io { what: "cannot write the output file".to_owned(), source }
}

struct Generator<'a, 'o> {
    args: &'a GenerateArgs,
    clock: Clock,
    stop: Stop,
    sink: Sink<'o>,
}

impl Generator<'_, '_> {
    fn run(mut self, mut load: Load) -> Result<u64, CommandError> {
        let start = load.settings().start;
        let begun = self.clock.elapsed();
        let count = self.args.count.unwrap_or(u64::MAX);
        let mut line = Vec::new();
        let mut written = 0;
        while written < count {
            let Some(request) = load.next() else { break };
            let due = request.sent_at.since(start);
            if self.args.length.is_some_and(|length| due >= length) {
                break;
            }
            if written % BATCH == 0 {
                self.sink.flush()?;
            }
            if !self.wait_until(begun.saturating_add(due))? {
                break;
            }
            line.clear();
            request.write_json(load.shard_of(request.client.as_bytes()), &mut line)?;
            self.sink.write(&request, &mut line, &self.stop)?;
            written += 1;
        }
        self.sink.finish(written)
    }

    /// Waits, unless it goes as fast as possible, until the monotonic clock shows `due`; false when it should stop.
    fn wait_until(&mut self, due: Span) -> Result<bool, CommandError> {
        let mut flushed = false;
        while !self.args.fast && !self.stop.is_set() {
            let left = due.to_duration().saturating_sub(self.clock.elapsed().to_duration());
            if left.is_zero() {
                break;
            }
            if !flushed {
                self.sink.flush()?;
                flushed = true;
            }
            thread::sleep(left.min(NAP));
        }
        Ok(!self.stop.is_set())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: GenerateArgs,
    }

    fn generate(line: &str) -> (Result<ExitStatus, CommandError>, String, String) {
        let args = Line::try_parse_from(std::iter::once("generate").chain(line.split(' '))).unwrap().args;
        let (mut output, written) = Output::captured(None);
        (run(&args, &mut output), written.data(), written.words())
    }

    #[test]
    fn the_same_flags_give_the_same_bytes() {
        let line = "--fast --count 2000 --seed 7 --hot c9:40%:500ms..1s --disorder 2s --shards 4";
        let (status, data, words) = generate(line);
        assert_eq!(status.unwrap(), ExitStatus::Success);
        assert_eq!((data.lines().count(), words.as_str()), (2000, "2000 events written\n"));
        assert_eq!(generate(line).1, data);
        assert_ne!(generate("--fast --count 2000 --seed 8").1, data);
        let first: serde_json::Value = serde_json::from_str(data.lines().next().unwrap()).unwrap();
        assert!(["ts", "client", "id", "op", "shard"].iter().all(|field| !first[field].is_null()), "{first}");
        let (_, data, _) = generate("--fast --for 1500ms --rate 100/s --shards 0 --start 1700000000");
        assert_eq!(data.lines().count(), 150);
        assert!(data.starts_with("{\"ts\":1700000000000,") && !data.contains("shard"));
    }

    #[test]
    fn events_go_to_a_file_at_their_pace() {
        let path = std::env::temp_dir().join(format!("keyheat-generate-{}", std::process::id()));
        let (status, data, _) = generate(&format!("--count 30 --rate 1000/s --output-file {}", path.display()));
        assert_eq!((status.unwrap(), data.as_str()), (ExitStatus::Success, ""));
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 30);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_cannot_be_is_a_usage_error() {
        for line in ["--fast", "--count 1 --keys 0", "--count 1 --shards 10001", "--count 1 --hot a:60% --hot b:60%"] {
            assert_eq!(generate(line).0.unwrap_err().exit_status(), ExitStatus::Usage, "{line}");
        }
        for line in ["--brokers h:1", "--topic t", "--start 2026-11-30T10:00:00", "--hot a", "-X a", "--rate 0"] {
            assert!(Line::try_parse_from(std::iter::once("generate").chain(line.split(' '))).is_err(), "{line}");
        }
    }
}
