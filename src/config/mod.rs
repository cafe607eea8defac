//! The file as written becomes the settings that each stage owns, or all its faults at once. No I/O.

mod settings;

pub use settings::{
    ConfigHash, ControlSettings, KafkaSettings, KeyLabel, ObserveSettings, Sasl, SaslMechanism, Security,
    ServiceSettings, Settings, SourceSettings, Start, Tls,
};
