//! A commit of ours, checked out and built, to compare what it does with what we do now.

use crate::cargo;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tree whose programs are built.
pub(crate) struct Build {
    /// Its root.
    root: PathBuf,
    /// Cargo's target directory for it.
    target: PathBuf,
}

impl Build {
    /// Builds this tree, with what is not committed.
    pub(crate) fn of_this_tree() -> Result<Self> {
        fs::create_dir_all(cargo::target_dir())?;
        Self { root: fs::canonicalize(".")?, target: fs::canonicalize(cargo::target_dir())? }
            .built()
    }

    /// Builds the programs of the tree, as they are released.
    fn built(self) -> Result<Self> {
        let mut build = self.cargo();
        build.args(["build", "-q", "--release", "--locked", "--workspace", "--bins"]);
        cargo::run(build.args(["--exclude", "xtask"]))?;
        Ok(self)
    }

    /// A command of cargo in this tree.
    fn cargo(&self) -> Command {
        let mut command = Command::new("cargo");
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        command
    }

    /// The program that operators run.
    pub(crate) fn server(&self) -> PathBuf {
        self.target.join("release/paternoster")
    }

    /// The program that has the laboratory, which was a part of the other one once.
    pub(crate) fn laboratory(&self) -> PathBuf {
        let is_apart = self.root.join("crates/paternoster-labcli").exists();
        if is_apart { self.target.join("release/paternoster-lab") } else { self.server() }
    }

    /// A command of its xtask.
    pub(crate) fn xtask(&self) -> Command {
        let mut command = self.cargo();
        command.args(["run", "-q", "--locked", "--package", "xtask", "--"]);
        command
    }
}

/// The whole hash of a commit.
pub(crate) fn hash_of(rev: &str) -> Result<String> {
    let commit = format!("{rev}^{{commit}}");
    let output = Command::new("git").args(["rev-parse", "--verify", "--quiet", &commit]).output();
    let output = output.context("git does not start")?;
    if !output.status.success() {
        bail!("{rev:?} is no commit");
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Checks a commit out in `dir` and builds it, lets `with` use it, and removes the checkout.
pub(crate) fn checked_out<T>(
    rev: &str,
    dir: &Path,
    with: impl FnOnce(&Build) -> Result<T>,
) -> Result<T> {
    let checkout = dir.join("checkout");
    remove(&checkout)?;
    let mut git = Command::new("git");
    cargo::run(git.args(["worktree", "add", "--quiet", "--detach"]).arg(&checkout).arg(rev))?;
    let root = fs::canonicalize(&checkout)?;
    let target = fs::canonicalize(dir)?.join("target");
    let build = Build { root, target }.built();
    let made = build.with_context(|| format!("building {rev}")).and_then(|build| with(&build));
    remove(&checkout)?;
    made
}

/// Removes the checkout that this or an earlier run made, if it is there.
fn remove(checkout: &Path) -> Result<()> {
    if checkout.exists() {
        cargo::run(Command::new("git").args(["worktree", "remove", "--force"]).arg(checkout))?;
    }
    cargo::run(Command::new("git").args(["worktree", "prune"]))
}
