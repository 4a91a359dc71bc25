//! `cargo xtask bench shares --throttled`: three tenants of 100 : 200 : 400 on a device that is
//! really short, with direct I/O.
//!
//! ```text
//!   fio, fio, fio ──NBD──▶ server, in a control group ──▶ loop device ──▶ file
//!                          that has 2,000 reads and writes a second of the device
//! ```
//!
//! The kernel's throttle lets a tenth of a second's requests through at once and then none. Each
//! client has more outstanding than its part of those, or it would have nothing waiting while they
//! are let through, and who asks for nothing has no share.

use crate::KilledOnDrop;
use crate::NotRun;
use crate::nbd::fio::{Client, rates};
use anyhow::{Context, Result, bail};
use rustix::fs::{major, minor};
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
/// How long a server may take until it takes clients.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// Measures each load under each scheduler, with the program that is ours.
pub fn run(program: &Path) -> Result<()> {
    let device = Device::new()?;
    println!("{:<6} {:<10} {:>6}  {:<26} worst error", "", "load", "IOPS", "shares");
    let mut missed = Vec::new();
    for scheduler in SCHEDULERS {
        for load in LOADS {
            let rates = device.measure(program, scheduler, load)?;
            let error = worst_error(&rates);
            let total: f64 = rates.iter().sum();
            let shares = rates.map(|rate| format!("{:.2} %", rate / total * 100.0)).join(" ");
            println!("{scheduler:<6} {load:<10} {total:>6.0}  {shares:<26} {:.1} %", error * 100.0);
            if scheduler == SCHEDULERS[0] && error > BOUND {
                missed.push(format!("{scheduler} {load}"));
            }
        }
    }
    println!(
        "not run: Linux's own BFQ on the same device: the throttle of cgroup v1 stands before the \
         scheduler, which has nothing to order then"
    );
    if !missed.is_empty() {
        bail!("more than {:.0} % off: {}", BOUND * 100.0, missed.join(", "));
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

/// A loop device that is throttled for one control group; both go when it is dropped.
struct Device {
    dir: tempfile::TempDir,
    path: PathBuf,
    group: PathBuf,
}

impl Device {
    fn new() -> Result<Self> {
        let not_run = |why: String| NotRun(format!("a throttled device: {why}"));
        let dir = tempfile::Builder::new().prefix("throttled").tempdir().context("a directory")?;
        let file = dir.path().join("loop.img");
        let size = u64::from(MIB) * WEIGHTS.len() as u64;
        fs::File::create(&file)?.set_len(size << 20).context("room for a hole")?;
        let args = ["--direct-io=on", "--find", "--show"];
        let made = Command::new("losetup").args(args).arg(&file).output();
        let made = made.map_err(|error| not_run(format!("losetup: {error}")))?;
        if !made.status.success() {
            return Err(not_run(String::from_utf8_lossy(&made.stderr).into_owned()).into());
        }
        let path = PathBuf::from(String::from_utf8_lossy(&made.stdout).trim());
        let group = Path::new(BLKIO).join(format!("paternoster-{}", std::process::id()));
        let device = Self { dir, path, group };
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

    /// Requests a second of each tenant.
    fn measure(&self, program: &Path, scheduler: &str, load: &str) -> Result<[f64; 3]> {
        let socket = self.dir.path().join("nbd.sock");
        let _server = self.serve(program, scheduler, &socket)?;
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
    fn serve(&self, program: &Path, scheduler: &str, socket: &Path) -> Result<KilledOnDrop> {
        let exports = WEIGHTS.iter().zip(0..).map(|((name, weight), place)| {
            let offset = place * MIB;
            format!(
                "[exports.{name}]\ndisk = \"d\"\noffset = \"{offset}M\"\nsize = \"{MIB}M\"\n\
                 weight = {weight}\n"
            )
        });
        let text = format!(
            "unix = \"{}\"\nctl = \"none\"\n[disks.d]\npath = \"{}\"\ncache = \"direct\"\n\
             scheduler = \"{scheduler}\"\n{}",
            socket.display(),
            self.path.display(),
            exports.collect::<String>()
        );
        let config = self.dir.path().join("server.toml");
        fs::write(&config, text).context("writing the configuration")?;
        let enter = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", self.group.display());
        let mut command = Command::new("sh");
        command.args(["-c", &enter, "sh"]).arg(program).args(["serve", "--log", "error"]);
        command.arg(config).stdout(std::process::Stdio::null());
        let server = KilledOnDrop(command.spawn().context("the server does not start")?);
        let began = Instant::now();
        while UnixStream::connect(socket).is_err() {
            if began.elapsed() > READY_WITHIN {
                bail!("the server takes no clients after {READY_WITHIN:?}");
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // What is left behind is said by the system when it is made again.
        let _ = Command::new("losetup").arg("-d").arg(&self.path).status();
        let _ = fs::remove_dir(&self.group);
    }
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
