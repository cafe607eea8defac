//! Settings of Kafka become those of librdkafka's clients.

use std::fs;
use std::io;

use rdkafka::ClientConfig;

use crate::config::{KafkaSettings, Sasl, Security, Tls};
use crate::protocol::client::{
    CLIENT_PROPERTIES, CONSUMER_PROPERTIES, CONTROL_CONSUMER_PROPERTIES, PRODUCER_PROPERTIES,
};

/// Why a client cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The password's file cannot be read.
    #[error("cannot read the password file '{path}' that kafka.sasl_password_file names")]
    PasswordFile {
        /// The file.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
}

impl KafkaSettings {
    /// What every client has in common: brokers, name, security. For admin clients as it is.
    ///
    /// # Errors
    /// [`ClientError`] when the password's file cannot be read.
    pub fn client_config(&self) -> Result<ClientConfig, ClientError> {
        self.config_with(&[])
    }

    /// For clients that read.
    ///
    /// # Errors
    /// As [`KafkaSettings::client_config`].
    pub fn consumer_config(&self) -> Result<ClientConfig, ClientError> {
        self.config_with(CONSUMER_PROPERTIES)
    }

    /// For clients that read the plan topic or the acks topic.
    ///
    /// # Errors
    /// As [`KafkaSettings::client_config`].
    pub fn control_consumer_config(&self) -> Result<ClientConfig, ClientError> {
        self.config_with(&[CONSUMER_PROPERTIES, CONTROL_CONSUMER_PROPERTIES].concat())
    }

    /// For clients that write control records.
    ///
    /// # Errors
    /// As [`KafkaSettings::client_config`].
    pub fn producer_config(&self) -> Result<ClientConfig, ClientError> {
        self.config_with(PRODUCER_PROPERTIES)
    }

    fn config_with(&self, properties: &[(&str, &str)]) -> Result<ClientConfig, ClientError> {
        let mut config = ClientConfig::new();
        for (name, value) in CLIENT_PROPERTIES.iter().chain(properties) {
            config.set(*name, *value);
        }
        config.set("bootstrap.servers", self.brokers.join(","));
        config.set("client.id", &self.client_id);
        set_security(&mut config, &self.security)?;
        for (name, value) in &self.librdkafka {
            config.set(name, value);
        }
        Ok(config)
    }
}

fn set_security(config: &mut ClientConfig, security: &Security) -> Result<(), ClientError> {
    let protocol = match (&security.tls, &security.sasl) {
        (None, None) => "plaintext",
        (Some(_), None) => "ssl",
        (None, Some(_)) => "sasl_plaintext",
        (Some(_), Some(_)) => "sasl_ssl",
    };
    config.set("security.protocol", protocol);
    if let Some(Tls { ca_file, certificate_file, key_file }) = &security.tls {
        let files = [
            ("ssl.ca.location", ca_file),
            ("ssl.certificate.location", certificate_file),
            ("ssl.key.location", key_file),
        ];
        for (name, file) in files {
            if let Some(file) = file {
                config.set(name, file);
            }
        }
    }
    if let Some(Sasl { mechanism, username, password_file }) = &security.sasl {
        let password = fs::read_to_string(password_file)
            .map_err(|source| ClientError::PasswordFile { path: password_file.clone(), source })?;
        let password = password.strip_suffix('\n').unwrap_or(&password);
        let password = password.strip_suffix('\r').unwrap_or(password);
        config.set("sasl.mechanism", mechanism.label()).set("sasl.username", username).set("sasl.password", password);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SaslMechanism;

    #[test]
    fn librdkafka_knows_every_property_and_what_the_user_writes_wins() {
        let mut settings = KafkaSettings::plain(&["127.0.0.1:9092", "127.0.0.1:9093"]);
        settings.librdkafka.insert("fetch.queue.backoff.ms".to_owned(), "7".to_owned());
        let configs = [
            settings.client_config(),
            settings.consumer_config(),
            settings.control_consumer_config(),
            settings.producer_config(),
        ];
        for config in configs {
            let native = config.unwrap().create_native_config().unwrap();
            assert_eq!(native.get("bootstrap.servers").unwrap(), "127.0.0.1:9092,127.0.0.1:9093");
            assert_eq!(native.get("fetch.queue.backoff.ms").unwrap(), "7");
        }
        assert_eq!(settings.consumer_config().unwrap().get("check.crcs"), Some("true"));
        assert_eq!(settings.producer_config().unwrap().get("enable.idempotence"), Some("true"));
    }

    #[test]
    fn a_password_is_read_from_its_file_and_a_missing_file_is_named() {
        let path = std::env::temp_dir().join(format!("keyheat-password-{}", std::process::id()));
        fs::write(&path, "s3cret\n").unwrap();
        let mut settings = KafkaSettings::plain(&["127.0.0.1:9092"]);
        settings.security.sasl = Some(Sasl {
            mechanism: SaslMechanism::Plain,
            username: "reader".to_owned(),
            password_file: path.to_string_lossy().into_owned(),
        });
        let config = settings.client_config().unwrap();
        assert_eq!(config.get("sasl.password"), Some("s3cret"));
        assert_eq!(config.get("security.protocol"), Some("sasl_plaintext"));
        fs::remove_file(&path).unwrap();
        assert!(settings.client_config().unwrap_err().to_string().contains("keyheat-password"));
    }
}
