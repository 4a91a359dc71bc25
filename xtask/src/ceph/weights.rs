//! Shares in front of Ceph: of tenants of one image, and of images of one pool.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use paternoster_bench::nbd::fio::{Client, rates};

use super::cluster::{Cluster, IMAGES};

/// How far a share may be off, as a part of itself.
const TOLERANCE: f64 = 0.05;

/// Bytes of which a tenant reads and writes.
const ASKED: u64 = 16 << 20;

/// Attempts at a share: other work on this machine may take the processors from all programs.
const ATTEMPTS: usize = 3;

/// Tenants with their weights.
type Weights<'a> = [(&'a str, f64)];

pub(super) fn check(cluster: &Cluster) -> Result<()> {
    cluster.set_delayed(true)?;
    let of_images = IMAGES.map(|image| cluster.serve(image));
    let _images: Vec<_> = of_images.into_iter().collect::<Result<_>>()?;
    one_image(cluster).context("tenants of one image")?;
    pool(cluster).context("images of a pool")?;
    cluster.set_delayed(false)
}

/// Two tenants of one image.
fn one_image(cluster: &Cluster) -> Result<()> {
    let toml = format!(
        "[disks.d]\nbackend = \"nbd\"\nuri = \"{}\"\nscheduler = \"wfq\"\ndepth = 8\n\
         [exports.gold]\ndisk = \"d\"\nsize = \"16M\"\nweight = 300\n\
         [exports.free]\ndisk = \"d\"\noffset = \"16M\"\n",
        cluster.uri(IMAGES[0])
    );
    let (dir, server) = cluster.launch("one", &toml, 2)?;
    for work in ["randread", "randwrite"] {
        holds(&dir, work, &[("gold", 3.0), ("free", 1.0)])?;
    }
    server.end()
}

/// A tenant for each image, all in one pool. Without it each image would be a disk of its own, and
/// nobody would share anything.
fn pool(cluster: &Cluster) -> Result<()> {
    let toml = cluster.pool([100, 200, 400]);
    let (dir, server) = cluster.launch("pool", &toml, IMAGES.len())?;
    let weights: Vec<_> = IMAGES.into_iter().zip([1.0, 2.0, 4.0]).collect();
    holds(&dir, "randread", &weights)?;
    server.end()
}

/// Has all tenants ask for more than there is, and judges what each got.
fn holds(dir: &Path, work: &str, weights: &Weights<'_>) -> Result<()> {
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let got = ops(dir, work, weights)?;
        let worst = worst(&got, weights);
        println!("== ceph: {work}: {got:.0?} a second, at most {:.1} % off", worst * 100.0);
        if worst <= TOLERANCE {
            return Ok(());
        }
        seen.push(got);
    }
    bail!("{work}: {weights:?} are due, and these were had: {seen:.0?}")
}

/// By how much the tenant that is furthest off is, as a part of its share.
fn worst(got: &[f64], weights: &Weights<'_>) -> f64 {
    let (all, sum) = (got.iter().sum::<f64>(), weights.iter().map(|of| of.1).sum::<f64>());
    let off = got.iter().zip(weights).map(|(got, of)| (got / all / (of.1 / sum) - 1.0).abs());
    off.fold(0.0, f64::max)
}

/// The operations a second of each tenant, for which fio asks at once.
fn ops(dir: &Path, work: &str, weights: &Weights<'_>) -> Result<Vec<f64>> {
    let socket = dir.join("nbd.sock");
    let work = format!("--rw={work}");
    let options =
        [&work, "--bs=4k", "--iodepth=64", "--time_based", "--ramp_time=1", "--runtime=4"];
    let start = |(name, _): &(&str, f64)| {
        let uri = format!("nbd+unix:///{name}?socket={}", socket.display());
        Client::start(&uri, ASKED, &options)
    };
    let clients = weights.iter().map(start).collect::<Result<Vec<_>>>()?;
    clients.into_iter().map(|client| rates(&client.report()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worst_is_the_part_of_its_share_by_which_a_tenant_is_off() {
        let weights = [("a", 3.0), ("b", 1.0)];
        assert!(worst(&[300.0, 100.0], &weights) < 1e-9);
        // 20 % instead of 25 %.
        assert!((worst(&[400.0, 100.0], &weights) - 0.2).abs() < 1e-9);
    }
}
