//! `paternoster serve` as a user who may not do everything. Where the tests run as root, the
//! program is started as another user.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;

use tempfile::TempDir;

/// Root may do everything; this one may not.
const NOBODY: u32 = 65534;

/// Held while the program is copied and while it is started: a process that is forked meanwhile
/// has the copy open for writing, and Linux starts no such program.
static COPYING: Mutex<()> = Mutex::new(());

/// A directory that everybody may use, with a program of which the same is true, and a disk.
fn dir() -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    {
        let _alone = COPYING.lock();
        fs::copy(env!("CARGO_BIN_EXE_paternoster"), at("paternoster")).expect("a copy");
    }
    File::create(at("d.img")).and_then(|disk| disk.set_len(1 << 20)).expect("a disk");
    for (name, mode) in [("paternoster", 0o755), ("d.img", 0o666), (".", 0o777)] {
        allow(&at(name), mode);
    }
    dir
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("they are ours");
}

/// Runs a line of the shell, in which `serve` is the program's, as an ordinary user.
fn sh(dir: &TempDir, line: &str) -> Output {
    let mut command = Command::new("sh");
    command.current_dir(dir.path()).args(["-c", &line.replace("serve", "./paternoster serve")]);
    command.env("PATERNOSTER_CTL", "paternoster-ctl.sock");
    let own = fs::metadata("/proc/self").expect("Linux tells who we are").uid();
    if own == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    let started = {
        let _alone = COPYING.lock();
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    started.and_then(Child::wait_with_output).expect("a shell")
}

/// What it says, with this exit status.
fn said(output: &Output, status: i32) -> String {
    let said = String::from_utf8(output.stderr.clone()).expect("UTF-8");
    assert_eq!(output.status.code(), Some(status), "{said}");
    said
}

#[test]
fn check_tells_files_and_directories_that_the_user_may_not_use() {
    let dir = dir();
    let check = "exec serve --check --disk d.img --export e";
    said(&sh(&dir, check), 0);

    allow(&dir.path().join("d.img"), 0o444);
    let refused = said(&sh(&dir, check), 1);
    assert!(refused.contains("--disk: disk file \"d.img\" cannot be written by user"), "{refused}");
    assert!(refused.contains("Permission denied"), "{refused}");
    said(&sh(&dir, &format!("{check},read-only")), 0);
    allow(&dir.path().join("d.img"), 0);
    let refused = said(&sh(&dir, &format!("{check},read-only")), 1);
    assert!(refused.contains("\"d.img\" cannot be read by user"), "{refused}");

    allow(&dir.path().join("d.img"), 0o666);
    allow(dir.path(), 0o555);
    let refused = said(&sh(&dir, check), 1);
    let words = "socket \"paternoster.sock\" needs directory \".\", which user";
    assert!(refused.contains(words) && refused.contains("may not read, write and"), "{refused}");
    let refused = said(&sh(&dir, &format!("{check} --tcp 127.0.0.1:0")), 1);
    assert!(refused.contains("socket \"paternoster-ctl.sock\" needs"), "{refused}");
    said(&sh(&dir, &format!("{check} --tcp 127.0.0.1:0 --ctl none")), 0);
}

#[test]
fn too_little_locked_memory_is_told_as_that() {
    let dir = dir();
    let serve = "exec serve --disk d.img --export e";
    let refused = said(&sh(&dir, &format!("ulimit -l 0 && {serve} --engine io_uring")), 1);
    assert!(refused.contains("too little memory may be locked"), "{refused}");
    assert!(refused.contains("0 bytes") && refused.contains("ulimit -l"), "{refused}");
    assert!(!refused.contains("Linux 6.1"), "{refused}");
    assert!(!dir.path().join("paternoster.sock").exists());
}

#[test]
fn auto_takes_threads_where_io_uring_is_not_permitted_and_says_why() {
    let dir = dir();
    // The status is that of timeout, which ends it by SIGTERM; to its group it would send another.
    let serve = "exec timeout --foreground 1 serve --disk d.img --export e";
    let served = said(&sh(&dir, &format!("ulimit -l 0 && {serve}")), 124);
    assert!(served.contains("\"auto\" takes threads, which are slower: too little"), "{served}");
    assert!(served.contains("engine=\"threads\""), "{served}");
    assert!(served.contains("SIGTERM: shutting down"), "{served}");
}
