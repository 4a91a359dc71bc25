//! `cargo xtask bench shares --throttled`: three tenants of 100 : 200 : 400 on a device that is
//! really short. Each has a range of the device, or an image of its own on a file system there: a
//! volume of a pool, or of a pool behind one nbdkit, which has the images as exports.
//!
//! ```text
//!   fio, fio, fio ──NBD──▶ server, in a control group ──▶ loop device ──▶ file
//!                          that has 2,000 reads and writes a second of the device
//!
//!   fio, fio, fio ──NBD──▶ server ──NBD──▶ nbdkit, in the control group ──▶ loop device
//! ```
//!
//! The server has direct I/O. nbdkit has the page cache, whose writes this throttle does not see:
//! it is asked for reads alone, each of which it forgets.
//!
//! The kernel's throttle lets a tenth of a second's requests through at once and then none. Each
//! client has more outstanding than its part of those, or it would have nothing waiting while they
//! are let through, and who asks for nothing has no share.

use crate::KilledOnDrop;
use crate::NotRun;
use crate::nbd::fio::{Client, rates};
use anyhow::{Context, Result, bail};
use rustix::fs::{major, minor};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Where control groups of the throttle are made.
const BLKIO: &str = "/sys/fs/cgroup/blkio";
/// What the device does in a second, of reads and of writes.
const IOPS: u32 = 2000;
/// The weights of the tenants, whose names are their places in the alphabet.
const WEIGHTS: [(&str, u32); 3] = [("a", 100), ("b", 200), ("c", 400)];
/// MiB of each tenant's export.
const MIB: u32 = 64;
/// Requests that each client has outstanding: more than four sevenths of 200.
const OUTSTANDING: &str = "--iodepth=128";
/// What is asked for, by fio's names.
const LOADS: [&str; 3] = ["randread", "randwrite", "randrw"];
/// The schedulers; the first has to keep the bound.
const SCHEDULERS: [&str; 3] = ["wfq", "cfq", "none"];
/// How far a share may be off, of what its weight entitles to.
const BOUND: f64 = 0.03;
/// What the first scheduler does of what the last does, at least: orders are not for nothing.
const THROUGHPUT: f64 = 0.97;
/// MiB of the device beside what the tenants have, for a file system.
const SPARE: u32 = 64;
/// How long a server may take until it takes clients.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// Measures each load under each scheduler, with the program that is ours.
pub fn run(program: &Path) -> Result<()> {
    let mut device = Device::new()?;
    println!("{:<8} {:<6} {:<10} {:>6}  {:<26} worst error", "", "", "load", "IOPS", "shares");
    let mut missed = Vec::new();
    for layout in [Layout::Ranges, Layout::Volumes, Layout::Far] {
        if layout == Layout::Volumes {
            device.make_images()?;
        }
        let mut totals = [[0.0; LOADS.len()]; SCHEDULERS.len()];
        for (scheduler, totals) in SCHEDULERS.iter().zip(&mut totals) {
            for (load, total) in layout.loads().iter().zip(totals) {
                let rates = device.measure(program, layout, scheduler, load)?;
                let error = worst_error(&rates);
                *total = rates.iter().sum();
                let shares = rates.map(|rate| format!("{:.2} %", rate / *total * 100.0)).join(" ");
                let (layout, error_shown) = (layout.name(), error * 100.0);
                println!(
                    "{layout:<8} {scheduler:<6} {load:<10} {total:>6.0}  {shares:<26} \
                     {error_shown:.1} %"
                );
                if *scheduler == SCHEDULERS[0] && error > BOUND {
                    missed.push(format!("{layout} {scheduler} {load}: {error_shown:.1} % off"));
                }
            }
        }
        let [first, .., last] = totals;
        for (load, (first, last)) in layout.loads().iter().zip(first.iter().zip(last)) {
            if *first < last * THROUGHPUT {
                let (layout, part) = (layout.name(), first / last);
                missed.push(format!("{layout} {load}: {part:.2} of the IOPS of none"));
            }
        }
    }
    println!(
        "not run: Linux's own BFQ on the same device: the throttle of cgroup v1 stands before the \
         scheduler, which has nothing to order then"
    );
    if !missed.is_empty() {
        let (error, part) = (BOUND * 100.0, THROUGHPUT);
        bail!("more than {error:.0} % off, or less than {part}: {}", missed.join(", "));
    }
    Ok(())
}

/// How far the rate that is worst off is from what its weight entitles it to, as a part of that.
fn worst_error(rates: &[f64; 3]) -> f64 {
    let total: f64 = rates.iter().sum();
    let weights: u32 = WEIGHTS.iter().map(|(_, weight)| weight).sum();
    let errors = rates.iter().zip(WEIGHTS).map(|(rate, (_, weight))| {
        let due = total * f64::from(weight) / f64::from(weights);
        (rate / due - 1.0).abs()
    });
    errors.fold(0.0, f64::max)
}

/// What each tenant has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// A range of the device, which is one disk.
    Ranges,
    /// An image of its own on the device's file system, in one pool.
    Volumes,
    /// The same behind another server.
    Far,
}

impl Layout {
    fn name(self) -> &'static str {
        match self {
            Self::Ranges => "ranges",
            Self::Volumes => "volumes",
            Self::Far => "far",
        }
    }

    /// What is asked for.
    fn loads(self) -> &'static [&'static str] {
        if self == Self::Far { &LOADS[..1] } else { &LOADS }
    }
}

/// A loop device that is throttled for one control group; both go when it is dropped.
struct Device {
    dir: tempfile::TempDir,
    path: PathBuf,
    group: PathBuf,
    /// Whether its file system is mounted.
    is_mounted: bool,
}

impl Device {
    fn new() -> Result<Self> {
        let not_run = |why: String| NotRun(format!("a throttled device: {why}"));
        let dir = tempfile::Builder::new().prefix("throttled").tempdir().context("a directory")?;
        let file = dir.path().join("loop.img");
        let size = u64::from(MIB) * WEIGHTS.len() as u64 + u64::from(SPARE);
        fs::File::create(&file)?.set_len(size << 20).context("room for a hole")?;
        let args = ["--direct-io=on", "--find", "--show"];
        let made = Command::new("losetup").args(args).arg(&file).output();
        let made = made.map_err(|error| not_run(format!("losetup: {error}")))?;
        if !made.status.success() {
            return Err(not_run(String::from_utf8_lossy(&made.stderr).into_owned()).into());
        }
        let path = PathBuf::from(String::from_utf8_lossy(&made.stdout).trim());
        let group = Path::new(BLKIO).join(format!("paternoster-{}", std::process::id()));
        let device = Self { dir, path, group, is_mounted: false };
        device.throttle().map_err(|error| not_run(format!("{error:#}")))?;
        Ok(device)
    }

    fn throttle(&self) -> Result<()> {
        fs::create_dir(&self.group).with_context(|| format!("making {}", self.group.display()))?;
        let number = fs::metadata(&self.path)?.rdev();
        let rule = format!("{}:{} {IOPS}", major(number), minor(number));
        for direction in ["read", "write"] {
            let file = self.group.join(format!("blkio.throttle.{direction}_iops_device"));
            fs::write(&file, &rule).with_context(|| format!("writing {}", file.display()))?;
        }
        Ok(())
    }

    /// Where its file system is mounted.
    fn images(&self) -> PathBuf {
        self.dir.path().join("images")
    }

    /// Makes a file system with an image for each tenant, all of which is written: what is written
    /// to what was only allocated is more than one write.
    fn make_images(&mut self) -> Result<()> {
        let images = self.images();
        fs::create_dir(&images).context("a directory to mount on")?;
        let mkfs = ["-q", "-F", "-O", "^has_journal"];
        run_tool(Command::new("mkfs.ext4").args(mkfs).arg(&self.path))?;
        self.mount()?;
        for (name, _) in WEIGHTS {
            let image = images.join(format!("{name}.img"));
            fs::write(&image, vec![7; (MIB as usize) << 20]).context("writing an image")?;
            fs::File::open(&image)?.sync_all().context("writing an image")?;
        }
        // So that the page cache has nothing of it.
        run_tool(Command::new("umount").arg(&images))?;
        self.is_mounted = false;
        self.mount()
    }

    fn mount(&mut self) -> Result<()> {
        run_tool(Command::new("mount").arg(&self.path).arg(self.images()))?;
        self.is_mounted = true;
        Ok(())
    }

    /// Requests a second of each tenant.
    fn measure(
        &self,
        program: &Path,
        layout: Layout,
        scheduler: &str,
        load: &str,
    ) -> Result<[f64; 3]> {
        let [socket, far] = ["nbd.sock", "far.sock"].map(|name| self.dir.path().join(name));
        let _far = (layout == Layout::Far).then(|| self.serve_far(&far)).transpose()?;
        let _server = self.serve(program, layout, scheduler, (&socket, &far))?;
        let rw = format!("--rw={load}");
        let options =
            [&rw, "--bs=4k", OUTSTANDING, "--time_based", "--ramp_time=2", "--runtime=10"];
        let uri = |name| format!("nbd+unix:///{name}?socket={}", socket.display());
        let start = |(name, _)| Client::start(&uri(name), u64::from(MIB) << 20, &options);
        let clients = WEIGHTS.map(start);
        let mut each = [0.0; 3];
        for (rate, client) in each.iter_mut().zip(clients) {
            *rate = rates(&client?.report()?)?;
        }
        Ok(each)
    }

    /// Starts a server of the device, in the control group.
    fn serve(
        &self,
        program: &Path,
        layout: Layout,
        scheduler: &str,
        (socket, far): (&Path, &Path),
    ) -> Result<KilledOnDrop> {
        let exports = WEIGHTS.iter().zip(0..).map(|((name, weight), place)| match layout {
            Layout::Ranges => {
                let offset = place * MIB;
                format!(
                    "[exports.{name}]\ndisk = \"d\"\noffset = \"{offset}M\"\n\
                     size = \"{MIB}M\"\nweight = {weight}\n"
                )
            }
            Layout::Volumes => {
                format!("[volumes.{name}]\npool = \"d\"\nweight = {weight}\n")
            }
            Layout::Far => {
                let uri = format!("nbd+unix:///{name}.img?socket={}", far.display());
                format!("[volumes.{name}]\npool = \"d\"\nweight = {weight}\nuri = \"{uri}\"\n")
            }
        });
        let of_path = |path: &Path| format!("path = \"{}\"\ncache = \"direct\"", path.display());
        let (table, keys) = match layout {
            Layout::Ranges => ("disks", of_path(&self.path)),
            Layout::Volumes => ("pools", of_path(&self.images())),
            Layout::Far => ("pools", "backend = \"nbd\"".to_owned()),
        };
        let text = format!(
            "unix = \"{}\"\nctl = \"none\"\n[{table}.d]\n{keys}\n\
             scheduler = \"{scheduler}\"\n{}",
            socket.display(),
            exports.collect::<String>()
        );
        let config = self.dir.path().join("server.toml");
        fs::write(&config, text).context("writing the configuration")?;
        let mut command = if layout == Layout::Far {
            Command::new(program)
        } else {
            self.in_group(program.as_os_str())
        };
        command.args(["serve", "--log", "error"]).arg(config);
        start(command, socket)
    }

    /// Starts nbdkit, which has the images as exports, in the control group.
    fn serve_far(&self, socket: &Path) -> Result<KilledOnDrop> {
        // What an earlier one has left.
        let _ = fs::remove_file(socket);
        let mut command = self.in_group("nbdkit".as_ref());
        command.args(["--foreground", "--unix"]).arg(socket).arg("--threads=32");
        command.args(["file", "fadvise=random", "cache=none"]);
        command.arg(format!("dir={}", self.images().display()));
        // It tells of each look whether it takes clients.
        command.stderr(std::process::Stdio::null());
        start(command, socket)
    }

    /// A program that is in the control group from its start.
    fn in_group(&self, program: &OsStr) -> Command {
        let enter = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", self.group.display());
        let mut command = Command::new("sh");
        command.args(["-c", &enter, "sh"]).arg(program);
        command
    }
}

/// Starts a server, and waits until it takes clients on that socket.
fn start(mut command: Command, socket: &Path) -> Result<KilledOnDrop> {
    command.stdout(std::process::Stdio::null());
    let server = KilledOnDrop(command.spawn().context("the server does not start")?);
    let began = Instant::now();
    while UnixStream::connect(socket).is_err() {
        if began.elapsed() > READY_WITHIN {
            bail!("no client is taken on {} after {READY_WITHIN:?}", socket.display());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(server)
}

impl Drop for Device {
    fn drop(&mut self) {
        // What is left behind is said by the system when it is made again.
        if self.is_mounted {
            let _ = Command::new("umount").arg(self.images()).status();
        }
        let _ = Command::new("losetup").arg("-d").arg(&self.path).status();
        let _ = fs::remove_dir(&self.group);
    }
}

/// Runs a tool of the system.
fn run_tool(command: &mut Command) -> Result<()> {
    let name = command.get_program().display().to_string();
    let done = command.output().with_context(|| format!("{name} does not start"))?;
    if done.status.success() {
        return Ok(());
    }
    bail!("{name}: {}", String::from_utf8_lossy(&done.stderr))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_of_the_share_that_is_worst_off() {
        assert!(worst_error(&[100.0, 200.0, 400.0]) < 1e-9);
        let error = worst_error(&[110.0, 190.0, 400.0]);
        assert!((error - 0.1).abs() < 1e-9, "{error}");
    }
}
