//! A Ceph cluster on this machine: one monitor and one OSD, without keys, in a temporary directory.
//! The OSD keeps everything in memory, so images are small.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use paternoster_bench::KilledOnDrop;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::cargo;
use crate::served::Server;

/// The images.
pub(super) const IMAGES: [&str; 3] = ["v1", "v2", "v3"];

/// MiB of an image.
const IMAGE: &str = "32";

/// How long something of the cluster may take to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long the OSD delays each operation where shares are judged. Without it, four busy programs
/// on two processors are judged, and not the scheduler: the device has to be the bottleneck.
const DELAY: &str = "0.001";

/// The cluster, and a qemu-nbd for each image.
pub(super) struct Cluster {
    dir: TempDir,
    // The OSD ends before the monitor: it would wait for it.
    osd: KilledOnDrop,
    monitor: KilledOnDrop,
}

/// A qemu-nbd that serves an image.
pub(super) struct ImageServer {
    process: KilledOnDrop,
}

impl Cluster {
    pub(super) fn start() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let path = dir.path();
        for below in ["mon", "osd", "run"] {
            fs::create_dir(path.join(below))?;
        }
        let (id, osd_id) = (uuid()?, uuid()?);
        let monitor = format!("[v2:127.0.0.1:{}/0]", free_port()?);
        fs::write(path.join("ceph.conf"), configuration(path, &id, &monitor))?;
        let tool = |name: &str, args: &[&str]| tool(path, name, args);
        let create = ["--create", "--addv", "a", &monitor, "--fsid", &id, "monmap"];
        tool("monmaptool", &create)?;
        tool("ceph-mon", &["--mkfs", "-i", "a", "--monmap", "monmap"])?;
        let monitor = daemon(path, "ceph-mon", "a")?;
        tool("ceph", &["osd", "new", &osd_id])?;
        tool("ceph-osd", &["-i", "0", "--mkfs", "--osd-uuid", &osd_id])?;
        let cluster = Self { osd: daemon(path, "ceph-osd", "0")?, monitor, dir };
        wait_for("the OSD", || Ok(cluster.ceph(&["osd", "stat"])?.contains("1 osds: 1 up")))?;
        cluster.ceph(&["osd", "pool", "create", "rbd", "8"])?;
        cluster.ceph(&["osd", "pool", "application", "enable", "rbd", "rbd"])?;
        for image in IMAGES {
            self::tool(cluster.dir(), "rbd", &["create", "--size", IMAGE, image])?;
        }
        Ok(cluster)
    }

    fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn ceph(&self, args: &[&str]) -> Result<String> {
        tool(self.dir(), "ceph", &[&["--connect-timeout", "20"], args].concat())
    }

    /// Has the OSD take its time for each operation, or be as fast as it can.
    pub(super) fn set_delayed(&self, is_delayed: bool) -> Result<()> {
        let probability = if is_delayed { "1.0" } else { "0.0" };
        for (name, value) in [("duration", DELAY), ("probability", probability)] {
            let name = format!("osd_debug_inject_dispatch_delay_{name}");
            self.ceph(&["tell", "osd.0", "config", "set", &name, value])?;
        }
        Ok(())
    }

    /// Serves an image, at its [`socket`](Self::socket).
    pub(super) fn serve(&self, image: &str) -> Result<ImageServer> {
        let socket = self.socket(image);
        // A server that was killed has left it.
        let _ = fs::remove_file(&socket);
        let conf = self.dir().join("ceph.conf");
        let mut command = Command::new("qemu-nbd");
        command.args(["--persistent", "--shared=16", "--format=raw", "--cache=none"]);
        command.arg("--socket").arg(&socket).args(["--export-name", image]);
        command.arg(format!("rbd:rbd/{image}:conf={}", conf.display()));
        let process = command.stdin(Stdio::null()).spawn().context("qemu-nbd does not start")?;
        let server = ImageServer { process: KilledOnDrop(process) };
        wait_for("qemu-nbd", || Ok(socket.exists()))?;
        Ok(server)
    }

    fn socket(&self, image: &str) -> PathBuf {
        self.dir().join(format!("{image}.sock"))
    }

    /// Where an image is served.
    pub(super) fn uri(&self, image: &str) -> String {
        format!("nbd+unix:///{image}?socket={}", self.socket(image).display())
    }

    /// Starts a server of that configuration, with so many exports, in a directory of that name
    /// below the cluster's. Its sockets there are `nbd.sock` and `ctl.sock`.
    pub(super) fn launch(
        &self,
        name: &str,
        toml: &str,
        exports: usize,
    ) -> Result<(PathBuf, Server)> {
        let dir = self.dir().join(name);
        fs::create_dir(&dir)?;
        let toml = format!("unix = \"nbd.sock\"\nctl = \"ctl.sock\"\n{toml}");
        fs::write(dir.join("server.toml"), toml)?;
        let (server, _) = Server::launch(dir.clone(), exports)?;
        Ok((dir, server))
    }

    /// The configuration of a pool of all images, each with a weight.
    pub(super) fn pool(&self, weights: [u32; 3]) -> String {
        let volumes = IMAGES.iter().zip(weights).map(|(image, weight)| {
            let uri = self.uri(image);
            format!("[volumes.{image}]\npool = \"p\"\nuri = \"{uri}\"\nweight = {weight}\n")
        });
        let volumes: String = volumes.collect();
        format!(
            "[pools.p]\nbackend = \"nbd\"\ndevice = \"the cluster\"\nscheduler = \"wfq\"\n\
             depth = 8\n{volumes}"
        )
    }

    /// Stops the OSD for so long.
    pub(super) fn stop_osd(&self, time: Duration) -> Result<()> {
        let osd = Pid::from_child(&self.osd);
        kill_process(osd, Signal::STOP)?;
        thread::sleep(time);
        Ok(kill_process(osd, Signal::CONT)?)
    }

    pub(super) fn end(mut self) -> Result<()> {
        for (name, daemon) in [("the OSD", &mut self.osd), ("the monitor", &mut self.monitor)] {
            ensure!(daemon.try_wait()?.is_none(), "{name} has ended by itself");
        }
        Ok(())
    }
}

impl ImageServer {
    /// Kills it, with whatever it has not flushed.
    pub(super) fn kill(mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

/// Runs a program of the cluster's: what it prints.
fn tool(dir: &Path, name: &str, args: &[&str]) -> Result<String> {
    let mut command = Command::new(name);
    command.env("CEPH_CONF", dir.join("ceph.conf")).current_dir(dir).args(args);
    cargo::output(&mut command)
}

/// Asks until it is so.
pub(super) fn wait_for(what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let start = Instant::now();
    while !is_so()? {
        if start.elapsed() > PATIENCE {
            bail!("{what} is not ready within {PATIENCE:?}");
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// A daemon of the cluster, which ends with us.
fn daemon(dir: &Path, name: &str, id: &str) -> Result<KilledOnDrop> {
    let mut command = Command::new(name);
    command.env("CEPH_CONF", dir.join("ceph.conf")).current_dir(dir).args(["-f", "-i", id]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(KilledOnDrop(command.spawn().with_context(|| format!("{name} does not start"))?))
}

fn configuration(dir: &Path, id: &str, monitor: &str) -> String {
    let dir = dir.display();
    format!(
        "[global]\nfsid = {id}\nmon initial members = a\nmon host = {monitor}\n\
         public addr = 127.0.0.1\npublic network = 127.0.0.0/8\n\
         auth cluster required = none\nauth service required = none\n\
         auth client required = none\n\
         run dir = {dir}/run\nadmin socket = {dir}/run/$name.asok\npid file = {dir}/run/$name.pid\n\
         log file = {dir}/run/$name.log\ncrash dir = {dir}/run\n\
         mon data = {dir}/mon\nosd data = {dir}/osd\n\
         osd objectstore = memstore\nmemstore device bytes = 536870912\n\
         osd pool default size = 1\nosd pool default min size = 1\n\
         osd pool default pg num = 8\nosd pool default pgp num = 8\n\
         osd pool default pg autoscale mode = off\nosd crush chooseleaf type = 0\n\
         mon allow pool size one = true\nosd op num shards = 1\nms async op threads = 1\n\
         rbd cache = false\nrbd default features = 1\n"
    )
}

fn uuid() -> Result<String> {
    let read = fs::read_to_string("/proc/sys/kernel/random/uuid").context("a UUID")?;
    Ok(read.trim().to_owned())
}

/// A port that nobody has now.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
