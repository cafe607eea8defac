//! The files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// What is built, fetched or not ours.
const PASSED_OVER: [&str; 4] = ["target", ".git", ".cache", "node_modules"];

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file with its path from the root, `/` between the parts.
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Every text file (UTF-8) below a folder or the one file, in the order of their paths; none where it does not exist.
pub(crate) fn texts(below: &str) -> Vec<TextFile> {
    let mut paths = Vec::new();
    collect(&root().join(below), &mut paths);
    paths.sort();
    let text_file = |path: PathBuf| {
        let text = String::from_utf8(fs::read(&path).expect("a file that is listed can be read")).ok()?;
        let path = path.strip_prefix(root()).expect("below the root").to_str().expect("a path in UTF-8").to_owned();
        Some(TextFile { path, text })
    };
    paths.into_iter().filter_map(text_file).collect()
}

/// Every Rust file below a folder.
pub(crate) fn sources(below: &str) -> Vec<TextFile> {
    let mut files = texts(below);
    files.retain(|file| Path::new(&file.path).extension().is_some_and(|extension| extension == "rs"));
    files
}

fn collect(path: &Path, paths: &mut Vec<PathBuf>) {
    if path.is_file() {
        paths.push(path.to_owned());
        return;
    }
    for entry in fs::read_dir(path).into_iter().flatten() {
        let path = entry.expect("a folder can be read to its end").path();
        let passed_over =
            path.file_name().is_some_and(|name| PASSED_OVER.iter().any(|passed_over| name == *passed_over));
        if !passed_over && !path.is_symlink() {
            collect(&path, paths);
        }
    }
}

/// Fails with all faults, one a line.
pub(crate) fn assert_none(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
