//! What holds for the documents: what they point to exists, and their examples are tested.
//!
//! A link with a `#` leads to a heading of its page. The Rust of README.md is that of the core's
//! own README, which is a doctest. The guide's table of contents has every page of it.
//!
//! In the "Where is …?" table of ARCHITECTURE.md, a word in backticks is
//!
//! - a path, where it has a `/` or ends in .rs, .toml or .md: from the root of the repository, from
//!   `crates/`, or from the core's sources;
//! - a name, where it looks like `name` or `Type::name`, maybe followed by `()`, `!` or `<…>`: each
//!   part is defined (fn, struct, enum, …) in some tracked Rust file, or is a crate;
//! - anything else, as a command or an option, and then not looked at.

use super::{CORE, File, Finding};
use crate::source::{code_of, is_word, words};
use std::collections::BTreeSet;
use std::path::{Component, Path};

/// The document with the table.
const ARCHITECTURE: &str = "ARCHITECTURE.md";
/// How the heading over the table begins.
const TABLE: &str = "Where is";
/// The most rows of that table: what a search for a word finds needs none.
const MAX_ROWS: usize = 50;
/// The table of contents of the guide, and its folder.
const CONTENTS: [&str; 2] = ["docs/SUMMARY.md", "docs/"];
/// The first page, and the one whose Rust is a doctest.
const EXAMPLES: [&str; 2] = ["README.md", "crates/paternoster/README.md"];
/// What comes before a name that is defined.
const DEFINING: [&str; 10] =
    ["fn", "struct", "enum", "union", "trait", "const", "static", "type", "mod", "macro_rules"];

/// The findings in all documents; `exists` answers for a path from the root.
pub(super) fn check(files: &[File], exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let documents = files.iter().filter(|file| file.has_extension("md"));
    let mut findings: Vec<_> = documents.flat_map(|file| dead_links(file, exists)).collect();
    let documents = files.iter().filter(|file| file.has_extension("md"));
    findings.extend(documents.flat_map(|file| dead_anchors(file, files)));
    findings.extend(check_examples(files));
    findings.extend(not_in_contents(files));
    if let Some(file) = files.iter().find(|file| file.path == ARCHITECTURE) {
        findings.extend(check_table(file, &defined(files), exists));
    }
    findings
}

/// The relative links that lead nowhere.
fn dead_links(file: &File, exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let dir = Path::new(&file.path).parent().unwrap_or(Path::new(""));
    let mut findings = vec![];
    for (index, line) in prose(&file.text) {
        for target in targets(&line) {
            let path = dir.join(target);
            if !exists(&path.to_string_lossy()) {
                findings.push(Finding::at(
                    file,
                    index,
                    format!("a link to {target}: no such file"),
                ));
            }
        }
    }
    findings
}

/// The links to headings that are not there, in the page itself or in another.
fn dead_anchors(file: &File, files: &[File]) -> Vec<Finding> {
    let dir = Path::new(&file.path).parent().unwrap_or(Path::new(""));
    let mut findings = vec![];
    for (index, line) in prose(&file.text) {
        for target in line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next()) {
            let Some((path, anchor)) = target.split_once('#') else { continue };
            let path = if path.is_empty() { file.path.clone() } else { plain(&dir.join(path)) };
            let page = files.iter().find(|page| page.path == path && !target.contains(':'));
            let is_dead = page.is_some_and(|page| !anchors(&page.text).any(|own| own == anchor));
            if is_dead {
                let what = format!("a link to {target}: no such heading");
                findings.push(Finding::at(file, index, what));
            }
        }
    }
    findings
}

/// A path without `..`.
fn plain(path: &Path) -> String {
    let mut parts: Vec<String> = vec![];
    for part in path.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            part => parts.push(part.as_os_str().to_string_lossy().into_owned()),
        }
    }
    parts.join("/")
}

/// What links call the headings of a page: small letters, `-` for spaces, no punctuation.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|&c| is_word(c) || c == '-' || c == ' ');
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

/// The blocks of Rust on the first page that no doctest compiles.
fn check_examples(files: &[File]) -> Vec<Finding> {
    let [first, tested] = EXAMPLES.map(|path| files.iter().find(|file| file.path == path));
    let Some(first) = first else { return vec![] };
    let mut findings = vec![];
    let mut from = 0;
    while let Some(begin) = first.text[from..].find("```rust\n").map(|at| from + at) {
        let rest = &first.text[begin + 3..];
        let block = rest.split("\n```").next().unwrap_or(rest);
        if !tested.is_some_and(|tested| tested.text.contains(block)) {
            let index = first.text[..begin].lines().count();
            let what = format!("an example that is not in {}, whose Rust is tested", EXAMPLES[1]);
            findings.push(Finding::at(first, index, what));
        }
        from = begin + 3 + block.len();
    }
    findings
}

/// The pages of the guide that its table of contents does not have: the book leaves them out.
fn not_in_contents(files: &[File]) -> Vec<Finding> {
    let [path, folder] = CONTENTS;
    let Some(contents) = files.iter().find(|file| file.path == path) else { return vec![] };
    let is_missing = |page: &&File| {
        let name = page.path.strip_prefix(folder).filter(|_| page.has_extension("md"));
        name.is_some_and(|name| page.path != path && !contents.text.contains(&format!("]({name})")))
    };
    let missing = files.iter().filter(is_missing);
    missing.map(|page| Finding::at(page, 0, format!("a page that {path} does not list"))).collect()
}

/// The lines outside code blocks, with inline code blanked.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut in_block = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        let without_code: String = line.split('`').step_by(2).collect::<Vec<_>>().join("` `");
        (!is_fence && !in_block).then_some((index, without_code))
    })
}

/// The targets of the relative links in `line`, without what follows a `#`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let named = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    let all = inline.chain(named.map(|(_, target)| target.trim()));
    all.filter(|target| !target.contains(':'))
        .filter_map(|target| target.split('#').next())
        .filter(|path| !path.is_empty())
}

/// The names that the Rust files define, and those of the crates.
pub(super) fn defined(files: &[File]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files {
        if file.has_extension("rs") {
            let code = code_of(&file.text);
            let pairs = words(&code).zip(words(&code).skip(1));
            let definitions = pairs.filter(|(before, _)| DEFINING.contains(before));
            names.extend(definitions.map(|(_, name)| name.to_owned()));
        } else if let Some(dir) = file.path.strip_suffix("/Cargo.toml") {
            names.extend(dir.rsplit('/').next().map(|name| name.replace('-', "_")));
        }
    }
    names
}

/// The words in backticks in the table that name nothing.
fn check_table(
    file: &File,
    defined: &BTreeSet<String>,
    exists: &dyn Fn(&str) -> bool,
) -> Vec<Finding> {
    let mut in_section = false;
    let mut findings = vec![];
    let mut rows = 0;
    for (index, line) in file.text.lines().enumerate() {
        if line.starts_with('#') {
            in_section = line.trim_start_matches(['#', ' ']).starts_with(TABLE);
        }
        if !in_section || !line.starts_with('|') {
            continue;
        }
        rows += usize::from(line.contains('`'));
        if rows == MAX_ROWS + 1 {
            let what = format!("more than {MAX_ROWS} rows: leave out what a search finds");
            findings.push(Finding::at(file, index, what));
        }
        for token in line.split('`').skip(1).step_by(2) {
            let what = missing(token, defined, exists);
            findings.extend(what.map(|what| Finding::at(file, index, what)));
        }
    }
    findings
}

/// What is wrong with a word of the table.
fn missing(
    token: &str,
    defined: &BTreeSet<String>,
    exists: &dyn Fn(&str) -> bool,
) -> Option<String> {
    if token.contains(' ') || token.starts_with(['-', '/']) {
        return None;
    }
    let has_ending = [".rs", ".toml", ".md"].iter().any(|ending| token.ends_with(ending));
    if token.contains('/') || has_ending {
        let bases = [token.to_owned(), format!("crates/{token}"), format!("{CORE}/{token}")];
        let is_there = bases.iter().any(|path| exists(path));
        return (!is_there).then(|| format!("`{token}`: no such file"));
    }
    let name = token.split(['(', '!', '<']).next().unwrap_or(token);
    let mut parts = name.split("::").filter(|part| !["crate", "self", "super"].contains(part));
    if name.is_empty() || !parts.clone().all(|part| part.chars().all(is_word)) {
        return None;
    }
    let part = parts.find(|part| !defined.contains(*part))?;
    Some(format!("`{token}`: nothing defines {part}"))
}

#[cfg(test)]
mod tests {
    use super::super::told;
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        let there = ["README.md", "docs/a.md", "crates/paternoster/src/cfq/", "crates/x/src/b.rs"];
        told(&check(&files, &|path| there.contains(&path)))
    }

    #[test]
    fn relative_links_lead_somewhere() {
        let text = "[a](docs/a.md#part) [b](https://b.c/d) [c](#here)\n\n[d](docs/d.md \"title\")\n\
             # Here\n";
        assert_eq!(findings(&[("README.md", text)]), ["3: a link to docs/d.md: no such file"]);
        let named = "see [e] and [f]\n\n[e]: docs/e.md\n[f]: README.md\n";
        assert_eq!(findings(&[("README.md", named)]), ["3: a link to docs/e.md: no such file"]);
        let beside = findings(&[("docs/b.md", "[a](a.md) [c](c.md)")]);
        assert_eq!(beside, ["1: a link to c.md: no such file"]);
    }

    #[test]
    fn links_in_code_are_no_links() {
        let text = "`[a](b)`\n```\n[c](d)\n```\n`x` [e](f)\n";
        assert_eq!(findings(&[("README.md", text)]), ["5: a link to f: no such file"]);
    }

    #[test]
    fn links_to_headings_lead_to_one() {
        let page = "# What works, and what\n## `[disks.NAME]`\n[a](#what-works-and-what) [b](#c)\n";
        let other = "[a](../README.md#disksname) [b](../README.md#gone) [c](https://d.e/f.md#g)\n";
        let found = findings(&[("README.md", page), ("docs/a.md", other)]);
        let dead: Vec<_> = found.into_iter().filter(|line| line.contains("heading")).collect();
        let expected =
            ["3: a link to #c: no such heading", "1: a link to ../README.md#gone: no such heading"];
        assert_eq!(dead, expected);
    }

    #[test]
    fn rust_of_the_first_page_is_that_of_the_doctest() {
        let first = "a\n```rust\nlet x = 1;\n```\nb\n```rust\nlet y = 2;\n```\n";
        let core = "```rust\nlet y = 2;\n```\n";
        let found = findings(&[("README.md", first), ("crates/paternoster/README.md", core)]);
        let expected =
            ["2: an example that is not in crates/paternoster/README.md, whose Rust is tested"];
        assert_eq!(found, expected);
    }

    #[test]
    fn table_names_what_is_there() {
        let table = "## Where is …?\n\n| a | `cfq/`, `x/src/b.rs`, `Elevator::dispatch()` |\n\
                     | b | `cargo xtask test`, `--flag`, `x::Side`, `HZ`, `README.md` |\n";
        let code = "impl Elevator { pub fn dispatch(&self) {} }\nstruct Elevator<S>(S);\n\
                    enum Side {}\nconst HZ: u32 = 1;";
        let files = [(ARCHITECTURE, table), ("crates/x/a.rs", code), ("crates/x/Cargo.toml", "")];
        assert_eq!(findings(&files), [""; 0]);
    }

    #[test]
    fn table_does_not_name_what_is_gone() {
        let table = "`not/here`\n# Where is what?\n| `cfq/gone.rs` | `gone.md` |\n\
                     | `Elevator::gone` | `Gone` |\n\n# Next\n| `after` |\n";
        let code = "// fn gone() {}\nstruct Elevator;";
        let expected = [
            "3: `cfq/gone.rs`: no such file",
            "3: `gone.md`: no such file",
            "4: `Elevator::gone`: nothing defines gone",
            "4: `Gone`: nothing defines Gone",
        ];
        assert_eq!(findings(&[(ARCHITECTURE, table), ("a.rs", code)]), expected);
    }
    #[test]
    fn table_stays_short() {
        let row = "| a | `README.md` |\n";
        let most = format!("# Where is …?\n{}", row.repeat(MAX_ROWS));
        assert_eq!(findings(&[(ARCHITECTURE, &most)]), [""; 0]);
        let found = findings(&[(ARCHITECTURE, &format!("{most}{row}{row}"))]);
        assert_eq!(found, ["52: more than 50 rows: leave out what a search finds"]);
    }

    #[test]
    fn page_of_the_guide_is_in_its_table_of_contents() {
        let pages = [("docs/SUMMARY.md", "- [a](a.md)"), ("docs/a.md", ""), ("docs/b.md", "")];
        assert_eq!(findings(&pages), ["1: a page that docs/SUMMARY.md does not list"]);
    }
}
