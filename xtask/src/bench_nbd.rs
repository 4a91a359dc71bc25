//! `cargo xtask bench nbd`: our server beside nbdkit and qemu-nbd, as one fio client sees them.
//!
//! All servers are up at once and idle but for the one that is measured. Rounds interleave them
//! (A B C, A B C, …), so that a drift of the machine meets all alike; the table has medians.

mod servers;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use servers::{Backing, KINDS, Program, Server};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

/// Bytes of the disk, which the page cache holds.
const DISK_SIZE: usize = 256 << 20;
/// Requests that the client keeps in flight.
const DEPTHS: [u32; 2] = [1, 32];

/// How long to measure.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Rounds, each with every server and depth
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Seconds that one server is measured at one depth in a round
    #[arg(long, default_value_t = 5)]
    seconds: u32,
}

/// What fio measured in one run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    /// Reads per second.
    iops: f64,
    /// The latency, in microseconds, that 99 % of the reads stay below.
    p99_us: f64,
}

/// The samples of each server and depth; a server is named by its place in the list.
type Samples = BTreeMap<(usize, u32), Vec<Sample>>;

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let dir = tempfile::Builder::new().prefix("bench-nbd").tempdir().context("a directory")?;
    let disk = dir.path().join("disk.img");
    fill(&disk)?;
    let mut servers = vec![];
    let mut missing = 0;
    for kind in &KINDS {
        match kind.start(dir.path(), &disk) {
            Ok(server) => servers.push(server),
            Err(error) => {
                missing += 1;
                println!("left out: {}: {error:#}", kind.name());
            }
        }
    }
    for server in servers.iter().filter(|server| server.kind.backing == Backing::Memory) {
        let fill = ["--rw=write", "--bs=1M", "--iodepth=4"];
        fio(&server.uri, &fill).with_context(|| format!("filling {}", server.kind.name()))?;
    }
    let samples = measure(&servers, args)?;
    print_table(&servers, &samples);
    if missing > 0 {
        bail!("{missing} of {} servers were left out", KINDS.len());
    }
    Ok(())
}

/// Writes the disk, with content that does not compress or repeat.
fn fill(path: &Path) -> Result<()> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = Vec::with_capacity(DISK_SIZE);
    while bytes.len() < DISK_SIZE {
        // One step of xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    std::fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))
}

/// Measures all servers at all depths, round after round.
fn measure(servers: &[Server], args: &Args) -> Result<Samples> {
    let runtime = format!("--runtime={}", args.seconds);
    let mut samples = Samples::new();
    for round in 1..=args.rounds {
        for depth in DEPTHS {
            print!("round {round} of {}, depth {depth}:", args.rounds);
            for (index, server) in servers.iter().enumerate() {
                let iodepth = format!("--iodepth={depth}");
                let reading = ["--rw=randread", "--bs=4k", "--time_based", "--ramp_time=1"];
                let options = [reading.as_slice(), &[&runtime, &iodepth]].concat();
                let report = fio(&server.uri, &options)
                    .with_context(|| format!("measuring {}", server.kind.name()))?;
                let sample = sample(&report)?;
                print!(" {:.0}", sample.iops);
                std::io::stdout().flush().context("printing")?;
                samples.entry((index, depth)).or_default().push(sample);
            }
            println!();
        }
    }
    Ok(samples)
}

/// Runs fio as an NBD client with one connection; returns its report, which is JSON.
fn fio(uri: &str, options: &[&str]) -> Result<String> {
    let output = Command::new("fio")
        .args(["--name=bench", "--ioengine=nbd", "--output-format=json", "--randrepeat=1"])
        .arg(format!("--size={DISK_SIZE}"))
        .arg(format!("--uri={uri}"))
        .args(options)
        .output()
        .context("fio does not start: install the package fio")?;
    if !output.status.success() {
        let said = [output.stderr, output.stdout].concat();
        bail!("fio {uri}: {}\n{}", output.status, String::from_utf8_lossy(&said));
    }
    String::from_utf8(output.stdout).context("fio's report")
}

/// What is read of fio's report.
#[derive(Deserialize)]
struct Report {
    /// The jobs; ours is the only one.
    jobs: [Job; 1],
}

/// A job in fio's report.
#[derive(Deserialize)]
struct Job {
    /// Its reads.
    read: Reads,
}

/// The reads of a job.
#[derive(Deserialize)]
struct Reads {
    /// Reads per second.
    iops: f64,
    /// Nanoseconds from submission to completion.
    clat_ns: Latency,
}

/// A distribution in fio's report.
#[derive(Deserialize)]
struct Latency {
    /// Nanoseconds by the share of reads, in percent, that stay below.
    percentile: BTreeMap<String, f64>,
}

/// What `report` says; fio may print notes before it.
fn sample(report: &str) -> Result<Sample> {
    let json = report.find('{').map_or("", |start| &report[start..]);
    let Report { jobs: [job] } = serde_json::from_str(json).context("fio's report")?;
    let p99 = job.read.clat_ns.percentile.get("99.000000").context("fio's report has no p99")?;
    Ok(Sample { iops: job.read.iops, p99_us: p99 / 1000.0 })
}

/// The median of each measure.
fn median(samples: &[Sample]) -> Sample {
    let middle = |measure: fn(&Sample) -> f64| {
        let mut values: Vec<f64> = samples.iter().map(measure).collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        f64::midpoint(low, high)
    };
    Sample { iops: middle(|sample| sample.iops), p99_us: middle(|sample| sample.p99_us) }
}

/// Prints the medians, and each server's IOPS as a multiple of nbdkit's with the same backing.
fn print_table(servers: &[Server], samples: &Samples) {
    println!(
        "\n{:<12} {:<8} {:>3} {:>10} {:>10} {:>9}",
        "server", "backing", "qd", "IOPS", "p99 us", "x nbdkit"
    );
    let medians: BTreeMap<_, _> = samples.iter().map(|(key, runs)| (*key, median(runs))).collect();
    for depth in DEPTHS {
        for (index, Server { kind, .. }) in servers.iter().enumerate() {
            let Some(Sample { iops, p99_us }) = medians.get(&(index, depth)) else { continue };
            let same = |other: &Server| {
                other.kind.program == Program::Nbdkit && other.kind.backing == kind.backing
            };
            let nbdkit = servers.iter().position(same).and_then(|at| medians.get(&(at, depth)));
            let ratio =
                nbdkit.map_or("-".to_owned(), |nbdkit| format!("{:.2}", iops / nbdkit.iops));
            let (program, backing) = (kind.program.name(), kind.backing.name());
            println!(
                "{program:<12} {backing:<8} {depth:>3} {iops:>10.0} {p99_us:>10.1} {ratio:>9}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_is_read_from_the_report_of_fio() {
        let report = r#"note: both iodepth >= 1 and synchronous I/O engine
{"fio version": "fio-3.33", "jobs": [{"jobname": "bench", "read": {"iops": 12345.678,
 "clat_ns": {"min": 1, "percentile": {"50.000000": 2000, "99.000000": 81408}}}}]}"#;
        let expected = Sample { iops: 12345.678, p99_us: 81.408 };
        assert_eq!(sample(report).expect("it is a report"), expected);
        assert!(sample("").is_err());
        assert!(sample(r#"{"jobs": []}"#).is_err());
    }

    #[test]
    fn median_is_taken_of_each_measure_on_its_own() {
        let samples = [(3.0, 1.0), (1.0, 3.0), (2.0, 9.0)];
        let samples = samples.map(|(iops, p99_us)| Sample { iops, p99_us });
        assert_eq!(median(&samples), Sample { iops: 2.0, p99_us: 3.0 });
        assert_eq!(median(&samples[..2]), Sample { iops: 2.0, p99_us: 2.0 });
    }
}
