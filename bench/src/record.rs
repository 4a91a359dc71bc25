//! What a recording costs the clients of the disk that is recorded.
//!
//! ```text
//!   a pair    unrecorded, recorded    the next: recorded, unrecorded    each: fio for some seconds
//!             └── same server, ring on ──┘
//! ```
//!
//! Ratios are taken within a pair. Another server, without a ring, says what the ring alone costs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use paternoster_scene::statistics::median;

use crate::KilledOnDrop;
use crate::nbd::fio::{Client, Sample, sample};

const SIZE: u64 = 1 << 30;
const READY_WITHIN: Duration = Duration::from_secs(10);
/// Student's t of 95 % for 19 degrees of freedom, and about that of more.
const T: f64 = 2.093;

/// How it is measured.
#[derive(clap::Args)]
pub struct Args {
    /// Pairs of runs
    #[arg(long, default_value_t = 20)]
    pairs: usize,
    /// Seconds of each run
    #[arg(long, default_value_t = 5)]
    seconds: u64,
}

/// A server of a disk in memory.
struct Server {
    process: KilledOnDrop,
    paternoster: PathBuf,
    dir: PathBuf,
}

/// Measures, with this executable.
pub fn run(args: &Args, paternoster: &Path) -> Result<()> {
    ensure!(args.pairs > 1 && args.seconds > 0, "two pairs and a second are the least");
    let dir = tempfile::tempdir().context("a directory")?;
    let [with, without] = [("ring", ""), ("none", "record_ring = 0\n")]
        .map(|(name, ring)| Server::start(&dir.path().join(name), ring, paternoster));
    let (with, without) = (with?, without?);
    let seconds = args.seconds;
    println!(
        "4 KiB random reads, 16 connections, 32 outstanding, {} pairs of {seconds} s",
        args.pairs
    );
    let mut runs: Vec<[Sample; 3]> = Vec::new();
    for pair in 0..args.pairs {
        let mut each = [None; 3];
        let order = if pair % 2 == 0 { [0, 1, 2] } else { [2, 1, 0] };
        for what in order {
            each[what] = Some(match what {
                0 => without.load(seconds)?,
                1 => with.load(seconds)?,
                _ => with.recorded(seconds, pair)?,
            });
        }
        runs.push(each.map(|sample| sample.expect("each has run")));
    }
    let rss = [&without, &with].map(Server::rss);
    let [none, ring] =
        [rss[0].as_ref(), rss[1].as_ref()].map(|rss| rss.map_or(0, |kib| kib / 1024));
    println!("RSS: {none} MiB without a ring, {ring} MiB with the ring and a recording");
    let iops: &dyn Fn(&Sample) -> f64 = &|sample| sample.iops;
    let p99: &dyn Fn(&Sample) -> f64 = &|sample| sample.p99_us;
    for (name, value) in [("IOPS", iops), ("p99", p99)] {
        let of = |over: usize, under: usize| {
            runs.iter().map(|run| value(&run[over]) / value(&run[under])).collect::<Vec<_>>()
        };
        let middle = median(runs.iter().map(|run| value(&run[1]))).unwrap_or_default();
        println!("{name}: {middle:.0} unrecorded; recorded / unrecorded {}", Ratio::of(&of(2, 1)));
        println!(
            "      ring / no ring {}; recorded / no ring {}",
            Ratio::of(&of(1, 0)),
            Ratio::of(&of(2, 0))
        );
    }
    Ok(())
}

/// Ratios of pairs: the median, and the 95 % interval of their mean as logarithms.
struct Ratio {
    median: f64,
    least: f64,
    most: f64,
}

impl Ratio {
    #[expect(clippy::cast_precision_loss, reason = "a few")]
    fn of(ratios: &[f64]) -> Self {
        let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let count = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / count;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let half = T * (squares / (count - 1.0) / count).sqrt();
        let median = median(ratios.iter().copied()).unwrap_or_default();
        Self { median, least: (mean - half).exp(), most: (mean + half).exp() }
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { median, least, most } = self;
        write!(f, "{median:.3} (95 %: {least:.3} to {most:.3})")
    }
}

impl Server {
    fn start(dir: &Path, ring: &str, paternoster: &Path) -> Result<Self> {
        fs::create_dir(dir)?;
        let toml = format!(
            "unix = \"nbd.sock\"\nctl = \"ctl.sock\"\nsandbox_paths = [\".\"]\n\
             [disks.vm]\nbackend = \"memory\"\nsize = {SIZE}\nscheduler = \"wfq\"\n{ring}\
             [exports.vm]\ndisk = \"vm\"\n"
        );
        fs::write(dir.join("c.toml"), toml)?;
        let mut command = Command::new(paternoster);
        command.current_dir(dir).args(["serve", "--log", "warn", "c.toml"]);
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let process = KilledOnDrop(process.context("the server does not start")?);
        let (paternoster, dir) = (paternoster.to_owned(), dir.to_owned());
        let server = Self { process, paternoster, dir };
        let begin = Instant::now();
        while server.ctl(&["stat"]).is_err() {
            ensure!(begin.elapsed() < READY_WITHIN, "the server answers nobody");
            std::thread::sleep(Duration::from_millis(50));
        }
        server.load(1)?;
        Ok(server)
    }

    fn load(&self, seconds: u64) -> Result<Sample> {
        let uri = format!("nbd+unix:///vm?socket={}", self.dir.join("nbd.sock").display());
        let runtime = format!("--runtime={seconds}");
        let options = ["--rw=randread", "--bs=4k", "--iodepth=2", "--numjobs=16", "--thread"];
        let more = ["--group_reporting", "--time_based", &runtime];
        sample(&Client::start(&uri, SIZE, &[&options[..], &more].concat())?.report()?)
    }

    fn recorded(&self, seconds: u64, pair: usize) -> Result<Sample> {
        let out = format!("r{pair}");
        self.ctl(&["record", "start", "vm", "--out", &out])?;
        let sample = self.load(seconds)?;
        // It fails where requests are lost.
        self.ctl(&["record", "stop", "vm"])?;
        for ends in ["blktrace.0", "pater"] {
            fs::remove_file(self.dir.join(format!("{out}.{ends}")))?;
        }
        Ok(sample)
    }

    fn ctl(&self, args: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.paternoster);
        command.current_dir(&self.dir).args(["ctl", "--ctl", "ctl.sock"]).args(args);
        let output = command.output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "ctl {args:?}: {said}{:?}", output.stderr);
        Ok(())
    }

    /// Its memory, in KiB.
    fn rss(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()).context("VmRSS")?;
        Ok(kib.parse()?)
    }
}
