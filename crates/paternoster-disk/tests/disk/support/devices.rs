//! Loop devices, where this machine lets the test make them.

use std::fs::{File, OpenOptions};
use std::io::{Write as _, stderr};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Where `cargo xtask test` looks for what it repeats in its summary: a file.
const NOT_RUN: &str = "PATERNOSTER_NOT_RUN";

/// A loop device, which goes when it is dropped.
pub(crate) struct LoopDevice {
    pub(crate) path: PathBuf,
    /// Where its file is.
    pub(crate) folder: TempDir,
}

impl LoopDevice {
    /// A device of so many bytes in blocks of so many; none, and a line about `what` was not run,
    /// where this machine makes none. With `CI=true` that is a failure.
    pub(crate) fn new(what: &str, size: u64, block: u32) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("loop.img");
        File::create(&file).expect("a file").set_len(size).expect("room for a hole");
        let block = format!("-b{block}");
        let args = [&block, "--direct-io=on", "--find", "--show"];
        match run(Command::new("losetup").args(args).arg(&file)) {
            Ok(said) => Some(Self { path: said.trim().into(), folder }),
            Err(error) => {
                report_not_run(&format!("{what}: no loop device can be made: {error}"));
                None
            }
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        run(Command::new("losetup").arg("-d").arg(&self.path)).expect("it is let go");
    }
}

/// A file system that is mounted, until this is dropped.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    /// A file system of that kind, on a device; none, and a line about `what` was not run, where
    /// this machine's kernel has no such.
    pub(crate) fn new(what: &str, kind: &str, device: &Path, at: &Path) -> Option<Self> {
        std::fs::create_dir_all(at).expect("a directory");
        let mut make = Command::new(format!("mkfs.{kind}"));
        run(make.arg("-q").arg(device)).expect("a file system is made");
        match run(Command::new("mount").args(["-t", kind]).arg(device).arg(at)) {
            Ok(_) => Some(Self(at.to_owned())),
            Err(error) if error.contains("unknown filesystem type") => {
                report_not_run(&format!("{what}: {error}"));
                None
            }
            Err(error) => panic!("it is mounted: {error}"),
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run(Command::new("umount").arg(&self.0)).expect("nobody uses it");
    }
}

/// What the command writes, or why it failed.
fn run(command: &mut Command) -> Result<String, String> {
    let done = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
}

fn report_not_run(what: &str) {
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "CI=true, and not run: {what}");
    let line = format!("not run: {what}\n");
    stderr().write_all(line.as_bytes()).expect("standard error takes a line");
    if let Some(path) = std::env::var_os(NOT_RUN) {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the file takes a line");
    }
}
