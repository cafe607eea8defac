//! The compose file, the image, the systemd unit and what they mount agree with each other and with the program. Where no container
//! engine runs this is what can be known of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use keyheat::config::{self, Settings};
use serde_json::Value;

use super::tree::root;
use super::yaml;

fn services() -> BTreeMap<String, Value> {
    let compose = yaml::read("compose/compose.yaml");
    let services = compose["services"].as_object().expect("services");
    services.iter().map(|(name, service)| (name.clone(), service.clone())).collect()
}

fn words(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().map(|word| word.as_str().expect("a text")).collect()
}

/// `from`, `to` of each mount of a service.
fn mounts(service: &Value) -> Vec<(String, String)> {
    let parts = |mount: &&str| -> Vec<String> { mount.split(':').map(str::to_owned).collect() };
    let mounts = words(&service["volumes"]).iter().map(parts).collect::<Vec<_>>();
    mounts
        .into_iter()
        .map(|parts| match parts.as_slice() {
            [from, to, mode] if mode == "ro" => (from.clone(), to.clone()),
            other => panic!("a mount is from:to:ro, not {other:?}"),
        })
        .collect()
}

fn configuration() -> Settings {
    let text = fs::read_to_string(root().join("compose/keyheat.toml")).expect("the configuration");
    config::load(&text).unwrap_or_else(|faults| panic!("compose/keyheat.toml: {faults}")).settings
}

/// What follows `--name=` among arguments.
fn argument<'a>(arguments: &[&'a str], name: &str) -> &'a str {
    let found =
        arguments.iter().find_map(|argument| argument.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no --{name}= among {arguments:?}"))
}

#[test]
fn what_is_mounted_is_in_the_repository() {
    let mut count = 0;
    for (name, service) in services() {
        for (from, _) in mounts(&service) {
            let path = root().join("compose").join(&from);
            assert!(path.exists(), "{name} mounts {from}, which is not there");
            count += 1;
        }
        if let Some(dockerfile) = service.pointer("/build/dockerfile").and_then(Value::as_str) {
            assert!(root().join(dockerfile).is_file(), "{name} is built by {dockerfile}, which is not there");
        }
    }
    assert!(count >= 4, "found {count} mounts");
}

#[test]
fn services_wait_for_services_that_are_there() {
    let services = services();
    for (name, service) in &services {
        let waited: Vec<&str> = match &service["depends_on"] {
            Value::Object(map) => map.keys().map(String::as_str).collect(),
            list => words(list),
        };
        for other in waited {
            let state = service.pointer(&format!("/depends_on/{other}/condition")).and_then(Value::as_str);
            let waited = services.get(other).unwrap_or_else(|| panic!("{name} waits for {other}, which is no service"));
            if state == Some("service_healthy") {
                assert!(
                    waited["healthcheck"].is_object(),
                    "{name} waits until {other} is healthy, which nobody checks"
                );
            }
        }
    }
}

#[test]
fn ports_are_for_this_machine_alone_and_somebody_listens() {
    let services = services();
    let listen = configuration().observe.listen;
    let kafka = services["kafka"]["environment"]["KAFKA_LISTENERS"].as_str().expect("listeners").to_owned();
    let listens = |service: &str, port: &str| match service {
        "keyheat" => port == listen.port().to_string(),
        "kafka" => kafka.split(',').any(|listener| listener.ends_with(&format!(":{port}"))),
        // What these two listen on unless told otherwise.
        "prometheus" => port == "9090",
        "grafana" => port == "3000",
        _ => false,
    };
    for (name, service) in &services {
        for published in words(&service["ports"]) {
            let [address, host, container] = published.split(':').collect::<Vec<_>>()[..] else {
                panic!("{name} publishes {published}, which is not address:port:port")
            };
            assert_eq!(address, "127.0.0.1", "{name} publishes {published}");
            assert_eq!(host, container, "{name} publishes {published}: the comment at the top names one port");
            assert!(listens(name, container), "{name} publishes {published}, on which it does not listen");
        }
    }
    let dockerfile = fs::read_to_string(root().join("compose/Dockerfile")).expect("the image");
    let exposed = dockerfile.lines().find_map(|line| line.strip_prefix("EXPOSE ")).expect("a port");
    assert!(listens("keyheat", exposed), "the image exposes {exposed}, the program listens on {listen}");
}

#[test]
fn every_address_is_one_on_which_a_service_listens() {
    let services = services();
    let configuration = configuration();
    let kafka = &services["kafka"]["environment"];
    let advertised = kafka["KAFKA_ADVERTISED_LISTENERS"].as_str().expect("listeners");
    let inside =
        advertised.split(',').find_map(|listener| listener.strip_prefix("INTERNAL://")).expect("one for the inside");
    let (host, port) = inside.split_once(':').expect("host:port");
    assert!(services.contains_key(host), "{inside} is advertised, and {host} is no service");
    assert!(kafka["KAFKA_LISTENERS"].as_str().expect("listeners").contains(&format!("INTERNAL://:{port}")));

    assert_eq!(configuration.kafka.brokers, [inside]);
    assert_eq!(argument(&words(&services["generator"]["command"]), "brokers"), inside);
    assert_eq!(argument(&words(&services["access-topic"]["command"]), "bootstrap-server"), inside);

    let port = configuration.observe.listen.port();
    let scraped = yaml::read("dashboards/prometheus/prometheus.yml");
    assert_eq!(
        scraped.pointer("/scrape_configs/0/static_configs/0/targets/0"),
        Some(&format!("keyheat:{port}").into())
    );
    assert!(services.contains_key("keyheat"));
    let allowed = configuration.observe.allowed_hosts;
    assert!(allowed.iter().any(|name| name == "keyheat"), "Prometheus asks for the name keyheat");

    let datasource = yaml::read("dashboards/provisioning/datasources/prometheus.yaml");
    assert_eq!(datasource.pointer("/datasources/0/url"), Some(&"http://prometheus:9090".into()));
    assert!(services.contains_key("prometheus"));
}

#[test]
fn one_topic_is_made_written_and_read() {
    let services = services();
    let topic = configuration().source.topic;
    assert_eq!(argument(&words(&services["access-topic"]["command"]), "topic"), topic);
    assert_eq!(argument(&words(&services["generator"]["command"]), "topic"), topic);
}

#[test]
fn grafana_finds_its_dashboard_and_prometheus_its_rules() {
    let services = services();
    let seen = |service: &str, path: &str| {
        let mounts = mounts(&services[service]);
        let (from, rest) = mounts
            .iter()
            .find_map(|(from, to)| Some((from, Path::new(path).strip_prefix(to).ok()?)))
            .unwrap_or_else(|| panic!("{service} sees nothing at {path}"));
        let there = root().join("compose").join(from).join(rest);
        assert!(there.exists(), "{service} finds nothing at {path}: {} is not there", there.display());
    };
    let provider = yaml::read("dashboards/provisioning/dashboards/keyheat.yaml");
    let folder = provider.pointer("/providers/0/options/path").and_then(Value::as_str).expect("a folder");
    seen("grafana", folder);
    let home =
        services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"].as_str().expect("a file");
    seen("grafana", home);
    assert!(Path::new(home).starts_with(folder));
    seen("grafana", "/etc/grafana/provisioning/datasources/prometheus.yaml");

    let command = words(&services["prometheus"]["command"]);
    seen("prometheus", argument(&command, "config.file"));
    let config = yaml::read("dashboards/prometheus/prometheus.yml");
    for pattern in words(&config["rule_files"]) {
        let folder = Path::new(pattern).parent().expect("a folder");
        seen("prometheus", &Path::new("/etc/prometheus").join(folder).display().to_string());
    }
}

#[test]
fn versions_are_those_of_the_tests_and_the_manifest() {
    let pom = fs::read_to_string(root().join("tests/tools/kafka.pom.xml")).expect("the pom");
    let image = services()["kafka"]["image"].as_str().expect("an image").to_owned();
    let version = image.strip_prefix("apache/kafka:").expect("Apache Kafka");
    assert!(pom.contains(&format!("<artifactId>kafka_2.13</artifactId><version>{version}</version>")), "{image}");
    let dockerfile = fs::read_to_string(root().join("compose/Dockerfile")).expect("the image");
    assert!(dockerfile.contains(&format!("FROM rust:{}-", env!("CARGO_PKG_RUST_VERSION"))));
}

/// Asks the program whether it understands a command line: with `--help` at the end it does nothing else.
fn assert_understood(arguments: &[&str]) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_keyheat")).args(arguments).arg("--help").output().expect("the program");
    assert!(output.status.success(), "keyheat {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_program_understands_its_command_lines() {
    let services = services();
    let mut count = 0;
    for service in services.values().filter(|service| service["image"] == "keyheat:local") {
        let arguments = words(&service["command"]);
        assert_understood(&arguments);
        if let Some(config) = arguments.iter().find(|argument| argument.ends_with(".toml")) {
            assert!(mounts(service).iter().any(|(_, to)| to == config), "nothing is mounted at {config}");
        }
        count += 1;
    }
    assert_eq!(count, 3);
    let unit = fs::read_to_string(root().join("compose/keyheat.service")).expect("the unit");
    for line in unit.lines().filter(|line| line.starts_with("ExecStart")) {
        let (_, command) = line.split_once('=').expect("a command");
        let arguments: Vec<&str> = command.split(' ').skip(1).collect();
        assert_understood(&arguments);
    }
}

#[test]
fn a_command_line_that_is_wrong_is_noticed() {
    let output = Command::new(env!("CARGO_BIN_EXE_keyheat")).args(["run", "--no-such", "x", "--help"]).output();
    assert_eq!(output.expect("the program").status.code(), Some(2));
}

#[test]
fn the_configuration_has_no_fault() {
    let path = root().join("compose/keyheat.toml");
    let output = Command::new(env!("CARGO_BIN_EXE_keyheat")).arg("check").arg(path).output().expect("the program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
