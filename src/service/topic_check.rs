//! Whether the topics between the leader and the routers are as they must be: looked at from the start until all is well.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::clock::Clock;
use super::stop::Stop;
use crate::config::Settings;
use crate::control::{TopicAdmin, TopicSpec, Verified};
use crate::source::ClientError;
use crate::units::Span;

/// The longest wait for one answer of the cluster.
const ANSWER_LIMIT: Span = Span::from_secs(5);
/// Time between two looks.
const LOOK_EVERY: Span = Span::from_secs(5);
/// The stop flag is looked at as often.
const NAP: Span = Span::from_millis(200);

/// What was found wrong with each topic at the last look, by its name. A missing topic is not listed: who reads it says so.
#[derive(Debug, Clone, Default)]
pub(super) struct TopicFaults(Arc<Mutex<BTreeMap<String, String>>>);

impl TopicFaults {
    /// What is wrong with a topic that is there; none when nothing is, or nothing is known yet.
    pub(super) fn of(&self, topic: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(topic).cloned()
    }

    fn set(&self, faults: BTreeMap<String, String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = faults;
    }
}

/// Looks at the topics on a thread of its own until they are sound: the leader's loop does not wait for it.
///
/// # Errors
/// When the client's settings cannot be read. Without a thread or a client nothing is checked, and the log says so.
pub(super) fn watch_topics(settings: &Settings, clock: Clock, stop: Stop) -> Result<TopicFaults, ClientError> {
    let faults = TopicFaults::default();
    let specs = TopicSpec::control(&settings.control);
    let admin = match TopicAdmin::new(&settings.kafka.client_config()?, ANSWER_LIMIT.to_duration()) {
        Ok(admin) => admin,
        Err(error) => {
            tracing::warn!("topic settings are not checked: {error}");
            return Ok(faults);
        }
    };
    let found = faults.clone();
    let body = move || {
        while !stop.is_set() && !look(&admin, &specs, &found) {
            let next = clock.elapsed().saturating_add(LOOK_EVERY);
            while !stop.is_set() && clock.elapsed() < next {
                thread::sleep(NAP.to_duration());
            }
        }
    };
    if let Err(error) = thread::Builder::new().name("topic-check".to_owned()).spawn(body) {
        tracing::warn!("topic settings are not checked: no thread: {error}");
    }
    Ok(faults)
}

/// One look; true when the topics are there and sound.
fn look(admin: &TopicAdmin, specs: &[TopicSpec], found: &TopicFaults) -> bool {
    let (list, described) = match admin.verify(specs, &[]) {
        Ok(Verified::Faults(list)) => (list, true),
        Ok(Verified::NotSupported(list)) => (list, false),
        // The cluster does not answer: who reads the topics says so.
        Err(_) => return false,
    };
    let mut faults: BTreeMap<String, String> = BTreeMap::new();
    for fault in list.iter().filter(|fault| !fault.is_missing()) {
        let text = faults.entry(fault.topic.clone()).or_default();
        if !text.is_empty() {
            text.push_str("; ");
        }
        text.push_str(&format!("{fault}: {}", fault.remedy()));
    }
    found.set(faults);
    if list.is_empty() && !described {
        tracing::info!("topic settings are not checked: this cluster cannot describe them");
    }
    list.is_empty()
}
