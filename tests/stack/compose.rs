//! The compose file against the files that it mounts, the program's own command line, and itself.

use std::collections::{BTreeMap, BTreeSet};

use clap::Parser as _;
use keyheat::cli::{Cli, Command};
use keyheat::config::{self, Settings};
use serde_json::Value;

use crate::dashboard::root;
use crate::files::{assert_none, list, names, str_of, text, yaml};

fn services() -> BTreeMap<String, Value> {
    let file = yaml("compose/compose.yaml");
    file["services"].as_object().unwrap().iter().map(|(name, service)| (name.clone(), service.clone())).collect()
}

fn settings() -> Settings {
    let loaded = config::load(&text("compose/keyheat.toml")).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    loaded.settings
}

fn command(service: &Value) -> Vec<String> {
    list(&service["command"]).map(|word| str_of(word).to_owned()).collect()
}

/// The value of `--name=value`.
fn flag(service: &Value, name: &str) -> Option<String> {
    command(service).iter().find_map(|word| word.strip_prefix(&format!("--{name}=")).map(str::to_owned))
}

/// Host address, host port and container port of each published port.
fn ports(service: &Value) -> Vec<(String, String, String)> {
    list(&service["ports"])
        .map(|port| {
            let parts: Vec<&str> = str_of(port).split(':').collect();
            let [address, host, container] = parts.as_slice() else { panic!("{port}: ADDRESS:PORT:PORT") };
            ((*address).to_owned(), (*host).to_owned(), (*container).to_owned())
        })
        .collect()
}

/// Source (from the root of the repository), target and mode of each mount.
fn mounts(service: &Value) -> Vec<(String, String, String)> {
    list(&service["volumes"])
        .map(|mount| {
            let parts: Vec<&str> = str_of(mount).split(':').collect();
            let [source, target, mode] = parts.as_slice() else { panic!("{mount}: SOURCE:TARGET:MODE") };
            let source = source
                .strip_prefix("../")
                .map_or_else(|| format!("compose/{}", source.trim_start_matches("./")), str::to_owned);
            (source, (*target).to_owned(), (*mode).to_owned())
        })
        .collect()
}

#[test]
fn every_mount_is_there_and_read_only() {
    let mut faults = Vec::new();
    for (name, service) in services() {
        for (source, target, mode) in mounts(&service) {
            if !root().join(&source).exists() || mode != "ro" || !target.starts_with('/') {
                faults.push(format!("{name}: {source}:{target}:{mode}"));
            }
        }
    }
    assert_none(&faults);
}

#[test]
fn grafana_and_prometheus_find_what_is_mounted() {
    let services = services();
    let at = |service: &str, target: &str| {
        let mounts = mounts(&services[service]);
        mounts.into_iter().find(|(_, known, _)| known == target).unwrap_or_else(|| panic!("{target} is not mounted")).0
    };
    let provisioning = at("grafana", "/etc/grafana/provisioning");
    assert_eq!(names(&provisioning), ["dashboards", "datasources"]);
    let provider = yaml(&format!("{provisioning}/dashboards/keyheat.yaml"));
    let path = str_of(&provider["providers"][0]["options"]["path"]);
    let dashboards = at("grafana", path);
    let home = str_of(&services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]);
    let file = home.strip_prefix(&format!("{path}/")).unwrap();
    assert!(names(&dashboards).iter().any(|name| name == file));

    let rules = at("prometheus", "/etc/prometheus");
    assert_eq!(flag(&services["prometheus"], "config.file").as_deref(), Some("/etc/prometheus/prometheus.yml"));
    let prometheus = yaml(&format!("{rules}/prometheus.yml"));
    for pattern in list(&prometheus["rule_files"]) {
        let folder = str_of(pattern).strip_suffix("/*.yml").unwrap();
        assert!(names(&format!("{rules}/{folder}")).iter().any(|name| name.ends_with(".yml")), "{folder}");
    }
    let source = yaml(&format!("{provisioning}/datasources/prometheus.yaml"));
    let url = str_of(&source["datasources"][0]["url"]);
    assert_eq!(url, "http://prometheus:9090");
    assert!(services.contains_key("prometheus"));
}

#[test]
fn ports_fit_and_are_published_on_loopback_only() {
    let services = services();
    let mut host_ports = BTreeSet::new();
    for (name, service) in &services {
        for (address, host, _) in ports(service) {
            assert_eq!(address, "127.0.0.1", "{name}");
            assert!(host_ports.insert(host), "{name}: a port of the host twice");
        }
    }
    let listen = settings().observe.listen.port().to_string();
    assert_eq!(ports(&services["keyheat"])[0].2, listen);
    let prometheus = yaml("dashboards/prometheus/prometheus.yml");
    let targets: Vec<&str> = list(&prometheus["scrape_configs"])
        .flat_map(|job| list(&job["static_configs"][0]["targets"]))
        .map(str_of)
        .collect();
    assert_eq!(targets, [format!("keyheat:{listen}").as_str(), "localhost:9090"]);
    assert!(
        settings().observe.allowed_hosts.contains(&"keyheat".to_owned()),
        "Prometheus asks for http://keyheat:{listen}"
    );
    let health = list(&services["keyheat"]["healthcheck"]["test"]).map(str_of).collect::<Vec<_>>().join(" ");
    assert!(health.contains(&format!("/dev/tcp/127.0.0.1/{listen}")), "{health}");
    assert!(text("compose/Dockerfile").contains(&format!("EXPOSE {listen}\n")));
    for (_, host, container) in ports(&services["grafana"]).into_iter().chain(ports(&services["prometheus"])) {
        assert_eq!(host, container);
        assert!(text("compose/compose.yaml").contains(&format!("http://localhost:{host}")));
    }
}

#[test]
fn every_client_knows_the_broker_by_its_inner_address() {
    let services = services();
    let environment = &services["kafka"]["environment"];
    let advertised = str_of(&environment["KAFKA_ADVERTISED_LISTENERS"]);
    let inner = advertised.split(',').find_map(|listener| listener.strip_prefix("INTERNAL://")).unwrap();
    let outer = advertised.split(',').find_map(|listener| listener.strip_prefix("HOST://")).unwrap();
    assert_eq!(settings().kafka.brokers, [inner]);
    assert_eq!(flag(&services["generator"], "brokers").as_deref(), Some(inner));
    assert_eq!(flag(&services["access-topic"], "bootstrap-server").as_deref(), Some(inner));
    assert!(list(&services["kafka"]["healthcheck"]["test"]).any(|word| word == inner));
    let [(_, host, container)] = ports(&services["kafka"]).try_into().unwrap();
    assert_eq!((outer, host), (format!("localhost:{container}").as_str(), container.clone()));
    let listeners = str_of(&environment["KAFKA_LISTENERS"]);
    for listener in ["INTERNAL", "HOST", "CONTROLLER"] {
        assert!(listeners.contains(&format!("{listener}://:")), "{listener}");
        let map = str_of(&environment["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"]);
        assert!(map.contains(&format!("{listener}:PLAINTEXT")), "{listener}");
    }
    assert!(listeners.contains(&format!("HOST://:{container}")));
    assert_eq!(services["kafka"]["image"], services["access-topic"]["image"]);
}

#[test]
fn the_load_is_what_the_configuration_expects() {
    let services = services();
    let settings = settings();
    let generator = &services["generator"];
    assert_eq!(flag(generator, "topic").as_deref(), Some(settings.source.topic.as_str()));
    assert_eq!(flag(&services["access-topic"], "topic").as_deref(), Some(settings.source.topic.as_str()));
    let mapper = settings.plans[0].mapper.as_ref().unwrap();
    assert_eq!(flag(generator, "shards"), Some(mapper.shards().len().to_string()));
    let cli = Cli::try_parse_from(std::iter::once("keyheat".to_owned()).chain(command(generator))).unwrap();
    let Command::Generate(args) = cli.command else { panic!("the generator generates") };
    assert_eq!(args.hot.len(), 2);
    assert!(!settings.observe.listen.ip().is_loopback(), "other containers scrape it");
}

#[test]
fn commands_are_understood() {
    let unit = text("compose/keyheat.service");
    let of_unit = |name: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix(&format!("{name}="))).unwrap();
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(words[0], "/usr/local/bin/keyheat");
        words
    };
    let mut commands = vec![of_unit("ExecStartPre"), of_unit("ExecStart")];
    for (name, service) in services() {
        if service["image"] == "keyheat:local" {
            let words = command(&service);
            assert!(!words.is_empty(), "{name} has a command");
            commands.push(std::iter::once("keyheat".to_owned()).chain(words).collect());
        }
    }
    assert_eq!(commands.len(), 5);
    for words in commands {
        assert!(
            Cli::try_parse_from(&words).is_ok(),
            "{}: {}",
            words.join(" "),
            Cli::try_parse_from(&words).unwrap_err()
        );
    }
    let configured = list(&services()["keyheat"]["command"]).any(|word| word == "/etc/keyheat/keyheat.toml");
    assert!(configured && mounts(&services()["keyheat"])[0].1 == "/etc/keyheat/keyheat.toml");
}

#[test]
fn services_wait_for_what_can_come_true() {
    let services = services();
    let mut faults = Vec::new();
    for (name, service) in &services {
        let Some(waits) = service["depends_on"].as_object() else { continue };
        for (other, condition) in waits {
            let ok = match (services.get(other), str_of(&condition["condition"])) {
                (Some(other), "service_healthy") => other["healthcheck"]["test"].is_array(),
                (Some(other), "service_completed_successfully") => other["restart"] == "no",
                _ => false,
            };
            if !ok {
                faults.push(format!("{name} waits for {other}: {condition}"));
            }
        }
    }
    assert_none(&faults);
}

/// Variables of the images: settings of Kafka's server.properties, and of Grafana's sections.
#[test]
fn environment_names_are_settings_of_the_images() {
    let kafka = [
        "node.id",
        "process.roles",
        "listeners",
        "advertised.listeners",
        "listener.security.protocol.map",
        "inter.broker.listener.name",
        "controller.listener.names",
        "controller.quorum.voters",
        "offsets.topic.replication.factor",
        "transaction.state.log.replication.factor",
        "transaction.state.log.min.isr",
        "group.initial.rebalance.delay.ms",
        "auto.create.topics.enable",
    ];
    let services = services();
    for name in services["kafka"]["environment"].as_object().unwrap().keys() {
        let setting = name.strip_prefix("KAFKA_").unwrap().to_ascii_lowercase().replace('_', ".");
        assert!(kafka.contains(&setting.as_str()), "{name}");
    }
    for name in services["grafana"]["environment"].as_object().unwrap().keys() {
        let sections = ["GF_AUTH_ANONYMOUS_", "GF_ANALYTICS_", "GF_DASHBOARDS_"];
        assert!(sections.iter().any(|section| name.starts_with(section)), "{name}");
    }
}
