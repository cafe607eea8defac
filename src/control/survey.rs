//! What is wrong on the plan topic and the acks topic, as they lie there: facts in, findings out, without a broker or a clock.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::protocol::{
    AckApplied, AckTable, AckTopicKey, Applied, LogRecord, Nonce, PlanKey, PlanTable, PlanTopicKey, RefusedRecord,
    State, Version,
};
use crate::units::{EventTime, Span};

/// Versions whose content is remembered, to tell when one has two.
const MAX_REMEMBERED: usize = 200_000;
/// Findings of one kind that are listed one by one; the rest is counted.
const MAX_LISTED: usize = 100;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The protocol is broken, or nothing can go on.
    Fault,
    /// Worth knowing; it happens where all is well.
    Note,
}

impl Level {
    /// The word for it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Note => "note",
        }
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// What was looked at: a word of a closed list.
    pub check: &'static str,
    /// The value, the rule and the remedy.
    pub text: String,
}

impl Finding {
    /// A fault.
    #[must_use]
    pub fn fault(check: &'static str, text: impl fmt::Display) -> Self {
        Self { level: Level::Fault, check, text: text.to_string() }
    }

    /// A note.
    #[must_use]
    pub fn note(check: &'static str, text: impl fmt::Display) -> Self {
        Self { level: Level::Note, check, text: text.to_string() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.level.label(), self.check, self.text)
    }
}

/// Both topics, read record by record: first the acks topic to its end, then the plan topic, else an acknowledgement of a record that
/// is still to be read looks like one of a record that was lost.
#[derive(Debug, Default)]
pub struct Survey {
    plans: PlanTable,
    acks: AckTable,
    /// Hash of key and value of each version.
    contents: BTreeMap<(Version, Nonce), u64>,
    two_contents: BTreeSet<Version>,
    unremembered: u64,
    /// Records that do not count, by topic and reason, with the last one.
    refused: BTreeMap<(&'static str, &'static str), (u64, i64, String)>,
    ignored: BTreeMap<&'static str, (u64, i64)>,
    plan_records: u64,
    ack_records: u64,
    /// When the newest accepted record of a plan was appended.
    changed_at: Option<EventTime>,
    reports: BTreeMap<(&'static str, PlanKey, u32), Version>,
}

impl Survey {
    /// Before the first record.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next record of the acks topic.
    pub fn ack_record(&mut self, record: &LogRecord) {
        self.ack_records += 1;
        match self.acks.apply(record) {
            AckApplied::Refused { key, reason } => {
                let key = key.to_bytes();
                self.refuse("acks", &reason, &key, record);
            }
            AckApplied::Ignored(_) => self.ignore("acks", record),
            AckApplied::Backfill { key, layout } => {
                if let Some(report) = self.acks.backfill(&key, layout) {
                    self.reports.insert(("backfill", key, layout), report.migration);
                }
            }
            AckApplied::Retired { key, layout } => {
                if let Some(report) = self.acks.retired(&key, layout) {
                    self.reports.insert(("retired", key, layout), report.migration);
                }
            }
            AckApplied::ReportRemoved(AckTopicKey::Backfill { key, layout }) => {
                self.reports.remove(&("backfill", key, layout));
            }
            AckApplied::ReportRemoved(AckTopicKey::Retired { key, layout }) => {
                self.reports.remove(&("retired", key, layout));
            }
            AckApplied::Router { .. } | AckApplied::Left { .. } | AckApplied::ReportRemoved(_) => {}
        }
    }

    /// Takes the next record of the plan topic.
    pub fn plan_record(&mut self, record: &LogRecord) {
        self.plan_records += 1;
        self.remember(record);
        match self.plans.apply(record) {
            Applied::Plan { .. } | Applied::Removed { .. } => self.changed_at = record.log_time,
            Applied::Refused { key, reason, .. } => self.refuse("plan", &reason, &key.to_bytes(), record),
            Applied::Ignored(_) => self.ignore("plan", record),
            Applied::Advice { .. }
            | Applied::AdviceRemoved { .. }
            | Applied::Policy { .. }
            | Applied::PolicyRemoved { .. }
            | Applied::Other { .. }
            | Applied::Claim { .. }
            | Applied::Heartbeat { .. } => {}
        }
    }

    fn remember(&mut self, record: &LogRecord) {
        let Ok(headers) = record.parsed_headers() else { return };
        if record.key.starts_with(b"claim/") {
            return;
        }
        let mut hasher = DefaultHasher::new();
        (&record.key, &record.value).hash(&mut hasher);
        let (content, room) = (hasher.finish(), self.contents.len() < MAX_REMEMBERED);
        match self.contents.entry((headers.version, headers.nonce)) {
            Entry::Occupied(known) if *known.get() != content => drop(self.two_contents.insert(headers.version)),
            Entry::Occupied(_) => {}
            Entry::Vacant(free) if room => drop(free.insert(content)),
            Entry::Vacant(_) => self.unremembered += 1,
        }
    }

    fn refuse(&mut self, topic: &'static str, reason: &RefusedRecord, key: &[u8], record: &LogRecord) {
        let last = format!("{} of key {}", reason, key.escape_ascii());
        let (count, offset, words) = self.refused.entry((topic, reason.label())).or_default();
        (*count, *offset, *words) = (*count + 1, record.offset.0, last);
    }

    fn ignore(&mut self, topic: &'static str, record: &LogRecord) {
        let (count, offset) = self.ignored.entry(topic).or_default();
        (*count, *offset) = (*count + 1, record.offset.0);
    }

    /// Records that were read: of the plan topic, of the acks topic.
    #[must_use]
    pub const fn records(&self) -> (u64, u64) {
        (self.plan_records, self.ack_records)
    }

    /// The plans as a router would hold them.
    #[must_use]
    pub const fn plans(&self) -> &PlanTable {
        &self.plans
    }

    /// The registered routers and the owners' reports.
    #[must_use]
    pub const fn acks(&self) -> &AckTable {
        &self.acks
    }

    /// What is wrong at `now`, faults first. Who has said nothing for `silent_after`, leader or router, counts as silent.
    #[must_use]
    pub fn findings(&self, now: EventTime, silent_after: Span) -> Vec<Finding> {
        let mut findings = Vec::new();
        self.records_that_do_not_count(&mut findings);
        self.shadows(&mut findings);
        self.heartbeat(now, silent_after, &mut findings);
        self.routers(now, silent_after, &mut findings);
        self.plans_that_wait(now, &mut findings);
        self.unknown_reports(&mut findings);
        findings.sort();
        cut(&findings)
    }

    fn records_that_do_not_count(&self, findings: &mut Vec<Finding>) {
        for ((topic, label), (count, offset, last)) in &self.refused {
            let text = format!(
                "{count} records of the {topic} topic do not count ({label}), the last at offset {offset}: {last}"
            );
            // A late or repeated record of a publisher is what the fence is for.
            let expected = matches!(*label, "not_leader" | "old_version" | "void");
            findings.push(if expected { Finding::note("refused", text) } else { Finding::fault("refused", text) });
        }
        for (topic, (count, offset)) in &self.ignored {
            let text = format!(
                "{count} records of the {topic} topic have a key of no form that this version knows, the last at offset {offset}; a newer version may"
            );
            findings.push(Finding::note("ignored", text));
        }
        for version in &self.two_contents {
            let text =
                format!("version {version} is on the plan topic with two contents; a version is sent again unchanged");
            findings.push(Finding::fault("two_contents", text));
        }
        if self.unremembered > 0 {
            let text = format!("{} records were not compared: {MAX_REMEMBERED} at most are", self.unremembered);
            findings.push(Finding::note("two_contents", text));
        }
    }

    /// A refused record that is the last of its key is all that a fresh reader would find once the log is compacted.
    fn shadows(&self, findings: &mut Vec<Finding>) {
        let heartbeat = self.plans.heartbeat().map(|heartbeat| heartbeat.offset);
        for (key, shadow) in self.plans.shadowed() {
            let key = shown(key);
            let text =
                format!("the last record of {key}, offset {}, does not count and is not answered yet", shadow.offset.0);
            // Answers go before everything else, so a leader that came to a heartbeat has left it out.
            findings.push(if heartbeat.is_some_and(|offset| offset > shadow.offset) {
                Finding::fault(
                    "shadowed",
                    format!(
                        "{text}, though the leader wrote a heartbeat after it; compaction would lose what is in force"
                    ),
                )
            } else {
                Finding::note("shadowed", format!("{text}; the leader does so at once"))
            });
        }
    }

    fn heartbeat(&self, now: EventTime, silent_after: Span, findings: &mut Vec<Finding>) {
        let Some(entry) = self.plans.heartbeat() else {
            let text = "the plan topic has no heartbeat: no leader has said anything";
            findings.push(if self.plan_records == 0 {
                Finding::note("heartbeat", text)
            } else {
                Finding::fault("heartbeat", format!("{text}; is 'keyheat run' at work, with this topic?"))
            });
            return;
        };
        if !entry.agrees {
            let text = format!(
                "the heartbeat at offset {} has digest {} and {} plans, the log up to there gives another table: records were lost, or are read otherwise",
                entry.offset.0, entry.heartbeat.digest, entry.heartbeat.plans
            );
            findings.push(Finding::fault("digest", text));
        }
        if let Some(age) = entry.log_time.map(|time| now.since(time)).filter(|age| *age > silent_after) {
            let text =
                format!("the last heartbeat is {age} old, at most {silent_after} is expected: no leader is at work");
            findings.push(Finding::fault("heartbeat", text));
        }
    }

    fn routers(&self, now: EventTime, silent_after: Span, findings: &mut Vec<Finding>) {
        let last = self.plans.last_version();
        let mut nonces: BTreeMap<&str, usize> = BTreeMap::new();
        for router in self.acks.routers() {
            let ack = &router.ack;
            *nonces.entry(ack.id.as_str()).or_default() += 1;
            let age = router.log_time.map(|time| now.since(time));
            if let Some(age) = age.filter(|age| *age > silent_after) {
                let text = format!(
                    "router {} has said nothing for {age} and every plan waits for it; start it again, or drop it by 'keyheat plan forget-router'",
                    ack.id
                );
                findings.push(Finding::fault("silent_router", text));
            }
            let changed = self.changed_at.map(|time| now.since(time));
            if ack.applied < last && self.newest_plan() > ack.applied && changed.is_some_and(|age| age > silent_after) {
                let text =
                    format!("router {} has applied {}, plans are at {}", ack.id, ack.applied, self.newest_plan());
                findings.push(Finding::fault("behind", text));
            }
            if ack.applied > last {
                let text = format!(
                    "router {} has applied {}, above the log's last version {last}: the plan topic has lost records",
                    ack.id, ack.applied
                );
                findings.push(Finding::fault("ahead", text));
            }
            if ack.applied == last && last.seq > 0 && ack.refusals.is_empty() && ack.digest != self.plans.digest() {
                let text = format!(
                    "router {} has another table at version {last}: digest {}, the log gives {}",
                    ack.id,
                    ack.digest,
                    self.plans.digest()
                );
                findings.push(Finding::fault("digest", text));
            }
            for refused in &ack.refusals {
                let text = format!(
                    "router {} refuses version {} of {}: {}",
                    ack.id,
                    refused.version,
                    refused.key.0.escape_ascii(),
                    refused.reason
                );
                findings.push(Finding::fault("refusing_router", text));
            }
        }
        for (id, count) in nonces.into_iter().filter(|(_, count)| *count > 1) {
            let text = format!(
                "router {id} is registered {count} times: two run under one name, or one lost its snapshot; gates wait for each, drop them by 'keyheat plan forget-router' and start it anew"
            );
            findings.push(Finding::fault("twins", text));
        }
        if self.acks.routers().len() == 0 && self.plans.plans().len() > 0 {
            findings
                .push(Finding::fault("no_router", "there are plans and no router is registered: nobody obeys them"));
        }
    }

    fn newest_plan(&self) -> Version {
        self.plans.plans().map(|(_, entry)| entry.version).max().unwrap_or_default()
    }

    fn plans_that_wait(&self, now: EventTime, findings: &mut Vec<Finding>) {
        for (key, entry) in self.plans.plans() {
            let state = entry.record.state;
            let stragglers: Vec<&str> =
                self.acks.stragglers(key, entry.version).map(|router| router.ack.id.as_str()).collect();
            if state == State::Settled && stragglers.is_empty() {
                continue;
            }
            let for_whom = match (state, &stragglers[..]) {
                (State::Proposed, _) => "approval".to_owned(),
                (State::Moving, []) => "the owner's report".to_owned(),
                (_, []) => "the leader".to_owned(),
                (_, some) => format!("routers {}", some.join(", ")),
            };
            let age = entry.log_time.map_or_else(String::new, |time| format!(", for {}", now.since(time)));
            let key = shown(&PlanTopicKey::Plan(key.clone()));
            let text = format!("{key}, version {}, {}, waits for {for_whom}{age}", entry.version, state.label());
            findings.push(Finding::note("waiting", text));
        }
    }

    /// Reports on migrations that are over stay on the topic, and their plans' tombstones may be gone: only one that is ahead of the
    /// plans was made of nothing.
    fn unknown_reports(&self, findings: &mut Vec<Finding>) {
        let last = self.plans.last_version();
        for ((kind, key, layout), migration) in &self.reports {
            let newest = self.plans.plan(key).map_or(last, |entry| entry.record.migration.version);
            if *migration > newest {
                let key = shown(&PlanTopicKey::Plan(key.clone()));
                let text = format!(
                    "a report ({kind}, layout {layout}) on migration {migration} of {key}, which the plan topic does not have"
                );
                findings.push(Finding::fault("unknown_report", text));
            }
        }
    }
}

fn shown(key: &PlanTopicKey) -> String {
    format!("'{}'", key.to_bytes().escape_ascii())
}

/// The first ones of each kind, and how many more there are.
fn cut(findings: &[Finding]) -> Vec<Finding> {
    let mut kept = Vec::new();
    for same in findings.chunk_by(|a, b| (a.level, a.check) == (b.level, b.check)) {
        kept.extend(same.iter().take(MAX_LISTED).cloned());
        if let (Some(first), more @ 1..) = (same.first(), same.len().saturating_sub(MAX_LISTED)) {
            kept.push(Finding { text: format!("and {more} more"), ..first.clone() });
        }
    }
    kept
}
