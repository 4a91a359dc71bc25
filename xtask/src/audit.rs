//! `cargo xtask audit`: what we depend on, held against deny.toml by cargo-deny.
//!
//! Licences, versions, bans and sources need no database; `package` checks those. Known
//! vulnerabilities are in one that comes over the network. Where that, or cargo-deny itself, cannot
//! be had nothing has been checked, and the exit status is 2; but CI has to check.

use crate::cargo;
use anyhow::{Result, bail};
use paternoster_bench::NotRun;
use std::path::Path;
use std::process::Command;

/// The version of cargo-deny, which decides what its lints are.
const CARGO_DENY: &str = "0.19.8";
/// What needs no database.
const WITHOUT_ADVISORIES: [&str; 3] = ["bans", "licenses", "sources"];
/// Exceptions that nothing needs any more are errors; what is allowed need not be told.
const LINTS: [&str; 6] = ["-D", "unmatched-skip", "-D", "unnecessary-skip", "-A", "skipped"];

/// What to check.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Check licences, versions, bans and sources, which need no database
    #[arg(long)]
    no_advisories: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.no_advisories {
        return check_without_advisories();
    }
    let mut fetch = cargo_deny()?;
    // Why it fails, it says itself: a bad deny.toml is reported so too.
    let is_renewed = cargo::run(fetch.args(["fetch", "db"])).is_ok();
    let database = cargo::home()?.join("advisory-dbs");
    require_advisories(is_renewed, &database)?;
    let mut check = cargo_deny()?;
    if !is_renewed {
        println!("audit: the advisories could not be renewed; using {}", database.display());
        check.arg("--offline");
    }
    cargo::run(check.arg("check").args(LINTS))
}

/// Checks what needs no database.
pub(crate) fn check_without_advisories() -> Result<()> {
    cargo::run(cargo_deny()?.arg("check").args(LINTS).args(WITHOUT_ADVISORIES))
}

/// The program.
fn cargo_deny() -> Result<Command> {
    let program = cargo::tool("cargo-deny", CARGO_DENY).or_else(|error| {
        let why = format!("{error:#}");
        if std::env::var("CI").is_ok_and(|ci| ci == "true") {
            bail!("not run: {why}; CI has to");
        }
        Err(NotRun(why).into())
    });
    let mut program = Command::new(program?);
    program.args(["--locked", "--log-level", "error"]);
    Ok(program)
}

/// An error where there are no advisories to check by.
fn require_advisories(is_renewed: bool, database: &Path) -> Result<(), NotRun> {
    if is_renewed || has_clone(database) {
        return Ok(());
    }
    let place = database.display();
    Err(NotRun(format!("there are no advisories in {place}, and none could be fetched")))
}

/// Whether `dir` holds a directory: a clone of a database. A lock alone is none.
fn has_clone(dir: &Path) -> bool {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| path.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_advisories_nothing_counts_as_checked() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = dir.path().join("not there");
        let error = require_advisories(false, &place).expect_err("there are none").to_string();
        assert!(error.starts_with("not run: there are no advisories in "), "{error}");
        require_advisories(true, &place).expect("they have come");
        // A lock alone is no database.
        std::fs::write(dir.path().join("db.lock"), "").expect("a file");
        assert!(require_advisories(false, dir.path()).is_err());
        std::fs::create_dir(dir.path().join("advisory-db")).expect("a directory");
        require_advisories(false, dir.path()).expect("old ones are there");
    }
}
