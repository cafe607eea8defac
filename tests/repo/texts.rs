//! What texts say is there, and nothing in them belongs to one machine.

use std::path::Path;

use super::tree::{assert_none, root, texts};

/// Put together here, so that this file is not one that has them.
const OF_ONE_MACHINE: [(&str, &str); 11] = [
    ("/wo", "rk/"),
    ("/ro", "ot/"),
    ("/ho", "me/"),
    ("index.crates", ".io"),
    ("static.crates", ".io"),
    ("pypi", ".org"),
    ("pythonhosted", ".org"),
    ("registry.npm", "js.org"),
    ("repo1.mav", "en.org"),
    ("repo.mav", "en.apache.org"),
    ("deb.debian", ".org"),
];

#[test]
fn nothing_belongs_to_one_machine() {
    let mut faults = Vec::new();
    // A lock file names the registry of every package: that is its form.
    for file in texts("").into_iter().filter(|file| !file.path.ends_with("Cargo.lock")) {
        for (number, line) in file.text.lines().enumerate() {
            for (first, second) in OF_ONE_MACHINE {
                if line.contains(&format!("{first}{second}")) {
                    faults.push(format!("{}:{}: names {first}{second}", file.path, number + 1));
                }
            }
        }
    }
    assert_none(&faults);
}

#[test]
fn links_lead_somewhere() {
    let files = texts("");
    let mut faults = Vec::new();
    let mut links = 0;
    for file in files.iter().filter(|file| Path::new(&file.path).extension().is_some_and(|extension| extension == "md"))
    {
        for (line, link) in links_of(&file.text) {
            links += 1;
            if let Some(fault) = fault_of_link(&file.path, &file.text, &link) {
                faults.push(format!("{}:{line}: {link}: {fault}", file.path));
            }
        }
    }
    assert_none(&faults);
    assert!(links > 0, "found no link in any text");
}

/// Targets of `[text](target)`, `![text](target)`, `src="target"` and `href="target"` outside code, with their lines.
fn links_of(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    let mut in_code = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            // Every second piece between back ticks is code.
            let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
            for (opening, closing) in [("](", ')'), ("src=\"", '"'), ("href=\"", '"')] {
                let targets = prose.split(opening).skip(1).filter_map(|rest| rest.split_once(closing));
                links.extend(
                    targets.map(|(target, _)| (number + 1, target.split(' ').next().unwrap_or_default().to_owned())),
                );
            }
        }
    }
    links
}

/// Why a link leads nowhere; of links to other places nothing is said.
fn fault_of_link(from: &str, text: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let folder = Path::new(from).parent().unwrap_or(Path::new(""));
    let file = root().join(folder).join(path);
    if !path.is_empty() && !file.exists() {
        return Some("there is no such file".to_owned());
    }
    let anchor = anchor?;
    let target = if path.is_empty() { text.to_owned() } else { std::fs::read_to_string(&file).ok()? };
    let found = target.lines().filter(|line| line.starts_with('#')).any(|heading| anchor_of(heading) == anchor);
    (!found).then(|| "there is no such heading".to_owned())
}

/// The anchor that a heading gets: small letters, digits, dashes for spaces.
fn anchor_of(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

#[test]
fn planted_links_are_judged_right() {
    let text = "# One two\n[a](Cargo.toml) ![b](no.svg \"x\") `[c](no)` [d](#one-two) [e](#three)\n```\n[f](no)\n```\n<img src=\"no.png\">\n";
    let links = links_of(text);
    let faulty: Vec<&str> = links
        .iter()
        .map(|(_, link)| link.as_str())
        .filter(|link| fault_of_link("README.md", text, link).is_some())
        .collect();
    assert_eq!(links.len(), 5);
    assert_eq!(faulty, ["no.svg", "#three", "no.png"]);
}
