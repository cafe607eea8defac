//! The passages of the document that are made by the code.

use std::fmt::Write as _;

use base64::Engine as _;
use keyheat::config::ControlSettings;
use keyheat::control::{Accepts, TopicSpec};
use keyheat::plan::migration::{self, Standing};
use keyheat::protocol::{
    Delete, Digest, History, Layout, MAX_ACK_BYTES, MAX_BUCKETS, MAX_LISTED, MAX_OTHERS, MAX_PLANS, MAX_READ_LAYOUTS,
    MAX_REASON_CHARS, MAX_REPORTS, MAX_ROUTERS, MAX_SOURCE_BYTES, MAX_VALUE_BYTES, PlanRecord, RecordKind, State,
    Writes, bucket_hash,
};
use keyheat::router::{Place, Table, TableSettings, Write};
use serde_json::Value;

use super::golden_log::{after, begin};
use super::judge::waits_for;
use super::log::{customer, plan, version};

/// The passage with this name: a table or a code block.
pub(crate) fn passage(name: &str) -> String {
    match name.split_once(' ') {
        Some(("key", of)) => code("", &hex(&Golden::of(of).key)),
        Some(("headers", of)) => headers(&Golden::of(of)),
        Some(("value", of)) => code("json", &Golden::of(of).value),
        _ => match name {
            "topics" => topics(),
            "kinds" => kinds(),
            "digest" => digest(),
            "phases" => phases(),
            "operations" => operations(),
            "acknowledging" => acknowledging(),
            "places" => places(),
            "buckets" => buckets(),
            "store keys" => store_keys(),
            "limits" => limits(),
            other => panic!("no passage '{other}'"),
        },
    }
}

/// A released record.
struct Golden {
    key: Vec<u8>,
    headers: Vec<(String, String)>,
    value: String,
}

impl Golden {
    fn of(name: &str) -> Self {
        let path = format!("{}/fixtures/protocol/v1/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let headers = file["headers"].as_array().unwrap().iter();
        Self {
            key: base64(&file["key_b64"]),
            headers: headers.map(|pair| (text(&pair[0]), text(&pair[1]))).collect(),
            value: text(&file["value"]),
        }
    }
}

fn base64(text: &Value) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD.decode(text.as_str().unwrap()).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn code(language: &str, text: &str) -> String {
    format!("```{language}\n{text}\n```")
}

fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let head = head.map(str::to_owned);
    let rule = format!("|{}", "---|".repeat(N));
    let rows: Vec<_> = rows.into_iter().map(|row| line(&row)).collect();
    format!("{}\n{rule}\n{}", line(&head), rows.join("\n"))
}

fn quoted(text: &str) -> String {
    format!("`{text}`")
}

fn headers(golden: &Golden) -> String {
    table(["Header", "Value"], golden.headers.iter().map(|(name, value)| [quoted(name), quoted(value)]))
}

fn topics() -> String {
    let [plan, acks] = <[TopicSpec; 2]>::try_from(TopicSpec::control(&ControlSettings::default())).unwrap();
    let may_be = |accepts: Accepts| match accepts {
        Accepts::Same => "this".to_owned(),
        Accepts::AtLeast(_) => "at least this".to_owned(),
        Accepts::Between(_, most) => format!("this to {most}"),
        Accepts::Any => "anything".to_owned(),
    };
    let partitions =
        ["partitions".to_owned(), plan.partitions.to_string(), acks.partitions.to_string(), "this".to_owned()];
    let rows = plan.settings.iter().zip(&acks.settings).map(|(one, other)| {
        assert_eq!(one.name, other.name);
        [quoted(one.name), one.value.clone(), other.value.clone(), may_be(one.accepts)]
    });
    table(["Setting", "plan topic", "acks topic", "may be"], [partitions].into_iter().chain(rows))
}

fn kinds() -> String {
    let kinds = [
        ("plan/…", RecordKind::Plan, RecordKind::PlanRemoved),
        ("advice/…", RecordKind::Advice, RecordKind::AdviceRemoved),
        ("policy/…", RecordKind::Policy, RecordKind::PolicyRemoved),
        ("claim/…", RecordKind::Claim, RecordKind::Other),
        ("heartbeat", RecordKind::Heartbeat, RecordKind::Other),
    ];
    let row = |(key, kind, removed): (&str, RecordKind, RecordKind)| {
        let removed = if removed == RecordKind::Other { "–".to_owned() } else { quoted(removed.label()) };
        [quoted(key), quoted(kind.label()), removed, quoted(kind.schema().unwrap())]
    };
    table(["Key", "`ce_type`", "`ce_type` of a tombstone", "`ce_dataschema`"], kinds.map(row))
}

fn digest() -> String {
    let golden = Golden::of("plan-moving");
    let header = |name: &str| golden.headers.iter().find(|(found, _)| found == name).unwrap().1.parse::<u64>().unwrap();
    let version = version(header("kh_epoch"), header("kh_seq"));
    let digest = Digest::default().toggled(&golden.key, version, golden.value.as_bytes());
    let lines = [
        format!("length  {}", hex(&u32::try_from(golden.key.len()).unwrap().to_be_bytes())),
        format!("key     {}", hex(&golden.key)),
        format!("epoch   {}", hex(&version.epoch.to_be_bytes())),
        format!("seq     {}", hex(&version.seq.to_be_bytes())),
        format!("value   the {} bytes of section 16", golden.value.len()),
        format!("digest  {digest}"),
    ];
    code("", &lines.join("\n"))
}

/// A migration of `update` from the bare key to buckets: its records, in their order, with their names.
fn walk() -> Vec<(&'static str, PlanRecord)> {
    let prepare = begin(b"c42", 8, Writes::Update, History::Move, version(3, 17), None);
    let proposed = migration::propose(
        migration::Order {
            key: prepare.plan_key(),
            version: version(3, 17),
            buckets: 8,
            first: 40,
            seed: prepare.bucket.seed,
            writes: Writes::Update,
            history: History::Move,
            evidence: prepare.evidence.clone(),
            prediction: prepare.prediction.clone(),
            undone: None,
            decided_at: prepare.decided_at.clone(),
            not_after: prepare.decided_at.clone(),
        },
        &Standing::of(None).unwrap(),
    );
    let mut walk = vec![("proposed", proposed.unwrap()), ("prepare", prepare)];
    for name in ["hold", "dual", "moving", "settled", "settled with `retire`"] {
        walk.push((name, after(&walk.last().unwrap().1)));
    }
    walk
}

fn letter(layout: Layout) -> &'static str {
    if layout.is_bare() { "A" } else { "B" }
}

fn letters(layouts: &[Layout]) -> String {
    layouts.iter().map(|layout| letter(*layout)).collect::<Vec<_>>().join(", ")
}

fn how(delete: Delete) -> &'static str {
    match delete {
        Delete::Tombstone => "tombstone",
        Delete::Remove => "remove",
    }
}

fn phases() -> String {
    let row = |(name, record): (&str, PlanRecord)| {
        let write = record.write.map_or("null: writes wait", letter).to_owned();
        let retire = if record.retire.is_empty() { "–".to_owned() } else { letters(&record.retire) };
        [name.to_owned(), write, letters(&record.read), how(record.delete).to_owned(), retire]
    };
    table(["State", "`write`", "`read`", "`delete`", "`retire`"], walk().into_iter().map(row))
}

/// What the table of a router says of every operation, by letters.
fn operations() -> String {
    let walk = walk();
    let states: Vec<(&str, Option<&PlanRecord>)> =
        [("no plan", None)].into_iter().chain(walk.iter().map(|(name, record)| (*name, Some(record)))).collect();
    let row = |(name, record): (&str, Option<&PlanRecord>)| {
        let router = Table::new(TableSettings::default());
        if let Some(record) = record {
            router.put(&customer("c42"), version(1, 1), record).unwrap();
        }
        let letter = |place: &Place<'_>| if place.layout == 0 { "A" } else { "B" };
        let letters = |places: &[Place<'_>]| places.iter().map(letter).collect::<Vec<_>>().join(", ");
        let write = match router.write("customer", b"c42", b"id").unwrap() {
            Write::Placed(placement) => letter(placement.place()).to_owned(),
            Write::Held(_) => "wait".to_owned(),
        };
        let delete = match router.delete("customer", b"c42", b"id").unwrap() {
            Write::Placed(placement) => format!("{} in {}", how(placement.how()), letter(placement.place())),
            Write::Held(_) => "wait".to_owned(),
        };
        let in_place = match router.update_in_place("customer", b"c42", b"id").unwrap() {
            Write::Placed(update) if update.promote_from().is_empty() => letter(update.place()).to_owned(),
            Write::Placed(update) => {
                format!("promote from {}, then {}", letters(update.promote_from()), letter(update.place()))
            }
            Write::Held(_) => "wait".to_owned(),
        };
        let read = letters(router.point_read("customer", b"c42", b"id").unwrap().places());
        let scan = router.scan("customer", b"c42").unwrap();
        let mut scanned: Vec<&str> =
            scan.places().iter().map(|place| if place.label.is_none() { "A" } else { "B" }).collect();
        scanned.dedup();
        [name.to_owned(), write, delete, in_place, read, format!("all of {}", scanned.join(", "))]
    };
    table(["State", "blind write", "delete", "in place", "point read", "scan, count"], states.into_iter().map(row))
}

/// For each record what holds up its acknowledgement, of requests that no earlier record has waited for.
fn acknowledging() -> String {
    let walk = walk();
    let records: Vec<Option<&PlanRecord>> =
        [None].into_iter().chain(walk.iter().map(|(_, record)| Some(record))).collect();
    let kinds = ["read", "write", "in_place", "write_unknown", "in_place_unknown"];
    let waits =
        |from: usize, to: usize, kind: &str| waits_for(&customer("c42"), records[from], records[to]).contains(&kind);
    let holds_up = |to: usize, kind: &str| {
        (0..to).any(|from| waits(from, to, kind) && !(from + 1..to).any(|between| waits(from, between, kind)))
    };
    let row = |(at, (name, _)): (usize, &(&str, PlanRecord))| {
        let cell = |kind: &str| if holds_up(at + 1, kind) { "waits" } else { "–" }.to_owned();
        let [read, write, in_place, write_unknown, in_place_unknown] = kinds.map(cell);
        [(*name).to_owned(), read, write, in_place, write_unknown, in_place_unknown]
    };
    let head = [
        "Acknowledgement of",
        "reads, scans",
        "blind writes, deletes",
        "in place",
        "blind writes, deletes of unknown outcome",
        "in place of unknown outcome",
    ];
    table(head, walk.iter().enumerate().map(row))
}

fn places() -> String {
    let record = plan(b"c42", 8, State::Moving);
    assert_eq!(String::from_utf8(record.encode()).unwrap(), Golden::of("plan-moving").value);
    let router = Table::new(TableSettings::default());
    router.put(&customer("c42"), version(3, 18), &record).unwrap();
    let key = |place: &Place<'_>| quoted(std::str::from_utf8(&place.key).unwrap());
    let row = |id: &[u8]| {
        let write = router.write("customer", b"c42", id).unwrap().placed().unwrap();
        let read = router.point_read("customer", b"c42", id).unwrap();
        let read: Vec<_> = read.places().iter().map(key).collect();
        let shown = std::str::from_utf8(id).map_or_else(|_| format!("bytes {}", hex(id)), quoted);
        let hash = bucket_hash(id, record.bucket.seed);
        [shown, format!("{hash:016x}"), write.place().bucket.to_string(), key(write.place()), read.join(", then ")]
    };
    let ids: [&[u8]; 4] = [b"order-1", b"order-2", "café".as_bytes(), b"\xff\xfe\x00/"];
    table(["Id", "xxh64", "Bucket", "Write, delete, in place", "Point read"], ids.map(row))
}

fn vectors() -> Value {
    let path = format!("{}/fixtures/router/vectors.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn shown_hex(bytes: &[u8]) -> String {
    if bytes.is_empty() { "(empty)".to_owned() } else { quoted(&hex(bytes)) }
}

fn buckets() -> String {
    let vectors = vectors();
    let short = vectors["buckets"].as_array().unwrap().iter().filter(|one| base64(&one["id_b64"]).len() < 64);
    let rows = short.map(|one| {
        let label = |at: usize| one["in"][at]["label"].to_string();
        let text = |name: &str| quoted(one[name].as_str().unwrap());
        [text("seed"), shown_hex(&base64(&one["id_b64"])), text("hash"), label(0), label(1), label(2), label(3)]
    });
    let of = |at: usize| {
        let layout = &vectors["buckets"][0]["in"][at];
        format!("label of {}, first {}", layout["buckets"], layout["first"])
    };
    let (a, b, c, d) = (of(0), of(1), of(2), of(3));
    table(["Seed", "Id, hexadecimal", "xxh64", &a, &b, &c, &d], rows)
}

fn store_keys() -> String {
    let vectors = vectors();
    let rows = vectors["keys"].as_array().unwrap().iter().filter(|one| one["label"] == 7).map(|one| {
        let hex = |name: &str| shown_hex(&base64(&one[name]));
        [quoted(one["form"].as_str().unwrap()), hex("key_b64"), one["label"].to_string(), hex("store_key_b64")]
    });
    table(["Form", "Key, hexadecimal", "Label", "Store key, hexadecimal"], rows)
}

fn limits() -> String {
    let row = |(what, most): (&str, usize)| [what.to_owned(), most.to_string()];
    let limits = [
        ("bytes of a value on the plan topic", MAX_VALUE_BYTES),
        ("bytes of a value on the acks topic", MAX_ACK_BYTES),
        ("buckets of a layout", MAX_BUCKETS as usize),
        ("layouts in `read`", MAX_READ_LAYOUTS),
        ("bytes of `bucket.key`", keyheat::protocol::MAX_BUCKET_KEY_BYTES),
        ("bytes of `ce_source`", MAX_SOURCE_BYTES),
        ("keys in `waiting`, and in `refusals`", MAX_LISTED),
        ("plans of a table", MAX_PLANS),
        ("policies of a table", MAX_OTHERS),
        ("characters of a policy's `reason`", MAX_REASON_CHARS),
        ("registered routers", MAX_ROUTERS),
        ("reports of each kind", MAX_REPORTS),
    ];
    table(["Limit", "At most"], limits.map(row))
}
