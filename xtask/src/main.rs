//! The project’s own commands, run as `cargo xtask COMMAND`.
//!
//! `test` is what continuous integration runs, in one go; the others are its parts, and the
//! benchmarks. Every path in this crate is relative to the root of the repository.

mod audit;
mod bench;
mod bench_live;
mod bench_sched;
mod build;
mod cargo;
mod ceph;
mod commit;
mod compare;
mod dashboard;
mod debian;
mod decisions;
mod docs;
mod fio_judge;
mod fresh;
mod goldens;
mod guest;
mod not_run;
mod oracle;
mod package;
mod packages;
mod peers;
mod scores;
mod served;
mod source;
mod tables;
mod test;
mod test_binaries;
mod tidy;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use paternoster_bench::NotRun;
use std::path::Path;
use std::process::ExitCode;

/// The command line.
#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own commands")]
struct Cli {
    /// What to do.
    #[command(subcommand)]
    command: Command,
}

/// The commands, each in the file of its name.
#[derive(Subcommand)]
enum Command {
    /// Everything that continuous integration checks, in order; the end lists what failed
    Test(test::Args),
    /// What a machine can check of how the code base should read
    Tidy,
    /// Compare the tables in documents that are made from the code, or write them
    Tables(tables::Args),
    /// Make the guide, docs/, as HTML and as PDF, by mdBook and chromium
    Docs,
    /// Check what we depend on, for known vulnerabilities too, by cargo-deny
    Audit(audit::Args),
    /// Do what README says on a machine that has only what README asks for; as root
    Fresh(fresh::Args),
    /// Compare our decisions with what Linux decided on the same scenarios
    Oracle(oracle::Args),
    /// Compare our decisions with those of another commit, on random scenarios
    Decisions(decisions::Args),
    /// Compare everything that a rewrite leaves as it is with what another commit makes
    Goldens(goldens::Args),
    /// Compare what random job files do under fio with what they do in the laboratory
    FioJudge(fio_judge::Args),
    /// Build the server's program; with --pgo, optimised by a profile of what it does
    Build(build::Args),
    /// Make a package of Debian, look at it by lintian, and try it in a Debian 12; as root
    Package(package::Args),
    /// Measure
    #[command(subcommand)]
    Bench(bench::Bench),
    /// What the guest of `test --guest` does
    #[command(subcommand, hide = true)]
    Inside(guest::Inside),
}

fn main() -> ExitCode {
    match run(&Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            let is_not_run = error.downcast_ref::<NotRun>().is_some();
            if is_not_run { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// Runs `command`, from the root of the repository.
fn run(command: &Command) -> Result<()> {
    // The guest has no repository.
    if let Command::Inside(inside) = command {
        return guest::run_inside(inside);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent")?;
    std::env::set_current_dir(root).with_context(|| format!("going to {}", root.display()))?;
    match command {
        Command::Test(args) => test::run(args),
        Command::Inside(inside) => guest::run_inside(inside),
        Command::Tidy => tidy::run(),
        Command::Tables(args) => tables::run(args),
        Command::Docs => docs::run(),
        Command::Audit(args) => audit::run(args),
        Command::Fresh(args) => fresh::run(args),
        Command::Oracle(args) => oracle::run(args),
        Command::Decisions(args) => decisions::run(args),
        Command::Goldens(args) => goldens::run(args),
        Command::FioJudge(args) => fio_judge::run(args),
        Command::Build(args) => build::run(args),
        Command::Package(args) => package::run(args),
        Command::Bench(bench) => bench::run(bench),
    }
}
