//! fio as an NBD client, and what is read of its report.

use super::DISK_SIZE;
use crate::KilledOnDrop;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};

/// What fio measured in one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Requests per second.
    pub iops: f64,
    /// The latency, in microseconds, that 99 % of the requests stay below.
    pub p99_us: f64,
}

/// fio at work as an NBD client.
#[derive(Debug)]
pub struct Client {
    uri: String,
    process: Child,
}

/// Runs fio as an NBD client; returns its report, which is JSON.
pub(super) fn fio(uri: &str, options: &[impl AsRef<str>]) -> Result<String> {
    Client::start(uri, DISK_SIZE as u64, options)?.report()
}

impl Client {
    /// Starts it on so many bytes.
    pub fn start(uri: &str, size: u64, options: &[impl AsRef<str>]) -> Result<Self> {
        let process = Command::new("fio")
            .args(["--name=bench", "--ioengine=nbd", "--output-format=json", "--randrepeat=1"])
            .arg(format!("--size={size}"))
            .arg(format!("--uri={uri}"))
            .args(options.iter().map(AsRef::as_ref))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("fio does not start: install the package fio")?;
        Ok(Self { uri: uri.to_owned(), process })
    }

    /// Waits for its end; returns its report, which is JSON.
    pub fn report(self) -> Result<String> {
        let output = self.process.wait_with_output().context("waiting for fio")?;
        if !output.status.success() {
            let said = [output.stderr, output.stdout].concat();
            bail!("fio {}: {}\n{}", self.uri, output.status, String::from_utf8_lossy(&said));
        }
        String::from_utf8(output.stdout).context("fio's report")
    }

    /// The number of its process.
    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Whether it has not ended yet.
    pub fn is_at_work(&mut self) -> Result<bool> {
        Ok(self.process.try_wait().context("asking for fio")?.is_none())
    }

    /// Stops it where it is, with its connection open, until it ends with what is
    /// returned.
    pub(super) fn freeze(self) -> Result<KilledOnDrop> {
        let pid = Pid::from_child(&self.process);
        kill_process(pid, Signal::STOP).context("stopping fio")?;
        Ok(KilledOnDrop(self.process))
    }
}

/// What is read of fio's report.
#[derive(Deserialize)]
struct Report {
    /// The jobs; ours is the only one, as it is reported as a group.
    jobs: [Job; 1],
}

/// A job in fio's report.
#[derive(Deserialize)]
struct Job {
    read: Direction,
    write: Direction,
}

/// The reads or the writes of a job.
#[derive(Deserialize)]
struct Direction {
    /// Requests per second.
    iops: f64,
    /// Nanoseconds from submission to completion.
    clat_ns: Latency,
}

/// A distribution in fio's report.
#[derive(Deserialize)]
struct Latency {
    /// Nanoseconds by the share of requests, in percent, that stay below; none without requests.
    #[serde(default)]
    percentile: BTreeMap<String, f64>,
}

/// The job of a report; fio may print notes before it.
fn job(report: &str) -> Result<Job> {
    let json = report.find('{').map_or("", |start| &report[start..]);
    let Report { jobs: [job] } = serde_json::from_str(json).context("fio's report")?;
    Ok(job)
}

/// Reads and writes a second by a report.
pub fn rates(report: &str) -> Result<f64> {
    let Job { read, write } = job(report)?;
    Ok(read.iops + write.iops)
}

/// What `report` says.
pub fn sample(report: &str) -> Result<Sample> {
    let Job { read, write } = job(report)?;
    let done = if read.iops > 0.0 { read } else { write };
    let p99 = done.clat_ns.percentile.get("99.000000").context("fio's report has no p99")?;
    Ok(Sample { iops: done.iops, p99_us: p99 / 1000.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_is_read_from_the_report_of_fio() {
        let none = r#"{"iops": 0.0, "clat_ns": {"min": 0}}"#;
        let some = r#"{"iops": 12345.678, "clat_ns": {"min": 1,
 "percentile": {"50.000000": 2000, "99.000000": 81408}}}"#;
        for (read, write) in [(some, none), (none, some)] {
            let report = format!(
                "note: both iodepth >= 1 and synchronous I/O engine\n\
                 {{\"jobs\": [{{\"jobname\": \"bench\", \"read\": {read}, \"write\": {write}}}]}}"
            );
            let expected = Sample { iops: 12345.678, p99_us: 81.408 };
            assert_eq!(sample(&report).expect("it is a report"), expected);
        }
        let idle = format!("{{\"jobs\": [{{\"read\": {none}, \"write\": {none}}}]}}");
        assert!(sample(&idle).is_err());
        assert!(sample("").is_err());
        assert!(sample(r#"{"jobs": []}"#).is_err());
    }
}
