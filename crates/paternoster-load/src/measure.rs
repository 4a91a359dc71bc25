//! Measures what each tenant gets while all of them ask.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use paternoster::Nanos;
use paternoster_scene::{Outcome, TenantOutcome};
use paternoster_server::ctl::Control;
use paternoster_server::stat::Detail;

use crate::{Load, Measured};

/// How often progress is reported.
const SLICE: Duration = Duration::from_millis(100);

/// How long a tenant may wait for its first answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is looked whether every tenant is being served.
const LOOK: Duration = Duration::from_millis(5);

impl Load {
    /// Has all tenants ask. Waits until each has been answered once, then for `warm_up`, and then
    /// counts what they get. `stat` is the server's; `progress` gets what each tenant got in a part
    /// of the counted time.
    pub fn play(
        &mut self,
        stat: &impl Control,
        warm_up: Duration,
        counted: Duration,
        progress: impl FnMut(&[Measured]),
    ) -> Result<Outcome> {
        self.start()?;
        self.until_all_are_served()?;
        self.run_for(warm_up)?;
        self.count(stat, counted, progress)
    }

    /// Counts what the tenants, who ask already, get in the next `span`. What a request costs the
    /// device is not known: each counts as one. `stat` and `progress` are as for
    /// [`play`](Self::play).
    pub fn count(
        &mut self,
        stat: &impl Control,
        span: Duration,
        mut progress: impl FnMut(&[Measured]),
    ) -> Result<Outcome> {
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
        let seconds = began.elapsed().as_secs_f64();
        let after = self.times(stat)?;

        let mut tenants: Vec<_> =
            self.tenants.iter().map(|(tenant, _)| TenantOutcome::none_of(tenant)).collect();
        let times = before.into_iter().zip(after);
        for ((tenant, sum), (before, after)) in tenants.iter_mut().zip(sums).zip(times) {
            tenant.requests = sum.replies;
            tenant.cost = float(sum.replies);
            tenant.latency = sum.latency;
            let waited = after.backlogged.saturating_sub(before.backlogged);
            tenant.backlogged = (float(waited.as_nanos()) / 1e9 / seconds).min(1.0);
            let device = after.device.zip(before.device);
            tenant.device = device.map(|(after, before)| after.saturating_sub(before));
        }
        let requests = tenants.iter().map(|tenant| tenant.requests).sum();
        let cost = float(requests);
        let (seconds_errors, in_flight) = (vec![], None);
        Ok(Outcome { seconds, requests, cost, tenants, seconds_errors, in_flight })
    }

    /// Runs until each tenant has been answered once.
    fn until_all_are_served(&mut self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        let mut served = vec![false; self.tenants.len()];
        while let Some(waits) = served.iter().position(|served| !served) {
            let name = &self.tenants[waits].0.name;
            ensure!(Instant::now() < until, "tenant {name:?} got no answer in {PATIENCE:?}");
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
            let backlogged = Nanos::new(group.backlogged_ns);
            Ok(Times { backlogged, device: group.device_ns.map(Nanos::new) })
        };
        self.tenants.iter().map(|(tenant, _)| times_of(&tenant.name)).collect()
    }
}

/// What the server says of a tenant's time since its start.
struct Times {
    /// With a request waiting.
    backlogged: Nanos,
    /// In which servers of a modelled disk were kept.
    device: Option<Nanos>,
}

#[allow(clippy::cast_precision_loss, reason = "counts and times are far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}
