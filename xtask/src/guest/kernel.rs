//! Debian's kernel and those of its modules that the guest loads, kept below the target directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::{cargo, packages};
use paternoster_bench::NotRun;

/// The package that depends on the current kernel's.
const PACKAGE: &str = "linux-image-amd64";
/// The modules that are asked for. `ext4` looks for checksums by name, which no list says.
const MODULES: [&str; 6] =
    ["virtio_pci", "virtio_blk", "dm-log-writes", "nbd", "crc32c_generic", "ext4"];

/// A kernel for the guest.
pub(super) struct Kernel {
    /// What is booted.
    pub(super) image: PathBuf,
    /// The modules' files, each after those that it needs.
    pub(super) modules: Vec<PathBuf>,
}

impl Kernel {
    /// Downloads the kernel that Debian has now, unless it is there. What apt was told of packages
    /// long ago may be gone.
    pub(super) fn fetch(dir: &Path) -> Result<Self> {
        let (package, root) = match fetch_package(dir) {
            // Without a network that is still what keeps it from being run.
            Err(error) if error.is::<NotRun>() && packages::is_root()? => {
                packages::update().or(Err(error))?;
                fetch_package(dir)?
            }
            fetched => fetched?,
        };
        let version = package.trim_start_matches("linux-image-");
        let modules = root.join("lib/modules").join(version);
        let list = fs::read_to_string(modules.join("modules.dep"));
        let list = list.with_context(|| format!("the modules of {package}"))?;
        let files = in_order(&list, &MODULES)?;
        let modules = files.into_iter().map(|file| modules.join(file)).collect();
        Ok(Self { image: root.join("boot").join(format!("vmlinuz-{version}")), modules })
    }
}

/// The package of the kernel that Debian has, as far as apt knows, and where it is unpacked.
fn fetch_package(dir: &Path) -> Result<(String, PathBuf)> {
    let package = current_package()?;
    let root = dir.join(&package);
    if !root.exists() {
        unpack(dir, &package, &root)?;
    }
    Ok((package, root))
}

/// The package of Debian's current kernel.
fn current_package() -> Result<String> {
    let mut apt = Command::new("apt-cache");
    apt.args(["depends", "--important", PACKAGE]).env("LC_ALL", "C");
    let depends = apt.output().context("apt-cache does not start")?;
    let text = String::from_utf8_lossy(&depends.stdout);
    let found = text.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    let found = found.filter(|name| name.starts_with("linux-image-"));
    found.map(str::to_owned).ok_or_else(|| {
        NotRun(format!("apt knows no package {PACKAGE}: apt-get update, on Debian 12")).into()
    })
}

/// Downloads and unpacks a kernel, and lists its modules; `root` is there when all is done.
fn unpack(dir: &Path, package: &str, root: &Path) -> Result<()> {
    let download = tempfile::tempdir_in(dir).context("a directory for the download")?;
    println!("downloading {package}");
    let mut apt = packages::apt_get();
    // Its own user cannot write here, which is a warning.
    apt.args(["download", "-qq", "-o", "APT::Sandbox::User=root", package]);
    apt.current_dir(download.path());
    if let Err(error) = cargo::run(&mut apt) {
        let what = format!("apt-get update, then apt-get download {package}");
        return Err(NotRun(format!("no kernel: {error:#}; it needs {what}")).into());
    }
    let package = fs::read_dir(download.path())?.next().context("apt-get download left nothing")?;
    let unpacked = download.path().join("root");
    cargo::run(Command::new("dpkg-deb").arg("-x").arg(package?.path()).arg(&unpacked))?;
    let version = fs::read_dir(unpacked.join("lib/modules"))?.next().context("no modules")?;
    let mut depmod = Command::new("busybox");
    depmod.arg("depmod").arg("-b").arg(&unpacked).arg(version?.file_name());
    cargo::run(&mut depmod)?;
    fs::rename(&unpacked, root).with_context(|| format!("making {}", root.display()))
}

/// The files of these modules and of what they need, each once and after what it needs. A line of
/// the list is `FILE: NEEDED …`, with what is needed last first.
fn in_order(list: &str, modules: &[&str]) -> Result<Vec<String>> {
    let mut files: Vec<String> = Vec::new();
    for module in modules {
        let name = format!("/{module}.ko");
        let line = list
            .lines()
            .find_map(|line| line.split_once(':').filter(|(file, _)| file.ends_with(&name)));
        let (file, needed) = line.with_context(|| format!("the kernel has no module {module}"))?;
        for file in needed.split_whitespace().rev().chain([file]) {
            let is_plain = Path::new(file).extension().is_some_and(|end| end == "ko");
            ensure!(is_plain, "{file} is compressed, which is not handled");
            if !files.iter().any(|listed| listed == file) {
                files.push(file.to_owned());
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_come_after_what_they_need() {
        let list = "k/a.ko:\nk/b.ko: k/a.ko\nk/c.ko: k/b.ko k/a.ko\nk/d.ko: k/a.ko\n";
        let files = in_order(list, &["c", "d"]).expect("all are listed");
        assert_eq!(files, ["k/a.ko", "k/b.ko", "k/c.ko", "k/d.ko"]);
        assert!(in_order(list, &["e"]).is_err());
    }
}
