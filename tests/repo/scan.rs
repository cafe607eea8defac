//! The paths and macros that a Rust file names, read from its tokens: comments and texts cannot be taken for code, and what stands
//! inside a macro call is seen as well.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

/// A path as written, names in their order; `*` at the end of one that imports everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) path: Vec<String>,
    /// Inline modules around it, outermost first.
    pub(crate) within: Vec<String>,
    pub(crate) line: usize,
}

/// What a file names.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    /// Paths of two names and more, and imports of one; those that begin with an imported name are there in full as well.
    pub(crate) paths: Vec<Named>,
    /// Last name of each macro that is called, with its line.
    pub(crate) macros: Vec<(String, usize)>,
    /// Names of `mod x;` which are there only in tests or with a feature.
    pub(crate) gated: Vec<String>,
    /// Name given by an import and what it stands for.
    imported: BTreeMap<String, Vec<String>>,
}

/// Which code is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// All of it.
    All,
    /// What is there without tests and without features.
    Bare,
}

/// Reads a file.
pub(crate) fn scan(text: &str, look: Look) -> Scanned {
    let tokens: TokenStream = text.parse().expect("a file that compiles");
    let mut scanned = Scanned::default();
    Scan { look, within: Vec::new(), scanned: &mut scanned }.walk(tokens);
    scanned.expand();
    scanned
}

impl Scanned {
    /// Adds the full path to each that begins with an imported name: `time::Instant` after `use std::time`.
    fn expand(&mut self) {
        let mut full = Vec::new();
        for named in &self.paths {
            let mut path = named.path.clone();
            // An import may begin with an imported name itself; a name that stands for itself ends the walk.
            for _ in 0..8 {
                let Some(stands_for) = path.first().and_then(|first| self.imported.get(first)) else { break };
                if stands_for.first() == path.first() {
                    break;
                }
                path.splice(..1, stands_for.iter().cloned());
            }
            if path != named.path {
                full.push(Named { path, ..named.clone() });
            }
        }
        self.paths.extend(full);
    }
}

struct Scan<'a> {
    look: Look,
    within: Vec<String>,
    scanned: &'a mut Scanned,
}

impl Scan<'_> {
    fn walk(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            at = self.step(&tokens, at);
        }
    }

    /// Looks at the token at `at` and gives the place to go on from.
    fn step(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let rest = tokens.get(at..).unwrap_or_default();
        match rest {
            [TokenTree::Punct(hash), TokenTree::Group(group), ..] if hash.as_char() == '#' => {
                if self.look == Look::Bare && !may_be_there(group.stream()) {
                    return at + self.pass_over(rest);
                }
                self.walk(group.stream());
                at + 2
            }
            [TokenTree::Punct(hash), TokenTree::Punct(bang), TokenTree::Group(group), ..]
                if hash.as_char() == '#' && bang.as_char() == '!' =>
            {
                if self.look == Look::Bare && !may_be_there(group.stream()) {
                    return tokens.len();
                }
                at + 3
            }
            [TokenTree::Ident(keyword), TokenTree::Ident(name), TokenTree::Group(body), ..]
                if keyword == "mod" && body.delimiter() == Delimiter::Brace =>
            {
                self.within.push(name_of(name));
                self.walk(body.stream());
                self.within.pop();
                at + 3
            }
            [TokenTree::Ident(keyword), TokenTree::Ident(of), TokenTree::Ident(name), ..]
                if keyword == "extern" && of == "crate" =>
            {
                // Under another name or not, from here on anything of it can be named.
                self.name(vec![name_of(name), "*".to_owned()], name.span().start().line);
                at + 3
            }
            [TokenTree::Ident(keyword), next, ..] if keyword == "use" && !is_punct(next, '<') => {
                let end = rest.iter().position(|token| is_punct(token, ';')).unwrap_or(rest.len());
                self.import(&[], rest.get(1..end).unwrap_or_default());
                at + end
            }
            [TokenTree::Ident(first), ..] => self.path(tokens, at, first),
            [TokenTree::Group(group), ..] => {
                self.walk(group.stream());
                at + 1
            }
            _ => at + 1,
        }
    }

    /// The path that begins at an identifier.
    fn path(&mut self, tokens: &[TokenTree], at: usize, first: &Ident) -> usize {
        let mut path = vec![name_of(first)];
        let mut end = at + 1;
        while let [colon, second_colon, TokenTree::Ident(name), ..] = tokens.get(end..).unwrap_or_default() {
            if !is_punct(colon, ':') || !is_punct(second_colon, ':') {
                break;
            }
            path.push(name_of(name));
            end += 3;
        }
        let line = first.span().start().line;
        if let [bang, TokenTree::Group(_), ..] = tokens.get(end..).unwrap_or_default()
            && is_punct(bang, '!')
        {
            self.scanned.macros.push((path.last().cloned().unwrap_or_default(), line));
        }
        if path.len() > 1 {
            self.name(path, line);
        }
        end
    }

    /// One tree of an import, after the names that lead to it.
    fn import(&mut self, before: &[String], tree: &[TokenTree]) {
        let mut path = before.to_vec();
        let mut line = 0;
        let mut given = None;
        let mut tokens = tree.iter();
        while let Some(token) = tokens.next() {
            line = token.span().start().line;
            match token {
                TokenTree::Ident(name) if name == "as" => {
                    given = tokens
                        .next()
                        .and_then(|token| if let TokenTree::Ident(name) = token { Some(name_of(name)) } else { None });
                }
                TokenTree::Ident(name) => path.push(name_of(name)),
                TokenTree::Punct(star) if star.as_char() == '*' => path.push("*".to_owned()),
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    for tree in inner.split(|token| is_punct(token, ',')) {
                        self.import(&path, tree);
                    }
                    return;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
        // `use std::io::{self, Read}` imports std::io.
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let Some(last) = path.last().cloned() else { return };
        self.scanned.imported.insert(given.unwrap_or(last), path.clone());
        self.name(path, line);
    }

    fn name(&mut self, path: Vec<String>, line: usize) {
        self.scanned.paths.push(Named { path, within: self.within.clone(), line });
    }

    /// How many tokens an item with its attributes has.
    fn pass_over(&mut self, item: &[TokenTree]) -> usize {
        let mut at = 0;
        while let [hash, TokenTree::Group(_), ..] = item.get(at..).unwrap_or_default() {
            if !is_punct(hash, '#') {
                break;
            }
            at += 2;
        }
        let rest = item.get(at..).unwrap_or_default();
        let imports = rest.iter().take(3).any(|token| matches!(token, TokenTree::Ident(name) if name == "use"));
        let end = rest.iter().position(|token| {
            let body = matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace) && !imports;
            body || is_punct(token, ';')
        });
        let end = end.unwrap_or(rest.len());
        if let Some([TokenTree::Ident(keyword), TokenTree::Ident(name)]) =
            end.checked_sub(2).and_then(|start| rest.get(start..end))
            && keyword == "mod"
            && rest.get(end).is_some_and(|token| is_punct(token, ';'))
        {
            self.scanned.gated.push(name_of(name));
        }
        at + end + 1
    }
}

/// Whether code under this attribute may be there in a build without tests and without features.
fn may_be_there(attribute: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = attribute.into_iter().collect();
    match tokens.as_slice() {
        [TokenTree::Ident(name), TokenTree::Group(condition)] if name == "cfg" => can_be(condition.stream(), true),
        _ => true,
    }
}

/// Whether a condition can be `wanted` when there are no tests and no features; of all else nothing is known.
fn can_be(condition: TokenStream, wanted: bool) -> bool {
    let tokens: Vec<TokenTree> = condition.into_iter().collect();
    match tokens.as_slice() {
        [TokenTree::Ident(name)] if name == "test" => !wanted,
        [TokenTree::Ident(name), ..] if name == "feature" => !wanted,
        [TokenTree::Ident(name), TokenTree::Group(inner)] if name == "not" => can_be(inner.stream(), !wanted),
        [TokenTree::Ident(name), TokenTree::Group(inner)] if name == "all" || name == "any" => {
            let inner: Vec<TokenTree> = inner.stream().into_iter().collect();
            let mut parts = inner
                .split(|token| is_punct(token, ','))
                .filter(|part| !part.is_empty())
                .map(|part| part.iter().cloned().collect());
            // `all` is true when every part is, and false when one is; `any` the other way round.
            if (name == "all") == wanted {
                parts.all(|part| can_be(part, wanted))
            } else {
                parts.any(|part| can_be(part, wanted))
            }
        }
        _ => true,
    }
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

fn name_of(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map(str::to_owned).unwrap_or(name)
}

#[test]
fn paths_are_found_wherever_they_stand() {
    let text = r#"
        use std::{fs, io::{self, Read as _}, time as clock};
        use self::inner::Thing;
        // std::net is only spoken of
        fn f() -> impl Sized + use<> {
            let text = "std::env::args()";
            macro_call!(a, b::c::d());
            clock::Instant::now();
            Vec::<u8>::new()
        }
        mod nested { use super::super::X; }
    "#;
    let scanned = scan(text, Look::All);
    let paths: Vec<String> = scanned.paths.iter().map(|named| named.path.join("::")).collect();
    for wanted in [
        "std::fs",
        "std::io",
        "std::io::Read",
        "std::time",
        "self::inner::Thing",
        "b::c::d",
        "clock::Instant::now",
        "std::time::Instant::now",
        "super::super::X",
    ] {
        assert!(paths.iter().any(|path| path == wanted), "{wanted} is not among {paths:?}");
    }
    assert!(!paths.iter().any(|path| path.contains("net") || path.contains("env")), "{paths:?}");
    assert_eq!(scanned.macros, [("macro_call".to_owned(), 7)]);
    let nested =
        scanned.paths.iter().find(|named| named.path.first().is_some_and(|first| first == "super")).expect("found");
    assert_eq!((nested.within.as_slice(), nested.line), ([String::from("nested")].as_slice(), 11));
}

#[test]
fn what_needs_tests_or_features_is_passed_over() {
    let text = r#"
        #[cfg(test)] #[allow(x)] mod tests { use a::in_tests; }
        #[cfg(feature = "kafka")] pub mod feed;
        #[cfg(all(unix, test))] use a::{in_all};
        #[cfg(any(test, feature = "x"))] fn f(a: [u8; 2]) { a::in_any(); }
        #[cfg(not(test))] use a::not_in_tests;
        #[cfg(unix)] use a::on_unix;
        #[cfg(any(unix, test))] use a::on_unix_too;
        #[cfg(not(all(unix, test)))] use a::not_both;
        use a::always;
    "#;
    let scanned = scan(text, Look::Bare);
    let paths: Vec<String> = scanned.paths.iter().map(|named| named.path.join("::")).collect();
    assert_eq!(paths, ["a::not_in_tests", "a::on_unix", "a::on_unix_too", "a::not_both", "a::always"]);
    assert_eq!(scanned.gated, ["feed"]);
    assert_eq!(scan("#![cfg(test)] use a::b;", Look::Bare).paths, []);
    assert_eq!(scan(text, Look::All).paths.len(), 8);
}
