//! The demo: the whole loop in one process, and what is shown of it.
//!
//! | Thread | Does |
//! |---|---|
//! | the caller's | looks at everything, tells the story, draws |
//! | clients | requests through the routers' tables to the shards; access events to Kafka; checks every answer |
//! | owner | follows plan and acks topic; moves and deletes records; reports |
//! | the service's own, one a router | as in production |
//!
//! Nothing is passed from the clients to the service but access events on Kafka, and nothing back but records on the plan topic.

mod clients;
#[cfg(test)]
pub(super) mod fixture;
mod lines;
mod owner;
mod run;
mod settings;
mod story;
mod summary;
mod view;

pub use lines::{status_line, story_line};
pub use run::{Demo, DemoError, Finished};
pub use settings::{DemoSettings, HOT_CLIENT, InvalidNumber};
pub use story::{Line, MAX_LINES, Migration, Reads, Story, StorySettings, Tone};
pub use summary::{Summary, grouped};
pub use view::{DemoView, KeyView, RequestsView, RouterStand, ShardLoadView};
