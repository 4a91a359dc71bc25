//! The Debian packages that the tests and benchmarks use as peers and tools.

use crate::cargo;
use anyhow::{Context, Result, bail};
use std::process::{Command, Stdio};

/// The packages. libnbd-bin has nbdinfo, nbdcopy and nbdfuse; qemu-utils has qemu-nbd, -img, -io;
/// python3 runs the model of wfq; python3-jsonschema validates files by the schema;
/// python3-libnbd is a client that connects again;
/// python3-prometheus-client parses metrics; systemd has systemd-analyze, which verifies the unit;
/// openssl makes the certificates of the pages, gnutls-bin those of other clients; strace kills a
/// server at each step; chromium opens the pages of reports; blktrace has blkparse, which reads
/// recordings.
const PACKAGES: [&str; 20] = [
    "libnbd-bin",
    "qemu-utils",
    "nbdkit",
    "fio",
    "nbd-client",
    "e2fsprogs",
    "xfsprogs",
    "fuse3",
    "curl",
    "python3",
    "python3-jsonschema",
    "python3-libnbd",
    "python3-prometheus-client",
    "systemd",
    "openssl",
    "gnutls-bin",
    "strace",
    "valgrind",
    "chromium",
    "blktrace",
];

/// Installs what the tests need, as [`require`] does.
pub(crate) fn ensure() -> Result<()> {
    require(&PACKAGES)
}

/// Installs what is missing where we are root; says what is missing where we are not.
pub(crate) fn require(packages: &[&str]) -> Result<()> {
    let missing = missing(packages)?;
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    if !is_root()? {
        bail!("missing: {list}\nsudo apt-get install --no-install-recommends {list}");
    }
    println!("installing {list}");
    update()?;
    let mut install = apt_get();
    install.env("DEBIAN_FRONTEND", "noninteractive");
    install.args(["install", "-qq", "-y", "--no-install-recommends"]).args(&missing);
    cargo::run(install.stdout(Stdio::null()))
}

/// Asks what packages there are now.
pub(crate) fn update() -> Result<()> {
    cargo::run(apt_get().args(["update", "-qq"]))
}

/// `apt-get`, which asks again where a mirror fails.
pub(crate) fn apt_get() -> Command {
    let mut apt = Command::new("apt-get");
    apt.args(["-o", "Acquire::Retries=3"]);
    apt
}

/// Those of `packages` that are not installed.
fn missing<'a>(packages: &[&'a str]) -> Result<Vec<&'a str>> {
    let output = Command::new("dpkg-query")
        .args(["--show", "--showformat=${Package} ${db:Status-Status}\n"])
        .args(packages)
        .output()
        .with_context(|| format!("dpkg-query does not start; needed: {}", packages.join(" ")))?;
    Ok(missing_in(packages, &String::from_utf8_lossy(&output.stdout)))
}

/// Those of `packages` that `status`, a line a package, does not call installed.
fn missing_in<'a>(packages: &[&'a str], status: &str) -> Vec<&'a str> {
    let is_installed =
        |package: &&str| status.lines().any(|line| line == format!("{package} installed"));
    packages.iter().copied().filter(|package| !is_installed(package)).collect()
}

/// Whether we are root, and so may install packages and mount.
pub(crate) fn is_root() -> Result<bool> {
    let output = Command::new("id").arg("-u").output().context("id does not start")?;
    Ok(output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_that_was_removed_or_never_there_is_missing() {
        let mut status = PACKAGES.map(|package| format!("{package} installed\n"));
        assert_eq!(missing_in(&PACKAGES, &status.concat()), [""; 0]);
        status[2] = "nbdkit config-files\n".to_owned();
        status[3] = String::new();
        assert_eq!(missing_in(&PACKAGES, &status.concat()), ["nbdkit", "fio"]);
    }
}
