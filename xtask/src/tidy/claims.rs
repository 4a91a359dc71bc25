//! What documents claim and a machine can hold them to.
//!
//! - A line that says that something is missing ("yet", "does not have") is one of claims.toml. An
//!   entry there may name what would make it untrue, and may be of a line without these words.
//! - A number that README multiplies by ("1.63 × nbdkit", "0.86 to 1.08 times") stands in the page
//!   of measured tables.

use super::documents::defined;
use super::{File, Finding};
use crate::source::words;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeSet;

/// The list.
const PATH: &str = "xtask/src/tidy/claims.toml";
/// What a line has that says that something is missing.
const PHRASES: [&str; 2] = ["yet", "does not have"];
/// The page whose factors are checked, and the one that they are of.
const FIGURES: [&str; 2] = ["README.md", "docs/performance.md"];
/// What stands behind a factor.
const MULTIPLIES: [&str; 2] = ["×", "times"];

/// What claims.toml says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    #[serde(rename = "claim")]
    claims: Vec<Claim>,
}

/// Something that is missing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    /// The page that says so.
    path: String,
    /// What a line of it has.
    text: String,
    /// Names and crates that are there once it is untrue.
    #[serde(default)]
    until: Vec<String>,
}

/// The findings in all documents.
pub(super) fn check_all(files: &[File]) -> Result<Vec<Finding>> {
    let list = files.iter().find(|file| file.path == PATH);
    let list = list.with_context(|| format!("{PATH} is not among git's files"))?;
    let mut findings = check(&list.text, files)?;
    let [readme, measured] = FIGURES.map(|path| files.iter().find(|file| file.path == path));
    if let (Some(readme), Some(measured)) = (readme, measured) {
        findings.extend(unmeasured(readme, &measured.text));
    }
    Ok(findings)
}

/// The lines that the list does not have, and the entries that are not needed or no longer true.
fn check(list: &str, files: &[File]) -> Result<Vec<Finding>> {
    let Claims { claims } = toml::from_str(list).context("reading claims.toml")?;
    let mut findings = vec![];
    for page in files.iter().filter(|file| is_page(file)) {
        let own: Vec<_> = claims.iter().filter(|claim| claim.path == page.path).collect();
        let mut before = "";
        for (index, line) in page.text.lines().enumerate() {
            let is_listed = || own.iter().any(|claim| ends_in(&claim.text, before, line));
            let phrase = PHRASES.iter().find(|phrase| has_phrase(line, phrase));
            if let Some(phrase) = phrase.filter(|_| !is_listed()) {
                let what = format!("\"{phrase}\" says that something is missing: {PATH} lists it");
                findings.push(Finding::at(page, index, what));
            }
            before = line;
        }
    }
    let there = there(files);
    for claim in &claims {
        let page = files.iter().find(|file| file.path == claim.path);
        let lines: Vec<_> = page.map(|page| page.text.lines().collect()).unwrap_or_default();
        let line = (0..lines.len()).position(|index| {
            let before = index.checked_sub(1).map_or("", |before| lines[before]);
            ends_in(&claim.text, before, lines[index])
        });
        let untrue = claim.until.iter().find(|name| there.contains(*name));
        let what = match (line, untrue) {
            (None, _) => format!("{PATH} has \"{}\", which the page does not say", claim.text),
            (_, Some(name)) => format!("\"{}\", but there is `{name}`", claim.text),
            (Some(_), None) => continue,
        };
        findings.push(Finding { path: claim.path.clone(), line: line.unwrap_or(0) + 1, what });
    }
    Ok(findings)
}

/// Whether `text` ends in `line`; it may have begun in the line before.
fn ends_in(text: &str, before: &str, line: &str) -> bool {
    let (before, line) = (before.trim(), line.trim());
    let joined = format!("{before} {line}");
    joined.rfind(text).is_some_and(|at| at + text.len() > before.len() + 1)
}

/// Whether claims on the page are listed.
fn is_page(file: &File) -> bool {
    let is_guide = file.path.starts_with("docs/") && file.has_extension("md");
    is_guide || ["README.md", "CHANGELOG.md"].contains(&file.path.as_str())
}

/// Whether the line has these words, in this order.
fn has_phrase(line: &str, phrase: &str) -> bool {
    let (line, phrase): (Vec<_>, Vec<_>) = (words(line).collect(), phrase.split(' ').collect());
    line.windows(phrase.len()).any(|window| window == phrase)
}

/// The names that Rust files define, and the crates that are depended on.
fn there(files: &[File]) -> BTreeSet<String> {
    let mut names = defined(files);
    let manifests = files.iter().filter(|file| file.path.ends_with("Cargo.toml"));
    let keys = manifests.flat_map(|file| file.text.lines());
    let keys = keys.filter_map(|line| line.split([' ', '.', '=']).next());
    names.extend(keys.map(str::to_owned));
    names
}

/// The factors of a page that do not stand in `measured`.
fn unmeasured(page: &File, measured: &str) -> Vec<Finding> {
    let known: BTreeSet<_> = numbers(measured).collect();
    let mut findings = vec![];
    for (index, line) in page.text.lines().enumerate() {
        let factors = MULTIPLIES.iter().flat_map(|sign| line.match_indices(sign));
        let factors = factors.flat_map(|(at, _)| range_before(&line[..at]));
        findings.extend(factors.filter(|factor| !known.contains(factor)).map(|factor| {
            let what = format!("a factor of {factor}, which is not in {}", FIGURES[1]);
            Finding::at(page, index, what)
        }));
    }
    findings
}

/// The numbers right before a sign: "1.2", or both of "1.2 to 1.3".
fn range_before(text: &str) -> Vec<&str> {
    let mut words = text.trim_end().rsplit(' ').map(|word| word.trim_matches(['*', '(', ',']));
    let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let Some(last) = words.next().filter(is_number) else { return vec![] };
    let is_range = words.next() == Some("to");
    let first = words.next().filter(is_number).filter(|_| is_range);
    first.into_iter().chain([last]).collect()
}

/// All numbers of a text.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '.' && c != ',');
    words.map(|word| word.trim_matches(['.', ','])).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::told;
    use super::*;

    const LIST: &str =
        "[[claim]]\npath = 'README.md'\ntext = 'no TLS yet'\nuntil = ['rustls', 'Tls']\n";

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        told(&check(LIST, &files).expect("the list is valid"))
    }

    #[test]
    fn what_is_missing_is_listed() {
        let page = "There is no TLS yet.\nNobody yet\nIt does not have it.\nyeti\n";
        let found = findings(&[("README.md", page), ("docs/a.md", "no TLS yet"), ("b.md", "yet")]);
        let lines: Vec<_> =
            found.iter().map(|line| line.split(':').next().expect("a line")).collect();
        assert_eq!(lines, ["2", "3", "1"], "{found:?}");
    }

    #[test]
    fn listed_claim_is_made_and_true() {
        let page = ("README.md", "\nno TLS yet\n");
        assert_eq!(findings(&[("README.md", "There is no\n  TLS yet.\n")]), [""; 0]);
        assert_eq!(findings(&[page, ("a.rs", "struct Tlsa;")]), [""; 0]);
        assert_eq!(
            findings(&[page, ("a.rs", "struct Tls;")]),
            ["2: \"no TLS yet\", but there is `Tls`"]
        );
        let depends =
            findings(&[page, ("a/Cargo.toml", "[dependencies]\nrustls.workspace = true\n")]);
        assert_eq!(depends, ["2: \"no TLS yet\", but there is `rustls`"]);
        let found = findings(&[("README.md", "TLS\n")]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn factor_of_the_first_page_is_a_measured_one() {
        let measured = "| **1.63** | 0.86 to 1.08 times, 12,34 |";
        let told = |text| told(&unmeasured(&File::new("README.md", text), measured));
        assert_eq!(told("1.63 × nbdkit, 0.86 to 1.08 times\nmany × and times"), [""; 0]);
        let found = told("a\n1.62 × nbdkit, and **0.87 to 1.08** times\n");
        let expected = ["1.62", "0.87"]
            .map(|factor| format!("2: a factor of {factor}, which is not in docs/performance.md"));
        assert_eq!(found, expected);
    }
}
