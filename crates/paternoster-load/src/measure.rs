//! Measures what each tenant gets while all of them ask.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use paternoster_server::ctl::Control;
use paternoster_server::stat::Detail;

use crate::{Load, Measured};

/// How long every tenant has been backlogged before anything counts.
const BACKLOGGED: Duration = Duration::from_millis(500);

/// How long is counted at least, on a machine on which it takes long until all are served.
const LEAST: Duration = Duration::from_millis(200);

/// How long the tenants go on after the counting has ended.
const MARGIN: Duration = Duration::from_millis(50);

/// How often progress is reported.
const SLICE: Duration = Duration::from_millis(100);

/// How often it is looked whether every tenant is being served.
const LOOK: Duration = Duration::from_millis(5);

/// The result of one tenant.
#[derive(Clone, Debug)]
pub struct Got {
    /// Replies and their latencies.
    pub measured: Measured,
    /// The part of the time in which it had a request waiting for the device, 0 to 1.
    pub demand: f64,
    /// How long its requests kept servers of a modelled disk, summed over servers; none of another
    /// disk.
    pub device: Option<Duration>,
}

/// The results of all tenants, and in how long.
#[derive(Clone, Debug)]
pub struct Window {
    /// In the order of the loads.
    pub tenants: Vec<Got>,
    /// How long was counted.
    pub counted: Duration,
}

impl Load {
    /// Has all tenants ask for `span` in all, and counts what they get from when each of them has
    /// been backlogged for half a second until just before they stop: a fifth of a second, or more.
    /// `stat` is the server's; `progress` gets what each tenant got in a part of the time.
    pub fn measure(
        &mut self,
        stat: &impl Control,
        span: Duration,
        progress: impl FnMut(&[Measured]),
    ) -> Result<Window> {
        let end = Instant::now() + span.saturating_sub(MARGIN);
        self.start()?;
        self.until_all_are_served()?;
        self.run_for(BACKLOGGED)?;
        let left = end.saturating_duration_since(Instant::now());
        let window = self.count(stat, left.max(LEAST), progress)?;
        self.run_for(MARGIN)?;
        Ok(window)
    }

    /// Counts what the tenants, who ask already, get in the next `span`. `stat` and `progress` are
    /// as for [`measure`](Self::measure).
    pub fn count(
        &mut self,
        stat: &impl Control,
        span: Duration,
        mut progress: impl FnMut(&[Measured]),
    ) -> Result<Window> {
        self.take_measured();
        let began = Instant::now();
        let end = began + span;
        let before = self.times(stat)?;
        let mut sums = self.take_measured();
        while Instant::now() < end {
            self.run_for(end.saturating_duration_since(Instant::now()).min(SLICE))?;
            let slice = self.take_measured();
            progress(&slice);
            sums = sums.iter().zip(&slice).map(|(sum, more)| sum.and(more)).collect();
        }
        let counted = began.elapsed();
        let after = self.times(stat)?;

        let times = before.into_iter().zip(after);
        let tenants = sums.into_iter().zip(times).map(|(measured, (before, after))| {
            let waited = after.backlogged.saturating_sub(before.backlogged);
            let demand = (waited.as_secs_f64() / counted.as_secs_f64()).min(1.0);
            let device = after.device.zip(before.device);
            let device = device.map(|(after, before)| after.saturating_sub(before));
            Got { measured, demand, device }
        });
        Ok(Window { tenants: tenants.collect(), counted })
    }

    fn until_all_are_served(&mut self) -> Result<()> {
        let mut served = vec![false; self.tenants.len()];
        while served.contains(&false) {
            self.run_for(LOOK)?;
            for (served, measured) in served.iter_mut().zip(self.take_measured()) {
                *served |= measured.replies > 0;
            }
        }
        Ok(())
    }

    /// The times of each tenant so far, in the order of the loads.
    fn times(&self, stat: &impl Control) -> Result<Vec<Times>> {
        let stat = stat.stat(Detail::Groups)?;
        let times_of = |export: &String| {
            let mut groups = stat.disks.iter().flat_map(|disk| &disk.groups);
            let of_export = groups.find(|group| group.exports.contains(export));
            let group = of_export.with_context(|| format!("no group has the export {export:?}"))?;
            let backlogged = Duration::from_nanos(group.backlogged_ns);
            Ok(Times { backlogged, device: group.device_ns.map(Duration::from_nanos) })
        };
        self.tenants.iter().map(|(load, _)| times_of(&load.export)).collect()
    }
}

/// What the server says of a tenant's time since its start.
struct Times {
    /// With a request waiting.
    backlogged: Duration,
    /// In which servers of a modelled disk were kept.
    device: Option<Duration>,
}
