//! A Debian of its own: installed, entered, removed.
//!
//! What this machine says of how registries are reached goes along, as the new one may have no
//! other way to them: Debian's sources, apt's settings of connections, certificates, names, cargo's
//! settings. Nothing else does.
//!
//! Every command runs in mount and process namespaces of its own, which end with it. So no mount is
//! ever visible outside, and removing the directory cannot reach what was mounted in it.

use crate::cargo;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What has to be installed here. util-linux has unshare; coreutils chroot; both are Essential.
pub(super) const PACKAGES: [&str; 2] = ["mmdebstrap", "git"];
/// Debian's release, as README names it: 12.
const SUITE: &str = "bookworm";
/// What README asks for, and certificates for cargo.
const INCLUDE: &str = "--include=gcc,libc6-dev,git,ca-certificates";
/// Where Debian's own sources are.
const SOURCES: [&str; 2] = ["/etc/apt/sources.list", "/etc/apt/sources.list.d/debian.sources"];
/// What apt's settings of connections begin with.
const CONNECTIONS: [&str; 4] =
    ["Acquire::Check-", "Acquire::Retries", "Acquire::http::", "Acquire::https::"];
/// How names and certificates are found.
const FILES: [&str; 3] = ["/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt"];
/// Variables that go along: proxies, and settings of cargo that are no secrets.
const VARIABLES: [&str; 9] = [
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "CARGO_PROFILE_",
    "CARGO_HTTP_",
    "CARGO_NET_",
];
/// Mounts what a machine has, then runs `$3` in the root `$1` with the Rust of `$2`.
const ENTER: &str = r#"
mount --rbind /dev "$1/dev"
mount --rbind /sys "$1/sys"
mount -t proc proc "$1/proc"
mount --bind "$2" "$1/opt/rust"
mount -o remount,bind,ro "$1/opt/rust"
exec chroot "$1" /bin/sh -ec "cd /root/sources; $3"
"#;

/// The machine. Dropping it removes it.
pub(super) struct Machine {
    root: PathBuf,
}

impl Machine {
    /// Installs it where no other is: what a killed run has left goes first.
    pub(super) fn install() -> Result<Self> {
        let root = std::path::absolute(cargo::target_dir()).context("the target directory")?;
        let machine = Self { root: root.join("fresh") };
        machine.remove()?;
        fs::create_dir_all(&machine.root).context("making the root")?;
        cargo::run(&mut machine.debootstrap()?)?;
        for dir in ["opt/rust", "root/sources", "root/.cargo"] {
            fs::create_dir_all(machine.root.join(dir)).with_context(|| dir.to_owned())?;
        }
        for path in FILES.into_iter().filter(|path| Path::new(path).exists()) {
            copy(Path::new(path), &machine.root.join(&path[1..]))?;
        }
        for name in ["config.toml", "config"] {
            let from = cargo::home()?.join(name);
            if from.exists() {
                copy(&from, &machine.root.join("root/.cargo").join(name))?;
            }
        }
        Ok(machine)
    }

    /// mmdebstrap's command line.
    fn debootstrap(&self) -> Result<Command> {
        let mut command = Command::new("mmdebstrap");
        command.args(["--mode=root", "--variant=minbase", "--quiet", INCLUDE]);
        let dump = Command::new("apt-config").arg("dump").output().context("apt-config")?;
        let settings = String::from_utf8_lossy(&dump.stdout).into_owned();
        command.args(connections(&settings).map(|line| format!("--aptopt={line}")));
        command.arg(SUITE).arg(&self.root);
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        if release.lines().any(|line| line == format!("VERSION_CODENAME={SUITE}")) {
            command.args(SOURCES.into_iter().filter(|path| Path::new(path).exists()));
        }
        Ok(command)
    }

    /// Clones what is committed.
    pub(super) fn clone_repository(&self) -> Result<()> {
        let mut command = Command::new("git");
        command.args(["-c", "safe.directory=*", "clone", "--quiet", "--no-hardlinks", "."]);
        cargo::run(command.arg(self.root.join("root/sources")))
    }

    /// Runs `line` by a shell in the machine, in the clone.
    pub(super) fn run(&self, line: &str) -> Result<()> {
        println!("$ {line}");
        let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
        let sysroot = String::from_utf8(sysroot.context("rustc does not start")?.stdout)?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", ENTER, "sh"]);
        command.arg(&self.root).arg(sysroot.trim_end()).arg(line);
        command.env_clear().envs(std::env::vars_os().filter(|(name, _)| goes_along(name)));
        command.envs([
            ("HOME", "/root"),
            ("LANG", "C.UTF-8"),
            ("PATH", "/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ]);
        cargo::run(&mut command).with_context(|| format!("`{line}` in a fresh machine"))
    }

    fn remove(&self) -> Result<()> {
        if !self.root.exists() {
            return Ok(());
        }
        fs::remove_dir_all(&self.root).with_context(|| format!("removing {}", self.root.display()))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            eprintln!("fresh: {error:#}");
        }
    }
}

/// The lines of `apt-config dump` that say how registries are reached.
fn connections(settings: &str) -> impl Iterator<Item = &str> {
    settings.lines().filter(|line| CONNECTIONS.iter().any(|start| line.starts_with(start)))
}

/// Whether a variable goes along.
fn goes_along(name: &OsString) -> bool {
    name.to_str().is_some_and(|name| {
        VARIABLES.iter().any(|known| {
            if known.ends_with('_') { name.starts_with(known) } else { name == *known }
        })
    })
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    // The new machine's may be a link that leads nowhere.
    let _ = fs::remove_file(to);
    fs::copy(from, to).with_context(|| format!("copying {}", from.display()))?;
    Ok(())
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

    #[test]
    fn secrets_and_what_cargo_sets_do_not_go_along() {
        let goes = |name: &str| goes_along(&name.into());
        assert!(goes("https_proxy") && goes("CARGO_PROFILE_RELEASE_LTO"));
        assert!(!goes("CARGO_REGISTRY_TOKEN") && !goes("CARGO_HOME") && !goes("CARGO"));
        assert!(!goes("RUSTUP_HOME") && !goes("https_proxy_password"));
    }
}
