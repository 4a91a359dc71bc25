//! `cargo xtask build --pgo`: the server's program, optimised by a profile of what it does, for who
//! makes packages of it.
//!
//! ```text
//!   build with counters ─▶ every configuration of `bench sched`, and the demo ─▶ profile
//!                                                                                   │
//!   build again, with what is often done inlined and close together  ◀──────────────┘
//! ```
//!
//! Pins are never of such a build: they would change with the training load.
//! cargo-pgo does the same with a tool more to install; here it is two flags and a merge.

use crate::cargo;
use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Requests of each configuration that the schedulers are trained by.
const REQUESTS: &str = "20000";

/// How to build.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// By a profile of the schedulers and the demo; some twelve minutes
    #[arg(long)]
    pgo: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let program = if args.pgo { by_profile()? } else { cargo::paternoster()? };
    println!("{}", program.display());
    Ok(())
}

/// Builds the program by a profile. Returns where it is.
fn by_profile() -> Result<PathBuf> {
    let profdata = profdata()?;
    let dir = cargo::target_dir().join("pgo");
    fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    let dir = dir.canonicalize().with_context(|| format!("finding {}", dir.display()))?;
    let (raw, merged) = (dir.join("raw"), dir.join("merged.profdata"));

    let counting = Build { dir: &dir, flag: flag("-Cprofile-generate=", &raw) };
    let [server, schedulers] = counting.programs()?;
    // Programs that ran as they were built have left theirs too.
    crate::oracle::make_empty(&raw)?;
    train(&server, &schedulers)?;
    let mut merge = Command::new(profdata);
    merge.arg("merge").arg("-o").arg(&merged);
    let profiles = fs::read_dir(&raw).with_context(|| format!("listing {}", raw.display()))?;
    let profiles: Vec<_> = profiles.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    ensure!(!profiles.is_empty(), "the programs left no profile in {}", raw.display());
    cargo::run(merge.args(profiles))?;

    let [server, _] = Build { dir: &dir, flag: flag("-Cprofile-use=", &merged) }.programs()?;
    Ok(server)
}

/// A flag of rustc that names a path.
fn flag(name: &str, path: &Path) -> OsString {
    let mut flag = OsString::from(name);
    flag.push(path);
    flag
}

/// One of the two builds.
struct Build<'a> {
    dir: &'a Path,
    /// What is added to the flags of rustc.
    flag: OsString,
}

impl Build<'_> {
    /// Builds the server's program, and the one that serves requests in each scheduler.
    fn programs(&self) -> Result<[PathBuf; 2]> {
        let mut flags = std::env::var_os("RUSTFLAGS").unwrap_or_default();
        flags.push(" ");
        flags.push(&self.flag);
        let target = self.dir.join("target");
        let mut build = cargo::command();
        build.args(["build", "--release", "--locked", "-p", "paternoster-cli"]);
        build.args(["-p", "paternoster-bench", "--bin", "paternoster", "--bin", "instructions"]);
        build.arg("--target-dir").arg(&target).env("RUSTFLAGS", flags);
        // It would be read in place of the other.
        build.env_remove("CARGO_ENCODED_RUSTFLAGS");
        cargo::run(&mut build)?;
        Ok(["paternoster", "instructions"].map(|name| target.join("release").join(name)))
    }
}

/// Runs what is to be fast.
fn train(server: &Path, schedulers: &Path) -> Result<()> {
    let list = Command::new(schedulers).arg("--list").output().context("listing configurations")?;
    ensure!(list.status.success(), "{} --list failed: {}", schedulers.display(), list.status);
    let list = String::from_utf8(list.stdout).context("names of configurations")?;
    for config in list.lines() {
        cargo::run(Command::new(schedulers).args([config, REQUESTS]))?;
    }
    cargo::run(Command::new(server).arg("demo"))
}

/// The llvm-profdata that reads the profiles of our rustc: of the same LLVM.
fn profdata() -> Result<String> {
    let version = Command::new("rustc").arg("-vV").output().context("rustc does not start")?;
    let version = String::from_utf8(version.stdout).context("the version of rustc")?;
    let major = llvm_of(&version).context("rustc -vV names no LLVM version")?;
    for name in [format!("llvm-profdata-{major}"), "llvm-profdata".to_owned()] {
        let Ok(output) = Command::new(&name).arg("--version").output() else { continue };
        if String::from_utf8_lossy(&output.stdout).contains(&format!("version {major}.")) {
            return Ok(name);
        }
    }
    bail!(
        "rustc is of LLVM {major}, and there is no llvm-profdata of that version\n\
        sudo apt-get install --no-install-recommends llvm-{major}"
    )
}

/// The major version of LLVM in what `rustc -vV` says.
fn llvm_of(version: &str) -> Option<u32> {
    let line = version.lines().find_map(|line| line.strip_prefix("LLVM version: "))?;
    line.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_merged_by_the_llvm_of_rustc() {
        let version = "rustc 1.95.0 (59807616e 2026-04-14)\nhost: x86_64\nLLVM version: 22.1.2\n";
        assert_eq!(llvm_of(version), Some(22));
        assert_eq!(llvm_of("rustc 1.95.0\n"), None);
    }
}
