//! Where the machine's cores were busy: the clients' thread, the server in the same process, and
//! whoever else works on this machine.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::Serialize;

/// A tick of `/proc/stat`.
const TICK: Duration = Duration::from_millis(10);
/// The columns of its first line in which a core does something: all but idle, iowait, and guests,
/// who are counted as user already.
const BUSY: [usize; 6] = [1, 2, 3, 6, 7, 8];

/// Times so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cpu {
    at: Instant,
    clients: Duration,
    process: Duration,
    machine: Duration,
}

/// Cores that were busy between two moments.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Cores {
    pub(crate) clients: f64,
    pub(crate) server: f64,
    /// With what is neither: what is measured beside it says little.
    pub(crate) others: f64,
}

impl Cpu {
    /// Reads the clocks, on the clients' thread.
    pub(crate) fn now() -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
        let columns: Vec<&str> =
            stat.lines().next().unwrap_or_default().split_whitespace().collect();
        let ticks =
            |&column: &usize| columns.get(column).and_then(|ticks| ticks.parse::<u32>().ok());
        let busy: Option<Vec<u32>> = BUSY.iter().map(ticks).collect();
        let busy = busy.context("/proc/stat does not begin with the times of all cores")?;
        Ok(Self {
            at: Instant::now(),
            clients: duration(clock_gettime(ClockId::ThreadCPUTime)),
            process: duration(clock_gettime(ClockId::ProcessCPUTime)),
            machine: busy.iter().map(|&ticks| TICK * ticks).sum(),
        })
    }

    /// The cores that were busy since.
    pub(crate) fn since(&self, before: &Self) -> Cores {
        let cores = |of: fn(&Self) -> Duration| {
            of(self).saturating_sub(of(before)).as_secs_f64() / (self.at - before.at).as_secs_f64()
        };
        let (clients, process) = (cores(|cpu| cpu.clients), cores(|cpu| cpu.process));
        let others = (cores(|cpu| cpu.machine) - process).max(0.0);
        Cores { clients, server: process - clients, others }
    }
}

impl Cores {
    /// The mean.
    pub(crate) fn mean(of: &[Self]) -> Self {
        #[allow(clippy::cast_precision_loss)] // some windows
        let windows = of.len().max(1) as f64;
        let mean = |part: fn(&Self) -> f64| of.iter().map(part).sum::<f64>() / windows;
        Self {
            clients: mean(|cores| cores.clients),
            server: mean(|cores| cores.server),
            others: mean(|cores| cores.others),
        }
    }
}

fn duration(time: Timespec) -> Duration {
    let seconds = u64::try_from(time.tv_sec).expect("clocks of work done begin at 0");
    Duration::new(seconds, u32::try_from(time.tv_nsec).expect("below a second"))
}
