//! Requests of simulated clients: an endless, pure sequence. The same settings give the same requests and the same bytes.

use std::io::Write;
use std::str::FromStr;

use super::random::{Random, Zipf};
use crate::input::Operation;
use crate::plan::Mapper;
use crate::units::{EventTime, Rate, Share, Span};

/// The most distinct keys of a load: the table of their weights takes 16 bytes a key.
pub const MAX_KEYS: u32 = 1 << 24;
/// The most hot spells of a load.
pub const MAX_SPELLS: usize = 100;

/// What a load looks like.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadSettings {
    /// Requests per second, evenly spaced.
    pub rate: Rate,
    /// Distinct keys `c1`, `c2`, ... besides the hot ones; `c1` is the most frequent.
    pub keys: u32,
    /// How skewed they are: key number `r` has a weight of `1 / r^exponent`.
    pub zipf_exponent: f64,
    /// Keys that take a share of all requests for a while.
    pub hot: Vec<HotSpell>,
    /// Share of point reads; the rest are writes.
    pub read_share: Share,
    /// How keys are placed on shards; without it requests carry no shard.
    pub mapper: Option<Mapper>,
    /// The time of a request lies before its sending by up to this much, so that times step back.
    pub disorder: Span,
    /// Seed of all that is random.
    pub seed: u64,
    /// When the first request is sent.
    pub start: EventTime,
}

/// A key that takes a share of all requests from a moment to another.
#[derive(Debug, Clone, PartialEq)]
pub struct HotSpell {
    /// The key.
    pub key: String,
    /// Of all requests.
    pub share: Share,
    /// Since the start of the load.
    pub begin: Span,
    /// Since the start of the load, not included; none for ever.
    pub end: Option<Span>,
}

/// A load that cannot be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InvalidLoad {
    /// No requests at all.
    #[error("a load has more than 0 requests per second; give a rate such as 1000/s")]
    NoRate,
    /// No keys, or too many.
    #[error("{0} keys, which should be from 1 to {MAX_KEYS}")]
    Keys(u32),
    /// Not a number from 0 to 10.
    #[error("Zipf exponent {0}, which should be from 0 (all keys alike) to 10")]
    Exponent(f64),
    /// Too many hot spells.
    #[error("{0} hot keys, which should be at most {MAX_SPELLS}")]
    Spells(usize),
    /// A hot spell that never is.
    #[error("hot key '{0}' ends before it begins")]
    EmptySpell(String),
    /// Together more than everything.
    #[error("the hot keys take {share:.3} of all requests at {at}, which should be at most 1 together")]
    Shares {
        /// When, since the start of the load.
        at: Span,
        /// How much.
        share: f64,
    },
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// When it is sent.
    pub sent_at: EventTime,
    /// The time that its event carries: at most `disorder` earlier.
    pub time: EventTime,
    /// Whose data it asks for: the key.
    pub client: String,
    /// Unlike that of any other request of the load.
    pub id: String,
    /// Read or write.
    pub operation: Operation,
}

/// The sequence of requests.
#[derive(Debug, Clone)]
pub struct Load {
    settings: LoadSettings,
    zipf: Zipf,
    random: Random,
    index: u64,
}

impl Load {
    /// A load with these settings.
    ///
    /// # Errors
    /// [`InvalidLoad`] names the setting and its rule.
    pub fn new(settings: LoadSettings) -> Result<Self, InvalidLoad> {
        check(&settings)?;
        let zipf = Zipf::new(settings.keys, settings.zipf_exponent);
        let random = Random::new(settings.seed);
        Ok(Self { settings, zipf, random, index: 0 })
    }

    /// The settings.
    #[must_use]
    pub const fn settings(&self) -> &LoadSettings {
        &self.settings
    }

    /// The shard that serves this key when nothing is split.
    #[must_use]
    pub fn shard_of(&self, key: &[u8]) -> Option<&str> {
        self.settings.mapper.as_ref().map(|mapper| mapper.shard_name(key))
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative; exact below 2^53 requests, and `as` saturates above"
    )]
    fn since_start(&self, index: u64) -> Span {
        Span::from_millis((index as f64 * 1000.0 / self.settings.rate.as_per_second()) as u64)
    }

    /// The hot key that takes this request, or any other key.
    fn draw_client(&mut self, since_start: Span) -> String {
        let mut draw = self.random.unit();
        for spell in self.settings.hot.iter().filter(|spell| spell.is_on(since_start)) {
            if draw < spell.share.as_f64() {
                return spell.key.clone();
            }
            draw -= spell.share.as_f64();
        }
        format!("c{}", self.zipf.draw(&mut self.random) + 1)
    }
}

impl Iterator for Load {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let since_start = self.since_start(self.index);
        let sent_at = self.settings.start.saturating_add(since_start);
        let client = self.draw_client(since_start);
        let reads = self.random.unit() < self.settings.read_share.as_f64();
        let delay = self.random.below(self.settings.disorder.as_millis().saturating_add(1));
        let request = Request {
            sent_at,
            time: sent_at.saturating_sub(Span::from_millis(delay)),
            client,
            id: format!("{:016x}", scramble(self.settings.seed.wrapping_add(self.index))),
            operation: if reads { Operation::Read } else { Operation::Write },
        };
        self.index += 1;
        Some(request)
    }
}

/// A one-to-one map of 64-bit numbers whose values look random: different numbers give different ids.
const fn scramble(number: u64) -> u64 {
    let number = (number ^ (number >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let number = (number ^ (number >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    number ^ (number >> 32)
}

impl Request {
    /// Appends the event as one JSON object: `ts` (milliseconds), `client`, `id`, `op`, and `shard` where it is known.
    ///
    /// # Errors
    /// Never in memory; the signature is that of writing.
    pub fn write_json(&self, shard: Option<&str>, record: &mut Vec<u8>) -> std::io::Result<()> {
        write!(record, "{{\"ts\":{},\"client\":", self.time.as_millis())?;
        serde_json::to_writer(&mut *record, &self.client)?;
        let operation = if self.operation == Operation::Read { "read" } else { "write" };
        write!(record, ",\"id\":\"{}\",\"op\":\"{operation}\"", self.id)?;
        if let Some(shard) = shard {
            record.extend_from_slice(b",\"shard\":");
            serde_json::to_writer(&mut *record, shard)?;
        }
        record.push(b'}');
        Ok(())
    }
}

impl HotSpell {
    fn is_on(&self, since_start: Span) -> bool {
        self.begin <= since_start && self.end.is_none_or(|end| since_start < end)
    }
}

fn check(settings: &LoadSettings) -> Result<(), InvalidLoad> {
    if settings.rate.as_per_second() <= 0.0 {
        return Err(InvalidLoad::NoRate);
    }
    if settings.keys == 0 || settings.keys > MAX_KEYS {
        return Err(InvalidLoad::Keys(settings.keys));
    }
    if !(0.0..=10.0).contains(&settings.zipf_exponent) {
        return Err(InvalidLoad::Exponent(settings.zipf_exponent));
    }
    if settings.hot.len() > MAX_SPELLS {
        return Err(InvalidLoad::Spells(settings.hot.len()));
    }
    for spell in &settings.hot {
        if spell.end.is_some_and(|end| end <= spell.begin) {
            return Err(InvalidLoad::EmptySpell(spell.key.clone()));
        }
        // The sum is highest at the begin of some spell.
        let on = settings.hot.iter().filter(|other| other.is_on(spell.begin));
        let share: f64 = on.map(|other| other.share.as_f64()).sum();
        if share > 1.0 + 1e-9 {
            return Err(InvalidLoad::Shares { at: spell.begin, share });
        }
    }
    Ok(())
}

/// A text that is no hot spell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid hot key '{0}', which should be KEY:SHARE or KEY:SHARE:BEGIN..END, e.g. c42:30%:20s..60s or c42:30%:20s.."
)]
pub struct InvalidSpell(pub String);

impl FromStr for HotSpell {
    type Err = InvalidSpell;

    /// Reads `KEY:SHARE` or `KEY:SHARE:BEGIN..END`, either side of the dots may be absent. The key may hold colons.
    fn from_str(text: &str) -> Result<Self, InvalidSpell> {
        let invalid = || InvalidSpell(text.chars().take(64).collect());
        let (rest, last) = text.rsplit_once(':').ok_or_else(invalid)?;
        let (rest, share, when) = match last.split_once("..") {
            None => (rest, last, None),
            Some(when) => {
                let (rest, share) = rest.rsplit_once(':').ok_or_else(invalid)?;
                (rest, share, Some(when))
            }
        };
        let moment =
            |text: &str| if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(|_| invalid()) };
        let (begin, end) = when.unwrap_or_default();
        if rest.is_empty() {
            return Err(invalid());
        }
        Ok(Self {
            key: rest.to_owned(),
            share: share.parse().map_err(|_| invalid())?,
            begin: moment(begin)?.unwrap_or(Span::ZERO),
            end: moment(end)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;
    use crate::plan::{MapperKind, ShardHash};

    fn settings() -> LoadSettings {
        LoadSettings {
            rate: Rate::per_second(1000.0).unwrap(),
            keys: 100,
            zipf_exponent: 1.0,
            hot: vec!["hot:x:30%:10s..20s".parse().unwrap()],
            read_share: Share::new(0.25).unwrap(),
            mapper: Mapper::new(
                MapperKind::Modulo(ShardHash::Murmur2),
                (0..8).map(|shard| format!("s{shard}")).collect(),
            )
            .ok(),
            disorder: Span::from_secs(2),
            seed: 7,
            start: EventTime::from_millis(1_767_225_600_000).unwrap(),
        }
    }

    fn bytes(settings: LoadSettings, count: usize) -> Vec<u8> {
        let mut load = Load::new(settings).unwrap();
        let mut bytes = Vec::new();
        for _ in 0..count {
            let request = load.next().unwrap();
            request.write_json(load.shard_of(request.client.as_bytes()), &mut bytes).unwrap();
            bytes.push(b'\n');
        }
        bytes
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_another_gives_others() {
        let first = bytes(settings(), 5000);
        assert_eq!(first, bytes(settings(), 5000));
        assert_ne!(first, bytes(LoadSettings { seed: 8, ..settings() }, 5000));
    }

    #[test]
    fn requests_are_as_the_settings_say() {
        let load = Load::new(settings()).unwrap();
        let requests: Vec<Request> = load.take(30_000).collect();
        let start = settings().start;
        let hot = |request: &&Request| request.client == "hot:x";
        let sent_s = |request: &Request| request.sent_at.since(start).as_millis() / 1000;
        assert!(requests.iter().filter(hot).all(|request| (10..20).contains(&sent_s(request))));
        let share = requests.iter().filter(hot).count();
        assert!((2800..3200).contains(&share), "{share} of 10,000 should be 30 %");
        let reads = requests.iter().filter(|request| request.operation == Operation::Read).count();
        assert!((7200..7800).contains(&reads), "{reads} of 30,000 should be 25 %");
        assert!(requests.iter().all(|request| request.sent_at.since(request.time) <= Span::from_secs(2)));
        assert!(requests.windows(2).any(|pair| pair[1].time < pair[0].time));
        assert!(requests.windows(2).all(|pair| pair[0].sent_at <= pair[1].sent_at));
        assert_eq!(requests[29_999].sent_at.since(start), Span::from_millis(29_999));
        assert_eq!(requests.iter().map(|request| &request.id).collect::<HashSet<_>>().len(), 30_000);
        let mut counts = HashMap::new();
        requests.iter().for_each(|request| *counts.entry(request.client.as_str()).or_insert(0) += 1);
        assert!(counts["c1"] > counts["c10"] && counts["c10"] > counts["c100"]);
    }

    #[test]
    fn an_event_is_one_json_object_with_its_shard() {
        let mut load = Load::new(LoadSettings { hot: vec!["a\"\\b:100%".parse().unwrap()], ..settings() }).unwrap();
        let request = load.next().unwrap();
        let shard = load.shard_of(request.client.as_bytes()).unwrap();
        let mut record = Vec::new();
        request.write_json(Some(shard), &mut record).unwrap();
        let event: serde_json::Value = serde_json::from_slice(&record).unwrap();
        assert_eq!((&event["client"], &event["id"]), (&"a\"\\b".into(), &request.id.as_str().into()));
        assert_eq!(event["ts"], request.time.as_millis());
        assert!(settings().mapper.unwrap().shards().iter().any(|name| event["shard"] == name.as_str()));
        record.clear();
        request.write_json(None, &mut record).unwrap();
        assert!(serde_json::from_slice::<serde_json::Value>(&record).unwrap().get("shard").is_none());
    }

    #[test]
    fn hot_spells_read_as_documented() {
        let spell = |text: &str| text.parse::<HotSpell>().map(|spell| (spell.key, spell.begin, spell.end));
        let secs = Span::from_secs;
        assert_eq!(spell("c1:30%"), Ok(("c1".to_owned(), Span::ZERO, None)));
        assert_eq!(spell("a:b:0.3:20s..60s"), Ok(("a:b".to_owned(), secs(20), Some(secs(60)))));
        assert_eq!(spell("c1:30%:..60s"), Ok(("c1".to_owned(), Span::ZERO, Some(secs(60)))));
        assert_eq!(spell("c1:30%:20s.."), Ok(("c1".to_owned(), secs(20), None)));
        for text in ["", "c1", "c1:", ":30%", "c1:130%", "c1:30%:20..60", "30%:20s..60s", "c1:30%:20s"] {
            assert!(spell(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |change: &dyn Fn(&mut LoadSettings)| {
            let mut settings = settings();
            change(&mut settings);
            Load::new(settings).unwrap_err()
        };
        assert_eq!(refused(&|s| s.rate = Rate::default()), InvalidLoad::NoRate);
        assert_eq!(refused(&|s| s.keys = 0), InvalidLoad::Keys(0));
        assert_eq!(refused(&|s| s.zipf_exponent = -1.0), InvalidLoad::Exponent(-1.0));
        assert!(matches!(refused(&|s| s.zipf_exponent = f64::NAN), InvalidLoad::Exponent(_)));
        assert_eq!(refused(&|s| s.hot[0].end = Some(Span::ZERO)), InvalidLoad::EmptySpell("hot:x".to_owned()));
        assert_eq!(refused(&|s| s.hot = vec![s.hot[0].clone(); 101]), InvalidLoad::Spells(101));
        assert!(matches!(refused(&|s| s.hot = vec![s.hot[0].clone(); 4]), InvalidLoad::Shares { .. }));
    }
}
