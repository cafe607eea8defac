//! How much memory a process takes.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::process::program;

/// What a process may take with one keyspace as by default.
pub(crate) const LIMIT: u64 = 128 << 20;

/// The program itself, its threads and what the allocator has not given back yet, beside what `keyheat check` computes.
pub(crate) const PROGRAM: u64 = 24 << 20;

/// The highest number of resident bytes of a running process so far; none once it has ended.
pub(crate) fn peak(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// Bytes that a running process has asked for from files and pipes so far.
pub(crate) fn read_by(process: u32) -> Option<u64> {
    let io = fs::read_to_string(format!("/proc/{process}/io")).ok()?;
    io.lines().find_map(|line| line.strip_prefix("rchar: "))?.parse().ok()
}

/// False, with a notice, where the system does not tell.
pub(crate) fn is_told() -> bool {
    let told = Path::new("/proc/self/status").is_file() && Path::new("/proc/self/io").is_file();
    if !told {
        eprintln!("notice: skipped, this system does not tell the memory of a process under /proc");
    }
    told
}

pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{}.{} MiB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20)
}

/// What `keyheat check` says that the parts of a configuration take at most, in bytes.
pub(crate) fn computed(config: &str) -> serde_json::Value {
    let done = Command::new(program()).args(["check", config, "--output", "json", "--quiet"]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    report["memory_bytes"].clone()
}
