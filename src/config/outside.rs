//! `[control]`, `[observe]` and `[service]`: topics of plans and acknowledgements, HTTP, start, stop and stalls.

use core::net::SocketAddr;
use std::path::PathBuf;

use super::connection::FILE;
use super::events::TOPIC;
use super::kind::{Choice, Flag, Length, Parsed, Text};
use super::section::Section;
use super::settings::{ControlSettings, KeyLabel, ObserveSettings, ServiceSettings};
use crate::units::Span;

const KEY_LABEL: Choice<KeyLabel> =
    Choice(&[("plain", KeyLabel::Plain), ("hash", KeyLabel::Hash), ("off", KeyLabel::Off)]);

const ADDRESS: Parsed<SocketAddr> = Parsed::new("an address and a port, e.g. \"127.0.0.1:9464\" or \"[::1]:9464\"");

/// The most names in `allowed_hosts`.
const MAX_HOSTS: usize = 16;

const HOST: Text = Text {
    rule: "the name of a host without its port: letters, digits, '.' and '-', e.g. \"keyheat.example.org\"",
    max_bytes: 253,
    allowed: |text| text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-')),
};

pub(super) fn control(root: &Section<'_, '_>, input_topic: &str) -> ControlSettings {
    let section = root.section("control");
    let default = ControlSettings::default();
    let plan_topic = section.or("plan_topic", &TOPIC, default.plan_topic);
    let acks_topic = section.or("acks_topic", &TOPIC, default.acks_topic);
    let seconds = Length { min: Span::from_millis(500), max: Span::from_secs(60) };
    let heartbeat = section.or("heartbeat", &seconds, default.heartbeat);
    let others = "choose three topics: events, plans and acknowledgements";
    if section.are_sound(&["plan_topic", "acks_topic"]) && plan_topic == acks_topic {
        let name = if section.has("acks_topic") { "acks_topic" } else { "plan_topic" };
        section.fault(name, "plan_topic and acks_topic should be two topics", others);
    }
    for (name, topic) in [("plan_topic", &plan_topic), ("acks_topic", &acks_topic)] {
        if topic == input_topic {
            section.fault(name, "should not be input.topic", others);
        }
    }
    section.finish();
    ControlSettings { plan_topic, acks_topic, heartbeat }
}

pub(super) fn observe(root: &Section<'_, '_>) -> ObserveSettings {
    let section = root.section("observe");
    let default = ObserveSettings::default();
    let listen = section.or("listen", &ADDRESS, default.listen);
    let listen_public = section.or("listen_public", &Flag, false);
    let allowed_hosts = section.list("allowed_hosts", &HOST, 0..MAX_HOSTS + 1, Vec::new());
    let key_label = section.or("key_label", &KEY_LABEL, default.key_label);
    if section.are_sound(&["listen", "listen_public"]) && !listen.ip().is_loopback() && !listen_public {
        section.fault(
            "listen",
            "should be a loopback address, e.g. \"127.0.0.1:9464\"",
            "keys are readable there: to be reached from other machines add listen_public = true",
        );
    }
    let token_file = section.optional("token_file", &FILE).map(PathBuf::from);
    section.finish();
    ObserveSettings { listen, allowed_hosts, key_label, token_file }
}

pub(super) fn service(root: &Section<'_, '_>) -> ServiceSettings {
    let section = root.section("service");
    let default = ServiceSettings::default();
    let length = |min, max| Length { min: Span::from_secs(min), max: Span::from_secs(max) };
    let stall_timeout = section.or("stall_timeout", &length(10, 3600), default.stall_timeout);
    let shutdown_grace = section.or("shutdown_grace", &length(1, 300), default.shutdown_grace);
    let session_timeout = section.or("session_timeout", &length(6, 300), default.session_timeout);
    if section.are_sound(&["stall_timeout", "session_timeout"]) && stall_timeout <= session_timeout {
        let name = if section.has("stall_timeout") { "stall_timeout" } else { "session_timeout" };
        let rule = format!("stall_timeout ({stall_timeout}) should be longer than session_timeout ({session_timeout})");
        section.fault(name, rule, "a rebalance is no stall");
    }
    section.finish();
    ServiceSettings { stall_timeout, shutdown_grace, session_timeout }
}
