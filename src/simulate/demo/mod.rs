//! The demo: the whole loop in one process, and what is shown of it.

#[cfg(test)]
pub(super) mod fixture;
mod story;
mod summary;
mod view;

pub use story::{Line, MAX_LINES, Migration, Reads, Story, StorySettings, Tone};
pub use summary::{Summary, grouped};
pub use view::{DemoView, KeyView, RequestsView, RouterStand, ShardLoadView};
