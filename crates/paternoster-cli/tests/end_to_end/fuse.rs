//! A file that another program is behind: it can fail, and it can stand still.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::{check_found, eventually, temp_dir, tool, tool_command};

/// What an NBD server exports, mounted by `nbdfuse` as the file `nbd`.
pub(crate) struct Mounted {
    dir: TempDir,
    child: Child,
}

impl Mounted {
    /// `source` says where the server is, as `nbdfuse` takes it.
    pub(crate) fn new(source: &[&str]) -> Self {
        assert!(Path::new("/dev/fuse").exists(), "nbdfuse needs /dev/fuse: modprobe fuse");
        // Without it what is mounted here would never be unmounted.
        tool("fuse3", "fusermount3", ["--version"], Path::new("."));
        let dir = temp_dir();
        fs::create_dir(dir.path().join("mnt")).expect("a directory");
        let mut command = tool_command("nbdfuse", dir.path());
        command.args(["-P", "pid", "mnt/nbd"]).args(source);
        let child = command.spawn().expect("timeout runs");
        let mut mounted = Self { dir, child };
        eventually("nbdfuse has mounted the export", || {
            if let Some(status) = mounted.child.try_wait().expect("a child") {
                check_found("libnbd-bin", "nbdfuse", status);
                panic!("nbdfuse has ended: {status}");
            }
            mounted.file().exists() && mounted.pid().is_some()
        });
        mounted
    }

    /// What `nbdkit eval` serves: zeroes, a MiB, whatever is written; unless these methods, each
    /// `NAME=SHELL COMMANDS`, do otherwise.
    pub(crate) fn evaluated(methods: &[&str]) -> Self {
        let ordinary = [
            "get_size=echo 1048576",
            "pread=head -c $3 /dev/zero",
            "pwrite=cat >/dev/null",
            "can_write=exit 0",
            "can_flush=exit 0",
        ];
        let name = |method: &str| method.split('=').next().map(str::to_owned);
        let is_other = |method: &&str| !methods.iter().any(|own| name(own) == name(method));
        let mut source = vec!["[", "nbdkit", "--exit-with-parent", "eval"];
        source.extend(ordinary.iter().filter(|method| is_other(method)));
        source.extend(methods);
        source.push("]");
        Self::new(&source)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("mnt/nbd")
    }

    fn pid(&self) -> Option<Pid> {
        let text = fs::read_to_string(self.dir.path().join("pid")).ok()?;
        text.trim().parse().ok().and_then(Pid::from_raw)
    }

    /// Has it answer nothing from here on.
    pub(crate) fn stand_still(&self) {
        let pid = self.pid().expect("it has written its number");
        kill_process(pid, Signal::STOP).expect("it runs");
    }

    pub(crate) fn unmount(mut self) {
        eventually("the export can be unmounted", || {
            tool("fuse3", "fusermount3", ["-u", "mnt"], self.dir.path()).status.success()
        });
        assert!(self.child.wait().expect("a child").success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Unmounted already, where all went well.
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            if let Some(pid) = self.pid() {
                let _ = kill_process(pid, Signal::CONT);
            }
            let args = ["-u", "-z", "-q", "mnt"];
            let _ = tool_command("fusermount3", self.dir.path()).args(args).output();
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
