//! A virtual machine that boots the guest, says what it found on its console, and switches off.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::kernel::Kernel;
use paternoster_bench::KilledOnDrop;

/// How long a guest may take, from power on to power off.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often it is looked whether it is off.
const LOOK: Duration = Duration::from_millis(20);
/// How much of the console is shown where something failed, in lines.
const SHOWN: usize = 60;
/// What a line of the guest's own begins with.
const WORD: &str = "guest: ";

/// What is booted.
pub(super) struct Machine {
    /// Where disks and consoles are made.
    pub(super) dir: PathBuf,
    /// The kernel.
    pub(super) kernel: Kernel,
    /// The file of the initial file system.
    pub(super) image: PathBuf,
}

/// A disk of the guest's: `/dev/vda` is the first.
pub(super) struct Disk {
    /// Its image.
    pub(super) path: PathBuf,
}

impl Machine {
    /// Makes a disk of so many bytes, all of them zeroes.
    pub(super) fn disk(&self, name: &str, bytes: u64) -> Result<Disk> {
        let path = self.dir.join(name);
        let file = File::create(&path).with_context(|| format!("making {}", path.display()))?;
        file.set_len(bytes)?;
        Ok(Disk { path })
    }

    /// Boots the guest, which gets the settings as variables, and returns what it said by
    /// `guest: WORDS` before it switched itself off. It is an error if it failed at something, or
    /// if it is not off in time.
    pub(super) fn run(&self, name: &str, settings: &str, disks: &[&Disk]) -> Result<Vec<String>> {
        let disks = disks.iter().flat_map(|disk| {
            let options = "if=virtio,format=raw,cache=unsafe,discard=unmap";
            ["-drive".to_owned(), format!("{options},file={}", disk.path.display())]
        });
        self.run_with(name, settings, &disks.collect::<Vec<_>>(), |_| Ok(()))
    }

    /// The same with these arguments of QEMU; `look` sees what the guest has said so far, again and
    /// again.
    pub(super) fn run_with(
        &self,
        name: &str,
        settings: &str,
        more: &[String],
        mut look: impl FnMut(&str) -> Result<()>,
    ) -> Result<Vec<String>> {
        let console = self.dir.join(format!("{name}.console"));
        let qemu = self.dir.join(format!("{name}.qemu"));
        let mut guest = self.start(settings, more, &console, File::create(&qemu)?)?;
        let start = Instant::now();
        let status = loop {
            if let Some(status) = guest.try_wait()? {
                break Some(status);
            }
            if start.elapsed() > PATIENCE {
                break None;
            }
            std::thread::sleep(LOOK);
            look(&String::from_utf8_lossy(&fs::read(&console).unwrap_or_default()))?;
        };
        drop(guest);
        let said = fs::read(&console).context("the guest's console")?;
        let said = String::from_utf8_lossy(&said);
        let result = match status {
            None => Err(format!("it is not off after {} s", PATIENCE.as_secs())),
            Some(status) if !status.success() => Err(format!("QEMU ended by {status}")),
            Some(_) => words(&said),
        };
        result.or_else(|why| {
            let qemu = fs::read_to_string(&qemu).unwrap_or_default();
            bail!("the guest {name}: {why}\n{}{qemu}", end_of(&said))
        })
    }

    /// Starts QEMU. What the guest writes need not survive the host, so nothing is synced there.
    fn start(
        &self,
        settings: &str,
        more: &[String],
        console: &Path,
        log: File,
    ) -> Result<KilledOnDrop> {
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args(["-accel", "tcg", "-cpu", "max", "-m", "512", "-smp", "2"]);
        // In a file, so that others can have it too.
        qemu.args(["-object", "memory-backend-memfd,id=memory,size=512M,share=on"]);
        qemu.args(["-machine", "q35,memory-backend=memory"]);
        qemu.args(["-nodefaults", "-display", "none", "-no-reboot", "-nic", "none"]);
        qemu.arg("-kernel").arg(&self.kernel.image).arg("-initrd").arg(&self.image);
        qemu.args(["-append", &format!("console=ttyS0 quiet panic=-1 {settings}")]);
        qemu.arg("-serial").arg(format!("file:{}", console.display()));
        qemu.args(more);
        qemu.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Ok(KilledOnDrop(qemu.spawn().context("qemu-system-x86_64 does not start")?))
    }
}

/// What the guest said, to the end that it has to reach; else why it is no good.
fn words(console: &str) -> Result<Vec<String>, String> {
    let lines = console.lines().filter_map(|line| line.trim().split_once(WORD));
    let mut said: Vec<String> = lines.map(|(_, words)| words.to_owned()).collect();
    if let Some(failed) = said.iter().find(|words| words.starts_with("failed")) {
        return Err(failed.clone());
    }
    match said.pop() {
        Some(last) if last == "end" => Ok(said),
        last => Err(format!("it came no further than {last:?}")),
    }
}

/// The last lines of the console.
fn end_of(console: &str) -> String {
    let lines: Vec<&str> = console.lines().collect();
    let from = lines.len().saturating_sub(SHOWN);
    let shown = lines[from..].iter().map(|line| line.trim_end());
    shown.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_that_fails_or_does_not_reach_its_end_is_no_good() {
        let good = "boot\r\n[1.0] x guest: a 1\r\nguest: end\r\n[2.0] off\r\n";
        assert_eq!(words(good), Ok(vec!["a 1".to_owned()]));
        assert!(words("guest: failed at x\nguest: end\n").is_err());
        assert!(words("guest: a 1\n").is_err());
        assert!(words("").is_err());
    }
}
