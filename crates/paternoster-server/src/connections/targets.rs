//! Latency targets that cannot be met: the log says so as one is given up, and `stat` while it is.
//!
//! ```text
//!   given up  ├─ 5 s ─┤  ├─ 5 s ─┤  ├─ …       the scheduler tries it again in between
//!   logged    ●                                again after a minute without, or another target
//! ```

use std::collections::BTreeMap;

use paternoster::scheduler::Scheduler as _;
use paternoster::{Instant, Nanos, TargetStats};

use super::stat::elevator_now;
use super::{Connections, DiskOwner};
use crate::clients::TenantId;

/// How often the scheduler is asked.
const EACH: Nanos = Nanos::from_millis(1000);

/// For how long a target is not given up until it counts as met since.
const QUIET: Nanos = Nanos::from_secs(60);

/// The latency targets that were given up.
#[derive(Debug, Default)]
pub(super) struct UnmetTargets {
    /// When the scheduler was asked last.
    asked: Option<Instant>,
    /// By tenant: which target was given up, and when it was last seen so.
    seen: BTreeMap<TenantId, (Nanos, Instant)>,
}

impl UnmetTargets {
    /// Notes that a target is given up now. Returns whether that is news.
    fn note(&mut self, now: Instant, tenant: TenantId, target: Nanos) -> bool {
        let before = self.seen.insert(tenant, (target, now));
        before.is_none_or(|(earlier, seen)| earlier != target || seen + QUIET <= now)
    }
}

/// A target that is given up now.
#[derive(Debug)]
pub(super) struct GivenUp {
    tenant: TenantId,
    target: Nanos,
    /// What is to be said of it.
    pub(super) sentence: String,
}

impl Connections {
    /// Logs which targets were given up since the last time, if it is time to ask.
    pub(super) fn report_targets(&mut self, owner: &DiskOwner) {
        let now = owner.now();
        if self.unmet_targets.asked.is_some_and(|at| now < at + EACH) {
            return;
        }
        self.unmet_targets.asked = Some(now);
        self.unmet_targets.seen.retain(|&tenant, _| self.tenants.get(tenant).is_some());
        for GivenUp { tenant, target, sentence } in self.given_up(owner) {
            if self.unmet_targets.note(now, tenant, target) {
                tracing::warn!(disk = self.label.config.name, "{sentence}");
            }
        }
    }

    /// The targets that are given up now.
    pub(super) fn given_up(&self, owner: &DiskOwner) -> Vec<GivenUp> {
        let (elevator, now) = (owner.engine().elevator(), elevator_now(owner));
        let tenants = self.tenants.iter().filter_map(|(tenant, of)| {
            let target = elevator.groups()[of.group].limits().latency_target?;
            let stats = elevator.scheduler().own_stats(now, of.group).share?.target;
            let sentence = || sentence(&of.path, target, &stats);
            stats.given_up.then(|| GivenUp { tenant, target, sentence: sentence() })
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

#[cfg(test)]
mod tests {
    use slotmap::SlotMap;

    use super::*;

    #[test]
    fn target_that_is_given_up_again_and_again_is_logged_once() {
        let mut unmet = UnmetTargets::default();
        let mut keys = SlotMap::with_key();
        let tenants: [TenantId; 2] = [(); 2].map(|()| keys.insert(()));
        let at = |seconds| Instant::START + Nanos::from_secs(seconds);
        let [one, other] = [100, 200].map(Nanos::from_micros);
        assert!(unmet.note(at(0), tenants[0], one));
        for seconds in [1, 4, 12, 19, 70] {
            assert!(!unmet.note(at(seconds), tenants[0], one), "after {seconds} s");
        }
        assert!(unmet.note(at(71), tenants[1], one), "another tenant");
        assert!(unmet.note(at(72), tenants[0], other), "another target");
        assert!(unmet.note(at(132), tenants[0], other), "a minute after");
        assert!(!unmet.note(at(130), tenants[1], one), "59 s after");
    }
}
