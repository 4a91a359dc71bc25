//! `cargo xtask test`: all checks, in order. Every step runs even if one before it failed, and the
//! end lists what failed, and why: thousands of lines may be between a failure and the end.
//!
//! Cheap checks come before dear ones. The tests come last, and of them the documentation's, so
//! that the runner's summary ends the output where nothing failed. What waits runs beside what
//! computes:
//!
//! ```text
//!   … ── attacks, … ─┬─ guest, ceph, peers ──────┬─ tests, in two lanes ── doctests
//!                    └─ by threads, instructions ─┘
//! ```

use crate::not_run::NotedFile;
use crate::{
    bench_sched, cargo, ceph, fio_judge, guest, oracle, packages, peers, test_binaries, tidy,
};
use anyhow::{Result, bail};
use paternoster_bench::{NotRun, idle};
use paternoster_disk::IoEngine;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// What to check.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Check what needs a kernel of one's own, in a virtual machine, and nothing else
    #[arg(long)]
    guest: bool,
    /// Check in front of a Ceph cluster, and nothing else
    #[arg(long, conflicts_with = "guest")]
    ceph: bool,
    /// Check with a front-end that Debian 13 has, for so many seconds in each of six servers, and
    /// nothing else
    #[arg(long, value_name = "SECONDS", default_missing_value = "60", num_args = 0..=1)]
    #[arg(conflicts_with_all = ["guest", "ceph"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    peers: Option<u32>,
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
    lane: Lane,
}

/// Where a step runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// Alone.
    Whole,
    /// Behind its neighbours in this half, beside those in the other.
    Left,
    Right,
}

/// How a step is done.
enum Action {
    /// By cargo, as the step's command says.
    Cargo,
    /// By a function of ours.
    Call(fn() -> Result<()>),
    /// The tests, by all that cargo builds for its command.
    Tests,
}

/// The steps.
const STEPS: [Step; 20] = [
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
        lane: Lane::Whole,
    },
    Step::call("tidy", "cargo xtask tidy", tidy::run),
    Step::call("oracle", "cargo xtask oracle --check", oracle::check),
    Step::cargo(
        "model",
        "cargo test -p paternoster-crossing --features model --test model --locked",
    ),
    Step::cargo("attacks", "cargo test --workspace --test attacks --locked -- --nocapture"),
    Step::call("idle server", "cargo xtask bench idle --check", idle_server),
    Step::call("fio as judge", "cargo xtask fio-judge --no-clock --files 25", fio_judge::check),
    Step { lane: Lane::Left, ..Step::call("guest", "cargo xtask test --guest", guest::run) },
    Step { lane: Lane::Left, ..Step::call("ceph", "cargo xtask test --ceph", ceph::run) },
    Step { lane: Lane::Left, ..Step::call("peers", "cargo xtask test --peers 3", peers_briefly) },
    Step {
        name: "disk by threads",
        repeat: "cargo test --workspace --test disk --locked",
        env: &[BY_THREADS],
        action: Action::Cargo,
        lane: Lane::Right,
    },
    Step {
        name: "clients by threads",
        repeat: "cargo test --workspace --test served --locked",
        env: &[BY_THREADS],
        action: Action::Cargo,
        lane: Lane::Right,
    },
    Step {
        name: "other people's clients by threads",
        repeat: "cargo test --workspace --test end_to_end --locked -- \
                 interop shutdown full_disk wire memory",
        env: &[BY_THREADS],
        action: Action::Cargo,
        lane: Lane::Right,
    },
    Step {
        lane: Lane::Right,
        ..Step::call("instructions", "cargo xtask bench sched --check", bench_sched::check)
    },
    Step {
        action: Action::Tests,
        ..Step::cargo("tests", "cargo test --workspace --no-fail-fast --locked")
    },
];

/// Has tests carry operations out by threads instead of io_uring.
const BY_THREADS: (&str, &str) = ("TEST_ENGINE", "threads");

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    match args.peers {
        Some(seconds) => peers::run(Duration::from_secs(seconds.into())),
        None if args.guest => guest::run(),
        None if args.ceph => ceph::run(),
        None => run_steps(),
    }
}

/// What came of a step.
struct Done {
    step: &'static Step,
    /// Why it has failed, if it has.
    failure: Option<String>,
    not_run: usize,
}

/// Does all steps.
fn run_steps() -> Result<()> {
    let fallback = engine_of_tests()?;
    let mut done = vec![];
    let steps: Vec<_> = STEPS.iter().enumerate().collect();
    for group in steps.chunk_by(|(_, one), (_, next)| one.is_beside(next)) {
        let (left, right): (Vec<_>, Vec<_>) =
            group.iter().partition(|(_, step)| step.lane != Lane::Right);
        let lane = |steps: &[(usize, &'static Step)]| -> Result<Vec<Done>> {
            steps.iter().map(|(index, step)| step.done(*index, fallback)).collect()
        };
        thread::scope(|scope| {
            let right = scope.spawn(|| lane(&right));
            let left = lane(&left);
            let right = right.join().expect("a lane does not panic");
            done.extend(left?);
            done.extend(right?);
            anyhow::Ok(())
        })?;
    }
    let not_run = fallback.iter().len() + done.iter().map(|done| done.not_run).sum::<usize>();
    if not_run > 0 {
        println!("== {not_run} checks were not run, as said above");
    }
    let failed = done.iter().filter_map(|done| Some((done.step, done.failure.as_deref()?)));
    let failed: Vec<_> = failed.collect();
    if failed.is_empty() { Ok(()) } else { bail!("{}", list_of_failed(&failed)) }
}

/// What failed, with what repeats it, and why.
fn list_of_failed(failed: &[(&Step, &str)]) -> String {
    let lines = failed.iter().map(|(step, why)| {
        let why = why.replace('\n', "\n    ");
        format!("\n  {}: {}\n    {why}", step.name, step.command_line())
    });
    format!("{} of {} steps failed:{}", failed.len(), STEPS.len(), lines.collect::<String>())
}

/// The same check with peers, for no longer than it takes to see most mistakes.
fn peers_briefly() -> Result<()> {
    peers::run(Duration::from_secs(3))
}

/// An idle server wakes up for nothing.
fn idle_server() -> Result<()> {
    idle::check(&cargo::tested()?)
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
        Self { name, repeat, env: &[], action: Action::Cargo, lane: Lane::Whole }
    }

    /// A step that is done here.
    const fn call(name: &'static str, repeat: &'static str, call: fn() -> Result<()>) -> Self {
        Self { name, repeat, env: &[], action: Action::Call(call), lane: Lane::Whole }
    }

    /// The command that repeats the step, for a shell.
    fn command_line(&self) -> String {
        let env = self.env.iter().map(|(key, value)| format!("{key}=\"{value}\" "));
        env.chain([self.repeat.to_owned()]).collect()
    }

    /// Whether it may run beside that one.
    fn is_beside(&self, other: &Self) -> bool {
        ![self.lane, other.lane].contains(&Lane::Whole)
    }

    /// Does the step of that index, and says so.
    fn done(&'static self, index: usize, fallback: Option<(&str, &str)>) -> Result<Done> {
        let is_last = index + 1 == STEPS.len();
        let heading = format!("== {}/{} {}", index + 1, STEPS.len(), self.name);
        println!("{heading}: {}", self.command_line());
        let start = Instant::now();
        let noted = NotedFile::new(self.name)?;
        let mut done = Done { step: self, failure: None, not_run: 0 };
        match self.run(&noted, fallback) {
            Ok(()) => {}
            Err(error) if error.is::<NotRun>() => {
                println!("{heading}: {error}");
                done.not_run += 1;
            }
            Err(error) => {
                println!("{heading}: failed: {error:#}");
                done.failure = Some(format!("{error:#}"));
            }
        }
        if !is_last {
            println!("{heading}: {:.1} s", start.elapsed().as_secs_f64());
        }
        for line in noted.lines()? {
            println!("{heading}: {line}");
            done.not_run += 1;
        }
        Ok(done)
    }

    /// Does the step.
    fn run(&self, noted: &NotedFile, fallback: Option<(&str, &str)>) -> Result<()> {
        let env = fallback.into_iter().chain(self.env.iter().copied());
        let env = env.map(|(name, value)| (name, Path::new(value))).chain([noted.variable()]);
        match self.action {
            Action::Call(call) => call(),
            Action::Cargo => {
                let args = self.repeat.split(' ').skip(1);
                cargo::run(cargo::command().args(args).envs(env))
            }
            Action::Tests => test_binaries::run(&env.collect::<Vec<_>>()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cargo_step_is_its_command_line_split_at_spaces() {
        for step in STEPS.iter().filter(|step| matches!(step.action, Action::Cargo)) {
            assert!(step.repeat.starts_with("cargo "), "{}", step.repeat);
            assert!(!step.repeat.contains(['"', '\'', '$']), "{}", step.repeat);
        }
    }

    #[test]
    fn every_step_that_failed_is_listed_with_what_repeats_it_and_why() {
        let failed = [(&STEPS[1], "status 1"), (&STEPS[6], "a.rs:\ntoo long")];
        let expected = "2 of 20 steps failed:\n  format: cargo fmt --all --check\n    status 1\n  \
                        tidy: cargo xtask tidy\n    a.rs:\n    too long";
        assert_eq!(list_of_failed(&failed), expected);
    }

    #[test]
    fn command_line_names_the_variables_that_it_needs() {
        let step = STEPS.iter().find(|step| step.name == "documentation").expect("it is a step");
        assert!(step.command_line().starts_with("RUSTDOCFLAGS=\"-D warnings\" cargo doc "));
    }
}
