//! `cargo xtask audit`: cargo-deny's check of what we depend on, known vulnerabilities included.
//!
//! It needs cargo-deny and its database of advisories, which comes over the network. Where one of
//! them is not available nothing has been checked, and the exit status is 2. What tidy checks of
//! deny.toml is a part of this, without the two.

use crate::cargo;
use anyhow::{Context, Result};
use paternoster_bench::NotRun;
use std::path::Path;
use std::process::Stdio;

/// How cargo-deny is installed.
const INSTALL: &str = "cargo install --locked cargo-deny";
/// What renews the database.
const FETCH: [&str; 4] = ["deny", "--locked", "fetch", "db"];
/// What checks, when there is a network.
const CHECK: [&str; 3] = ["deny", "--locked", "check"];
/// What checks with the database that is there.
const CHECK_OFFLINE: [&str; 4] = ["deny", "--locked", "--offline", "check"];

/// What is there.
#[derive(Debug, Clone, Copy)]
struct Found {
    /// cargo-deny starts.
    has_program: bool,
    /// The database has just been renewed.
    is_renewed: bool,
    /// There is a database, new or old.
    has_database: bool,
}

/// Runs the command.
pub(crate) fn run() -> Result<()> {
    let database = cargo::home()?.join("advisory-dbs");
    let has_program = succeeds(&["deny", "--version"], Stdio::null())?;
    // Why it fails, it says itself: a bad deny.toml is reported so too.
    let is_renewed = has_program && succeeds(&FETCH, Stdio::inherit())?;
    let found = Found { has_program, is_renewed, has_database: has_clone(&database) };
    let arguments = judge(found, &database)?;
    if !is_renewed {
        println!("audit: the advisories could not be renewed; using {}", database.display());
    }
    cargo::run(cargo::command().args(arguments))
}

/// What to check with, or why that cannot be done.
fn judge(found: Found, database: &Path) -> Result<&'static [&'static str], NotRun> {
    let place = database.display();
    if !found.has_program {
        return Err(NotRun(format!("cargo-deny is not installed: {INSTALL}")));
    }
    if !found.has_database {
        let fetch = FETCH.join(" ");
        let why = format!("there are no advisories in {place}, and `cargo {fetch}` brought none");
        return Err(NotRun(why));
    }
    Ok(if found.is_renewed { &CHECK } else { &CHECK_OFFLINE })
}

/// Whether `dir` holds a directory: a clone of a database. A lock alone is none.
fn has_clone(dir: &Path) -> bool {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| path.is_dir())
}

/// Whether cargo ends well with `args`, whose complaints go to `stderr`.
fn succeeds(args: &[&str], stderr: Stdio) -> Result<bool> {
    let mut command = cargo::command();
    command.args(args).stdout(Stdio::null()).stderr(stderr);
    Ok(command.status().context("cargo does not start")?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Found = Found { has_program: true, is_renewed: true, has_database: true };

    fn judged(found: Found) -> Result<String, String> {
        let judged = judge(found, Path::new("db"));
        judged.map(|arguments| arguments.join(" ")).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_missing_is_named_and_nothing_counts_as_checked() {
        let none = judged(Found { has_program: false, ..ALL });
        let install = "not run: cargo-deny is not installed: cargo install --locked cargo-deny";
        assert_eq!(none, Err(install.to_owned()));
        let empty = judged(Found { is_renewed: false, has_database: false, ..ALL });
        let fetch = "not run: there are no advisories in db, \
                     and `cargo deny --locked fetch db` brought none";
        assert_eq!(empty, Err(fetch.to_owned()));
    }

    #[test]
    fn old_advisories_are_used_without_the_network() {
        assert_eq!(judged(ALL), Ok("deny --locked check".to_owned()));
        let old = judged(Found { is_renewed: false, ..ALL });
        assert_eq!(old, Ok("deny --locked --offline check".to_owned()));
    }

    #[test]
    fn lock_alone_is_no_database() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(!has_clone(&dir.path().join("not there")));
        std::fs::write(dir.path().join("db.lock"), "").expect("a file");
        assert!(!has_clone(dir.path()));
        std::fs::create_dir(dir.path().join("advisory-db")).expect("a directory");
        assert!(has_clone(dir.path()));
    }
}
