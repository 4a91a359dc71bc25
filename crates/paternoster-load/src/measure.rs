//! Measures what each tenant gets while all of them ask.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use paternoster_server::ctl::Control;
use paternoster_server::stat::Detail;

use crate::{Load, Measured};

/// How long every tenant has been backlogged before anything counts.
const BACKLOGGED: Duration = Duration::from_millis(500);

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
    /// been backlogged for half a second until just before they stop. `stat` is the server's;
    /// `progress` gets what each tenant got in a part of the time.
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
        let window = self.count(stat, end.saturating_duration_since(Instant::now()), progress)?;
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
        let waited_before = self.backlogged(stat)?;
        let mut sums = self.take_measured();
        while Instant::now() < end {
            self.run_for(end.saturating_duration_since(Instant::now()).min(SLICE))?;
            let slice = self.take_measured();
            progress(&slice);
            sums = sums.iter().zip(&slice).map(|(sum, more)| sum.and(more)).collect();
        }
        let counted = began.elapsed();
        let waited_after = self.backlogged(stat)?;

        let waited = waited_before.iter().zip(&waited_after).map(|(before, after)| after - before);
        let tenants = sums.into_iter().zip(waited).map(|(measured, waited)| Got {
            measured,
            demand: (Duration::from_nanos(waited).as_secs_f64() / counted.as_secs_f64()).min(1.0),
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

    /// Nanoseconds in which each tenant has had a request waiting, so far.
    fn backlogged(&self, stat: &impl Control) -> Result<Vec<u64>> {
        let stat = stat.stat(Detail::Groups)?;
        let group_of = |export: &String| {
            let groups = stat.disks.iter().flat_map(|disk| &disk.groups);
            let mut of_export = groups.filter(|group| group.exports.contains(export));
            of_export.next().with_context(|| format!("no group has the export {export:?}"))
        };
        let tenants = self.tenants.iter();
        tenants.map(|(load, _)| Ok(group_of(&load.export)?.backlogged_ns)).collect()
    }
}
