//! One document a kind of value, and all of them as parts of one.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

use super::rules::{plain_numbers, whole_text};
use crate::protocol::{
    Advice, BackfillReport, Claim, Heartbeat, PlanRecord, Policy, RecordKind, RetiredReport, RouterAck,
};

/// The schema of one kind of value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The kind of record, e.g. `plan`.
    pub name: &'static str,
    /// The schema; its `$id` is the `ce_dataschema` of such records, where they have headers.
    pub schema: Value,
}

/// One kind of value: its name, its URN and the name of its type.
struct Kind {
    name: &'static str,
    id: &'static str,
    type_name: fn() -> String,
    add: fn(&mut SchemaGenerator),
    make: fn(SchemaGenerator) -> Schema,
}

impl Kind {
    fn of<T: JsonSchema>(name: &'static str, id: &'static str) -> Self {
        Self {
            name,
            id,
            type_name: || T::schema_name().into_owned(),
            add: |generator| {
                generator.subschema_for::<T>();
            },
            make: SchemaGenerator::into_root_schema_for::<T>,
        }
    }
}

fn kinds() -> [Kind; 8] {
    let id = |kind: RecordKind| kind.schema().unwrap_or_default();
    [
        Kind::of::<Advice>("advice", id(RecordKind::Advice)),
        Kind::of::<BackfillReport>("backfill", "urn:keyheat:schema:backfill:1"),
        Kind::of::<Claim>("claim", id(RecordKind::Claim)),
        Kind::of::<Heartbeat>("heartbeat", id(RecordKind::Heartbeat)),
        Kind::of::<PlanRecord>("plan", id(RecordKind::Plan)),
        Kind::of::<Policy>("policy", id(RecordKind::Policy)),
        Kind::of::<RetiredReport>("retired", "urn:keyheat:schema:retired:1"),
        Kind::of::<RouterAck>("router", "urn:keyheat:schema:router:1"),
    ]
}

/// Every schema, in the order of their names.
#[must_use]
pub fn documents() -> Vec<Document> {
    let document = |kind: Kind| {
        let mut schema = (kind.make)(tidy(SchemaSettings::draft2020_12()).into_generator());
        schema.insert("$id".to_owned(), kind.id.into());
        Document { name: kind.name, schema: schema.to_value() }
    };
    kinds().into_iter().map(document).collect()
}

/// The types of all values by name, as draft 7, which refer to each other as parts of an `AsyncAPI` document.
#[must_use]
pub fn components() -> Map<String, Value> {
    let mut settings = tidy(SchemaSettings::draft07());
    settings.definitions_path = "/components/schemas".into();
    let mut generator = settings.into_generator();
    for kind in kinds() {
        (kind.add)(&mut generator);
    }
    generator.take_definitions(true)
}

/// The name among [`components`] of a kind of value; none for an unknown one.
#[must_use]
pub fn component(name: &str) -> Option<String> {
    kinds().into_iter().find(|kind| kind.name == name).map(|kind| (kind.type_name)())
}

/// What every schema goes through last, what the rules of a type have added too.
fn tidy(settings: SchemaSettings) -> SchemaSettings {
    settings.with_transform(RecursiveTransform(plain_numbers)).with_transform(RecursiveTransform(whole_text))
}
