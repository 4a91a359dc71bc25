//! `cargo xtask fio-judge`: random job files, run by fio and by `paternoster-lab sim`, and what
//! both did compared.
//!
//! ```text
//!   seed ──▶ random.rs ──▶ job file ──┬──▶ fio             ──▶ log of I/O ──┐
//!                                     └──▶ paternoster-lab sim ──▶ log of I/O ──┴──▶ compare.rs
//! ```
//!
//! Each job has `ioengine=null`, so that it needs no device and no file, and `write_iolog`. What is
//! random is drawn by other generators on both sides: only what has to be equal all the same is
//! compared.

mod compare;
mod log;
mod random;

use crate::{cargo, packages};
use anyhow::{Context, Result, bail, ensure};
use log::Entry;
use random::Judged;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How many files are run at once: what fio does most of its time is to start.
const AT_ONCE: usize = 4;
/// How long fio may take for a file: its jobs are of parts of a second.
const LONGEST: Duration = Duration::from_secs(60);

/// What to run.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where the random numbers begin
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many job files
    #[arg(long, default_value_t = 200)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    files: u32,
    /// Leave out rates and pauses, which fio keeps by the clock of a machine that may be busy
    #[arg(long)]
    no_clock: bool,
}

/// What the tests run.
pub(crate) fn check() -> Result<()> {
    run(&Args { seed: 1, files: 25, no_clock: true })
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    packages::require(&["fio"])?;
    let program = fs::canonicalize(cargo::tested_laboratory()?)?;
    let dir = tempfile::Builder::new().prefix("fio-judge").tempdir().context("a directory")?;
    let next = AtomicU32::new(0);
    let differ = Mutex::new(vec![]);
    let judge_on = || -> Result<()> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= args.files {
                return Ok(());
            }
            let judged = random::job(args.seed, index, !args.no_clock);
            let dir = dir.path().join(index.to_string());
            let found = judge(&judged, &program, &dir)
                .with_context(|| format!("file {index} of seed {}:\n{}", args.seed, judged.text))?;
            if !found.is_empty() {
                println!("file {index}:\n{}  {}\n", judged.text, found.join("\n  "));
                differ.lock().expect("no thread has panicked").push(index);
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(judge_on)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })?;
    let differ = differ.into_inner().expect("no thread has panicked");
    println!("{} of {} files differ from fio", differ.len(), args.files);
    ensure!(differ.is_empty(), "files {differ:?} of seed {} differ from fio", args.seed);
    Ok(())
}

/// Runs a job both ways, and says what differs.
fn judge(judged: &Judged, program: &Path, dir: &Path) -> Result<Vec<String>> {
    let mut fio = Command::new("timeout");
    fio.arg(LONGEST.as_secs().to_string()).args(["fio", "--output=out", "job.fio"]);
    let mut ours = Command::new(program);
    ours.args(["sim", "job.fio", "--device", "nvme-980pro"]);
    let fio = log_of(judged, fio, &dir.join("fio"))?;
    let ours = log_of(judged, ours, &dir.join("ours"))?;
    Ok(compare::differences(judged, &fio, &ours))
}

/// The I/O that a program does in a directory of its own.
fn log_of(judged: &Judged, mut program: Command, dir: &Path) -> Result<Vec<Entry>> {
    fs::create_dir_all(dir)?;
    fs::write(dir.join("job.fio"), &judged.text)?;
    let name = program.get_program().display().to_string();
    let output = program.current_dir(dir).output();
    let output = output.with_context(|| format!("{name} does not start"))?;
    if !output.status.success() {
        bail!("{name}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    log::read(&fs::read_to_string(dir.join("io.log")).context("the log of I/O")?)
}
