//! A Debian below cargo's target directory: mmdebstrap installs it, and commands run in it.
//!
//! What this machine says of how registries are reached goes along, as the new one may have no
//! other way to them: Debian's sources where the release is the same, apt's settings of
//! connections. Nothing else does.
//!
//! Every command runs in mount and process namespaces of its own, which end with it. So no mount is
//! ever visible outside, and removing the directory cannot reach what was mounted in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::{cargo, packages};
use paternoster_bench::NotRun;

/// What has to be installed here. util-linux has unshare; coreutils chroot; both are Essential.
const PACKAGES: [&str; 1] = ["mmdebstrap"];
/// Where Debian's own sources are.
const SOURCES: [&str; 2] = ["/etc/apt/sources.list", "/etc/apt/sources.list.d/debian.sources"];
/// What apt's settings of connections begin with.
const CONNECTIONS: [&str; 4] =
    ["Acquire::Check-", "Acquire::Retries", "Acquire::http::", "Acquire::https::"];
/// Mounts what a machine has, then the directory `$2` at `$3` by the options `$4`, and runs `$5` in
/// the root `$1`.
const ENTER: &str = r#"
mount --rbind /dev "$1/dev"
mount --rbind /sys "$1/sys"
mount -t proc proc "$1/proc"
mount --bind "$2" "$1$3"
mount -o "remount,bind,$4" "$1$3"
exec chroot "$1" /bin/sh -ec "$5"
"#;

/// Where its programs are.
pub(crate) const PROGRAMS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A Debian of its own.
pub(crate) struct Debian {
    root: PathBuf,
}

/// A directory of this machine that is there too.
pub(crate) struct Shared<'a> {
    /// Where it is here.
    pub(crate) from: &'a Path,
    /// The directory over which it is mounted there.
    pub(crate) at: &'a str,
    /// `ro` or `rw`.
    pub(crate) options: &'a str,
}

/// Makes sure that a Debian can be installed here; else it is not run, `why` names what needs one.
pub(crate) fn require(why: &str) -> Result<()> {
    if !packages::is_root()? {
        let why = format!("{why} installs a Debian, mounts and changes its root: run it as root");
        return Err(NotRun(why).into());
    }
    packages::require(&PACKAGES).map_err(|error| NotRun(format!("{error:#}")).into())
}

impl Debian {
    /// Installs the smallest set of packages of a release, and these. What is in `root` goes first:
    /// a killed run has left it.
    pub(crate) fn install(root: PathBuf, suite: &str, include: &[&str]) -> Result<Self> {
        let debian = Self { root };
        debian.remove()?;
        fs::create_dir_all(&debian.root).context("making the root")?;
        cargo::run(&mut debian.debootstrap(suite, include)?)?;
        Ok(debian)
    }

    /// That in `root`, which is there only where one was installed whole; else installs it.
    pub(crate) fn kept(root: PathBuf, suite: &str, include: &[&str]) -> Result<Self> {
        if !root.exists() {
            let made = Self::install(root.with_extension("new"), suite, include)?;
            fs::rename(&made.root, &root).with_context(|| format!("making {}", root.display()))?;
        }
        Ok(Self { root })
    }

    /// Where a path of it is here.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// A command that has its shell run `line`.
    pub(crate) fn shell(&self, shared: &Shared<'_>, line: &str) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", ENTER, "sh"]);
        command.arg(&self.root).arg(shared.from).args([shared.at, shared.options, line]);
        command.env_clear().envs([("HOME", "/root"), ("LANG", "C.UTF-8"), ("PATH", PROGRAMS)]);
        command
    }

    /// Removes it.
    pub(crate) fn remove(&self) -> Result<()> {
        if !self.root.exists() {
            return Ok(());
        }
        fs::remove_dir_all(&self.root).with_context(|| format!("removing {}", self.root.display()))
    }

    /// mmdebstrap's command line.
    fn debootstrap(&self, suite: &str, include: &[&str]) -> Result<Command> {
        let mut command = Command::new("mmdebstrap");
        command.args(["--mode=root", "--variant=minbase", "--quiet"]);
        command.arg(format!("--include={}", include.join(",")));
        let dump = Command::new("apt-config").arg("dump").output().context("apt-config")?;
        let settings = String::from_utf8_lossy(&dump.stdout).into_owned();
        command.args(connections(&settings).map(|line| format!("--aptopt={line}")));
        command.arg(suite).arg(&self.root);
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        if release.lines().any(|line| line == format!("VERSION_CODENAME={suite}")) {
            command.args(SOURCES.into_iter().filter(|path| Path::new(path).exists()));
        }
        Ok(command)
    }
}

/// The lines of `apt-config dump` that say how registries are reached.
fn connections(settings: &str) -> impl Iterator<Item = &str> {
    settings.lines().filter(|line| CONNECTIONS.iter().any(|start| line.starts_with(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_connections_go_along_and_no_others() {
        let dump = "APT \"\";\nAcquire::Check-Date \"false\";\nAcquire::Languages \"none\";\n\
                    Acquire::http::Proxy \"http://proxy:1\";\nDPkg::Post-Invoke \"\";\n";
        let expected =
            ["Acquire::Check-Date \"false\";", "Acquire::http::Proxy \"http://proxy:1\";"];
        assert_eq!(connections(dump).collect::<Vec<_>>(), expected);
    }
}
