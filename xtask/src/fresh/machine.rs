//! A Debian with what README asks for, and nothing else.
//!
//! What this machine says of how cargo's registry is reached goes along, as it does for Debian's.

use crate::cargo;
use crate::debian::{self, Debian, Shared};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Debian's release, as README names it: 12.
const SUITE: &str = "bookworm";
/// What README asks for, and certificates for cargo.
const INCLUDE: [&str; 4] = ["gcc", "libc6-dev", "git", "ca-certificates"];
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
/// The machine. Dropping it removes it.
pub(super) struct Machine(Debian);

impl Machine {
    /// Installs it where no other is.
    pub(super) fn install() -> Result<Self> {
        let root = std::path::absolute(cargo::target_dir()).context("the target directory")?;
        let machine = Self(Debian::install(root.join("fresh"), SUITE, &INCLUDE)?);
        for dir in ["opt/rust", "root/sources", "root/.cargo"] {
            fs::create_dir_all(machine.0.path(dir)).with_context(|| dir.to_owned())?;
        }
        for path in FILES.into_iter().filter(|path| Path::new(path).exists()) {
            copy(Path::new(path), &machine.0.path(&path[1..]))?;
        }
        for name in ["config.toml", "config"] {
            let from = cargo::home()?.join(name);
            if from.exists() {
                copy(&from, &machine.0.path("root/.cargo").join(name))?;
            }
        }
        Ok(machine)
    }

    /// Clones what is committed.
    pub(super) fn clone_repository(&self) -> Result<()> {
        let mut command = Command::new("git");
        command.args(["-c", "safe.directory=*", "clone", "--quiet", "--no-hardlinks", "."]);
        cargo::run(command.arg(self.0.path("root/sources")))
    }

    /// Runs `line` by a shell in the machine, in the clone.
    pub(super) fn run(&self, line: &str) -> Result<()> {
        println!("$ {line}");
        let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
        let sysroot = String::from_utf8(sysroot.context("rustc does not start")?.stdout)?;
        let rust = Path::new(sysroot.trim_end());
        let rust = Shared { from: rust, at: "/opt/rust", options: "ro" };
        let mut command = self.0.shell(&rust, &format!("cd /root/sources; {line}"));
        command.envs(std::env::vars_os().filter(|(name, _)| goes_along(name)));
        command.env("PATH", format!("/opt/rust/bin:{}", debian::PROGRAMS));
        cargo::run(&mut command).with_context(|| format!("`{line}` in a fresh machine"))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Err(error) = self.0.remove() {
            eprintln!("fresh: {error:#}");
        }
    }
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
    fn secrets_and_what_cargo_sets_do_not_go_along() {
        let goes = |name: &str| goes_along(&name.into());
        assert!(goes("https_proxy") && goes("CARGO_PROFILE_RELEASE_LTO"));
        assert!(!goes("CARGO_REGISTRY_TOKEN") && !goes("CARGO_HOME") && !goes("CARGO"));
        assert!(!goes("RUSTUP_HOME") && !goes("https_proxy_password"));
    }
}
