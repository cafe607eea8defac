//! The image and the unit.

use std::fs;
use std::path::Path;
use std::process::Command;

use keyheat::config::ServiceSettings;

use crate::dashboard::root;
use crate::files::text;

#[test]
fn the_image_is_built_with_the_rust_that_the_package_needs() {
    let rust = env!("CARGO_PKG_RUST_VERSION");
    let dockerfile = text("compose/Dockerfile");
    assert!(dockerfile.contains(&format!("FROM rust:{rust}-slim-bookworm AS build\n")), "{rust}");
    assert!(dockerfile.contains("FROM debian:bookworm-slim\n"), "the libc of the build");
    assert!(dockerfile.contains("\nUSER 65532:65532\n"), "no root");
}

/// What the build context holds is enough for Cargo to find every target that the manifest names.
#[test]
fn the_context_of_the_image_is_complete() {
    let context = Path::new(env!("CARGO_TARGET_TMPDIR")).join("image-context");
    drop(fs::remove_dir_all(&context));
    for line in text("compose/Dockerfile.dockerignore").lines() {
        let Some(path) = line.strip_prefix('!') else { continue };
        copy(&root().join(path), &context.join(path));
    }
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--locked", "--format-version", "1"])
        .current_dir(&context)
        .output()
        .unwrap();
    assert!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
    let used = ["include_str!", "include_bytes!"];
    for file in files(&context.join("src")) {
        let text = fs::read_to_string(&file).unwrap();
        let (running, _) = text.split_once("#[cfg(test)]").unwrap_or((&text, ""));
        let in_tests = file.ends_with("tests.rs");
        assert!(in_tests || !used.iter().any(|word| running.contains(word)), "{}", file.display());
    }
    drop(fs::remove_dir_all(&context));
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    }
}

#[test]
fn the_unit_gives_the_service_time_to_stop() {
    let unit = text("compose/keyheat.service");
    let value = |name: &str| unit.lines().find_map(|line| line.strip_prefix(&format!("{name}="))).unwrap().to_owned();
    let seconds: u64 = value("TimeoutStopSec").trim_end_matches('s').parse().unwrap();
    assert!(seconds * 1000 > ServiceSettings::default().shutdown_grace.as_millis());
    assert_eq!(value("RestartPreventExitStatus"), "2");
    assert_eq!(value("NoNewPrivileges"), "yes");
}

/// Where systemd is: it takes the unit as it is, with the program of this build in the place of the installed one.
#[test]
fn systemd_takes_the_unit() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("unit-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let unit = folder.join("keyheat.service");
    let text = text("compose/keyheat.service").replace("/usr/local/bin/keyheat", env!("CARGO_BIN_EXE_keyheat"));
    fs::write(&unit, text).unwrap();
    match Command::new("systemd-analyze").arg("verify").arg(&unit).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let ours: Vec<&str> = said.lines().filter(|line| line.contains("keyheat.service")).collect();
            assert!(ours.is_empty(), "{said}");
        }
        Err(error) => println!("notice: the unit is not verified: systemd-analyze: {error}"),
    }
    drop(fs::remove_dir_all(&folder));
}
