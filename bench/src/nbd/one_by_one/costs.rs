//! What a request cost: counters divided by requests, those of `/proc` and those of our server.

use super::super::servers::{Program, Server};
use crate::counters::{Counted, float};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// What a request cost by the counters in `/proc`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Costs {
    /// Sleeps of the server's threads.
    pub(super) sleeps: f64,
    /// Interrupts between processors, of the whole machine.
    pub(super) ipis: Option<f64>,
    /// Timer interrupts, of the whole machine.
    pub(super) timers: Option<f64>,
    /// Microseconds of the server on a processor.
    pub(super) on_cpu_us: f64,
}

/// What a request cost by our server's own `stat`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OwnCosts {
    /// Sleeps of the thread of the disk.
    pub(super) waits: f64,
    /// Looks of that thread for what comes.
    pub(super) looks: f64,
}

/// Counters of our server's own `stat`, since it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnCounters {
    waits: u64,
    looks: u64,
    /// Requests done.
    pub(super) requests: u64,
}

impl Costs {
    /// From what was counted while there were `iops` requests a second.
    pub(super) fn of(counted: &Counted, iops: f64) -> Self {
        let requests = iops * counted.seconds;
        Self {
            sleeps: counted.sleeps / requests,
            ipis: counted.ipis.map(|count| count / requests),
            timers: counted.timers.map(|count| count / requests),
            on_cpu_us: counted.on_cpu_us / requests,
        }
    }
}

/// As much as is read of the answer of `ctl stat --json`.
#[derive(Deserialize)]
struct Stat {
    /// Ours has one disk.
    disks: [Disk; 1],
}

#[derive(Deserialize)]
struct Disk {
    waits: u64,
    poll: Poll,
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Poll {
    looks: u64,
}

#[derive(Deserialize)]
struct Group {
    ops: BTreeMap<String, Op>,
}

#[derive(Deserialize)]
struct Op {
    completed: u64,
}

impl OwnCounters {
    /// Asks the server, by the executable `program`; none where it is not ours.
    pub(super) fn of(program: &Path, server: &Server) -> Result<Option<Self>> {
        if server.kind.program != Program::Paternoster {
            return Ok(None);
        }
        let mut command = Command::new(program);
        command.args(["ctl", "stat", "--json", "--ctl"]).arg(&server.ctl);
        let output = command.output().context("asking the server for its stat")?;
        if !output.status.success() {
            bail!("ctl stat: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
        }
        Self::parse(&output.stdout).map(Some)
    }

    fn parse(json: &[u8]) -> Result<Self> {
        let Stat { disks: [disk] } = serde_json::from_slice(json).context("ctl stat --json")?;
        let ops = disk.groups.iter().flat_map(|group| group.ops.values());
        let requests = ops.map(|op| op.completed).sum();
        Ok(Self { waits: disk.waits, looks: disk.poll.looks, requests })
    }

    /// Returns what a request cost since `before`; an error where there was none.
    pub(super) fn since(&self, before: &Self) -> Result<OwnCosts> {
        let of = |count: fn(&Self) -> u64| float(count(self).saturating_sub(count(before)));
        let requests = of(|counters| counters.requests);
        if requests < 1.0 {
            bail!("by its own stat the server has done no request");
        }
        let each = |count| of(count) / requests;
        Ok(OwnCosts {
            waits: each(|counters| counters.waits),
            looks: each(|counters| counters.looks),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_those_of_a_request() {
        let counted = Counted {
            seconds: 0.5,
            on_cpu_us: 100_000.0,
            sleeps: 5_000.0,
            ipis: Some(20_000.0),
            timers: None,
        };
        let expected = Costs { sleeps: 0.5, ipis: Some(2.0), timers: None, on_cpu_us: 10.0 };
        // Half a second of 20,000 a second.
        assert_eq!(Costs::of(&counted, 20_000.0), expected);
    }

    #[test]
    fn requests_of_all_groups_and_kinds_are_counted() {
        let json = br#"{"version": 1, "disks": [{"name": "disk0", "waits": 7,
            "poll": {"mode": "auto", "looks": 9, "found": 8}, "groups": [
            {"path": "/", "ops": {}},
            {"path": "/a", "ops": {"read": {"completed": 30, "bios": 99},
                                   "write": {"completed": 12}}},
            {"path": "/b", "ops": {"read": {"completed": 100}}}]}]}"#;
        let counters = OwnCounters::parse(json).expect("it is an answer");
        assert_eq!(counters, OwnCounters { waits: 7, looks: 9, requests: 142 });
        let before = OwnCounters { waits: 5, looks: 8, requests: 138 };
        let costs = counters.since(&before).expect("there were four");
        assert_eq!(costs, OwnCosts { waits: 0.5, looks: 0.25 });
        assert!(counters.since(&counters).is_err());
        assert!(OwnCounters::parse(br#"{"disks": []}"#).is_err());
    }
}
