//! `[kafka]`: brokers, security, properties of librdkafka.

use std::collections::BTreeMap;

use super::kind::{Choice, Text};
use super::section::Section;
use super::settings::{KafkaSettings, Sasl, SaslMechanism, Security, Tls};
use crate::protocol::client::RESERVED_CLIENT_PROPERTIES;

/// The most addresses of brokers.
const MAX_BROKERS: usize = 64;
/// The most properties of librdkafka.
const MAX_PROPERTIES: usize = 200;
/// The longest path of a file.
const MAX_PATH_BYTES: usize = 4096;

const BROKER: Text = Text { rule: "host:port, e.g. \"127.0.0.1:9092\"", max_bytes: 260, allowed: is_host_and_port };
/// The path of a file.
pub(super) const FILE: Text = Text::any(MAX_PATH_BYTES, "the path of a file");

/// Which parts of [`Security`] a word asks for.
const SECURITY: Choice<(bool, bool)> = Choice(&[
    ("plaintext", (false, false)),
    ("ssl", (true, false)),
    ("sasl_plaintext", (false, true)),
    ("sasl_ssl", (true, true)),
]);

const MECHANISM: Choice<SaslMechanism> = Choice(&[
    ("PLAIN", SaslMechanism::Plain),
    ("SCRAM-SHA-256", SaslMechanism::ScramSha256),
    ("SCRAM-SHA-512", SaslMechanism::ScramSha512),
]);

pub(super) fn kafka(root: &Section<'_, '_>) -> KafkaSettings {
    let section = root.section("kafka");
    if !section.has("brokers") {
        section.missing("brokers", "addresses of brokers, e.g. [\"127.0.0.1:9092\"]".to_owned(), None);
    }
    let brokers = section.list("brokers", &BROKER, 1..MAX_BROKERS + 1, Vec::new());
    let client_id = section.or("client_id", &NAME, KafkaSettings::DEFAULT_CLIENT_ID.to_owned());
    let security = security(&section);
    let librdkafka = properties(&section.section("librdkafka"));
    section.finish();
    KafkaSettings { brokers, client_id, security, librdkafka }
}

const NAME: Text = Text {
    rule: "1 to 200 letters, digits, '.', '_' or '-'",
    max_bytes: 200,
    allowed: |text| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)),
};

fn is_host_and_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_[]:%".contains(&byte);
        !host.is_empty() && host.bytes().all(is_host) && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

fn security(section: &Section<'_, '_>) -> Security {
    let (with_tls, with_sasl) = section.or("security", &SECURITY, (false, false));
    let tls = Tls {
        ca_file: section.optional("ssl_ca_file", &FILE),
        certificate_file: section.optional("ssl_certificate_file", &FILE),
        key_file: section.optional("ssl_key_file", &FILE),
    };
    let mechanism = section.or("sasl_mechanism", &MECHANISM, SaslMechanism::ScramSha512);
    let username = section.optional("sasl_username", &Text::any(256, "the name that the brokers know"));
    let password_file = section.optional("sasl_password_file", &FILE);

    if section.are_sound(&["security"]) {
        check_security(section, with_tls, with_sasl);
    }
    let sasl = with_sasl.then(|| Sasl {
        mechanism,
        username: username.unwrap_or_default(),
        password_file: password_file.unwrap_or_default(),
    });
    Security { tls: with_tls.then_some(tls), sasl }
}

/// What belongs to the protocol that is asked for, and nothing else.
fn check_security(section: &Section<'_, '_>, with_tls: bool, with_sasl: bool) {
    let ask_for = |wanted: bool, names: &[&'static str], security: &str| {
        for name in names.iter().filter(|name| !wanted && section.has(name)) {
            section.fault(
                name,
                format!("has no use with this kafka.security, which should be {security}"),
                "set it, or leave this out",
            );
        }
    };
    ask_for(with_tls, &["ssl_ca_file", "ssl_certificate_file", "ssl_key_file"], "\"ssl\" or \"sasl_ssl\"");
    ask_for(
        with_sasl,
        &["sasl_mechanism", "sasl_username", "sasl_password_file"],
        "\"sasl_ssl\" or \"sasl_plaintext\"",
    );
    for (one, other) in [("ssl_certificate_file", "ssl_key_file"), ("ssl_key_file", "ssl_certificate_file")] {
        if section.has(one) && !section.has(other) {
            section.missing(other, format!("the path of a file, since {one} is set"), None);
        }
    }
    for name in ["sasl_username", "sasl_password_file"] {
        if with_sasl && !section.has(name) {
            section.missing(name, "set, since kafka.security asks for a name and a password".to_owned(), None);
        }
    }
}

fn properties(section: &Section<'_, '_>) -> BTreeMap<String, String> {
    let mut properties = BTreeMap::new();
    for property in section.free_values(MAX_PROPERTIES) {
        match RESERVED_CLIENT_PROPERTIES.iter().find(|(name, _)| *name == property.name) {
            Some((_, why)) => section.fault_of(&property, (*why).to_owned()),
            None => {
                let shown = if is_secret(&property.name) { "(secret)" } else { &property.value };
                section.note_used(&property.name, format!("{shown:?}"));
                properties.insert(property.name, property.value);
            }
        }
    }
    properties
}

/// Properties whose values are never shown.
fn is_secret(name: &str) -> bool {
    ["password", "secret", ".pem", "token", "oauthbearer.config"].iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_a_host_and_a_port() {
        for good in ["127.0.0.1:9092", "kafka-0.kafka:9092", "[::1]:9092", "a:1"] {
            assert!(is_host_and_port(good), "{good}");
        }
        for bad in ["kafka", ":9092", "kafka:", "kafka:0", "kafka:65536", "a b:1", "a:1,b:2", "http://a:1"] {
            assert!(!is_host_and_port(bad), "{bad}");
        }
    }
}
