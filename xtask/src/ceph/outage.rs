//! What clients see where the cluster or a qemu-nbd is away.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::cluster::{Cluster, IMAGES, ImageServer, wait_for};
use crate::cargo;
use crate::served::Server;

/// How long the OSD is stopped.
const STOPPED: Duration = Duration::from_secs(4);

pub(super) fn check(cluster: &Cluster) -> Result<()> {
    let [first, second, third] = IMAGES.map(|image| cluster.serve(image));
    let (first, _others) = (first?, [second?, third?]);
    let (dir, server) = cluster.launch("outage", &cluster.pool([100; 3]), IMAGES.len())?;
    let front = Front { dir, server };
    osd_that_stops(cluster, &front).context("the OSD stops")?;
    let first = image_server_that_dies(cluster, &front, first).context("a qemu-nbd dies")?;
    let _first = planned_restart(cluster, &front, first).context("a qemu-nbd restarts")?;
    front.server.end()
}

/// Ours, in front of the images, and its directory.
struct Front {
    dir: PathBuf,
    server: Server,
}

/// What a client does with an image, by libnbd's own methods.
#[derive(Clone, Copy)]
enum Does {
    Write,
    Flush,
}

impl Front {
    /// Has a client do something: its error, if it gets one.
    fn ask(&self, image: &str, does: Does) -> Result<()> {
        let method = match does {
            Does::Write => "pwrite(b'x' * 4096, 0)",
            Does::Flush => "flush()",
        };
        let program = format!(
            "import nbd\nh = nbd.NBD()\nh.connect_uri('{}')\nh.{method}\nh.shutdown()",
            self.uri(image)
        );
        cargo::output(Command::new("/usr/bin/python3").args(["-c", &program])).map(drop)
    }

    /// Whether what `ctl` shows of an image has that.
    fn shows(&self, image: &str, what: &str) -> Result<bool> {
        Ok(self.server.ctl(&["volume", "show", image])?.contains(what))
    }

    fn uri(&self, image: &str) -> String {
        format!("nbd+unix:///{image}?socket={}", self.dir.join("nbd.sock").display())
    }
}

/// fio writes, and reads what it wrote, while the OSD is stopped for a while.
fn osd_that_stops(cluster: &Cluster, front: &Front) -> Result<()> {
    let uri = front.uri(IMAGES[0]);
    let mut fio = Command::new("fio");
    fio.args(["--name=v", "--ioengine=nbd", "--rw=randwrite", "--bs=4k", "--iodepth=16"]);
    fio.args(["--size=32M", "--rate=,8m", "--verify=crc32c", "--verify_fatal=1"]);
    fio.args(["--verify_state_save=0", &format!("--uri={uri}")]).current_dir(&front.dir);
    let fio = fio.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("fio")?;
    thread::sleep(Duration::from_secs(1));
    cluster.stop_osd(STOPPED)?;
    let said = fio.wait_with_output()?;
    let text = String::from_utf8_lossy(&said.stdout);
    ensure!(said.status.success() && text.contains("err= 0"), "fio: {}: {text}", said.status);
    Ok(())
}

/// A qemu-nbd dies with writes that it has not flushed, and another comes.
fn image_server_that_dies(
    cluster: &Cluster,
    front: &Front,
    first: ImageServer,
) -> Result<ImageServer> {
    let [image, others @ ..] = IMAGES;
    IMAGES.iter().try_for_each(|image| front.ask(image, Does::Write))?;
    first.kill()?;
    others.iter().try_for_each(|other| front.ask(other, Does::Flush))?;
    let first = cluster.serve(image)?;
    wait_for("the image", || {
        Ok(front.shows(image, "\"connections\":1")? && front.shows(image, "\"in_doubt\":true")?)
    })?;
    let refused = front.ask(image, Does::Flush);
    let refused = refused.err().map(|error| format!("{error:#}")).unwrap_or_default();
    ensure!(refused.contains("Input/output error"), "a flush of what may be lost: {refused:?}");
    others.iter().try_for_each(|other| front.ask(other, Does::Flush))?;
    front.server.ctl(&["volume", "reopen", image])?;
    front.ask(image, Does::Flush)?;
    Ok(first)
}

/// A qemu-nbd restarts after its image was quiesced.
fn planned_restart(cluster: &Cluster, front: &Front, first: ImageServer) -> Result<ImageServer> {
    let image = IMAGES[0];
    front.ask(image, Does::Write)?;
    front.server.ctl(&["volume", "quiesce", image])?;
    first.kill()?;
    IMAGES.iter().try_for_each(|image| front.ask(image, Does::Flush))?;
    let first = cluster.serve(image)?;
    front.server.ctl(&["volume", "resume", image])?;
    front.ask(image, Does::Write)?;
    front.ask(image, Does::Flush)?;
    for none in ["\"lost\":0", "\"in_doubt\":false"] {
        ensure!(front.shows(image, none)?, "{}", front.server.ctl(&["volume", "show", image])?);
    }
    Ok(first)
}
