//! The shape of the folders: a map in each, files that can be read in one sitting.

use std::collections::BTreeSet;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

use super::tree::{assert_none, sources};

/// Longer files are split by what they are about.
const MOST_LINES: usize = 600;
/// The program's own file only leads from arguments to an exit code.
const MOST_LINES_OF_MAIN: usize = 60;

#[test]
fn files_are_short() {
    let mut faults = Vec::new();
    for file in sources("src").into_iter().chain(sources("tests")) {
        let lines = file.text.lines().count();
        let most = if file.path == "src/main.rs" { MOST_LINES_OF_MAIN } else { MOST_LINES };
        if lines > most {
            faults.push(format!("{}: {lines} lines, at most {most}", file.path));
        }
    }
    assert_none(&faults);
}

#[test]
fn every_folder_has_a_map() {
    let files = sources("src");
    let folders: BTreeSet<&Path> = files
        .iter()
        .filter_map(|file| Path::new(&file.path).parent())
        .filter(|folder| *folder != Path::new("src"))
        .collect();
    assert!(folders.len() > 5, "found the folders {folders:?}");
    let mut faults = Vec::new();
    for folder in folders {
        let path = folder.join("mod.rs");
        match files.iter().find(|file| Path::new(&file.path) == path) {
            Some(map) => {
                faults.extend(faults_of_map(&map.text).into_iter().map(|fault| format!("{}: {fault}", map.path)))
            }
            None => faults.push(format!("{} has no mod.rs", folder.display())),
        }
    }
    assert_none(&faults);
}

/// A map has documentation, modules and re-exports, and nothing else.
fn faults_of_map(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if !text.starts_with("//!") {
        faults.push("does not begin with documentation (//!)".to_owned());
    }
    let tokens: Vec<TokenTree> = text.parse::<TokenStream>().expect("a file that compiles").into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        let rest = tokens.get(at..).unwrap_or_default();
        let attribute = match rest {
            [TokenTree::Punct(hash), TokenTree::Group(_), ..] if hash.as_char() == '#' => 2,
            [TokenTree::Punct(hash), TokenTree::Punct(_), TokenTree::Group(_), ..] if hash.as_char() == '#' => 3,
            _ => 0,
        };
        if attribute > 0 {
            at += attribute;
            continue;
        }
        let length = rest.iter().position(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';'));
        let item = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
        let words: Vec<String> = item.iter().take(3).map(ToString::to_string).collect();
        let kind = words.iter().find(|word| *word != "pub" && !word.starts_with('('));
        let allowed = match kind.map(String::as_str) {
            Some("use") => true,
            // An inline module has a body where the one of a file has none.
            Some("mod") => !item.iter().any(|token| matches!(token, TokenTree::Group(group) if group.stream().to_string() != "super" && group.stream().to_string() != "crate")),
            _ => false,
        };
        if !allowed {
            let line = item.first().map_or(0, |token| token.span().start().line);
            faults.push(format!("line {line}: `{} ...` is neither a module nor a re-export", words.join(" ")));
        }
        at += item.len() + 1;
    }
    faults
}

#[test]
fn planted_maps_are_judged_right() {
    let good = "//! Says.\n\n#[cfg(test)]\nmod oracle;\nmod a;\npub(crate) mod b;\n/// Word.\npub mod c;\npub use a::{A, B};\npub(super) use b::c;\n";
    assert_eq!(faults_of_map(good), Vec::<String>::new());
    for bad in [
        "mod a;",
        "//! Says.\nfn f() {}",
        "//! Says.\npub const A: u8 = 1;",
        "//! Says.\nmod a { fn f() {} }",
        "//! Says.\nmod a;\nimpl A {}\n",
    ] {
        assert!(!faults_of_map(bad).is_empty(), "not found: {bad}");
    }
}
