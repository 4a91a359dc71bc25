//! `cargo xtask tidy`: what a machine can check of how the code base should read.
//!
//!   *.rs              length of files and lines; `unsafe` only where it is at home; nothing
//!                     ignored or left to do; no floating point in the core
//!   *.md              relative links, their anchors and paths in inline code lead somewhere;
//!                     README's Rust is a doctest's; tables that are made from the code are what
//!                     it has; the paths and names in the "Where is …?" table of ARCHITECTURE.md
//!                     exist; the guide's table of contents has all its pages; what is said to be
//!                     missing is in claims.toml, and README's factors are measured ones
//!   *.rs, *.md        no word that tidy/retired.toml lists
//!   Cargo.toml        every crate takes the workspace's lints; one that may be published has a
//!                     README, a description, keywords and the licence texts
//!   clippy.toml       functions are limited, and the core is kept from clocks and the like
//!
//! Only files that git tracks are looked at. A function's length is clippy's to check.

mod claims;
mod documents;
mod manifests;
mod paths;
mod retired;
mod rust;

use crate::tables;
use anyhow::{Context, Result, bail};
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Where the sources of the core crate are.
const CORE: &str = "crates/paternoster/src";

/// A tracked file.
struct File {
    /// Its path from the root of the repository.
    path: String,
    /// What is in it.
    text: String,
}

/// Something that should not be so.
#[derive(Debug, PartialEq)]
struct Finding {
    /// The file.
    path: String,
    /// The line, from 1.
    line: usize,
    /// What is wrong, and the limit where there is one.
    what: String,
}

impl File {
    /// Whether the name ends in `.` and `extension`.
    fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|own| own == extension)
    }
}

impl Finding {
    /// A finding in `file`; `index` counts lines from 0.
    fn at(file: &File, index: usize, what: impl Into<String>) -> Self {
        Self { path: file.path.clone(), line: index + 1, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Runs the command.
pub(crate) fn run() -> Result<()> {
    let files = tracked()?;
    let mut findings = rust::check(&files);
    findings.extend(documents::check(&files, &|path| Path::new(path).exists()));
    findings.extend(paths::check(&files, &|path| Path::new(path).exists()));
    findings.extend(claims::check_all(&files)?);
    findings.extend(retired::check_all(&files)?);
    findings.extend(check_tables(&files)?);
    findings.extend(manifests::check(&files, &stands_there));
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy: {} files, nothing found", files.len());
        return Ok(());
    }
    bail!("tidy: {} findings", findings.len());
}

/// Whether there is a file; a text of a licence is that of the whole repository.
fn stands_there(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let read = |path| fs::read(path).ok();
    if name.starts_with("LICENSE") {
        read(path).is_some_and(|text| Some(text) == read(name))
    } else {
        Path::new(path).exists()
    }
}

/// The tables in documents that are not what the code has.
fn check_tables(files: &[File]) -> Result<Vec<Finding>> {
    let has_tables = |file: &&File| file.path.starts_with("docs/") || file.path == tables::FORMAT;
    let pages = || files.iter().filter(has_tables);
    let mut findings = vec![];
    for page in pages() {
        let differs = tables::first_difference(&page.text).context(page.path.clone())?;
        let what = format!("not what the code has; to write it: {}", tables::REPAIR);
        findings.extend(differs.map(|index| Finding::at(page, index, what)));
    }
    let missing = tables::without_table(pages().map(|page| page.text.as_str()));
    findings.extend(missing.into_iter().map(|kind| Finding {
        path: "docs/schedulers.md".to_owned(),
        line: 1,
        what: format!("no table of the tunables of {kind}"),
    }));
    Ok(findings)
}

/// The tracked files that are looked at.
fn tracked() -> Result<Vec<File>> {
    // In a container the repository may belong to someone else, and git then refuses to list it.
    let output = Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "-z", "*.rs", "*.md", "*.toml"])
        .output()
        .context("git does not start")?;
    if !output.status.success() {
        bail!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let list = String::from_utf8(output.stdout).context("git's list of files")?;
    let paths = list.split_terminator('\0').filter(|path| Path::new(path).is_file());
    paths
        .map(|path| {
            let text = std::fs::read_to_string(path).with_context(|| format!("reading {path}"))?;
            Ok(File { path: path.to_owned(), text })
        })
        .collect()
}

#[cfg(test)]
impl File {
    /// A file for a test.
    fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }
}

/// The findings as `line: what`, for tests.
#[cfg(test)]
fn told(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|finding| format!("{}: {}", finding.line, finding.what)).collect()
}
