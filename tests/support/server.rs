//! A server that a script of `tests/tools` runs for a test.
//!
//! None outlives the test: it is killed by process id when the value is dropped, and by a watcher of the script when the test
//! process has ended without dropping it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A server with a folder of its own.
pub(crate) struct Server {
    script: PathBuf,
    dir: PathBuf,
}

impl Server {
    /// One that is not started yet.
    pub(crate) fn new(script: &str) -> Self {
        let servers = Path::new(env!("CARGO_TARGET_TMPDIR")).join(script);
        remove_leftovers(&servers);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools").join(script);
        Self { script, dir: servers.join(unique(&std::process::id().to_string())) }
    }

    /// Where it keeps its data.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Starts it for as long as this process lives; gives what the script printed, its address.
    pub(crate) fn start(&self, arguments: &[String]) -> String {
        let owner = ["--owner".to_owned(), std::process::id().to_string()];
        self.run(&[arguments, &owner].concat())
    }

    /// Runs a command of the script; gives what it printed.
    pub(crate) fn run(&self, arguments: &[String]) -> String {
        let output = Command::new(&self.script).arg("-C").arg(&self.dir).args(arguments).output();
        let output = output.expect("bash runs the scripts of tests/tools");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} {arguments:?}: {said}", self.script.display());
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.run(&["kill".to_owned()]);
        // What is left over is removed by the next test that starts a server.
        drop(fs::remove_dir_all(&self.dir));
    }
}

/// Removes the folders of servers whose test process was ended before it could: their name begins with its process id.
fn remove_leftovers(servers: &Path) {
    if !Path::new("/proc/self").exists() {
        return;
    }
    for entry in fs::read_dir(servers).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.split('-').next().is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

/// A name that no other test and no other run has.
pub(crate) fn unique(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}-{}-{:08x}", NEXT.fetch_add(1, Ordering::Relaxed), rand::random::<u32>())
}
