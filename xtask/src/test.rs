//! `cargo xtask test`: all checks, in order, up to the first failure.
//!
//! Cheap checks come before dear ones, except that the test runner comes last, so that its own
//! summary ends the output.

use crate::not_run::NotRun;
use crate::{bench_idle, bench_sched, cargo, guest, oracle, packages, tidy};
use anyhow::{Context as _, Result, bail};
use paternoster_disk::IoEngine;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Instant;

/// What to check.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Check what needs a kernel of one's own, in a virtual machine, and nothing else
    #[arg(long)]
    guest: bool,
}

/// A step of the run.
struct Step {
    /// What it is called.
    name: &'static str,
    /// The command that repeats it.
    repeat: &'static str,
    /// Variables that the command needs.
    env: &'static [(&'static str, &'static str)],
    /// How it is done from within.
    action: Action,
}

/// How a step is done.
enum Action {
    /// By cargo, as the step's command says.
    Cargo,
    /// By a function of ours.
    Call(fn() -> Result<()>),
}

/// The steps.
const STEPS: [Step; 17] = [
    Step::call("packages", "cargo xtask test", packages::ensure),
    Step::cargo("format", "cargo fmt --all --check"),
    Step::cargo("clippy", "cargo clippy --workspace --all-targets --locked -- -D warnings"),
    Step::cargo(
        "clippy, attacks",
        "cargo clippy --workspace --test attacks --locked -- -D warnings",
    ),
    Step::cargo(
        "clippy, model",
        "cargo clippy -p paternoster-crossing --features model --tests --locked -- -D warnings",
    ),
    Step {
        name: "documentation",
        repeat: "cargo doc --workspace --no-deps --document-private-items --locked",
        env: &[("RUSTDOCFLAGS", "-D warnings")],
        action: Action::Cargo,
    },
    Step::call("tidy", "cargo xtask tidy", tidy::run),
    Step::call("oracle", "cargo xtask oracle --check", oracle::check),
    Step::call("instructions", "cargo xtask bench sched --check", bench_sched::check),
    Step::cargo(
        "model",
        "cargo test -p paternoster-crossing --features model --test model --locked",
    ),
    Step::cargo("attacks", "cargo test --workspace --test attacks --locked -- --nocapture"),
    Step::call("idle server", "cargo xtask bench idle --check", bench_idle::check),
    Step::call("guest", "cargo xtask test --guest", guest::run),
    Step {
        name: "disk by threads",
        repeat: "cargo test -p paternoster-disk --tests --locked",
        env: &[BY_THREADS],
        action: Action::Cargo,
    },
    Step {
        name: "clients by threads",
        repeat: "cargo test -p paternoster-server --test served --locked",
        env: &[BY_THREADS],
        action: Action::Cargo,
    },
    Step {
        name: "other people's clients by threads",
        repeat: "cargo test -p paternoster-cli --test end_to_end --locked -- \
                 interop shutdown full_disk wire memory",
        env: &[BY_THREADS],
        action: Action::Cargo,
    },
    Step::cargo("tests", "cargo test --workspace --locked"),
];

/// Has tests run with operations carried out by threads. Without it they are by io_uring.
const BY_THREADS: (&str, &str) = ("TEST_ENGINE", "threads");

/// The variable that names the file in which tests note what they could not run on this machine.
const NOT_RUN: &str = "PATERNOSTER_NOT_RUN";

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.guest { guest::run() } else { run_steps() }
}

/// Does all steps.
fn run_steps() -> Result<()> {
    let fallback = engine_of_tests()?;
    let mut not_run = fallback.iter().len();
    for (index, step) in STEPS.iter().enumerate() {
        let number = format!("{}/{}", index + 1, STEPS.len());
        println!("== {number} {}: {}", step.name, step.command_line());
        let start = Instant::now();
        let noted = NotedFile::new(index)?;
        match step.run(&noted, fallback) {
            Ok(()) => {}
            Err(error) if error.is::<NotRun>() => {
                println!("== {number} {}: {error}", step.name);
                not_run += 1;
            }
            Err(error) => {
                let again = step.command_line();
                bail!("step {} failed: {error:#}\nto repeat it: {again}", step.name);
            }
        }
        if index + 1 < STEPS.len() {
            println!("== {number} {}: {:.1} s", step.name, start.elapsed().as_secs_f64());
        }
        for line in noted.lines()? {
            println!("== {number} {}: {line}", step.name);
            not_run += 1;
        }
    }
    if not_run > 0 {
        println!("== {not_run} checks were not run, as said above; all others passed");
    }
    Ok(())
}

/// Has all tests run by threads where this machine does not permit io_uring, by which they run
/// otherwise: that is told, and no place for CI.
fn engine_of_tests() -> Result<Option<(&'static str, &'static str)>> {
    if IoEngine::fastest() == IoEngine::IoUring {
        return Ok(None);
    }
    let why = "tests by io_uring: this machine does not permit it";
    if std::env::var("CI").is_ok_and(|ci| ci == "true") {
        bail!("not run: {why}; CI has to");
    }
    println!("== not run: {why}; they run by threads");
    Ok(Some(BY_THREADS))
}

impl Step {
    /// A step that is a cargo command.
    const fn cargo(name: &'static str, repeat: &'static str) -> Self {
        Self { name, repeat, env: &[], action: Action::Cargo }
    }

    /// A step that is done here.
    const fn call(name: &'static str, repeat: &'static str, call: fn() -> Result<()>) -> Self {
        Self { name, repeat, env: &[], action: Action::Call(call) }
    }

    /// The command that repeats the step, for a shell.
    fn command_line(&self) -> String {
        let env = self.env.iter().map(|(key, value)| format!("{key}=\"{value}\" "));
        env.chain([self.repeat.to_owned()]).collect()
    }

    /// Does the step.
    fn run(&self, noted: &NotedFile, fallback: Option<(&str, &str)>) -> Result<()> {
        match self.action {
            Action::Call(call) => call(),
            Action::Cargo => {
                let args = self.repeat.split(' ').skip(1);
                let env = fallback.into_iter().chain(self.env.iter().copied());
                cargo::run(cargo::command().args(args).envs(env).env(NOT_RUN, &noted.0))
            }
        }
    }
}

/// The file in which the tests of one step note what they could not run; removed at the end.
struct NotedFile(PathBuf);

impl NotedFile {
    /// Names a file that does not exist yet.
    fn new(step: usize) -> Result<Self> {
        let name = format!("paternoster-not-run-{}-{step}", std::process::id());
        let path = std::env::temp_dir().join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", path.display()))
            }
            _ => Ok(Self(path)),
        }
    }

    /// Returns the lines that were noted.
    fn lines(&self) -> Result<Vec<String>> {
        match fs::read_to_string(&self.0) {
            Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(vec![]),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", self.0.display())),
        }
    }
}

impl Drop for NotedFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tests_note_as_not_run_is_read_and_their_file_removed() {
        let noted = NotedFile::new(usize::MAX).expect("a name");
        let path = noted.0.clone();
        assert_eq!(noted.lines().expect("no file is no lines"), [""; 0]);
        fs::write(&path, "not run: a\nnot run: b\n").expect("written");
        assert_eq!(noted.lines().expect("two"), ["not run: a", "not run: b"]);
        drop(noted);
        assert!(!path.exists());
    }

    #[test]
    fn every_cargo_step_is_its_command_line_split_at_spaces() {
        for step in STEPS.iter().filter(|step| matches!(step.action, Action::Cargo)) {
            assert!(step.repeat.starts_with("cargo "), "{}", step.repeat);
            assert!(!step.repeat.contains(['"', '\'', '$']), "{}", step.repeat);
        }
    }

    #[test]
    fn command_line_names_the_variables_that_it_needs() {
        let step = STEPS.iter().find(|step| step.name == "documentation").expect("it is a step");
        assert!(step.command_line().starts_with("RUSTDOCFLAGS=\"-D warnings\" cargo doc "));
    }
}
