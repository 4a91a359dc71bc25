//! `cargo xtask bench live`: the live tests, judged to a few percent.
//!
//! `cargo xtask test` runs them too, and asks for safety alone: that nobody is starved, nothing is
//! lost, memory is bounded. Their figures need a quiet machine.

use crate::cargo;
use crate::not_run::NotedFile;
use anyhow::{Result, bail};
use paternoster_bench::NotRun;

/// The variable that has the tests judge figures.
pub(crate) const FIGURES: (&str, &str) = ("PATERNOSTER_JUDGE", "figures");

/// The tests, as cargo is told of them: with the features of the whole workspace, as elsewhere, so
/// that nothing is built twice.
const TESTS: [&str; 3] =
    ["--test shares --test fairness", "--test attacks", "--test end_to_end demo"];

/// Runs the command.
pub(crate) fn run() -> Result<()> {
    let noted = NotedFile::new("live")?;
    let mut failed = Vec::new();
    for tests in TESTS {
        let mut command = cargo::command();
        command.args(["test", "--locked", "--no-fail-fast", "--workspace"]);
        command.args(tests.split(' '));
        command.args(["--", "--nocapture"]).envs([FIGURES]).envs([noted.variable()]);
        if let Err(error) = cargo::run(&mut command) {
            failed.push(format!("cargo test {tests}: {error:#}"));
        }
    }
    if !failed.is_empty() {
        bail!("{}", failed.join("\n"));
    }
    let lines = noted.lines()?;
    if !lines.is_empty() {
        return Err(NotRun(lines.join("\n")).into());
    }
    Ok(())
}
