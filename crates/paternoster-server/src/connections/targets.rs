//! Latency targets that cannot be met: the log says so as one is given up, and `stat` while it is.

use paternoster::scheduler::Scheduler as _;
use paternoster::{Instant, Nanos, TargetStats};

use super::{Connections, DiskOwner};

/// How often the scheduler is asked.
const EACH: Nanos = Nanos::from_millis(1000);

/// The tenants whose targets were given up when the scheduler was asked last.
#[derive(Debug, Default)]
pub(super) struct UnmetTargets {
    asked: Option<Instant>,
    tenants: Vec<usize>,
}

impl Connections {
    /// Logs which targets were given up since the last time, if it is time to ask.
    pub(super) fn report_targets(&mut self, owner: &DiskOwner) {
        let now = owner.now();
        if self.unmet_targets.asked.is_some_and(|at| now < at + EACH) {
            return;
        }
        let given_up = self.given_up(owner);
        for (tenant, sentence) in &given_up {
            if !self.unmet_targets.tenants.contains(tenant) {
                tracing::warn!(disk = self.label.name, "{sentence}");
            }
        }
        let tenants = given_up.into_iter().map(|(tenant, _)| tenant).collect();
        self.unmet_targets = UnmetTargets { asked: Some(now), tenants };
    }

    /// A sentence for each tenant whose target is given up.
    pub(super) fn given_up(&self, owner: &DiskOwner) -> Vec<(usize, String)> {
        let elevator = owner.engine().elevator();
        let tenants = self.tenants.iter().enumerate().filter_map(|(index, tenant)| {
            let target = elevator.groups()[tenant.group].limits().latency_target?;
            let stats = elevator.scheduler().share_stats(tenant.group)?.target;
            stats.given_up.then(|| (index, sentence(&tenant.path, target, &stats)))
        });
        tenants.collect()
    }
}

fn sentence(path: &str, target: Nanos, stats: &TargetStats) -> String {
    format!(
        "latency_target of {path} cannot be met: {} of {} requests took longer than {} us, also \
         while others were held to a quarter of the depth; it is tried again within 5 s",
        stats.late,
        stats.requests,
        target.as_nanos() / 1000,
    )
}
