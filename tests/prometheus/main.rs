//! Against a real Prometheus: what it makes of our metrics, rules and dashboards.

#[allow(dead_code, unused_imports, reason = "each rung uses its part of what the rungs share")]
#[path = "../support/mod.rs"]
mod support;

mod flood;
mod server;
mod shipped;

use std::fs;
use std::path::{Path, PathBuf};

use support::process::Process;

/// A folder for the files of one test.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("prometheus-{test}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// `keyheat run` with this configuration on a free port, and the address of its HTTP side.
fn service(test: &str, config: &str) -> (Process, String) {
    let folder = folder(test);
    let path = folder.join("keyheat.toml");
    fs::write(&path, config).expect("a file");
    let path = path.display().to_string();
    let service = Process::start(&folder, "service", &["run", "--config", &path, "--listen", "127.0.0.1:0"]);
    let address = service.http();
    (service, address)
}
